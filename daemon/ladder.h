// ladder: the state machine that decides what the arm may do. Pure and driven by one table:
// no clock, no input or output, no memory of its own beyond the state. See ladder.c for the
// table and the drawing.
//
//   INIT -> WAITING <-> READY -arm-> APPROACH -> RUNNING <-> HOLD -expires-> STOPPING -> STOPPED
//   disarm: -> DISARMING (ramp to rest) -> READY        STOPPED, ESTOP: latched until reset
#ifndef ACTD_LADDER_H
#define ACTD_LADDER_H

#include <stdint.h>

// Values equal actd.v1.Mode.
enum ladder_state {
    LADDER_INIT = 1,
    LADDER_WAITING,
    LADDER_READY,
    LADDER_APPROACH,
    LADDER_RUNNING,
    LADDER_HOLD,
    LADDER_STOPPING,
    LADDER_STOPPED,
    LADDER_ESTOP,
    LADDER_DISARMING,
};
#define LADDER_STATES 11

// What is true in this tick. Requests are edges: set for one tick.
enum ladder_condition {
    LADDER_C_STARTED = 1u << 0,       // threads run, policy passed its warm-up
    LADDER_C_STREAMS_FRESH = 1u << 1, // every stream, for 50 ticks in a row
    LADDER_C_JOINTS_MISSING = 1u << 2,
    LADDER_C_JOINTS_LATE = 1u << 3,  // 3 of their periods: hold (2 are only degraded)
    LADDER_C_JOINTS_STALE = 1u << 4, // max(100 ms, 5 periods): stop
    LADDER_C_CAMERA_MISSING = 1u << 5,
    LADDER_C_CAMERA_LATE = 1u << 6, // max(100 ms, 3 periods): degraded, no inference
    // max(500 ms, 10 periods), or 5 frames in a row that do not decode: stop
    LADDER_C_CAMERA_STALE = 1u << 7,
    LADDER_C_NO_CHUNK = 1u << 8,          // no chunk covers now: hold
    LADDER_C_CHUNK_TOO_OLD = 1u << 9,     // the only ones there are too old: hold
    LADDER_C_NOT_FINITE = 1u << 10,       // refused vector: hold
    LADDER_C_NOT_FINITE_AGAIN = 1u << 11, // several in a row: stop
    LADDER_C_FOLLOWING = 1u << 12,        // following error for N ticks: hold
    LADDER_C_FOLLOWING_LONG = 1u << 13,   // and longer: stop
    LADDER_C_TICK_GAP = 1u << 14,         // the loop was away > 100 ms: stop
    LADDER_C_OUT_OF_LIMITS = 1u << 15,    // measured pose outside hard limits: cannot arm
    LADDER_C_POLICY_FAILED = 1u << 16,    // inference failed several times in a row: stop
    LADDER_C_HOLD_EXPIRED = 1u << 17,
    LADDER_C_AT_REST = 1u << 18,       // commanded velocity is zero
    LADDER_C_AT_TARGET = 1u << 19,     // approach has arrived
    LADDER_C_GATE = 1u << 20,          // the last gate refused a command: stop
    LADDER_C_APPROACHED = 1u << 21,    // since arming the approach has arrived once
    LADDER_C_APPROACH_LONG = 1u << 22, // and has not for too long: give up
    LADDER_C_REQ_ARM = 1u << 24,
    LADDER_C_REQ_DISARM = 1u << 25,
    LADDER_C_REQ_STOP = 1u << 26,
    LADDER_C_REQ_ESTOP = 1u << 27,
    LADDER_C_REQ_RESET = 1u << 28,
};

// Values equal actd.v1.Reason.
enum ladder_reason {
    REASON_NONE = 0,
    REASON_STARTING,
    REASON_JOINTS_MISSING,
    REASON_JOINTS_STALE,
    REASON_CAMERA_MISSING,
    REASON_CAMERA_STALE,
    REASON_NO_CHUNK,
    REASON_CHUNK_TOO_OLD,
    REASON_NOT_FINITE,
    REASON_FOLLOWING_ERROR,
    REASON_POLICY_FAILED,
    REASON_TICK_GAP,
    REASON_OPERATOR,
    REASON_ESTOP,
    REASON_OUT_OF_LIMITS,
    REASON_INTERNAL,
};
#define LADDER_REASONS 16

struct ladder_step {
    enum ladder_state state;
    enum ladder_reason reason; // of the transition taken, NONE if there is none to tell
};

// The next state. Pure; any thread class. conditions is a set of ladder_condition bits.
struct ladder_step ladder_next(enum ladder_state state, uint32_t conditions);

// Why the ladder may not leave a waiting or latched state now: the most severe condition.
enum ladder_reason ladder_cause(uint32_t conditions);

const char *ladder_state_name(enum ladder_state s);
const char *ladder_reason_name(enum ladder_reason r);

#endif
