// The state machine as one table. The first row that fits decides, so the order is the rank:
// most severe first, specific before generic. A row fits when the state is in `from`, none of
// the `unless` bits is set, and of the `when` bits any is set (ANY), all are (ALL), or there is
// no question (ALWAYS).
//
//                 ┌────────────── streams come and go ──────────────┐
//   INIT ──────> WAITING <──────────────────────────────────────> READY <──── at rest ──┐
//   started       ^                                                 │ arm               │
//                 │ reset, cause gone                               v                   │
//                 │                                  ┌───────── APPROACH ──┐        DISARMING
//                 │                                  │              │ arrived  disarm  ^
//              STOPPED <── at rest ── STOPPING <─────┤              v      └────────────┤
//              (latched)                 ^  fault    ├───────── RUNNING ── disarm ──────┤
//                                        │           │            ^ v cause of a hold   │
//                                        └── expires ┴─────────── HOLD ──── disarm ─────┘
//
//   READY ── home ──> HOMING ── arrived, disarm, or what would hold ──> DISARMING
//
//   ESTOP is reached from every state and left like STOPPED. A HOLD out of APPROACH goes back
//   to APPROACH: full speed is allowed only once the arm has been where the policy wants it.
//
// Requests that a row does not name are lost: arming is an edge and can not be stored up.
#include "daemon/ladder.h"

#include <assert.h>
#include <stddef.h>

#define S(name) (1u << LADDER_##name)
#define C(name) LADDER_C_##name

#define SINCE_ARMED (S(APPROACH) | S(RUNNING) | S(HOLD))
#define MOVING      (SINCE_ARMED | S(HOMING) | S(DISARMING))
#define IDLE        (S(WAITING) | S(READY))
#define ANYWHERE    (S(INIT) | IDLE | MOVING | S(STOPPING) | S(STOPPED))

// What stops any motion: faults of this process, and of what it knows of the arm.
#define FAULT_SELF \
    (C(GATE) | C(STALLED) | C(TICK_GAP) | C(WAKEUP_BUDGET) | C(TICK_BUDGET))
#define FAULT_REFUSED \
    (C(JOINTS_NOT_FINITE) | C(JOINTS_JUMP) | C(JOINTS_CLOCK) | C(JOINTS_INVALID))
#define FAULT_ARM                                                       \
    (FAULT_REFUSED | C(JOINTS_MISSING) | C(JOINTS_STALE) | C(FAR_OUT) | \
     C(FOLLOWING_LONG) | C(SENSOR_BUDGET))
// What stops only a motion that the policy drives.
#define FAULT_CAMERA \
    (C(CAMERA_CORRUPT) | C(CAMERA_INVALID) | C(CAMERA_FROZEN) | C(CAMERA_STALE))
#define FAULT_POLICY \
    (C(NOT_FINITE_AGAIN) | C(OUT_OF_RANGE_AGAIN) | C(POLICY_FAILED) | C(CHUNK_BUDGET))
#define FAULT_DRIVE (FAULT_POLICY | FAULT_CAMERA | C(CAMERA_MISSING))

// Whatever keeps an arm from being armed.
#define UNFIT                                                                   \
    (FAULT_SELF | FAULT_ARM | FAULT_DRIVE | C(JOINTS_LATE) | C(OUT_OF_LIMITS) | \
     C(CAMERA_LATE) | C(CAMERA_STUCK) | C(LATCHED))
// Whatever may have latched a stop, as far as it can still be there. A stream that is missing
// does not count: WAITING waits for it.
#define CAUSE                                                                        \
    (FAULT_SELF | FAULT_REFUSED | C(JOINTS_STALE) | C(FAR_OUT) | C(FOLLOWING_LONG) | \
     C(SENSOR_BUDGET) | FAULT_POLICY | FAULT_CAMERA | C(REQ_STOP) | C(REQ_ESTOP) |   \
     C(LATCHED))
// What may pass by itself.
#define HOLDING (C(JOINTS_LATE) | C(FOLLOWING) | C(NOT_FINITE) | C(OUT_OF_RANGE))
#define NO_ROWS (C(NO_CHUNK) | C(CHUNK_TOO_OLD))

enum combine { ANY, ALL, ALWAYS };
// Not a reason of its own: what ladder_cause says.
#define BY_CAUSE ((enum ladder_reason)LADDER_REASONS)

struct row {
    uint32_t from;
    enum combine how;
    uint64_t when, unless;
    enum ladder_state to;
    enum ladder_reason reason;
};

static const struct row table[] = {
    {ANYWHERE, ANY, C(REQ_ESTOP), 0, LADDER_ESTOP, REASON_ESTOP},
    {MOVING, ANY, FAULT_SELF | FAULT_ARM, 0, LADDER_STOPPING, BY_CAUSE},
    {SINCE_ARMED, ANY, FAULT_DRIVE, 0, LADDER_STOPPING, BY_CAUSE},
    {IDLE | MOVING, ANY, C(REQ_STOP), 0, LADDER_STOPPING, REASON_OPERATOR},
    // Whoever made a wrong command at rest must not be armed. (A stall or a gap at rest is told,
    // and 50 fresh ticks lie between it and the next arming.)
    {IDLE, ANY, C(GATE), 0, LADDER_STOPPING, BY_CAUSE},
    {S(HOLD), ANY, C(HOLD_EXPIRED), 0, LADDER_STOPPING, BY_CAUSE},
    {SINCE_ARMED | S(HOMING), ANY, C(REQ_DISARM), 0, LADDER_DISARMING, REASON_OPERATOR},
    // What may pass by itself. APPROACH without rows waits in place: it has no time to lose.
    {S(APPROACH) | S(RUNNING), ANY, HOLDING, 0, LADDER_HOLD, BY_CAUSE},
    {S(RUNNING), ANY, NO_ROWS, 0, LADDER_HOLD, BY_CAUSE},
    {S(HOLD), ANY, C(APPROACHED), HOLDING | NO_ROWS, LADDER_RUNNING, REASON_NONE},
    {S(HOLD), ALWAYS, 0, HOLDING | C(APPROACHED), LADDER_APPROACH, REASON_NONE},
    // An approach that never arrives: no rows came, or the policy wants what is out of reach.
    {S(APPROACH), ALL, C(APPROACH_LONG) | C(NO_CHUNK), 0, LADDER_DISARMING, BY_CAUSE},
    {S(APPROACH) | S(HOMING), ANY, C(APPROACH_LONG), 0, LADDER_DISARMING,
     REASON_UNREACHABLE},
    {S(APPROACH), ANY, C(AT_TARGET), NO_ROWS, LADDER_RUNNING, REASON_NONE},
    // Nothing waits for the end of a HOMING, so what would hold ends it.
    {S(HOMING), ANY, C(JOINTS_LATE) | C(FOLLOWING), 0, LADDER_DISARMING, BY_CAUSE},
    {S(HOMING), ANY, C(AT_TARGET), 0, LADDER_DISARMING, REASON_NONE},
    {S(STOPPING), ANY, C(AT_REST), 0, LADDER_STOPPED, REASON_NONE},
    {S(DISARMING), ANY, C(AT_REST), 0, LADDER_READY, REASON_NONE},
    {S(STOPPED) | S(ESTOP), ALL, C(REQ_RESET) | C(AT_REST), CAUSE, LADDER_WAITING,
     REASON_OPERATOR},
    // Asked for both at once, neither is meant.
    {S(READY), ALL, C(REQ_ARM) | C(STARTED) | C(STREAMS_FRESH),
     UNFIT | C(REQ_DISARM) | C(REQ_HOME), LADDER_APPROACH, REASON_NONE},
    {S(READY), ALL, C(REQ_HOME) | C(STARTED) | C(STREAMS_FRESH),
     UNFIT | C(REQ_DISARM) | C(REQ_ARM), LADDER_HOMING, REASON_NONE},
    {S(READY), ANY, UNFIT, 0, LADDER_WAITING, BY_CAUSE},
    {S(READY), ALWAYS, 0, C(STREAMS_FRESH), LADDER_WAITING, BY_CAUSE},
    {S(WAITING), ALL, C(STARTED) | C(STREAMS_FRESH), UNFIT, LADDER_READY, REASON_NONE},
    {S(INIT), ANY, C(STARTED), 0, LADDER_WAITING, BY_CAUSE},
};

// The rank. A stream that sends what can not be used is told before one that sends nothing, and
// what keeps chunks from coming before their absence.
#define F(condition, reason, severity)                   \
    {                                                    \
        C(condition), REASON_##reason, LADDER_##severity \
    }
const struct ladder_fault ladder_fault[] = {
    F(REQ_ESTOP, ESTOP, STOPS),
    F(GATE, INTERNAL, STOPS),
    F(STALLED, LOOP_STALLED, STOPS),
    F(TICK_GAP, TICK_GAP, STOPS),
    F(JOINTS_NOT_FINITE, JOINTS_NOT_FINITE, STOPS),
    F(JOINTS_JUMP, JOINTS_JUMP, STOPS),
    F(JOINTS_CLOCK, JOINTS_CLOCK, STOPS),
    F(JOINTS_INVALID, JOINTS_INVALID, STOPS),
    F(JOINTS_MISSING, JOINTS_MISSING, STOPS),
    F(JOINTS_STALE, JOINTS_STALE, STOPS),
    F(FAR_OUT, OUT_OF_LIMITS, STOPS),
    F(FOLLOWING_LONG, FOLLOWING_ERROR, STOPS),
    F(WAKEUP_BUDGET, LATE_WAKEUPS, STOPS),
    F(TICK_BUDGET, SLOW_TICKS, STOPS),
    F(SENSOR_BUDGET, OLD_SENSORS, STOPS),
    F(NOT_FINITE_AGAIN, NOT_FINITE, STOPS),
    F(OUT_OF_RANGE_AGAIN, POLICY_OUT_OF_RANGE, STOPS),
    F(POLICY_FAILED, POLICY_FAILED, STOPS),
    F(CHUNK_BUDGET, LATE_CHUNKS, STOPS),
    F(CAMERA_CORRUPT, CAMERA_CORRUPT, STOPS),
    F(CAMERA_INVALID, CAMERA_INVALID, STOPS),
    F(CAMERA_MISSING, CAMERA_MISSING, STOPS),
    F(CAMERA_FROZEN, CAMERA_FROZEN, STOPS),
    F(CAMERA_STALE, CAMERA_STALE, STOPS),
    F(REQ_STOP, OPERATOR, STOPS),
    F(JOINTS_LATE, JOINTS_STALE, HOLDS),
    F(FOLLOWING, FOLLOWING_ERROR, HOLDS),
    F(NOT_FINITE, NOT_FINITE, HOLDS),
    F(OUT_OF_RANGE, POLICY_OUT_OF_RANGE, HOLDS),
    F(OUT_OF_LIMITS, OUT_OF_LIMITS, DEGRADES),
    F(CAMERA_STUCK, CAMERA_FROZEN, DEGRADES),
    F(CAMERA_LATE, CAMERA_STALE, DEGRADES),
    F(POLICY_SLOW, POLICY_SLOW, HOLDS),
    F(CAMERA_SKEW, CAMERA_SKEW, HOLDS),
    F(CHUNK_TOO_OLD, CHUNK_TOO_OLD, HOLDS),
    F(NO_CHUNK, NO_CHUNK, HOLDS),
    F(CAMERA_SAME, CAMERA_FROZEN, WARNS),
    F(JOINTS_SLOW, JOINTS_SLOW, WARNS),
    F(CAMERA_SLOW, CAMERA_SLOW, WARNS),
};
const int ladder_faults = sizeof ladder_fault / sizeof *ladder_fault;

static bool fits(const struct row *r, enum ladder_state state, uint64_t conditions)
{
    uint64_t met = conditions & r->when;

    if (!((r->from >> state) & 1) || (conditions & r->unless))
        return false;
    return r->how == ALWAYS || (r->how == ANY ? met != 0 : met == r->when);
}

struct ladder_step ladder_next(enum ladder_state state, uint64_t conditions)
{
    if ((unsigned)state < LADDER_INIT || (unsigned)state >= LADDER_STATES)
        return (struct ladder_step){LADDER_ESTOP, REASON_INTERNAL}; // memory went wrong
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct row *r = &table[i];

        if (!fits(r, state, conditions))
            continue;
        return (struct ladder_step){
            r->to, r->reason == BY_CAUSE ? ladder_cause(conditions) : r->reason};
    }
    return (struct ladder_step){state, REASON_NONE};
}

enum ladder_reason ladder_cause(uint64_t conditions)
{
    for (int i = 0; i < ladder_faults; i++)
        if ((conditions & ladder_fault[i].condition) &&
            ladder_fault[i].severity != LADDER_WARNS)
            return ladder_fault[i].reason;
    return conditions & C(STARTED) ? REASON_NONE : REASON_STARTING;
}

bool ladder_moving(enum ladder_state s)
{
    return (unsigned)s < LADDER_STATES && ((MOVING >> s) & 1);
}

static const char *const state_names[] = {
    "UNSPECIFIED", "INIT",     "WAITING", "READY", "APPROACH",  "RUNNING",
    "HOLD",        "STOPPING", "STOPPED", "ESTOP", "DISARMING", "HOMING",
};
static_assert(sizeof state_names / sizeof *state_names == LADDER_STATES,
              "a name per state");
static_assert(LADDER_HOMING == LADDER_STATES - 1, "the last state is the last name");

static const char *const reason_names[] = {
    "NONE",           "STARTING",
    "JOINTS_MISSING", "JOINTS_STALE",
    "CAMERA_MISSING", "CAMERA_STALE",
    "NO_CHUNK",       "CHUNK_TOO_OLD",
    "NOT_FINITE",     "FOLLOWING_ERROR",
    "POLICY_FAILED",  "TICK_GAP",
    "OPERATOR",       "ESTOP",
    "OUT_OF_LIMITS",  "INTERNAL",
    "JOINTS_INVALID", "JOINTS_NOT_FINITE",
    "JOINTS_JUMP",    "JOINTS_CLOCK",
    "CAMERA_CORRUPT", "CAMERA_INVALID",
    "CAMERA_FROZEN",  "CAMERA_SKEW",
    "POLICY_SLOW",    "POLICY_OUT_OF_RANGE",
    "LOOP_STALLED",   "LATE_WAKEUPS",
    "SLOW_TICKS",     "LATE_CHUNKS",
    "OLD_SENSORS",    "UNREACHABLE",
    "JOINTS_SLOW",    "CAMERA_SLOW",
};
static_assert(sizeof reason_names / sizeof *reason_names == LADDER_REASONS,
              "a name per reason");
static_assert(REASON_CAMERA_SLOW == LADDER_REASONS - 1,
              "the last reason is the last name");

const char *ladder_state_name(enum ladder_state s)
{
    return (unsigned)s < LADDER_STATES ? state_names[s] : "?";
}

const char *ladder_reason_name(enum ladder_reason r)
{
    return (unsigned)r < LADDER_REASONS ? reason_names[r] : "?";
}
