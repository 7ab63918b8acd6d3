// ladder: the table against a specification written another way, over all states and all pairs
// of conditions, and walks through everything it can reach.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/ladder.h"

static const uint32_t all_conditions[] = {
    LADDER_C_STARTED,       LADDER_C_STREAMS_FRESH,  LADDER_C_JOINTS_MISSING,
    LADDER_C_JOINTS_LATE,   LADDER_C_JOINTS_STALE,   LADDER_C_CAMERA_MISSING,
    LADDER_C_CAMERA_LATE,   LADDER_C_CAMERA_STALE,   LADDER_C_NO_CHUNK,
    LADDER_C_CHUNK_TOO_OLD, LADDER_C_NOT_FINITE,     LADDER_C_NOT_FINITE_AGAIN,
    LADDER_C_FOLLOWING,     LADDER_C_FOLLOWING_LONG, LADDER_C_TICK_GAP,
    LADDER_C_OUT_OF_LIMITS, LADDER_C_POLICY_FAILED,  LADDER_C_HOLD_EXPIRED,
    LADDER_C_AT_REST,       LADDER_C_AT_TARGET,      LADDER_C_GATE,
    LADDER_C_APPROACHED,    LADDER_C_APPROACH_LONG,  LADDER_C_REQ_ARM,
    LADDER_C_REQ_DISARM,    LADDER_C_REQ_STOP,       LADDER_C_REQ_ESTOP,
    LADDER_C_REQ_RESET,
};
#define CONDITIONS ((int)(sizeof all_conditions / sizeof *all_conditions))

#define HAS(name) ((c & (uint32_t)LADDER_C_##name) != 0)

// ---- the specification, as a person would say it ----------------------------------------------

static enum ladder_reason cause_of(uint32_t c)
{
    if (HAS(REQ_ESTOP))
        return REASON_ESTOP;
    if (HAS(GATE))
        return REASON_INTERNAL;
    if (HAS(TICK_GAP))
        return REASON_TICK_GAP;
    if (HAS(JOINTS_MISSING))
        return REASON_JOINTS_MISSING;
    if (HAS(JOINTS_STALE) || HAS(JOINTS_LATE))
        return REASON_JOINTS_STALE;
    if (HAS(NOT_FINITE) || HAS(NOT_FINITE_AGAIN))
        return REASON_NOT_FINITE;
    if (HAS(FOLLOWING) || HAS(FOLLOWING_LONG))
        return REASON_FOLLOWING_ERROR;
    if (HAS(POLICY_FAILED))
        return REASON_POLICY_FAILED;
    if (HAS(CAMERA_MISSING))
        return REASON_CAMERA_MISSING;
    if (HAS(CAMERA_STALE) || HAS(CAMERA_LATE))
        return REASON_CAMERA_STALE;
    if (HAS(OUT_OF_LIMITS))
        return REASON_OUT_OF_LIMITS;
    if (HAS(REQ_STOP))
        return REASON_OPERATOR;
    if (HAS(CHUNK_TOO_OLD))
        return REASON_CHUNK_TOO_OLD;
    if (HAS(NO_CHUNK))
        return REASON_NO_CHUNK;
    return HAS(STARTED) ? REASON_NONE : REASON_STARTING;
}

static struct ladder_step go(enum ladder_state s, enum ladder_reason r)
{
    return (struct ladder_step){s, r};
}

static int unfit(uint32_t c)
{
    return HAS(JOINTS_MISSING) || HAS(JOINTS_LATE) || HAS(JOINTS_STALE) ||
           HAS(CAMERA_MISSING) || HAS(CAMERA_LATE) || HAS(CAMERA_STALE) ||
           HAS(NOT_FINITE_AGAIN) || HAS(FOLLOWING_LONG) || HAS(TICK_GAP) ||
           HAS(OUT_OF_LIMITS) || HAS(POLICY_FAILED) || HAS(GATE);
}

// Faults that stop an arm; policy and cameras do not matter to one that is being disarmed.
static enum ladder_reason stops(enum ladder_state s, uint32_t c)
{
    int driven = s != LADDER_DISARMING;

    if (HAS(GATE))
        return REASON_INTERNAL;
    if (HAS(TICK_GAP))
        return REASON_TICK_GAP;
    if (HAS(JOINTS_MISSING))
        return REASON_JOINTS_MISSING;
    if (HAS(JOINTS_STALE))
        return REASON_JOINTS_STALE;
    if (HAS(NOT_FINITE_AGAIN))
        return REASON_NOT_FINITE;
    if (HAS(FOLLOWING_LONG))
        return REASON_FOLLOWING_ERROR;
    if (driven && HAS(POLICY_FAILED))
        return REASON_POLICY_FAILED;
    if (driven && HAS(CAMERA_MISSING))
        return REASON_CAMERA_MISSING;
    if (driven && HAS(CAMERA_STALE))
        return REASON_CAMERA_STALE;
    return HAS(REQ_STOP) ? REASON_OPERATOR : REASON_NONE;
}

static struct ladder_step spec(enum ladder_state s, uint32_t c)
{
    enum ladder_reason why;

    if (HAS(REQ_ESTOP) && s != LADDER_ESTOP)
        return go(LADDER_ESTOP, REASON_ESTOP);
    switch (s) {
    case LADDER_INIT:
        return HAS(STARTED) ? go(LADDER_WAITING, cause_of(c)) : go(s, REASON_NONE);
    case LADDER_WAITING:
        if (HAS(REQ_STOP))
            return go(LADDER_STOPPING, REASON_OPERATOR);
        if (HAS(STARTED) && HAS(STREAMS_FRESH) && !unfit(c))
            return go(LADDER_READY, REASON_NONE);
        return go(s, REASON_NONE);
    case LADDER_READY:
        if (HAS(REQ_STOP))
            return go(LADDER_STOPPING, REASON_OPERATOR);
        if (unfit(c) || !HAS(STREAMS_FRESH))
            return go(LADDER_WAITING, cause_of(c));
        if (HAS(REQ_ARM) && HAS(STARTED) && !HAS(REQ_DISARM))
            return go(LADDER_APPROACH, REASON_NONE);
        return go(s, REASON_NONE);
    case LADDER_DISARMING:
        why = stops(s, c);
        if (why != REASON_NONE)
            return go(LADDER_STOPPING, why);
        return HAS(AT_REST) ? go(LADDER_READY, REASON_NONE) : go(s, REASON_NONE);
    case LADDER_STOPPING:
        return HAS(AT_REST) ? go(LADDER_STOPPED, REASON_NONE) : go(s, REASON_NONE);
    case LADDER_STOPPED:
    case LADDER_ESTOP:
        if (HAS(REQ_RESET) && HAS(AT_REST) && !HAS(JOINTS_STALE) && !HAS(CAMERA_STALE) &&
            !HAS(NOT_FINITE_AGAIN) && !HAS(FOLLOWING_LONG) && !HAS(TICK_GAP) &&
            !HAS(POLICY_FAILED) && !HAS(GATE) && !HAS(REQ_STOP) && !HAS(REQ_ESTOP))
            return go(LADDER_WAITING, REASON_OPERATOR);
        return go(s, REASON_NONE);
    default:
        break;
    }
    why = stops(s, c);
    if (why != REASON_NONE)
        return go(LADDER_STOPPING, why);
    if (s == LADDER_HOLD && HAS(HOLD_EXPIRED))
        return go(LADDER_STOPPING, cause_of(c));
    if (HAS(REQ_DISARM))
        return go(LADDER_DISARMING, REASON_OPERATOR);
    if (s == LADDER_HOLD) {
        if (HAS(JOINTS_LATE) || HAS(NOT_FINITE) || HAS(FOLLOWING))
            return go(s, REASON_NONE);
        if (!HAS(APPROACHED))
            return go(LADDER_APPROACH, REASON_NONE);
        if (HAS(NO_CHUNK) || HAS(CHUNK_TOO_OLD))
            return go(s, REASON_NONE);
        return go(LADDER_RUNNING, REASON_NONE);
    }
    if (HAS(JOINTS_LATE))
        return go(LADDER_HOLD, REASON_JOINTS_STALE);
    if (HAS(NOT_FINITE))
        return go(LADDER_HOLD, REASON_NOT_FINITE);
    if (HAS(FOLLOWING))
        return go(LADDER_HOLD, REASON_FOLLOWING_ERROR);
    if (s == LADDER_RUNNING) {
        if (HAS(CHUNK_TOO_OLD))
            return go(LADDER_HOLD, REASON_CHUNK_TOO_OLD);
        if (HAS(NO_CHUNK))
            return go(LADDER_HOLD, REASON_NO_CHUNK);
        return go(s, REASON_NONE);
    }
    if (HAS(APPROACH_LONG))
        return go(LADDER_DISARMING,
                  HAS(NO_CHUNK) ? REASON_NO_CHUNK : REASON_OUT_OF_LIMITS);
    if (HAS(AT_TARGET) && !HAS(NO_CHUNK) && !HAS(CHUNK_TOO_OLD))
        return go(LADDER_RUNNING, REASON_NONE);
    return go(s, REASON_NONE);
}

static void same(enum ladder_state s, uint32_t c)
{
    struct ladder_step got = ladder_next(s, c), want = spec(s, c);

    if (got.state != want.state || got.reason != want.reason)
        fail_msg("%s with %#x: %s (%s) instead of %s (%s)", ladder_state_name(s), c,
                 ladder_state_name(got.state), ladder_reason_name(got.reason),
                 ladder_state_name(want.state), ladder_reason_name(want.reason));
}

// What is normal in each state, so that a pair of conditions meets a row that needs three.
static const uint32_t backgrounds[] = {
    0,
    LADDER_C_STARTED,
    LADDER_C_STARTED | LADDER_C_STREAMS_FRESH,
    LADDER_C_STARTED | LADDER_C_STREAMS_FRESH | LADDER_C_AT_REST,
    LADDER_C_STARTED | LADDER_C_STREAMS_FRESH | LADDER_C_APPROACHED,
    LADDER_C_STARTED | LADDER_C_STREAMS_FRESH | LADDER_C_REQ_ARM,
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
        uint32_t c = (uint32_t)(seed >> 32);
        if (n % 2) // few bits more often: rows far down are met as well
            c &= (uint32_t)(seed >> 13) & (uint32_t)(seed >> 24);
        same((enum ladder_state)(LADDER_INIT + n % (LADDER_STATES - 1)), c);
    }
}

static void causes(void **state)
{
    (void)state;
    for (int i = 0; i < CONDITIONS; i++)
        for (int j = 0; j < CONDITIONS; j++) {
            uint32_t c = all_conditions[i] | all_conditions[j];

            assert_int_equal(ladder_cause(c), cause_of(c));
            assert_int_equal(ladder_cause(c | LADDER_C_STARTED),
                             cause_of(c | LADDER_C_STARTED));
        }
}

// ---- invariants over everything reachable -----------------------------------------------------

// States reachable from `from` in any number of ticks with pairs of conditions, none of
// `never`, and never entering `closed`.
static uint32_t reach(uint32_t from, uint32_t never, uint32_t closed)
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
                        uint32_t c =
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
    // Nothing but an arm request ever moves an arm that is idle.
    assert_int_equal(reach(idle, LADDER_C_REQ_ARM, 0) & (DRIVEN | BIT(DISARMING)), 0);
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
    const uint32_t good = LADDER_C_REQ_ARM | LADDER_C_STARTED | LADDER_C_STREAMS_FRESH;

    assert_int_equal(ladder_next(LADDER_READY, good).state, LADDER_APPROACH);
    assert_int_not_equal(
        ladder_next(LADDER_READY, good & ~(uint32_t)LADDER_C_STARTED).state,
        LADDER_APPROACH);
    assert_int_equal(
        ladder_next(LADDER_READY, good & ~(uint32_t)LADDER_C_STREAMS_FRESH).state,
        LADDER_WAITING);
    assert_int_equal(ladder_next(LADDER_WAITING, good).state,
                     LADDER_READY); // not stored up
    assert_int_equal(ladder_next(LADDER_READY, good | LADDER_C_OUT_OF_LIMITS).state,
                     LADDER_WAITING);
}

static void names_and_nonsense(void **state)
{
    (void)state;
    assert_string_equal(ladder_state_name(LADDER_INIT), "INIT");
    assert_string_equal(ladder_state_name(LADDER_DISARMING), "DISARMING");
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
        cmocka_unit_test(names_and_nonsense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
