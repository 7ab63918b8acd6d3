// monitor: the judgement, in virtual time and to the look. Its thread is in
// test_monitor_thread.c.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/monitor.h"

#define MS NS_PER_MS

static uint64_t seed = 7;
static uint64_t rnd(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33;
}

static void the_limit(void **state)
{
    (void)state;
    assert_int_equal(monitor_limit_ns(500 * NS_PER_US), 80 * MS); // 2 kHz
    assert_int_equal(monitor_limit_ns(10 * MS), 80 * MS);
    assert_int_equal(monitor_limit_ns(clock_period_ns(30)), 80 * MS);
    assert_int_equal(monitor_limit_ns(40 * MS),
                     100 * MS); // three periods, less two looks
    assert_int_equal(monitor_limit_ns(NS_PER_S), 2980 * MS);
}

static void a_loop_that_ticks_is_left_alone(void **state)
{
    (void)state;
    static const double hz[] = {1, 5, 29, 30, 31, 100, 1000, 2000};

    for (size_t i = 0; i < sizeof hz / sizeof *hz; i++) {
        const ns_t period = clock_period_ns(hz[i]), limit = monitor_limit_ns(period);
        struct monitor_state s = {0};
        for (ns_t now = NS_PER_S; now < 20 * NS_PER_S; now += MONITOR_LOOK_NS) {
            // A tick may be late by half a period; no tick is no stall.
            ns_t late = (ns_t)(rnd() % (uint64_t)(period / 2 + 1));
            assert_false(monitor_look(&s, (uint64_t)((now - late) / period), now, limit));
            assert_false(s.stalled);
        }
    }
}

// From the last tick to the cut, for a loop that stops at any moment between two looks.
static ns_t cut_after(double hz, ns_t phase, ns_t look_late)
{
    const ns_t period = clock_period_ns(hz), limit = monitor_limit_ns(period);
    const ns_t stop = 10 * NS_PER_S + phase;
    const uint64_t last = (uint64_t)(stop / period);
    struct monitor_state s = {0};
    ns_t cut = 0;

    for (ns_t at = MONITOR_LOOK_NS; at < 20 * NS_PER_S; at += MONITOR_LOOK_NS) {
        const ns_t now = at + (look_late ? (ns_t)(rnd() % (uint64_t)look_late) : 0);
        const uint64_t ticks = now < stop ? (uint64_t)(now / period) : last;
        if (!monitor_look(&s, ticks, now, limit))
            continue;
        assert_int_equal(cut, 0); // once
        cut = now;
    }
    assert_true(cut > 0);
    assert_true(s.stalled);
    return cut - (ns_t)last * period;
}

static void the_cut_comes_within_100_ms(void **state)
{
    (void)state;
    ns_t least = NS_PER_S, most = 0;

    for (ns_t phase = 0; phase < 20 * MS; phase += 50 * NS_PER_US)
        for (int i = 0; i < 3; i++) {
            const ns_t t = cut_after(i == 0 ? 30 : i == 1 ? 100 : 1000, phase, 0);
            least = t < least ? t : least;
            most = t > most ? t : most;
        }
    assert_in_range(least, 80 * MS, 81 * MS); // and not sooner than it must
    assert_in_range(most, 89 * MS, 90 * MS);
    for (ns_t phase = 0; phase < 20 * MS;
         phase += 50 * NS_PER_US) // looks up to 5 ms late
        assert_in_range(cut_after(100, phase, 5 * MS), 75 * MS, 100 * MS);
}

static void a_slow_loop_has_three_periods(void **state)
{
    (void)state;

    for (ns_t phase = 0; phase < 1000 * MS; phase += 7 * MS) {
        assert_in_range(cut_after(1, phase, 0), 2980 * MS, 3000 * MS);
        assert_in_range(cut_after(20, phase, 0), 130 * MS, 150 * MS);
    }
}

static void once_per_stall(void **state)
{
    (void)state;
    struct monitor_state s = {0};
    ns_t now = NS_PER_S;
    uint64_t ticks = 1;
    int cuts = 0;

    for (int round = 1; round <= 5; round++) {
        for (int i = 0; i < 100; i++, now += MONITOR_LOOK_NS)
            cuts += monitor_look(&s, ticks, now, 80 * MS);
        assert_int_equal(cuts, round);
        assert_true(s.stalled);
        ticks += 3;
        assert_false(monitor_look(&s, ticks, now, 80 * MS)); // it is back
        assert_false(s.stalled);
    }
}

static void exactly_at_the_limit(void **state)
{
    (void)state;
    struct monitor_state s = {0};

    assert_false(monitor_look(&s, 1, 1000, 80));
    for (ns_t now = 1010; now < 1080; now += 10)
        assert_false(monitor_look(&s, 1, now, 80));
    assert_false(monitor_look(&s, 1, 1079, 80));
    assert_true(monitor_look(&s, 1, 1080, 80));
}

static void a_loop_that_has_not_begun(void **state)
{
    (void)state;
    struct monitor_state s = {0};
    ns_t now = NS_PER_S;

    for (int i = 0; i < 1000; i++, now += MONITOR_LOOK_NS) {
        assert_false(monitor_look(&s, 0, now, 80 * MS)); // there is nothing to cut
        assert_int_equal(s.stalled, i >= 8);             // but nobody calls it fine
    }
    assert_false(monitor_look(&s, 1, now, 80 * MS));
    assert_false(s.stalled);
    for (int i = 1; i < 8; i++)
        assert_false(monitor_look(&s, 1, now + i * MONITOR_LOOK_NS, 80 * MS));
    assert_true(monitor_look(&s, 1, now + 8 * MONITOR_LOOK_NS, 80 * MS));
}

// Both were away, for any length, at any moment of the loop's period; the monitor is the first to
// wake and the loop ticks within `wakes_ns`. That is no stall: the loop judges its own gap.
static bool cut_by_suspension(ns_t period, ns_t phase, ns_t away, ns_t wakes_ns)
{
    const ns_t limit = monitor_limit_ns(period), from = NS_PER_S + phase;
    const uint64_t before = (uint64_t)(from / period);
    struct monitor_state s = {0};
    ns_t now = 10 * MS;
    bool cut = false;

    for (; now < from; now += MONITOR_LOOK_NS)
        cut |= monitor_look(&s, (uint64_t)(now / period), now, limit);
    for (now = from + away; now < from + away + NS_PER_S; now += MONITOR_LOOK_NS) {
        const bool woke = now - from - away >= wakes_ns;
        cut |= monitor_look(&s, woke ? (uint64_t)(now / period) : before, now, limit);
    }
    return cut;
}

static void suspended_together_is_no_stall(void **state)
{
    (void)state;
    static const ns_t away[] = {15 * MS,  35 * MS,      45 * MS,        79 * MS,
                                100 * MS, 5 * NS_PER_S, 3600 * NS_PER_S};
    static const double hz[] = {1, 10, 30, 100, 1000};

    for (size_t h = 0; h < sizeof hz / sizeof *hz; h++)
        for (size_t a = 0; a < sizeof away / sizeof *away; a++)
            for (ns_t phase = 0; phase < 100 * MS; phase += 333 * NS_PER_US)
                assert_false(
                    cut_by_suspension(clock_period_ns(hz[h]), phase, away[a], 5 * MS));
    // The loop has longer at a rate at which a period is little of the limit.
    for (ns_t phase = 0; phase < 100 * MS; phase += 333 * NS_PER_US)
        assert_false(cut_by_suspension(10 * MS, phase, 5 * NS_PER_S, 20 * MS));
    // A loop that does not come back with the monitor is stuck.
    assert_true(cut_by_suspension(10 * MS, 0, 5 * NS_PER_S, 90 * MS));
}

// A monitor that is kept away again and again still finds it, in no more than three looks.
static void stuck_before_and_after_the_suspension(void **state)
{
    (void)state;
    struct monitor_state s = {0};
    ns_t now = NS_PER_S;

    assert_false(monitor_look(&s, 5, now, 80 * MS));
    assert_false(monitor_look(&s, 5, now += 60 * NS_PER_S, 80 * MS)); // half
    assert_true(monitor_look(&s, 5, now += 60 * NS_PER_S, 80 * MS));
    memset(&s, 0, sizeof s);
    assert_false(monitor_look(&s, 5, now, 80 * MS));
    for (int i = 0; i < 6; i++) // 60 ms stuck, then the machine sleeps
        assert_false(monitor_look(&s, 5, now += MONITOR_LOOK_NS, 80 * MS));
    assert_true(monitor_look(&s, 5, now += 60 * NS_PER_S, 80 * MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit),
        cmocka_unit_test(a_loop_that_ticks_is_left_alone),
        cmocka_unit_test(the_cut_comes_within_100_ms),
        cmocka_unit_test(a_slow_loop_has_three_periods),
        cmocka_unit_test(once_per_stall),
        cmocka_unit_test(exactly_at_the_limit),
        cmocka_unit_test(a_loop_that_has_not_begun),
        cmocka_unit_test(suspended_together_is_no_stall),
        cmocka_unit_test(stuck_before_and_after_the_suspension),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
