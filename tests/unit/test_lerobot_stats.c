// lerobot_stats: where each era keeps its statistics, and what may be wrong with them.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <cmocka.h>

#include "policy/lerobot.h"
#include "policy/lerobot_stats.h"
#include "tests/unit/lerobot_fixture.h"

static void test_eras(void **state)
{
    static const char *const formats[] = {
        "LeRobot 0.1 config, statistics in model.safetensors",
        "LeRobot 0.2 to 0.3, statistics in model.safetensors",
        "LeRobot 0.4 or later, statistics in processor files"};
    struct lerobot_checkpoint *c;
    struct policy_error err;

    (void)state;
    for (int era = LRF_01; era <= LRF_04; era++) {
        struct lrf k;

        lrf_begin(&k, (enum lrf_era)era);
        if (lrf_open(&k, NULL, &c, &err) < 0)
            fail_msg("era %d: %s", era, err.text);
        assert_string_equal(c->format, formats[era]);
        assert_true(c->state_dim == 3 && c->env_dim == 4 && c->action_dim == 2);
        assert_true(c->n_cameras == 0 && c->act.depth == 0 && c->act.backbone[0] == 0);
        assert_true(c->act.chunk_size == 4 && c->act.latent_dim == 3);
        for (int i = 0; i < 3; i++) {
            assert_true(c->state.sub[i] == lrf_mean[i] &&
                        c->state.range[i] == lrf_std[i]);
            assert_true(c->state_stats.mean[i] == lrf_mean[i]);
            assert_true(c->state_stats.std[i] == lrf_std[i]);
        }
        for (int i = 0; i < 4;
             i++) { // the old era adds 1e-8, which shows in no range of 2
            assert_true(c->env.sub[i] == lrf_min[i]);
            assert_true(c->env.range[i] == lrf_max[i] - lrf_min[i]);
        }
        for (int i = 0; i < 2; i++) // unnormalize_outputs or the post file, nothing else
            assert_true(c->action.base[i] == lrf_mean[i] &&
                        c->action.range[i] == lrf_std[i]);
        assert_true(c->action_stats.n == 2 && c->action_stats.mean[1] == lrf_mean[1]);
        assert_true((c->state_stats.max != NULL) == (era == LRF_04));
        assert_null(c->state_stats.q01);
        lerobot_close(c);
    }
}

// Both eras' range formulas where they differ: a value that never moved.
static void test_formula_of_era(void **state)
{
    static const int four = 4;
    struct lerobot_checkpoint *c;
    struct policy_error err;

    (void)state;
    for (int era = LRF_01; era <= LRF_04; era++) {
        const char *name =
            era == LRF_04 ? "observation.environment_state.max"
                          : "normalize_inputs.buffer_observation_environment_state.max";
        struct lrf k;
        struct stf *f;

        lrf_begin(&k, (enum lrf_era)era);
        f = era == LRF_04 ? &k.pre_stats : &k.weights;
        stf_drop(f, name);
        stf_add(f, name, STF_F32, 1, &four, lrf_min);
        assert_int_equal(lrf_open(&k, NULL, &c, &err), 0);
        assert_true(c->env.div[0] == 1e-8f);
        assert_true(c->env.range[0] == (era == LRF_04 ? 1e-8f : 0.0f));
        lerobot_close(c);
    }
}

static void replace_stat(struct lrf *k, const char *name, int n, const float *v)
{
    struct stf *files[] = {&k->pre_stats, &k->post_stats, &k->weights};
    int done = 0;

    for (int i = 0; i < 3; i++)
        if (stf_index(files[i], name) >= 0) {
            stf_drop(files[i], name);
            if (v)
                stf_add(files[i], name, STF_F32, 1, &n, v);
            done++;
            break;
        }
    assert_int_equal(done, 1);
}

static const struct {
    enum lrf_era era;
    const char *stat, *feature, *file;
} needed[] = {
    {LRF_04, "observation.state.mean", "'observation.state'", "pre_stats.safetensors"},
    {LRF_04, "observation.state.std", "'observation.state'", "pre_stats.safetensors"},
    {LRF_04, "observation.environment_state.min", "'observation.environment_state'",
     "pre_stats.safetensors"},
    {LRF_04, "action.std", "'action'", "post_stats.safetensors"},
    {LRF_03, "normalize_inputs.buffer_observation_state.mean", "'observation.state'",
     "model.safetensors"},
    {LRF_03, "unnormalize_outputs.buffer_action.std", "'action'", "model.safetensors"},
    {LRF_01, "normalize_inputs.buffer_observation_environment_state.max",
     "'observation.environment_state'", "model.safetensors"},
    {LRF_01, "unnormalize_outputs.buffer_action.mean", "'action'", "model.safetensors"},
};

static void expect_all(struct lrf *k, const char *what, const char *feature,
                       const char *file, const char *says)
{
    struct lerobot_checkpoint *c;
    struct policy_error err;
    int r = lrf_open(k, NULL, &c, &err);

    if (r != -EINVAL || !strstr(err.text, feature) || !strstr(err.text, file) ||
        !strstr(err.text, says))
        fail_msg("%s: %d '%s', expected %s, %s, %s", what, r, err.text, feature, file,
                 says);
}

static void test_spoilt(void **state)
{
    static const float infinite[] = {1, INFINITY, 1, 1}, nan[] = {NAN, 1, 1, 1};
    struct lrf k;

    (void)state;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        int n = strstr(needed[i].stat, "action")        ? 2
                : strstr(needed[i].stat, "environment") ? 4
                                                        : 3;

        lrf_begin(&k, needed[i].era);
        replace_stat(&k, needed[i].stat, 0, NULL);
        expect_all(&k, "missing", needed[i].feature, needed[i].file,
                   "copy the processor files");
        lrf_begin(&k, needed[i].era);
        replace_stat(&k, needed[i].stat, n, infinite);
        expect_all(&k, "inf", needed[i].feature, needed[i].file, "not finite at index 1");
        lrf_begin(&k, needed[i].era);
        replace_stat(&k, needed[i].stat, n, nan);
        expect_all(&k, "nan", needed[i].feature, needed[i].file, "not finite at index 0");
        lrf_begin(&k, needed[i].era);
        replace_stat(&k, needed[i].stat, n - 1, lrf_min);
        expect_all(&k, "width", needed[i].feature, needed[i].file,
                   "values, the feature has");
    }
}

// What no mode needs may be odd: it is left out of the facts, and nobody is stopped.
static void test_unneeded(void **state)
{
    static const float infinite[] = {INFINITY, 1, 1};
    struct lerobot_checkpoint *c;
    struct policy_error err;
    struct lrf k;

    (void)state;
    lrf_begin(&k, LRF_04);
    replace_stat(&k, "observation.state.max", 3, infinite);
    lrf_stat(&k.pre_stats, "observation.state", ".min", 2, lrf_min);
    lrf_stat(&k.pre_stats, "observation.state", ".q01", 3, lrf_min);
    assert_int_equal(lrf_open(&k, NULL, &c, &err), 0);
    assert_true(!c->state_stats.max && !c->state_stats.min &&
                c->state_stats.q01[2] == lrf_min[2]);
    lerobot_close(c);
}

static void test_identity_needs_nothing(void **state)
{
    struct lrf k;

    (void)state;
    for (int era = LRF_01; era <= LRF_03; era++) {
        struct lerobot_checkpoint *c;
        struct policy_error err;

        lrf_begin(&k, (enum lrf_era)era);
        for (size_t i = k.weights.n; i-- > 0;)
            if (strstr(k.weights.t[i].name, "normalize_"))
                stf_drop(&k.weights, k.weights.t[i].name);
        lrf_edit(k.config,
                 era == LRF_01 ? "input_normalization_modes" : "normalization_mapping",
                 "{}");
        if (era == LRF_01)
            lrf_edit(k.config, "output_normalization_modes", "{\"action\":\"identity\"}");
        assert_int_equal(lrf_open(&k, NULL, &c, &err), 0);
        assert_non_null(strstr(c->format, "no statistics needed"));
        assert_true(c->state.mode == NORM_IDENTITY && c->state.sub[0] == 0 &&
                    c->state.div[2] == 1);
        assert_null(c->state_stats.mean);
        lerobot_close(c);
    }
    lrf_begin(&k, LRF_03); // the buffers know no quantiles
    lrf_edit(k.config, "normalization_mapping/STATE", "\"QUANTILES\"");
    lrf_expect(&k, NULL, "legacy quantiles", "'observation.state' by QUANTILES");
}

// Cameras: one statistic per channel, in any shape, under flattened names. No weights needed.
static void test_camera_stats(void **state)
{
    static const int c11[] = {3, 1, 1}, chw[] = {3, 2, 2};
    static const struct {
        const char *prefix, *name;
        const int *shape;
        int rank;
        const char *says;
    } rows[] = {
        {"", "observation.images.wrist_right.", c11, 3, NULL},
        {"", "observation.images.wrist_right.", c11, 1, NULL},
        {"", "observation.images.wrist.right.", c11, 3, NULL},
        {"", "observation.images.wrist_left.", c11, 3, "has no mean of"},
        {"", "observation.images.wrist_right.", chw, 3,
         "has 12 values, the feature has 3"},
        {"normalize_inputs.", "normalize_inputs.buffer_observation_images_wrist_right.",
         c11, 3, NULL},
        {"normalize_inputs.", "normalize_targets.buffer_observation_images_wrist_right.",
         c11, 3, "has no mean of"},
    };
    struct lr_feature f = {
        "observation.images.wrist_right", LR_VISUAL, 3, {3, 48, 64}, NORM_MEAN_STD};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct policy_error err = {""};
        struct norm norm = {0};
        struct lr_names names;
        struct st_file *file;
        char dir[128], path[160], name[160];
        struct stf w;
        int r;

        stf_tempdir(dir);
        snprintf(path, sizeof path, "%s/x", dir);
        stf_begin(&w);
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "%s%s", rows[i].name, k ? "std" : "mean");
            stf_add(&w, name, STF_F32, rows[i].rank, rows[i].shape, NULL);
            w.t[k].value[0] = w.t[k].value[1] = 0.25f;
            w.t[k].value[2] = 0.5f;
        }
        stf_save(&w, path);
        assert_int_equal(st_open(&file, path, &err), 0);
        assert_int_equal(lr_names_build(&names, file, &err), 0);
        r = lr_stats_build(
            &norm, NULL,
            &(struct lr_source){NULL, "x", file, &names, rows[i].prefix, NULL}, &f, &err);
        if (rows[i].says ? r != -EINVAL || !strstr(err.text, rows[i].says) : r != 0)
            fail_msg("%s: %d '%s'", rows[i].name, r, err.text);
        if (r == 0)
            assert_true(norm.n == 3 && norm.sub[2] == 0.5f);
        norm_free(&norm);
        lr_names_close(&names);
        st_close(file);
        unlink(path);
        rmdir(dir);
    }
}

// A whole checkpoint with cameras: 178 tensors, whose 45 MB of data are a hole in the file.
static void test_resnet_checkpoint(void **state)
{
    struct lerobot_checkpoint *c;
    struct policy_error err = {""};
    struct lr_config config;
    char path[300], *header = malloc(1 << 20);
    size_t at = 1, offset = 0;
    struct lrf k;
    struct stf w;

    (void)state;
    assert_non_null(header);
    lrf_begin(&k, LRF_04);
    lrf_edit(k.config, "input_features/observation.images.top",
             "{\"type\":\"VISUAL\",\"shape\":[3,48,64]}");
    lrf_edit(k.config, "input_features/observation.images.a_b",
             "{\"type\":\"VISUAL\",\"shape\":[3,96,128]}");
    lrf_stat(&k.pre_stats, "observation.images.a_b", ".mean", 3, lrf_min);
    lrf_edit(k.pre, "steps/3/config/norm_map/VISUAL", "\"IDENTITY\"");
    assert_int_equal(lr_config_parse(&config, k.config, &err), 0);
    stf_begin(&w);
    lr_manifest(&config, lrf_visit, &w);
    header[0] = '{';
    for (size_t i = 0; i < w.n; i++) {
        at += (size_t)snprintf(header + at, 400, "\"%s\":{\"dtype\":\"F32\",\"shape\":[",
                               w.t[i].name);
        for (int d = 0; d < w.t[i].rank; d++)
            at +=
                (size_t)snprintf(header + at, 20, "%s%d", d ? "," : "", w.t[i].shape[d]);
        at += (size_t)snprintf(header + at, 80, "],\"data_offsets\":[%zu,%zu]}%s", offset,
                               offset + 4 * w.t[i].count, i + 1 < w.n ? "," : "}");
        offset += 4 * w.t[i].count;
        free(w.t[i].value);
    }
    free(w.t);
    lrf_save(&k);
    lrf_path(&k, "model.safetensors", path, sizeof path);
    stf_write_raw(path, header, at, "", 0);
    assert_int_equal(truncate(path, (off_t)(8 + at + offset)), 0);
    if (lerobot_open(&c, k.dir, NULL, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(c->n_cameras == 2 && c->act.depth == 18);
    assert_string_equal(c->act.backbone, "resnet18");
    assert_string_equal(c->camera[1].key, "observation.images.a_b");
    assert_true(c->camera[1].height == 96 && c->camera[1].width == 128);
    assert_true(c->camera[1].norm.mode == NORM_IDENTITY && c->camera[0].norm.n == 3);
    lerobot_close(c);
    lrf_end(&k);
    free(header);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eras),
        cmocka_unit_test(test_formula_of_era),
        cmocka_unit_test(test_spoilt),
        cmocka_unit_test(test_unneeded),
        cmocka_unit_test(test_identity_needs_nothing),
        cmocka_unit_test(test_camera_stats),
        cmocka_unit_test(test_resnet_checkpoint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
