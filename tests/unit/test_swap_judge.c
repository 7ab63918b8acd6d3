// What a candidate is held against: every word of --allow, and chunks against a naive
// twin.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/swap_impl.h"

#define JOINTS 3

struct pair {
    struct config cfg;
    struct policy_info ia, ib;
    struct fitted a, b;
    char text[SWAP_TEXT];
};

static void describe(struct fitted *f, struct policy_info *info)
{
    static const char *const name[JOINTS] = {"lift", "turn", "grip"};
    f->info = info;
    *info = (struct policy_info){.n_cameras = 2, .chunk_size = 50};
    info->camera[0] = (struct policy_camera){"images.front", 240, 320};
    info->camera[1] = (struct policy_camera){"images.wrist", 240, 320};
    f->side.rate_hz = 25;
    f->side.n_state = f->side.n_action = f->binding.n = f->binding.n_state = JOINTS;
    for (int i = 0; i < JOINTS; i++) {
        snprintf(f->side.state[i], CONFIG_NAME, "%s.pos", name[i]);
        snprintf(f->side.action[i], CONFIG_NAME, "%s.goal", name[i]);
        snprintf(f->side.units[i], sizeof f->side.units[i], "%s", i == 2 ? "0_1" : "deg");
        f->binding.joint_of[i] = f->binding.state_of[i] = i;
    }
}

static int setup(void **state)
{
    struct pair *p = calloc(1, sizeof *p);
    *state = p;
    p->cfg.n_joints = JOINTS;
    for (int i = 0; i < JOINTS; i++)
        snprintf(p->cfg.joint[i].name, CONFIG_NAME, "joint%d", i);
    describe(&p->a, &p->ia);
    describe(&p->b, &p->ib);
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static bool equal(struct pair *p, unsigned allow)
{
    return swap_equal(&p->cfg, &p->a, &p->b, allow, p->text, sizeof p->text);
}

// Refused with the sentence and the remedy; allowed by its word, and by no other.
static void differs(struct pair *p, unsigned bit, const char *part, const char *word)
{
    char remedy[64];
    snprintf(remedy, sizeof remedy, "(allow it with --allow %s)", word);
    assert_int_equal(swap_allow_bit(word), bit);
    assert_false(equal(p, 0));
    if (!strstr(p->text, part) || !strstr(p->text, remedy))
        fail_msg("'%s' is not in: %s", part, p->text);
    assert_false(equal(p, ~bit));
    assert_true(equal(p, bit));
    assert_string_equal(p->text, "");
}

static void words(void **state)
{
    (void)state;
    assert_int_equal(swap_allow_bit("joints"), SWAP_ALLOW_JOINTS);
    assert_int_equal(swap_allow_bit("units"), SWAP_ALLOW_UNITS);
    assert_int_equal(swap_allow_bit("cameras"), SWAP_ALLOW_CAMERAS);
    assert_int_equal(swap_allow_bit("rate"), SWAP_ALLOW_RATE);
    assert_int_equal(swap_allow_bit("chunk"), SWAP_ALLOW_CHUNK);
    assert_int_equal(swap_allow_bit("chunks"), 0);
    assert_int_equal(swap_allow_bit(""), 0);
}

static void equals(void **state)
{
    assert_true(equal(*state, 0));
}

static void other_state_names(void **state)
{
    struct pair *p = *state;
    snprintf(p->b.side.state[1], CONFIG_NAME, "yaw.pos");
    differs(p, SWAP_ALLOW_JOINTS,
            "state value 1 is 'yaw.pos' and the running policy's 'turn.pos'", "joints");
}

static void another_order_of_actions(void **state)
{
    struct pair *p = *state;
    snprintf(p->b.side.action[0], CONFIG_NAME, "turn.goal");
    snprintf(p->b.side.action[1], CONFIG_NAME, "lift.goal");
    p->b.binding.joint_of[0] = 1;
    p->b.binding.joint_of[1] = 0;
    differs(p, SWAP_ALLOW_JOINTS,
            "action value 0 is 'turn.goal' and the running policy's 'lift.goal'",
            "joints");
}

static void no_state(void **state)
{
    struct pair *p = *state;
    p->b.side.n_state = 0;
    differs(p, SWAP_ALLOW_JOINTS, "it has 0 state names and the running policy 3",
            "joints");
}

static void other_units(void **state)
{
    struct pair *p = *state;
    snprintf(p->b.side.units[1], sizeof p->b.side.units[1], "rad");
    differs(p, SWAP_ALLOW_UNITS, "its joint1 is in rad and the running policy's in deg",
            "units");
}

// Units are the joint's, wherever it is in the vector.
static void the_same_units_elsewhere(void **state)
{
    struct pair *p = *state;
    for (int i = 0; i < JOINTS; i++) {
        p->b.binding.joint_of[i] = (i + 1) % JOINTS;
        snprintf(p->b.side.units[i], sizeof p->b.side.units[i], "%s",
                 p->a.side.units[(i + 1) % JOINTS]);
    }
    assert_true(equal(p, 0));
}

static void another_camera(void **state)
{
    struct pair *p = *state;
    snprintf(p->ib.camera[1].key, POLICY_NAME_MAX, "images.top");
    differs(p, SWAP_ALLOW_CAMERAS,
            "does not look at 'images.wrist', which the running policy does; it looks at "
            "'images.top', which the running policy does not",
            "cameras");
}

static void fewer_cameras(void **state)
{
    struct pair *p = *state;
    p->ib.n_cameras = 1;
    differs(p, SWAP_ALLOW_CAMERAS, "does not look at 'images.wrist'", "cameras");
}

static void cameras_in_another_order(void **state)
{
    struct pair *p = *state;
    p->ib.camera[0] = p->ia.camera[1];
    p->ib.camera[1] = p->ia.camera[0];
    assert_true(equal(p, 0));
}

static void another_width(void **state)
{
    struct pair *p = *state;
    p->ib.camera[0].width = 640;
    differs(p, SWAP_ALLOW_CAMERAS,
            "'images.front' is 640x240 and the running policy's 320x240", "cameras");
}

static void another_height(void **state)
{
    struct pair *p = *state;
    p->ib.camera[1].height = 480;
    differs(p, SWAP_ALLOW_CAMERAS, "'images.wrist' is 320x480", "cameras");
}

static void another_rate(void **state)
{
    struct pair *p = *state;
    p->b.side.rate_hz = 30;
    differs(p, SWAP_ALLOW_RATE, "trained at 30 Hz and the running policy at 25 Hz",
            "rate");
}

static void another_chunk(void **state)
{
    struct pair *p = *state;
    p->ib.chunk_size = 100;
    differs(p, SWAP_ALLOW_CHUNK, "chunk has 100 rows and the running policy's 50",
            "chunk");
}

static void everything_at_once(void **state)
{
    struct pair *p = *state;
    p->b.side.rate_hz = 30;
    p->ib.chunk_size = 100;
    p->ib.n_cameras = 0;
    snprintf(p->b.side.units[0], sizeof p->b.side.units[0], "rad");
    snprintf(p->b.side.state[0], CONFIG_NAME, "x");
    assert_false(equal(p, 0));
    assert_non_null(
        strstr(p->text, "(allow it with --allow joints,units,cameras,rate,chunk)"));
    assert_false(equal(p, SWAP_ALLOW_UNITS | SWAP_ALLOW_CAMERAS));
    assert_non_null(strstr(p->text, "(allow it with --allow joints,rate,chunk)"));
    char small[40];
    assert_false(swap_equal(&p->cfg, &p->a, &p->b, 0, small, sizeof small));
    assert_true(strlen(small) < sizeof small);
}

// ---- chunks ----------------------------------------------------------------------------------

static uint32_t random_state = 1;

static uint32_t next(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static float noise(void)
{
    return (float)((double)(next() % 20001) / 1e4 - 1);
}

// In plain floating-point seconds, a running row found by search.
static struct swap_distance twin(const float *a, int na, double sa, const float *b,
                                 int nb, double sb)
{
    struct swap_distance far = {-1, 0, 0};
    for (int k = 0; k < nb; k++) {
        double t = k * sb;
        if (t > (na - 1) * sa + 1e-9)
            break;
        int i = 0;
        while (i + 1 < na && (i + 1) * sa <= t + 1e-9)
            i++;
        double part = fmax(0, t / sa - i);
        for (int j = 0; j < JOINTS; j++) {
            double was = (double)a[i * JOINTS + j];
            if (part > 1e-9)
                was += part * ((double)a[(i + 1) * JOINTS + j] - was);
            double rad = fabs((double)b[k * JOINTS + j] - was);
            if (rad > far.rad)
                far = (struct swap_distance){rad, j, k};
        }
    }
    return far;
}

static void finds_the_farthest(void **state)
{
    static const int steps_ms[] = {10, 20, 30, 33, 40, 50};
    (void)state;
    for (int round = 0; round < 5000; round++) {
        float a[20 * JOINTS], b[20 * JOINTS];
        int na = 1 + (int)(next() % 20), nb = 1 + (int)(next() % 20);
        int sa = steps_ms[next() % 6], sb = steps_ms[next() % 6];
        for (int i = 0; i < 20 * JOINTS; i++) {
            a[i] = noise();
            b[i] = noise();
        }
        const struct swap_chunk ca = {a, na, sa * NS_PER_MS},
                                cb = {b, nb, sb * NS_PER_MS};
        struct swap_distance is = swap_compare(&ca, &cb, JOINTS);
        struct swap_distance want = twin(a, na, sa / 1e3, b, nb, sb / 1e3);
        assert_true(fabs(is.rad - want.rad) < 1e-6);
        assert_int_equal(is.joint, want.joint);
        assert_int_equal(is.row, want.row);
    }
}

static void names_joint_row_and_value(void **state)
{
    float a[10 * JOINTS] = {0}, b[10 * JOINTS] = {0};
    (void)state;
    b[7 * JOINTS + 2] = -0.25f;
    b[3 * JOINTS + 1] = 0.2f;
    const struct swap_chunk ca = {a, 10, 20 * NS_PER_MS};
    struct swap_chunk cb = {b, 10, 20 * NS_PER_MS};
    struct swap_distance is = swap_compare(&ca, &cb, JOINTS);
    assert_true(is.rad == 0.25 && is.joint == 2 && is.row == 7);
    cb.rows = 7; // those that may be executed
    is = swap_compare(&ca, &cb, JOINTS);
    assert_true(fabs(is.rad - 0.2) < 1e-6 && is.joint == 1 && is.row == 3);
    b[0] = NAN;
    is = swap_compare(&ca, &cb, JOINTS);
    assert_true(isinf(is.rad) && is.joint == 0 && is.row == 0);
}

static void beyond(void **state)
{
    struct pair *p = *state;
    float row[4 * JOINTS] = {0};
    const struct swap_chunk c = {row, 4, NS_PER_MS};
    for (int j = 0; j < JOINTS; j++) {
        p->cfg.joint[j].hard_min = -1;
        p->cfg.joint[j].hard_max = 2;
    }
    row[2 * JOINTS + 1] = 2;
    row[1 * JOINTS + 2] = -1;
    assert_int_equal(swap_beyond(&p->cfg, &c).joint, -1);
    row[2 * JOINTS + 1] = 2.001f;
    struct chunk_culprit out = swap_beyond(&p->cfg, &c);
    assert_true(out.joint == 1 && out.row == 2 && fabs(out.value - 2.001) < 1e-6);
    row[1 * JOINTS + 2] = NAN;
    out = swap_beyond(&p->cfg, &c);
    assert_true(out.joint == 2 && out.row == 1 && isnan(out.value));
    p->cfg.joint[1].hard_min = p->cfg.joint[1].hard_max = 0; // not checked
    row[1 * JOINTS + 2] = 0;
    assert_int_equal(swap_beyond(&p->cfg, &c).joint, -1);
}

static void median(void **state)
{
    const ns_t v[] = {5, 1, 4, 2, 100};
    (void)state;
    assert_int_equal(swap_median(v, 5), 4);
    assert_int_equal(swap_median(v, 4), 3);
    assert_int_equal(swap_median(v, 1), 5);
    assert_int_equal(swap_median(v, 0), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(words),
        TEST(equals),
        TEST(other_state_names),
        TEST(another_order_of_actions),
        TEST(no_state),
        TEST(other_units),
        TEST(the_same_units_elsewhere),
        TEST(another_camera),
        TEST(fewer_cameras),
        TEST(cameras_in_another_order),
        TEST(another_width),
        TEST(another_height),
        TEST(another_rate),
        TEST(another_chunk),
        TEST(everything_at_once),
        TEST(finds_the_farthest),
        TEST(names_joint_row_and_value),
        TEST(beyond),
        TEST(median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
