// Joint states: what is accepted, in any order of joints and fields, and everything that
// is wrong: names, values, stamps, bytes.
#include <errno.h>
#include <math.h>

#include "daemon/codec.h"
#include "foxglove/JointStates.pb-c.h"
#include "tests/unit/wire_bytes.h"

static const char *const NAMES[] = {"base", "elbow", "wrist"};
#define N 3

struct joints {
    Foxglove__JointStates m;
    Google__Protobuf__Timestamp stamp;
    Foxglove__JointState joint[40], *list[40];
};

static void joints_init(struct joints *j)
{
    static char names[N][8] = {"wrist", "base",
                               "elbow"}; // another order than the robot's

    foxglove__joint_states__init(&j->m);
    google__protobuf__timestamp__init(&j->stamp);
    j->stamp.seconds = STAMP_S;
    j->stamp.nanos = 5;
    j->m.timestamp = &j->stamp;
    for (int i = 0; i < 40; i++) {
        foxglove__joint_state__init(&j->joint[i]);
        j->list[i] = &j->joint[i];
    }
    for (int i = 0; i < N; i++) {
        j->joint[i].name = names[i];
        j->joint[i].position = i + 0.5;
        j->joint[i].velocity = -i;
        j->joint[i].effort = NAN; // not ours to judge
    }
    j->m.joints = j->list;
    j->m.n_joints = N;
}

static void pack_joints(const struct joints *j, struct bytes *b)
{
    b->size = foxglove__joint_states__pack(&j->m, b->data);
}

struct fixture {
    struct codec *codec;
    struct joints joints;
    struct bytes bytes, more;
    struct joint_sample out;
    int64_t stamp;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    *state = f;
    joints_init(&f->joints);
    return codec_new(&f->codec, NAMES, N);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    codec_free(f->codec);
    free(f);
    return 0;
}

static enum codec_verdict take(struct fixture *f)
{
    // A copy of exactly its size, so that the sanitizer sees a read past its end.
    uint8_t *exact = malloc(f->bytes.size ? f->bytes.size : 1);
    enum codec_verdict v;

    memcpy(exact, f->bytes.data, f->bytes.size);
    v = codec_joints(f->codec, exact, f->bytes.size, &f->out, &f->stamp);
    free(exact);
    return v;
}

static enum codec_verdict take_joints(struct fixture *f)
{
    pack_joints(&f->joints, &f->bytes);
    return take(f);
}

static void test_joints_any_order(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(take_joints(f), CODEC_OK);
    assert_int_equal(f->out.n, N);
    assert_true(f->out.pos[0] == 1.5 && f->out.pos[1] == 2.5 && f->out.pos[2] == 0.5);
    assert_true(f->out.vel[0] == -1 && f->out.vel[1] == -2 && f->out.vel[2] == 0);
    assert_int_equal(f->stamp, STAMP_S * NS_PER_S + 5);
}

static void test_joints_without_stamp(void **state)
{
    struct fixture *f = *state;

    f->joints.m.timestamp = NULL;
    f->stamp = 77;
    assert_int_equal(take_joints(f), CODEC_OK);
    assert_int_equal(f->stamp, 0);
}

static void test_joints_wrong_names(void **state)
{
    struct fixture *f = *state;
    static char other[] = "Base", twice[] = "wrist", longer[] = "base ", empty[] = "";
    char *wrong[] = {other, twice, longer, empty};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        f->joints.joint[1].name = wrong[i];
        assert_int_equal(take_joints(f), CODEC_WRONG_NAMES);
    }
    joints_init(&f->joints);
    f->joints.m.n_joints = N - 1;
    assert_int_equal(take_joints(f), CODEC_WRONG_NAMES);
    f->joints.m.n_joints = N + 1; // one more, without a name
    assert_int_equal(take_joints(f), CODEC_WRONG_NAMES);
    f->joints.joint[N].name = twice; // one more, named twice
    assert_int_equal(take_joints(f), CODEC_WRONG_NAMES);
    f->joints.m.n_joints = 40;
    assert_int_equal(take_joints(f), CODEC_WRONG_NAMES);
    f->joints.m.n_joints = N;
    assert_int_equal(take_joints(f), CODEC_OK);
}

// The sentence after a message with these names, and that it is one line of ASCII.
static void says(struct fixture *f, char *const *name, size_t n, const char *want)
{
    const char *why = codec_why(f->codec);

    joints_init(&f->joints);
    for (size_t i = 0; i < n; i++)
        f->joints.joint[i].name = name[i];
    f->joints.m.n_joints = n;
    assert_int_equal(take_joints(f), CODEC_WRONG_NAMES);
    assert_true(strlen(why) < CODEC_WHY_MAX);
    for (const char *p = why; *p; p++)
        assert_true(*p >= ' ' && *p <= '~');
    assert_string_equal(why, want);
}

static void test_joints_names_explained(void **state)
{
    struct fixture *f = *state;
    static char base[] = "base", elbow[] = "elbow", wrist[] = "wrist", y[] = "y",
                z[] = "z", elbow_pos[] = "elbow.pos", upper[] = "ELBOW", elb[] = "elb",
                cut[50], evil[] = "a\n\x1b[2J'%s\\\xc3\xa9", ten[10 * 4 + 1];

    memset(cut, 'q', sizeof cut - 1);
    memset(ten, 1, sizeof ten - 1);
    says(f, (char *[]){base, wrist, elbow_pos}, 3,
         "'elbow.pos' is no joint of this robot (elbow?)");
    says(f, (char *[]){upper, base, wrist}, 3,
         "'ELBOW' is no joint of this robot (elbow?)");
    says(f, (char *[]){elb, base, wrist}, 3, "'elb' is no joint of this robot (elbow?)");
    says(f, (char *[]){base, wrist, y}, 3, "'y' is no joint of this robot");
    says(f, (char *[]){elbow, base}, 2, "joint 'wrist' is missing");
    says(f, (char *[]){elbow}, 1, "joint 'base' is missing");
    says(f, (char *[]){elbow, base, wrist, y}, 4, "one joint too many: 'y'");
    says(f, (char *[]){z, elbow, base, wrist, y}, 5, "one joint too many: 'z'");
    says(f, (char *[]){elbow, elbow, base}, 3, "joint 'elbow' comes twice");
    says(f, (char *[]){elbow, base, wrist, base}, 4, "joint 'base' comes twice");
    says(f, (char *[]){elbow, base, evil}, 3,
         "'a\\x0a\\x1b[2J\\x27%s\\x5c\\xc3\\xa9' is no joint of this robot");
    says(f, (char *[]){elbow, base, cut}, 3,
         "'qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq...' is no joint of this robot");
    says(
        f, (char *[]){elbow, base, ten}, 3,
        "'\\x01\\x01\\x01\\x01\\x01\\x01\\x01\\x01\\x01\\x01\\x01...' is no joint of this "
        "robot");
}

static void test_joints_others_explained(void **state)
{
    struct fixture *f = *state;
    const char *why = codec_why(f->codec);

    f->bytes.size = 0;
    take(f);
    assert_string_equal(why, "the message has no bytes");
    put(&f->bytes, "\x12\x7f", 2);
    take(f);
    assert_string_equal(why, "not a foxglove.JointStates message");
    f->bytes.size = CODEC_JOINTS_MAX + 1;
    take(f);
    assert_string_equal(why, "16385 bytes, 16384 at most");
    f->joints.joint[2].velocity = -INFINITY;
    take_joints(f);
    assert_string_equal(
        why, "the velocity of joint 'elbow' is -inf: send rad/s (m/s), or none");
    f->joints.joint[0].position = 1e300;
    take_joints(f);
    assert_string_equal(why, "the position of joint 'wrist' is 1e+300: send rad (m)");
    f->joints.stamp.nanos = -7;
    take_joints(f);
    assert_string_equal(why, "its stamp, 1700000000 s and -7 ns, is no time");
    f->joints.m.n_joints = 0;
    f->joints.m.timestamp = NULL;
    put(&f->bytes, "\x78\x01", 2);
    f->bytes.size = 2;
    f->bytes.data[0] = 0x78; // an unknown field and nothing else
    f->bytes.data[1] = 1;
    take(f);
    assert_string_equal(why, "there are no joints in it");
}

// By how much, in words of whole milliseconds.
static void test_stamps_explained(void **state)
{
    struct fixture *f = *state;
    const int64_t wall = STAMP_S * NS_PER_S;
    struct codec_stamp s = {0};
    const struct {
        int64_t stamp, received; // ms after the first
        const char *want;
    } bad[] = {
        {-3600000, 10,
         "its stamp is 3600000 ms before the last one: stamps must go forward"},
        {701, 100,
         "its stamp is 601 ms ahead of what earlier stamps of this sender lead to, 500 ms at "
         "most: keep its clock from jumping"},
        {10, 1000,
         "its stamp is 990 ms behind what earlier stamps of this sender lead to, 500 ms at "
         "most: keep its clock from jumping"},
    };
    ns_t capture, t0 = NS_PER_S;

    assert_int_equal(codec_stamp_map(&s, wall, t0, false, &capture), CODEC_TIME_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t stamp = wall + bad[i].stamp * NS_PER_MS;
        ns_t received = t0 + bad[i].received * NS_PER_MS;

        assert_int_equal(codec_stamp_map(&s, stamp, received, false, &capture),
                         CODEC_TIME_JUMP);
        assert_int_equal(codec_refuse_stamp(f->codec, &s, stamp, received),
                         CODEC_BAD_STAMP);
        assert_string_equal(codec_why(f->codec), bad[i].want);
    }
    assert_int_equal(codec_refuse_stamp(NULL, &s, wall, t0), CODEC_BAD_STAMP);
}

static void test_joints_values(void **state)
{
    struct fixture *f = *state;
    const double bad[] = {NAN, INFINITY, -INFINITY, 1e6, -1e6, 1e300};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int joint = 0; joint < N; joint++) {
            joints_init(&f->joints);
            f->joints.joint[joint].position = bad[i];
            assert_int_equal(take_joints(f), CODEC_NOT_FINITE);
            joints_init(&f->joints);
            f->joints.joint[joint].velocity = bad[i];
            assert_int_equal(take_joints(f), CODEC_NOT_FINITE);
        }
    joints_init(&f->joints);
    f->joints.joint[0].position = -999999.0;
    assert_int_equal(take_joints(f), CODEC_OK);
}

static void test_joints_stamps(void **state)
{
    struct fixture *f = *state;

    f->joints.stamp.seconds = -1;
    assert_int_equal(take_joints(f), CODEC_BAD_STAMP);
    f->joints.stamp.seconds = INT64_MAX;
    assert_int_equal(take_joints(f), CODEC_BAD_STAMP);
    f->joints.stamp.seconds = 1;
    f->joints.stamp.nanos = 1000000000;
    assert_int_equal(take_joints(f), CODEC_BAD_STAMP);
    f->joints.stamp.nanos = -1;
    assert_int_equal(take_joints(f), CODEC_BAD_STAMP);
}

static void test_joints_empty_and_large(void **state)
{
    struct fixture *f = *state;

    f->bytes.size = 0;
    assert_int_equal(take(f), CODEC_EMPTY);
    f->joints.m.n_joints = 0; // a stamp and nothing else
    assert_int_equal(take_joints(f), CODEC_EMPTY);
    f->bytes.size = CODEC_JOINTS_MAX + 1;
    assert_int_equal(take(f), CODEC_TOO_LARGE);
}

// Every prefix: never accepted, but for one that ends behind all the joints.
static void test_joints_truncated(void **state)
{
    struct fixture *f = *state;
    size_t whole;

    pack_joints(&f->joints, &f->bytes);
    whole = f->bytes.size;
    for (f->bytes.size = 0; f->bytes.size < whole; f->bytes.size++)
        assert_int_not_equal(take(f), CODEC_OK);
    assert_int_equal(take(f), CODEC_OK);
}

static void test_joints_doubled_and_reordered(void **state)
{
    struct fixture *f = *state;
    struct bytes *b = &f->more;
    uint8_t stamp[32];
    size_t n = google__protobuf__timestamp__pack(&f->joints.stamp, stamp);

    // Stamp twice, behind the joints: fine. Every joint twice: refused.
    f->joints.m.timestamp = NULL;
    pack_joints(&f->joints, b);
    put_field(b, 1, stamp, n);
    put_field(b, 1, stamp, n);
    memcpy(f->bytes.data, b->data, f->bytes.size = b->size);
    assert_int_equal(take(f), CODEC_OK);
    assert_int_equal(f->stamp, STAMP_S * NS_PER_S + 5);
    put(&f->bytes, b->data, b->size);
    assert_int_equal(take(f), CODEC_WRONG_NAMES);
}

// Unknown fields before the joints: a few are skipped, many hit the arena's end. Every
// count makes the parser run out of memory at another place.
static void test_joints_unknown_bomb(void **state)
{
    struct fixture *f = *state;
    int accepted = 0, refused = 0;
    uint64_t before;

    for (int n = 0; n < 8000; n += n < 100 ? 1 : 13) {
        f->bytes.size = 0;
        for (int i = 0; i < n; i++)
            put(&f->bytes, "\x78\x01", 2); // field 15
        pack_joints(&f->joints, &f->more);
        put(&f->bytes, f->more.data, f->more.size);
        if (take(f) == CODEC_OK)
            accepted++;
        else
            refused++;
    }
    assert_true(accepted >= 100 && refused > 400);
    f->bytes.size = 0;
    while (f->bytes.size < CODEC_JOINTS_MAX)
        put(&f->bytes, "\x78\x01", 2);
    before = allocations;
    assert_int_equal(
        codec_joints(f->codec, f->bytes.data, f->bytes.size, &f->out, &f->stamp),
        CODEC_UNPARSABLE);
    assert_true(allocations == before);
}

// Many joints of no bytes, which cost 80 bytes of arena each.
static void test_joints_empty_submessages(void **state)
{
    struct fixture *f = *state;

    for (int n = 1; n < 8000; n += 37) {
        f->bytes.size = 0;
        for (int i = 0; i < n; i++)
            put(&f->bytes, "\x12\x00", 2);
        assert_int_not_equal(take(f), CODEC_OK);
    }
}

static void test_joints_absurd_lengths(void **state)
{
    struct fixture *f = *state;
    const uint64_t length[] = {1,          127,        128,       1u << 14,  INT32_MAX,
                               UINT32_MAX, 1ull << 32, INT64_MAX, UINT64_MAX};

    for (unsigned field = 1; field < 4; field++)
        for (size_t i = 0; i < sizeof length / sizeof *length; i++) {
            pack_joints(&f->joints, &f->bytes);
            put_varint(&f->bytes, field << 3 | 2);
            put_varint(&f->bytes, length[i]);
            assert_int_equal(take(f), CODEC_UNPARSABLE);
        }
}

static void test_joints_random_bytes(void **state)
{
    struct fixture *f = *state;

    for (int round = 0; round < 20000; round++) {
        f->bytes.size = random32() % 200;
        for (size_t i = 0; i < f->bytes.size; i++)
            f->bytes.data[i] = (uint8_t)random32();
        assert_int_not_equal(take(f), CODEC_OK);
    }
}

// One bit or byte of a good message changed: no crash, and what is accepted is plausible.
static void test_joints_mutated(void **state)
{
    struct fixture *f = *state;

    for (int round = 0; round < 20000; round++) {
        pack_joints(&f->joints, &f->bytes);
        for (uint32_t k = random32() % 3 + 1; k > 0; k--)
            f->bytes.data[random32() % f->bytes.size] ^= (uint8_t)(1u << random32() % 8);
        if (take(f) != CODEC_OK)
            continue;
        assert_int_equal(f->out.n, N);
        for (int j = 0; j < N; j++)
            assert_true(isfinite(f->out.pos[j]) && fabs(f->out.pos[j]) < 1e6);
    }
}

static void test_joints_do_not_allocate(void **state)
{
    struct fixture *f = *state;
    static char other[] = "WRIST";
    void *volatile kept; // a compiler may leave out what nobody keeps
    uint64_t before;

    if (!COUNTS_ALLOCATIONS)
        skip();
    pack_joints(&f->joints, &f->bytes);
    before = allocations;
    for (size_t i = 0; i < 1000; i++)
        codec_joints(f->codec, f->bytes.data, f->bytes.size - i % 5, &f->out, &f->stamp);
    f->joints.joint[0].position = 1e300; // nor does a sentence with a number in it
    pack_joints(&f->joints, &f->bytes);
    codec_joints(f->codec, f->bytes.data, f->bytes.size, &f->out, &f->stamp);
    assert_non_null(strstr(codec_why(f->codec), "1e+300"));
    f->joints.joint[0].name = other; // or a name
    pack_joints(&f->joints, &f->bytes);
    codec_joints(f->codec, f->bytes.data, f->bytes.size, &f->out, &f->stamp);
    assert_non_null(strstr(codec_why(f->codec), "WRIST"));
    assert_true(allocations == before);
    kept = malloc(1); // the counter works
    free(kept);
    assert_true(allocations > before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_joints_any_order),
        TEST(test_joints_without_stamp),
        TEST(test_joints_wrong_names),
        TEST(test_joints_values),
        TEST(test_joints_names_explained),
        TEST(test_joints_others_explained),
        TEST(test_stamps_explained),
        TEST(test_joints_stamps),
        TEST(test_joints_empty_and_large),
        TEST(test_joints_truncated),
        TEST(test_joints_doubled_and_reordered),
        TEST(test_joints_unknown_bomb),
        TEST(test_joints_empty_submessages),
        TEST(test_joints_absurd_lengths),
        TEST(test_joints_random_bytes),
        TEST(test_joints_mutated),
        TEST(test_joints_do_not_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
