// Poses that training saw, and those it did not: at the very bound, by joint, by name.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/arming.h"

#define JOINTS 3

struct rig {
    struct config cfg;
    struct policy_info info;
    struct fitted fitted;
    float mean[JOINTS], std[JOINTS];
    double pose[JOINTS];
    char text[400];
};

// State i is joint (i + 1) % 3, in tenths of a radian about 0.5.
static int setup(void **state)
{
    static const char *const name[JOINTS] = {"lift", "turn", "grip"};
    struct rig *r = calloc(1, sizeof *r);
    *state = r;
    r->cfg.n_joints = JOINTS;
    r->cfg.safety.max_stats_z = 4;
    r->fitted.info = &r->info;
    r->fitted.binding.n = r->fitted.binding.n_state = JOINTS;
    for (int i = 0; i < JOINTS; i++) {
        snprintf(r->cfg.joint[i].name, CONFIG_NAME, "%s", name[i]);
        r->fitted.binding.state_of[i] = (i + 1) % JOINTS;
        r->fitted.binding.scale[i] = 10;
        r->fitted.binding.offset[i] = 0.5;
        r->mean[i] = (float)i;
        r->std[i] = 2;
        r->pose[(i + 1) % JOINTS] = 0.5 + i / 10.0; // the mean
    }
    r->info.state = (struct policy_stats){.n = JOINTS, .mean = r->mean, .std = r->std};
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static bool refused(struct rig *r)
{
    return arming_refused(&r->cfg, &r->fitted, r->pose, r->text, sizeof r->text);
}

static void at_the_bound(void **state)
{
    struct rig *r = *state;
    for (int j = 0; j < JOINTS; j++) {
        double mean = r->pose[j];
        r->pose[j] = mean + 0.7999;
        assert_false(refused(r));
        assert_string_equal(r->text, "");
        r->pose[j] = mean - 0.7999;
        assert_false(refused(r));
        r->pose[j] = mean - 0.8001;
        assert_true(refused(r));
        assert_ptr_equal(strstr(r->text, r->cfg.joint[j].name), r->text);
        assert_non_null(strstr(r->text, "is 4.0 standard deviations"));
        assert_non_null(strstr(r->text, "(safety.max_stats_z 4)"));
        r->pose[j] = mean + 0.8001;
        assert_true(refused(r));
        r->pose[j] = NAN;
        assert_true(refused(r));
        r->pose[j] = mean;
    }
}

static void a_joint_that_never_moved(void **state)
{
    struct rig *r = *state;
    r->std[0] = 0;
    assert_false(refused(r));
    r->pose[1] += 0.001;
    assert_true(refused(r));
}

static void nothing_to_hold_it_against(void **state)
{
    struct rig *r = *state;
    r->pose[0] = 100;
    assert_true(refused(r));
    r->cfg.safety.max_stats_z = 0;
    assert_false(refused(r));
    r->cfg.safety.max_stats_z = 4;
    r->info.state.mean = NULL;
    assert_false(refused(r));
    r->info.state.mean = r->mean;
    r->info.state.std = NULL;
    assert_false(refused(r));
    r->info.state.std = r->std;
    r->fitted.binding.n_state = 0; // a policy without a state
    assert_false(refused(r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(at_the_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(a_joint_that_never_moved, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_to_hold_it_against, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
