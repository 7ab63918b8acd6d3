// limit: one joint, one tick. What guard does for a vector, done for a number: the next
// velocity of a point that may not leave [min, max], move faster than `velocity`, change speed
// faster than `acceleration`, or (jerk > 0) change that faster than `jerk`. Pure, rt.
#ifndef ACTD_LIMIT_H
#define ACTD_LIMIT_H

#include "daemon/guard.h"

struct limit_joint {
    double min, max, velocity, acceleration, jerk; // rad, s; jerk 0 = none
    double period_s;
};
// As published last: position, and backward differences over one period.
struct limit_state {
    double pos, vel, acc;
};
struct limit_step {
    double pos, vel;        // pos = state.pos + vel * period, to the last bits
    enum guard_limit limit; // the last limit that changed something
    bool jerk_broken; // position, velocity and acceleration could not be kept within jerk
};

// Towards a target that is at `wanted` in this tick and moves at `wanted_vel`, itself
// accelerating at wanted_acc. scale in (0,1] shrinks velocity and acceleration.
struct limit_step limit_towards(const struct limit_joint *j, const struct limit_state *s,
                                double wanted, double wanted_vel, double wanted_acc,
                                double scale);
// Towards rest with deceleration `brake`; jerk counts only when it is not hard.
struct limit_step limit_brake(const struct limit_joint *j, const struct limit_state *s,
                              double brake, bool hard);

// The largest first step `x1` of a sequence x1, x1 - b, x1 - 2b, … down to 0 (b = rate * dt)
// whose sum times dt does not exceed `room`: the discrete sqrt(2 * rate * room).
double limit_brake_speed(double room, double rate, double dt);

// How far a point with velocity v and acceleration a can still advance (> 0) until a jerk-
// limited stop has ended; an upper bound of what limit_brake does from there, see limit.c.
double limit_advance(double v, double a, double acceleration, double jerk, double dt);

#endif
