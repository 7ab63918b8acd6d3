// Joint states from message to sample, in virtual time: what is accepted, what is refused
// for its form or its time, and when a new clock is believed.
#include "tests/unit/intake_fixture.h"

// ---- what is accepted ----------------------------------------------------------------

static void test_first_sample(void **state)
{
    struct rig *r = *state;
    struct joint_sample s;
    char text[CODEC_WHY_MAX];

    assert_int_equal(intake_last_refusal(r->in, text), CODEC_OK);
    assert_string_equal(text, "");
    assert_int_equal(r->mark->refused_joint, -1);
    r->now = 5;
    make(r, WALL, -3, 100, false);
    intake_joints(r->in, r->message, r->size, r->now);
    assert_int_equal(slot_count(&r->board.joints), 0); // not yet
    counts(r, 0, 0, 0);
    intake_publish(r->in);
    s = newest(r);
    assert_int_equal(s.number, 1);
    assert_int_equal(s.n, JOINTS);
    assert_int_equal(s.received_ns, 5);
    assert_int_equal(s.capture_ns, 5);
    assert_true(s.pos[0] == -3 && s.pos[1] == 100);
    counts(r, 1, 0, 0);
    intake_publish(r->in); // nothing new
    assert_int_equal(slot_count(&r->board.joints), 1);
    assert_int_equal(slot_count(&r->board.history), 1);
}

static void test_joint_order_is_by_name(void **state)
{
    struct rig *r = *state;

    for (int straight = 0; straight < 2; straight++) {
        r->now += PERIOD;
        make(r, WALL + r->now, 0.125, -0.125, straight);
        take(r);
        assert_true(newest(r).pos[0] == 0.125 && newest(r).pos[1] == -0.125);
    }
    counts(r, 2, 0, 0);
}

static void test_history_and_drain(void **state)
{
    struct rig *r = *state;
    static struct joint_history h;

    for (int i = 1; i <= 300; i++) {
        r->now += PERIOD;
        make(r, WALL + r->now, i / 1024.0, 0, true);
        intake_joints(r->in, r->message, r->size, r->now);
    }
    counts(r, 0, 0, 0);
    intake_publish(r->in);
    counts(r, 300, 0, 0);
    assert_int_equal(slot_count(&r->board.joints), 1);
    assert_true(slot_read(&r->board.history, &h) == 1);
    assert_int_equal(h.count, 300);
    for (uint64_t i = 300 - BOARD_HISTORY; i < 300; i++) {
        const struct joint_sample *s = &h.sample[i % BOARD_HISTORY];

        assert_int_equal(s->number, i + 1);
        assert_int_equal(s->capture_ns, (ns_t)(i + 1) * PERIOD);
        assert_true(s->pos[0] == (double)(i + 1) / 1024);
    }
}

static void test_minus_zero(void **state)
{
    struct rig *r = *state;

    at(r, 0.0);
    at(r, -0.0);
    at(r, 0.0);
    counts(r, 3, 0, 0);
}

static void test_without_stamps(void **state)
{
    struct rig *r = *state;

    for (int i = 0; i < 5; i++) {
        r->now += PERIOD;
        stamped(r, 0, 0);
        assert_int_equal(newest(r).capture_ns, r->now);
    }
    counts(r, 5, 0, 0);
    r->now += PERIOD;
    stamped(r, 0, 0.25 + 0.0301); // and still no leaps
    counts(r, 5, 1, 1);
}

// ---- form ----------------------------------------------------------------------------

static void test_form(void **state)
{
    struct rig *r = *state;

    many(r, 3, 0);
    for (uint32_t i = 1; i <= 3; i++) {
        r->now += PERIOD;
        make(r, WALL + r->now, 0, 0, true);
        *(uint8_t *)memmem(r->message, r->size, "turn", 4) = 'b';
        take(r);
        counts(r, 3, i, i);
        last_was(r, REASON_JOINTS_INVALID, -1, CODEC_WRONG_NAMES, "'burn' is no joint");
    }
    r->size = 0;
    take(r);
    counts(r, 3, 4, 4);
    last_was(r, REASON_JOINTS_INVALID, -1, CODEC_EMPTY, "no bytes");
    intake_part(r->in, &(struct codec_part){"x", 1, true, true}, r->now);
    intake_part(r->in, &(struct codec_part){"y", 1, false, false}, r->now); // of the same
    counts(r, 3, 5, 5);
    last_was(r, REASON_JOINTS_INVALID, -1, CODEC_UNPARSABLE, "several parts");
    at(r, 0);
    counts(r, 4, 5, 0); // one good one ends it
}

static void test_not_finite(void **state)
{
    struct rig *r = *state;
    const double bad[] = {NAN, INFINITY, -INFINITY, 1e30, -1e6};

    many(r, 2, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t before = r->mark->refused;

        for (int joint = 0; joint < JOINTS; joint++) {
            r->now += PERIOD;
            make(r, WALL + r->now, joint ? 0 : bad[i], joint ? bad[i] : 0, i % 2);
            take(r);
            last_was(r, REASON_JOINTS_NOT_FINITE, joint, CODEC_NOT_FINITE, names[joint]);
            if (isnan(bad[i]))
                assert_true(isnan(r->mark->refused_value));
            else
                assert_true(r->mark->refused_value == bad[i]);
        }
        counts(r, 2 + i, before + 2, 2);
        at(r, 0);
        counts(r, 3 + i, before + 2, 0);
    }
    r->now += PERIOD;
    make(r, WALL + r->now, 999999, 0, true); // finite, and not believed either
    take(r);
    last_was(
        r, REASON_JOINTS_JUMP, 0, CODEC_IMPOSSIBLE,
        "joint 'lift' went from 0 to 1e+06 in 10 ms, by 0.28 at most: a second driver? "
        "else raise safety.max_jump");
}

// Every second one is bad: the good ones are good.
static void test_intermittent_form_is_no_row(void **state)
{
    struct rig *r = *state;

    armed(r, true);
    for (uint64_t i = 1; i <= 20; i++) {
        at(r, 0);
        counts(r, i, i - 1, 0);
        at(r, NAN);
        counts(r, i, i, 1);
    }
}

// ---- time ----------------------------------------------------------------------------

static void test_duplicate(void **state)
{
    struct rig *r = *state;

    at(r, 0);
    at(r, NAN);
    for (uint64_t i = 1; i <= 100; i++) {
        stamped(r, WALL + PERIOD, 0.01); // whatever is in it
        r->now += PERIOD;
        assert_int_equal(r->mark->duplicate, i);
        counts(r, 1, 1, 1); // neither bad nor good
        assert_true(newest(r).pos[0] == 0);
    }
}

static void test_out_of_order(void **state)
{
    struct rig *r = *state;

    many(r, 2, 0);
    at(r, NAN);
    stamped(r, WALL + PERIOD, 0);
    counts(r, 2, 1, 1);
    assert_int_equal(r->mark->out_of_order, 1);
    assert_int_equal(newest(r).capture_ns, 2 * PERIOD);
    at(r, 0);
    counts(r, 3, 1, 0);
}

static void test_clock_armed(void **state)
{
    const int64_t by[] = {HOUR, -HOUR, 500 * MS + 1, -500 * MS - 1};

    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        struct rig *r = *state;

        many(r, 3, 0);
        armed(r, true);
        for (uint32_t k = 1; k <= 1000; k++) {
            r->now += PERIOD;
            stamped(r, WALL + r->now + by[i], 0);
            counts(r, 3, k, k);
        }
        last_was(r, REASON_JOINTS_CLOCK, -1, CODEC_BAD_STAMP,
                 i % 2 ? " ms be" : "ahead of");
        // The fault has stopped the arm: now it is believed, and all is well.
        armed(r, false);
        r->now += PERIOD;
        stamped(r, WALL + r->now + by[i], 0);
        counts(r, 4, 1000, 0);
        assert_int_equal(newest(r).capture_ns, r->now);
        many(r, 3, 0); // and back, which takes three
        counts(r, 5, 1002, 0);
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
    }
}

static void test_clock_disarmed(void **state)
{
    struct rig *r = *state;

    many(r, 3, 0);
    for (uint32_t k = 1; k <= 10; k++) {
        r->now += PERIOD;
        stamped(r, WALL + r->now - HOUR, 0);
        counts(r, k < 3 ? 3 : k + 1, k < 2 ? 1 : 2, k < 3 ? k : 0);
    }
}

static void test_clock_steps_are_told(void **state)
{
    struct rig *r = *state;
    int64_t by = 0;
    const int64_t step[] = {49 * MS, 50 * MS, 500 * MS, 60 * MS};
    const uint64_t told[] = {0, 1, 2, 3};

    armed(r, true);
    many(r, 3, 0);
    for (int i = 0; i < 4; i++) {
        by += step[i];
        for (int k = 0; k < 10; k++) {
            r->now += PERIOD;
            stamped(r, WALL + r->now + by, 0);
            if (k > 0) // the first that is so far ahead must be confirmed
                assert_int_equal(newest(r).capture_ns, r->now);
        }
        assert_int_equal(r->mark->clock_jumps, told[i]);
        assert_int_equal(r->mark->refused, told[i]);
    }
    // Back again by 60 ms: five older ones, one the same, then late by that, told once.
    by -= 60 * MS;
    for (int k = 0; k < 20; k++) {
        r->now += PERIOD;
        stamped(r, WALL + r->now + by, 0);
    }
    assert_int_equal(r->mark->out_of_order, 5);
    assert_int_equal(r->mark->duplicate, 1);
    assert_int_equal(r->mark->clock_jumps, 4);
    assert_in_range(r->now - newest(r).capture_ns, 59 * MS, 60 * MS);
    counts(r, 3 + 40 - 3 + 14, 3, 0);
}

// Nobody looks at a clock (teardown sees to that): whatever the local wall clock does,
// the same messages at the same times give the same samples to the bit.
static void test_local_wall_clock_changes_nothing(void **state)
{
    struct rig *r = *state;

    for (int i = 0; i < 1000; i++) {
        at(r, sin(i * 0.01));
        assert_int_equal(newest(r).capture_ns, r->now);
        (void)clock_wall_ns(); // jumps by two weeks
        looks = 0;
    }
    counts(r, 1000, 0, 0);
    assert_int_equal(r->mark->clock_jumps + r->mark->out_of_order + r->mark->duplicate,
                     0);
}

// A driver on this machine follows the clock, and the arm does not stop for it.
static void test_local_clock_is_set(void **state)
{
    struct rig *r = *state;
    const int64_t by[] = {HOUR, -HOUR, -200 * MS, 200 * MS};
    int64_t set = 0;

    armed(r, true);
    many(r, 3, 0);
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        intake_wall_set(r->in, by[i], r->now);
        for (int k = 0; k < 100; k++) {
            r->now += PERIOD;
            stamped(r, WALL + r->now + set + (k > 0 ? by[i] : 0), 0); // one on its way
            assert_int_equal(newest(r).capture_ns, r->now);
        }
        set += by[i];
    }
    assert_int_equal(r->mark->refused + r->mark->out_of_order + r->mark->clock_jumps, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_first_sample),
        TEST(test_joint_order_is_by_name),
        TEST(test_history_and_drain),
        TEST(test_minus_zero),
        TEST(test_without_stamps),
        TEST(test_form),
        TEST(test_not_finite),
        TEST(test_intermittent_form_is_no_row),
        TEST(test_duplicate),
        TEST(test_out_of_order),
        TEST(test_clock_armed),
        TEST(test_clock_disarmed),
        TEST(test_clock_steps_are_told),
        TEST(test_local_wall_clock_changes_nothing),
        TEST(test_local_clock_is_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
