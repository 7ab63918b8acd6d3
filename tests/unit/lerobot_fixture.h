// lerobot_fixture: small ACT checkpoint directories of each era, to be spoilt and opened. No
// cameras (a backbone is 45 MB): state (3), environment (4), action (2), width 8.
#ifndef ACTD_LEROBOT_FIXTURE_H
#define ACTD_LEROBOT_FIXTURE_H

#include <errno.h>
#include <jansson.h>

#include "policy/lerobot.h"
#include "policy/lerobot_config.h"
#include "policy/lerobot_manifest.h"
#include "tests/unit/st_fixture.h"

enum lrf_era { LRF_01, LRF_03, LRF_04 };

struct lrf {
    char dir[128];
    json_t *config, *pre, *post; // pre and post NULL: no such file
    struct stf weights, pre_stats, post_stats;
};

#define LRF_DIMS                                                                     \
    "\"chunk_size\":4,\"n_action_steps\":4,\"dim_model\":8,\"n_heads\":2,"           \
    "\"dim_feedforward\":12,\"n_encoder_layers\":1,\"n_decoder_layers\":1,\"latent_" \
    "dim\":3,"                                                                       \
    "\"vision_backbone\":\"resnet18\",\"pre_norm\":false,\"use_vae\":true,"          \
    "\"pretrained_backbone_weights\":null,\"feedforward_activation\":\"relu\","      \
    "\"replace_final_stride_with_dilation\":0,\"n_obs_steps\":1,\"dropout\":0.1"

#define LRF_CONFIG                                                                  \
    "{\"type\":\"act\"," LRF_DIMS                                                   \
    ",\"temporal_ensemble_coeff\":null,\"from_tomorrow\":{\"a\":[]},"               \
    "\"input_features\":{\"observation.state\":{\"type\":\"STATE\",\"shape\":[3]}," \
    "\"observation.environment_state\":{\"type\":\"ENV\",\"shape\":[4]}},"          \
    "\"output_features\":{\"action\":{\"type\":\"ACTION\",\"shape\":[2]}},"         \
    "\"normalization_mapping\":{\"STATE\":\"MEAN_STD\",\"ACTION\":\"MEAN_STD\","    \
    "\"ENV\":\"MIN_MAX\"}}"

#define LRF_CONFIG_01                                                                    \
    "{" LRF_DIMS ",\"temporal_ensemble_momentum\":null,"                                 \
    "\"input_shapes\":{\"observation.state\":[3],\"observation.environment_state\":[4]}" \
    ","                                                                                  \
    "\"output_shapes\":{\"action\":[2]},"                                                \
    "\"input_normalization_modes\":{\"observation.state\":\"mean_std\","                 \
    "\"observation.environment_state\":\"min_max\"},"                                    \
    "\"output_normalization_modes\":{\"action\":\"mean_std\"}}"

#define LRF_NORM_CONFIG(features)                      \
    "\"config\":{\"eps\":1e-8,\"features\":{" features \
    "},\"norm_map\":{\"STATE\":\"MEAN_STD\","          \
    "\"ACTION\":\"MEAN_STD\",\"ENV\":\"MIN_MAX\"}}"
#define LRF_ACTION "\"action\":{\"type\":\"ACTION\",\"shape\":[2]}"

#define LRF_PRE                                                                          \
    "{\"name\":\"policy_preprocessor\",\"steps\":["                                      \
    "{\"registry_name\":\"rename_observations_processor\",\"config\":{\"rename_map\":{}" \
    "}},"                                                                                \
    "{\"registry_name\":\"to_batch_processor\",\"config\":{}},"                          \
    "{\"registry_name\":\"device_processor\",\"config\":{\"device\":\"cuda\",\"float_"   \
    "dtype\":null}},"                                                                    \
    "{\"registry_name\":\"normalizer_processor\"," LRF_NORM_CONFIG(                      \
        "\"observation.state\":{\"type\":\"STATE\",\"shape\":[3]},"                      \
        "\"observation.environment_state\":{\"type\":\"ENV\",\"shape\":[4]}"             \
        "," LRF_ACTION) ","                                                              \
                        "\"state_file\":\"pre_stats.safetensors\"}]}"

#define LRF_POST                                                                      \
    "{\"name\":\"policy_postprocessor\",\"steps\":["                                  \
    "{\"registry_name\":\"unnormalizer_processor\"," LRF_NORM_CONFIG(                 \
        LRF_ACTION) ","                                                               \
                    "\"state_file\":\"post_stats.safetensors\"},"                     \
                    "{\"registry_name\":\"device_processor\",\"config\":{\"device\":" \
                    "\"cpu\",\"float_dtype\":null}}]}"

static const float lrf_mean[] = {0.5f, -1.5f, 2.25f, 3.0f},
                   lrf_std[] = {1.0f, 0.25f, 3.0f, 4.0f};
static const float lrf_min[] = {-1, -2, -3, -4}, lrf_max[] = {1, 3, 3, 6};
static const float lrf_other[] = {9, 9, 9, 9};

STF_FN json_t *lrf_json(const char *text)
{
    json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

    if (!v)
        stf_die(text);
    return v;
}

// Sets what the path leads to ("steps/3/config/eps"); value NULL deletes it.
STF_FN void lrf_edit(json_t *root, const char *path, const char *value)
{
    char part[160];
    const char *slash;

    while ((slash = strchr(path, '/'))) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        root = json_is_array(root) ? json_array_get(root, (size_t)atoi(part))
                                   : json_object_get(root, part);
        path = slash + 1;
    }
    if (json_is_array(root) && !value)
        json_array_remove(root, (size_t)atoi(path));
    else if (json_is_array(root) && *path == '+')
        json_array_insert_new(root, (size_t)atoi(path + 1), lrf_json(value));
    else if (json_is_array(root))
        json_array_set_new(root, (size_t)atoi(path), lrf_json(value));
    else if (value)
        json_object_set_new(root, path, lrf_json(value));
    else
        json_object_del(root, path);
}

STF_FN int lrf_visit(void *context, const char *name, int rank, const int *shape)
{
    stf_add(context, name, STF_F32, rank, shape, NULL);
    return 0;
}

STF_FN void lrf_stat(struct stf *f, const char *prefix, const char *stat, int n,
                     const float *v)
{
    char name[200];

    snprintf(name, sizeof name, "%s%s", prefix, stat);
    stf_add(f, name, STF_F32, 1, &n, v);
}

STF_FN void lrf_stats(struct lrf *k, enum lrf_era era)
{
    if (era == LRF_04) {
        lrf_stat(&k->pre_stats, "observation.state", ".mean", 3, lrf_mean);
        lrf_stat(&k->pre_stats, "observation.state", ".std", 3, lrf_std);
        lrf_stat(&k->pre_stats, "observation.state", ".max", 3, lrf_max);
        lrf_stat(&k->pre_stats, "observation.environment_state", ".min", 4, lrf_min);
        lrf_stat(&k->pre_stats, "observation.environment_state", ".max", 4, lrf_max);
        lrf_stat(&k->pre_stats, "action", ".mean", 2, lrf_other); // not what unnormalises
        lrf_stat(&k->pre_stats, "timestamp", ".mean", 1, lrf_other);
        lrf_stat(&k->post_stats, "action", ".mean", 2, lrf_mean);
        lrf_stat(&k->post_stats, "action", ".std", 2, lrf_std);
        return;
    }
    lrf_stat(&k->weights, "normalize_inputs.buffer_observation_state", ".mean", 3,
             lrf_mean);
    lrf_stat(&k->weights, "normalize_inputs.buffer_observation_state", ".std", 3,
             lrf_std);
    lrf_stat(&k->weights, "normalize_inputs.buffer_observation_environment_state", ".min",
             4, lrf_min);
    lrf_stat(&k->weights, "normalize_inputs.buffer_observation_environment_state", ".max",
             4, lrf_max);
    lrf_stat(&k->weights, "normalize_targets.buffer_action", ".mean", 2, lrf_other);
    lrf_stat(&k->weights, "unnormalize_outputs.buffer_action", ".mean", 2, lrf_mean);
    lrf_stat(&k->weights, "unnormalize_outputs.buffer_action", ".std", 2, lrf_std);
}

STF_FN void lrf_begin(struct lrf *k, enum lrf_era era)
{
    static const int cls[] = {1, 8};
    struct policy_error err = {""};
    struct lr_config c;

    memset(k, 0, sizeof *k);
    stf_tempdir(k->dir);
    k->config = lrf_json(era == LRF_01 ? LRF_CONFIG_01 : LRF_CONFIG);
    if (era == LRF_04) {
        k->pre = lrf_json(LRF_PRE);
        k->post = lrf_json(LRF_POST);
    }
    stf_begin(&k->weights);
    stf_begin(&k->pre_stats);
    stf_begin(&k->post_stats);
    if (lr_config_parse(&c, k->config, &err) < 0)
        stf_die(err.text);
    lr_manifest(&c, lrf_visit, &k->weights);
    stf_add(&k->weights, "model.vae_encoder_cls_embed.weight", STF_F32, 2, cls, NULL);
    lrf_stats(k, era);
}

STF_FN void lrf_path(const struct lrf *k, const char *name, char *out, size_t n)
{
    snprintf(out, n, "%.127s/%s", k->dir, name);
}

STF_FN void lrf_dump(struct lrf *k, const char *name, json_t *v)
{
    char path[300];

    lrf_path(k, name, path, sizeof path);
    if (v && json_dump_file(v, path, JSON_INDENT(2)) < 0)
        stf_die(path);
}

// Writes the directory. Call lrf_end when done with it.
STF_FN void lrf_save(struct lrf *k)
{
    static const char *const names[] = {"model.safetensors", "pre_stats.safetensors",
                                        "post_stats.safetensors"};
    struct stf *files[] = {&k->weights, &k->pre_stats, &k->post_stats};
    char path[300];

    lrf_dump(k, "config.json", k->config);
    lrf_dump(k, "policy_preprocessor.json", k->pre);
    lrf_dump(k, "policy_postprocessor.json", k->post);
    for (int i = 0; i < 3; i++) {
        lrf_path(k, names[i], path, sizeof path);
        stf_save(files[i], path);
    }
}

STF_FN void lrf_end(struct lrf *k)
{
    static const char *const names[] = {"config.json",
                                        "policy_preprocessor.json",
                                        "policy_postprocessor.json",
                                        "model.safetensors",
                                        "pre_stats.safetensors",
                                        "post_stats.safetensors",
                                        "adapter_model.safetensors"};
    char path[300];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        lrf_path(k, names[i], path, sizeof path);
        unlink(path);
    }
    rmdir(k->dir);
    json_decref(k->config);
    json_decref(k->pre);
    json_decref(k->post);
}

// Saves, opens, cleans up. *c stays open (its file too) on success.
STF_FN int lrf_open(struct lrf *k, const char *tag, struct lerobot_checkpoint **c,
                    struct policy_error *err)
{
    int r;

    err->text[0] = 0;
    lrf_save(k);
    r = lerobot_open(c, k->dir, tag, err);
    lrf_end(k);
    return r;
}

// Opens and expects: says NULL means accepted, else -EINVAL (or -ENOENT) and this in the text.
STF_FN void lrf_expect(struct lrf *k, const char *tag, const char *what, const char *says)
{
    struct lerobot_checkpoint *c;
    struct policy_error err;
    int r = lrf_open(k, tag, &c, &err);
    bool ok = says ? (r == -EINVAL || r == -ENOENT) && strstr(err.text, says) : r == 0;

    if (!ok || (r < 0 && c))
        fail_msg("%s: %d '%s', expected '%s'", what, r, err.text,
                 says ? says : "(accepted)");
    lerobot_close(c);
}

#endif
