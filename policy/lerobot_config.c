// lerobot_config: the scalar keys of config.json and the rules that LeRobot itself checks.
#include "policy/lerobot_config.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "policy/jscan.h"
#include "policy/refuse.h"

// The bounds are far beyond what anybody trains, and keep every product of them in an int.
static const struct int_key {
    const char *name;
    size_t offset;
    int fallback, min, max;
} int_keys[] = {
    {"chunk_size", offsetof(struct lerobot_act, chunk_size), 100, 1, 4096},
    {"n_action_steps", offsetof(struct lerobot_act, n_action_steps), 100, 1, 4096},
    {"dim_model", offsetof(struct lerobot_act, dim_model), 512, 1, 8192},
    {"n_heads", offsetof(struct lerobot_act, n_heads), 8, 1, 512},
    {"dim_feedforward", offsetof(struct lerobot_act, dim_feedforward), 3200, 1, 65536},
    {"n_encoder_layers", offsetof(struct lerobot_act, n_encoder_layers), 4, 1, 128},
    {"n_decoder_layers", offsetof(struct lerobot_act, n_decoder_layers), 1, 1, 128},
    {"latent_dim", offsetof(struct lerobot_act, latent_dim), 32, 1, 4096},
};

static int get_int(const json_t *root, const struct int_key *k, int *out,
                   struct policy_error *err)
{
    const json_t *v = json_object_get(root, k->name);
    json_int_t n = v ? json_integer_value(v) : k->fallback;

    if ((v && !json_is_integer(v)) || n < k->min || n > k->max)
        return refuse(err, EINVAL, "config.json: %s must be a whole number from %d to %d",
                      k->name, k->min, k->max);
    *out = (int)n;
    return 0;
}

// LeRobot annotates one of its flags as int, so 0 and 1 are met where a bool is meant.
static int get_flag(const json_t *root, const char *name, bool int_allowed, bool *out,
                    struct policy_error *err)
{
    const json_t *v = json_object_get(root, name);

    *out = json_is_true(v);
    if (int_allowed && json_is_integer(v) &&
        (json_integer_value(v) == 0 || json_integer_value(v) == 1))
        *out = json_integer_value(v) == 1;
    else if (v && !json_is_boolean(v))
        return refuse(err, EINVAL, "config.json: %s must be true or false", name);
    return 0;
}

static int get_string(const json_t *root, const char *name, const char *fallback,
                      const char **out, struct policy_error *err)
{
    const json_t *v = json_object_get(root, name);

    *out = v ? json_string_value(v) : fallback;
    if (!*out)
        return refuse(err, EINVAL, "config.json: %s must be a string", name);
    return 0;
}

static int check_type(const json_t *root, struct lr_config *c, struct policy_error *err)
{
    const json_t *v = json_object_get(root, "type");

    c->era01 = json_object_get(root, "input_shapes") != NULL;
    if (v && !json_is_string(v))
        return refuse(err, EINVAL, "config.json: type must be a string");
    if (v && strcmp(json_string_value(v), "act") != 0)
        return refuse(err, EINVAL,
                      "config.json: the policy is of type '%.60s', actd runs only 'act'",
                      json_string_value(v));
    // Without a type (the 0.1 era) only its keys tell ACT from diffusion, TD-MPC and VQ-BeT.
    if (!v && (!c->era01 || !json_object_get(root, "chunk_size")))
        return refuse(
            err, EINVAL,
            "config.json has no \"type\" and is no ACT config of LeRobot 0.1: point "
            "at the pretrained_model directory of an ACT checkpoint");
    return 0;
}

static int get_backbone(const json_t *root, struct lerobot_act *a,
                        struct policy_error *err)
{
    static const int depths[] = {18, 34, 50, 101, 152};
    const char *name;
    int r = get_string(root, "vision_backbone", "resnet18", &name, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        char known[16];

        snprintf(known, sizeof known, "resnet%d", depths[i]);
        if (strcmp(name, known) == 0)
            a->depth = depths[i];
    }
    if (!a->depth)
        return refuse(
            err, EINVAL,
            "config.json: vision_backbone '%.60s' is not one of resnet18, resnet34, "
            "resnet50, resnet101, resnet152",
            name);
    snprintf(a->backbone, sizeof a->backbone, "%s", name);
    r = get_flag(root, "replace_final_stride_with_dilation", true, &a->dilation, err);
    if (r == 0 && a->dilation && a->depth < 50)
        return refuse(
            err, EINVAL,
            "config.json: replace_final_stride_with_dilation does not exist for %s "
            "(torchvision refuses it): set it to false",
            name);
    return r;
}

static int get_activation(const json_t *root, struct lerobot_act *a,
                          struct policy_error *err)
{
    const char *name;
    int r = get_string(root, "feedforward_activation", "relu", &name, err);

    if (r < 0)
        return r;
    a->activation = strcmp(name, "gelu") == 0 ? LEROBOT_GELU : LEROBOT_RELU;
    if (strcmp(name, "glu") == 0)
        return refuse(
            err, EINVAL,
            "config.json: feedforward_activation glu halves the width before linear2 "
            "and cannot run in LeRobot either: train with relu or gelu");
    if (a->activation == LEROBOT_RELU && strcmp(name, "relu") != 0)
        return refuse(err, EINVAL,
                      "config.json: feedforward_activation '%.60s' is not relu or gelu",
                      name);
    return 0;
}

static int get_ensemble(const json_t *root, struct lerobot_act *a,
                        struct policy_error *err)
{
    const json_t *v = json_object_get(root, "temporal_ensemble_coeff");
    const json_t *old = json_object_get(root, "temporal_ensemble_momentum");

    if (old && !json_is_null(old))
        return refuse(
            err, EINVAL,
            "config.json: temporal_ensemble_momentum (before July 2024) is another "
            "average than today's: set it to null and choose the chunk mode in "
            "robot.yaml");
    if (!v || json_is_null(v))
        return 0;
    a->has_ensemble_coeff = json_is_number(v);
    a->ensemble_coeff = (float)json_number_value(v);
    if (!a->has_ensemble_coeff || !isfinite(a->ensemble_coeff))
        return refuse(err, EINVAL,
                      "config.json: temporal_ensemble_coeff must be null or a number");
    if (a->n_action_steps != 1)
        return refuse(
            err, EINVAL,
            "config.json: n_action_steps must be 1 with temporal_ensemble_coeff, not "
            "%d: set one of the two",
            a->n_action_steps);
    return 0;
}

static int check_dims(const json_t *root, const struct lr_config *c,
                      struct policy_error *err)
{
    static const struct int_key n_obs = {"n_obs_steps", 0, 1, 1, 1};
    const struct lerobot_act *a = &c->act;
    int one;

    if (get_int(root, &n_obs, &one, err) < 0)
        return refuse(
            err, EINVAL,
            "config.json: n_obs_steps must be 1: ACT sees one observation at a time");
    if (a->n_action_steps > a->chunk_size)
        return refuse(
            err, EINVAL,
            "config.json: n_action_steps %d is more than chunk_size %d: lower it",
            a->n_action_steps, a->chunk_size);
    if (a->dim_model % a->n_heads != 0)
        return refuse(err, EINVAL,
                      "config.json: dim_model %d is no multiple of n_heads %d",
                      a->dim_model, a->n_heads);
    if (c->n_cameras > 0 && a->dim_model % 4 != 0)
        return refuse(err, EINVAL,
                      "config.json: dim_model %d is no multiple of 4, which the position "
                      "embedding of images needs",
                      a->dim_model);
    return 0;
}

int lr_config_parse(struct lr_config *out, const json_t *root, struct policy_error *err)
{
    struct lerobot_act *a = &out->act;
    int r;

    memset(out, 0, sizeof *out);
    r = check_type(root, out, err);
    for (size_t i = 0; r == 0 && i < sizeof int_keys / sizeof int_keys[0]; i++)
        r = get_int(root, &int_keys[i], (int *)(void *)((char *)a + int_keys[i].offset),
                    err);
    if (r == 0)
        r = get_flag(root, "pre_norm", false, &a->pre_norm, err);
    if (r == 0)
        r = get_activation(root, a, err);
    if (r == 0)
        r = get_ensemble(root, a, err);
    if (r == 0)
        r = lr_features_parse(out, root, err);
    if (r == 0 && out->n_cameras > 0)
        r = get_backbone(root, a, err);
    if (r == 0)
        r = check_dims(root, out, err);
    return r;
}

// The commonest mistake is one directory too high: LeRobot's output directory, or a step's.
static int missing_config(const struct place *p, struct policy_error *err)
{
    static const char *const below[] = {"pretrained_model",
                                        "checkpoints/last/pretrained_model"};
    const char *shown = p->shown ? p->shown : p->dir;
    char path[640];

    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++) {
        snprintf(path, sizeof path, "%.500s/%s/config.json", p->dir, below[i]);
        if (access(path, F_OK) == 0)
            return refuse(err, ENOENT,
                          "%.200s has no config.json: did you mean %.200s/%s?", shown,
                          shown, below[i]);
    }
    return refuse(
        err, ENOENT,
        "%.200s has no config.json: point at the pretrained_model directory of a "
        "LeRobot checkpoint",
        shown);
}

int lr_config_read(struct lr_config *out, const struct place *place, char *sha256,
                   struct policy_error *err)
{
    json_t *root;
    int r = jscan_load_at(&root, place, "config.json", sha256, err);

    if (r == -ENOENT)
        return missing_config(place, err);
    if (r < 0)
        return r;
    r = lr_config_parse(out, root, err);
    json_decref(root);
    return r;
}
