// Rate of a stream, content of its frames, and the local wall clock: exact bounds, and
// naive twins.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/content.h"
#include "daemon/pace.h"
#include "daemon/wall.h"

#define PERIOD (10 * NS_PER_MS)

static uint64_t state_of_random = 1;
static uint64_t random_below(uint64_t n)
{
    state_of_random =
        state_of_random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (state_of_random >> 33) % n;
}

// n messages, one every step. What the last one led to.
static bool run(struct pace *p, ns_t *now, int n, ns_t step)
{
    bool slow = false;

    for (int i = 0; i < n; i++)
        slow = pace_add(p, *now += step);
    return slow;
}

static bool after(double percent)
{
    struct pace p;
    ns_t now = NS_PER_S;

    pace_init(&p, 100);
    return run(&p, &now, 500, (ns_t)((double)PERIOD * 100 / percent));
}

static void test_bound(void **state)
{
    struct pace p;
    ns_t now = 0;

    (void)state;
    assert_false(after(91));
    assert_true(after(89));
    assert_false(after(100));
    assert_false(after(1000));
    assert_true(after(10));
    // 100 periods of 90 % are 1111.1 ms: the nanosecond decides.
    pace_init(&p, 100);
    pace_add(&p, 0);
    assert_false(run(&p, &now, 99, PERIOD));
    assert_false(pace_add(&p, INT64_C(1111111111)));
    pace_init(&p, 100);
    now = 0;
    pace_add(&p, 0);
    run(&p, &now, 99, PERIOD);
    assert_true(pace_add(&p, INT64_C(1111111112)));
}

// Too few to judge, however slow they are: the 101st ends the hundredth period.
static void test_needs_a_hundred(void **state)
{
    struct pace p;
    ns_t now = 12345;

    (void)state;
    pace_init(&p, 100);
    assert_false(run(&p, &now, 100, NS_PER_S));
    assert_true(pace_add(&p, now += NS_PER_S));
}

// One period of 105 %, and one lost message in twenty: not slow. One in eight: slow.
static void test_blips(void **state)
{
    struct pace p;
    ns_t now = 0;
    const struct {
        int lost_of;
        bool slow;
    } loss[] = {{20, false}, {11, false}, {8, true}, {2, true}};

    (void)state;
    pace_init(&p, 100);
    assert_false(run(&p, &now, 300, PERIOD));
    assert_false(pace_add(&p, now += PERIOD * 105 / 100));
    assert_false(run(&p, &now, 300, PERIOD));
    for (size_t k = 0; k < sizeof loss / sizeof *loss; k++) {
        bool slow = false;

        pace_init(&p, 100);
        for (int i = 1; i <= 1000; i++) {
            now += PERIOD;
            if (i % loss[k].lost_of != 0)
                slow = pace_add(&p, now);
        }
        assert_int_equal(slow, loss[k].slow);
    }
}

// After a pause, or at a slow rate for a while, it takes a hundred good ones.
static void test_recovers(void **state)
{
    struct pace p;
    ns_t now = 0;

    (void)state;
    pace_init(&p, 100);
    run(&p, &now, 300, PERIOD);
    assert_true(pace_add(&p, now += 2 * NS_PER_S));
    assert_true(run(&p, &now, 99, PERIOD));
    assert_false(pace_add(&p, now += PERIOD));
}

static void test_not_declared(void **state)
{
    struct pace p;
    ns_t now = 0;

    (void)state;
    pace_init(&p, 0);
    assert_false(run(&p, &now, 300, 10 * NS_PER_S));
    pace_init(&p, 0.5);
    assert_false(run(&p, &now, 101, 2 * NS_PER_S));
    assert_true(run(&p, &now, 101, 3 * NS_PER_S));
}

static void test_pace_twin(void **state)
{
    enum { N = 5000 };
    static ns_t at[N];
    struct pace p;
    ns_t now = 0;
    int slow = 0;

    (void)state;
    pace_init(&p, 30);
    for (int i = 0; i < N; i++) {
        bool want = false;

        now += (ns_t)random_below((uint64_t)((i / 500 % 2 ? 70 : 76) * NS_PER_MS));
        at[i] = now;
        if (i >= PACE_SAMPLES)
            want = (double)(now - at[i - PACE_SAMPLES]) * 30 * 0.9 > 100.0 * 1e9;
        assert_int_equal(pace_add(&p, now), want);
        slow += want;
    }
    assert_true(slow > N / 10 && slow < N * 9 / 10);
}

// ---- content --------------------------------------------------------------------------

// Which bytes count: all of a small payload; of a large one at most CONTENT_SAMPLE, and
// some in every stretch of 1/512.
static void test_what_is_sampled(void **state)
{
    const size_t sizes[] = {0, 1, 7, 8, 9, 4095, 4096, 4097, 20000, 65536};

    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t n = sizes[k], counts = 0, gap = 0, widest = 0;
        uint8_t *bytes = malloc(n ? n : 1); // its end is the heap's end
        uint64_t hash;

        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)random_below(256);
        hash = content_hash(bytes, n);
        for (size_t i = 0; i < n; i++) {
            bytes[i] ^= (uint8_t)(1u << random_below(8));
            if (content_hash(bytes, n) != hash) {
                counts++;
                gap = 0;
            } else if (++gap > widest) {
                widest = gap;
            }
            bytes[i] = (uint8_t)random_below(256);
            hash = content_hash(bytes, n);
        }
        assert_int_equal(counts, n <= CONTENT_SAMPLE ? n : CONTENT_SAMPLE);
        assert_true(widest <= 2 * (n / 512) + 512);
        free(bytes);
    }
}

static void test_size_counts(void **state)
{
    static const uint8_t zero[10000];

    (void)state;
    for (size_t n = 0; n + 1 < sizeof zero; n++)
        assert_true(content_hash(zero, n) != content_hash(zero, n + 1));
}

// A picture whose rows are as long as a stretch: a change in one column is seen whichever
// it is.
static void test_no_blind_columns(void **state)
{
    enum { ROWS = 512, WIDTH = 640 };
    static uint8_t picture[ROWS][WIDTH];
    uint64_t hash = content_hash(picture, sizeof picture);
    int seen = 0;

    (void)state;
    for (int column = 0; column < WIDTH; column++) {
        for (int row = 0; row < ROWS; row++)
            picture[row][column] = 1;
        seen += content_hash(picture, sizeof picture) != hash;
        for (int row = 0; row < ROWS; row++)
            picture[row][column] = 0;
    }
    assert_true(seen >= WIDTH * 97 / 100);
}

// Every single bit of every byte counts, and so do their number and their order.
static void test_check_sees_all(void **state)
{
    const size_t sizes[] = {0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 1000};
    uint8_t bytes[1001];

    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t n = sizes[k];
        uint64_t check;

        for (size_t i = 0; i <= n; i++)
            bytes[i] = (uint8_t)random_below(256);
        check = content_check(bytes, n);
        assert_true(check == content_check(bytes, n) && check != 0);
        assert_true(check != content_check(bytes, n + 1));
        for (size_t i = 0; i < 8 * n; i++) {
            bytes[i / 8] ^= (uint8_t)(1u << i % 8);
            assert_true(content_check(bytes, n) != check);
            bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        }
        for (size_t i = 0; n > 64 && i + 64 <= n; i++) { // two words change places
            uint8_t other[1001];

            memcpy(other, bytes, n);
            memcpy(other + i, bytes + i + 32, 8);
            memcpy(other + i + 32, bytes + i, 8);
            assert_true(content_check(other, n) != check);
        }
    }
}

static void test_same(void **state)
{
    static uint8_t a[5000], b[5000];
    struct content c = {0};

    (void)state;
    b[0] = b[4] = b[8] = 1; // the first stretch is 9 bytes long
    assert_false(content_same(&c, a, sizeof a));
    assert_true(content_same(&c, a, sizeof a));
    assert_true(content_same(&c, a, sizeof a));
    assert_false(content_same(&c, b, sizeof b));
    assert_false(content_same(&c, a, sizeof a)); // of the one before, not of any
    assert_false(content_same(&c, a, sizeof a - 1));
    c = (struct content){0}; // the first has none before it, even of hash 0
    assert_false(content_same(&c, a, 0));
    assert_true(content_same(&c, a, 0));
}

// ---- wall -----------------------------------------------------------------------------

static void test_wall(void **state)
{
    struct wall w = {0};
    const int64_t epoch = INT64_C(1700000000) * NS_PER_S;
    int64_t set = epoch;
    ns_t t = 0;

    (void)state;
    assert_int_equal(wall_moved(&w, t, t + set, t + 10), 0); // the first tells nothing
    for (int i = 0; i < 1000; i++) { // slewed by 500 ppm, looked at every second
        t += NS_PER_S;
        set += 500 * NS_PER_US;
        assert_int_equal(wall_moved(&w, t, t + set, t + 10), 0);
    }
    const int64_t by[] = {NS_PER_MS, -NS_PER_MS, 3600 * NS_PER_S, -epoch};
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        t += NS_PER_MS;
        set += by[i];
        assert_int_equal(wall_moved(&w, t, t + set, t + 10), by[i]);
        assert_int_equal(wall_moved(&w, t, t + set, t + 10), 0); // once
    }
    assert_int_equal(wall_moved(&w, t, t + set + NS_PER_MS - 1, t + 10), 0);
    // Who lost his core between the looks knows nothing, and loses nothing.
    t += NS_PER_MS;
    set += NS_PER_S;
    assert_int_equal(wall_moved(&w, t, t + set + 50 * NS_PER_MS, t + 50 * NS_PER_MS), 0);
    assert_int_equal(wall_moved(&w, t, t + set - 1, t + 100 * NS_PER_US),
                     NS_PER_S - NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_needs_a_hundred),
        cmocka_unit_test(test_blips),
        cmocka_unit_test(test_recovers),
        cmocka_unit_test(test_not_declared),
        cmocka_unit_test(test_pace_twin),
        cmocka_unit_test(test_what_is_sampled),
        cmocka_unit_test(test_size_counts),
        cmocka_unit_test(test_no_blind_columns),
        cmocka_unit_test(test_check_sees_all),
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_wall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
