// lerobot_features: what goes into the network and what comes out, in both dialects.
//
// LeRobot's look-up is copied: the robot's state is the feature called observation.state, the
// environment's the one called observation.environment_state, cameras are all VISUAL features
// in the order of the file, the output is the feature called action.
#include "policy/lerobot_config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "policy/refuse.h"

#define MAX_VALUES 4096 // of a state or action vector
#define MAX_SIDE   8192 // pixels

static const char *const type_names[] = {
    [LR_STATE] = "STATE",   [LR_VISUAL] = "VISUAL", [LR_ENV] = "ENV",
    [LR_ACTION] = "ACTION", [LR_OTHER] = "OTHER",
};

const char *lr_type_name(enum lr_type t)
{
    return type_names[t];
}

enum lr_type lr_type_parse(const char *text)
{
    for (int t = LR_STATE; text && t < LR_OTHER; t++)
        if (strcmp(text, type_names[t]) == 0)
            return (enum lr_type)t;
    return LR_OTHER;
}

bool lr_mode_parse(const char *text, enum norm_mode *out)
{
    for (int m = NORM_IDENTITY; text && m <= NORM_QUANTILE10; m++)
        if (strcasecmp(text, norm_mode_name((enum norm_mode)m)) == 0) {
            *out = (enum norm_mode)m;
            return true;
        }
    return false;
}

int lr_feature_width(const struct lr_feature *f)
{
    return f->rank > 0 ? f->shape[0] : 0;
}

// The 0.1 era has no types: its modules go by these names.
static enum lr_type type_of_key(const char *key)
{
    if (strcmp(key, "observation.state") == 0)
        return LR_STATE;
    if (strcmp(key, "observation.environment_state") == 0)
        return LR_ENV;
    if (strncmp(key, "observation.image", 17) == 0)
        return LR_VISUAL;
    return strcmp(key, "action") == 0 ? LR_ACTION : LR_OTHER;
}

static int get_shape(struct lr_feature *f, const json_t *shape, struct policy_error *err)
{
    int rank = f->type == LR_VISUAL ? 3 : 1;
    int max = f->type == LR_VISUAL ? MAX_SIDE : MAX_VALUES;

    if (!json_is_array(shape) || (int)json_array_size(shape) != rank)
        return refuse(err, EINVAL,
                      "config.json: the shape of '%s' must have %d dimension(s)", f->key,
                      rank);
    for (int i = 0; i < rank; i++) {
        const json_t *v = json_array_get(shape, (size_t)i);

        if (!json_is_integer(v) || json_integer_value(v) < 1 ||
            json_integer_value(v) > max)
            return refuse(
                err, EINVAL,
                "config.json: the shape of '%s' must have whole numbers from 1 to %d",
                f->key, max);
        f->shape[i] = (int)json_integer_value(v);
    }
    if (f->type == LR_VISUAL && f->shape[0] != 3)
        return refuse(
            err, EINVAL,
            "config.json: '%s' has %d channels, ACT's backbone reads RGB images of "
            "shape [3, height, width]",
            f->key, f->shape[0]);
    f->rank = rank;
    return 0;
}

static int get_mode(struct lr_feature *f, const json_t *modes, const char *mode_key,
                    struct policy_error *err)
{
    const json_t *v = json_object_get(modes, mode_key);

    if (v && !lr_mode_parse(json_string_value(v), &f->mode))
        return refuse(
            err, EINVAL,
            "config.json: the normalisation mode of '%s' is unknown (known: MEAN_STD, "
            "MIN_MAX, QUANTILES, QUANTILE10, IDENTITY)",
            f->key);
    return 0; // absent: IDENTITY, as LeRobot reads it
}

// Where a feature of this type and name belongs; NULL with err filled, or *ignored.
static struct lr_feature *place_for(struct lr_config *c, const struct lr_feature *f,
                                    bool output, bool *ignored, struct policy_error *err)
{
    *ignored = false;
    if (output && f->type == LR_ACTION && strcmp(f->key, "action") == 0)
        return &c->action;
    if (!output && f->type == LR_STATE && strcmp(f->key, "observation.state") == 0)
        return &c->state;
    if (!output && f->type == LR_ENV) {
        if (strcmp(f->key, "observation.environment_state") == 0)
            return &c->env;
        refuse(err, EINVAL,
               "config.json: the ENV feature '%s' must be called "
               "observation.environment_state, the only one ACT reads",
               f->key);
        return NULL;
    }
    if (!output && f->type == LR_VISUAL) {
        if (c->n_cameras < POLICY_MAX_CAMERAS)
            return &c->camera[c->n_cameras++];
        refuse(err, EINVAL, "config.json has more than %d cameras", POLICY_MAX_CAMERAS);
        return NULL;
    }
    *ignored = true; // the network never reads it
    return NULL;
}

static int add_feature(struct lr_config *c, const char *key, const json_t *v,
                       const json_t *modes, bool output, struct policy_error *err)
{
    struct lr_feature f = {.mode = NORM_IDENTITY}, *place;
    bool ignored;
    int r;

    if (strlen(key) >= sizeof f.key)
        return refuse(err, EINVAL, "config.json: the feature name '%.60s...' is too long",
                      key);
    snprintf(f.key, sizeof f.key, "%s", key);
    if (!c->era01 && !json_is_object(v))
        return refuse(err, EINVAL, "config.json: '%s' must have a type and a shape", key);
    f.type = c->era01 ? type_of_key(key)
                      : lr_type_parse(json_string_value(json_object_get(v, "type")));
    place = place_for(c, &f, output, &ignored, err);
    if (!place)
        return ignored ? 0 : -EINVAL;
    r = get_shape(&f, c->era01 ? v : json_object_get(v, "shape"), err);
    if (r == 0)
        r = get_mode(&f, modes, c->era01 ? key : lr_type_name(f.type), err);
    *place = f;
    return r;
}

static int add_features(struct lr_config *c, const json_t *root, bool output,
                        const json_t *modes, struct policy_error *err)
{
    const char *list_key = c->era01 ? (output ? "output_shapes" : "input_shapes")
                                    : (output ? "output_features" : "input_features");
    json_t *list = json_object_get(root, list_key), *v;
    const char *key;
    int r = 0;

    if (!json_is_object(list))
        return refuse(err, EINVAL, "config.json: %s is missing or no object", list_key);
    json_object_foreach(list, key, v)
    {
        r = add_feature(c, key, v, modes, output, err);
        if (r < 0)
            return r;
    }
    return 0;
}

// The modes of a side. An absent table means LeRobot's default, MEAN_STD for all but ENV.
static int get_modes(const struct lr_config *c, const json_t *root, bool output,
                     json_t **out, struct policy_error *err)
{
    const char *key = !c->era01 ? "normalization_mapping"
                      : output  ? "output_normalization_modes"
                                : "input_normalization_modes";
    const json_t *v = json_object_get(root, key);

    if (v && !json_is_object(v))
        return refuse(err, EINVAL, "config.json: %s must be an object", key);
    if (!v && c->era01)
        return refuse(err, EINVAL,
                      "config.json: %s is missing, LeRobot 0.1 always wrote it", key);
    *out = v ? json_deep_copy(v)
             : json_pack("{ssssss}", "VISUAL", "MEAN_STD", "STATE", "MEAN_STD", "ACTION",
                         "MEAN_STD");
    return *out ? 0 : refuse(err, ENOMEM, "no memory for config.json");
}

int lr_features_parse(struct lr_config *out, const json_t *root, struct policy_error *err)
{
    int r = 0;

    for (int output = 0; r == 0 && output <= 1; output++) {
        json_t *modes = NULL;

        r = get_modes(out, root, output, &modes, err);
        if (r == 0)
            r = add_features(out, root, output, modes, err);
        json_decref(modes);
    }
    if (r < 0)
        return r;
    if (!out->action.rank)
        return refuse(err, EINVAL, "config.json: there is no output feature 'action'");
    if (!out->state.rank)
        return refuse(
            err, EINVAL,
            "config.json: there is no input feature 'observation.state', without "
            "which LeRobot's ACT cannot run either");
    if (!out->n_cameras && !out->env.rank)
        return refuse(err, EINVAL,
                      "config.json: there is neither a camera nor "
                      "observation.environment_state among the input features");
    return 0;
}
