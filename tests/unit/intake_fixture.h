// An intake with a board of its own, messages for it in virtual time, and clocks that
// nobody may look at. One test program includes it once.
#ifndef TEST_INTAKE_FIXTURE_H
#define TEST_INTAKE_FIXTURE_H

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

#define UNUSED __attribute__((unused))
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

UNUSED static int setup(void **state)
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

UNUSED static int teardown(void **state)
{
    struct rig *r = *state;

    intake_free(r->in);
    board_free(&r->board);
    free(r);
    return looks == 0 ? 0 : -1;
}

// In the order turn, lift unless straight.
UNUSED static void make(struct rig *r, int64_t stamp, double lift, double turn,
                        bool straight)
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

UNUSED static void take(struct rig *r)
{
    intake_joints(r->in, r->message, r->size, r->now);
    intake_publish(r->in);
}

// A message stamped `stamp` with lift there, received now.
UNUSED static void stamped(struct rig *r, int64_t stamp, double lift)
{
    make(r, stamp, lift, 0, false);
    take(r);
}

// The next one in time.
UNUSED static void at(struct rig *r, double lift)
{
    r->now += PERIOD;
    stamped(r, WALL + r->now, lift);
}

UNUSED static void many(struct rig *r, int n, double lift)
{
    for (int i = 0; i < n; i++)
        at(r, lift);
}

UNUSED static struct joint_sample newest(struct rig *r)
{
    struct joint_sample s = {0};

    slot_read(&r->board.joints, &s);
    return s;
}

UNUSED static void counts(struct rig *r, uint64_t received, uint64_t refused,
                          uint32_t in_a_row)
{
    assert_int_equal(r->mark->received, received);
    assert_int_equal(r->mark->refused, refused);
    assert_int_equal(r->mark->refused_in_a_row, in_a_row);
}

UNUSED static void last_was(struct rig *r, enum ladder_reason why, int joint,
                            enum codec_verdict verdict, const char *words)
{
    char text[CODEC_WHY_MAX];

    assert_int_equal(r->mark->refused_for, why);
    assert_int_equal(r->mark->refused_joint, joint);
    if (joint < 0)
        assert_true(r->mark->refused_value == 0);
    assert_int_equal(intake_last_refusal(r->in, text), verdict);
    if (!strstr(text, words))
        fail_msg("'%s' says nothing of '%s'", text, words);
}

UNUSED static void armed(struct rig *r, bool yes)
{
    atomic_store(&r->board.armed, yes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
