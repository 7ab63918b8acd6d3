// Commands: every field as protobuf-c reads it back, and the buffer's end.
#include <errno.h>

#include "daemon/codec.h"
#include "actd/v1/joint_command.pb-c.h"
#include "tests/unit/wire_bytes.h"

static const char *const NAMES[] = {"base", "elbow", "wrist"};
#define N       3
#define WALL_NS INT64_C(1700000000123456789)

static int setup(void **state)
{
    return codec_new((struct codec **)state, NAMES, N);
}

static int teardown(void **state)
{
    codec_free(*state);
    return 0;
}

static struct command a_command(void)
{
    struct command c = {
        .sequence = 9,
        .tick = 11,
        .made_ns = clock_now_ns(),
        .n = N,
        .pos = {0.1, -0.2, 0},
        .vel = {1, 0, -3},
        .wanted = {0.1, -0.3, 5},
        .limit = {GUARD_NONE, GUARD_VELOCITY, GUARD_JERK},
        .first_limit = GUARD_VELOCITY,
        .first_joint = 1,
        .mode = LADDER_RUNNING,
        .reason = REASON_NONE,
        .ttl_ns = 20 * NS_PER_MS,
        .joint_age_ns = 3,
        .frame_age_ns = 4,
        .margin_ns = -5,
        .lateness_ns = 6,
        .chunk_id = 7,
        .chunk_row = 8.25,
        .blended = 2,
    };
    return c;
}

static void test_command(void **state)
{
    struct command c = a_command();
    uint8_t buf[CODEC_COMMAND_MAX];
    size_t n = codec_command(*state, &c, WALL_NS, buf, sizeof buf);
    Actd__V1__JointCommand *m = actd__v1__joint_command__unpack(NULL, n, buf);

    assert_non_null(m);
    assert_int_equal(m->sequence, 9);
    assert_int_equal(m->tick, 11);
    assert_int_equal(m->n_joints, N);
    for (int i = 0; i < N; i++) {
        assert_string_equal(m->joints[i]->name, NAMES[i]);
        assert_true(m->joints[i]->position == c.pos[i]);
        assert_true(m->joints[i]->velocity == c.vel[i]);
        assert_true(m->joints[i]->wanted == c.wanted[i]);
        assert_int_equal(m->joints[i]->limit, c.limit[i]);
    }
    assert_int_equal(m->mode, ACTD__V1__MODE__MODE_RUNNING);
    assert_int_equal(m->reason, ACTD__V1__REASON__REASON_NONE);
    assert_int_equal(m->limit, ACTD__V1__LIMIT__LIMIT_VELOCITY);
    assert_string_equal(m->limited_joint, "elbow");
    assert_int_equal(m->time_to_live_ns, 20 * NS_PER_MS);
    assert_int_equal(m->joint_state_age_ns, 3);
    assert_int_equal(m->frame_age_ns, 4);
    assert_int_equal(m->chunk_id, 7);
    assert_true(m->chunk_row == 8.25);
    assert_int_equal(m->deadline_margin_ns, -5);
    assert_int_equal(m->wakeup_lateness_ns, 6);
    assert_int_equal(m->chunks_blended, 2);
    assert_int_equal(m->timestamp->seconds * NS_PER_S + m->timestamp->nanos, WALL_NS);
    actd__v1__joint_command__free_unpacked(m, NULL);
}

static void test_command_bounds(void **state)
{
    struct command c = a_command();
    uint8_t buf[CODEC_COMMAND_MAX];
    size_t n = codec_command(*state, &c, WALL_NS, buf, sizeof buf);

    for (size_t capacity = 0; capacity < n; capacity++) {
        uint8_t *exact = malloc(capacity + 1);

        assert_int_equal(codec_command(*state, &c, WALL_NS, exact, capacity), 0);
        free(exact);
    }
    c.n = N - 1;
    assert_int_equal(codec_command(*state, &c, WALL_NS, buf, sizeof buf), 0);
    c.n = N;
    c.first_joint = -1;
    c.joint_age_ns = -1; // never received
    n = codec_command(*state, &c, WALL_NS, buf, sizeof buf);
    Actd__V1__JointCommand *m = actd__v1__joint_command__unpack(NULL, n, buf);
    assert_string_equal(m->limited_joint, "");
    assert_int_equal(m->joint_state_age_ns, 0);
    actd__v1__joint_command__free_unpacked(m, NULL);
}

static void test_largest_command_fits(void **state)
{
    char name[ACTD_MAX_JOINTS][64];
    const char *names[ACTD_MAX_JOINTS];
    struct codec *codec;
    struct command c = a_command();
    uint8_t buf[CODEC_COMMAND_MAX];
    size_t n;

    (void)state;
    for (int i = 0; i < ACTD_MAX_JOINTS; i++) {
        memset(name[i], 'a' + i % 26, 63);
        name[i][63] = '\0';
        names[i] = name[i];
        c.pos[i] = c.vel[i] = c.wanted[i] = -1.0 / 3;
        c.limit[i] = GUARD_JERK;
    }
    c.n = ACTD_MAX_JOINTS;
    assert_int_equal(codec_new(&codec, names, ACTD_MAX_JOINTS), 0);
    n = codec_command(codec, &c, WALL_NS, buf, sizeof buf);
    assert_true(n > 2000 && n < CODEC_COMMAND_MAX / 2);
    codec_free(codec);
    assert_int_equal(codec_new(&codec, names, ACTD_MAX_JOINTS + 1), -EINVAL);
}

// Values that must be equal for the casts in codec_command to be right.
static void test_enums_match(void **state)
{
    (void)state;
    assert_int_equal(LADDER_DISARMING, ACTD__V1__MODE__MODE_DISARMING);
    assert_int_equal(LADDER_INIT, ACTD__V1__MODE__MODE_INIT);
    assert_int_equal(LADDER_ESTOP, ACTD__V1__MODE__MODE_ESTOP);
    assert_int_equal(REASON_INTERNAL, ACTD__V1__REASON__REASON_INTERNAL);
    assert_int_equal(REASON_NO_CHUNK, ACTD__V1__REASON__REASON_NO_CHUNK);
    assert_int_equal(GUARD_JERK, ACTD__V1__LIMIT__LIMIT_JERK);
    for (int v = 0; v < CODEC_VERDICTS; v++)
        assert_string_not_equal(codec_verdict_name((enum codec_verdict)v), "?");
}
static void test_command_does_not_allocate(void **state)
{
    struct command c = a_command();
    uint8_t buf[CODEC_COMMAND_MAX];
    uint64_t before = allocations;

    for (int i = 0; i < 1000; i++)
        codec_command(*state, &c, WALL_NS, buf, sizeof buf);
    assert_true(allocations == before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_command),
        TEST(test_command_bounds),
        TEST(test_largest_command_fits),
        TEST(test_enums_match),
        TEST(test_command_does_not_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
