// Joint states from message to sample, in virtual time: what is refused, for what, when that
// becomes a fault, and when a new place or a new clock is believed.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/intake.h"
#include "foxglove/JointStates.pb-c.h"

#define JOINTS 2
#define WALL   (INT64_C(1700000000) * NS_PER_S) // the sender's clock at our time 0
#define MS     NS_PER_MS
#define PERIOD (10 * MS)
#define HOUR   (3600 * NS_PER_S)

// The only clocks in this program. Nothing that is tested here may look at either.
static uint64_t looks;
ns_t clock_now_ns(void)
{
    looks++;
    return 0;
}
ns_t clock_wall_ns(void)
{
    looks++;
    return (ns_t)(looks * 1234567) * NS_PER_S; // jumps by two weeks
}
int clock_sleep_until(ns_t when_ns)
{
    (void)when_ns;
    looks++;
    return 0;
}
ns_t clock_period_ns(double rate_hz)
{
    return (ns_t)((double)NS_PER_S / rate_hz + 0.5);
}

struct rig {
    struct board board;
    struct intake *in;
    struct joints_mark *mark;
    ns_t now;
    uint8_t message[1024];
    size_t size;
};

// Binary fractions, so that the bounds are exact: 1.5 * 2 rad/s and a quarter.
static const struct intake_config config = {
    .joints = JOINTS, .velocity = {2, 4}, .max_jump = 0.25, .rate_hz = 100};
static const char *const names[JOINTS] = {"lift", "turn"};

static int setup(void **state)
{
    struct rig *r = calloc(1, sizeof *r);

    *state = r;
    looks = 0;
    r->mark = &r->board.joint_mark;
    if (board_init(&r->board, 0, 1, JOINTS) != 0)
        return -1;
    r->mark = &r->board.joint_mark;
    return intake_new(&r->in, &config, names, &r->board);
}

static int teardown(void **state)
{
    struct rig *r = *state;

    intake_free(r->in);
    board_free(&r->board);
    free(r);
    return looks == 0 ? 0 : -1;
}

// In the order turn, lift unless straight.
static void make(struct rig *r, int64_t stamp, double lift, double turn, bool straight)
{
    static char name[JOINTS][8] = {"lift", "turn"};
    Google__Protobuf__Timestamp t;
    Foxglove__JointState joint[JOINTS];
    Foxglove__JointState *list[JOINTS] = {&joint[straight ? 0 : 1],
                                          &joint[straight ? 1 : 0]};
    Foxglove__JointStates m;

    google__protobuf__timestamp__init(&t);
    foxglove__joint_states__init(&m);
    for (int i = 0; i < JOINTS; i++)
        foxglove__joint_state__init(&joint[i]);
    joint[0].name = name[0];
    joint[1].name = name[1];
    joint[0].position = lift;
    joint[1].position = turn;
    t.seconds = stamp / NS_PER_S;
    t.nanos = (int32_t)(stamp % NS_PER_S);
    m.timestamp = &t;
    m.joints = list;
    m.n_joints = JOINTS;
    r->size = foxglove__joint_states__pack(&m, r->message);
}

static void take(struct rig *r)
{
    intake_joints(r->in, r->message, r->size, r->now);
    intake_publish(r->in);
}

// A message stamped `stamp` with lift there, received now.
static void stamped(struct rig *r, int64_t stamp, double lift)
{
    make(r, stamp, lift, 0, false);
    take(r);
}

// The next one in time.
static void at(struct rig *r, double lift)
{
    r->now += PERIOD;
    stamped(r, WALL + r->now, lift);
}

static void many(struct rig *r, int n, double lift)
{
    for (int i = 0; i < n; i++)
        at(r, lift);
}

static struct joint_sample newest(struct rig *r)
{
    struct joint_sample s = {0};

    slot_read(&r->board.joints, &s);
    return s;
}

static void counts(struct rig *r, uint64_t received, uint64_t refused, uint32_t in_a_row)
{
    assert_int_equal(r->mark->received, received);
    assert_int_equal(r->mark->refused, refused);
    assert_int_equal(r->mark->refused_in_a_row, in_a_row);
}

static void last_was(struct rig *r, enum ladder_reason why, int joint,
                     enum codec_verdict verdict, const char *words)
{
    char text[CODEC_WHY_MAX];

    assert_int_equal(r->mark->refused_for, why);
    assert_int_equal(r->mark->refused_joint, joint);
    assert_int_equal(intake_last_refusal(r->in, text), verdict);
    if (!strstr(text, words))
        fail_msg("'%s' says nothing of '%s'", text, words);
}

static void armed(struct rig *r, bool yes)
{
    atomic_store(&r->board.armed, yes);
}

// ---- what is accepted -------------------------------------------------------------------

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

// ---- form -------------------------------------------------------------------------------

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
    intake_refuse(r->in, CODEC_UNPARSABLE, "several parts");
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
    last_was(r, REASON_JOINTS_JUMP, 0, CODEC_IMPOSSIBLE, "lift");
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

// ---- time -------------------------------------------------------------------------------

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
            assert_int_equal(newest(r).capture_ns, r->now);
        }
        assert_int_equal(r->mark->clock_jumps, told[i]);
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
    counts(r, 3 + 40 + 14, 0, 0);
}

// Nobody looks at a clock (teardown sees to that): whatever the local wall clock does, the same
// messages at the same times give the same samples to the bit.
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

// ---- sense ------------------------------------------------------------------------------

// 125 ms after the last one lift may be 1.5 * 2 * 0.125 + 0.25 = 0.625 rad away, turn 1.
static void test_bound_of_a_leap(void **state)
{
    const struct {
        double lift, turn;
        int joint; // -1 = accepted
    } row[] = {{0.625, 0, -1},
               {-0.625, 0, -1},
               {nextafter(0.625, 1), 0, 0},
               {nextafter(-0.625, -1), 0, 0},
               {0, 1, -1},
               {0, -1, -1},
               {0, nextafter(1, 2), 1},
               {0.625, -1, -1},
               {0.7, 1.1, 0},
               {1e5, 0, 0}};

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct rig *r = *state;

        armed(r, i % 2);
        at(r, 0);
        r->now += 125 * MS;
        make(r, WALL + r->now, row[i].lift, row[i].turn, true);
        take(r);
        counts(r, row[i].joint < 0 ? 2 : 1, row[i].joint >= 0, row[i].joint >= 0);
        if (row[i].joint >= 0) {
            last_was(r, REASON_JOINTS_JUMP, row[i].joint, CODEC_IMPOSSIBLE,
                     row[i].joint ? "'turn' went" : "'lift' went");
            assert_true(r->mark->refused_value ==
                        (row[i].joint ? row[i].turn : row[i].lift));
        }
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
    }
}

// What counts is when it was measured, not when it came: after 3 s in the queue 10 ms have
// passed for the arm. And two of one instant may differ by max_jump.
static void test_time_of_a_leap(void **state)
{
    struct rig *r = *state;

    armed(r, true);
    many(r, 3, 0);
    r->now += 400 * MS;
    stamped(r, WALL + 4 * PERIOD, 0.25 + 0.031);
    counts(r, 3, 1, 1);
    stamped(r, WALL + 5 * PERIOD, 0.25 + 0.059);
    counts(r, 4, 1, 1);
    // Without stamps all of a drain are of one instant.
    assert_int_equal(teardown(state), 0);
    assert_int_equal(setup(state), 0);
    r = *state;
    r->now = NS_PER_S;
    stamped(r, 0, 0);
    stamped(r, 0, 0.25);
    counts(r, 2, 0, 0);
    stamped(r, 0, 0.25 + 0.2501);
    counts(r, 2, 1, 1);
}

// One leap, and two in a row, are refused and forgotten; the arm was at rest meanwhile.
static void test_one_and_two_leaps(void **state)
{
    struct rig *r = *state;

    armed(r, true);
    many(r, 5, 0);
    at(r, 10);
    counts(r, 5, 1, 1);
    at(r, 0);
    counts(r, 6, 1, 1); // alone it ends nothing
    at(r, 0);
    counts(r, 7, 1, 0);
    at(r, 10);
    at(r, -10);
    counts(r, 7, 3, 2);
    at(r, 0);
    counts(r, 8, 3, 2);
    at(r, 0);
    counts(r, 9, 3, 0);
    at(r, 10);
    at(r, NAN); // of another kind
    counts(r, 9, 5, 2);
    at(r, 0);
    counts(r, 10, 5, 0);
}

static void test_three_leaps(void **state)
{
    struct rig *r = *state;

    armed(r, true);
    many(r, 5, 0);
    for (uint32_t i = 1; i <= 300; i++) { // after 3.25 s an arm could be there
        at(r, 10);
        counts(r, 5, i, i);
    }
    assert_true(newest(r).pos[0] == 0);
    armed(r, false);
    at(r, 10);
    counts(r, 6, 300, 0);
    assert_true(newest(r).pos[0] == 10);
}

// Two drivers on one endpoint, 10 rad apart: a fault with the third message after the first
// that was one too many, armed or not, and never a believed leap.
static void test_two_drivers(void **state)
{
    for (int is_armed = 0; is_armed < 2; is_armed++) {
        struct rig *r = *state;

        armed(r, is_armed);
        many(r, 5, 0);
        for (int i = 0; i < 1000; i++) {
            at(r, i % 2 ? 0 : 10);
            assert_true(newest(r).pos[0] == 0);
            assert_int_equal(r->mark->refused_in_a_row >= INTAKE_BAD_IN_A_ROW, i >= 2);
        }
        assert_int_equal(r->mark->refused_for, REASON_JOINTS_JUMP);
        at(r, 0); // the second one in a row: the other driver is gone
        counts(r, 506, 500, 0);
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
    }
}

// The other driver's clock is 20 ms ahead: the first one's messages are older then, and what is
// left is refused.
static void test_two_drivers_with_clocks(void **state)
{
    struct rig *r = *state;

    armed(r, true);
    many(r, 5, 0);
    for (uint32_t i = 1; i <= 50; i++) {
        r->now += PERIOD;
        stamped(r, WALL + r->now + 20 * MS, 10);
        counts(r, 5, i, i);
        stamped(r, WALL + r->now, 0);
        assert_int_equal(r->mark->out_of_order, i);
    }
}

// Disarmed somebody moves the arm while the driver sleeps: the third that agrees is believed.
static void test_new_place(void **state)
{
    struct rig *r = *state;

    many(r, 5, 0);
    for (uint64_t i = 1; i <= 20; i++) {
        at(r, 10 + (double)i / 64);
        counts(r, 5 + (i < 3 ? 0 : i - 2), i < 2 ? 1 : 2, i < 3 ? (uint32_t)i : 0);
    }
    assert_true(newest(r).pos[0] == 10 + 20.0 / 64);
    // The rule between them is the same: three that leap themselves are not believed.
    for (int i = 1; i <= 30; i++) {
        at(r, i % 2 ? 20 : 30);
        counts(r, 23, 2 + (uint64_t)i, (uint32_t)i);
    }
    // Two agree, then another kind of refusal: it counts from one again.
    at(r, 40);
    at(r, 40);
    at(r, NAN);
    at(r, 40);
    at(r, 40);
    counts(r, 23, 37, 35);
    at(r, 40);
    counts(r, 24, 37, 0);
}

// Two agree, then a good one: the same.
static void test_new_place_interrupted(void **state)
{
    struct rig *r = *state;

    many(r, 5, 0);
    for (int i = 0; i < 10; i++) {
        at(r, 10);
        at(r, 10);
        at(r, 0);
        assert_true(newest(r).pos[0] == 0);
    }
    assert_int_equal(r->mark->received, 15);
    assert_int_equal(r->mark->refused, 20);
}

// After a long silence any place is possible.
static void test_after_a_gap(void **state)
{
    struct rig *r = *state;

    many(r, 5, 0);
    r->now += 4 * NS_PER_S;
    at(r, 12);
    counts(r, 6, 0, 0);
    assert_int_equal(r->mark->clock_jumps, 0);
}

// Over random walks the verdicts are those of a twin that keeps all samples.
static void test_leaps_twin(void **state)
{
    struct rig *r = *state;
    uint64_t random = 3;
    double last[JOINTS] = {0, 0};
    ns_t last_ns = 0;
    uint64_t accepted = 0, refused = 0;

    armed(r, true);
    for (int i = 0; i < 20000; i++) {
        double q[JOINTS];
        bool good = true;

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        r->now += 1 + (ns_t)(random >> 33) % (40 * MS);
        for (int j = 0; j < JOINTS; j++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            q[j] = last[j] + ((double)(random >> 33) / (double)(1u << 31) - 0.5) * 0.9;
            if (accepted > 0 &&
                fabs(q[j] - last[j]) >
                    1.5 * config.velocity[j] * ((double)(r->now - last_ns) / 1e9) + 0.25)
                good = false;
        }
        make(r, WALL + r->now, q[0], q[1], i % 2);
        take(r);
        accepted += good;
        refused += !good;
        if (good) {
            memcpy(last, q, sizeof last);
            last_ns = r->now;
        }
        assert_int_equal(r->mark->received, accepted);
        assert_int_equal(r->mark->refused, refused);
    }
    assert_true(accepted > 2000 && refused > 2000);
}

// ---- rate -------------------------------------------------------------------------------

static void test_slow(void **state)
{
    struct rig *r = *state;

    many(r, 200, 0);
    assert_false(r->mark->slow);
    for (int i = 0; i < 200; i++) {
        r->now += PERIOD * 9 / 91; // 91 %
        at(r, 0);
        assert_false(r->mark->slow);
    }
    for (int i = 0; i < 200; i++) {
        r->now += PERIOD * 11 / 89; // 89 %
        at(r, 0);
    }
    assert_true(r->mark->slow);
    many(r, 100, 0);
    assert_false(r->mark->slow);
    // The right rate, but every second one says nothing new.
    for (int i = 0; i < 200; i++) {
        at(r, 0);
        stamped(r, WALL + r->now, 0);
        r->now += PERIOD;
    }
    assert_true(r->mark->slow);
    assert_int_equal(r->mark->duplicate, 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

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
        TEST(test_bound_of_a_leap),
        TEST(test_time_of_a_leap),
        TEST(test_one_and_two_leaps),
        TEST(test_three_leaps),
        TEST(test_two_drivers),
        TEST(test_two_drivers_with_clocks),
        TEST(test_new_place),
        TEST(test_new_place_interrupted),
        TEST(test_after_a_gap),
        TEST(test_leaps_twin),
        TEST(test_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
