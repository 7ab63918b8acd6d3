// ladder: the table against a specification written another way, over all states and all pairs
// of conditions, and walks through everything it can reach.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/ladder.h"

static const uint64_t all_conditions[] = {
    LADDER_C_STARTED,           LADDER_C_STREAMS_FRESH, LADDER_C_HOLD_EXPIRED,
    LADDER_C_AT_REST,           LADDER_C_AT_TARGET,     LADDER_C_APPROACHED,
    LADDER_C_APPROACH_LONG,     LADDER_C_LATCHED,       LADDER_C_JOINTS_MISSING,
    LADDER_C_JOINTS_LATE,       LADDER_C_JOINTS_STALE,  LADDER_C_JOINTS_INVALID,
    LADDER_C_JOINTS_NOT_FINITE, LADDER_C_JOINTS_JUMP,   LADDER_C_JOINTS_CLOCK,
    LADDER_C_OUT_OF_LIMITS,     LADDER_C_FAR_OUT,       LADDER_C_FOLLOWING,
    LADDER_C_FOLLOWING_LONG,    LADDER_C_JOINTS_SLOW,   LADDER_C_CAMERA_MISSING,
    LADDER_C_CAMERA_LATE,       LADDER_C_CAMERA_STALE,  LADDER_C_CAMERA_CORRUPT,
    LADDER_C_CAMERA_INVALID,    LADDER_C_CAMERA_STUCK,  LADDER_C_CAMERA_FROZEN,
    LADDER_C_CAMERA_SAME,       LADDER_C_NO_CHUNK,      LADDER_C_CHUNK_TOO_OLD,
    LADDER_C_POLICY_SLOW,       LADDER_C_CAMERA_SKEW,   LADDER_C_NOT_FINITE,
    LADDER_C_NOT_FINITE_AGAIN,  LADDER_C_OUT_OF_RANGE,  LADDER_C_OUT_OF_RANGE_AGAIN,
    LADDER_C_POLICY_FAILED,     LADDER_C_CAMERA_SLOW,   LADDER_C_GATE,
    LADDER_C_STALLED,           LADDER_C_TICK_GAP,      LADDER_C_WAKEUP_BUDGET,
    LADDER_C_TICK_BUDGET,       LADDER_C_CHUNK_BUDGET,  LADDER_C_SENSOR_BUDGET,
    LADDER_C_REQ_ARM,           LADDER_C_REQ_DISARM,    LADDER_C_REQ_STOP,
    LADDER_C_REQ_ESTOP,         LADDER_C_REQ_RESET,     LADDER_C_REQ_HOME,
};
#define CONDITIONS ((int)(sizeof all_conditions / sizeof *all_conditions))

#define HAS(name) ((c & LADDER_C_##name) != 0)

// ---- the specification, as a person would say it ----------------------------------------------

// Faults of this process, then of what it knows of the arm, in the order in which they are told.
static enum ladder_reason stops_any_motion(uint64_t c)
{
    return HAS(GATE)                ? REASON_INTERNAL
           : HAS(STALLED)           ? REASON_LOOP_STALLED
           : HAS(TICK_GAP)          ? REASON_TICK_GAP
           : HAS(JOINTS_NOT_FINITE) ? REASON_JOINTS_NOT_FINITE
           : HAS(JOINTS_JUMP)       ? REASON_JOINTS_JUMP
           : HAS(JOINTS_CLOCK)      ? REASON_JOINTS_CLOCK
           : HAS(JOINTS_INVALID)    ? REASON_JOINTS_INVALID
           : HAS(JOINTS_MISSING)    ? REASON_JOINTS_MISSING
           : HAS(JOINTS_STALE)      ? REASON_JOINTS_STALE
           : HAS(FAR_OUT)           ? REASON_OUT_OF_LIMITS
           : HAS(FOLLOWING_LONG)    ? REASON_FOLLOWING_ERROR
           : HAS(WAKEUP_BUDGET)     ? REASON_LATE_WAKEUPS
           : HAS(TICK_BUDGET)       ? REASON_SLOW_TICKS
           : HAS(SENSOR_BUDGET)     ? REASON_OLD_SENSORS
                                    : REASON_NONE;
}

// Faults of what drives the arm.
static enum ladder_reason stops_driving(uint64_t c)
{
    return HAS(NOT_FINITE_AGAIN)     ? REASON_NOT_FINITE
           : HAS(OUT_OF_RANGE_AGAIN) ? REASON_POLICY_OUT_OF_RANGE
           : HAS(POLICY_FAILED)      ? REASON_POLICY_FAILED
           : HAS(CHUNK_BUDGET)       ? REASON_LATE_CHUNKS
           : HAS(CAMERA_CORRUPT)     ? REASON_CAMERA_CORRUPT
           : HAS(CAMERA_INVALID)     ? REASON_CAMERA_INVALID
           : HAS(CAMERA_MISSING)     ? REASON_CAMERA_MISSING
           : HAS(CAMERA_FROZEN)      ? REASON_CAMERA_FROZEN
           : HAS(CAMERA_STALE)       ? REASON_CAMERA_STALE
                                     : REASON_NONE;
}

// What may pass by itself, and what only degrades.
static enum ladder_reason passes(uint64_t c)
{
    return HAS(JOINTS_LATE)     ? REASON_JOINTS_STALE
           : HAS(FOLLOWING)     ? REASON_FOLLOWING_ERROR
           : HAS(NOT_FINITE)    ? REASON_NOT_FINITE
           : HAS(OUT_OF_RANGE)  ? REASON_POLICY_OUT_OF_RANGE
           : HAS(OUT_OF_LIMITS) ? REASON_OUT_OF_LIMITS
           : HAS(CAMERA_STUCK)  ? REASON_CAMERA_FROZEN
           : HAS(CAMERA_LATE)   ? REASON_CAMERA_STALE
           : HAS(POLICY_SLOW)   ? REASON_POLICY_SLOW
           : HAS(CAMERA_SKEW)   ? REASON_CAMERA_SKEW
           : HAS(CHUNK_TOO_OLD) ? REASON_CHUNK_TOO_OLD
           : HAS(NO_CHUNK)      ? REASON_NO_CHUNK
                                : REASON_NONE;
}

static enum ladder_reason cause_of(uint64_t c)
{
    enum ladder_reason r = HAS(REQ_ESTOP) ? REASON_ESTOP : stops_any_motion(c);

    r = r ? r : stops_driving(c);
    r = r ? r : HAS(REQ_STOP) ? REASON_OPERATOR : passes(c);
    return r || HAS(STARTED) ? r : REASON_STARTING;
}

static struct ladder_step go(enum ladder_state s, enum ladder_reason r)
{
    return (struct ladder_step){s, r};
}

static bool unfit(uint64_t c)
{
    return stops_any_motion(c) || stops_driving(c) || HAS(JOINTS_LATE) ||
           HAS(OUT_OF_LIMITS) || HAS(CAMERA_LATE) || HAS(CAMERA_STUCK) || HAS(LATCHED);
}

// What drives an arm does not matter to one that is being disarmed or goes home.
static enum ladder_reason stops(enum ladder_state s, uint64_t c)
{
    bool driven = s != LADDER_DISARMING && s != LADDER_HOMING;
    enum ladder_reason r = stops_any_motion(c);

    if (r == REASON_NONE && driven)
        r = stops_driving(c);
    return r == REASON_NONE && HAS(REQ_STOP) ? REASON_OPERATOR : r;
}

static struct ladder_step spec_idle(enum ladder_state s, uint64_t c)
{
    bool arm = HAS(REQ_ARM), home = HAS(REQ_HOME);

    if (s == LADDER_INIT)
        return HAS(STARTED) ? go(LADDER_WAITING, cause_of(c)) : go(s, REASON_NONE);
    if (HAS(REQ_STOP))
        return go(LADDER_STOPPING, REASON_OPERATOR);
    if (HAS(GATE))
        return go(LADDER_STOPPING, REASON_INTERNAL);
    if (s == LADDER_WAITING)
        return HAS(STARTED) && HAS(STREAMS_FRESH) && !unfit(c)
                   ? go(LADDER_READY, REASON_NONE)
                   : go(s, REASON_NONE);
    if (unfit(c) || !HAS(STREAMS_FRESH))
        return go(LADDER_WAITING, cause_of(c));
    if (arm != home && HAS(STARTED) && !HAS(REQ_DISARM))
        return go(arm ? LADDER_APPROACH : LADDER_HOMING, REASON_NONE);
    return go(s, REASON_NONE);
}

static struct ladder_step spec_latched(enum ladder_state s, uint64_t c)
{
    uint64_t waits = LADDER_C_JOINTS_MISSING | LADDER_C_CAMERA_MISSING;
    uint64_t here = c & ~waits; // WAITING waits for a stream that is missing
    bool there = stops_any_motion(here) || stops_driving(here) || HAS(LATCHED) ||
                 HAS(REQ_STOP) || HAS(REQ_ESTOP);

    return HAS(REQ_RESET) && HAS(AT_REST) && !there ? go(LADDER_WAITING, REASON_OPERATOR)
                                                    : go(s, REASON_NONE);
}

static struct ladder_step spec_hold(uint64_t c)
{
    if (HAS(JOINTS_LATE) || HAS(NOT_FINITE) || HAS(FOLLOWING) || HAS(OUT_OF_RANGE))
        return go(LADDER_HOLD, REASON_NONE);
    if (!HAS(APPROACHED))
        return go(LADDER_APPROACH, REASON_NONE);
    if (HAS(NO_CHUNK) || HAS(CHUNK_TOO_OLD))
        return go(LADDER_HOLD, REASON_NONE);
    return go(LADDER_RUNNING, REASON_NONE);
}

static struct ladder_step spec_homing(uint64_t c)
{
    if (HAS(APPROACH_LONG))
        return go(LADDER_DISARMING, REASON_UNREACHABLE);
    if (HAS(JOINTS_LATE) || HAS(FOLLOWING))
        return go(LADDER_DISARMING, cause_of(c));
    return HAS(AT_TARGET) ? go(LADDER_DISARMING, REASON_NONE)
                          : go(LADDER_HOMING, REASON_NONE);
}

static struct ladder_step spec_driven(enum ladder_state s, uint64_t c)
{
    bool no_rows = HAS(NO_CHUNK) || HAS(CHUNK_TOO_OLD);

    if (HAS(JOINTS_LATE) || HAS(FOLLOWING) || HAS(NOT_FINITE) || HAS(OUT_OF_RANGE))
        return go(LADDER_HOLD, cause_of(c));
    if (s == LADDER_RUNNING)
        return no_rows ? go(LADDER_HOLD, cause_of(c)) : go(s, REASON_NONE);
    if (HAS(APPROACH_LONG))
        return go(LADDER_DISARMING, HAS(NO_CHUNK) ? cause_of(c) : REASON_UNREACHABLE);
    return HAS(AT_TARGET) && !no_rows ? go(LADDER_RUNNING, REASON_NONE)
                                      : go(s, REASON_NONE);
}

static struct ladder_step spec(enum ladder_state s, uint64_t c)
{
    enum ladder_reason why = stops(s, c);

    if (HAS(REQ_ESTOP) && s != LADDER_ESTOP)
        return go(LADDER_ESTOP, REASON_ESTOP);
    if (s == LADDER_INIT || s == LADDER_WAITING || s == LADDER_READY)
        return spec_idle(s, c);
    if (s == LADDER_STOPPED || s == LADDER_ESTOP)
        return spec_latched(s, c);
    if (s == LADDER_STOPPING)
        return HAS(AT_REST) ? go(LADDER_STOPPED, REASON_NONE) : go(s, REASON_NONE);
    if (why != REASON_NONE)
        return go(LADDER_STOPPING, why);
    if (s == LADDER_DISARMING)
        return HAS(AT_REST) ? go(LADDER_READY, REASON_NONE) : go(s, REASON_NONE);
    if (s == LADDER_HOLD && HAS(HOLD_EXPIRED))
        return go(LADDER_STOPPING, cause_of(c));
    if (HAS(REQ_DISARM))
        return go(LADDER_DISARMING, REASON_OPERATOR);
    return s == LADDER_HOLD     ? spec_hold(c)
           : s == LADDER_HOMING ? spec_homing(c)
                                : spec_driven(s, c);
}

static void same(enum ladder_state s, uint64_t c)
{
    struct ladder_step got = ladder_next(s, c), want = spec(s, c);

    if (got.state != want.state || got.reason != want.reason)
        fail_msg("%s with %#llx: %s (%s) instead of %s (%s)", ladder_state_name(s),
                 (unsigned long long)c, ladder_state_name(got.state),
                 ladder_reason_name(got.reason), ladder_state_name(want.state),
                 ladder_reason_name(want.reason));
}

// What is normal in each state, so that a pair of conditions meets a row that needs three.
static const uint64_t backgrounds[] = {
    0,
    LADDER_C_STARTED,
    LADDER_C_STARTED | LADDER_C_STREAMS_FRESH,
    LADDER_C_STARTED | LADDER_C_STREAMS_FRESH | LADDER_C_AT_REST,
    LADDER_C_STARTED | LADDER_C_STREAMS_FRESH | LADDER_C_APPROACHED,
    LADDER_C_STARTED | LADDER_C_STREAMS_FRESH | LADDER_C_REQ_ARM,
    LADDER_C_STARTED | LADDER_C_STREAMS_FRESH | LADDER_C_REQ_HOME,
    LADDER_C_STARTED | LADDER_C_AT_REST | LADDER_C_REQ_RESET,
    LADDER_C_STARTED | LADDER_C_APPROACH_LONG | LADDER_C_AT_TARGET,
};

static void all_pairs(void **state)
{
    (void)state;
    long n = 0;

    for (int s = LADDER_INIT; s < LADDER_STATES; s++)
        for (size_t b = 0; b < sizeof backgrounds / sizeof *backgrounds; b++)
            for (int i = 0; i < CONDITIONS; i++)
                for (int j = i; j < CONDITIONS; j++, n++)
                    same((enum ladder_state)s,
                         backgrounds[b] ^ (all_conditions[i] | all_conditions[j]));
    printf("%ld cases\n", n);
}

static void random_sets(void **state)
{
    (void)state;
    uint64_t seed = 1;

    for (int n = 0; n < 3000000; n++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t c = seed ^ (seed >> 29);
        for (int i = 0; i < n % 6;
             i++) { // few bits more often: rows far down are met too
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            c &= seed ^ (seed >> 29);
        }
        same((enum ladder_state)(LADDER_INIT + n % (LADDER_STATES - 1)), c);
    }
}

static void causes(void **state)
{
    (void)state;
    for (int i = 0; i < CONDITIONS; i++)
        for (int j = 0; j < CONDITIONS; j++) {
            uint64_t c = all_conditions[i] | all_conditions[j];

            assert_int_equal(ladder_cause(c), cause_of(c));
            assert_int_equal(ladder_cause(c | LADDER_C_STARTED),
                             cause_of(c | LADDER_C_STARTED));
        }
}

// ---- invariants over everything reachable -----------------------------------------------------

// States reachable from `from` in any number of ticks with pairs of conditions, none of
// `never`, and never entering `closed`.
static uint32_t reach(uint32_t from, uint64_t never, uint32_t closed)
{
    uint32_t seen = from, before = 0;

    while (seen != before) {
        before = seen;
        for (int s = LADDER_INIT; s < LADDER_STATES; s++) {
            if (!((before >> s) & 1))
                continue;
            for (size_t b = 0; b < sizeof backgrounds / sizeof *backgrounds; b++)
                for (int i = 0; i < CONDITIONS; i++)
                    for (int j = 0; j < CONDITIONS; j++) {
                        uint64_t c =
                            backgrounds[b] ^ (all_conditions[i] | all_conditions[j]);

                        seen |= 1u << ladder_next((enum ladder_state)s, c & ~never).state;
                    }
        }
        seen &= ~closed;
    }
    return seen;
}

#define BIT(s) (1u << LADDER_##s)
#define DRIVEN (BIT(APPROACH) | BIT(RUNNING) | BIT(HOLD))

static void invariants(void **state)
{
    (void)state;
    const uint32_t idle =
        BIT(INIT) | BIT(WAITING) | BIT(READY) | BIT(STOPPED) | BIT(ESTOP);

    // Everything is reachable, given everything.
    assert_int_equal(reach(BIT(INIT), 0, 0), (1u << LADDER_STATES) - 2);
    // Nothing but a request to arm or to go home ever moves an arm that is idle.
    assert_int_equal(reach(idle, LADDER_C_REQ_ARM, 0) & DRIVEN, 0);
    assert_int_equal(reach(idle, LADDER_C_REQ_ARM | LADDER_C_REQ_HOME, 0) &
                         (DRIVEN | BIT(DISARMING) | BIT(HOMING)),
                     0);
    // Whoever goes home is not driven by a policy before it has been idle again.
    assert_int_equal(reach(BIT(HOMING), 0, BIT(READY)) & DRIVEN, 0);
    // RUNNING is entered by way of APPROACH only.
    assert_int_equal(reach(idle, 0, BIT(APPROACH)) & BIT(RUNNING), 0);
    // The latches open by reset only, and then lead to WAITING.
    assert_int_equal(reach(BIT(STOPPED), LADDER_C_REQ_RESET, 0),
                     BIT(STOPPED) | BIT(ESTOP));
    assert_int_equal(reach(BIT(ESTOP), LADDER_C_REQ_RESET, 0), BIT(ESTOP));
    assert_int_equal(reach(BIT(STOPPED) | BIT(ESTOP), 0, BIT(WAITING)),
                     BIT(STOPPED) | BIT(ESTOP));
    // STOPPING does not go back.
    assert_int_equal(reach(BIT(STOPPING), LADDER_C_REQ_RESET, 0),
                     BIT(STOPPING) | BIT(STOPPED) | BIT(ESTOP));
    for (int s = LADDER_INIT; s < LADDER_STATES; s++)
        for (int i = 0; i < CONDITIONS; i++) // ESTOP from anywhere, whatever else is true
            assert_int_equal(
                ladder_next((enum ladder_state)s, LADDER_C_REQ_ESTOP | all_conditions[i])
                    .state,
                LADDER_ESTOP);
}

static void arm_needs_everything(void **state)
{
    (void)state;
    const uint64_t good = LADDER_C_REQ_ARM | LADDER_C_STARTED | LADDER_C_STREAMS_FRESH;

    assert_int_equal(ladder_next(LADDER_READY, good).state, LADDER_APPROACH);
    assert_int_not_equal(ladder_next(LADDER_READY, good & ~LADDER_C_STARTED).state,
                         LADDER_APPROACH);
    assert_int_equal(ladder_next(LADDER_READY, good & ~LADDER_C_STREAMS_FRESH).state,
                     LADDER_WAITING);
    assert_int_equal(ladder_next(LADDER_WAITING, good).state,
                     LADDER_READY); // not stored up
    assert_int_equal(ladder_next(LADDER_READY, good | LADDER_C_OUT_OF_LIMITS).state,
                     LADDER_WAITING);
}

static void both_requests_are_none(void **state)
{
    (void)state;
    const uint64_t good = LADDER_C_STARTED | LADDER_C_STREAMS_FRESH;

    assert_int_equal(ladder_next(LADDER_READY, good | LADDER_C_REQ_HOME).state,
                     LADDER_HOMING);
    assert_int_equal(
        ladder_next(LADDER_READY, good | LADDER_C_REQ_HOME | LADDER_C_REQ_ARM).state,
        LADDER_READY);
}

static void moving_states(void **state)
{
    (void)state;
    const uint32_t moving = DRIVEN | BIT(HOMING) | BIT(DISARMING);

    for (int s = -1; s < LADDER_STATES + 40; s++)
        assert_int_equal(ladder_moving((enum ladder_state)s),
                         s > 0 && s < LADDER_STATES && ((moving >> s) & 1));
}

// Each condition that is a fault is in the ranking once, those that stop before those that hold,
// and nothing else is in it.
static void ranking(void **state)
{
    (void)state;
    const uint64_t no_fault =
        LADDER_C_STARTED | LADDER_C_STREAMS_FRESH | LADDER_C_HOLD_EXPIRED |
        LADDER_C_AT_REST | LADDER_C_AT_TARGET | LADDER_C_APPROACHED |
        LADDER_C_APPROACH_LONG | LADDER_C_LATCHED | LADDER_C_REQ_ARM |
        LADDER_C_REQ_DISARM | LADDER_C_REQ_RESET | LADDER_C_REQ_HOME;
    uint64_t seen = 0, all = 0;

    for (int i = 0; i < CONDITIONS; i++)
        all |= all_conditions[i];
    for (int i = 0; i < ladder_faults; i++) {
        const struct ladder_fault *f = &ladder_fault[i];
        uint64_t c = f->condition;
        enum ladder_reason want = cause_of(c | LADDER_C_STARTED);
        bool stops =
            stops_any_motion(c) || stops_driving(c) || HAS(REQ_ESTOP) || HAS(REQ_STOP);
        bool degrades = HAS(OUT_OF_LIMITS) || HAS(CAMERA_STUCK) || HAS(CAMERA_LATE);

        assert_int_equal(c & (c - 1), 0);
        assert_int_equal(seen & c, 0);
        seen |= c;
        assert_int_equal(f->severity, stops       ? LADDER_STOPS
                                      : degrades  ? LADDER_DEGRADES
                                      : passes(c) ? LADDER_HOLDS
                                                  : LADDER_WARNS);
        if (f->severity != LADDER_WARNS)
            assert_int_equal(f->reason, want);
    }
    assert_int_equal(seen, all & ~no_fault);
    uint64_t told[] = {LADDER_C_CAMERA_SAME, LADDER_C_JOINTS_SLOW, LADDER_C_CAMERA_SLOW};
    enum ladder_reason as[] = {REASON_CAMERA_FROZEN, REASON_JOINTS_SLOW,
                               REASON_CAMERA_SLOW};
    for (int i = 0; i < ladder_faults; i++)
        for (int k = 0; k < 3; k++)
            if (ladder_fault[i].condition == told[k])
                assert_int_equal(ladder_fault[i].reason, as[k]);
}

static void names_and_nonsense(void **state)
{
    (void)state;
    assert_string_equal(ladder_state_name(LADDER_INIT), "INIT");
    assert_string_equal(ladder_state_name(LADDER_DISARMING), "DISARMING");
    assert_string_equal(ladder_state_name(LADDER_HOMING), "HOMING");
    assert_string_equal(ladder_reason_name(REASON_CAMERA_SLOW), "CAMERA_SLOW");
    assert_string_equal(ladder_reason_name(REASON_JOINTS_INVALID), "JOINTS_INVALID");
    assert_string_equal(ladder_reason_name(REASON_LATE_WAKEUPS), "LATE_WAKEUPS");
    assert_string_equal(ladder_state_name((enum ladder_state)99), "?");
    assert_string_equal(ladder_state_name((enum ladder_state)LADDER_STATES), "?");
    assert_string_equal(ladder_reason_name((enum ladder_reason)LADDER_REASONS), "?");
    assert_string_equal(ladder_reason_name(REASON_NONE), "NONE");
    assert_string_equal(ladder_reason_name(REASON_TICK_GAP), "TICK_GAP");
    assert_string_equal(ladder_reason_name(REASON_INTERNAL), "INTERNAL");
    assert_string_equal(ladder_reason_name((enum ladder_reason)99), "?");
    assert_int_equal(ladder_next((enum ladder_state)0, 0).state, LADDER_ESTOP);
    assert_int_equal(ladder_next((enum ladder_state)77, 0).state, LADDER_ESTOP);
    assert_int_equal(ladder_next((enum ladder_state)LADDER_STATES, 0).reason,
                     REASON_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_pairs),
        cmocka_unit_test(random_sets),
        cmocka_unit_test(causes),
        cmocka_unit_test(invariants),
        cmocka_unit_test(arm_needs_everything),
        cmocka_unit_test(both_requests_are_none),
        cmocka_unit_test(moving_states),
        cmocka_unit_test(ranking),
        cmocka_unit_test(names_and_nonsense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
