// guard: the only writer of a command. Takes what is wanted for each joint and gives what the
// limits allow, measured against the last published command with one nominal period, whatever
// was skipped. Position (with braking distance, so that a velocity always fits before the
// limit), velocity, acceleration, and jerk where configured; limit.c has the rules for one
// joint. A value that is not finite, or further out than its hard limit, refuses the whole
// vector: the caller brakes instead. All functions are rt; nothing allocates.
#ifndef ACTD_GUARD_H
#define ACTD_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#define ACTD_MAX_JOINTS 32

// Values equal actd.v1.Limit.
enum guard_limit {
    GUARD_NONE = 0,
    GUARD_POSITION,
    GUARD_VELOCITY,
    GUARD_ACCELERATION,
    GUARD_JERK,
};
#define GUARD_LIMITS 5

struct guard_limits { // rad, rad/s, rad/s^2, rad/s^3 (metres for sliding joints)
    int n;
    double min[ACTD_MAX_JOINTS], max[ACTD_MAX_JOINTS];
    // What no target may ask for; both 0 = not set: [min, max] widened by its width on each side.
    double hard_min[ACTD_MAX_JOINTS], hard_max[ACTD_MAX_JOINTS];
    double velocity[ACTD_MAX_JOINTS], acceleration[ACTD_MAX_JOINTS];
    double jerk[ACTD_MAX_JOINTS];              // 0 = no limit
    double stop_acceleration[ACTD_MAX_JOINTS]; // for STOPPING and ESTOP
};

struct guard {
    struct guard_limits lim;
    double period_s;
    // As published, and the last target inside the limits.
    double pos[ACTD_MAX_JOINTS], vel[ACTD_MAX_JOINTS], acc[ACTD_MAX_JOINTS];
    double wanted[ACTD_MAX_JOINTS], wanted_vel[ACTD_MAX_JOINTS];
    uint64_t limited[ACTD_MAX_JOINTS][GUARD_LIMITS]; // times each limit acted
    uint64_t refused;                                // vectors that were not finite
    uint64_t out_of_range;                           // vectors beyond a hard limit
    int refused_joint;    // the first to blame in the last refused vector, -1 = none yet
    uint64_t jerk_broken; // times jerk gave way to position, velocity or acceleration
};

struct guard_result {
    double pos[ACTD_MAX_JOINTS], vel[ACTD_MAX_JOINTS];
    enum guard_limit limit[ACTD_MAX_JOINTS]; // which limit acted
    enum guard_limit first;                  // the first that acted, and
    int first_joint;                         // its joint, -1 = none
};

// Copies the limits and fills in the hard ones that are not set.
void guard_init(struct guard *g, const struct guard_limits *lim, double period_s);

// The command is where the arm is, at rest: before the first command and on arming.
void guard_reset(struct guard *g, const double *measured /*(n)*/);

// One command towards `wanted`. `wanted_vel` (n) or NULL is how fast the target itself moves;
// NULL: as far as it came since the last command. A target that keeps the limits is met exactly,
// to the bit; one that does not is caught up with smoothly and not overshot (limit.c).
// scale in (0,1] shrinks velocity and acceleration (APPROACH), any other is 1. 0, -EDOM when a
// value is not finite, or -ERANGE when a wanted position is beyond a hard limit. A refusal is
// counted, with its joint, and changes neither the state nor out: the caller then calls
// guard_brake. Of two reasons the first joint's counts, for one joint not finite before range.
int guard_apply(struct guard *g, const double *wanted, const double *wanted_vel,
                double scale, struct guard_result *out);

// One command towards rest: with the acceleration limit, or with stop_acceleration (hard,
// jerk ignored). Always succeeds.
void guard_brake(struct guard *g, bool hard, struct guard_result *out);

bool guard_at_rest(const struct guard *g);

// Worst time and distance to rest of joint j from its top velocity, with stop_acceleration:
// V / S and V² / (2 S), the sequence of guard_brake(hard) being shorter by half a step.
void guard_stopping(const struct guard_limits *lim, int j, double *time_s,
                    double *distance);

#endif
