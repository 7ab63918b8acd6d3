// checker: an independent observer of what actd publishes. It sees the commands as a driver
// decodes them, the number and time of each tick, the requests and the chunks that were offered,
// and says which promise was broken. It shares no code and no header with the daemon: the limits
// come as numbers, modes as the wire's, and every rule is written from the promise, not from the
// way it is kept. All functions are plain; a violation is counted and told, never fatal.
#ifndef TEST_FAULT_CHECKER_H
#define TEST_FAULT_CHECKER_H

#include <stdbool.h>
#include <stdint.h>

#define CHECKER_JOINTS    32
#define CHECKER_CAMERAS   8
#define CHECKER_PUBLISHED 256 // commands remembered for the driver's side

enum checker_rule {
    CHECK_FINITE,         // a command with NaN or infinity
    CHECK_POSITION,       // outside the position limits
    CHECK_VELOCITY,       // a step longer than the velocity limit allows
    CHECK_ACCELERATION,   // velocity changed too fast (in a stop: the stop's limit)
    CHECK_JERK,           // acceleration changed too fast, where a limit is set
    CHECK_NAMED_VELOCITY, // the velocity it names is not that of its step
    CHECK_APPROACH_SPEED, // approach or homing faster than the part of the speed set for it
    CHECK_SEQUENCE,       // not one more than the command before
    CHECK_TICK,           // tick numbers do not increase, or differ from the tick's own
    CHECK_ACCOUNTING,     // executed + skipped ticks are not floor(elapsed / period) + 1
    CHECK_SILENCE,        // no command in a tick that owes one
    CHECK_MODE,           // the command's mode is not the ladder's, or none at all
    CHECK_TRANSITION,     // a step that the drawing of the ladder does not have
    CHECK_UNASKED,        // motion, or an end of a latch, that nobody asked for
    CHECK_IGNORED,        // a stop or emergency stop that was asked for and did not come
    CHECK_HOLD,           // HOLD lasts longer than it may
    CHECK_STOP,           // STOPPING lasts longer than the stop takes
    CHECK_SPEED_UP,       // a joint speeds up or turns round in a stop
    CHECK_IDLE,           // the pose changes while the arm is idle
    CHECK_START,          // the first command is not the measured pose
    CHECK_REASON,         // a stop or hold without a reason
    CHECK_STALE_JOINTS,   // motion on joint states older than the mode allows
    CHECK_STALE_CAMERA,   // the policy drives on frames that are too old
    CHECK_FOLLOWING,      // motion although the arm does not follow
    CHECK_GAP,            // motion goes on after the loop was away
    CHECK_TTL,            // no time to live, or more than the configured one
    CHECK_CHUNK_NONE,     // RUNNING without a chunk
    CHECK_CHUNK_UNKNOWN, // a chunk that was never offered, or is not usable
    CHECK_CHUNK_ORDER,   // back to an older chunk while running
    CHECK_CHUNK_ROW,     // not the row that the time says
    CHECK_CHUNK_END,     // a row past the end, or before the beginning
    CHECK_CHUNK_AGE,     // its observation is older than max_age
    CHECK_CHUNK_WANTED,  // a target that no mixture of the chunks in time can give
    CHECK_DRIVER_ORDER, // the driver got an older command after a newer one, or not the newest
    CHECK_DRIVER_CONTENT, // the driver got what was never published
    CHECK_DRIVER_TTL,     // a command leaves with more life than it has left
    CHECK_OBEYED,         // the plant obeys a command past its time to live
    CHECKER_RULES,
};

// Requests, as posted since the tick before.
enum checker_request {
    CHECKER_ARM = 1,
    CHECKER_DISARM = 2,
    CHECKER_STOP = 4,
    CHECKER_ESTOP = 8,
    CHECKER_RESET = 16,
    CHECKER_HOME = 32,
};

struct checker_config { // rad, rad/s …; n joints each
    int joints;
    double min[CHECKER_JOINTS], max[CHECKER_JOINTS], velocity[CHECKER_JOINTS];
    double hard_min[CHECKER_JOINTS],
        hard_max[CHECKER_JOINTS]; // of a target; both 0 = none
    double acceleration[CHECKER_JOINTS], jerk[CHECKER_JOINTS]; // jerk 0 = no limit
    double stop_acceleration[CHECKER_JOINTS];
    bool whole; // a new chunk replaces the ones before whole: nothing goes back to them
    bool blend[CHECKER_JOINTS];             // false: newest chunk, no interpolation
    double approach_scale;                  // of velocity, in APPROACH and HOMING
    double outside;                         // rad that an arm may rest beyond a limit
    double following_error[CHECKER_JOINTS]; // rad, 0 = not watched
    int following_ticks;
    int cameras;
    int64_t camera_period_ns[CHECKER_CAMERAS];
    int64_t period_ns, hold_ns, ttl_ns, gap_ns, joints_period_ns;
    enum { CHECKER_HOLD_ROWS, CHECKER_LINEAR, CHECKER_CUBIC } interpolation;
    int rows;                    // of a chunk that may be used
    int64_t step_ns, max_age_ns; // of a row; 0 = the chunk's own duration
    int64_t bridge_ns;           // from one policy's motion to the next one's; 0 = a jump
};

// A command as decoded.
struct checker_command {
    uint64_t sequence, tick;
    int64_t made_ns, ttl_ns;
    double pos[CHECKER_JOINTS], vel[CHECKER_JOINTS], wanted[CHECKER_JOINTS];
    int mode, reason; // actd.v1.Mode, actd.v1.Reason
    uint64_t chunk_id;
    double chunk_row;
};

struct checker_tick {
    uint64_t tick, skipped;                // skipped: in all, as the loop says
    int64_t now_ns, lateness_ns;           // when it woke, and how late
    int mode;                              // the ladder's, after the tick
    unsigned requests;                     // enum checker_request
    const double *measured;                // (joints) newest joint state, NULL = none yet
    int64_t captured_ns;                   // when that was measured
    int64_t frame_ns[CHECKER_CAMERAS];     // when its newest good frame came, 0 = never
    const struct checker_command *command; // NULL: nothing was published
    bool dropped;                          // the way out was full, or the gate closed
};

struct checker;

// 0 or -errno.
int checker_new(struct checker **out, const struct checker_config *cfg);
void checker_free(struct checker *c);

// The chunks on offer from now on are of this policy, with rows of step_ns (0: as configured).
// Policies are counted; those of an older one than the one in use are not to be used again.
void checker_policy(struct checker *c, uint32_t generation, int64_t step_ns);
// A chunk is on offer: row 0 is for anchor_ns, when its observation was made. row (rows, joints)
// is copied.
void checker_chunk(struct checker *c, uint64_t id, int64_t anchor_ns, int rows,
                   int joints, const float *row, int64_t now);
// One executed tick, after it.
void checker_tick(struct checker *c, const struct checker_tick *t);
// A published command leaves for the driver, with what is left of its time to live.
void checker_sent(struct checker *c, uint64_t sequence, int64_t ttl_ns, int64_t now);
// It was taken on the way and will never arrive: the next one steps from the one before it.
void checker_lost(struct checker *c, uint64_t sequence);
// It has arrived there; its time to live is counted from now.
void checker_received(struct checker *c, const struct checker_command *got, int64_t now);
// The driver moves the arm by this command at `now`.
void checker_obeyed(struct checker *c, uint64_t sequence, int64_t now);

// Violations in all and of one rule; the first of all in a sentence ("" if none).
uint64_t checker_violations(const struct checker *c);
uint64_t checker_count(const struct checker *c, enum checker_rule r);
const char *checker_first(const struct checker *c);
const char *checker_rule_name(enum checker_rule r);

#endif
