// init_dataset: names and rate out of the description of a LeRobot data set.
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "daemon/init.h"
#include "policy/jscan.h"

struct names {
    const char *file, *feature;
    char (*name)[CONFIG_NAME]; // ACTD_MAX_JOINTS of them
    int n;
    struct config_error *err;
};

static int no(const struct names *o, const char *what)
{
    snprintf(o->err->text, sizeof o->err->text, "%.400s: features.%s.names: %s", o->file,
             o->feature, what);
    return -EINVAL;
}

static int put(struct names *o, int at, const char *text)
{
    if (at < 0 || at >= ACTD_MAX_JOINTS)
        return no(o, "more than 32 names, or a position outside 0..31");
    if (!*text || strlen(text) >= CONFIG_NAME)
        return no(o, "a name has no or more than 63 bytes");
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return no(o, "a name contains a control character");
    snprintf(o->name[at], CONFIG_NAME, "%s", text);
    if (at >= o->n)
        o->n = at + 1;
    return 0;
}

static int put_list(struct names *o, const json_t *list)
{
    const json_t *v;
    size_t i;

    json_array_foreach(list, i, v)
    {
        int rc = json_is_string(v) ? put(o, o->n, json_string_value(v))
                                   : no(o, "expected texts in a list");
        if (rc)
            return rc;
    }
    return 0;
}

// {"motors": ["a", "b"]} or {"a": 0, "b": 1}
static int put_mapping(struct names *o, json_t *map)
{
    const char *key;
    json_t *v;

    json_object_foreach(map, key, v)
    {
        int rc = json_is_array(v) ? put_list(o, v)
                 : json_is_integer(v) && json_integer_value(v) >= 0 &&
                         json_integer_value(v) < ACTD_MAX_JOINTS
                     ? put(o, (int)json_integer_value(v), key)
                     : no(o, "expected lists of names, or positions 0..31");
        if (rc)
            return rc;
    }
    return 0;
}

static int read_names(struct names *o, const json_t *features)
{
    json_t *names = json_object_get(json_object_get(features, o->feature), "names");
    int rc = 0;

    if (json_is_array(names))
        rc = put_list(o, names);
    else if (json_is_object(names))
        rc = put_mapping(o, names);
    for (int i = 0; i < o->n && !rc; i++) {
        if (!*o->name[i])
            return no(o, "a position has no name");
        for (int k = 0; k < i; k++)
            if (strcmp(o->name[i], o->name[k]) == 0)
                return no(o, "a name stands there twice");
    }
    return rc;
}

int init_dataset_read(struct init_dataset *out, const char *file,
                      struct config_error *err)
{
    struct names state = {file, "observation.state", out->state, 0, err};
    struct names action = {file, "action", out->action, 0, err};
    struct policy_error why = {""};
    json_t *root, *features;
    const char *type;
    int rc = jscan_load(&root, file, &why);

    memset(out, 0, sizeof *out);
    if (rc) {
        snprintf(err->text, sizeof err->text, "%s", why.text);
        return rc;
    }
    features = json_object_get(root, "features");
    out->fps = json_number_value(json_object_get(root, "fps"));
    type = json_string_value(json_object_get(root, "robot_type"));
    snprintf(out->robot_type, sizeof out->robot_type, "%.60s", type ? type : "");
    if (!json_is_object(features)) {
        snprintf(err->text, sizeof err->text,
                 "%.400s: no `features`; name the meta/info.json of a LeRobot data set "
                 "(version 2 or 3)",
                 file);
        rc = -EINVAL;
    }
    rc = rc ? rc : read_names(&state, features);
    rc = rc ? rc : read_names(&action, features);
    out->n_state = state.n;
    out->n_action = action.n;
    json_decref(root);
    return rc;
}

double init_train_rate(const char *dir)
{
    char path[CONFIG_PATH + 32];
    struct policy_error why;
    json_t *root;
    double fps;

    snprintf(path, sizeof path, "%.511s/train_config.json", dir);
    if (jscan_load(&root, path, &why))
        return 0;
    fps = json_number_value(json_object_get(json_object_get(root, "env"), "fps"));
    json_decref(root);
    return fps;
}
