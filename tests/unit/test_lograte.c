// At most one line a second of each class of step, none of the rest forgotten, and a latched state
// always told; on a clock of its own, against a twin that keeps every step in a list.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/lograte.h"

static struct lograte rate; // large

static int setup(void **state)
{
    (void)state;
    memset(&rate, 0, sizeof rate);
    return 0;
}

static bool hold(ns_t now, uint32_t *left_out)
{
    return lograte_step(&rate, LADDER_RUNNING, LADDER_HOLD, REASON_JOINTS_STALE, now,
                        left_out);
}

static bool silent(ns_t now, uint32_t *left_out)
{
    enum ladder_state from, to;
    enum ladder_reason reason;
    bool told = lograte_silent(&rate, now, &from, &to, &reason, left_out);

    if (told) {
        assert_int_equal(from, LADDER_RUNNING);
        assert_int_equal(to, LADDER_HOLD);
        assert_int_equal(reason, REASON_JOINTS_STALE);
    }
    return told;
}

static void the_first_at_once_the_next_after_a_second(void **state)
{
    const ns_t t = 5; // the clock may begin anywhere, also near 0
    uint32_t n;

    (void)state;
    assert_true(hold(t, &n));
    assert_int_equal(n, 0);
    assert_false(hold(t, &n));
    assert_false(hold(t + NS_PER_S - 1, &n));
    assert_true(hold(t + NS_PER_S, &n));
    assert_int_equal(n, 2);
    assert_true(hold(t + 2 * NS_PER_S, &n));
    assert_int_equal(n, 0);
    assert_false(silent(t + 100 * NS_PER_S, &n)); // all was told
}

static void what_is_left_is_told_in_silence(void **state)
{
    uint32_t n;

    (void)state;
    assert_true(hold(0, &n));
    assert_false(hold(400 * NS_PER_MS, &n));
    assert_false(hold(700 * NS_PER_MS, &n));
    assert_false(silent(1700 * NS_PER_MS - 1, &n));
    assert_true(silent(1700 * NS_PER_MS, &n));
    assert_int_equal(n, 2);
    assert_false(silent(1700 * NS_PER_MS, &n)); // once
    assert_false(hold(1800 * NS_PER_MS, &n));   // that line was one of the class, too
    assert_true(hold(2700 * NS_PER_MS, &n));
    assert_int_equal(n, 1);
}

static void a_class_is_from_to_and_reason(void **state)
{
    uint32_t n;

    (void)state;
    assert_true(hold(0, &n));
    assert_true(
        lograte_step(&rate, LADDER_RUNNING, LADDER_HOLD, REASON_CAMERA_STALE, 0, &n));
    assert_true(lograte_step(&rate, LADDER_HOLD, LADDER_RUNNING, REASON_NONE, 0, &n));
    assert_true(
        lograte_step(&rate, LADDER_APPROACH, LADDER_HOLD, REASON_JOINTS_STALE, 0, &n));
    assert_false(hold(0, &n));
}

static void a_latched_state_is_always_told(void **state)
{
    static const enum ladder_state to[] = {LADDER_STOPPING, LADDER_STOPPED, LADDER_ESTOP};
    uint32_t n;

    (void)state;
    for (int i = 0; i < 1000; i++) // a thousand a second
        for (int k = 0; k < 3; k++)
            assert_true(lograte_step(&rate, LADDER_RUNNING, to[k], REASON_OPERATOR,
                                     i * NS_PER_MS, &n));
}

// ---- any order, any time -----------------------------------------------------------------------

#define STEPS   20000
#define CLASSES 6

static struct {
    int steps, told, sum;
    ns_t last_told, last_came;
} twin[CLASSES];

static void told(int k, uint32_t n, ns_t now, int itself)
{
    if (twin[k].told > 0 && now - twin[k].last_told < NS_PER_S)
        fail_msg("class %d: two lines within %lld ns", k,
                 (long long)(now - twin[k].last_told));
    twin[k].told++;
    twin[k].sum += (int)n + itself;
    twin[k].last_told = now;
    assert_int_equal(twin[k].sum, twin[k].steps); // whoever reads the lines has seen all
}

static void at_random(ns_t now, int k)
{
    uint32_t n;

    twin[k].steps++;
    twin[k].last_came = now;
    if (lograte_step(&rate, LADDER_HOLD, LADDER_RUNNING, (enum ladder_reason)k, now, &n))
        told(k, n, now, 1);
    else
        assert_true(now - twin[k].last_told < NS_PER_S); // not left out without need
}

static void any_order_any_time(void **state)
{
    enum ladder_state from, to;
    enum ladder_reason reason;
    ns_t now = 0;
    uint32_t n;

    (void)state;
    srand(1);
    memset(twin, 0, sizeof twin);
    for (int i = 0; i < STEPS; i++) {
        at_random(now, rand() % CLASSES);
        now += (rand() % 50 ? rand() % 40 : 3000) * NS_PER_MS;
        while (lograte_silent(&rate, now, &from, &to, &reason, &n)) {
            assert_true(n > 0 && now - twin[reason].last_came >= NS_PER_S);
            told((int)reason, n, now, 0);
        }
        for (int k = 0; k < CLASSES;
             k++) // nothing waits for longer than a second of silence
            assert_true(twin[k].sum == twin[k].steps ||
                        now - twin[k].last_came < NS_PER_S);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_first_at_once_the_next_after_a_second, setup),
        cmocka_unit_test_setup(what_is_left_is_told_in_silence, setup),
        cmocka_unit_test_setup(a_class_is_from_to_and_reason, setup),
        cmocka_unit_test_setup(a_latched_state_is_always_told, setup),
        cmocka_unit_test_setup(any_order_any_time, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
