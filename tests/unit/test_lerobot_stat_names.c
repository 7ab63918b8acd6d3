// lerobot_stats: the names that statistics have in the wild: old spellings, groups by data set,
// what a migration script made of them.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <cmocka.h>
#include "policy/lerobot.h"
#include "policy/lerobot_stats.h"
#include "tests/unit/lerobot_fixture.h"

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

// Legacy spellings: the underscore variant, a data set's tag, shared memory.
static void test_legacy_names(void **state)
{
    struct lrf k;

    (void)state;
    lrf_begin(&k, LRF_03);
    replace_stat(&k, "normalize_inputs.buffer_observation_state.mean", 0, NULL);
    lrf_stat(&k.weights, "normalize_inputs.observation_state", "_mean", 3, lrf_mean);
    lrf_expect(&k, NULL, "NormalizeBuffer", NULL);

    lrf_begin(&k, LRF_03);
    replace_stat(&k, "unnormalize_outputs.buffer_action.mean", 0, NULL);
    stf_meta(&k.weights, "unnormalize_outputs.buffer_action.mean",
             "normalize_targets.buffer_action.mean");
    lrf_expect(&k, NULL, "shared memory", NULL);

    lrf_begin(&k, LRF_03); // normalize_targets is no substitute
    replace_stat(&k, "unnormalize_outputs.buffer_action.mean", 0, NULL);
    lrf_expect(&k, NULL, "targets", "no mean of 'action'");

    lrf_begin(&k, LRF_03); // compiled as a whole
    for (size_t i = 0; i < k.weights.n; i++) {
        char name[320];

        snprintf(name, sizeof name, "_orig_mod.%.300s", k.weights.t[i].name);
        snprintf(k.weights.t[i].name, sizeof k.weights.t[i].name, "%s", name);
    }
    lrf_expect(&k, NULL, "compiled", NULL);
}

// lrf_stats of era 0.3 under a tag before "buffer_" in the state and action groups.
static void tag_all(struct lrf *k, const char *tag, const float *mean)
{
    char name[160];

    snprintf(name, sizeof name, "normalize_inputs.%s_buffer_observation_state", tag);
    lrf_stat(&k->weights, name, ".mean", 3, mean);
    lrf_stat(&k->weights, name, ".std", 3, lrf_std);
    snprintf(name, sizeof name,
             "normalize_inputs.%s_buffer_observation_environment_state", tag);
    lrf_stat(&k->weights, name, ".min", 4, lrf_min);
    lrf_stat(&k->weights, name, ".max", 4, lrf_max);
    snprintf(name, sizeof name, "unnormalize_outputs.%s_buffer_action", tag);
    lrf_stat(&k->weights, name, ".mean", 2, mean);
    lrf_stat(&k->weights, name, ".std", 2, lrf_std);
}

static void begin_tagged(struct lrf *k)
{
    lrf_begin(k, LRF_03);
    for (size_t i = k->weights.n; i-- > 0;)
        if (strstr(k->weights.t[i].name, "normalize_"))
            stf_drop(&k->weights, k->weights.t[i].name);
    tag_all(k, "so100", lrf_mean);
    tag_all(k, "so100-red", lrf_other);
}

static void test_tags(void **state)
{
    static const float *const want[] = {lrf_mean, lrf_other};
    static const char *const tags[] = {"so100", "so100-red"};
    struct lerobot_checkpoint *c;
    struct policy_error err;
    struct lrf k;

    (void)state;
    begin_tagged(&k);
    lrf_expect(&k, NULL, "no choice", "set stats_tag to one of so100-red, so100");
    begin_tagged(&k);
    lrf_expect(&k, "", "empty choice", "set stats_tag to one of so100-red, so100");
    begin_tagged(&k);
    lrf_expect(&k, "so10", "wrong choice", "no group 'so10'");
    for (int i = 0; i < 2; i++) {
        begin_tagged(&k);
        assert_int_equal(lrf_open(&k, tags[i], &c, &err), 0);
        assert_true(c->state.sub[1] == want[i][1] && c->action.base[0] == want[i][0]);
        lerobot_close(c);
    }
    lrf_begin(&k, LRF_03);
    lrf_expect(&k, "so100", "no groups", "stats_tag 'so100' fits nothing");
    lrf_begin(&k, LRF_04);
    lrf_expect(&k, "so100", "no groups", "stats_tag 'so100' fits nothing");
}

// LeRobot's migration script turns every "_" of a flattened name into ".".
static void test_migration_bug(void **state)
{
    struct lerobot_checkpoint *c;
    struct policy_error err;
    struct lrf k;

    (void)state;
    lrf_begin(&k, LRF_04);
    replace_stat(&k, "observation.environment_state.min", 0, NULL);
    replace_stat(&k, "observation.environment_state.max", 0, NULL);
    lrf_stat(&k.pre_stats, "observation.environment.state", ".min", 4, lrf_min);
    lrf_stat(&k.pre_stats, "observation.environment.state", ".max", 4, lrf_max);
    assert_int_equal(lrf_open(&k, NULL, &c, &err), 0);
    assert_true(c->env.sub[3] == lrf_min[3]);
    lerobot_close(c);

    lrf_begin(&k, LRF_04); // the exact name wins
    lrf_stat(&k.pre_stats, "observation.environment.state", ".min", 4, lrf_other);
    assert_int_equal(lrf_open(&k, NULL, &c, &err), 0);
    assert_true(c->env.sub[3] == lrf_min[3]);
    lerobot_close(c);

    lrf_begin(&k, LRF_04); // two that fit equally well
    replace_stat(&k, "observation.environment_state.min", 0, NULL);
    lrf_stat(&k.pre_stats, "observation.environment.state", ".min", 4, lrf_min);
    lrf_stat(&k.pre_stats, "observation_environment.state", ".min", 4, lrf_min);
    lrf_expect(&k, NULL, "ambiguous", "two tensors that could be the min of");

    for (int i = 0; i < 2; i++) { // so100.buffer.action, as published
        lrf_begin(&k, LRF_04);
        replace_stat(&k, "action.std", 0, NULL);
        stf_drop(&k.post_stats, "action.mean");
        lrf_stat(&k.post_stats, "so100.buffer.action", ".mean", 2, lrf_mean);
        lrf_stat(&k.post_stats, "so100.buffer.action", ".std", 2, lrf_std);
        if (i == 0)
            lrf_expect(&k, NULL, "tagged", "set stats_tag to one of so100");
        else // a choice has to fit everything
            lrf_expect(&k, "so100", "tagged", "stats_tag 'so100' fits nothing for");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_legacy_names),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_migration_bug),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
