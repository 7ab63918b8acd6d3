// golden.safetensors: written, found good, and everything that must make it say no; the tool
// that writes it; the one that ships.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <sysexits.h>

#include "daemon/golden.h"
#include "policy/golden.h"
#include "policy/safetensors.h"
#include "tests/unit/checkpoint_scratch.h"

#define WEIGHTS "model.safetensors"

static int load(const struct scratch *s, struct policy_options opt,
                struct policy_info *info, struct policy_error *err)
{
    struct policy *p;
    memset(err, 0, sizeof *err);
    int rc = policy_load(&p, s->dir, &opt, err);
    if (rc == 0 && info)
        *info = *policy_describe(p);
    policy_free(p);
    return rc;
}

static void write_golden(const struct scratch *s, uint64_t seed, int rc)
{
    const struct policy_options opt = {.skip_golden = true};
    struct policy_error err;
    struct policy *p;
    assert_int_equal(policy_load(&p, s->dir, &opt, &err), 0);
    int got = golden_write(p, s->dir, seed, rc == 0, &err);
    if (got != rc)
        fail_msg("%d: %s", got, err.text);
    policy_free(p);
}

static struct act_fixture with_camera(void)
{
    struct act_fixture f = act_fixture_tiny();
    f.n_cameras = 2;
    f.camera[1] = (struct act_fixture_camera){"observation.images.wrist", 40, 32};
    f.norm_state = "MIN_MAX";
    return f;
}

static void test_good(void **unused)
{
    (void)unused;
    const struct act_fixture fixtures[2] = {scratch_small(), with_camera()};
    for (int k = 0; k < 2; k++) {
        struct policy_info info;
        struct policy_error err;
        struct scratch s;
        scratch_make(&s, &fixtures[k]);
        assert_int_equal(load(&s, (struct policy_options){0}, &info, &err), 0);
        assert_true(info.golden_error < 0); // there is none
        write_golden(&s, 1, 0);
        assert_int_equal(load(&s, (struct policy_options){0}, &info, &err), 0);
        assert_true(info.golden_error == 0); // the same build, the same bits
        const struct policy_options other = {.threads = 3, .strict_files = true};
        assert_int_equal(load(&s, other, &info, &err), 0);
        assert_true(info.golden_error >= 0 && info.golden_error < 1e-5);
        const struct policy_options skip = {.skip_golden = true};
        assert_int_equal(load(&s, skip, &info, &err), 0);
        assert_true(info.golden_error < 0);
        write_golden(&s, 2, -EEXIST);
        write_golden(&s, 2, 0);
        assert_int_equal(load(&s, (struct policy_options){0}, &info, &err), 0);
        scratch_remove(&s);
    }
}

// The recorded answer is what policy_infer says to the recorded observation.
static void test_is_a_record(void **unused)
{
    (void)unused;
    const struct act_fixture f = with_camera();
    struct policy_error err;
    struct st_file *file;
    struct scratch s;
    struct policy *p;
    static uint8_t front[32 * 32 * 3], wrist[40 * 32 * 3];
    float state[6], recorded[48], answer[48];
    scratch_make(&s, &f);
    write_golden(&s, 7, 0);
    assert_int_equal(st_open(&file, scratch_path(&s, GOLDEN_FILE), &err), 0);
    assert_int_equal(st_count(file), 4);
    const struct st_tensor *t = st_find(file, "observation.state");
    assert_int_equal(st_read_f32(file, t, state, 6, &err), 0);
    t = st_find(file, "action");
    assert_int_equal(st_read_f32(file, t, recorded, 48, &err), 0);
    t = st_find(file, "observation.images.front");
    assert_int_equal(st_read_bytes(file, t, front, sizeof front, &err), 0);
    assert_int_equal(st_read_bytes(file, t, front, 5, &err), -EINVAL);
    t = st_find(file, "observation.images.wrist");
    assert_int_equal(st_read_bytes(file, t, wrist, sizeof wrist, &err), 0);
    st_close(file);
    assert_memory_not_equal(front, front + 4 * 96 + 24 * 3, 24); // not one colour
    assert_int_equal(policy_load(&p, s.dir, NULL, &err), 0);
    const struct policy_image image[2] = {
        {.rgb = front, .width = 32, .height = 32, .stride = 96},
        {.rgb = wrist, .width = 32, .height = 40, .stride = 96}};
    const struct policy_observation obs = {state, NULL, image};
    assert_int_equal(policy_infer(p, &obs, answer, NULL), 0);
    assert_memory_equal(answer, recorded, sizeof answer);
    policy_free(p);
    scratch_remove(&s);
}

// ---- refusals -------------------------------------------------------------------------

static void other_weight(struct scratch *s)
{
    scratch_poke(s, WEIGHTS, "model.action_head.bias", 4, 0.75f);
}

static void other_statistic(struct scratch *s)
{
    scratch_poke(s, ACT_FIXTURE_POST, "action.std", 3, 0.3f);
}

static void other_answer(struct scratch *s)
{
    scratch_poke(s, GOLDEN_FILE, "action", 13, 0.9f); // row 2, value 1
}

static void not_a_number(struct scratch *s)
{
    scratch_poke(s, GOLDEN_FILE, "action", 13, NAN);
}

static void state_not_a_number(struct scratch *s)
{
    scratch_poke(s, GOLDEN_FILE, "observation.state", 2, INFINITY);
}

static void overflowing_state(struct scratch *s)
{
    scratch_poke(s, GOLDEN_FILE, "observation.state", 2, 3e38f);
    scratch_poke(s, ACT_FIXTURE_PRE, "observation.state.std", 2, 1e-8f);
}

static void shorter_chunk(struct scratch *s)
{
    scratch_edit(s, GOLDEN_FILE, "\"shape\":[8,6]", "\"shape\":[6,8]");
}

static void other_name(struct scratch *s)
{
    scratch_edit(s, GOLDEN_FILE, "\"observation.environment_state\"",
                 "\"observation.enXironment_state\"");
}

static void other_type(struct scratch *s)
{
    scratch_edit(s, GOLDEN_FILE, "\"F32\"", "\"I32\"");
}

static void cut(struct scratch *s)
{
    assert_int_equal(truncate(scratch_path(s, GOLDEN_FILE), 300), 0);
}

static void one_more(struct scratch *s)
{
    scratch_edit(s, GOLDEN_FILE, "{\"observation.state\":",
                 "{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},"
                 "\"observation.state\":");
    size_t size;
    char *all = scratch_read(s, GOLDEN_FILE, &size);
    uint64_t n;
    memcpy(&n, all, 8);
    n += strlen("\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},");
    memcpy(all, &n, 8);
    scratch_write(s, GOLDEN_FILE, all, size);
    free(all);
}

static void open_to_all(struct scratch *s)
{
    assert_int_equal(chmod(scratch_path(s, GOLDEN_FILE), 0666), 0);
}

static void a_link(struct scratch *s)
{
    char aside[600];
    snprintf(aside, sizeof aside, "%s/aside", s->dir);
    assert_int_equal(rename(scratch_path(s, GOLDEN_FILE), aside), 0);
    assert_int_equal(symlink("aside", s->path), 0);
}

static const struct {
    const char *name;
    void (*spoil)(struct scratch *s);
    int rc;
    const char *says[3];
} refusals[] = {
    {"other weight",
     other_weight,
     -EINVAL,
     {"value 4 of row", "was recorded", "--force"}},
    {"other statistic", other_statistic, -EINVAL, {"value 3 of row", "statistics", ""}},
    {"other answer", other_answer, -EINVAL, {"value 1 of row 2", "where 0.9 was", ""}},
    {"answer NaN", not_a_number, -EINVAL, {"'action'", "index 13", "write it anew"}},
    {"state infinite",
     state_not_a_number,
     -EINVAL,
     {"'observation.state'", "index 2", ""}},
    {"state too far", overflowing_state, -EINVAL, {GOLDEN_FILE, "not finite", ""}},
    {"other chunk", shorter_chunk, -EINVAL, {"'action'", "another checkpoint", ""}},
    {"other name", other_name, -EINVAL, {"'observation.environment_state'", "", ""}},
    {"other type", other_type, -EINVAL, {"'observation.state'", "type", ""}},
    {"cut short", cut, -EINVAL, {GOLDEN_FILE, "", ""}},
    {"one more", one_more, -EINVAL, {"no part of an observation", "", ""}},
    {"open to all", open_to_all, -EINVAL, {GOLDEN_FILE, "chmod go-w", ""}},
    {"a link", a_link, -ELOOP, {GOLDEN_FILE, "symbolic link", ""}},
};

static void test_refusals(void **unused)
{
    (void)unused;
    const struct act_fixture f = scratch_small();
    const struct policy_options opt = {.name = "pick_v2", .strict_files = true};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct policy_error err;
        struct scratch s;
        scratch_make(&s, &f);
        write_golden(&s, 1, 0);
        assert_int_equal(load(&s, opt, NULL, &err), 0);
        refusals[i].spoil(&s);
        int rc = load(&s, opt, NULL, &err);
        print_message("%-16s %s\n", refusals[i].name, err.text);
        assert_int_equal(rc, refusals[i].rc);
        for (int k = 0; k < 3; k++)
            if (!strstr(err.text, refusals[i].says[k]))
                fail_msg("%s: '%s' does not say '%s'", refusals[i].name, err.text,
                         refusals[i].says[k]);
        assert_non_null(strstr(err.text, i == 5 ? GOLDEN_FILE : "pick_v2/" GOLDEN_FILE));
        scratch_remove(&s);
    }
}

// The bound itself: just inside, just outside, measured against the largest action or 1.
static void test_tolerance(void **unused)
{
    (void)unused;
    struct act_fixture f = scratch_small();
    for (int k = 0; k < 2; k++) {
        float recorded[48];
        struct policy_error err;
        struct policy_info info;
        struct st_file *file;
        struct scratch s;
        double scale = 1;
        f.action_scale = k ? 64.0f : 0.0625f;
        scratch_make(&s, &f);
        write_golden(&s, 1, 0);
        assert_int_equal(st_open(&file, scratch_path(&s, GOLDEN_FILE), &err), 0);
        assert_int_equal(st_read_f32(file, st_find(file, "action"), recorded, 48, &err),
                         0);
        st_close(file);
        for (int i = 0; i < 48; i++)
            scale = fmax(scale, fabs((double)recorded[i]));
        assert_true(k ? scale > 8 : scale == 1);
        scratch_poke(&s, GOLDEN_FILE, "action", 20,
                     recorded[20] + (float)(0.9e-4 * scale));
        assert_int_equal(load(&s, (struct policy_options){0}, &info, &err), 0);
        assert_true(fabs(info.golden_error - 0.9e-4) < 3e-6);
        scratch_poke(&s, GOLDEN_FILE, "action", 20,
                     recorded[20] + (float)(1.1e-4 * scale));
        assert_int_equal(load(&s, (struct policy_options){0}, &info, &err), -EINVAL);
        scratch_remove(&s);
    }
}

// ---- the tool -------------------------------------------------------------------------

static int tool(const struct scratch *s, bool force, char *out, char *err, size_t size)
{
    FILE *o = fmemopen(out, size, "w"), *e = fmemopen(err, size, "w");
    assert_non_null(o);
    assert_non_null(e);
    int status = golden_run(s->dir, NULL, force, o, e);
    fclose(o);
    fclose(e);
    return status;
}

static void test_tool(void **unused)
{
    (void)unused;
    const struct act_fixture f = scratch_small();
    char out[1000] = "", err[1000] = "";
    struct policy_error why;
    struct scratch s;
    struct stat st;
    scratch_make(&s, &f);
    assert_int_equal(tool(&s, false, out, err, sizeof out), EX_OK);
    assert_non_null(strstr(out, "written"));
    assert_int_equal(stat(scratch_path(&s, GOLDEN_FILE), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_int_equal(tool(&s, false, out, err, sizeof out), EX_CANTCREAT);
    assert_non_null(strstr(err, "--force"));
    other_weight(&s); // which the old record refuses and a new one takes
    assert_int_equal(load(&s, (struct policy_options){0}, NULL, &why), -EINVAL);
    assert_int_equal(tool(&s, true, out, err, sizeof out), EX_OK);
    assert_int_equal(load(&s, (struct policy_options){0}, NULL, &why), 0);
    scratch_poke(&s, WEIGHTS, "model.action_head.bias", 4, NAN);
    assert_int_equal(tool(&s, true, out, err, sizeof out), EX_CONFIG);
    assert_non_null(strstr(err, "not finite"));
    char *none[] = {"golden", NULL}, *two[] = {"golden", "a", "b", NULL},
         *odd[] = {"golden", "--odd", s.dir, NULL};
    assert_int_equal(golden_main(1, none), EX_USAGE);
    assert_int_equal(golden_main(3, two), EX_USAGE);
    assert_int_equal(golden_main(3, odd), EX_USAGE);
    scratch_remove(&s);
}

// What ships was recorded on another day: this build still says the same.
static void test_shipped(void **unused)
{
    (void)unused;
    const struct scratch s = {.dir = "config/policies/reach"};
    struct policy_error err;
    struct policy_info info;
    if (load(&s, (struct policy_options){.threads = 2}, &info, &err))
        fail_msg("%s", err.text);
    print_message("  golden_error of the shipped policy %.2e\n", info.golden_error);
    assert_true(info.golden_error >= 0 && info.golden_error < 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),     cmocka_unit_test(test_is_a_record),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_tolerance),
        cmocka_unit_test(test_tool),     cmocka_unit_test(test_shipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
