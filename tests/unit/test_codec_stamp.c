// How sender stamps become capture times: against brute-force twins, and what is older
// than the one before, or the same.
#include "tests/unit/stamp_fixture.h"

static void test_no_stamp_means_receipt(void **state)
{
    struct codec_stamp s = {0};

    (void)state;
    assert_int_equal(captured(&s, 0, 12345, ARMED), 12345);
    assert_int_equal(s.samples, 0);
    begin(&s, ARMED);
    assert_int_equal(captured(&s, 0, HOUR, ARMED), HOUR); // in between as well
}

static void test_quickest_message_sets_the_offset(void **state)
{
    struct codec_stamp s = {0};

    (void)state;
    // Captured at 0, 10, 20, ... ms; the first is 8 ms on its way, the second 1 ms, the
    // third 30.
    assert_int_equal(captured(&s, WALL, 8 * MS, ARMED), 8 * MS);
    assert_int_equal(captured(&s, WALL + 10 * MS, 11 * MS, ARMED), 11 * MS);
    // Known now: 1 ms is possible. 29 ms too late, and seen as such (less 19.5 us
    // forgotten).
    assert_int_equal(captured(&s, WALL + 20 * MS, 50 * MS, ARMED),
                     21 * MS + 39 * MS / 2000);
    // At rest nothing is forgotten within the second.
    codec_stamp_reset(&s);
    assert_int_equal(captured(&s, WALL, 8 * MS, AT_REST), 8 * MS);
    assert_int_equal(captured(&s, WALL + 10 * MS, 11 * MS, AT_REST), 11 * MS);
    assert_int_equal(captured(&s, WALL + 20 * MS, 50 * MS, AT_REST), 21 * MS);
}

// The offset as it is defined while armed, from all messages so far: the smallest of what
// each showed plus what was forgotten since.
static void test_twin_armed(void **state)
{
    enum { N = 2000 };
    static int64_t seen[N];
    static ns_t at[N];
    struct codec_stamp s = {0};

    (void)state;
    for (int i = 0; i < N; i++) {
        ns_t sent = 5 * MS * (i + 1), received = sent + random_below(40 * MS);
        int64_t best = INT64_MAX;
        ns_t capture;

        if (i > 0 && received <= at[i - 1]) // the wire keeps order
            received = at[i - 1] + 1;
        at[i] = received;
        seen[i] = received - (WALL + sent);
        capture = captured(&s, WALL + sent, received, ARMED);
        for (int k = 0; k <= i; k++)
            if (seen[k] + (received - at[k]) / 2000 < best)
                best = seen[k] + (received - at[k]) / 2000;
        // Each step of the filter rounds down by less than 1 ns.
        assert_true(llabs(capture - (WALL + sent + best)) <= i + 1);
    }
}

// At rest: never less than the smallest of the last two seconds and a message, never more
// than that of the last one.
static void test_window_at_rest(void **state)
{
    enum { N = 5000 };
    static int64_t seen[N];
    static ns_t at[N];
    struct codec_stamp s = {0};

    (void)state;
    for (int i = 0; i < N; i++) {
        ns_t sent = 5 * MS * (i + 1);
        ns_t slow = i / 1000 % 2 ? 100 * MS : 0; // for 5 s the way is longer, or not
        ns_t received = sent + slow + random_below(40 * MS);
        int64_t one = INT64_MAX, two = INT64_MAX;
        ns_t capture;

        if (i > 0 && received <= at[i - 1])
            received = at[i - 1] + 1;
        at[i] = received;
        seen[i] = received - (WALL + sent);
        capture = captured(&s, WALL + sent, received, AT_REST);
        for (int k = i; k >= 0 && received - at[k] < 2050 * MS; k--) {
            if (received - at[k] <= NS_PER_S && seen[k] < one)
                one = seen[k];
            if (seen[k] < two)
                two = seen[k];
        }
        assert_true(capture >= WALL + sent + two && capture <= WALL + sent + one);
    }
}

static void test_slow_drift_is_followed(void **state)
{
    (void)state;
    // Sender's clock slow or fast by 100 ppm for an hour, 1 ms on the way: the age stays
    // 1 ms at most; armed and slow at most 0.1 ms more, at rest what drifts in two
    // seconds.
    for (int k = 0; k < 4; k++) {
        struct codec_stamp s = {0};
        bool learn = k % 2;

        for (int i = 1; i <= 36000; i++) {
            ns_t sent = 100 * MS * i;
            int64_t drift = k < 2 ? -sent / 10000 : sent / 10000;
            ns_t capture = captured(&s, WALL + sent + drift, sent + MS, learn);

            assert_true(capture >= sent + MS - (learn ? 210 : 110) * NS_PER_US);
        }
    }
}

// From armed to at rest, and the way is 300 ms longer from then on: exactly when the
// window has forgotten the shorter one. A second has three messages at least.
static void test_window_exactly(void **state)
{
    const struct {
        ns_t period;
        int learned; // the first message that is on time again
    } row[] = {{PERIOD, 170}, {600 * MS, 7}, {10 * NS_PER_S, 7}, {333 * MS, 8}};

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct codec_stamp s = {0};
        ns_t t = begin(&s, ARMED);

        for (int k = 1; k < row[i].learned + 5; k++) {
            t += row[i].period;
            assert_int_equal(captured(&s, WALL + t, t + 300 * MS, AT_REST),
                             t + (k < row[i].learned ? 0 : 300 * MS));
        }
    }
    // What came before it was armed does not count for the second after.
    struct codec_stamp u = {0};
    ns_t v = begin(&u, AT_REST);
    captured(&u, WALL + v + PERIOD, v + PERIOD, ARMED);
    for (int k = 1; k < 12; k++)
        assert_int_equal(captured(&u, WALL + v + PERIOD + k * 600 * MS,
                                  v + PERIOD + k * 600 * MS + 300 * MS, AT_REST),
                         v + PERIOD + k * 600 * MS + (k < 7 ? 0 : 300 * MS));
    // The same from the very first message on, whatever our clock says.
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct codec_stamp s = {0};
        ns_t t = 1000 * NS_PER_S;
        int first = row[i].period >= NS_PER_S / 2 ? 6 : row[i].period > PERIOD ? 7 : 170;

        captured(&s, WALL + t, t, AT_REST);
        for (int k = 1; k < first + 5; k++) {
            t += row[i].period;
            assert_int_equal(captured(&s, WALL + t, t + 300 * MS, AT_REST),
                             t + (k < first ? 0 : 300 * MS));
        }
    }
}

// What was learned slowly while armed holds at rest as well.
static void test_drift_then_rest(void **state)
{
    struct codec_stamp s = {0};
    ns_t t = begin(&s, ARMED);

    (void)state;
    for (int i = 0; i < 10000; i++) { // a clock slow by 100 ppm for 1000 s: 100 ms
        t += 100 * MS;
        captured(&s, WALL + t - (t - NS_PER_S) / 10000, t, ARMED);
    }
    for (int i = 0; i < 10; i++) {
        t += 100 * MS;
        assert_in_range(t - captured(&s, WALL + t - (t - NS_PER_S) / 10000, t, AT_REST),
                        0, MS);
    }
    assert_int_equal(s.samples, 101 + 10010);
}

// ---- order ---------------------------------------------------------------------------

static void test_same_stamp_is_never_fresh(void **state)
{
    (void)state;
    for (int learn = 0; learn < 2; learn++) {
        struct codec_stamp s = {0};
        ns_t t = begin(&s, learn);

        for (int i = 0; i < 1000; i++)
            assert_int_equal(verdict(&s, WALL + NS_PER_S, t += 33 * MS, learn),
                             CODEC_TIME_SAME);
    }
}

static void test_reordered(void **state)
{
    (void)state;
    for (int learn = 0; learn < 2; learn++) {
        struct codec_stamp s = {0};
        ns_t t = begin(&s, learn);

        for (int i = 0; i < 50; i++, t += 20 * MS) { // every second pair swapped
            assert_int_equal(captured(&s, WALL + t + 20 * MS, t + 20 * MS, learn),
                             t + 20 * MS);
            assert_int_equal(verdict(&s, WALL + t + 10 * MS, t + 20 * MS + 1, learn),
                             CODEC_TIME_BACK);
        }
    }
}

// A clock that hardly moves: after half a second nothing of it is accepted, and it is
// never taken for a new one, however well it agrees with itself.
static void test_creeping_clock(void **state)
{
    (void)state;
    for (int learn = 0; learn < 2; learn++) {
        struct codec_stamp s = {0};
        ns_t t = begin(&s, learn), capture, last = t;

        for (int i = 1; i <= 2000; i++) {
            enum codec_time v = map(&s, WALL + last + i, t += PERIOD, learn, &capture);

            if (v <= CODEC_TIME_STEP)
                assert_true(capture <= last + MS); // as old as it is
            assert_int_equal(v > CODEC_TIME_STEP, t > last + 500 * MS + i);
        }
    }
}

static void test_reset_follows_at_once(void **state)
{
    struct codec_stamp s = {0};

    (void)state;
    assert_int_equal(captured(&s, WALL, 0, ARMED), 0);
    assert_int_equal(verdict(&s, WALL - NS_PER_S, MS, ARMED), CODEC_TIME_JUMP);
    codec_stamp_reset(&s);
    assert_int_equal(captured(&s, WALL - NS_PER_S, 2 * MS, ARMED), 2 * MS);
}

static void test_absurd_stamps(void **state)
{
    struct codec_stamp s = {0};
    int64_t wall;

    (void)state;
    for (int i = 0; i < 10; i++) { // never learned either
        assert_int_equal(verdict(&s, -1 - i, (1 + i) * MS, AT_REST), CODEC_TIME_JUMP);
        assert_int_equal(verdict(&s, INT64_MIN, MS, AT_REST), CODEC_TIME_JUMP);
        assert_int_equal(verdict(&s, INT64_MAX - 9 + i, MS, AT_REST), CODEC_TIME_JUMP);
    }
    // Far, but no overflow anywhere.
    assert_int_equal(captured(&s, INT64_MAX / 2, MS, ARMED), MS);
    assert_int_equal(verdict(&s, 1, 2 * MS, ARMED), CODEC_TIME_JUMP);
    assert_int_equal(codec_wall(1, 5, &wall), CODEC_OK);
    assert_int_equal(wall, NS_PER_S + 5);
    assert_int_equal(codec_wall(0, 0, &wall), CODEC_OK);
    assert_int_equal(wall, 0);
    assert_int_equal(codec_wall(0, 999999999, &wall), CODEC_OK);
    assert_int_equal(wall, 999999999);
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
        cmocka_unit_test(test_twin_armed),
        cmocka_unit_test(test_window_at_rest),
        cmocka_unit_test(test_slow_drift_is_followed),
        cmocka_unit_test(test_window_exactly),
        cmocka_unit_test(test_drift_then_rest),
        cmocka_unit_test(test_same_stamp_is_never_fresh),
        cmocka_unit_test(test_reordered),
        cmocka_unit_test(test_creeping_clock),
        cmocka_unit_test(test_reset_follows_at_once),
        cmocka_unit_test(test_absurd_stamps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
