// deadline: budgets. What is a miss, a window of them, and a naive twin that keeps everything.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/deadline.h"

static uint64_t seed = 42;
static uint64_t rnd(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33;
}

static void a_miss_is_more_than_the_limit(void **state)
{
    (void)state;
    static struct histogram h;
    struct budget b;

    memset(&h, 0, sizeof h);
    memset(&b, 0xff, sizeof b); // init leaves nothing as it was
    budget_init(&b, &h, 1000, 50);
    assert_int_equal(b.limit_ns, 1000);
    assert_int_equal(b.window, 50);
    assert_int_equal(b.samples + b.missed + b.in_window + b.worst_tick, 0);
    assert_int_equal(b.consecutive + b.consecutive_max + b.worst_ns, 0);
    budget_add(&b, 999, 1);
    budget_add(&b, 1000, 2);
    assert_int_equal(b.missed, 0);
    assert_int_equal(b.in_window, 0);
    assert_int_equal(b.samples, 2);
    budget_add(&b, 1001, 3);
    assert_int_equal(b.missed, 1);
    assert_int_equal(b.in_window, 1);
    assert_int_equal(b.consecutive, 1);
    assert_int_equal(b.samples, 3);
    assert_int_equal(h.count, 3); // every sample, missed or not
    assert_int_equal(h.max_ns, 1001);
    budget_init(&b, NULL, 0, 10);
    budget_add(&b, 0, 1);
    assert_int_equal(b.missed, 0);
    budget_add(&b, 1, 2);
    assert_int_equal(b.missed, 1);
}

static void windows_are_cut_to_what_there_is(void **state)
{
    (void)state;
    struct budget b;
    static const struct {
        int asked, got;
    } w[] = {{-5, 1},      {0, 1},       {1, 1},       {2, 2},
             {1023, 1023}, {1024, 1024}, {1025, 1024}, {INT32_MAX, 1024}};

    for (size_t i = 0; i < sizeof w / sizeof *w; i++) {
        budget_init(&b, NULL, 10, w[i].asked);
        assert_int_equal(b.window, w[i].got);
        for (int k = 0; k < 3000; k++) { // and the ring is as long
            budget_add(&b, 11, 0);
            assert_int_equal(b.in_window, k < b.window ? k + 1 : b.window);
        }
        for (int k = 0; k < 3000; k++) {
            budget_add(&b, 10, 0);
            assert_int_equal(b.in_window, k < b.window ? b.window - k - 1 : 0);
        }
        assert_int_equal(b.missed, 3000);
        assert_int_equal(b.samples, 6000);
    }
}

static void six_of_fifty_are_over_and_five_are_not(void **state)
{
    (void)state;
    static const int window[] = {1, 9, 10, 11, 50, 59, 60, 99, 100, 500, 1000, 1024};

    for (size_t i = 0; i < sizeof window / sizeof *window; i++) {
        const int most = window[i] / 10; // that are no more than a tenth
        struct budget b;
        budget_init(&b, NULL, 5, window[i]);
        assert_false(budget_over(&b));
        for (int k = 0; k < most; k++) { // spread: it is not about misses in a row
            budget_add(&b, 6, 0);
            budget_add(&b, 5, 0);
            assert_false(budget_over(&b));
        }
        budget_add(&b, 6, 0); // the window need not be full
        assert_int_equal(b.in_window, most + 1);
        assert_true(budget_over(&b));
        for (int k = 0; k < window[i] - 2 * most - 1; k++) {
            assert_true(budget_over(&b));
            budget_add(&b, 5, 0);
        }
        assert_true(budget_over(&b)); // the first miss is as old as the window
        budget_add(&b, 5, 0);
        assert_int_equal(b.in_window, most); // and gone
        assert_false(budget_over(&b));
    }
}

static void misses_in_a_row(void **state)
{
    (void)state;
    struct budget b;

    budget_init(&b, NULL, 5, 10);
    for (int i = 1; i <= 4; i++) {
        budget_add(&b, 6, 0);
        assert_int_equal(b.consecutive, i);
        assert_int_equal(b.consecutive_max, i);
    }
    budget_add(&b, 5, 0);
    assert_int_equal(b.consecutive, 0);
    assert_int_equal(b.consecutive_max, 4);
    budget_add(&b, 6, 0);
    budget_skip(&b, 2); // those that were skipped are in the row
    assert_int_equal(b.consecutive, 3);
    assert_int_equal(b.consecutive_max, 4);
    budget_skip(&b, 0); // nothing happened
    assert_int_equal(b.consecutive, 3);
    assert_int_equal(b.samples, 8);
    budget_skip(&b, 2);
    assert_int_equal(b.consecutive, 5);
    assert_int_equal(b.consecutive_max, 5);
    assert_int_equal(b.missed, 9);
    assert_int_equal(b.samples, 10);
}

static void the_worst_and_its_tick(void **state)
{
    (void)state;
    struct budget b;

    budget_init(&b, NULL, 100, 10);
    budget_add(&b, 0, 6);
    assert_int_equal(b.worst_tick, 0); // no time is no worst
    budget_add(&b, 40, 7);             // also within the limit
    assert_int_equal(b.worst_ns, 40);
    assert_int_equal(b.worst_tick, 7);
    budget_add(&b, 40, 8); // the first of equals
    budget_add(&b, 39, 9);
    assert_int_equal(b.worst_tick, 7);
    budget_add(&b, 500, UINT64_MAX);
    budget_skip(&b, 1000); // has no duration
    budget_add(&b, 499, 12);
    assert_int_equal(b.worst_ns, 500);
    assert_true(b.worst_tick == UINT64_MAX);
}

// However long the loop was away: quickly, and without an overflow of what is counted.
static void skips_of_any_length(void **state)
{
    (void)state;
    static const uint64_t n[] = {1,
                                 49,
                                 50,
                                 51,
                                 100,
                                 UINT32_MAX,
                                 UINT64_C(1) << 32,
                                 UINT64_C(1) << 62,
                                 UINT64_C(1) << 63};

    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        struct budget b;
        const uint32_t part = n[i] < 50 ? (uint32_t)n[i] : 50;
        budget_init(&b, NULL, 5, 50);
        budget_add(&b, 5, 0);
        budget_skip(&b, n[i]);
        assert_int_equal(b.in_window, part);
        assert_true(b.samples == n[i] + 1);
        assert_true(b.missed == n[i]);
        assert_int_equal(b.consecutive, n[i] < UINT32_MAX ? n[i] : UINT32_MAX);
        assert_int_equal(b.consecutive_max, b.consecutive);
        budget_add(&b, 6, 0); // one more: neither runs over
        assert_int_equal(b.consecutive, n[i] < UINT32_MAX ? n[i] + 1 : UINT32_MAX);
        assert_true(b.missed == n[i] + 1);
        for (int k = 0; k < 50; k++) {
            assert_true(b.in_window > 0);
            budget_add(&b, 5, 0);
        }
        assert_int_equal(b.in_window, 0);
    }
}

static void forgiven_is_forgotten_but_not_uncounted(void **state)
{
    (void)state;
    struct budget b;

    for (int window = 1; window <= BUDGET_WINDOW_MOST; window += 31) {
        budget_init(&b, NULL, 5, window);
        budget_skip(&b, 5000);
        budget_add(&b, 9, 77);
        assert_true(budget_over(&b));
        budget_forgive(&b);
        assert_false(budget_over(&b));
        assert_int_equal(b.in_window, 0);
        assert_int_equal(b.consecutive, 0);
        assert_int_equal(b.consecutive_max, 5001);
        assert_int_equal(b.samples, 5001);
        assert_int_equal(b.missed, 5001);
        assert_int_equal(b.worst_ns, 9);
        assert_int_equal(b.worst_tick, 77);
        assert_int_equal(b.limit_ns, 5);
        assert_int_equal(b.window, window);
        for (int k = 0; k < window; k++) { // nothing is left of the ring
            budget_add(&b, k % 10 ? 5 : 6, 0);
            assert_int_equal(b.in_window, k / 10 + 1);
        }
    }
}

// The twin keeps every sample there ever was and counts anew each time.
static void the_window_against_a_naive_twin(void **state)
{
    (void)state;
    enum { N = 100000 };
    static bool missed[4 * N];
    static const int window[] = {1, 2, 7, 50, 63, 64, 65, 128, 250, 1000, 1024};
    const int windows = sizeof window / sizeof *window;
    int overs = 0;

    for (int w = 0; w < windows; w++) {
        struct budget b;
        uint64_t total = 0, from = 0, n = 0, row = 0, row_max = 0;
        budget_init(&b, NULL, 500, window[w]);
        for (int i = 0; i < N / windows + 1; i++) {
            // Bad times and good ones, or a window of 1000 would never be near a tenth.
            const uint64_t share = i / 700 % 3 == 0 ? 2 : i / 700 % 3 == 1 ? 10 : 30;
            const uint64_t what = rnd() % 1000;
            if (what == 0) {
                budget_forgive(&b);
                from = n;
                row = 0;
            } else if (what < 4) {
                uint64_t skipped = rnd() % 40;
                budget_skip(&b, skipped);
                for (; skipped > 0; skipped--, row++, total++)
                    missed[n++] = true;
            } else {
                bool miss = rnd() % share == 0;
                budget_add(&b, miss ? 501 + (ns_t)(rnd() % 9) : (ns_t)(rnd() % 501), n);
                missed[n++] = miss;
                total += miss;
                row = miss ? row + 1 : 0;
            }
            row_max = row > row_max ? row : row_max;
            uint64_t first = n > (uint64_t)window[w] ? n - (uint64_t)window[w] : 0,
                     in = 0;
            for (uint64_t k = first > from ? first : from; k < n; k++)
                in += missed[k];
            assert_int_equal(b.in_window, in);
            assert_int_equal(b.missed, total);
            assert_int_equal(b.samples, n);
            assert_int_equal(b.consecutive, row);
            assert_int_equal(b.consecutive_max, row_max);
            assert_int_equal(budget_over(&b), (double)in / window[w] > 0.1);
            overs += budget_over(&b);
        }
    }
    assert_in_range(overs, N / 10, N * 9 / 10); // both were seen
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_miss_is_more_than_the_limit),
        cmocka_unit_test(windows_are_cut_to_what_there_is),
        cmocka_unit_test(six_of_fifty_are_over_and_five_are_not),
        cmocka_unit_test(misses_in_a_row),
        cmocka_unit_test(the_worst_and_its_tick),
        cmocka_unit_test(skips_of_any_length),
        cmocka_unit_test(forgiven_is_forgotten_but_not_uncounted),
        cmocka_unit_test(the_window_against_a_naive_twin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
