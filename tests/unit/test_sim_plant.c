// The simulated robot without sockets: geometry against MuJoCo, servos, expert, task, options.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "daemon/sim/expert.h"
#include "daemon/sim/options.h"
#include "daemon/sim/plant.h"

#define HALF_PI 1.5707963267948966

static struct scene scene;

static int open_scene(void **state)
{
    char err[512];
    (void)state;
    return scene_open(&scene, err, sizeof err);
}

static int close_scene(void **state)
{
    (void)state;
    scene_close(&scene);
    return 0;
}

static void random_pose(struct rng *g, double *q)
{
    for (int i = 0; i < ARM_JOINTS; i++)
        q[i] = rng_uniform(g, arm_min_rad[i], arm_max_rad[i]);
}

// MuJoCo multiplies transforms of bodies; arm_forward has a formula. They must agree.
static void forward_agrees_with_mujoco(void **state)
{
    struct rng g = {1};
    (void)state;

    for (int n = 0; n < 500; n++) {
        double q[ARM_JOINTS], tip[3];
        struct arm_pose p;
        random_pose(&g, q);
        scene_set_pose(&scene, q);
        scene_tip(&scene, tip);
        arm_forward(q, &p);
        assert_true(fabs(p.r_m * cos(p.azimuth_rad) - tip[0]) < 1e-9);
        assert_true(fabs(p.r_m * sin(p.azimuth_rad) - tip[1]) < 1e-9);
        assert_true(fabs(p.z_m - tip[2]) < 1e-9);
        // The tool points along the site's x axis.
        const double *m = scene.d->site_xmat + 9 * scene.tip_site;
        assert_true(fabs(-sin(p.pitch_rad) - m[6]) < 1e-9);
    }
}

static void inverse_undoes_forward(void **state)
{
    struct rng g = {2};
    int solved = 0;
    (void)state;

    for (int n = 0; n < 2000; n++) {
        double q[ARM_JOINTS], back[ARM_JOINTS];
        struct arm_pose p, p2;
        random_pose(&g, q);
        q[ARM_ELBOW] =
            rng_uniform(&g, -1.55, 1.55); // beyond +-pi/2 lies the other solution
        arm_forward(q, &p);
        if (arm_inverse(&p, back) == 0) {
            solved++;
            arm_forward(back, &p2);
            assert_true(fabs(p2.r_m - p.r_m) < 1e-9 && fabs(p2.z_m - p.z_m) < 1e-9);
            assert_true(fabs(p2.pitch_rad - p.pitch_rad) < 1e-9);
            assert_true(fabs(p2.yaw_rad - p.yaw_rad) < 1e-9);
        }
    }
    assert_true(solved > 1000);
}

static void inverse_refuses_what_is_out_of_reach(void **state)
{
    double q[ARM_JOINTS];
    struct arm_pose far = {.r_m = 0.8, .pitch_rad = HALF_PI};
    struct arm_pose behind = {
        .r_m = 0.2, .azimuth_rad = 3, .z_m = 0.05, .pitch_rad = HALF_PI};
    struct arm_pose nan_pose = {.r_m = NAN, .pitch_rad = HALF_PI};
    (void)state;

    assert_int_equal(arm_inverse(&far, q), -ERANGE);
    assert_int_equal(arm_inverse(&behind, q), -ERANGE);
    assert_int_equal(arm_inverse(&nan_pose, q), -ERANGE);
}

static void limits_are_the_model_s(void **state)
{
    (void)state;
    for (int i = 0; i < ARM_JOINTS; i++) {
        int j = mj_name2id(scene.m, mjOBJ_JOINT, arm_name[i]);
        assert_true(fabs(scene.m->jnt_range[2 * j] - arm_min_rad[i]) < 1e-9);
        assert_true(fabs(scene.m->jnt_range[2 * j + 1] - arm_max_rad[i]) < 1e-9);
    }
    assert_true(fabs(scene.m->opt.timestep - SCENE_TIMESTEP_S) < 1e-12);
    for (int k = 0; k < 3; k++)
        assert_true(fabs(scene.m->cam_pos[3 * scene.camera[0] + k] - scene_front_m[k]) <
                    1e-9);
}

static void servo_reaches_the_target_in_one_period(void **state)
{
    struct servo s;
    double target[ARM_JOINTS], last;
    (void)state;

    servo_init(&s, arm_rest_rad, 0.04);
    memcpy(target, arm_rest_rad, sizeof target);
    target[ARM_PAN] += 0.2;
    servo_command(&s, target, 0.2);
    for (int i = 1; i <= 20; i++) {
        last = s.q[ARM_PAN];
        servo_step(&s, 0.002);
        assert_true(fabs(s.q[ARM_PAN] - (arm_rest_rad[ARM_PAN] + 0.2 * i / 20)) < 1e-9);
        assert_true(fabs(s.q[ARM_PAN] - last - 0.01) < 1e-9);
    }
    servo_step(&s, 0.002); // nothing newer: stands at the target
    assert_true(s.q[ARM_PAN] == target[ARM_PAN] && s.qd[ARM_PAN] == 0);
}

static void servo_cuts_targets_to_the_joints_range(void **state)
{
    struct servo s;
    double target[ARM_JOINTS];
    (void)state;

    servo_init(&s, arm_rest_rad, 0.01);
    for (int i = 0; i < ARM_JOINTS; i++)
        target[i] = i % 2 ? 100 : -100;
    servo_command(&s, target, 1);
    for (int i = 0; i < 10; i++)
        servo_step(&s, 0.002);
    for (int i = 0; i < ARM_JOINTS; i++)
        assert_true(s.q[i] == (i % 2 ? arm_max_rad[i] : arm_min_rad[i]));
}

// The time to live runs out in the middle of a motion: no jump, bounded deceleration, one count.
static void servo_stops_by_itself(void **state)
{
    struct servo s;
    double target[ARM_JOINTS], q, v;
    (void)state;

    servo_init(&s, arm_rest_rad, 0.04);
    memcpy(target, arm_rest_rad, sizeof target);
    target[ARM_LIFT] += 0.04; // 1 rad/s
    servo_command(&s, target, 0.021);
    for (int i = 0; i < 10; i++)
        servo_step(&s, 0.002);
    assert_int_equal(s.ttl_stops, 0);
    v = s.qd[ARM_LIFT];
    assert_true(fabs(v - 1) < 1e-9);
    int steps = 0;
    while (s.qd[ARM_LIFT] > 0 && steps < 1000) {
        q = s.q[ARM_LIFT];
        servo_step(&s, 0.002);
        assert_true(s.q[ARM_LIFT] >= q && s.q[ARM_LIFT] - q < 0.0021);
        assert_true(v - s.qd[ARM_LIFT] < SERVO_STOP_RAD_S2 * 0.002 + 1e-9);
        v = s.qd[ARM_LIFT];
        steps++;
    }
    assert_in_range(steps, 49, 53); // 1 rad/s at 10 rad/s^2
    for (int i = 0; i < 100; i++)
        servo_step(&s, 0.002);
    assert_int_equal(s.ttl_stops, 1);
    servo_command(&s, target, 0.1); // and goes on when somebody commands again
    servo_step(&s, 0.002);
    assert_true(s.qd[ARM_LIFT] != 0);
}

static void expert_is_smooth_and_arrives(void **state)
{
    struct task t;
    double q[3][ARM_JOINTS], at[ARM_JOINTS], fastest = 0, hardest = 0, dt = 0.01;
    struct expert e;
    (void)state;

    task_init(&t, 5);
    memcpy(at, arm_rest_rad, sizeof at);
    for (int n = 0; n < 200; n++) {
        scene_set_pose(&scene, at);
        task_start(&t, &scene, 0);
        expert_plan(&e, at, t.goal_m);
        assert_true(e.duration_s >= 1 && e.duration_s <= 1.8);
        for (int k = 0; k * dt < e.duration_s; k++) {
            for (int j = 0; j < 3; j++)
                assert_int_equal(expert_at(&e, (k + j) * dt, q[j]), 0);
            for (int i = 0; i < ARM_JOINTS; i++) {
                fastest = fmax(fastest, fabs(q[1][i] - q[0][i]) / dt);
                hardest =
                    fmax(hardest, fabs(q[2][i] - 2 * q[1][i] + q[0][i]) / (dt * dt));
            }
        }
        assert_int_equal(expert_at(&e, 9, at), 0);
        scene_set_pose(&scene, at);
        double tip[3];
        struct arm_pose p;
        scene_tip(&scene, tip);
        arm_forward(at, &p);
        assert_true(mju_dist3(tip, t.goal_m) < 1e-9);
        assert_true(fabs(p.pitch_rad - HALF_PI) < 1e-9 && fabs(p.yaw_rad) < 1e-9);
    }
    assert_true(fastest > 1 && fastest < 3.0); // what config/reach.yaml allows
    assert_true(hardest > 3 && hardest < 20.0);
}

static void cubes_are_placed_apart_and_in_reach(void **state)
{
    struct task t;
    double q[ARM_JOINTS], tip[3], top[SCENE_CUBES][3];
    (void)state;

    task_init(&t, 9);
    scene_set_pose(&scene, arm_rest_rad);
    scene_tip(&scene, tip);
    for (int n = 0; n < 500; n++) {
        task_start(&t, &scene, 0);
        for (int i = 0; i < SCENE_CUBES; i++)
            mju_copy3(top[i], scene.d->mocap_pos + 3 * scene.cube_mocap[i]);
        assert_true(mju_dist3(top[0], t.goal_m) == 0);
        assert_true(mju_dist3(top[0], tip) >= TASK_MIN_START_M);
        struct arm_pose p = {.r_m = hypot(top[0][0], top[0][1]),
                             .azimuth_rad = atan2(top[0][1], top[0][0]),
                             .z_m = top[0][2],
                             .pitch_rad = HALF_PI};
        assert_int_equal(arm_inverse(&p, q), 0);
        for (int i = 0; i < SCENE_CUBES; i++) {
            assert_true(top[i][2] >= 0.04 && top[i][2] <= 0.12);
            for (int j = 0; j < i; j++)
                assert_true(hypot(top[i][0] - top[j][0], top[i][1] - top[j][1]) > 0.07);
        }
    }
}

static void same_seed_same_places(void **state)
{
    struct task a, b, c;
    (void)state;

    scene_set_pose(&scene, arm_rest_rad);
    task_init(&a, 3);
    task_init(&b, 3);
    task_init(&c, 4);
    for (int n = 0; n < 20; n++) {
        task_start(&a, &scene, 0);
        task_start(&b, &scene, 0);
        task_start(&c, &scene, 0);
        assert_memory_equal(a.goal_m, b.goal_m, sizeof a.goal_m);
        assert_true(mju_dist3(a.goal_m, c.goal_m) > 1e-6);
    }
}

static void success_needs_the_hold(void **state)
{
    struct task t;
    double q[ARM_JOINTS];
    struct expert e;
    (void)state;

    scene_set_pose(&scene, arm_rest_rad);
    task_init(&t, 11);
    task_start(&t, &scene, 1.0);
    assert_int_equal(task_update(&t, &scene, 1.1), TASK_GOES_ON);
    expert_plan(&e, arm_rest_rad, t.goal_m);
    expert_at(&e, 9, q);
    scene_set_pose(&scene, q); // there
    assert_int_equal(task_update(&t, &scene, 2.0), TASK_GOES_ON);
    assert_int_equal(task_update(&t, &scene, 2.39), TASK_GOES_ON);
    scene_set_pose(&scene, arm_rest_rad); // left again: the hold starts anew
    assert_int_equal(task_update(&t, &scene, 2.41), TASK_GOES_ON);
    scene_set_pose(&scene, q);
    assert_int_equal(task_update(&t, &scene, 2.5), TASK_GOES_ON);
    assert_int_equal(task_update(&t, &scene, 2.85), TASK_GOES_ON);
    assert_int_equal(task_update(&t, &scene, 2.91), TASK_SUCCEEDED);
    assert_int_equal(t.succeeded, 1);
    assert_int_equal(t.episode, 1);
}

static void time_runs_out(void **state)
{
    struct task t;
    (void)state;

    scene_set_pose(&scene, arm_rest_rad);
    task_init(&t, 12);
    task_start(&t, &scene, 0);
    assert_int_equal(task_update(&t, &scene, 5.99), TASK_GOES_ON);
    assert_int_equal(task_update(&t, &scene, 6.01), TASK_FAILED);
    assert_int_equal(t.failed, 1);
}

// The expert through servos and physics: episodes follow each other without a jump of the arm.
static void plant_runs_episodes(void **state)
{
    static struct plant p;
    char err[512];
    double q[ARM_JOINTS], action[ARM_JOINTS], last[ARM_JOINTS], now[ARM_JOINTS];
    (void)state;

    assert_int_equal(plant_open(&p, 21, 5, 25, err, sizeof err), 0);
    for (int i = 0; i < 4000; i++) // nobody drives: nothing happens for 8 s
        plant_step(&p);
    assert_int_equal(p.task.episode, 0);
    p.begun = true;
    for (int n = 0; n < 5; n++) {
        struct expert e;
        scene_get_pose(&p.scene, q, NULL);
        expert_plan(&e, q, p.task.goal_m);
        for (int k = 1; p.task.episode == (unsigned)n && k < 200; k++) {
            assert_int_equal(expert_at(&e, k * 0.04, action), 0);
            servo_command(&p.servo, action, 0.2);
            for (int i = 0; i < 20; i++) {
                scene_get_pose(&p.scene, last, NULL);
                plant_step(&p);
                scene_get_pose(&p.scene, now, NULL);
                for (int j = 0; j < ARM_JOINTS; j++)
                    assert_true(fabs(now[j] - last[j]) < 0.01);
            }
        }
    }
    assert_true(p.done);
    assert_int_equal(p.task.succeeded, 5);
    for (int n = 0; n < 5; n++)
        assert_true(p.final_m[n] < 0.004F); // the servos follow closely
    plant_close(&p);
}

static int parse(struct options *o, char *err, int n, const char *const *words)
{
    char text[12][64], *argv[13] = {0};
    for (int i = 0; i < n; i++) {
        strncpy(text[i], words[i], sizeof text[i] - 1);
        text[i][sizeof text[i] - 1] = 0;
        argv[i] = text[i];
    }
    return options_parse(o, n, argv, err, 256);
}

#define PARSE(...)                                                                      \
    parse(                                                                              \
        &o, err,                                                                        \
        (int)(sizeof((const char *const[]){"actd-sim", __VA_ARGS__}) / sizeof(char *)), \
        (const char *const[]){"actd-sim", __VA_ARGS__})

static void options_are_read(void **state)
{
    struct options o;
    char err[256];
    (void)state;

    assert_int_equal(PARSE("--lockstep", "--seed", "18446744073709551615", "--camera",
                           "wrist=off", "--camera", "front=320x240", "--fault",
                           "front@2+1.5", "--fault=joints@3"),
                     0);
    assert_true(o.lockstep && o.seed == UINT64_MAX && o.width[1] == 0);
    assert_int_equal(o.width[0], 320);
    assert_int_equal(o.height[0], 240);
    assert_true(o.control_hz == 25); // the default differs with --lockstep
    assert_int_equal(options_muted(&o, 1.9), 0);
    assert_int_equal(options_muted(&o, 2.1), 1);
    assert_int_equal(options_muted(&o, 3.1), 1 | 1 << SCENE_CAMERAS);
    assert_int_equal(options_muted(&o, 99), 1 << SCENE_CAMERAS);
}

static void bad_options_are_refused(void **state)
{
    struct options o;
    char err[256];
    (void)state;

    assert_int_equal(PARSE("--nonsense"), -EINVAL);
    assert_non_null(strstr(err, "--nonsense"));
    assert_int_equal(PARSE("--seed"), -EINVAL);
    assert_int_equal(PARSE("--seed", "-1"), -EINVAL);
    assert_non_null(strstr(err, "--seed"));
    assert_int_equal(PARSE("--seed", "1x"), -EINVAL);
    assert_int_equal(PARSE("--seed", "18446744073709551616"), -EINVAL);
    assert_int_equal(PARSE("--joint-hz", "0"), -EINVAL);
    assert_int_equal(PARSE("--joint-hz", "nan"), -EINVAL);
    assert_int_equal(PARSE("--camera", "left=96x96"), -EINVAL);
    assert_int_equal(PARSE("--camera", "front=96x96x3"), -EINVAL);
    assert_int_equal(PARSE("--camera", "front=9999x96"), -EINVAL);
    assert_int_equal(PARSE("--fault", "front"), -EINVAL);
    assert_int_equal(PARSE("--fault", "front@1+0"), -EINVAL);
    assert_int_equal(PARSE("--runtime", ""), -EINVAL);
    assert_int_equal(PARSE("word"), -EINVAL);
    assert_non_null(strstr(err, "word"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_agrees_with_mujoco),
        cmocka_unit_test(inverse_undoes_forward),
        cmocka_unit_test(inverse_refuses_what_is_out_of_reach),
        cmocka_unit_test(limits_are_the_model_s),
        cmocka_unit_test(servo_reaches_the_target_in_one_period),
        cmocka_unit_test(servo_cuts_targets_to_the_joints_range),
        cmocka_unit_test(servo_stops_by_itself),
        cmocka_unit_test(expert_is_smooth_and_arrives),
        cmocka_unit_test(cubes_are_placed_apart_and_in_reach),
        cmocka_unit_test(same_seed_same_places),
        cmocka_unit_test(success_needs_the_hold),
        cmocka_unit_test(time_runs_out),
        cmocka_unit_test(plant_runs_episodes),
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(bad_options_are_refused),
    };
    return cmocka_run_group_tests(tests, open_scene, close_scene);
}
