// lerobot_processor: the pipelines of policy_preprocessor.json and policy_postprocessor.json.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <cmocka.h>
#include "policy/lerobot.h"
#include "policy/lerobot_processor.h"
#include "policy/lerobot_stats.h"
#include "tests/unit/lerobot_fixture.h"

#define RENAME "steps/0/config/rename_map"
#define NORM   "steps/3/config/"

// Edits of the preprocessor ('+' inserts a step before that index).
static const struct {
    const char *path, *value, *says;
} pre_edits[] = {
    {"steps", "{}", "needs a list"},
    {"steps", "[]", "has no normalizer_processor step"},
    {"steps/3", NULL, "has no normalizer_processor step"},
    {"steps/0", NULL, NULL},
    {"steps/1", "{\"registry_name\":\"to_batch_processor_action\"}", NULL},
    {"steps/1", "{\"class\":\"evil.Step\",\"config\":{}}", "step of class 'evil.Step'"},
    {"steps/1", "{\"class\":\"os\",\"registry_name\":\"to_batch_processor\"}",
     "class 'os'"},
    {"steps/1", "{}", "step without registry_name"},
    {"steps/1", "7", "step without registry_name"},
    {"steps/+0", "{\"registry_name\":\"image_crop_resize_processor\"}",
     "'image_crop_resize_processor'"},
    {"steps/+4", "{\"registry_name\":\"relative_actions_processor\"}",
     "'relative_actions_processor'"},
    {"steps/+1", "{\"registry_name\":\"unnormalizer_processor\"}",
     "'unnormalizer_processor'"},
    {"steps/+1", "{\"registry_name\":\"observation_processor\"}",
     "'observation_processor'"},
    {"steps/+3",
     "{\"registry_name\":\"normalizer_processor\",\"config\":{\"features\":{},"
     "\"norm_map\":{}}}",
     "normalises twice"},
    {"steps/2/config/float_dtype", "\"float32\"", NULL},
    {"steps/2/config/float_dtype", "\"float16\"", "casts to float16"},
    {"steps/2/config/float_dtype", "16", "casts to something"},
    {RENAME, "{\"observation.images.left\":\"observation.state\"}", NULL},
    {RENAME, "{\"observation.state\":\"observation.state\"}", NULL},
    {RENAME, "{\"observation.state\":\"observation.environment_state\"}",
     "renames the policy's own feature 'observation.state'"},
    {RENAME, "{\"a\":1}", "must be a string"},
    {RENAME, "[]", "must be an object"},
    {"steps/+4",
     "{\"registry_name\":\"rename_observations_processor\",\"config\":"
     "{\"rename_map\":{\"a\":\"b\"}}}",
     "after it normalised"},
    {"steps/+4",
     "{\"registry_name\":\"rename_observations_processor\",\"config\":"
     "{\"rename_map\":{}}}",
     NULL},
    {NORM "eps", "0.5", NULL},
    {NORM "eps", NULL, NULL},
    {NORM "eps", "-1", "eps must be"},
    {NORM "eps", "\"1e-8\"", "eps must be"},
    {NORM "features", NULL, "needs the objects"},
    {NORM "norm_map", "[]", "needs the objects"},
    {NORM "norm_map/STATE", "\"ROBUST\"", "mode of STATE is unknown"},
    {NORM "norm_map/STATE", "\"QUANTILES\"", "no q01 of 'observation.state'"},
    {NORM "norm_map/STATE", NULL, NULL}, // IDENTITY, as LeRobot reads it
    {NORM "features/observation.state", NULL,
     "does not list the feature 'observation.state'"},
    {NORM "features/observation.state/type", "\"ENV\"", "disagree"},
    {NORM "features/observation.state/shape", "[4]", "disagree"},
    {NORM "features/observation.state/shape", "[3,1]", "disagree"},
    {NORM "normalize_observation_keys", "null", NULL},
    {NORM "normalize_observation_keys", "[\"observation.state\"]", NULL},
    {NORM "normalize_observation_keys", "{}", "needs the objects"},
    {"steps/3/state_file", NULL,
     "policy_preprocessor.json has no mean of 'observation.state'"},
    {"steps/3/state_file", "null", "policy_preprocessor.json has no mean of"},
    {"steps/3/state_file", "\"../pre_stats.safetensors\"", "not the plain name"},
    {"steps/3/state_file", "\"/etc/passwd\"", "not the plain name"},
    {"steps/3/state_file", "\"..\"", "not the plain name"},
    {"steps/3/state_file", "\"\"", "not the plain name"},
    {"steps/3/state_file", "\"a\\\\b\"", "not the plain name"},
    {"steps/3/state_file", "5", "not the plain name"},
    {"steps/3/state_file", "\"gone.safetensors\"", "policy_preprocessor.json names it"},
    {"steps/3/state_file", "\"config.json\"", "config.json"},
};

static void test_preprocessor(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pre_edits / sizeof pre_edits[0]; i++) {
        struct lrf k;
        char what[300];

        lrf_begin(&k, LRF_04);
        lrf_edit(k.pre, pre_edits[i].path, pre_edits[i].value);
        snprintf(what, sizeof what, "%s = %.150s", pre_edits[i].path, pre_edits[i].value);
        lrf_expect(&k, NULL, what, pre_edits[i].says);
    }
}

static void test_postprocessor(void **state)
{
    static const struct {
        const char *path, *value, *says;
    } edits[] = {
        {"steps/1", NULL, NULL},
        {"steps/0", NULL, "policy_postprocessor.json has no unnormalizer_processor"},
        {"steps/+0", "{\"registry_name\":\"normalizer_processor\"}",
         "'normalizer_processor'"},
        {"steps/+1", "{\"registry_name\":\"absolute_actions_processor\"}",
         "'absolute_actions_processor'"},
        {"steps/+1", "{\"registry_name\":\"rename_observations_processor\"}",
         "'rename_observations_processor'"},
        {"steps/+0", "{\"registry_name\":\"to_batch_processor\"}", NULL},
        {"steps/1/config/float_dtype", "\"bfloat16\"", "casts to bfloat16"},
        {"steps/0/config/features/action/shape", "[3]",
         "disagree on the type or shape of 'action'"},
        {"steps/0/config/norm_map/ACTION", "\"MIN_MAX\"", "no min of 'action'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        struct lrf k;

        lrf_begin(&k, LRF_04);
        lrf_edit(k.post, edits[i].path, edits[i].value);
        lrf_expect(&k, NULL, edits[i].path, edits[i].says);
    }
}

static void forget(json_t **file)
{
    json_decref(*file);
    *file = NULL;
}

static void test_lost_file(void **state)
{
    struct lrf k;

    (void)state;
    lrf_begin(&k, LRF_04);
    forget(&k.pre);
    lrf_expect(&k, NULL, "pre lost", "policy_preprocessor.json is missing while");
    lrf_begin(&k, LRF_04);
    forget(&k.post);
    lrf_expect(&k, NULL, "post lost", "policy_postprocessor.json is missing while");
    lrf_begin(&k, LRF_04);
    forget(&k.post);
    lrf_edit(k.config, "normalization_mapping/ACTION", "\"IDENTITY\"");
    lrf_expect(&k, NULL, "post not needed", NULL);
    lrf_begin(&k, LRF_04);
    forget(&k.pre);
    forget(&k.post);
    lrf_expect(&k, NULL, "both lost",
               "there is no policy_preprocessor.json and model.safetensors");
}

// The mode and the eps are the pipeline's, not config.json's.
static void test_pipeline_rules(void **state)
{
    struct lerobot_checkpoint *c;
    struct policy_error err;
    struct lrf k;

    (void)state;
    lrf_begin(&k, LRF_04);
    lrf_edit(k.pre, NORM "eps", "0.5");
    lrf_edit(k.pre, NORM "normalize_observation_keys", "[\"observation.state\"]");
    lrf_edit(k.config, "normalization_mapping", "{}");
    assert_int_equal(lrf_open(&k, NULL, &c, &err), 0);
    assert_true(c->state.mode == NORM_MEAN_STD && c->state.div[0] == lrf_std[0] + 0.5f);
    assert_true(c->env.mode == NORM_IDENTITY && c->action.mode == NORM_MEAN_STD);
    assert_true(c->action.div[0] == lrf_std[0] + 1e-8f);
    lerobot_close(c);
}

// Processor files win over buffers where a file has both.
static void test_processor_wins(void **state)
{
    struct lerobot_checkpoint *c;
    struct policy_error err;
    struct lrf k;

    (void)state;
    lrf_begin(&k, LRF_04);
    lrf_stat(&k.weights, "normalize_inputs.buffer_observation_state", ".mean", 3,
             lrf_other);
    lrf_stat(&k.weights, "normalize_inputs.buffer_observation_state", ".std", 3,
             lrf_other);
    lrf_stat(&k.weights, "unnormalize_outputs.buffer_action", ".mean", 2, lrf_other);
    assert_int_equal(lrf_open(&k, NULL, &c, &err), 0);
    assert_true(c->state.sub[0] == lrf_mean[0] && c->action.base[0] == lrf_mean[0]);
    lerobot_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_preprocessor),   cmocka_unit_test(test_postprocessor),
        cmocka_unit_test(test_lost_file),      cmocka_unit_test(test_pipeline_rules),
        cmocka_unit_test(test_processor_wins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
