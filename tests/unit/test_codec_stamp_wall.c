// The local wall clock is set: for a sender on this machine, and for one that is not.
#include "tests/unit/stamp_fixture.h"

// The local wall clock is set while a sender on this machine goes on: armed or not
// nothing changes. `behind`: messages that were stamped before it, and come after.
static void test_local_clock_is_set(void **state)
{
    const int64_t by[] = {2 * MS,   -2 * MS,   15 * MS,  -15 * MS,  60 * MS, -60 * MS,
                          400 * MS, -400 * MS, NS_PER_S, -NS_PER_S, HOUR,    -HOUR};

    (void)state;
    for (int learn = 0; learn < 2; learn++)
        for (int behind = 0; behind < 3; behind++)
            for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
                struct codec_stamp s = {0};
                ns_t t = begin(&s, learn);

                codec_stamp_wall_set(&s, by[i], t + 1);
                for (int k = 0; k < 300; k++) {
                    ns_t capture;

                    t += PERIOD;
                    assert_int_equal(
                        map(&s, WALL + t + (k < behind ? 0 : by[i]), t, learn, &capture),
                        CODEC_TIME_OK);
                    assert_int_equal(capture, t);
                }
            }
}

// Twice in a row, the second before a message came.
static void test_local_clock_is_set_twice(void **state)
{
    struct codec_stamp s = {0};
    ns_t t = begin(&s, ARMED);

    (void)state;
    codec_stamp_wall_set(&s, HOUR, t);
    codec_stamp_wall_set(&s, 5 * HOUR, t + MS);
    t += PERIOD;
    assert_int_equal(captured(&s, WALL + 6 * HOUR + t, t, ARMED), t);
    codec_stamp_wall_set(&s, -6 * HOUR, t);
    t += PERIOD;
    assert_int_equal(captured(&s, WALL + t, t, ARMED), t);
}

// A sender with a clock of its own: every message as if nothing had been set, whatever
// its delays; and its own jumps are still refused, unless by chance by just as much.
static void test_local_clock_is_not_the_senders(void **state)
{
    const int64_t by[] = {60 * MS, -60 * MS, 300 * MS, -300 * MS, HOUR, -HOUR};

    (void)state;
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        struct codec_stamp s = {0}, twin = {0};
        ns_t t = begin(&s, ARMED), last = begin(&twin, ARMED);

        codec_stamp_wall_set(&s, by[i], t);
        for (int k = 0; k < 3000; k++) {
            ns_t received = (t += PERIOD) + random_below(25 * MS), a, b;

            received = last = received > last ? received : last + 1;
            assert_int_equal(map(&s, WALL + t, received, ARMED, &a),
                             map(&twin, WALL + t, received, ARMED, &b));
            assert_int_equal(a, b);
        }
        begin(&s, ARMED);
        t = NS_PER_S;
        codec_stamp_wall_set(&s, by[i], t);
        t += PERIOD;
        assert_int_equal(verdict(&s, WALL + t + by[i] + 2 * HOUR, t, ARMED),
                         CODEC_TIME_JUMP);
        // And after five seconds it is too late.
        t += 5 * NS_PER_S;
        (void)verdict(&s, WALL + t + by[i], t, ARMED); // one alone ahead is not believed
        t += PERIOD;
        assert_int_equal(verdict(&s, WALL + t + by[i], t, ARMED),
                         by[i] > 500 * MS || by[i] < -500 * MS ? CODEC_TIME_JUMP
                         : by[i] > 0                           ? CODEC_TIME_STEP
                                     : CODEC_TIME_OK); // told with the one before
    }
}

// How well a message must fit to be that of a sender on this machine.
static void test_local_clock_bounds(void **state)
{
    const struct {
        int64_t by, stamp; // ahead of the last by, received 500 ms after it
        enum codec_time verdict;
    } row[] = {{HOUR, HOUR + 500 * MS, CODEC_TIME_OK},
               {HOUR, HOUR + 450 * MS + 1, CODEC_TIME_OK},
               {HOUR, HOUR + 450 * MS, CODEC_TIME_JUMP}, // STEP late
               {HOUR, HOUR + 550 * MS - 1, CODEC_TIME_OK},
               {HOUR, HOUR + 550 * MS, CODEC_TIME_JUMP},
               {-HOUR, -HOUR + 500 * MS, CODEC_TIME_OK},
               // As far off either way: it has a clock of its own.
               {-90 * MS, 455 * MS, CODEC_TIME_OK}};

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct codec_stamp s = {0};
        ns_t t = begin(&s, ARMED), capture;

        codec_stamp_wall_set(&s, row[i].by, t);
        assert_int_equal(map(&s, WALL + t + row[i].stamp, t + 500 * MS, ARMED, &capture),
                         row[i].verdict);
        if (i == 6)
            assert_true(capture < t + 456 * MS);
    }
    // The stamp of the last one in the new time: nothing new.
    struct codec_stamp s = {0};
    ns_t t = begin(&s, ARMED);
    codec_stamp_wall_set(&s, HOUR, t);
    assert_int_equal(verdict(&s, WALL + HOUR + t, t + 10 * MS, ARMED), CODEC_TIME_JUMP);
    // Until five seconds after it was set, and then it was never set.
    t = begin(&s, ARMED);
    codec_stamp_wall_set(&s, HOUR, t);
    t += 5 * NS_PER_S;
    assert_int_equal(captured(&s, WALL + HOUR + t, t, ARMED), t);
    codec_stamp_wall_set(&s, HOUR, t);
    t += 5 * NS_PER_S + 1;
    codec_stamp_wall_set(&s, -3 * HOUR, t);
    t += PERIOD;
    assert_int_equal(captured(&s, WALL - 2 * HOUR + t, t, ARMED), t);
}

// A sender that is frozen stays so.
static void test_frozen_when_the_clock_is_set(void **state)
{
    struct codec_stamp s = {0};
    ns_t t = begin(&s, AT_REST);

    (void)state;
    codec_stamp_wall_set(&s, -NS_PER_S, t + NS_PER_S);
    assert_int_equal(verdict(&s, WALL + t, t + NS_PER_S, AT_REST), CODEC_TIME_SAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_local_clock_bounds),
        cmocka_unit_test(test_local_clock_is_set),
        cmocka_unit_test(test_local_clock_is_set_twice),
        cmocka_unit_test(test_local_clock_is_not_the_senders),
        cmocka_unit_test(test_frozen_when_the_clock_is_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
