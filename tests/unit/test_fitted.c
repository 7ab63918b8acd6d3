// A checkpoint fitted to a robot: names, cameras that a candidate leaves unused, a
// sidecar that is read by the strict rules, and what is said when something is wrong.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/fitted.h"
#include "tests/unit/act_fixture.h"

#define JOINTS 6

static const char sidecar[] = "rate_hz: 25\n"
                              "units: deg\n"
                              "state_names: [a, b, c, d, e, f]\n"
                              "action_names: [a, b, c, d, e, f]\n";

struct place {
    char dir[64];
    struct config *cfg;
    struct config_error err;
    struct fitted *fitted;
};

static void write_sidecar(const struct place *p, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/policy.yaml", p->dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

// A robot whose joints are the policy's in reverse, with two cameras.
static void robot(struct config *c)
{
    c->n_joints = JOINTS;
    for (int i = 0; i < JOINTS; i++) {
        snprintf(c->joint[i].name, CONFIG_NAME, "joint%d", i);
        snprintf(c->joint[i].state, CONFIG_NAME, "%c", 'f' - i);
        snprintf(c->joint[i].action, CONFIG_NAME, "%c", 'f' - i);
        c->joint[i].scale = NAN;
    }
    c->n_cameras = 2;
    snprintf(c->camera[0].name, CONFIG_NAME, "wrist");
    snprintf(c->camera[0].key, POLICY_NAME_MAX, "observation.images.wrist");
    snprintf(c->camera[1].name, CONFIG_NAME, "front");
    snprintf(c->camera[1].key, POLICY_NAME_MAX, "observation.images.front");
    c->camera[0].rate_hz = c->camera[1].rate_hz = 25;
    c->camera[0].primary = true;
    c->control.rate_hz = 100;
    c->joint_state.rate_hz = 100;
    c->inference.trigger = TRIGGER_ROWS;
    c->inference.every_rows = 3;
    c->chunks.horizon_rows = 6;
    snprintf(c->file, CONFIG_PATH, "robot.yaml");
}

static int setup(void **state)
{
    struct act_fixture f = act_fixture_tiny(); // one camera, front
    struct place *p = calloc(1, sizeof *p);
    *state = p;
    (void)umask(022);
    p->cfg = calloc(1, sizeof *p->cfg);
    robot(p->cfg);
    snprintf(p->dir, sizeof p->dir, "/tmp/actd-fitted.XXXXXX");
    if (!mkdtemp(p->dir) || act_fixture_write(p->dir, &f))
        return -1;
    write_sidecar(p, sidecar);
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/policy.yaml", p->dir);
    fitted_free(p->fitted);
    unlink(path);
    act_fixture_remove(p->dir);
    rmdir(p->dir);
    free(p->cfg);
    free(p);
    return 0;
}

static int load(struct place *p, const struct policy_options *opt)
{
    fitted_free(p->fitted);
    p->err.text[0] = '\0';
    return fitted_load(&p->fitted, p->cfg, p->dir, "tiny", opt, &p->err);
}

static void names(void **state)
{
    static const char *const is[][2] = {
        {"/a/b/reach", "reach"},
        {"/a/b/reach/", "reach"},
        {"/a/reach/pretrained_model", "reach"},
        {"/a/reach/pretrained_model//", "reach"},
        {"pretrained_model", "pretrained_model"},
        {"/a/pretrained_model/pretrained_model", "pretrained_model"},
        {"/a/my_pretrained_model", "my_pretrained_model"},
        {"reach", "reach"},
    };
    char name[CONFIG_NAME];
    (void)state;
    for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
        fitted_name(is[i][0], name);
        assert_string_equal(name, is[i][1]);
    }
    char longest[300];
    memset(longest, 'x', sizeof longest);
    longest[299] = '\0';
    fitted_name(longest, name);
    assert_int_equal(strlen(name), CONFIG_NAME - 1);
}

static void all_of_the_robots_cameras(void **state)
{
    struct place *p = *state;
    const struct policy_options opt = {.threads = 1};
    assert_int_equal(load(p, &opt), -EINVAL); // the policy knows no wrist
    assert_non_null(strstr(p->err.text, "observation.images.wrist"));
    assert_null(p->fitted);
    p->cfg->camera[0] = p->cfg->camera[1];
    p->cfg->camera[0].primary = true;
    p->cfg->n_cameras = 1;
    if (load(p, &opt))
        fail_msg("%s", p->err.text);
    const struct fitted *f = p->fitted;
    assert_string_equal(f->name, "tiny");
    assert_string_equal(f->directory, p->dir);
    assert_ptr_equal(f->seat.info, f->info);
    assert_ptr_equal(f->seat.binding, &f->binding);
    assert_ptr_equal(f->info, policy_describe(f->policy));
    assert_int_equal(f->seat.step_ns, 40 * NS_PER_MS);
    assert_int_equal(f->seat.every_rows, 3);
    assert_int_equal(f->seat.horizon_rows, 6);
    assert_int_equal(f->deadline_ns, 6 * 40 * NS_PER_MS);
    for (int i = 0; i < JOINTS; i++) {
        assert_int_equal(f->binding.joint_of[i], JOINTS - 1 - i);
        assert_true(fabs(f->binding.scale[i] - 57.29577951) < 1e-6);
    }
}

// What the loop will look at is all that is computed, and what the worker hands over.
static void the_rows_that_are_asked_for(void **state)
{
    struct place *p = *state;
    struct policy_options opt = {.threads = 1};
    p->cfg->camera[0] = p->cfg->camera[1];
    p->cfg->camera[0].primary = true;
    p->cfg->n_cameras = 1;
    assert_int_equal(load(p, &opt), 0);
    assert_int_equal(p->fitted->seat.rows, p->fitted->info->chunk_size);
    opt.rows = p->cfg->chunks.horizon_rows;
    assert_int_equal(load(p, &opt), 0);
    assert_int_equal(p->fitted->seat.rows, 6);
    assert_int_equal(p->fitted->info->rows, 6);
    assert_int_equal(p->fitted->seat.horizon_rows, 6);
    opt.rows = p->cfg->chunks.horizon_rows = 9; // it has 8: config_loop.c says so
    assert_int_equal(load(p, &opt), -EINVAL);
    assert_non_null(strstr(p->err.text, "chunks.horizon_rows: 9"));
}

// Its one camera is the robot's second, and is where the anchor comes from, since the
// primary one is not looked at.
static void a_candidate_leaves_cameras_unused(void **state)
{
    struct place *p = *state;
    struct policy *running = NULL;
    const struct policy_options plain = {.threads = 1};
    assert_int_equal(policy_load(&running, p->dir, &plain, NULL), 0);
    const struct policy_options opt = {
        .beside = running, .strict_files = true, .name = "tiny"};
    if (load(p, &opt))
        fail_msg("%s", p->err.text);
    assert_int_equal(p->fitted->binding.camera_of[0], 1);
    assert_int_equal(p->fitted->binding.primary, 1);
    p->cfg->camera[0].primary = false;
    p->cfg->camera[1].primary = true;
    assert_int_equal(load(p, &opt), 0);
    assert_int_equal(p->fitted->binding.primary, 1);
    snprintf(p->cfg->camera[1].key, POLICY_NAME_MAX, "observation.images.top");
    assert_int_equal(load(p, &opt), -EINVAL); // but it may not look at others
    assert_non_null(strstr(p->err.text, "'observation.images.front' has no camera"));
    policy_free(running);
}

static void a_sidecar_by_the_strict_rules(void **state)
{
    struct place *p = *state;
    const struct policy_options opt = {
        .threads = 1, .strict_files = true, .name = "tiny"};
    char path[128], other[128];
    snprintf(path, sizeof path, "%s/policy.yaml", p->dir);
    snprintf(other, sizeof other, "%s.else", p->dir);
    p->cfg->camera[0] = p->cfg->camera[1];
    p->cfg->camera[0].primary = true;
    p->cfg->n_cameras = 1;
    assert_int_equal(load(p, &opt), 0);
    chmod(path, 0664);
    assert_int_equal(load(p, &opt), -EINVAL);
    assert_non_null(strstr(p->err.text, "tiny/policy.yaml can be written by others"));
    chmod(path, 0644);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(load(p, &opt), -ENOENT);
    assert_non_null(strstr(p->err.text, "tiny/policy.yaml: not there"));
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(load(p, &opt), -ELOOP);
    assert_non_null(strstr(p->err.text, "tiny/policy.yaml is a symbolic link"));
    unlink(path);
    unlink(other);
    write_sidecar(p, "rate_hz: 25\nrate_hz: 30\n");
    assert_int_equal(load(p, &opt), -EINVAL);
    assert_ptr_equal(strstr(p->err.text, "tiny/policy.yaml:2:1"), p->err.text);
    assert_null(p->fitted);
}

static void what_the_loader_says(void **state)
{
    struct place *p = *state;
    const struct policy_options opt = {
        .threads = 1, .strict_files = true, .name = "tiny"};
    char path[128];
    snprintf(path, sizeof path, "%s/model.safetensors", p->dir);
    assert_int_equal(truncate(path, 1000), 0);
    assert_true(load(p, &opt) < 0);
    assert_non_null(strstr(p->err.text, "tiny/model.safetensors"));
    assert_null(strstr(p->err.text, p->dir));
    unlink(path);
    assert_int_equal(load(p, &opt), -ENOENT);
    const _Atomic bool cancel = true;
    const struct policy_options off = {.threads = 1, .cancel = &cancel};
    struct act_fixture f = act_fixture_tiny();
    assert_int_equal(act_fixture_write(p->dir, &f), 0);
    assert_int_equal(load(p, &off), -ECANCELED);
}

// In 8 bits it is further from float32 than a strict robot allows: refused, also as a candidate.
static void a_precision_that_is_too_far_off(void **state)
{
    struct place *p = *state;
    struct policy *running = NULL;
    const struct policy_options plain = {.threads = 1};
    assert_int_equal(policy_load(&running, p->dir, &plain, NULL), 0);
    struct policy_options opt = {.beside = running, .precision = PRECISION_INT8};
    for (int i = 0; i < JOINTS; i++) {
        p->cfg->joint[i].min = -2;
        p->cfg->joint[i].max = 2;
    }
    p->cfg->policy.max_deviation = 1e-6;
    assert_int_equal(load(p, &opt), -EDOM);
    assert_null(p->fitted);
    assert_non_null(strstr(p->err.text, "in int8 the policy wants joint"));
    assert_non_null(strstr(p->err.text, "policy.max_deviation allows 0.0001 %"));
    p->cfg->policy.max_deviation = 0.01; // actions are in degrees here: of hundredths
    if (load(p, &opt))
        fail_msg("%s", p->err.text);
    assert_int_equal(p->fitted->info->precision, PRECISION_INT8);
    p->cfg->policy.max_deviation = 0;
    opt.precision = PRECISION_FLOAT32;
    assert_int_equal(load(p, &opt), 0);
    policy_free(running);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        TEST(all_of_the_robots_cameras),
        TEST(the_rows_that_are_asked_for),
        TEST(a_candidate_leaves_cameras_unused),
        TEST(a_sidecar_by_the_strict_rules),
        TEST(what_the_loader_says),
        TEST(a_precision_that_is_too_far_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
