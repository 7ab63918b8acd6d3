// binding: one-to-one by name, each refusal with the names there are, units, and the
// arithmetic of use against a naive twin.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/config.h"

#define DEG 57.295779513082320877

static struct config cfg;
static struct config_sidecar side;
static struct policy_info policy;
static struct binding b;
static struct config_error err;

static void set(char *at, size_t size, const char *text)
{
    snprintf(at, size, "%s", text);
}

// Three joints, in another order than the policy's states, and that again than its
// actions.
static int setup(void **state)
{
    static const char *const joint[] = {"pan", "lift", "grip"};
    static const int action_at[] = {2, 0, 1}, state_at[] = {1, 2, 0};

    (void)state;
    memset(&cfg, 0, sizeof cfg);
    memset(&side, 0, sizeof side);
    memset(&policy, 0, sizeof policy);
    set(cfg.file, sizeof cfg.file, "robot.yaml");
    cfg.n_joints = side.n_state = side.n_action = policy.state_dim = policy.action_dim =
        3;
    side.rate_hz = 30;
    for (int j = 0; j < 3; j++) {
        struct config_joint *c = &cfg.joint[j];
        set(c->name, sizeof c->name, joint[j]);
        snprintf(c->state, sizeof c->state, "%s.pos", joint[j]);
        snprintf(c->action, sizeof c->action, "%s.goal", joint[j]);
        c->scale = NAN;
        set(side.state[state_at[j]], CONFIG_NAME, c->state);
        set(side.action[action_at[j]], CONFIG_NAME, c->action);
        set(side.units[action_at[j]], 16, "rad");
    }
    cfg.n_cameras = policy.n_cameras = 2;
    set(cfg.camera[0].name, CONFIG_NAME, "front");
    set(cfg.camera[0].key, POLICY_NAME_MAX, "images.front");
    set(cfg.camera[1].name, CONFIG_NAME, "hand");
    set(cfg.camera[1].key, POLICY_NAME_MAX, "images.wrist");
    cfg.camera[1].primary = true;
    set(policy.camera[0].key, POLICY_NAME_MAX, "images.wrist");
    set(policy.camera[1].key, POLICY_NAME_MAX, "images.front");
    return 0;
}

static void near(float got, double expected, double tolerance)
{
    if (!(fabs((double)got - expected) <= tolerance))
        fail_msg("%.9g, expected %.9g", (double)got, expected);
}

static void refused(const char *what, const char *listed)
{
    err.text[0] = '\0';
    assert_int_equal(binding_make(&b, &cfg, &side, &policy, &err), -EINVAL);
    if (!strstr(err.text, what) || !strstr(err.text, listed))
        fail_msg("expected '%s' and '%s' in '%s'", what, listed, err.text);
}

static void names_decide_not_positions(void **state)
{
    (void)state;
    assert_int_equal(binding_make(&b, &cfg, &side, &policy, &err), 0);
    assert_int_equal(b.n, 3);
    assert_int_equal(b.n_state, 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(cfg.joint[b.joint_of[i]].action, side.action[i]);
        assert_string_equal(cfg.joint[b.state_of[i]].state, side.state[i]);
    }
    assert_int_equal(b.camera_of[0], 1);
    assert_int_equal(b.camera_of[1], 0);
    assert_int_equal(b.primary, 1);
}

static void every_permutation_is_bound_by_name(void **state)
{
    static const int perm[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

    (void)state;
    for (int p = 0; p < 36; p++) {
        for (int j = 0; j < 3; j++) {
            set(side.state[perm[p / 6][j]], CONFIG_NAME, cfg.joint[j].state);
            set(side.action[perm[p % 6][j]], CONFIG_NAME, cfg.joint[j].action);
        }
        assert_int_equal(binding_make(&b, &cfg, &side, &policy, &err), 0);
        for (int j = 0; j < 3; j++) {
            assert_int_equal(b.state_of[perm[p / 6][j]], j);
            assert_int_equal(b.joint_of[perm[p % 6][j]], j);
        }
    }
}

static void names_that_match_nothing_are_errors(void **state)
{
    (void)state;
    set(cfg.joint[1].action, CONFIG_NAME, "left.goal");
    refused("joints.lift.action: 'left.goal' is no action",
            "lift.goal, grip.goal, pan.goal");
    setup(NULL);
    set(cfg.joint[2].state, CONFIG_NAME, "grip");
    refused("joints.grip.state: 'grip' is no state", "grip.pos, pan.pos, lift.pos");
    set(cfg.joint[2].state, CONFIG_NAME, "grip.sop");
    refused("robot.yaml: joints.grip.state", "lift.pos; did you mean 'grip.pos'?");
    cfg.joint[2].state_at = (struct config_place){12, 5};
    refused("robot.yaml:12:5: joints.grip.state: 'grip.sop' is no state", "");
    setup(NULL);
    set(cfg.joint[1].action, CONFIG_NAME,
        "pan.goal"); // config_load would refuse this already
    refused("two robot joints claim one action", "");
    setup(NULL);
    set(cfg.joint[1].state, CONFIG_NAME, "pan.pos");
    refused("two robot joints claim one state", "");
}

static void counts_must_agree(void **state)
{
    (void)state;
    policy.action_dim = 4;
    refused("action_names: 3 names", "4 values");
    setup(NULL);
    policy.state_dim = 14;
    refused("state_names: 3 names", "14 values");
    setup(NULL);
    cfg.n_joints = 2;
    refused("joints: 2 of them, but the policy moves 3: lift.goal, grip.goal, pan.goal",
            "without a joint here: grip.goal");
    setup(NULL);
    policy.env_dim = 5;
    refused("environment_state (5 values)", "");
    setup(NULL);
    side.n_state = policy.state_dim = 2;
    refused("2 state_names and 3 action_names", "");
}

static void cameras_must_match(void **state)
{
    (void)state;
    set(cfg.camera[1].key, POLICY_NAME_MAX, "images.hand");
    refused("cameras.hand.key: 'images.hand' is no image", "images.wrist, images.front");
    set(cfg.camera[1].key, POLICY_NAME_MAX, "images.wirst");
    cfg.camera[1].key_at = (struct config_place){7, 10};
    refused("robot.yaml:7:10: cameras.hand.key: 'images.wirst' is no image",
            "images.front; did you mean 'images.wrist'?");
    setup(NULL);
    cfg.n_cameras = 1;
    refused("'images.wrist' has no camera", "front");
    setup(NULL);
    side.n_cameras = 1;
    set(side.camera[0], POLICY_NAME_MAX, "images.front");
    refused("policy.yaml: cameras: 1 of them", "images.wrist, images.front");
    set(side.camera[0], POLICY_NAME_MAX, "images.side");
    refused("policy.yaml: cameras: 'images.side'", "images.wrist, images.front");
    setup(NULL);
    cfg.n_cameras = policy.n_cameras = 0;
    assert_int_equal(binding_make(&b, &cfg, &side, &policy, &err), 0);
    cfg.n_cameras = 1;
    refused("no image of the checkpoint, which has: none", "");
}

static void units_give_the_scale(void **state)
{
    static const char *const need[] = {"m100_100", "0_100", "0_1"};

    (void)state;
    set(side.units[2], 16, "deg"); // action 2 is pan's
    set(side.units[0], 16, "m");
    assert_int_equal(binding_make(&b, &cfg, &side, &policy, &err), 0);
    assert_true(fabs(b.scale[0] - DEG) < 1e-12 && b.scale[1] == 1 && b.scale[2] == 1);
    cfg.joint[0].scale = -2.5;
    assert_int_equal(binding_make(&b, &cfg, &side, &policy, &err), 0);
    assert_true(b.scale[0] == -2.5);
    for (int i = 0; i < 3; i++) {
        cfg.joint[0].scale = NAN;
        set(side.units[2], 16, need[i]);
        refused("joints.pan.scale: missing; action 'pan.goal' is in", need[i]);
        refused("write scale: ", i == 0 ? "200 / (max - min)" : "(open - closed)");
        cfg.joint[0].scale = 3;
        assert_int_equal(binding_make(&b, &cfg, &side, &policy, &err), 0);
    }
}

static void a_policy_without_state_binds(void **state)
{
    float s[3] = {7, 7, 7};
    double q[3] = {1, 2, 3};

    (void)state;
    side.n_state = policy.state_dim = 0;
    assert_int_equal(binding_make(&b, &cfg, &side, &policy, &err), 0);
    assert_int_equal(b.n_state, 0);
    binding_state(&b, q, s);
    assert_true(s[0] == 7.0f);
}

static void use_equals_a_naive_twin(void **state)
{
    double q[3] = {0.1, -0.7, 1.3};
    float s[3], out[6], actions[6] = {10, 20, 30, -1, -2, -3};

    (void)state;
    cfg.joint[0].scale = 50;
    cfg.joint[0].offset = 0.25;
    cfg.joint[1].scale = -DEG;
    cfg.joint[2].offset = -1;
    assert_int_equal(binding_make(&b, &cfg, &side, &policy, &err), 0);
    binding_state(&b, q, s);
    // states in the policy's order: grip, pan, lift
    near(s[0], (1.3 + 1) * 1, 1e-6);
    near(s[1], (0.1 - 0.25) * 50, 1e-5);
    near(s[2], -0.7 * -DEG, 1e-4);
    binding_actions(&b, actions, 2, out);
    // actions in the policy's order: lift, grip, pan
    for (int r = 0; r < 2; r++) {
        near(out[3 * r + 0], (double)actions[3 * r + 2] / 50 + 0.25, 1e-6);
        near(out[3 * r + 1], (double)actions[3 * r + 0] / -DEG, 1e-6);
        near(out[3 * r + 2], (double)actions[3 * r + 1] - 1, 1e-6);
    }
}

static void state_and_back_is_the_same_pose(void **state)
{
    double q[3] = {0.3, 0.4, -0.5};
    float s[3], a[3], out[3];

    (void)state;
    cfg.joint[0].scale = -120;
    cfg.joint[0].offset = 0.7;
    cfg.joint[2].scale = 0.01;
    assert_int_equal(binding_make(&b, &cfg, &side, &policy, &err), 0);
    binding_state(&b, q, s);
    for (int i = 0; i < 3; i++) // the same values in the order of actions
        for (int k = 0; k < 3; k++)
            if (b.joint_of[i] == b.state_of[k])
                a[i] = s[k];
    binding_actions(&b, a, 1, out);
    for (int j = 0; j < 3; j++)
        near(out[j], q[j], 1e-5);
}

static void names_cannot_forge_a_line(void **state)
{
    (void)state;
    set(policy.camera[0].key, POLICY_NAME_MAX, "x\nERROR\x1b[2J");
    refused("no image of the checkpoint, which has: x?ERROR?[2J", "");
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_decide_not_positions),
        TEST(every_permutation_is_bound_by_name),
        TEST(names_that_match_nothing_are_errors),
        TEST(counts_must_agree),
        TEST(cameras_must_match),
        TEST(units_give_the_scale),
        TEST(a_policy_without_state_binds),
        TEST(use_equals_a_naive_twin),
        TEST(state_and_back_is_the_same_pose),
        TEST(names_cannot_forge_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
