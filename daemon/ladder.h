// ladder: the state machine that decides what the arm may do. Pure and driven by one table:
// no clock, no input or output, no memory of its own beyond the state. See ladder.c for the
// table and the drawing, faults.h for what is remembered of a fault.
//
//   INIT -> WAITING <-> READY -arm-> APPROACH -> RUNNING <-> HOLD -expires-> STOPPING -> STOPPED
//   home: READY -> HOMING -> DISARMING      disarm: -> DISARMING (ramp to rest) -> READY
//   STOPPED, ESTOP: latched until reset
#ifndef ACTD_LADDER_H
#define ACTD_LADDER_H

#include <stdbool.h>
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
    LADDER_HOMING,
};
#define LADDER_STATES 12

// What is true in this tick, as a set of bits. Where a fault has two bounds it has two bits: the
// lower one for what may pass by itself, the higher one to stop.
#define LADDER_BIT(n) (UINT64_C(1) << (n))

#define LADDER_C_STARTED       LADDER_BIT(0) // threads run, policy passed its warm-up
#define LADDER_C_STREAMS_FRESH LADDER_BIT(1) // every stream, for fresh_ticks in a row
#define LADDER_C_HOLD_EXPIRED  LADDER_BIT(2)
#define LADDER_C_AT_REST       LADDER_BIT(3) // commanded velocity is zero
#define LADDER_C_AT_TARGET     LADDER_BIT(4) // approach or homing has arrived
#define LADDER_C_APPROACHED    LADDER_BIT(5) // since arming the approach has arrived once
#define LADDER_C_APPROACH_LONG LADDER_BIT(6) // and has not for too long: give up
#define LADDER_C_LATCHED       LADDER_BIT(7) // a latched fault is still there, in whatever form
// Joint states.
#define LADDER_C_JOINTS_MISSING    LADDER_BIT(8)
#define LADDER_C_JOINTS_LATE       LADDER_BIT(9)  // 3 of their periods: hold
#define LADDER_C_JOINTS_STALE      LADDER_BIT(10) // max(100 ms, 5 periods): stop
#define LADDER_C_JOINTS_INVALID    LADDER_BIT(11) // 3 refused in a row for their form: stop
#define LADDER_C_JOINTS_NOT_FINITE LADDER_BIT(12) // … for a value: stop
#define LADDER_C_JOINTS_JUMP       LADDER_BIT(13) // … since no arm moves that fast: stop
#define LADDER_C_JOINTS_CLOCK      LADDER_BIT(14) // … since the sender's clock jumped: stop
#define LADDER_C_OUT_OF_LIMITS     LADDER_BIT(15) // measured outside the limits: cannot arm
#define LADDER_C_FAR_OUT           LADDER_BIT(16) // and far outside: stop
#define LADDER_C_FOLLOWING         LADDER_BIT(17) // following error for N ticks: hold
#define LADDER_C_FOLLOWING_LONG    LADDER_BIT(18) // and longer: stop
#define LADDER_C_JOINTS_SLOW       LADDER_BIT(19) // below 90 % of their rate: only told
// Cameras. LATE means degraded: no new inference, the chunk in use goes on.
#define LADDER_C_CAMERA_MISSING LADDER_BIT(20)
#define LADDER_C_CAMERA_LATE    LADDER_BIT(21) // max(100 ms, 3 periods)
#define LADDER_C_CAMERA_STALE   LADDER_BIT(22) // max(500 ms, 10 periods): stop
#define LADDER_C_CAMERA_CORRUPT LADDER_BIT(23) // 5 in a row did not decode: stop
#define LADDER_C_CAMERA_INVALID LADDER_BIT(24) // stale, and what comes is refused: stop
#define LADDER_C_CAMERA_STUCK   LADDER_BIT(25) // 10 frames of the same content: as late
#define LADDER_C_CAMERA_FROZEN  LADDER_BIT(26) // and for as long as stale: stop
#define LADDER_C_CAMERA_SAME \
    LADDER_BIT(27) // 10 of the same content, and that is only told
// The policy.
#define LADDER_C_NO_CHUNK           LADDER_BIT(28) // no chunk covers now: hold
#define LADDER_C_CHUNK_TOO_OLD      LADDER_BIT(29) // the only ones there are too old: hold
#define LADDER_C_POLICY_SLOW        LADDER_BIT(30) // no chunk, an inference is overdue: hold
#define LADDER_C_CAMERA_SKEW        LADDER_BIT(31) // no chunk, frames too far apart: hold
#define LADDER_C_NOT_FINITE         LADDER_BIT(32) // refused vector: hold
#define LADDER_C_NOT_FINITE_AGAIN   LADDER_BIT(33) // several in a row: stop
#define LADDER_C_OUT_OF_RANGE       LADDER_BIT(34) // target beyond the hard limits: hold
#define LADDER_C_OUT_OF_RANGE_AGAIN LADDER_BIT(35) // several in a row: stop
#define LADDER_C_POLICY_FAILED      LADDER_BIT(36) // inference failed several times: stop
#define LADDER_C_CAMERA_SLOW        LADDER_BIT(37) // below 90 % of its rate: only told
// actd itself.
#define LADDER_C_GATE          LADDER_BIT(40) // the last gate refused a command: stop
#define LADDER_C_STALLED       LADDER_BIT(41) // the monitor had to cut the output: stop
#define LADDER_C_TICK_GAP      LADDER_BIT(42) // the loop was away > 100 ms: stop
#define LADDER_C_WAKEUP_BUDGET LADDER_BIT(43) // more than 10 % of 500 ms missed: stop
#define LADDER_C_TICK_BUDGET   LADDER_BIT(44)
#define LADDER_C_CHUNK_BUDGET  LADDER_BIT(45)
#define LADDER_C_SENSOR_BUDGET LADDER_BIT(46)
// Requests are edges: set for one tick.
#define LADDER_REQUEST_SHIFT 56
#define LADDER_C_REQ_ARM     LADDER_BIT(56)
#define LADDER_C_REQ_DISARM  LADDER_BIT(57)
#define LADDER_C_REQ_STOP    LADDER_BIT(58)
#define LADDER_C_REQ_ESTOP   LADDER_BIT(59)
#define LADDER_C_REQ_RESET   LADDER_BIT(60)
#define LADDER_C_REQ_HOME    LADDER_BIT(61)

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
    REASON_NOT_FINITE, // from the policy
    REASON_FOLLOWING_ERROR,
    REASON_POLICY_FAILED,
    REASON_TICK_GAP,
    REASON_OPERATOR,
    REASON_ESTOP,
    REASON_OUT_OF_LIMITS, // the measured pose
    REASON_INTERNAL,      // the last gate
    REASON_JOINTS_INVALID,
    REASON_JOINTS_NOT_FINITE,
    REASON_JOINTS_JUMP,
    REASON_JOINTS_CLOCK,
    REASON_CAMERA_CORRUPT,
    REASON_CAMERA_INVALID,
    REASON_CAMERA_FROZEN,
    REASON_CAMERA_SKEW,
    REASON_POLICY_SLOW,
    REASON_POLICY_OUT_OF_RANGE,
    REASON_LOOP_STALLED,
    REASON_LATE_WAKEUPS,
    REASON_SLOW_TICKS,
    REASON_LATE_CHUNKS,
    REASON_OLD_SENSORS,
    REASON_UNREACHABLE, // the approach never arrived
    REASON_JOINTS_SLOW,
    REASON_CAMERA_SLOW,
};
#define LADDER_REASONS 34

// What a fault leads to while the arm moves. DEGRADES: no new inference (and no arming);
// WARNS: it is told, and nothing else.
enum ladder_severity { LADDER_WARNS, LADDER_DEGRADES, LADDER_HOLDS, LADDER_STOPS };

// One fault that can be told apart: a bit, its reason, what it leads to. In order of rank, most
// severe first, specific before generic.
struct ladder_fault {
    uint64_t condition;
    enum ladder_reason reason;
    enum ladder_severity severity;
};
extern const struct ladder_fault ladder_fault[];
extern const int ladder_faults;

struct ladder_step {
    enum ladder_state state;
    enum ladder_reason reason; // of the transition taken, NONE if there is none to tell
};

// The next state. Pure; any thread class. conditions is a set of LADDER_C_ bits.
struct ladder_step ladder_next(enum ladder_state state, uint64_t conditions);

// Why the ladder may not leave a waiting or latched state now: the fault of the highest rank
// that is present. Pure; any thread class.
enum ladder_reason ladder_cause(uint64_t conditions);

// May the arm move in this state, other than coming to rest? Pure; any thread class.
bool ladder_moving(enum ladder_state s);

const char *ladder_state_name(enum ladder_state s);
const char *ladder_reason_name(enum ladder_reason r);

#endif
