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
//   ESTOP is reached from every state and left like STOPPED. A HOLD out of APPROACH goes back
//   to APPROACH: full speed is allowed only once the arm has been where the policy wants it.
//
// Requests that a row does not name are lost: arming is an edge and can not be stored up.
#include "daemon/ladder.h"

#include <assert.h>
#include <stddef.h>

#define S(name) (1u << LADDER_##name)
#define C(name) ((uint32_t)LADDER_C_##name)

#define SINCE_ARMED (S(APPROACH) | S(RUNNING) | S(HOLD))
#define MOVING      (SINCE_ARMED | S(DISARMING))
#define IDLE        (S(WAITING) | S(READY))
#define ANYWHERE    (S(INIT) | IDLE | MOVING | S(STOPPING) | S(STOPPED))

// Whatever keeps an arm from being armed.
#define UNFIT                                                                     \
    (C(JOINTS_MISSING) | C(JOINTS_LATE) | C(JOINTS_STALE) | C(CAMERA_MISSING) |   \
     C(CAMERA_LATE) | C(CAMERA_STALE) | C(NOT_FINITE_AGAIN) | C(FOLLOWING_LONG) | \
     C(TICK_GAP) | C(OUT_OF_LIMITS) | C(POLICY_FAILED) | C(GATE))
// Whatever may have latched a stop, as far as it can still be there. A stream that is missing
// or a pose outside the limits does not count: WAITING waits for those.
#define CAUSE                                                                      \
    (C(JOINTS_STALE) | C(CAMERA_STALE) | C(NOT_FINITE_AGAIN) | C(FOLLOWING_LONG) | \
     C(TICK_GAP) | C(POLICY_FAILED) | C(GATE) | C(REQ_STOP) | C(REQ_ESTOP))
#define HOLDING (C(JOINTS_LATE) | C(NOT_FINITE) | C(FOLLOWING))
#define NO_ROWS (C(NO_CHUNK) | C(CHUNK_TOO_OLD))

enum combine { ANY, ALL, ALWAYS };
// Not a reason of its own: what ladder_cause says.
#define BY_CAUSE ((enum ladder_reason)LADDER_REASONS)

struct row {
    uint32_t from;
    enum combine how;
    uint32_t when, unless;
    enum ladder_state to;
    enum ladder_reason reason;
};

static const struct row table[] = {
    {ANYWHERE, ANY, C(REQ_ESTOP), 0, LADDER_ESTOP, REASON_ESTOP},
    // Faults of this process first, then of what it knows of the arm, then of what drives it.
    {MOVING, ANY, C(GATE), 0, LADDER_STOPPING, REASON_INTERNAL},
    {MOVING, ANY, C(TICK_GAP), 0, LADDER_STOPPING, REASON_TICK_GAP},
    {MOVING, ANY, C(JOINTS_MISSING), 0, LADDER_STOPPING, REASON_JOINTS_MISSING},
    {MOVING, ANY, C(JOINTS_STALE), 0, LADDER_STOPPING, REASON_JOINTS_STALE},
    {MOVING, ANY, C(NOT_FINITE_AGAIN), 0, LADDER_STOPPING, REASON_NOT_FINITE},
    {MOVING, ANY, C(FOLLOWING_LONG), 0, LADDER_STOPPING, REASON_FOLLOWING_ERROR},
    {SINCE_ARMED, ANY, C(POLICY_FAILED), 0, LADDER_STOPPING, REASON_POLICY_FAILED},
    {SINCE_ARMED, ANY, C(CAMERA_MISSING), 0, LADDER_STOPPING, REASON_CAMERA_MISSING},
    {SINCE_ARMED, ANY, C(CAMERA_STALE), 0, LADDER_STOPPING, REASON_CAMERA_STALE},
    {IDLE | MOVING, ANY, C(REQ_STOP), 0, LADDER_STOPPING, REASON_OPERATOR},
    {S(HOLD), ANY, C(HOLD_EXPIRED), 0, LADDER_STOPPING, BY_CAUSE},
    {SINCE_ARMED, ANY, C(REQ_DISARM), 0, LADDER_DISARMING, REASON_OPERATOR},
    // What may pass by itself. APPROACH without rows waits in place: it has no time to lose.
    {S(APPROACH) | S(RUNNING), ANY, C(JOINTS_LATE), 0, LADDER_HOLD, REASON_JOINTS_STALE},
    {S(APPROACH) | S(RUNNING), ANY, C(NOT_FINITE), 0, LADDER_HOLD, REASON_NOT_FINITE},
    {S(APPROACH) | S(RUNNING), ANY, C(FOLLOWING), 0, LADDER_HOLD, REASON_FOLLOWING_ERROR},
    {S(RUNNING), ANY, C(CHUNK_TOO_OLD), 0, LADDER_HOLD, REASON_CHUNK_TOO_OLD},
    {S(RUNNING), ANY, C(NO_CHUNK), 0, LADDER_HOLD, REASON_NO_CHUNK},
    {S(HOLD), ANY, C(APPROACHED), HOLDING | NO_ROWS, LADDER_RUNNING, REASON_NONE},
    {S(HOLD), ALWAYS, 0, HOLDING | C(APPROACHED), LADDER_APPROACH, REASON_NONE},
    // An approach that never arrives: no rows came, or the policy wants what is out of reach.
    {S(APPROACH), ALL, C(APPROACH_LONG) | C(NO_CHUNK), 0, LADDER_DISARMING,
     REASON_NO_CHUNK},
    {S(APPROACH), ANY, C(APPROACH_LONG), 0, LADDER_DISARMING, REASON_OUT_OF_LIMITS},
    {S(APPROACH), ANY, C(AT_TARGET), NO_ROWS, LADDER_RUNNING, REASON_NONE},
    {S(STOPPING), ANY, C(AT_REST), 0, LADDER_STOPPED, REASON_NONE},
    {S(DISARMING), ANY, C(AT_REST), 0, LADDER_READY, REASON_NONE},
    {S(STOPPED) | S(ESTOP), ALL, C(REQ_RESET) | C(AT_REST), CAUSE, LADDER_WAITING,
     REASON_OPERATOR},
    {S(READY), ALL, C(REQ_ARM) | C(STARTED) | C(STREAMS_FRESH), UNFIT | C(REQ_DISARM),
     LADDER_APPROACH, REASON_NONE},
    {S(READY), ANY, UNFIT, 0, LADDER_WAITING, BY_CAUSE},
    {S(READY), ALWAYS, 0, C(STREAMS_FRESH), LADDER_WAITING, BY_CAUSE},
    {S(WAITING), ALL, C(STARTED) | C(STREAMS_FRESH), UNFIT, LADDER_READY, REASON_NONE},
    {S(INIT), ANY, C(STARTED), 0, LADDER_WAITING, BY_CAUSE},
};

static int fits(const struct row *r, enum ladder_state state, uint32_t conditions)
{
    uint32_t met = conditions & r->when;

    if (!((r->from >> state) & 1) || (conditions & r->unless))
        return 0;
    return r->how == ALWAYS || (r->how == ANY ? met != 0 : met == r->when);
}

struct ladder_step ladder_next(enum ladder_state state, uint32_t conditions)
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

enum ladder_reason ladder_cause(uint32_t conditions)
{
    static const struct {
        uint32_t any;
        enum ladder_reason reason;
    } rank[] = {
        {C(REQ_ESTOP), REASON_ESTOP},
        {C(GATE), REASON_INTERNAL},
        {C(TICK_GAP), REASON_TICK_GAP},
        {C(JOINTS_MISSING), REASON_JOINTS_MISSING},
        {C(JOINTS_STALE) | C(JOINTS_LATE), REASON_JOINTS_STALE},
        {C(NOT_FINITE_AGAIN) | C(NOT_FINITE), REASON_NOT_FINITE},
        {C(FOLLOWING_LONG) | C(FOLLOWING), REASON_FOLLOWING_ERROR},
        {C(POLICY_FAILED), REASON_POLICY_FAILED},
        {C(CAMERA_MISSING), REASON_CAMERA_MISSING},
        {C(CAMERA_STALE) | C(CAMERA_LATE), REASON_CAMERA_STALE},
        {C(OUT_OF_LIMITS), REASON_OUT_OF_LIMITS},
        {C(REQ_STOP), REASON_OPERATOR},
        {C(CHUNK_TOO_OLD), REASON_CHUNK_TOO_OLD},
        {C(NO_CHUNK), REASON_NO_CHUNK},
    };

    for (size_t i = 0; i < sizeof rank / sizeof *rank; i++)
        if (conditions & rank[i].any)
            return rank[i].reason;
    return conditions & C(STARTED) ? REASON_NONE : REASON_STARTING;
}

static const char *const state_names[] = {
    "UNSPECIFIED", "INIT",     "WAITING", "READY", "APPROACH",  "RUNNING",
    "HOLD",        "STOPPING", "STOPPED", "ESTOP", "DISARMING",
};
static_assert(sizeof state_names / sizeof *state_names == LADDER_STATES,
              "a name per state");
static_assert(LADDER_DISARMING == LADDER_STATES - 1, "the last state is the last name");

static const char *const reason_names[] = {
    "NONE",           "STARTING",        "JOINTS_MISSING", "JOINTS_STALE",
    "CAMERA_MISSING", "CAMERA_STALE",    "NO_CHUNK",       "CHUNK_TOO_OLD",
    "NOT_FINITE",     "FOLLOWING_ERROR", "POLICY_FAILED",  "TICK_GAP",
    "OPERATOR",       "ESTOP",           "OUT_OF_LIMITS",  "INTERNAL",
};
static_assert(sizeof reason_names / sizeof *reason_names == LADDER_REASONS,
              "a name per reason");
static_assert(REASON_INTERNAL == LADDER_REASONS - 1, "the last reason is the last name");

const char *ladder_state_name(enum ladder_state s)
{
    return (unsigned)s < LADDER_STATES ? state_names[s] : "?";
}

const char *ladder_reason_name(enum ladder_reason r)
{
    return (unsigned)r < LADDER_REASONS ? reason_names[r] : "?";
}
