// lerobot_processor: see the header.
#include "policy/lerobot_processor.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "policy/jscan.h"
#include "policy/refuse.h"

#define MAX_STEPS 64

static bool is_feature(const struct lr_config *c, const char *key)
{
    for (int i = 0; i < c->n_cameras; i++)
        if (strcmp(c->camera[i].key, key) == 0)
            return true;
    return (c->state.rank && strcmp(c->state.key, key) == 0) ||
           (c->env.rank && strcmp(c->env.key, key) == 0);
}

// A rename before the normaliser turns a dataset's camera names into the policy's. actd binds
// cameras to the policy's names itself, so it has nothing to do; but a map that moves one of
// the policy's own names elsewhere (a swap) would make "front" mean two things.
static int check_rename(const struct lr_processor *p, const struct lr_config *c,
                        const json_t *step_config, struct policy_error *err)
{
    json_t *map = json_object_get(step_config, "rename_map"), *to;
    const char *from;

    if (map && !json_is_object(map))
        return refuse(err, EINVAL, "%s: rename_map must be an object", p->file);
    if (json_object_size(map) > 0 && p->norm_map)
        return refuse(
            err, EINVAL,
            "%s renames observations after it normalised them: move the rename step "
            "to the front",
            p->file);
    json_object_foreach(map, from, to)
    {
        if (!json_is_string(to))
            return refuse(err, EINVAL, "%s: rename_map of '%.80s' must be a string",
                          p->file, from);
        if (is_feature(c, from) && strcmp(from, json_string_value(to)) != 0)
            return refuse(
                err, EINVAL,
                "%s renames the policy's own feature '%.80s' to '%.80s': empty the "
                "rename_map and bind the cameras in robot.yaml instead",
                p->file, from, json_string_value(to));
    }
    return 0;
}

static int check_device(const struct lr_processor *p, const json_t *step_config,
                        struct policy_error *err)
{
    const json_t *v = json_object_get(step_config, "float_dtype");
    const char *name = json_string_value(v);

    if (!v || json_is_null(v))
        return 0;
    if (name && (strcmp(name, "float32") == 0 || strcmp(name, "float") == 0))
        return 0;
    return refuse(err, EINVAL,
                  "%s: device_processor casts to %.40s, actd computes in float32: set "
                  "float_dtype to null",
                  p->file, name ? name : "something that is no name");
}

// A state file is read from the checkpoint directory and from nowhere else.
static int get_state_file(struct lr_processor *p, const json_t *step,
                          struct policy_error *err)
{
    const json_t *v = json_object_get(step, "state_file");
    const char *name = json_string_value(v);

    if (!v || json_is_null(v))
        return 0;
    if (!name || !*name || strchr(name, '/') || strchr(name, '\\') || name[0] == '.' ||
        strlen(name) >= sizeof p->state_file)
        return refuse(
            err, EINVAL,
            "%s: state_file '%.80s' is not the plain name of a file in the checkpoint "
            "directory",
            p->file, name ? name : "(no string)");
    snprintf(p->state_file, sizeof p->state_file, "%s", name);
    return 0;
}

static int get_normalizer(struct lr_processor *p, const json_t *step,
                          struct policy_error *err)
{
    const json_t *config = json_object_get(step, "config");
    const json_t *eps = json_object_get(config, "eps");

    if (p->norm_map)
        return refuse(err, EINVAL, "%s normalises twice: keep one normalizer step",
                      p->file);
    p->features = json_object_get(config, "features");
    p->norm_map = json_object_get(config, "norm_map");
    p->only = json_object_get(config, "normalize_observation_keys");
    if (json_is_null(p->only))
        p->only = NULL;
    if (!json_is_object(p->features) || !json_is_object(p->norm_map) ||
        (p->only && !json_is_array(p->only)))
        return refuse(err, EINVAL,
                      "%s: the normalizer step needs the objects features and norm_map",
                      p->file);
    p->eps = eps ? json_number_value(eps) : 1e-8;
    if ((eps && !json_is_number(eps)) || !isfinite(p->eps) || p->eps < 0)
        return refuse(err, EINVAL, "%s: eps must be a number that is not negative",
                      p->file);
    return get_state_file(p, step, err);
}

static int read_step(struct lr_processor *p, const struct lr_config *c, bool post,
                     const json_t *step, struct policy_error *err)
{
    static const char *const nothing_here[] = {
        "to_batch_processor", "to_batch_processor_action",
        "to_batch_processor_observation", "to_batch_processor_complementary_data"};
    const char *name = json_string_value(json_object_get(step, "registry_name"));
    const json_t *config = json_object_get(step, "config");

    if (json_object_get(step, "class"))
        return refuse(
            err, EINVAL,
            "%s has a step of class '%.80s', which is Python code of somebody's own: "
            "actd cannot run it",
            p->file,
            json_is_string(json_object_get(step, "class"))
                ? json_string_value(json_object_get(step, "class"))
                : "(no string)");
    if (!name)
        return refuse(err, EINVAL, "%s has a step without registry_name", p->file);
    if (strcmp(name, post ? "unnormalizer_processor" : "normalizer_processor") == 0)
        return get_normalizer(p, step, err);
    if (strcmp(name, "device_processor") == 0)
        return check_device(p, config, err);
    if (!post && strcmp(name, "rename_observations_processor") == 0)
        return check_rename(p, c, config, err);
    for (size_t i = 0; i < sizeof nothing_here / sizeof nothing_here[0]; i++)
        if (strcmp(name, nothing_here[i]) == 0)
            return 0;
    return refuse(
        err, EINVAL,
        "%s has the step '%.80s', which would change what the network sees or says and "
        "which actd does not do: train without it",
        p->file, name);
}

static int read_steps(struct lr_processor *p, const struct lr_config *c, bool post,
                      struct policy_error *err)
{
    const json_t *steps = json_object_get(p->root, "steps");

    if (!json_is_array(steps) || json_array_size(steps) > MAX_STEPS)
        return refuse(err, EINVAL, "%s needs a list of at most %d steps", p->file,
                      MAX_STEPS);
    for (size_t i = 0; i < json_array_size(steps); i++) {
        int r = read_step(p, c, post, json_array_get(steps, i), err);

        if (r < 0)
            return r;
    }
    if (!p->norm_map)
        return refuse(err, EINVAL,
                      "%s has no %snormalizer_processor step: copy the file of the "
                      "original checkpoint",
                      p->file, post ? "un" : "");
    return 0;
}

int lr_processor_read(struct lr_processor *out, const struct place *place, bool post,
                      const struct lr_config *config, struct policy_error *err)
{
    int r;

    *out = (struct lr_processor){.file = post ? "policy_postprocessor.json"
                                              : "policy_preprocessor.json"};
    r = jscan_load_at(&out->root, place, out->file, NULL, err);
    if (r == -ENOENT)
        return 0;
    out->present = r == 0;
    return r < 0 ? r : read_steps(out, config, post, err);
}

void lr_processor_close(struct lr_processor *p)
{
    json_decref(p->root);
    p->root = NULL;
}

static bool listed(const json_t *list, const char *key)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *s = json_string_value(json_array_get(list, i));

        if (s && strcmp(s, key) == 0)
            return true;
    }
    return false;
}

// The first dimension is what the statistics are about: channels of an image, values else.
static bool agrees(const json_t *entry, const struct lr_feature *f)
{
    const json_t *shape = json_object_get(entry, "shape");
    enum lr_type type = lr_type_parse(json_string_value(json_object_get(entry, "type")));

    return type == f->type && (int)json_array_size(shape) == f->rank &&
           json_integer_value(json_array_get(shape, 0)) == f->shape[0];
}

int lr_processor_mode(const struct lr_processor *p, const struct lr_feature *f,
                      enum norm_mode *mode, struct policy_error *err)
{
    const json_t *entry = json_object_get(p->features, f->key);
    const json_t *name = json_object_get(p->norm_map, lr_type_name(f->type));

    *mode = NORM_IDENTITY; // LeRobot's answer for a type that norm_map does not list
    if (name && !lr_mode_parse(json_string_value(name), mode))
        return refuse(err, EINVAL, "%s: the normalisation mode of %s is unknown", p->file,
                      lr_type_name(f->type));
    if (f->type != LR_ACTION && p->only && !listed(p->only, f->key))
        *mode = NORM_IDENTITY;
    if (*mode == NORM_IDENTITY)
        return 0;
    if (!entry)
        return refuse(
            err, EINVAL,
            "%s does not list the feature '%s' of config.json, which would reach the "
            "network unnormalised: the files are of different checkpoints",
            p->file, f->key);
    if (!agrees(entry, f))
        return refuse(
            err, EINVAL,
            "%s and config.json disagree on the type or shape of '%s': the files are "
            "of different checkpoints",
            p->file, f->key);
    return 0;
}
