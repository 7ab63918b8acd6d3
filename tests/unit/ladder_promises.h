// What is promised of the ladder, one predicate each, and the conditions they speak of. Nothing here
// copies the table: each promise is a sentence of the decisions. One test includes this once.
#ifndef ACTD_TESTS_LADDER_PROMISES_H
#define ACTD_TESTS_LADDER_PROMISES_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/ladder.h"

// ---- conditions ------------------------------------------------------------------------------

#define CONDITION(name)        \
    {                          \
        LADDER_C_##name, #name \
    }
static const struct {
    uint64_t bit;
    const char *name;
} condition[] = {
    CONDITION(STARTED),           CONDITION(STREAMS_FRESH), CONDITION(HOLD_EXPIRED),
    CONDITION(AT_REST),           CONDITION(AT_TARGET),     CONDITION(APPROACHED),
    CONDITION(APPROACH_LONG),     CONDITION(LATCHED),       CONDITION(JOINTS_MISSING),
    CONDITION(JOINTS_LATE),       CONDITION(JOINTS_STALE),  CONDITION(JOINTS_INVALID),
    CONDITION(JOINTS_NOT_FINITE), CONDITION(JOINTS_JUMP),   CONDITION(JOINTS_CLOCK),
    CONDITION(OUT_OF_LIMITS),     CONDITION(FAR_OUT),       CONDITION(FOLLOWING),
    CONDITION(FOLLOWING_LONG),    CONDITION(JOINTS_SLOW),   CONDITION(CAMERA_MISSING),
    CONDITION(CAMERA_LATE),       CONDITION(CAMERA_STALE),  CONDITION(CAMERA_CORRUPT),
    CONDITION(CAMERA_INVALID),    CONDITION(CAMERA_STUCK),  CONDITION(CAMERA_FROZEN),
    CONDITION(CAMERA_SAME),       CONDITION(NO_CHUNK),      CONDITION(CHUNK_TOO_OLD),
    CONDITION(POLICY_SLOW),       CONDITION(CAMERA_SKEW),   CONDITION(NOT_FINITE),
    CONDITION(NOT_FINITE_AGAIN),  CONDITION(OUT_OF_RANGE),  CONDITION(OUT_OF_RANGE_AGAIN),
    CONDITION(POLICY_FAILED),     CONDITION(CAMERA_SLOW),   CONDITION(GATE),
    CONDITION(STALLED),           CONDITION(TICK_GAP),      CONDITION(WAKEUP_BUDGET),
    CONDITION(TICK_BUDGET),       CONDITION(CHUNK_BUDGET),  CONDITION(SENSOR_BUDGET),
};
#define CONDITIONS ((int)(sizeof condition / sizeof *condition))
static const uint64_t request[] = {
    LADDER_C_REQ_ARM,   LADDER_C_REQ_DISARM, LADDER_C_REQ_STOP,
    LADDER_C_REQ_ESTOP, LADDER_C_REQ_RESET,  LADDER_C_REQ_HOME,
};
static const char *const request_name[] = {"ARM",   "DISARM", "STOP",
                                           "ESTOP", "RESET",  "HOME"};
#define REQUESTS 6

#define HAS(name) ((c & LADDER_C_##name) != 0)

// What is there when all is well, in the places of a run: the rest is added to these.
static const uint64_t ground[] = {
    0,
    LADDER_C_STARTED,
    LADDER_C_STARTED | LADDER_C_STREAMS_FRESH,
    LADDER_C_STARTED | LADDER_C_STREAMS_FRESH | LADDER_C_AT_REST,
    LADDER_C_STARTED | LADDER_C_STREAMS_FRESH | LADDER_C_APPROACHED,
    LADDER_C_STARTED | LADDER_C_STREAMS_FRESH | LADDER_C_AT_TARGET,
};
#define GROUNDS ((int)(sizeof ground / sizeof *ground))

// The words of ladder.h: what is wrong with actd or with what it knows of the arm, and what only
// matters while the policy drives.
static const uint64_t of_self_or_arm =
    LADDER_C_GATE | LADDER_C_STALLED | LADDER_C_TICK_GAP | LADDER_C_WAKEUP_BUDGET |
    LADDER_C_TICK_BUDGET | LADDER_C_SENSOR_BUDGET | LADDER_C_JOINTS_NOT_FINITE |
    LADDER_C_JOINTS_JUMP | LADDER_C_JOINTS_CLOCK | LADDER_C_JOINTS_INVALID |
    LADDER_C_JOINTS_MISSING | LADDER_C_JOINTS_STALE | LADDER_C_FAR_OUT |
    LADDER_C_FOLLOWING_LONG;
static const uint64_t of_the_drive =
    LADDER_C_NOT_FINITE_AGAIN | LADDER_C_OUT_OF_RANGE_AGAIN | LADDER_C_POLICY_FAILED |
    LADDER_C_CHUNK_BUDGET | LADDER_C_CAMERA_CORRUPT | LADDER_C_CAMERA_INVALID |
    LADDER_C_CAMERA_MISSING | LADDER_C_CAMERA_FROZEN | LADDER_C_CAMERA_STALE;
static const uint64_t all_requests = LADDER_C_REQ_ARM | LADDER_C_REQ_DISARM |
                                     LADDER_C_REQ_STOP | LADDER_C_REQ_ESTOP |
                                     LADDER_C_REQ_RESET | LADDER_C_REQ_HOME;

static uint64_t of_severity(enum ladder_severity s)
{
    uint64_t bits = 0;

    for (int i = 0; i < ladder_faults; i++)
        if (ladder_fault[i].severity == s)
            bits |= ladder_fault[i].condition;
    return bits & ~all_requests;
}
static uint64_t stops, holds, degrades, warns; // once of the run

static bool is(enum ladder_state s, unsigned set)
{
    return (set >> s) & 1;
}
#define ST(name) (1u << LADDER_##name)
static const unsigned policy_drives = ST(APPROACH) | ST(RUNNING) | ST(HOLD);
static const unsigned in_motion =
    ST(APPROACH) | ST(RUNNING) | ST(HOLD) | ST(HOMING) | ST(DISARMING);
static const unsigned latched = ST(STOPPED) | ST(ESTOP);

// Which faults stop a motion in this state.
static uint64_t stopping_in(enum ladder_state s)
{
    return is(s, policy_drives) ? of_self_or_arm | of_the_drive : of_self_or_arm;
}

// ---- the promises ----------------------------------------------------------------------------

// Each says what is broken, or NULL.
typedef const char *promise(enum ladder_state from, uint64_t c, struct ladder_step to);

static const char *only_along_the_drawing(enum ladder_state from, uint64_t c,
                                          struct ladder_step to)
{
    static const unsigned edge[LADDER_STATES] = {
        [LADDER_INIT] = ST(WAITING),
        [LADDER_WAITING] = ST(READY) | ST(STOPPING),
        [LADDER_READY] = ST(WAITING) | ST(APPROACH) | ST(HOMING) | ST(STOPPING),
        [LADDER_APPROACH] = ST(RUNNING) | ST(HOLD) | ST(STOPPING) | ST(DISARMING),
        [LADDER_RUNNING] = ST(HOLD) | ST(STOPPING) | ST(DISARMING),
        [LADDER_HOLD] = ST(RUNNING) | ST(APPROACH) | ST(STOPPING) | ST(DISARMING),
        [LADDER_STOPPING] = ST(STOPPED),
        [LADDER_STOPPED] = ST(WAITING),
        [LADDER_ESTOP] = ST(WAITING),
        [LADDER_DISARMING] = ST(READY) | ST(STOPPING),
        [LADDER_HOMING] = ST(DISARMING) | ST(STOPPING),
    };

    (void)c;
    return to.state == from || to.state == LADDER_ESTOP || is(to.state, edge[from])
               ? NULL
               : "a step that the drawing does not have";
}

static const char *motion_begins_only_when_asked(enum ladder_state from, uint64_t c,
                                                 struct ladder_step to)
{
    bool one = HAS(REQ_ARM) != HAS(REQ_HOME) && !HAS(REQ_DISARM);

    if (is(from, in_motion) || !is(to.state, in_motion))
        return NULL;
    if (from != LADDER_READY)
        return "motion out of a state that is not READY";
    if (!one || (to.state == LADDER_APPROACH) != HAS(REQ_ARM) ||
        (to.state == LADDER_HOMING) != HAS(REQ_HOME))
        return "motion that was not asked for, or not for that alone";
    if (!HAS(STARTED) || !HAS(STREAMS_FRESH))
        return "motion before every stream is fresh";
    if (HAS(LATCHED) || HAS(JOINTS_LATE) || (c & (stops | degrades)))
        return "motion with a fault";
    return NULL;
}

static const char *what_is_asked_and_fit_begins(enum ladder_state from, uint64_t c,
                                                struct ladder_step to)
{
    uint64_t wrong = stops | degrades | LADDER_C_LATCHED | LADDER_C_JOINTS_LATE;

    if (from != LADDER_READY || !HAS(STARTED) || !HAS(STREAMS_FRESH) || (c & wrong))
        return NULL;
    if ((c & all_requests) == LADDER_C_REQ_ARM && to.state != LADDER_APPROACH)
        return "it does not arm";
    if ((c & all_requests) == LADDER_C_REQ_HOME && to.state != LADDER_HOMING)
        return "it does not home";
    return NULL;
}

static const char *a_latch_opens_only_by_reset(enum ladder_state from, uint64_t c,
                                               struct ladder_step to)
{
    const uint64_t missing = LADDER_C_JOINTS_MISSING | LADDER_C_CAMERA_MISSING;
    bool may = HAS(REQ_RESET) && HAS(AT_REST) && !HAS(REQ_STOP) && !HAS(REQ_ESTOP) &&
               !HAS(LATCHED) && !(c & stops & ~missing);

    if (!is(from, latched))
        return NULL;
    if (!may && to.state != from && to.state != LADDER_ESTOP)
        return "a latch opened";
    if (may && to.state != LADDER_WAITING)
        return "a reset that is due is refused";
    return NULL;
}

static const char *estop_always_wins(enum ladder_state from, uint64_t c,
                                     struct ladder_step to)
{
    if (HAS(REQ_ESTOP) && to.state != LADDER_ESTOP)
        return "an emergency stop is ignored";
    if (!HAS(REQ_ESTOP) && to.state == LADDER_ESTOP && from != LADDER_ESTOP)
        return "an emergency stop that nobody asked for";
    if (from != LADDER_ESTOP && to.state == LADDER_ESTOP && to.reason != REASON_ESTOP)
        return "an emergency stop with another reason";
    return NULL;
}

static const char *a_stop_is_obeyed(enum ladder_state from, uint64_t c,
                                    struct ladder_step to)
{
    if (!HAS(REQ_STOP) || is(from, ST(INIT)))
        return NULL;
    return is(to.state, ST(STOPPING) | ST(STOPPED) | ST(ESTOP)) ? NULL
                                                                : "a stop is ignored";
}

static const char *a_fault_stops_the_arm(enum ladder_state from, uint64_t c,
                                         struct ladder_step to)
{
    if (!is(from, in_motion))
        return NULL;
    if ((c & stopping_in(from)) && !is(to.state, ST(STOPPING) | ST(ESTOP)))
        return "motion goes on with a stopping fault";
    if (to.state != LADDER_STOPPING || (c & stopping_in(from)) || HAS(REQ_STOP))
        return NULL;
    return from == LADDER_HOLD && HAS(HOLD_EXPIRED) ? NULL : "a stop without a cause";
}

static const char *hold_expires(enum ladder_state from, uint64_t c, struct ladder_step to)
{
    return from != LADDER_HOLD || !HAS(HOLD_EXPIRED) ||
                   is(to.state, ST(STOPPING) | ST(ESTOP))
               ? NULL
               : "a HOLD outlives its time";
}

static const char *stopping_ends_at_rest(enum ladder_state from, uint64_t c,
                                         struct ladder_step to)
{
    if (from != LADDER_STOPPING || HAS(REQ_ESTOP))
        return NULL;
    return to.state == (HAS(AT_REST) ? LADDER_STOPPED : LADDER_STOPPING)
               ? NULL
               : "STOPPING must end at rest, and only there";
}

static const char *what_holds_holds(enum ladder_state from, uint64_t c,
                                    struct ladder_step to)
{
    const uint64_t rows = LADDER_C_NO_CHUNK | LADDER_C_CHUNK_TOO_OLD;
    const uint64_t other = LADDER_C_JOINTS_LATE | LADDER_C_FOLLOWING |
                           LADDER_C_NOT_FINITE | LADDER_C_OUT_OF_RANGE;

    if (is(from, policy_drives) && to.state == LADDER_RUNNING && (c & (other | rows)))
        return "RUNNING with a cause to hold";
    if (is(from, policy_drives) && to.state == LADDER_APPROACH && (c & other))
        return "APPROACH with a cause to hold";
    if (to.state == LADDER_HOLD && from != LADDER_HOLD && !(c & holds))
        return "a HOLD without a cause";
    if (to.state == LADDER_HOLD && from == LADDER_HOLD && !(c & (other | rows)))
        return "a HOLD goes on without a cause";
    if (from == LADDER_HOMING && to.state == LADDER_HOMING &&
        (HAS(JOINTS_LATE) || HAS(FOLLOWING)))
        return "HOMING with a cause to hold";
    return NULL;
}

static const char *full_speed_is_earned(enum ladder_state from, uint64_t c,
                                        struct ladder_step to)
{
    if (from == LADDER_HOLD && to.state == LADDER_APPROACH && HAS(APPROACHED))
        return "back to APPROACH although it has arrived";
    if (to.state != LADDER_RUNNING || from == LADDER_RUNNING)
        return NULL;
    if (from == LADDER_APPROACH)
        return HAS(AT_TARGET) ? NULL : "RUNNING before the approach has arrived";
    return HAS(APPROACHED) ? NULL : "RUNNING out of a HOLD before any approach";
}

static const char *an_approach_ends(enum ladder_state from, uint64_t c,
                                    struct ladder_step to)
{
    return is(from, ST(APPROACH) | ST(HOMING)) && HAS(APPROACH_LONG) &&
                   (to.state == from || to.state == LADDER_RUNNING)
               ? "it goes on for ever"
               : NULL;
}

// What an approach that is given up is blamed on: the rows that never came, else the way.
static const char *the_end_of_an_approach_is_told(enum ladder_state from, uint64_t c,
                                                  struct ladder_step to)
{
    bool given_up = is(from, ST(APPROACH) | ST(HOMING)) && HAS(APPROACH_LONG) &&
                    to.state == LADDER_DISARMING && !HAS(REQ_DISARM);

    if (from == LADDER_HOMING && to.state == LADDER_DISARMING && !HAS(REQ_DISARM) &&
        !HAS(APPROACH_LONG) && (HAS(JOINTS_LATE) || HAS(FOLLOWING)))
        return to.reason == ladder_cause(c) ? NULL : "the end of HOMING is not told";
    if (!given_up)
        return NULL;
    if (from == LADDER_APPROACH && HAS(NO_CHUNK))
        return to.reason == ladder_cause(c) ? NULL : "the missing rows are not told";
    return to.reason == REASON_UNREACHABLE ? NULL : "that it never arrived is not told";
}

static const char *arrival_leads_on(enum ladder_state from, uint64_t c,
                                    struct ladder_step to)
{
    bool event = (c & (stops | holds | all_requests)) || HAS(APPROACH_LONG);

    if (event || !HAS(AT_TARGET) || !is(from, ST(APPROACH) | ST(HOMING)))
        return NULL;
    return to.state == (from == LADDER_APPROACH ? LADDER_RUNNING : LADDER_DISARMING) &&
                   to.reason == REASON_NONE
               ? NULL
               : "it does not go on where it arrived";
}

static const char *disarm_is_obeyed(enum ladder_state from, uint64_t c,
                                    struct ladder_step to)
{
    bool at_once = is(from, policy_drives | ST(HOMING));

    return at_once && HAS(REQ_DISARM) &&
                   !is(to.state, ST(DISARMING) | ST(STOPPING) | ST(ESTOP))
               ? "a disarm is ignored"
               : NULL;
}

static const char *disarming_ends_at_rest(enum ladder_state from, uint64_t c,
                                          struct ladder_step to)
{
    if (from != LADDER_DISARMING || is(to.state, ST(STOPPING) | ST(ESTOP)))
        return NULL;
    return to.state == (HAS(AT_REST) ? LADDER_READY : LADDER_DISARMING)
               ? NULL
               : "DISARMING must end at rest, and only there";
}

static const char *ready_means_fit(enum ladder_state from, uint64_t c,
                                   struct ladder_step to)
{
    bool fit = HAS(STREAMS_FRESH) && !HAS(LATCHED) && !HAS(JOINTS_LATE) &&
               !(c & (stops | degrades));

    if (is(from, ST(READY) | ST(WAITING)) && to.state == LADDER_READY && !fit)
        return "READY with something wrong";
    if (from == LADDER_WAITING && to.state == LADDER_READY && !HAS(STARTED))
        return "READY before it has started";
    if (from == LADDER_WAITING && to.state == LADDER_WAITING && fit && HAS(STARTED))
        return "WAITING for nothing";
    if (from == LADDER_READY && to.state == LADDER_WAITING && fit)
        return "READY is left for nothing";
    if (from == LADDER_INIT && to.state == LADDER_WAITING && !HAS(STARTED))
        return "out of INIT before it has started";
    return NULL;
}

static const char *nothing_wrong_changes_nothing(enum ladder_state from, uint64_t c,
                                                 struct ladder_step to)
{
    const uint64_t rows = LADDER_C_NO_CHUNK | LADDER_C_CHUNK_TOO_OLD;
    bool event = (c & (stops | holds | all_requests)) || HAS(APPROACH_LONG);

    if (from == LADDER_RUNNING && !event && to.state != LADDER_RUNNING)
        return "RUNNING is left without a cause";
    if (from == LADDER_APPROACH && !event && !HAS(AT_TARGET) && to.state != from)
        return "APPROACH is left without a cause";
    if (from == LADDER_HOMING && !event && !HAS(AT_TARGET) && to.state != from)
        return "HOMING is left without a cause";
    if (from == LADDER_APPROACH && !HAS(APPROACH_LONG) && to.state != from &&
        !(c & (stops | (holds & ~rows) | all_requests)) && (c & rows))
        return "an APPROACH without rows does not wait";
    return to.state == from && to.reason != REASON_NONE ? "a reason without a step"
                                                        : NULL;
}

static const char *what_is_only_told_changes_nothing(enum ladder_state from, uint64_t c,
                                                     struct ladder_step to)
{
    struct ladder_step without, with;

    if ((c & warns) == 0)
        return NULL;
    without = ladder_next(from, c & ~warns);
    with = ladder_next(from, c | warns);
    return without.state == to.state && without.reason == to.reason &&
                   with.state == to.state && with.reason == to.reason
               ? NULL
               : "what is only told changes the step";
}

static int rank_of(enum ladder_reason r, uint64_t c)
{
    for (int i = 0; i < ladder_faults; i++)
        if (ladder_fault[i].reason == r && (c & ladder_fault[i].condition))
            return i;
    return -1;
}

// The reason of a step is one that is there, and none that matters ranks above it.
static const char *the_more_severe_is_told(enum ladder_state from, uint64_t c,
                                           struct ladder_step to)
{
    uint64_t above = 0, matters = is(from, in_motion) ? stopping_in(from) : 0;
    int rank = rank_of(to.reason, c);

    if (to.state == from || !is(to.state, ST(STOPPING) | ST(HOLD)))
        return NULL;
    if (to.reason == REASON_NONE || to.reason == REASON_STARTING)
        return (c & (stops | holds | degrades)) ? "a stop without its reason" : NULL;
    if (rank < 0)
        return "a reason that is not there";
    for (int i = 0; i < rank; i++)
        above |= ladder_fault[i].condition;
    return c & above & matters ? "a more severe reason is not told" : NULL;
}

static const char *the_cause_is_honest(enum ladder_state from, uint64_t c,
                                       struct ladder_step to)
{
    enum ladder_reason r = ladder_cause(c);
    uint64_t wrong = stops | holds | degrades | LADDER_C_REQ_ESTOP | LADDER_C_REQ_STOP;
    int rank = rank_of(r, c);

    (void)from, (void)to;
    if (!(c & wrong))
        return r == (HAS(STARTED) ? REASON_NONE : REASON_STARTING)
                   ? NULL
                   : "a cause that is not there";
    if (rank < 0 || ladder_fault[rank].severity == LADDER_WARNS)
        return "the cause is not one";
    for (int i = 0; i < rank; i++)
        if ((c & ladder_fault[i].condition) && ladder_fault[i].severity != LADDER_WARNS)
            return "the cause is not the gravest";
    return NULL;
}

#define PROMISE(name) \
    {                 \
        name, #name   \
    }
static const struct {
    promise *holds;
    const char *name;
} promises[] = {
    PROMISE(only_along_the_drawing),
    PROMISE(motion_begins_only_when_asked),
    PROMISE(what_is_asked_and_fit_begins),
    PROMISE(a_latch_opens_only_by_reset),
    PROMISE(estop_always_wins),
    PROMISE(a_stop_is_obeyed),
    PROMISE(a_fault_stops_the_arm),
    PROMISE(hold_expires),
    PROMISE(stopping_ends_at_rest),
    PROMISE(what_holds_holds),
    PROMISE(full_speed_is_earned),
    PROMISE(an_approach_ends),
    PROMISE(the_end_of_an_approach_is_told),
    PROMISE(arrival_leads_on),
    PROMISE(disarm_is_obeyed),
    PROMISE(disarming_ends_at_rest),
    PROMISE(ready_means_fit),
    PROMISE(nothing_wrong_changes_nothing),
    PROMISE(what_is_only_told_changes_nothing),
    PROMISE(the_more_severe_is_told),
    PROMISE(the_cause_is_honest),
};
#define PROMISES ((int)(sizeof promises / sizeof *promises))

#endif
