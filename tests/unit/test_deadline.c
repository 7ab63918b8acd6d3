// deadline and clock: accounting that is exact, quantiles that are honest. Its budgets are in
// test_deadline_budget.c.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <cmocka.h>

#include "daemon/deadline.h"

static uint64_t seed = 42;
static uint64_t rnd(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33;
}

// A million ticks with delays of every size: executed + skipped = floor(elapsed / period) + 1,
// deadlines in phase, never two for one period.
static void accounting_is_exact(void **state)
{
    (void)state;
    static const ns_t period[] = {5000000, 1000000, 33333333, 7, 1};

    for (int p = 0; p < 5; p++) {
        const ns_t T = period[p], start = 123456789;
        struct schedule s;
        ns_t now = start;
        uint64_t run = 0, last_tick = 0;

        schedule_start(&s, start, T);
        for (int i = 0; i < 200000; i++) {
            ns_t late = rnd() % 4 ? (ns_t)(rnd() % (uint64_t)(T / 10 + 1))
                                  : (ns_t)(rnd() % (uint64_t)(3 * T + 1));

            assert_int_equal((s.next_ns - start) % T, 0);
            assert_int_equal((uint64_t)((s.next_ns - start) / T), s.tick);
            now = s.next_ns > now ? s.next_ns : now;
            now += late;
            assert_int_equal(schedule_woke(&s, now), now - s.next_ns);
            assert_true(run == 0 || s.tick > last_tick);
            last_tick = s.tick;
            run++;
            now += (ns_t)(rnd() % (uint64_t)(T / 4 + 1)); // the work itself
            if (rnd() % 1000 == 0)
                now += 50 * T + (ns_t)(rnd() % (uint64_t)T); // stopped for a while
            uint64_t before = s.skipped;
            uint64_t skipped = schedule_advance(&s, now);
            assert_int_equal(s.skipped, before + skipped);
            assert_true(s.next_ns > now);      // never caught up
            assert_true(s.next_ns - now <= T); // and not one too many
            assert_int_equal(run + s.skipped, (uint64_t)((now - start) / T) + 1);
        }
    }
}

static void a_whole_period_late_is_one_skipped(void **state)
{
    (void)state;
    struct schedule s;

    schedule_start(&s, 100, 10);
    assert_int_equal(schedule_woke(&s, 90), 0);
    assert_int_equal(schedule_advance(&s, 109), 0);
    assert_int_equal(s.next_ns, 110);
    assert_int_equal(schedule_advance(&s, 120), 1); // 120 itself is past
    assert_int_equal(s.next_ns, 130);
    assert_int_equal(s.tick, 3);
}

static int ascending(const void *a, const void *b)
{
    ns_t x = *(const ns_t *)a, y = *(const ns_t *)b;

    return (x > y) - (x < y);
}

static void quantiles(void **state)
{
    (void)state;
    static struct histogram h;
    static uint64_t previous[HIST_BUCKETS];
    enum { N = 20000 };
    static ns_t v[N];

    for (int round = 0; round < 3; round++) {
        memset(&h, 0, sizeof h);
        for (int i = 0; i < N; i++) {
            v[i] = (ns_t)(rnd() >> (rnd() % 30));
            hist_add(&h, v[i]);
        }
        qsort(v, N, sizeof *v, ascending);
        struct histogram_summary s = hist_summary(&h);
        assert_int_equal(s.count, N);
        assert_int_equal(s.max_ns, v[N - 1]);
        ns_t p50 = v[N / 2 - 1], p99 = v[N * 99 / 100 - 1];
        assert_true(s.p50_ns >= p50 && s.p50_ns <= p50 + p50 / 16 + 1);
        assert_true(s.p99_ns >= p99 && s.p99_ns <= p99 + p99 / 16 + 1);
    }
    memset(previous, 0, sizeof previous);
    assert_int_equal(hist_summary_since(&h, previous).count, N);
    assert_int_equal(hist_summary_since(&h, previous).count, 0);
    assert_int_equal(hist_summary_since(&h, previous).max_ns, 0);
    hist_add(&h, 1000);
    hist_add(&h, 3000);
    struct histogram_summary s = hist_summary_since(&h, previous);
    assert_int_equal(s.count, 2);
    assert_true(s.p50_ns >= 1000 && s.p50_ns <= 1063 && s.max_ns >= 3000 &&
                s.max_ns <= 3188);
}

static void extremes(void **state)
{
    (void)state;
    static struct histogram h;
    struct histogram_summary s = hist_summary(&h);

    assert_int_equal(s.count, 0);
    assert_int_equal(s.p99_ns, 0);
    hist_add(&h, -5);
    hist_add(&h, 0);
    hist_add(&h, INT64_MAX);
    s = hist_summary(&h);
    assert_int_equal(s.count, 3);
    assert_int_equal(s.p50_ns, 0);
    assert_true(s.max_ns == INT64_MAX);
    memset(&h, 0, sizeof h);
    for (ns_t x = 0; x < 100;
         x++) { // small values and edges of buckets are what they are
        hist_add(&h, x);
        s = hist_summary(&h);
        assert_int_equal(s.max_ns, x);
    }
}

// ---- exact values ----------------------------------------------------------------------------

// Where a value is counted, by the definition: 2 * HIST_SUB buckets of width 1, then HIST_SUB of
// width 2, of width 4, … The twin walks, the code shifts.
static int naive_bucket(ns_t v)
{
    ns_t low = 0, width = 1;
    int i = 0;

    for (; i < HIST_BUCKETS - 1; i++) {
        width = i < 2 * HIST_SUB ? 1 : (ns_t)1 << (i / HIST_SUB - 1);
        if (v < low + width)
            break;
        low += width;
    }
    return i;
}

static int counted_in(ns_t v, struct histogram *h)
{
    int found = -1;

    memset(h, 0, sizeof *h);
    hist_add(h, v);
    assert_int_equal(h->count, 1);
    for (int i = 0; i < HIST_BUCKETS; i++) {
        if (h->bucket[i] == 0)
            continue;
        assert_int_equal(h->bucket[i], 1);
        assert_int_equal(found, -1);
        found = i;
    }
    assert_true(h->max_ns == (v > 0 ? v : 0));
    return found;
}

static void buckets_begin_and_end_where_they_should(void **state)
{
    (void)state;
    static struct histogram h;
    const ns_t top = (ns_t)1 << 43; // 2.4 h
    static const struct {
        ns_t v;
        int i;
    } known[] = {{INT64_MIN, 0}, {-1, 0},   {0, 0},      {1, 1},      {15, 15},
                 {16, 16},       {31, 31},  {32, 32},    {33, 32},    {34, 33},
                 {62, 47},       {63, 47},  {64, 48},    {67, 48},    {68, 49},
                 {127, 63},      {128, 64}, {1000, 111}, {1023, 111}, {1024, 112}};

    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        assert_int_equal(counted_in(known[k].v, &h), known[k].i);
    assert_int_equal(counted_in(top - 1, &h), HIST_BUCKETS - 1);
    assert_int_equal(counted_in(top - ((ns_t)1 << 38) - 1, &h), HIST_BUCKETS - 2);
    assert_int_equal(counted_in(top, &h), HIST_BUCKETS - 1);
    assert_int_equal(counted_in(2 * top, &h), HIST_BUCKETS - 1);
    assert_int_equal(counted_in(INT64_MAX, &h), HIST_BUCKETS - 1);
    for (int e = 0; e < 43; e++) // around every power of two and its middle
        for (ns_t d = -2; d <= 2; d++) {
            ns_t v = ((ns_t)1 << e) + d, w = v + ((ns_t)1 << e) / 2;
            assert_int_equal(counted_in(v < 0 ? 0 : v, &h), naive_bucket(v < 0 ? 0 : v));
            assert_int_equal(counted_in(w < 0 ? 0 : w, &h), naive_bucket(w < 0 ? 0 : w));
        }
    for (int i = 0; i < 20000; i++) {
        ns_t v = (ns_t)((rnd() << 12 ^ rnd()) >> (rnd() % 43));
        assert_int_equal(counted_in(v, &h), naive_bucket(v));
    }
}

static void adds_up(void **state)
{
    (void)state;
    static struct histogram h;

    memset(&h, 0, sizeof h);
    for (int i = 1; i <= 1000; i++) {
        hist_add(&h, i % 2 ? 5 : 700);
        assert_int_equal(h.count, i);
        assert_int_equal(h.bucket[5], (i + 1) / 2);
        assert_int_equal(h.bucket[naive_bucket(700)], i / 2);
        assert_int_equal(h.max_ns, i > 1 ? 700 : 5);
    }
}

static void any_quantile(void **state)
{
    (void)state;
    static struct histogram h;

    memset(&h, 0, sizeof h);
    assert_int_equal(hist_quantile(&h, 0.5), 0); // of nothing
    for (int i = 1; i <= 1000; i++)              // below 32 exact, above by the bucket
        hist_add(&h, i <= 500 ? 7 : i <= 990 ? 20 : i <= 999 ? 100 : 1000);
    assert_int_equal(hist_quantile(&h, 0), 7);
    assert_int_equal(hist_quantile(&h, -3), 7);
    assert_int_equal(hist_quantile(&h, 0.5), 7);
    assert_int_equal(hist_quantile(&h, 0.501), 20);
    assert_int_equal(hist_quantile(&h, 0.99), 20);
    assert_int_equal(hist_quantile(&h, 0.991), 103); // 100 … 103
    assert_int_equal(hist_quantile(&h, 0.999), 103);
    assert_int_equal(hist_quantile(&h, 0.9991),
                     1000); // 992 … 1023, but never above the max
    assert_int_equal(hist_quantile(&h, 1), 1000);
    assert_int_equal(hist_quantile(&h, 17), 1000);
    assert_int_equal(hist_quantile(&h, NAN), 1000);
    assert_int_equal(hist_summary(&h).p99_ns, 20);
    assert_int_equal(hist_summary(&h).p50_ns, 7);
    memset(&h, 0, sizeof h);
    hist_add(&h, 10 * 3600 * NS_PER_S); // beyond the buckets: told as it was
    assert_int_equal(hist_quantile(&h, 0.5), 10 * 3600 * NS_PER_S);
}

// ---- the schedule, exactly -------------------------------------------------------------------

static void exact_multiples(void **state)
{
    (void)state;
    struct schedule s;

    memset(&s, 0xff, sizeof s);
    schedule_start(&s, 1000, 10);
    assert_int_equal(s.start_ns, 1000);
    assert_int_equal(s.period_ns, 10);
    assert_int_equal(s.next_ns, 1000);
    assert_int_equal(s.tick, 0);
    assert_int_equal(s.skipped, 0);
    assert_int_equal(schedule_woke(&s, 1000), 0);
    assert_int_equal(schedule_woke(&s, 1001), 1);
    for (int k = 1; k <= 50;
         k++) { // now is 1000 + the rest: k periods and one before or after
        for (int d = -1; d <= 1; d++) {
            schedule_start(&s, 1000, 10);
            uint64_t skipped = schedule_advance(&s, 1000 + 10 * k + d);
            uint64_t want = (uint64_t)(d < 0 ? k - 1 : k);
            assert_int_equal(skipped, want);
            assert_int_equal(s.skipped, want);
            assert_int_equal(s.tick, want + 1);
            assert_int_equal(s.next_ns, 1010 + 10 * (ns_t)want);
            assert_int_equal(s.start_ns, 1000);
            assert_int_equal(s.period_ns, 10);
            assert_int_equal(schedule_advance(&s, s.next_ns + 25), 2);
            assert_int_equal(s.skipped, want + 2); // adds up
            assert_int_equal(s.tick, want + 4);
        }
    }
    schedule_start(&s, 0, 1); // 292 years late
    assert_true(schedule_advance(&s, INT64_MAX - 1) == (uint64_t)INT64_MAX - 1);
    assert_true(s.next_ns == INT64_MAX);
}

static void periods(void **state)
{
    (void)state;
    assert_int_equal(clock_period_ns(200), 5000000);
    assert_int_equal(clock_period_ns(30), 33333333);
    assert_int_equal(clock_period_ns(60), 16666667);
    assert_int_equal(clock_period_ns(0.5), 2000000000);
}

static void nothing(int s)
{
    (void)s;
}

// Sleeps to the absolute time, also when signals come in between.
static void sleeps_through_signals(void **state)
{
    (void)state;
    struct sigaction sa = {.sa_handler = nothing};
    struct itimerval every = {{0, 3000}, {0, 3000}}, off = {{0, 0}, {0, 0}};
    ns_t until = clock_now_ns() + 50 * NS_PER_MS;

    assert_int_equal(sigaction(SIGALRM, &sa, NULL), 0);
    setitimer(ITIMER_REAL, &every, NULL);
    assert_int_equal(clock_sleep_until(until), 0);
    setitimer(ITIMER_REAL, &off, NULL);
    assert_true(clock_now_ns() >= until);
    assert_int_equal(clock_sleep_until(until - NS_PER_S), 0); // the past: at once
    assert_int_equal(clock_sleep_until(-1), 0);
    assert_true(clock_wall_ns() > INT64_C(1600000000) * NS_PER_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accounting_is_exact),
        cmocka_unit_test(a_whole_period_late_is_one_skipped),
        cmocka_unit_test(quantiles),
        cmocka_unit_test(extremes),
        cmocka_unit_test(buckets_begin_and_end_where_they_should),
        cmocka_unit_test(adds_up),
        cmocka_unit_test(any_quantile),
        cmocka_unit_test(exact_multiples),
        cmocka_unit_test(periods),
        cmocka_unit_test(sleeps_through_signals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
