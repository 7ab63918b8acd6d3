// lerobot_config: config.json of every dialect, rule by rule.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "policy/lerobot.h"
#include "tests/unit/lerobot_fixture.h"

#define CAMERA "{\"type\":\"VISUAL\",\"shape\":[3,48,64]}"

// An edit of LRF_CONFIG (or, with a path that starts with '1', of LRF_CONFIG_01) and a part of the
// sentence it earns; NULL = accepted.
static const struct {
    const char *path, *value, *says;
} edits[] = {
    {"type", "\"act\"", NULL},
    {"type", "\"smolvla\"", "of type 'smolvla'"},
    {"type", "3", "type must be a string"},
    {"type", NULL, "has no \"type\""},
    {"1type", "\"act\"", NULL},
    {"1type", "\"diffusion\"", "of type 'diffusion'"},
    {"1chunk_size", NULL, "has no \"type\""},
    {"chunk_size", NULL, NULL}, // 100 by default
    {"chunk_size", "3", "n_action_steps 4 is more than chunk_size 3"},
    {"chunk_size", "0", "chunk_size must be a whole number from 1"},
    {"chunk_size", "4.0", "chunk_size must be"},
    {"chunk_size", "\"4\"", "chunk_size must be"},
    {"chunk_size", "null", "chunk_size must be"},
    {"chunk_size", "99999999999", "chunk_size must be"},
    {"n_action_steps", NULL, "n_action_steps 100 is more than chunk_size 4"},
    {"n_action_steps", "4", NULL},
    {"n_action_steps", "5", "n_action_steps 5"},
    {"n_obs_steps", "2", "n_obs_steps must be 1"},
    {"n_obs_steps", NULL, NULL},
    {"dim_model", "9", "no multiple of n_heads"},
    {"dim_model", "-8", "dim_model must be"},
    {"n_heads", "0", "n_heads must be"},
    {"n_heads", "3", "no multiple of n_heads 3"},
    {"n_encoder_layers", "0", "n_encoder_layers must be"},
    {"n_decoder_layers", "0", "n_decoder_layers must be"},
    {"dim_feedforward", "1000000", "dim_feedforward must be"},
    {"latent_dim", "true", "latent_dim must be"},
    {"pre_norm", "true", NULL},
    {"pre_norm", "1", "pre_norm must be true or false"},
    {"pre_norm", "null", "pre_norm must be true or false"},
    {"feedforward_activation", "\"gelu\"", NULL},
    {"feedforward_activation", "\"glu\"", "glu halves"},
    {"feedforward_activation", "\"silu\"", "'silu' is not relu or gelu"},
    {"feedforward_activation", "1", "must be a string"},
    {"temporal_ensemble_coeff", "0.01", "n_action_steps must be 1"},
    {"temporal_ensemble_coeff", "\"x\"", "null or a number"},
    {"temporal_ensemble_coeff", "1e300", "null or a number"},
    {"1temporal_ensemble_momentum", "0.9", "temporal_ensemble_momentum"},
    {"vision_backbone", "\"vgg\"", NULL}, // nobody asks without cameras
    {"input_features", NULL, "input_features is missing"},
    {"input_features", "[]", "input_features is missing or no object"},
    {"input_features", "{}", "no input feature 'observation.state'"},
    {"output_features", "{}", "no output feature 'action'"},
    {"output_features/action/type", "\"STATE\"", "no output feature 'action'"},
    {"output_features/action/shape", "[2,2]", "must have 1 dimension"},
    {"output_features/action/shape", "[0]", "whole numbers from 1"},
    {"output_features/action/shape", "null", "must have 1 dimension"},
    {"output_features/action", "[2]", "must have a type and a shape"},
    {"input_features/observation.state/type", "null",
     "no input feature 'observation.state'"},
    {"input_features/observation.state/shape", "[1e3]", "whole numbers"},
    {"input_features/observation.state/shape", "[5000]", "from 1 to 4096"},
    {"input_features/observation.environment_state", NULL, "neither a camera nor"},
    {"input_features/observation.wind", "{\"type\":\"ENV\",\"shape\":[1]}",
     "must be called"},
    {"input_features/observation.effort", "{\"type\":\"STATE\",\"shape\":[3]}", NULL},
    {"input_features/task", "{\"type\":\"LANGUAGE\",\"shape\":[1,2,3,4]}", NULL},
    {"input_features/observation.images.a", CAMERA, NULL},
    {"input_features/observation.images.a", "{\"type\":\"VISUAL\",\"shape\":[48,64,3]}",
     "48 channels"},
    {"input_features/observation.images.a", "{\"type\":\"VISUAL\",\"shape\":[1,48,64]}",
     "1 channels"},
    {"input_features/observation.images.a", "{\"type\":\"VISUAL\",\"shape\":[3,48]}",
     "must have 3 dimension"},
    {"input_features/observation.images.a",
     "{\"type\":\"VISUAL\",\"shape\":[3,48,100000]}", "from 1 to 8192"},
    {"1input_shapes/observation.images.a", "[3,48,64]", NULL},
    {"1input_shapes/observation.image", "[3,48,64]", NULL},
    {"1input_shapes/observation.images.a", "[48,64]", "must have 3 dimension"},
    {"1input_shapes/observation.state", NULL, "no input feature"},
    {"1output_shapes/action", NULL, "no output feature 'action'"},
    {"1input_normalization_modes", NULL, "input_normalization_modes is missing"},
    {"1output_normalization_modes", "[]", "must be an object"},
    {"1output_normalization_modes/action", "\"mean_max\"", "mode of 'action' is unknown"},
    {"normalization_mapping", NULL, NULL},
    {"normalization_mapping", "3", "must be an object"},
    {"normalization_mapping/STATE", "\"ROBUST\"",
     "mode of 'observation.state' is unknown"},
    {"normalization_mapping/STATE", "7", "mode of 'observation.state' is unknown"},
    {"normalization_mapping/LANGUAGE", "\"ROBUST\"", NULL}, // not a type of ours
};

static void test_config_edits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        bool old = edits[i].path[0] == '1';
        json_t *root = lrf_json(old ? LRF_CONFIG_01 : LRF_CONFIG);
        struct policy_error err = {""};
        struct lr_config c;
        int r;
        bool ok;

        lrf_edit(root, edits[i].path + old, edits[i].value);
        r = lr_config_parse(&c, root, &err);
        ok = edits[i].says ? r == -EINVAL && strstr(err.text, edits[i].says) : r == 0;
        if (!ok || (r < 0 && strncmp(err.text, "config.json", 11) != 0))
            fail_msg("%s = %s: %d '%s'", edits[i].path, edits[i].value, r, err.text);
        json_decref(root);
    }
}

// vision_backbone, dilation and friends count only where there is a camera.
static void test_config_backbone(void **state)
{
    static const struct {
        const char *name, *dilation, *dim;
        int depth;
        bool dilated;
        const char *says;
    } rows[] = {
        {"\"resnet18\"", "false", "8", 18, false, NULL},
        {"\"resnet34\"", "0", "8", 34, false, NULL},
        {"\"resnet50\"", "true", "8", 50, true, NULL},
        {"\"resnet101\"", "1", "8", 101, true, NULL},
        {"\"resnet152\"", "0", "8", 152, false, NULL},
        {"\"resnet18\"", "true", "8", 0, false, "does not exist for resnet18"},
        {"\"resnet34\"", "1", "8", 0, false, "does not exist for resnet34"},
        {"\"resnet50\"", "2", "8", 0, false, "must be true or false"},
        {"\"resnet50\"", "\"no\"", "8", 0, false, "must be true or false"},
        {"\"resnet20\"", "false", "8", 0, false, "'resnet20' is not one of"},
        {"\"resnext50\"", "false", "8", 0, false, "'resnext50' is not one of"},
        {"null", "false", "8", 0, false, "vision_backbone must be a string"},
        {"\"resnet18\"", "false", "6", 0, false, "no multiple of 4"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *root = lrf_json(LRF_CONFIG);
        struct policy_error err = {""};
        struct lr_config c;
        int r;

        lrf_edit(root, "input_features/observation.images.a", CAMERA);
        lrf_edit(root, "vision_backbone", rows[i].name);
        lrf_edit(root, "replace_final_stride_with_dilation", rows[i].dilation);
        lrf_edit(root, "dim_model", rows[i].dim);
        r = lr_config_parse(&c, root, &err);
        if (rows[i].says ? r != -EINVAL || !strstr(err.text, rows[i].says) : r != 0)
            fail_msg("%s: %d '%s'", rows[i].name, r, err.text);
        if (r == 0)
            assert_true(c.act.depth == rows[i].depth &&
                        c.act.dilation == rows[i].dilated);
        json_decref(root);
    }
}

// What an empty config of today means: LeRobot's own defaults.
static void test_config_defaults(void **state)
{
    json_t *root =
        lrf_json("{\"type\":\"act\",\"input_features\":{"
                 "\"observation.images.z\":" CAMERA ","
                 "\"observation.state\":{\"type\":\"STATE\",\"shape\":[6]},"
                 "\"observation.images.a\":{\"type\":\"VISUAL\",\"shape\":[3,10,20]}},"
                 "\"output_features\":{\"action\":{\"type\":\"ACTION\",\"shape\":[7]}}}");
    struct policy_error err = {""};
    struct lr_config c;

    (void)state;
    assert_int_equal(lr_config_parse(&c, root, &err), 0);
    assert_int_equal(c.act.chunk_size, 100);
    assert_int_equal(c.act.n_action_steps, 100);
    assert_int_equal(c.act.dim_model, 512);
    assert_int_equal(c.act.n_heads, 8);
    assert_int_equal(c.act.dim_feedforward, 3200);
    assert_int_equal(c.act.n_encoder_layers, 4);
    assert_int_equal(c.act.n_decoder_layers, 1);
    assert_int_equal(c.act.latent_dim, 32);
    assert_false(c.act.pre_norm || c.act.dilation || c.act.has_ensemble_coeff);
    assert_int_equal(c.act.activation, LEROBOT_RELU);
    assert_string_equal(c.act.backbone, "resnet18");
    assert_int_equal(c.n_cameras, 2); // in the order of the file, not of the alphabet
    assert_string_equal(c.camera[0].key, "observation.images.z");
    assert_string_equal(c.camera[1].key, "observation.images.a");
    assert_true(c.camera[1].shape[1] == 10 && c.camera[1].shape[2] == 20);
    assert_true(c.camera[0].mode == NORM_MEAN_STD && c.action.mode == NORM_MEAN_STD);
    assert_int_equal(c.env.rank, 0);
    json_decref(root);
}

static void test_config_cameras(void **state)
{
    json_t *root = lrf_json(LRF_CONFIG);
    struct policy_error err = {""};
    struct lr_config c;
    char path[64];

    (void)state;
    for (int i = 0; i <= POLICY_MAX_CAMERAS; i++) {
        assert_int_equal(lr_config_parse(&c, root, &err), 0);
        assert_int_equal(c.n_cameras, i);
        snprintf(path, sizeof path, "input_features/observation.images.c%d", i);
        lrf_edit(root, path, CAMERA);
    }
    assert_int_equal(lr_config_parse(&c, root, &err), -EINVAL);
    assert_non_null(strstr(err.text, "more than 16 cameras"));
    json_decref(root);
}

static void test_config_ensemble(void **state)
{
    json_t *root = lrf_json(LRF_CONFIG);
    struct policy_error err = {""};
    struct lr_config c;

    (void)state;
    lrf_edit(root, "n_action_steps", "1");
    lrf_edit(root, "temporal_ensemble_coeff", "0.01");
    assert_int_equal(lr_config_parse(&c, root, &err), 0);
    assert_true(c.act.has_ensemble_coeff && c.act.ensemble_coeff == 0.01f);
    lrf_edit(root, "temporal_ensemble_coeff", "0");
    assert_int_equal(lr_config_parse(&c, root, &err), 0);
    assert_true(c.act.has_ensemble_coeff && c.act.ensemble_coeff == 0.0f);
    json_decref(root);
}

// The file itself: duplicates, depth, size, kind. Text in place of config.json.
static void test_config_file(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "not valid JSON"},
        {"[]", "not a JSON object"},
        {"{\"type\":\"act\",\"type\":\"act\"}", "duplicate"},
        {"{\"type\":\"act\",\"x\":{\"y\":1,\"y\":2}}", "duplicate"},
        {"{\"type\":\"act\",\"x\":NaN}", "not valid JSON"},
        {"{\"type\":\"\xff\"}", "UTF-8"},
        {"{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
         "deeply"},
    };
    static char big[1024 * 1024 + 3];
    struct lrf k;

    (void)state;
    memset(big, ' ', sizeof big - 1);
    memcpy(big, "{}", 2);
    lrf_begin(&k, LRF_03);
    lrf_save(&k);
    for (size_t i = 0; i <= sizeof rows / sizeof rows[0]; i++) {
        bool last = i == sizeof rows / sizeof rows[0];
        struct lerobot_checkpoint *c;
        struct policy_error err = {""};
        char path[300];

        lrf_path(&k, "config.json", path, sizeof path);
        stf_write_text(path, last ? big : rows[i].text);
        assert_int_equal(lerobot_open(&c, k.dir, NULL, &err), -EINVAL);
        if (!strstr(err.text, last ? "larger than" : rows[i].says) ||
            !strstr(err.text, "config.json"))
            fail_msg("row %zu: '%s'", i, err.text);
    }
    lrf_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_edits),    cmocka_unit_test(test_config_backbone),
        cmocka_unit_test(test_config_defaults), cmocka_unit_test(test_config_cameras),
        cmocka_unit_test(test_config_ensemble), cmocka_unit_test(test_config_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
