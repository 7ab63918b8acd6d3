// check and inspect on a small checkpoint: every fact is printed, what cannot work is
// refused, and what looks wrong (units, limits, ages, statistics) is said.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/check.h"
#include "daemon/check_impl.h"
#include "daemon/golden.h"
#include "daemon/rt.h"
#include "tests/unit/robot_files.h"

static void check_prints_every_fact_and_ok(void **state)
{
    static const char *const facts[] = {"pan.pos [0]",
                                        "gripper.pos [5]",
                                        "observation.images.front",
                                        "32x32",
                                        "resnet18",
                                        "LeRobot 0.4",
                                        "MEAN_STD",
                                        "8 rows at 30 Hz",
                                        "camera.front (bind)",
                                        "crossfade",
                                        "-0.750 .. 0.750",
                                        "0.250 s",
                                        "median of 3",
                                        "joints.command (bind), good for 30 ms",
                                        "266.7 ms from exposure",
                                        "million",
                                        "MiB",
                                        "kernels"};
    char *said = NULL;

    (void)state;
    write_good();
    if (check(&said) != EX_OK)
        fail_msg("%s", said);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        has(said, facts[i]);
    has(strrchr(said, 'O'), "OK"); // the last words
    assert_null(strstr(said, "REFUSED"));
    free(said);
}

// Which checkpoint it is, and whether it still answers as it did.
static void check_tells_the_checkpoint(void **state)
{
    const struct policy_options opt = {0};
    struct policy_error why = {""};
    struct policy *p = NULL;
    char *said = NULL, want[320];
    FILE *nowhere = fopen("/dev/null", "w");

    (void)state;
    write_good();
    assert_int_equal(policy_load(&p, dir, &opt, &why), 0);
    snprintf(want, sizeof want, "  %.12s (whole in", policy_describe(p)->digest);
    policy_free(p);
    assert_int_equal(check(&said), EX_OK);
    has(said, "digest");
    has(strstr(said, "digest"), want);
    has(said, "golden forward  none recorded; `actd golden ");
    assert_non_null(nowhere);
    assert_int_equal(golden_run(dir, NULL, false, nowhere, nowhere), EX_OK);
    fclose(nowhere);
    assert_int_equal(check(&said), EX_OK);
    has(said, "golden forward  off by ");
    has(said, " where 1e-04 is allowed");
    snprintf(want, sizeof want, "%s/golden.safetensors", dir);
    assert_int_equal(unlink(want), 0);
    free(said);
}

// As many compute threads as cores: run can not keep them off the loop's.
static void a_shared_core_is_told(void **state)
{
    static const char shared[] = "; compute threads share the loop's core\n";
    const int cores = rt_cpu_count();
    char *said = NULL, threads[64];

    (void)state;
    write_good();
    for (int n = 1; n <= cores && n <= 64; n += cores > 1 ? cores - 1 : 1) {
        snprintf(threads, sizeof threads, "policy:\n  threads: %d\n", n);
        edit(robot, "policy:\n", threads);
        assert_int_equal(check(&said), EX_OK);
        has(said, "cores ");
        assert_true((strstr(said, shared) != NULL) == (n >= cores));
        edit(robot, threads, "policy:\n");
    }
    free(said);
}

// What 8 bits do to each joint, and that it is refused when it is too much.
static void another_precision_is_measured(void **state)
{
    char *said = NULL;

    (void)state;
    write_good();
    assert_int_equal(check(&said), EX_OK);
    has(said, "precision       float32\n");
    assert_null(strstr(said, "from float32"));
    edit(robot, "policy:\n", "policy:\n  precision: int8\n  max_deviation: 0.5\n");
    assert_int_equal(check(&said), EX_OK);
    has(said, "precision       int8: furthest from float32 in ");
    has(said, "on 4 made-up observations");
    has(said, "\nPrecision\n");
    has(said, "50 %  (worst)");
    edit(robot, "max_deviation: 0.5", "max_deviation: 0.000001");
    assert_int_equal(check(&said), EX_CONFIG);
    has(said, "\nPrecision\n"); // the facts come before the verdict
    has(said, "REFUSED: in int8 the policy wants ");
    has(said, "policy.max_deviation allows 0.0001 %: use `precision: float32`, or raise");
    edit(robot, "int8", "int16");
    assert_int_equal(check(&said), EX_CONFIG);
    has(said, "policy.precision: ");
    has(said, "float32, bf16 or int8");
    free(said);
}

static void check_refuses_what_run_would(void **state)
{
    char *said = NULL;

    (void)state;
    write_good();
    edit(robot, "state: pan.pos", "state: pam.pos");
    assert_int_equal(check(&said), EX_CONFIG);
    has(said, "REFUSED: ");
    has(said, "'pam.pos' is no state of the policy; policy.yaml has: pan.pos, lift.pos");
    has(said, "did you mean 'pan.pos'?");
    has(said, "/robot.yaml:");
    edit(robot, "state: pam.pos", "state: pan.pos");
    edit(robot, "chunks:\n", "inference:\n  max_age_ms: 0.001\nchunks:\n");
    assert_int_equal(check(&said), EX_CONFIG);
    has(said, "every chunk would be dropped");
    edit(robot, "max_age_ms: 0.001", "max_skew_ms: 50");
    edit(robot, "chunks:\n", "chunks:\n  horizon_rows: 9\n");
    assert_int_equal(check(&said), EX_CONFIG);
    has(said, "chunks.horizon_rows: 9, but a chunk of this checkpoint has 8 rows");
    edit(robot, "horizon_rows: 9", "horizon_rows: 8");
    unlink(sidecar);
    assert_int_equal(check(&said), EX_CONFIG);
    has(said, "actd init");
    free(said);
}

// The rows that the loop will not look at are not computed, as in run, nor looked at here.
static void a_horizon_is_what_is_computed(void **state)
{
    char *said = NULL;

    (void)state;
    write_good();
    edit(robot, "chunks:\n", "chunks:\n  horizon_rows: 6\n");
    if (check(&said) != EX_OK)
        fail_msg("%s", said);
    has(said, "6 of 8 rows used");
    free(said);
}

static void a_rate_at_which_chunks_are_over_before_they_are_there_is_refused(void **state)
{
    char *said = NULL;

    (void)state;
    write_good();
    edit(sidecar, "rate_hz: 30",
         "rate_hz: 1000"); // 1 row = 1 ms; an inference takes longer
    edit(robot, "chunks:\n", "chunks:\n  horizon_rows: 1\n");
    assert_int_equal(check(&said), EX_CONFIG);
    has(said, "every chunk would be over before it is there");
    free(said);
}

static void check_warns_of_what_looks_wrong(void **state)
{
    char *said = NULL;

    (void)state;
    write_good();
    edit(sidecar, "pan.pos: rad", "pan.pos: deg");
    edit(robot, "[-1.5, 1.5]", "[-0.5, 0.5]");
    edit(robot, "following_error: 0.5", "following_error: 0");
    edit(robot, "velocity: 2", "velocity: 90");
    edit(robot, "chunks:\n", "inference:\n  trigger: continuous\nchunks:\n");
    edit(robot, "rate_hz: 100  #", "rate_hz: 20  #"); // control
    assert_int_equal(check(&said), EX_OK);
    has(said, "pan.pos: policy.yaml says deg, but the statistics (-0.75 .. 0.75) look "
              "like rad");
    has(said,
        "lift: training went from -0.625 to 0.875, the limits from -0.500 to 0.500");
    has(said, "roll: following_error is not watched");
    has(said, "pan: velocity 90 rad/s is 5157 degrees a second: were degrees meant? "
              "Those would be 1.57 rad/s");
    has(said, "control.rate_hz 20 is below the policy's 30");
    has(said,
        "a new chunk every 1 row at best, configured in training to run 8: policies "
        "may stall");
    has(said, "OK, with warnings");
    edit(robot, "mode: crossfade", "mode: ensemble");
    assert_int_equal(check(&said), EX_OK);
    assert_null(strstr(said, "policies may stall"));
    free(said);
}

static void check_does_not_disturb_a_clean_robot(void **state)
{
    char *said = NULL;

    (void)state;
    write_good();
    edit(robot, "mode: crossfade", "mode: ensemble");
    assert_int_equal(check(&said), EX_OK);
    assert_null(strstr(said, "policy.yaml says"));
    assert_null(strstr(said, "training went"));
    assert_null(strstr(said, "not watched: a collision"));
    assert_null(strstr(said, "grey image the policy answers"));
    free(said);
}

static void lost_normalisation_is_a_warning(void **state)
{
    struct act_fixture f = act_fixture_tiny();
    char *said = NULL;

    (void)state;
    f.norm_action = "IDENTITY"; // with statistics that span 6 * 40
    f.action_scale = 40;
    assert_int_equal(act_fixture_write(dir, &f), 0);
    write_good();
    assert_int_equal(check(&said), EX_OK);
    has(said, "pan.pos: actions are not normalised (IDENTITY) although they span 240");
    clean();
    assert_int_equal(make_checkpoint(0.25f), 0);
    free(said);
}

// One joint, two rows; training saw -2 .. 2, so more than 6 from zero is suspicious.
static void output_outside_the_statistics_is_a_warning(void **state)
{
    static const float row[][2] = {{0, 5.9f}, {-5.9f, 1}, {0, 6.1f}, {-6.1f, 0}};
    struct policy_info facts = {.chunk_size = 2,
                                .rows = 2,
                                .n_action_steps = 1,
                                .action_dim = 1,
                                .norm_action = "MIN_MAX"};
    struct check *c = calloc(1, sizeof *c);
    float actions[2];

    (void)state;
    assert_non_null(c);
    *c = (struct check){.info = &facts,
                        .fifo = true,
                        .lockable = true,
                        .latency_ms = 1,
                        .guess = {""},
                        .range = {{.known = true, .lo = -2, .hi = 2}},
                        .side = {.rate_hz = 10, .action = {"a"}, .units = {"rad"}},
                        .binding = {.n = 1, .scale = {1}},
                        .cfg.n_joints = 1,
                        .cfg.control.rate_hz = 100,
                        .cfg.joint = {{.name = "a",
                                       .action = "a",
                                       .scale = NAN,
                                       .min = -3,
                                       .max = 3,
                                       .following_error = 1,
                                       .blend = true}},
                        .loop.chunks = {.rows = 2, .max_age_ns = NS_PER_S}};
    c->actions = actions;
    for (int i = 0; i < 4; i++) {
        memcpy(actions, row[i], sizeof actions);
        c->n_notes = 0;
        assert_int_equal(check_judge(c), 0);
        assert_int_equal(c->n_notes, i < 2 ? 0 : 1);
    }
    has(c->note[0],
        "a: for a grey image the policy answers -6.1 .. 0, training saw -2 .. 2");
    c->cfg.control.require_rt = true;
    c->fifo = false;
    assert_int_equal(check_judge(c), -EINVAL);
    has(c->err.text, "control.require_rt demands; raise RLIMIT_RTPRIO");
    free(c);
}

// Only mean and std, and limits inside of mean +- 3 std: nothing to warn of.
static void estimates_are_called_so_and_judge_no_limits(void **state)
{
    struct act_fixture f = act_fixture_tiny();
    char *said = NULL;

    (void)state;
    f.era = ACT_FIXTURE_V03;
    make_anew(&f);
    write_good();
    edit(sidecar, "gripper.pos: EDIT", "gripper.pos: rad");
    edit(robot, "[-1.5, 1.5]", "[-0.5, 0.5]");
    assert_int_equal(check(&said), EX_OK);
    has(said, "about -0.750 .. 0.750");
    has(said, "mean +- 3 std stand in for them");
    assert_null(strstr(said, "training went"));
    assert_null(strstr(said, "training used"));
    edit(sidecar, "pan.pos: rad", "pan.pos: deg");
    assert_int_equal(check(&said), EX_OK);
    has(said, "the statistics (about -0.75 .. 0.75) look like rad");
    f.era = ACT_FIXTURE_V04;
    make_anew(&f);
    free(said);
}

static int heard;
static char heard_text[4096];

static void hear(const char *said)
{
    size_t n = strlen(heard_text);

    snprintf(heard_text + n, sizeof heard_text - n, "%s\n", said);
    heard++;
}

// What check prints and needs no inference for, run can say too, word for word.
static void the_warnings_can_be_had_alone(void **state)
{
    struct policy_error why = {""};
    const struct policy_options opt = {.threads = 1};
    struct config_sidecar side;
    struct policy *policy;
    struct binding binding;
    struct config cfg;
    char *said = NULL;

    (void)state;
    write_good();
    edit(sidecar, "pan.pos: rad", "pan.pos: deg");
    edit(robot, "following_error: 0.5", "following_error: 0");
    assert_int_equal(check(&said), EX_OK);
    assert_int_equal(config_load(&cfg, robot, &err), 0);
    assert_int_equal(config_sidecar_load(&side, dir, &err), 0);
    assert_int_equal(policy_load(&policy, dir, &opt, &why), 0);
    assert_int_equal(binding_make(&binding, &cfg, &side, policy_describe(policy), &err),
                     0);
    heard = 0;
    heard_text[0] = '\0';
    int n = check_warnings(&cfg, &side, policy_describe(policy), &binding, hear);
    assert_int_equal(n, heard);
    assert_true(heard >= 6); // a unit, five joints unwatched (the gripper is not blended)
    has(heard_text, "pan.pos: policy.yaml says deg");
    for (char *line = strtok(heard_text, "\n"); line; line = strtok(NULL, "\n"))
        has(said, line);
    policy_free(policy);
    free(said);
}

static void slow_inference_is_a_warning(void **state)
{
    struct policy_info facts = {.chunk_size = 10,
                                .rows = 10,
                                .n_action_steps = 10,
                                .action_dim = 1,
                                .norm_action = "MIN_MAX"};
    struct check *c = calloc(1, sizeof *c);
    float actions[10] = {0};

    (void)state;
    assert_non_null(c);
    *c = (struct check){
        .info = &facts,
        .fifo = true,
        .lockable = true,
        .latency_ms = 450,
        .guess = {""},
        .side = {.rate_hz = 10, .action = {"a"}, .units = {"rad"}},
        .binding = {.n = 1, .scale = {1}},
        .cfg.n_joints = 1,
        .cfg.control.rate_hz = 100,
        .cfg.inference.trigger = TRIGGER_ROWS,
        .cfg.joint = {{.name = "a", .action = "a", .scale = NAN, .following_error = 1}},
        .loop.chunks = {.rows = 10, .max_age_ns = NS_PER_S}};
    c->actions = actions;
    assert_int_equal(check_judge(c), 0);
    if (c->n_notes)
        fail_msg("%s", c->note[0]);
    assert_int_equal(check_lead_rows(c), 3); // 10 - ceil(4.5) - 2
    c->latency_ms = 510;                     // half of ten rows is 500 ms
    assert_int_equal(check_judge(c), 0);
    assert_int_equal(c->n_notes, 1);
    has(c->note[0], "5.1 of the 10 rows used of a chunk are over when it is there");
    c->n_notes = 0;
    c->latency_ms = 150;
    c->cfg.chunks.mode = CHUNK_ENSEMBLE;
    c->cfg.inference.trigger = TRIGGER_CONTINUOUS;
    assert_int_equal(check_judge(c), 0);
    assert_int_equal(c->n_notes, 1);
    has(c->note[0],
        "10 inferences a second are asked for (one per row), but this machine "
        "makes at most 6.7");
    c->n_notes = 0;
    c->latency_ms = 90;
    assert_int_equal(check_judge(c), 0);
    assert_int_equal(c->n_notes, 0);
    free(c);
}

static void inspect_needs_no_robot(void **state)
{
    char *said = NULL;
    size_t n;
    FILE *out = open_memstream(&said, &n);

    (void)state;
    assert_int_equal(inspect_run(dir, NULL, out, stderr), EX_OK);
    fclose(out);
    has(said, "observation.images.front, 32x32");
    has(said, "action: 6 values, MEAN_STD");
    has(said, "There is no policy.yaml yet; `actd init ");
    free(said);
    write_good();
    out = open_memstream(&said, &n);
    assert_int_equal(inspect_run(dir, NULL, out, stderr), EX_OK);
    assert_int_equal(inspect_run("/no/such/place", NULL, out, out), EX_CONFIG);
    fclose(out);
    has(said, "policy.yaml: recorded at 30 Hz");
    has(said, "  5      gripper.pos  -0.5 ");
    has(said, "REFUSED: ");
    free(said);
}

static void what_cannot_run_is_not_sent_to_init(void **state)
{
    struct act_fixture f = act_fixture_tiny();
    char *said = NULL;
    size_t n;
    FILE *out = open_memstream(&said, &n);

    (void)state;
    f.n_cameras = 0;
    f.env_dim = 4;
    make_anew(&f);
    assert_int_equal(inspect_run(dir, NULL, out, stderr), EX_OK);
    fclose(out);
    has(said, "actd cannot run this");
    has(said, "actd init writes no policy.yaml for it");
    assert_null(strstr(said, "writes it"));
    free(said);
    f = act_fixture_tiny();
    make_anew(&f);
}

static void a_file_left_to_git_lfs_is_named(void **state)
{
    struct act_fixture f = act_fixture_tiny();
    char path[320], *said = NULL;
    size_t n;
    FILE *out = open_memstream(&said, &n);

    (void)state;
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    put(path, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n");
    assert_int_equal(inspect_run(dir, NULL, out, out), EX_CONFIG);
    fclose(out);
    has(said, "model.safetensors is a Git LFS pointer");
    has(said, "run `git lfs pull`");
    free(said);
    make_anew(&f);
}

// With a checkpoint of its three joints and two cameras, and nothing else changed.
static void the_example_is_accepted_as_written(void **state)
{
    struct act_fixture f = act_fixture_tiny();
    char *said = NULL;

    (void)state;
    f.state_dim = f.action_dim = 3;
    f.action_scale = 30;
    f.n_cameras = 2;
    f.camera[1] = (struct act_fixture_camera){"observation.images.wrist", 32, 32};
    make_anew(&f);
    put(sidecar, "rate_hz: 30\nstate_names: [shoulder.pos, elbow.pos, gripper.pos]\n"
                 "action_names: [shoulder.pos, elbow.pos, gripper.pos]\n"
                 "units: {shoulder.pos: deg, elbow.pos: deg, gripper.pos: 0_100}\n");
    put(robot, get("config/example.yaml"));
    edit(robot, "policies/mine", dir);
    if (check(&said) != EX_OK)
        fail_msg("%s", said);
    assert_null(strstr(said, "following_error"));
    f = act_fixture_tiny();
    make_anew(&f);
    free(said);
}

static void a_refusal_is_no_fact(void **state)
{
    char *facts = NULL, *said = NULL;
    size_t n, m;
    FILE *out = open_memstream(&facts, &n), *err_out = open_memstream(&said, &m);

    (void)state;
    write_good();
    edit(robot, "chunks:\n", "inference:\n  max_age_ms: 0.001\nchunks:\n");
    assert_int_equal(check_run(robot, out, err_out), EX_CONFIG);
    fclose(out);
    fclose(err_out);
    has(facts, "Measured here");
    assert_null(strstr(facts, "REFUSED"));
    assert_ptr_equal(strstr(said, "REFUSED: "), said);
    free(facts);
    free(said);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(check_prints_every_fact_and_ok),
        TEST(check_tells_the_checkpoint),
        TEST(a_shared_core_is_told),
        TEST(another_precision_is_measured),
        TEST(check_refuses_what_run_would),
        TEST(a_horizon_is_what_is_computed),
        TEST(a_rate_at_which_chunks_are_over_before_they_are_there_is_refused),
        TEST(check_warns_of_what_looks_wrong),
        TEST(check_does_not_disturb_a_clean_robot),
        TEST(lost_normalisation_is_a_warning),
        TEST(output_outside_the_statistics_is_a_warning),
        TEST(estimates_are_called_so_and_judge_no_limits),
        TEST(the_warnings_can_be_had_alone),
        TEST(slow_inference_is_a_warning),
        TEST(what_cannot_run_is_not_sent_to_init),
        TEST(a_file_left_to_git_lfs_is_named),
        TEST(the_example_is_accepted_as_written),
        TEST(a_refusal_is_no_fact),
        TEST(inspect_needs_no_robot),
    };
    return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
