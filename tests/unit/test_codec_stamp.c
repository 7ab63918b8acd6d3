// How sender stamps become capture times: against a brute-force twin, and every refusal.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "daemon/codec.h"

#define WALL (INT64_C(1700000000) * NS_PER_S) // the sender's clock at our time 0
#define MS   NS_PER_MS

static ns_t mapped(struct codec_stamp *s, int64_t stamp, ns_t received)
{
    ns_t capture = -1;
    int r = codec_stamp_map(s, stamp, received, &capture);

    return r == 0 ? capture : r;
}

static void test_no_stamp_means_receipt(void **state)
{
    struct codec_stamp s = {0};

    (void)state;
    assert_int_equal(mapped(&s, 0, 12345), 12345);
    assert_int_equal(s.samples, 0);
}

static void test_quickest_message_sets_the_offset(void **state)
{
    struct codec_stamp s = {0};

    (void)state;
    // Captured at 0, 10, 20, ... ms; the first is 8 ms on its way, the second 1 ms, the
    // third 30.
    assert_int_equal(mapped(&s, WALL, 8 * MS), 8 * MS);
    assert_int_equal(mapped(&s, WALL + 10 * MS, 11 * MS), 11 * MS);
    // Known now: 1 ms is possible. 29 ms too late, and seen as such (less 19.5 us
    // forgotten).
    assert_int_equal(mapped(&s, WALL + 20 * MS, 50 * MS), 21 * MS + 39 * MS / 2000);
}

// The offset as it is defined, from all messages so far: the smallest of what each showed
// plus what was forgotten since.
static void test_twin(void **state)
{
    enum { N = 2000 };
    static int64_t seen[N];
    static ns_t at[N];
    struct codec_stamp s = {0};
    uint64_t random = 1;

    (void)state;
    for (int i = 0; i < N; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        ns_t sent = 5 * MS * (i + 1), received = sent + (ns_t)(random >> 33) % (40 * MS);
        int64_t best = INT64_MAX;
        ns_t capture;

        if (i > 0 && received <= at[i - 1]) // the wire keeps order
            received = at[i - 1] + 1;
        at[i] = received;
        seen[i] = received - (WALL + sent);
        capture = mapped(&s, WALL + sent, received);
        for (int k = 0; k <= i; k++)
            if (seen[k] + (received - at[k]) / 2000 < best)
                best = seen[k] + (received - at[k]) / 2000;
        assert_true(capture <= received);
        // Each step of the filter rounds down by less than 1 ns.
        assert_true(llabs(capture - (WALL + sent + best)) <= i + 1);
    }
}

static void test_slow_drift_is_followed(void **state)
{
    struct codec_stamp s = {0};

    (void)state;
    // Sender's clock slow by 100 ppm for an hour, 1 ms on the way: the age stays 1 ms at
    // most 0.1 ms more.
    for (int i = 1; i <= 36000; i++) {
        ns_t sent = 100 * MS * i;
        ns_t capture = mapped(&s, WALL + sent - sent / 10000, sent + MS);

        assert_true(capture <= sent + MS && capture >= sent + MS - 110 * NS_PER_US);
    }
}

static void test_jumps_are_refused_until_silence(void **state)
{
    const int64_t jumps[] = {601 * MS, -601 * MS, 3600 * NS_PER_S + MS,
                             -3600 * NS_PER_S - MS};

    (void)state;
    for (size_t j = 0; j < sizeof jumps / sizeof *jumps; j++) {
        struct codec_stamp s = {0};
        ns_t t = 0;

        for (; t < NS_PER_S; t += 10 * MS)
            assert_int_equal(mapped(&s, WALL + t + 1, t), t);
        for (; t < 2990 * MS; t += 10 * MS)
            assert_int_equal(mapped(&s, WALL + t + 1 + jumps[j], t), -ERANGE);
        t += 20 * MS; // the last good one was at 990 ms
        assert_int_equal(mapped(&s, WALL + t + 1 + jumps[j], t), t);
        assert_int_equal(mapped(&s, WALL + t + 1 + jumps[j] + MS, t + MS), t + MS);
    }
}

static void test_reset_follows_at_once(void **state)
{
    struct codec_stamp s = {0};

    (void)state;
    assert_int_equal(mapped(&s, WALL, 0), 0);
    assert_int_equal(mapped(&s, WALL - NS_PER_S, MS), -ERANGE);
    codec_stamp_reset(&s);
    assert_int_equal(mapped(&s, WALL - NS_PER_S, 2 * MS), 2 * MS);
}

static void test_same_stamp_is_never_fresh(void **state)
{
    struct codec_stamp s = {0};

    (void)state;
    assert_int_equal(mapped(&s, WALL, 0), 0);
    for (ns_t t = 33 * MS; t < 20 * NS_PER_S; t += 33 * MS)
        assert_int_equal(mapped(&s, WALL, t), -EALREADY);
}

static void test_older_is_refused(void **state)
{
    struct codec_stamp s = {0};

    (void)state;
    assert_int_equal(mapped(&s, WALL + 20 * MS, 20 * MS), 20 * MS);
    assert_int_equal(mapped(&s, WALL + 10 * MS, 21 * MS), -ERANGE);
    assert_int_equal(mapped(&s, WALL + 30 * MS, 30 * MS), 30 * MS);
}

static void test_absurd_stamps(void **state)
{
    struct codec_stamp s = {0};
    int64_t wall;

    (void)state;
    assert_int_equal(mapped(&s, -1, MS), -ERANGE);
    assert_int_equal(mapped(&s, INT64_MIN, MS), -ERANGE);
    assert_int_equal(mapped(&s, INT64_MAX, MS), -ERANGE);
    assert_int_equal(mapped(&s, INT64_MAX / 2, MS), MS); // far, but no overflow anywhere
    assert_int_equal(mapped(&s, 1, 2 * MS), -ERANGE);
    assert_int_equal(codec_wall(1, 5, &wall), CODEC_OK);
    assert_int_equal(wall, NS_PER_S + 5);
    assert_int_equal(codec_wall(-1, 0, &wall), CODEC_BAD_STAMP);
    assert_int_equal(codec_wall(1, -1, &wall), CODEC_BAD_STAMP);
    assert_int_equal(codec_wall(1, 1000000000, &wall), CODEC_BAD_STAMP);
    assert_int_equal(codec_wall(INT64_MAX, 0, &wall), CODEC_BAD_STAMP);
    assert_int_equal(codec_wall(INT64_MAX / 2 / NS_PER_S, 0, &wall), CODEC_BAD_STAMP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_stamp_means_receipt),
        cmocka_unit_test(test_quickest_message_sets_the_offset),
        cmocka_unit_test(test_twin),
        cmocka_unit_test(test_slow_drift_is_followed),
        cmocka_unit_test(test_jumps_are_refused_until_silence),
        cmocka_unit_test(test_reset_follows_at_once),
        cmocka_unit_test(test_same_stamp_is_never_fresh),
        cmocka_unit_test(test_older_is_refused),
        cmocka_unit_test(test_absurd_stamps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
