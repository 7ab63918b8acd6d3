// init: what is written from a small checkpoint, what is refused until a person has
// filled it in, what a data set's description may look like, and the guess at units.
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

#include "daemon/units.h"
#include "tests/unit/robot_files.h"

// ---- init -----------------------------------------------------------------------------

static void with_a_data_set_names_rate_and_units_are_known(void **state)
{
    struct config_sidecar s;
    char *said = NULL;

    (void)state;
    if (init(info, false, &said))
        fail_msg("%s", err.text);
    assert_int_equal(config_sidecar_load(&s, dir, &err), 0); // nothing left to fill in
    assert_true(s.rate_hz == 30);
    assert_int_equal(s.n_state, 6);
    assert_string_equal(s.state[5], "gripper.pos");
    assert_string_equal(s.action[0], "pan.pos");
    assert_string_equal(s.units[0], "rad");
    assert_int_equal(s.n_cameras, 1);
    assert_string_equal(s.camera[0], "observation.images.front");
    has(get(sidecar), "PLEASE CONFIRM");
    has(get(robot), "\n  gripper:\n    state: gripper.pos\n");
    has(get(robot), "blend: false");
    has(get(robot), "# Recorded with robot type: bench");
    has(get(robot), "seen in training: -0.750 .. 0.750"); // mean 0, 3 std of 0.25
    has(said, "confirm the guess");
    has(said, "actd check -c ");
    free(said);
}

static void limits_are_refused_until_a_person_fills_them_in(void **state)
{
    static const char *const step[][3] = {
        {"rate_hz: EDIT", "rate_hz: 100", "joint_state.rate_hz: fill in"},
        {"[EDIT, EDIT]", "[-1.5, 1.5]", "joints.pan.position: fill in"},
        {"velocity: EDIT", "velocity: 2", "joints.pan.velocity: fill in"},
        {"acceleration: EDIT", "acceleration: 8", "joints.pan.acceleration: fill in"}};
    struct config cfg;
    char *said = NULL;

    (void)state;
    assert_int_equal(init(info, false, &said), 0);
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) {
        assert_int_equal(config_load(&cfg, robot, &err), -EINVAL);
        has(err.text, step[i][2]);
        edit(robot, step[i][0], step[i][1]);
    }
    if (config_load(&cfg, robot, &err))
        fail_msg("%s", err.text);
    assert_string_equal(cfg.joint[0].name, "pan");
    assert_string_equal(cfg.camera[0].name, "front");
    assert_true(cfg.camera[0].rate_hz == 30);
    free(said);
}

static void without_a_data_set_the_rest_is_marked(void **state)
{
    struct config_sidecar s;
    struct config cfg;
    char *said = NULL;

    (void)state;
    assert_int_equal(init(NULL, false, &said), 0);
    assert_int_equal(config_sidecar_load(&s, dir, &err), -EINVAL);
    has(err.text, "rate_hz: fill in");
    has(said, "--dataset meta/info.json");
    has(said, "driver's name of each joint");
    edit(sidecar, "rate_hz: EDIT", "rate_hz: 10");
    if (config_sidecar_load(&s, dir, &err))
        fail_msg("%s", err.text);
    assert_string_equal(s.state[3], "state_3");
    assert_string_equal(s.action[5], "action_5");
    edit(robot, "rate_hz: EDIT", "rate_hz: 100");
    edit(robot, "[EDIT, EDIT]", "[-1.5, 1.5]");
    edit(robot, "velocity: EDIT", "velocity: 2");
    edit(robot, "acceleration: EDIT", "acceleration: 8");
    assert_int_equal(config_load(&cfg, robot, &err), -EINVAL);
    has(err.text, "joints.EDIT_joint_0: fill in the name");
    edit(robot, "EDIT_joint", "motor");
    assert_int_equal(config_load(&cfg, robot, &err), 0);
    assert_string_equal(cfg.joint[5].action, "action_5");
    assert_string_equal(cfg.joint[5].state, "state_5");
    free(said);
}

static void train_config_gives_the_rate(void **state)
{
    char path[320], *said = NULL;

    (void)state;
    snprintf(path, sizeof path, "%s/train_config.json", dir);
    put(path, "{\"env\": {\"type\": \"aloha\", \"fps\": 50}, \"seed\": 1}");
    assert_int_equal(init(NULL, false, &said), 0);
    has(get(sidecar), "rate_hz: 50  # from train_config.json's env.fps\n");
    unlink(path);
    free(said);
}

static void nothing_is_overwritten_without_force(void **state)
{
    char *said = NULL;

    (void)state;
    put(robot, "mine\n");
    assert_int_equal(init(info, false, &said), -EEXIST);
    has(err.text, "--force");
    assert_string_equal(get(robot), "mine\n");
    assert_int_not_equal(access(sidecar, F_OK), 0); // and the other file was not begun
    assert_int_equal(init(info, true, &said), 0);
    assert_int_equal(init(info, true, &said), 0);
    has(get(robot), "Written by `actd init`");
    free(said);
}

static void a_policy_yaml_that_is_there_is_kept_and_used(void **state)
{
    static const char own[] = "rate_hz: 25\nstate_names: [a, b, c, d, e, f]\n"
                              "action_names: [a, b, c, d, e, f]\nunits: {a: rad, b: rad, "
                              "c: rad, d: rad, e: rad, f: 0_100}\n";
    char *said = NULL;

    (void)state;
    put(sidecar, own);
    assert_int_equal(init(info, false, &said), -EEXIST); // the data set would not be used
    assert_int_equal(init(NULL, false, &said), 0);
    assert_string_equal(get(sidecar), own);
    has(said, "kept ");
    has(get(robot),
        "  f:\n    state: f\n    action: f\n    scale: EDIT  # 100 / (open - closed)");
    has(said, "  joints.f: scale and offset, since 0_100 does not say");
    clean();
    put(sidecar, "rate_hz: 25\nstate_names: [a]\naction_names: [a]\nunits: rad\n");
    assert_int_equal(init(NULL, false, &said), -EINVAL);
    has(err.text, "1 state and 1 action, but the checkpoint has 6 and 6");
    put(sidecar, "rate_hz: EDIT\n");
    assert_int_equal(init(NULL, false, &said), -EINVAL);
    has(err.text, "--force writes a new policy.yaml");
    free(said);
}

static void a_wrong_place_is_a_sentence(void **state)
{
    struct init_options opt = {.checkpoint = "/no/such/place", .output = robot};

    (void)state;
    assert_int_equal(init_run(&opt, stdout, &err), -ENOENT);
    has(err.text, "/no/such/place: no such directory");
    opt.checkpoint = "/tmp/.";
    assert_true(init_run(&opt, stdout, &err) < 0);
    has(err.text, "config.json");
}

// ---- data sets ------------------------------------------------------------------------

static int dataset(const char *json, struct init_dataset *d)
{
    char path[340];
    int rc;

    snprintf(path, sizeof path, "%s/other.json", dir);
    put(path, json);
    rc = init_dataset_read(d, path, &err);
    unlink(path);
    return rc;
}

#define FEATURES(action) \
    "{\"fps\": 5, \"features\": {\"action\": {\"names\": " action "}}}"

static void names_come_in_three_shapes(void **state)
{
    static const char *const good[] = {
        FEATURES("[\"a\", \"b\"]"), FEATURES("{\"motors\": [\"a\", \"b\"]}"),
        FEATURES("{\"left\": [\"a\"], \"right\": [\"b\"]}"),
        FEATURES("{\"b\": 1, \"a\": 0}")};
    struct init_dataset d;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(dataset(good[i], &d), 0);
        assert_true(d.fps == 5);
        assert_int_equal(d.n_action, 2);
        assert_string_equal(d.action[0], "a");
        assert_string_equal(d.action[1], "b");
        assert_int_equal(d.n_state, 0);
    }
    assert_int_equal(dataset(FEATURES("null"), &d), 0);
    assert_int_equal(d.n_action, 0);
}

static void bad_data_sets_are_refused(void **state)
{
    static const char *const bad[][2] = {
        {FEATURES("[\"a\", \"a\"]"), "stands there twice"},
        {FEATURES("[\"a\", 1]"), "expected texts"},
        {FEATURES("{\"a\": 1}"), "a position has no name"},
        {FEATURES("{\"a\": -1}"), "positions 0..31"},
        {FEATURES("{\"a\": 32}"), "positions 0..31"},
        {FEATURES("{\"a\": 4294967296}"), "positions 0..31"},
        {FEATURES("[\"\"]"), "a name has no"},
        {FEATURES("[\"a\\u001bb\"]"), "control character"},
        {"{\"fps\": 5}", "no `features`"},
        {"[]", ""},
        {"{", ""}};
    struct init_dataset d;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err.text[0] = '\0';
        assert_true(dataset(bad[i][0], &d) < 0);
        assert_true(*err.text);
        has(err.text, bad[i][1]);
    }
}

static void a_data_set_of_another_robot_is_refused(void **state)
{
    char other[340], *said = NULL;

    (void)state;
    snprintf(other, sizeof other, "%s/other.json", dir);
    put(other, FEATURES("[\"a\", \"b\"]"));
    assert_int_equal(init(other, false, &said), -EINVAL);
    has(err.text, "names 0 states and 2 actions, but the checkpoint has 6 and 6");
    unlink(other);
    free(said);
}

// ---- what is left to a person ---------------------------------------------------------

static void left_open(const char *robot_type, const char *unit, const char *gripper)
{
    char expected[120], *said = NULL;
    struct config_sidecar s;

    clean();
    make_info(robot_type);
    assert_int_equal(init(info, false, &said), 0);
    assert_int_equal(config_sidecar_load(&s, dir, &err), -EINVAL);
    has(err.text, "fill in the unit");
    snprintf(expected, sizeof expected, "  pan.pos: EDIT  # looks like %s; ", unit);
    has(get(sidecar), expected);
    snprintf(expected, sizeof expected, "  gripper.pos: %s", gripper);
    has(get(sidecar), expected);
    has(get(sidecar), "# deg or m100_100? ");
    has(get(sidecar),
        strcmp(unit, UNITS_ARM_EITHER) == 0 ? "Both fit" : "has been either");
    has(said, "the file says what fits and how to tell");
    free(said);
    make_info("bench");
}

// Standard deviation 20, means 0 to 0.6: ends of 60, or with mean and std alone no ends.
static void units_that_could_be_others_are_left_to_a_person(void **state)
{
    struct act_fixture f = act_fixture_tiny();
    char *said = NULL;

    (void)state;
    f.action_scale = 20;
    make_anew(&f);
    left_open("bench", UNITS_ARM_EITHER, "EDIT  # looks like deg or m100_100");
    left_open("so101_follower", UNITS_ARM_EITHER, "0_100");
    f.action_scale = 60; // beyond 100: degrees, but with which zero?
    make_anew(&f);
    left_open("so100", "deg", "0_100");
    clean();
    assert_int_equal(init(info, false, &said), 0);
    has(get(sidecar), "  pan.pos: deg  # seen in training: -180.0 .. 180.0\n");
    clean();
    assert_int_equal(init(NULL, false, &said), 0); // which is the gripper?
    has(get(sidecar), "  action_5: EDIT  # looks like deg, or a gripper; ");
    has(get(sidecar), "nothing tells a gripper from an arm joint");
    f.era = ACT_FIXTURE_V03;
    f.action_scale = 60;
    make_anew(&f);
    left_open("bench", UNITS_ARM_EITHER,
              "EDIT  # looks like deg or 0_100; in training "
              "about -179.8 .. 180.2 (mean +- 3 std)");
    left_open("so101", UNITS_ARM_EITHER, "0_100");
    f = act_fixture_tiny();
    make_anew(&f);
    left_open("so101", "rad", "EDIT"); // LeRobot's own SO arms never were in rad
    free(said);
}

static void an_ensembled_checkpoint_is_ensembled(void **state)
{
    struct act_fixture f = act_fixture_tiny();
    struct config cfg;
    char *said = NULL;

    (void)state;
    snprintf(f.ensemble_coeff, sizeof f.ensemble_coeff, "0.025");
    f.n_action_steps = 1;
    make_anew(&f);
    write_good();
    if (config_load(&cfg, robot, &err))
        fail_msg("%s", err.text);
    assert_int_equal(cfg.chunks.mode, CHUNK_ENSEMBLE);
    assert_int_equal(cfg.inference.trigger, TRIGGER_CONTINUOUS);
    assert_true(fabs(cfg.chunks.ensemble_coeff - 0.025) < 1e-8);
    f = act_fixture_tiny();
    make_anew(&f);
    write_good();
    assert_int_equal(config_load(&cfg, robot, &err), 0);
    assert_int_equal(cfg.chunks.mode, CHUNK_CROSSFADE);
    free(said);
}

// ---- units ----------------------------------------------------------------------------

static void units_are_guessed_from_statistics(void **state)
{
    static const struct {
        double lo[3], hi[3];
        const char *arm, *gripper; // joints 0 and 1; 2 is the gripper
    } row[] = {
        {{-1.5, -0.4, 0}, {1.2, 2.9, 0.9}, "rad", "0_1"},             // ALOHA
        {{-99.7, -80, 2}, {42, 99.1, 96}, UNITS_ARM_EITHER, "0_100"}, // SO-101, mid-2025
        {{-70, -60, 0.5}, {80, 95, 55}, UNITS_ARM_EITHER, "0_100"},   // SO-101 now
        {{-140, -60, 0}, {80, 95, 99}, "deg", "0_100"},
        {{-1.5, -1, -0.3}, {1.5, 1, 1.6}, "rad", "rad"}, // gripper in rad too
        {{-120, -1, -20}, {120, 1, 120}, "deg", "deg"},
    };
    static const char names[3][CONFIG_NAME] = {"a", "b", "left_gripper.pos"};

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct units_range r[3];
        const char *out[3];
        for (int k = 0; k < 3; k++)
            r[k] = (struct units_range){
                .known = true, .lo = row[i].lo[k], .hi = row[i].hi[k]};
        units_guess(r, names[0], CONFIG_NAME, 3, out);
        assert_string_equal(out[0], row[i].arm);
        assert_string_equal(out[1], row[i].arm);
        assert_string_equal(out[2], row[i].gripper);
        r[1].known = false;
        units_guess(r, names[0], CONFIG_NAME, 3, out);
        assert_string_equal(out[1], "");
    }
}

// Mean 30, std 40 of a value that never left -100..100 gives an end of 150.
static void estimates_leave_more_open(void **state)
{
    static const char names[3][CONFIG_NAME] = {"a", "b", "gripper"};
    static const struct {
        double mean[3], std[3];
        const char *arm, *gripper;
    } row[] = {{{30, -20, 30}, {40, 50, 25}, UNITS_ARM_EITHER, UNITS_GRIP_LARGE},
               {{130, -20, 30}, {40, 50, 25}, "deg", UNITS_GRIP_LARGE},
               {{130, -20, -30}, {40, 50, 25}, "deg", "deg"},
               {{0.3, -0.2, 0.4}, {0.4, 0.5, 0.3}, "rad", UNITS_GRIP_SMALL},
               {{0.3, -0.2, 1.4}, {0.4, 0.5, 0.3}, "rad", "rad"}};

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct units_range r[3];
        const char *out[3];
        for (int k = 0; k < 3; k++)
            r[k] = (struct units_range){.known = true,
                                        .estimated = true,
                                        .lo = row[i].mean[k] - 3 * row[i].std[k],
                                        .hi = row[i].mean[k] + 3 * row[i].std[k]};
        units_guess(r, names[0], CONFIG_NAME, 3, out);
        assert_string_equal(out[0], row[i].arm);
        assert_string_equal(out[2], row[i].gripper);
    }
}

static void a_choice_fits_each_of_its_units(void **state)
{
    (void)state;
    assert_true(units_fits("", "deg") && !units_is_sure(""));
    assert_true(units_fits("deg", "deg") && units_is_sure("deg"));
    assert_false(units_fits("deg", "rad"));
    assert_true(units_fits(UNITS_ARM_EITHER, "deg"));
    assert_true(units_fits(UNITS_ARM_EITHER, "m100_100"));
    assert_false(units_fits(UNITS_ARM_EITHER, "0_100")); // the tail of m100_100
    assert_false(units_fits(UNITS_ARM_EITHER, "m100"));
    assert_false(units_fits(UNITS_ARM_EITHER, "m"));
    assert_false(units_is_sure(UNITS_ARM_EITHER));
    assert_true(units_is_so_arm("so101_follower") &&
                units_is_so_arm("bi_so100_follower"));
    assert_false(units_is_so_arm("aloha") || units_is_so_arm(""));
}

static void ranges_come_from_whatever_is_there(void **state)
{
    const float mean[2] = {1, 2}, std[2] = {0.5f, INFINITY}, lo[2] = {-1, -2},
                hi[2] = {3, 4};
    struct policy_stats s = {.n = 2, .mean = mean, .std = std};
    struct units_range r[3];

    (void)state;
    units_ranges(&s, r, 3);
    assert_true(r[0].known && r[0].estimated && r[0].lo == -0.5 && r[0].hi == 2.5);
    assert_false(r[1].known); // not finite
    assert_false(r[2].known); // beyond the statistics
    s.min = lo;
    s.max = hi;
    units_ranges(&s, r, 2);
    assert_true(r[1].known && !r[1].estimated && r[1].lo == -2 && r[1].hi == 4);
    s = (struct policy_stats){.n = 2};
    units_ranges(&s, r, 2);
    assert_false(r[0].known);
}

static void command_lines_are_checked(void **state)
{
    char init_word[] = "init", inspect_word[] = "inspect", place[] = "/no/such/place",
         unknown[] = "--colour";
    char *none[] = {init_word, NULL}, *bad[] = {init_word, unknown, place, NULL};
    char *two[] = {inspect_word, place, place, NULL}, *gone[] = {init_word, place, NULL};

    (void)state;
    assert_int_equal(init_main(1, none), EX_USAGE);
    assert_int_equal(init_main(3, bad), EX_USAGE);
    assert_int_equal(inspect_main(3, two), EX_USAGE);
    assert_int_equal(init_main(2, gone), EX_CONFIG);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(with_a_data_set_names_rate_and_units_are_known),
        TEST(limits_are_refused_until_a_person_fills_them_in),
        TEST(without_a_data_set_the_rest_is_marked),
        TEST(train_config_gives_the_rate),
        TEST(nothing_is_overwritten_without_force),
        TEST(a_policy_yaml_that_is_there_is_kept_and_used),
        TEST(a_wrong_place_is_a_sentence),
        TEST(names_come_in_three_shapes),
        TEST(bad_data_sets_are_refused),
        TEST(a_data_set_of_another_robot_is_refused),
        TEST(units_are_guessed_from_statistics),
        TEST(estimates_leave_more_open),
        TEST(a_choice_fits_each_of_its_units),
        TEST(units_that_could_be_others_are_left_to_a_person),
        TEST(an_ensembled_checkpoint_is_ensembled),
        TEST(ranges_come_from_whatever_is_there),
        TEST(command_lines_are_checked),
    };
    return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
