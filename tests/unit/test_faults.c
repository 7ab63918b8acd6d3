// faults: what is remembered of each, over ticks that the test numbers.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/faults.h"

#define R(name) (UINT64_C(1) << REASON_##name)

static void counts_episodes_and_ticks(void **state)
{
    (void)state;
    struct faults f = {0};

    assert_int_equal(faults_update(&f, 0, true, 5), 0);
    assert_int_equal(faults_update(&f, LADDER_C_NO_CHUNK, true, 6), R(NO_CHUNK));
    assert_int_equal(faults_update(&f, LADDER_C_NO_CHUNK, true, 7), 0);
    assert_int_equal(faults_update(&f, LADDER_C_NO_CHUNK, true, 9), 0);
    assert_int_equal(f.active, R(NO_CHUNK));
    assert_int_equal(f.of[REASON_NO_CHUNK].episodes, 1);
    assert_int_equal(f.of[REASON_NO_CHUNK].ticks, 3);
    assert_int_equal(f.of[REASON_NO_CHUNK].first_tick, 6);
    assert_int_equal(f.of[REASON_NO_CHUNK].last_tick, 9);
    assert_int_equal(faults_update(&f, 0, true, 10), 0);
    assert_int_equal(f.active, 0);
    assert_int_equal(faults_update(&f, LADDER_C_NO_CHUNK, true, 20), R(NO_CHUNK));
    assert_int_equal(f.of[REASON_NO_CHUNK].episodes, 2);
    assert_int_equal(f.of[REASON_NO_CHUNK].ticks, 4);
    assert_int_equal(f.of[REASON_NO_CHUNK].first_tick, 20);
    assert_int_equal(f.of[REASON_NO_CHUNK].last_tick, 20);
    assert_int_equal(f.latched, 0); // it may pass by itself
    for (int r = 0; r < LADDER_REASONS; r++)
        if (r != REASON_NO_CHUNK)
            assert_int_equal(f.of[r].episodes + f.of[r].ticks, 0);
}

// Two bounds of one fault are one fault: going from the lower to the higher is no new episode.
static void two_bounds_one_fault(void **state)
{
    (void)state;
    struct faults f = {0};

    assert_int_equal(faults_update(&f, LADDER_C_JOINTS_LATE, true, 1), R(JOINTS_STALE));
    assert_int_equal(
        faults_update(&f, LADDER_C_JOINTS_LATE | LADDER_C_JOINTS_STALE, true, 2), 0);
    assert_int_equal(f.of[REASON_JOINTS_STALE].episodes, 1);
    assert_int_equal(f.of[REASON_JOINTS_STALE].ticks, 2);
    assert_int_equal(f.latched, R(JOINTS_STALE));
}

// Every fault that stops latches in motion and only then; none of the others ever does.
static void what_stops_latches(void **state)
{
    (void)state;
    for (int i = 0; i < ladder_faults; i++) {
        struct faults still = {0}, moving = {0};
        uint64_t bit = UINT64_C(1) << ladder_fault[i].reason;
        bool stops = ladder_fault[i].severity == LADDER_STOPS;

        assert_int_equal(faults_update(&still, ladder_fault[i].condition, false, 1), bit);
        assert_int_equal(faults_update(&moving, ladder_fault[i].condition, true, 1), bit);
        assert_int_equal(still.latched, 0);
        assert_int_equal(moving.latched, stops ? bit : 0);
        (void)faults_update(&moving, 0, true, 2); // gone, but remembered
        assert_int_equal(moving.active, 0);
        assert_int_equal(moving.latched, stops ? bit : 0);
    }
}

static void latches_add_up(void **state)
{
    (void)state;
    struct faults f = {0};

    (void)faults_update(&f, LADDER_C_TICK_GAP, true, 1);
    (void)faults_update(&f, LADDER_C_GATE, true, 2);
    assert_int_equal(f.latched, R(TICK_GAP) | R(INTERNAL));
}

static void reset_opens_what_is_gone(void **state)
{
    (void)state;
    struct faults f = {0};

    (void)faults_update(&f, LADDER_C_TICK_GAP | LADDER_C_JOINTS_STALE, true, 1);
    (void)faults_update(&f, LADDER_C_JOINTS_STALE, false, 2);
    assert_false(faults_reset(&f));
    assert_int_equal(f.latched, R(JOINTS_STALE));
    (void)faults_update(&f, 0, false, 3);
    assert_int_equal(f.latched, R(JOINTS_STALE));
    assert_true(faults_reset(&f));
    assert_int_equal(f.latched, 0);
    assert_int_equal(f.of[REASON_TICK_GAP].episodes, 1); // the counts stay
}

// Of a fault with two bounds the latch opens when only the lower one is left: what then waits is
// the state WAITING, which needs no second reset.
static void reset_asks_for_what_stops(void **state)
{
    (void)state;
    struct faults f = {0};

    (void)faults_update(&f, LADDER_C_CAMERA_LATE | LADDER_C_CAMERA_STALE, true, 1);
    assert_int_equal(f.stopping, R(CAMERA_STALE));
    assert_false(faults_reset(&f));
    (void)faults_update(&f, LADDER_C_CAMERA_LATE, false, 2);
    assert_int_equal(f.stopping, 0);
    assert_int_equal(f.active, R(CAMERA_STALE));
    assert_true(faults_reset(&f));
    assert_int_equal(f.latched, 0);
}

static void latch_by_reason(void **state)
{
    (void)state;
    struct faults f = {0};

    faults_latch(&f, REASON_NONE);
    assert_int_equal(f.latched, 0);
    faults_latch(&f, REASON_OPERATOR);
    faults_latch(&f, REASON_CAMERA_SLOW); // the last one
    assert_int_equal(f.latched, R(OPERATOR) | R(CAMERA_SLOW));
    assert_true(faults_reset(&f));
}

static void first_and_last_reason_are_counted(void **state)
{
    (void)state;
    struct faults f = {0};

    (void)faults_update(&f, LADDER_C_CAMERA_SLOW | LADDER_C_JOINTS_MISSING, false, 3);
    assert_int_equal(f.active, R(CAMERA_SLOW) | R(JOINTS_MISSING));
    assert_int_equal(f.of[REASON_CAMERA_SLOW].episodes, 1);
    assert_int_equal(f.of[REASON_JOINTS_MISSING].episodes, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_episodes_and_ticks),
        cmocka_unit_test(two_bounds_one_fault),
        cmocka_unit_test(what_stops_latches),
        cmocka_unit_test(latches_add_up),
        cmocka_unit_test(reset_opens_what_is_gone),
        cmocka_unit_test(reset_asks_for_what_stops),
        cmocka_unit_test(latch_by_reason),
        cmocka_unit_test(first_and_last_reason_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
