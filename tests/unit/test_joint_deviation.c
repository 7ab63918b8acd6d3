// What rounding does to a policy, told at the joints of a robot: order, units, the worst by its
// share of the joint's range; and when it is too far.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/joint_deviation.h"

// Actions are elbow (deg, turned round), slide (m) and grip (0 to 100), joints grip, elbow, slide.
static const float worst[3] = {1.8f, 0.002f, 1.0f};

struct scene {
    struct config cfg;
    struct config_sidecar side;
    struct binding b;
    struct policy_info info;
};

static struct scene *make(void)
{
    static struct scene s;
    static const struct {
        const char *name;
        double min, max, scale;
    } joint[3] = {{"grip", 0, 0.5, 200},
                  {"elbow", -1, 1, -180 / 3.14159265358979},
                  {"slide", 0, 0.4, 1}};

    memset(&s, 0, sizeof s);
    s.cfg.n_joints = s.b.n = 3;
    s.cfg.policy.max_deviation = 0.02;
    for (int j = 0; j < 3; j++) {
        snprintf(s.cfg.joint[j].name, CONFIG_NAME, "%s", joint[j].name);
        s.cfg.joint[j].min = joint[j].min;
        s.cfg.joint[j].max = joint[j].max;
        s.b.scale[j] = joint[j].scale;
        s.b.offset[j] = 7; // of a difference nothing is left
    }
    s.b.joint_of[0] = 1;
    s.b.joint_of[1] = 2;
    s.b.joint_of[2] = 0;
    snprintf(s.side.units[0], 16, "deg");
    snprintf(s.side.units[1], 16, "m");
    snprintf(s.side.units[2], 16, "0_100");
    s.info.action_dim = 3;
    s.info.precision = PRECISION_INT8;
    s.info.deviation = (struct policy_deviation){4, false, worst};
    return &s;
}

static int check(const struct scene *s, struct config_error *err)
{
    err->text[0] = '\0';
    return joint_deviation_check(&s->cfg, &s->side, &s->b, &s->info, err);
}

static const char *text(const struct scene *s)
{
    static char buf[300];
    return joint_deviation_text(&s->cfg, &s->side, &s->b, &s->info, buf, sizeof buf);
}

static void at_the_joints(void **state)
{
    struct scene *s = make();
    struct joint_deviation d;

    (void)state;
    assert_true(joint_deviation_of(&s->cfg, &s->side, &s->b, &s->info, &d));
    assert_int_equal(d.n, 3);
    assert_true(fabs(d.wire[0] - 0.005) < 1e-9);
    assert_true(fabs(d.wire[1] - 1.8 * 3.14159265 / 180) < 1e-7);
    assert_true(fabs(d.wire[2] - 0.002) < 1e-9);
    assert_true(fabs(d.share[0] - 0.01) < 1e-9);
    assert_true(fabs(d.share[1] - 0.0157080) < 1e-6);
    assert_true(fabs(d.share[2] - 0.005) < 1e-9);
    assert_string_equal(d.unit[0], "rad");
    assert_string_equal(d.unit[2], "m");
    assert_int_equal(d.worst, 1);
    s->cfg.joint[2].max = 0.1; // a slide that moves little: 2 mm are 2 % of it
    assert_true(joint_deviation_of(&s->cfg, &s->side, &s->b, &s->info, &d));
    assert_int_equal(d.worst, 2);
    assert_non_null(strstr(text(s), "in slide, 0.002 m (2 % of its range)"));
}

static void what_is_said(void **state)
{
    struct scene *s = make();

    (void)state;
    assert_string_equal(text(s),
                        "int8: furthest from float32 in elbow, 0.031 rad (1.6 % of its "
                        "range), on 4 made-up observations");
    s->info.precision = PRECISION_BF16;
    s->info.deviation = (struct policy_deviation){5, true, worst};
    assert_string_equal(
        text(s),
        "bf16: furthest from float32 in elbow, 0.031 rad (1.6 % of its range), on "
        "the observation of golden.safetensors and 4 made-up ones");
    s->info.precision = PRECISION_FLOAT32;
    s->info.deviation = (struct policy_deviation){0, false, NULL};
    assert_string_equal(text(s), "float32");
}

static void too_far(void **state)
{
    struct scene *s = make();
    struct config_error err;

    (void)state;
    assert_int_equal(check(s, &err), 0);
    s->cfg.policy.max_deviation = 0.01571;
    assert_int_equal(check(s, &err), 0);
    s->cfg.policy.max_deviation = 0.0157;
    assert_int_equal(check(s, &err), -EDOM);
    assert_string_equal(
        err.text,
        "in int8 the policy wants elbow up to 0.0314 rad from where it wants it in "
        "float32, 1.57 % of the joint's position range, and policy.max_deviation allows "
        "1.57 %: use `precision: float32`, or raise policy.max_deviation if the task "
        "forgives that");
    s->cfg.policy.max_deviation = 0;
    assert_int_equal(check(s, &err), -EDOM);
    static const float none[3] = {0};
    s->info.deviation.worst = none; // as exact as float32: allowed by any bound
    assert_int_equal(check(s, &err), 0);
    s->info.deviation = (struct policy_deviation){0, false, NULL};
    s->info.precision = PRECISION_FLOAT32;
    assert_int_equal(check(s, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_the_joints),
        cmocka_unit_test(what_is_said),
        cmocka_unit_test(too_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
