// ladder: its whole state x event space, walked. Nothing here copies the table: every promise is
// a predicate of its own, asked of every state with every condition, every pair of them with
// every set of requests, every triple with every request, all combinations of what one state can
// tell apart, and some million sets at random.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/ladder.c" // NOLINT: to see that each row of the table is of use
#include "tests/unit/ladder_promises.h"

#if defined(__SANITIZE_ADDRESS__)
#define RANDOM_SETS 300000
#else
#define RANDOM_SETS 6000000
#endif

// ---- the walk --------------------------------------------------------------------------------

static uint64_t visited, fired[sizeof table / sizeof *table];
static unsigned reached[LADDER_STATES]; // from each state: to which, in one step

static void describe(char *text, size_t size, uint64_t c)
{
    size_t n = 0;

    text[0] = 0;
    for (int i = 0; i < CONDITIONS && n < size; i++)
        if (c & condition[i].bit)
            n += (size_t)snprintf(text + n, size - n, " %s", condition[i].name);
    for (int i = 0; i < REQUESTS && n < size; i++)
        if (c & request[i])
            n += (size_t)snprintf(text + n, size - n, " REQ_%s", request_name[i]);
}

static void count_row(enum ladder_state s, uint64_t c)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (fits(&table[i], s, c)) {
            fired[i]++;
            return;
        }
}

static void visit(enum ladder_state s, uint64_t c)
{
    struct ladder_step to = ladder_next(s, c);
    char text[1024];

    visited++;
    reached[s] |= 1u << to.state;
    count_row(s, c);
    for (int p = 0; p < PROMISES; p++) {
        const char *broken = promises[p].holds(s, c, to);

        if (!broken)
            continue;
        describe(text, sizeof text, c);
        fail_msg("%s: %s: %s -> %s (%s) with%s", promises[p].name, broken,
                 ladder_state_name(s), ladder_state_name(to.state),
                 ladder_reason_name(to.reason), text);
    }
}

static void visit_all_states(uint64_t c)
{
    for (int s = LADDER_INIT; s < LADDER_STATES; s++)
        visit((enum ladder_state)s, c);
}

static uint64_t some_requests(unsigned set)
{
    uint64_t c = 0;

    for (int i = 0; i < REQUESTS; i++)
        if (set >> i & 1)
            c |= request[i];
    return c;
}

static int set_up(void **state)
{
    (void)state;
    stops = of_severity(LADDER_STOPS);
    holds = of_severity(LADDER_HOLDS);
    degrades = of_severity(LADDER_DEGRADES);
    warns = of_severity(LADDER_WARNS);
    return 0;
}

// None, one and two conditions, with every set of requests, on every ground.
static void pairs_with_all_requests(void **state)
{
    (void)state;
    for (int g = 0; g < GROUNDS; g++)
        for (int i = 0; i < CONDITIONS; i++)
            for (int j = i; j < CONDITIONS; j++) // j == i: one alone
                for (unsigned r = 0; r < 1u << REQUESTS; r++)
                    visit_all_states(ground[g] ^ (condition[i].bit | condition[j].bit) ^
                                     some_requests(r));
    for (int g = 0; g < GROUNDS; g++)
        for (unsigned r = 0; r < 1u << REQUESTS; r++)
            visit_all_states(ground[g] | some_requests(r));
}

static void triples_with_one_request(void **state)
{
    (void)state;
    for (int g = 1; g < GROUNDS; g++)
        for (int i = 0; i < CONDITIONS; i++)
            for (int j = i + 1; j < CONDITIONS; j++)
                for (int k = j + 1; k < CONDITIONS; k++)
                    for (unsigned r = 0; r <= REQUESTS; r++)
                        visit_all_states((ground[g] | condition[i].bit |
                                          condition[j].bit | condition[k].bit) |
                                         (r ? request[r - 1] : 0));
}

// Whatever a state can tell apart, in all combinations: one condition stands for its kind. That
// the members of a kind are alike is asked below.
static const uint64_t kind[][16] = {
    {LADDER_C_GATE},
    {LADDER_C_STALLED, LADDER_C_TICK_GAP, LADDER_C_WAKEUP_BUDGET, LADDER_C_TICK_BUDGET,
     LADDER_C_JOINTS_NOT_FINITE, LADDER_C_JOINTS_JUMP, LADDER_C_JOINTS_CLOCK,
     LADDER_C_JOINTS_INVALID, LADDER_C_JOINTS_STALE, LADDER_C_FAR_OUT,
     LADDER_C_FOLLOWING_LONG, LADDER_C_SENSOR_BUDGET},
    {LADDER_C_NOT_FINITE_AGAIN, LADDER_C_OUT_OF_RANGE_AGAIN, LADDER_C_POLICY_FAILED,
     LADDER_C_CHUNK_BUDGET, LADDER_C_CAMERA_CORRUPT, LADDER_C_CAMERA_INVALID,
     LADDER_C_CAMERA_FROZEN, LADDER_C_CAMERA_STALE},
    {LADDER_C_JOINTS_LATE},
    {LADDER_C_FOLLOWING},
    {LADDER_C_NOT_FINITE, LADDER_C_OUT_OF_RANGE},
    {LADDER_C_NO_CHUNK},
    {LADDER_C_CHUNK_TOO_OLD},
    {LADDER_C_CAMERA_LATE, LADDER_C_CAMERA_STUCK, LADDER_C_OUT_OF_LIMITS},
    {LADDER_C_JOINTS_MISSING},
    {LADDER_C_CAMERA_MISSING},
    {LADDER_C_LATCHED},
    {LADDER_C_STARTED},
    {LADDER_C_STREAMS_FRESH},
    {LADDER_C_AT_REST},
    {LADDER_C_AT_TARGET},
    {LADDER_C_APPROACHED},
    {LADDER_C_APPROACH_LONG},
    {LADDER_C_HOLD_EXPIRED},
};
#define KINDS ((int)(sizeof kind / sizeof *kind))

static uint64_t of_kinds(uint64_t set)
{
    uint64_t c = 0;

    for (int k = 0; k < KINDS; k++)
        if (set >> k & 1)
            c |= kind[k][0];
    return c;
}

static void all_combinations_of_kinds(void **state)
{
    (void)state;
    for (uint64_t set = 0; set < UINT64_C(1) << KINDS; set++)
        visit_all_states(of_kinds(set) | (set % 7 ? request[set % 6] : 0));
}

static uint64_t next_random(uint64_t *x)
{
    uint64_t z = (*x += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

// One of a kind does what another does.
static void members_of_a_kind_are_alike(void **state)
{
    uint64_t x = 3;

    (void)state;
    for (int k = 0; k < KINDS; k++)
        for (int m = 1; m < 16 && kind[k][m]; m++)
            for (int i = 0; i < 20000; i++) {
                uint64_t c =
                    of_kinds(next_random(&x)) | some_requests(next_random(&x) & 63);
                enum ladder_state s =
                    (enum ladder_state)(1 + next_random(&x) % (LADDER_STATES - 1));
                uint64_t other = (c & ~kind[k][0]) | kind[k][m];

                visit(s, other);
                assert_int_equal(ladder_next(s, c | kind[k][0]).state,
                                 ladder_next(s, other).state);
            }
}

static void random_sets(void **state)
{
    uint64_t x = 1, all = 0;

    (void)state;
    for (int i = 0; i < CONDITIONS; i++)
        all |= condition[i].bit;
    for (int i = 0; i < RANDOM_SETS; i++) {
        uint64_t c = next_random(&x), thin = next_random(&x) % 5;

        for (uint64_t k = 0; k < thin; k++)
            c &= next_random(&x);
        c = (c & (all | all_requests)) | ground[next_random(&x) % GROUNDS];
        visit((enum ladder_state)(1 + next_random(&x) % (LADDER_STATES - 1)), c);
    }
}

// ---- what the walk has shown -----------------------------------------------------------------

static void every_row_fires(void **state)
{
    (void)state;
    printf("# %llu steps asked\n", (unsigned long long)visited);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (fired[i] == 0)
            fail_msg("row %zu of the table (to %s, %s) never decides", i,
                     ladder_state_name(table[i].to), ladder_reason_name(table[i].reason));
}

static unsigned closure(enum ladder_state from)
{
    unsigned seen = 1u << from, before = 0;

    while (seen != before) {
        before = seen;
        for (int s = 1; s < LADDER_STATES; s++)
            if (seen >> s & 1)
                seen |= reached[s];
    }
    return seen;
}

static void every_state_is_reached_and_leads_back(void **state)
{
    unsigned all = (1u << LADDER_STATES) - 2;

    (void)state;
    assert_int_equal(closure(LADDER_INIT), all);
    for (int s = 1; s < LADDER_STATES; s++)
        if (!(closure((enum ladder_state)s) & ST(READY)))
            fail_msg("no way back to READY out of %s",
                     ladder_state_name((enum ladder_state)s));
}

// From every state and with nothing wrong any more, a reset and patience lead to READY.
static void a_person_gets_it_back(void **state)
{
    (void)state;
    for (int from = 1; from < LADDER_STATES; from++) {
        enum ladder_state s = (enum ladder_state)from;

        for (int i = 0; i < 10 && s != LADDER_READY; i++)
            s = ladder_next(s, LADDER_C_STARTED | LADDER_C_STREAMS_FRESH |
                                   LADDER_C_AT_REST |
                                   (is(s, latched)     ? LADDER_C_REQ_RESET
                                    : is(s, in_motion) ? LADDER_C_REQ_DISARM
                                                       : 0))
                    .state;
        assert_int_equal(s, LADDER_READY);
    }
}

static void ranks_go_down(void **state)
{
    uint64_t seen = 0;
    bool only_told = false, lesser = false;

    (void)state;
    for (int i = 0; i < ladder_faults; i++) {
        const struct ladder_fault *f = &ladder_fault[i];

        assert_true(f->reason > REASON_NONE && f->reason < LADDER_REASONS);
        assert_int_equal(seen & f->condition, 0); // each condition once
        seen |= f->condition;
        only_told = only_told || f->severity == LADDER_WARNS;
        lesser = lesser || f->severity != LADDER_STOPS;
        assert_true(!only_told || f->severity == LADDER_WARNS);
        assert_true(!lesser || f->severity != LADDER_STOPS);
    }
    // Every condition that is a fault has its place: bits 8 to 46, bar those without a meaning.
    for (int i = 0; i < CONDITIONS; i++)
        if (condition[i].bit >= LADDER_C_JOINTS_MISSING && !(seen & condition[i].bit))
            fail_msg("%s has no reason", condition[i].name);
    assert_int_equal(stops, of_self_or_arm | of_the_drive);
}

static void states_that_are_none_stop(void **state)
{
    static const int none[] = {0, -1, LADDER_STATES, 255, 1 << 30};

    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct ladder_step to = ladder_next((enum ladder_state)none[i], 0);

        assert_int_equal(to.state, LADDER_ESTOP);
        assert_int_equal(to.reason, REASON_INTERNAL);
        assert_false(ladder_moving((enum ladder_state)none[i]));
    }
    for (int s = 1; s < LADDER_STATES; s++)
        assert_int_equal(ladder_moving((enum ladder_state)s),
                         is((enum ladder_state)s, in_motion));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_go_down),
        cmocka_unit_test(pairs_with_all_requests),
        cmocka_unit_test(triples_with_one_request),
        cmocka_unit_test(all_combinations_of_kinds),
        cmocka_unit_test(members_of_a_kind_are_alike),
        cmocka_unit_test(random_sets),
        cmocka_unit_test(every_row_fires),
        cmocka_unit_test(every_state_is_reached_and_leads_back),
        cmocka_unit_test(a_person_gets_it_back),
        cmocka_unit_test(states_that_are_none_stop),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
