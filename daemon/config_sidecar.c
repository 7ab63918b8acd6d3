// config_sidecar: policy.yaml, the five facts that an ACT checkpoint does not carry.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config_keys.h"

#define EXPECT_NAMES "expected a list of names: [shoulder_pan.pos, ...]"

struct reader {
    struct config_sidecar *side;
    const char *file;
    struct config_error *err;
};

static const char *const sidecar_keys[] = {"rate_hz", "state_names", "action_names",
                                           "units",   "cameras",     NULL};
static const char *const unit_words[] = {"rad", "deg", "m100_100", "0_100",
                                         "0_1", "m",   NULL};

static int refuse_value(const struct reader *r, const struct ynode *v, const char *what)
{
    char shown[80];

    return ytree_refuse(r->file, v->line, v->column, r->err, "%.100s: %s, found %s",
                        v->key ? v->key : "entry", what,
                        ynode_shown(v, shown, sizeof shown));
}

static bool in_words(const char *const *words, const char *text)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], text) == 0)
            return true;
    return false;
}

static int check_keys(const struct reader *r, const struct ynode *root)
{
    for (const struct ynode *v = root->child; v; v = v->next) {
        const char *near = NULL;
        int best = 4;
        if (in_words(sidecar_keys, v->key))
            continue;
        for (int i = 0; sidecar_keys[i]; i++) {
            int d = config_distance(v->key, sidecar_keys[i]);
            if (d < best) {
                best = d;
                near = sidecar_keys[i];
            }
        }
        return ytree_refuse(
            r->file, v->key_line, v->key_column, r->err, "%.60s: unknown key; %s%s%s",
            v->key,
            near ? "did you mean '"
                 : "the keys here are rate_hz, state_names, action_names, units, cameras",
            near ? near : "", near ? "'?" : "");
    }
    return 0;
}

static int missing(const struct reader *r, const char *key, const char *expected)
{
    return ytree_refuse(r->file, 1, 1, r->err, "%s: missing; expected %s", key, expected);
}

// A list of distinct names, `size` bytes each, into out. *n names.
static int read_names(const struct reader *r, const struct ynode *list, char *out,
                      size_t size, int max, int *n)
{
    if (list->kind != YNODE_LIST)
        return refuse_value(r, list, EXPECT_NAMES);
    if (list->n > max)
        return ytree_refuse(r->file, list->line, list->column, r->err,
                            "%s: %d names; at most %d are possible", list->key, list->n,
                            max);
    for (const struct ynode *v = list->child; v; v = v->next) {
        if (v->kind != YNODE_SCALAR || !*v->text || strlen(v->text) >= size)
            return ytree_refuse(r->file, v->line, v->column, r->err,
                                "%s: expected a name of 1 to %zu bytes", list->key,
                                size - 1);
        if (config_is_edit(v->text))
            return ytree_refuse(r->file, v->line, v->column, r->err,
                                "%s: fill in the name of value %d", list->key, *n);
        for (int i = 0; i < *n; i++)
            if (strcmp(out + (size_t)i * size, v->text) == 0)
                return ytree_refuse(r->file, v->line, v->column, r->err,
                                    "%s: '%.100s' stands here twice; names go one-to-one",
                                    list->key, v->text);
        snprintf(out + (size_t)(*n)++ * size, size, "%s", v->text);
    }
    return 0;
}

static int read_unit(const struct reader *r, const struct ynode *v, char out[16])
{
    if (v->kind != YNODE_SCALAR || !in_words(unit_words, v->text))
        return refuse_value(r, v,
                            v->kind == YNODE_SCALAR && config_is_edit(v->text)
                                ? "fill in the unit: rad, deg, m100_100, 0_100, 0_1 or m"
                                : "expected rad, deg, m100_100, 0_100, 0_1 or m");
    snprintf(out, 16, "%s", v->text);
    return 0;
}

// One word for all, or a mapping with one for each action.
static int read_units(const struct reader *r, const struct ynode *v)
{
    struct config_sidecar *s = r->side;
    int rc = 0;

    for (const struct ynode *u = v->child; u && v->kind == YNODE_MAP; u = u->next) {
        int i = 0;
        while (i < s->n_action && strcmp(s->action[i], u->key) != 0)
            i++;
        if (i == s->n_action)
            return ytree_refuse(r->file, u->key_line, u->key_column, r->err,
                                "units.%.60s: no such name in action_names", u->key);
        rc = read_unit(r, u, s->units[i]);
        if (rc)
            return rc;
    }
    for (int i = 0; i < s->n_action && !rc; i++) {
        if (v->kind == YNODE_MAP && !*s->units[i])
            return ytree_refuse(
                r->file, v->key_line, v->key_column, r->err,
                "units.%s: missing; expected rad, deg, m100_100, 0_100, 0_1 or m",
                s->action[i]);
        if (v->kind != YNODE_MAP)
            rc = read_unit(r, v, s->units[i]);
    }
    return rc;
}

static int read_rate(const struct reader *r, const struct ynode *v)
{
    bool scalar = v->kind == YNODE_SCALAR;

    if (scalar && config_is_edit(v->text))
        return refuse_value(r, v,
                            "fill in the rate at which the demonstrations were recorded "
                            "(fps of the data set)");
    if (!scalar || !v->plain || !config_real(v->text, &r->side->rate_hz) ||
        r->side->rate_hz < 0.5 || r->side->rate_hz > 1000)
        return refuse_value(r, v, "expected a number, Hz, 0.5 to 1000");
    return 0;
}

static int read_sidecar(const struct reader *r, const struct ynode *root)
{
    struct config_sidecar *s = r->side;
    const struct ynode *rate = ynode_get(root, "rate_hz"),
                       *units = ynode_get(root, "units");
    const struct ynode *state = ynode_get(root, "state_names");
    const struct ynode *action = ynode_get(root, "action_names");
    const struct ynode *cameras = ynode_get(root, "cameras");
    int rc = check_keys(r, root);

    if (!rc)
        rc = rate ? read_rate(r, rate)
                  : missing(r, "rate_hz", "a number, Hz, 0.5 to 1000");
    if (!rc)
        rc = state ? read_names(r, state, s->state[0], CONFIG_NAME, ACTD_MAX_JOINTS,
                                &s->n_state)
                   : missing(r, "state_names", "a list of names");
    if (!rc)
        rc = action ? read_names(r, action, s->action[0], CONFIG_NAME, ACTD_MAX_JOINTS,
                                 &s->n_action)
                    : missing(r, "action_names", "a list of names");
    if (!rc && action && s->n_action == 0)
        rc = refuse_value(r, action, "expected at least one name");
    if (!rc)
        rc = units ? read_units(r, units)
                   : missing(r, "units", "rad, deg, m100_100, 0_100, 0_1 or m");
    if (!rc && cameras)
        rc = read_names(r, cameras, s->camera[0], POLICY_NAME_MAX, POLICY_MAX_CAMERAS,
                        &s->n_cameras);
    return rc;
}

static int from_tree(struct config_sidecar *out, const struct ytree *tree,
                     struct config_error *err)
{
    struct reader r = {.side = out, .file = ytree_file(tree), .err = err};

    int rc;

    memset(out, 0, sizeof *out);
    rc = read_sidecar(&r, ytree_root(tree));
    if (rc)
        config_list_edits(tree, err);
    return rc;
}

int config_sidecar_parse(struct config_sidecar *out, const char *file, const char *text,
                         size_t n, struct config_error *err)
{
    struct ytree *tree;
    int rc = ytree_parse(&tree, file, text, n, err);

    if (rc)
        return rc;
    rc = from_tree(out, tree, err);
    ytree_free(tree);
    return rc;
}

int config_sidecar_read(char **text, size_t *n, const char *dir, struct config_error *err)
{
    char file[CONFIG_PATH + 16];
    int rc;

    snprintf(file, sizeof file, "%.511s/policy.yaml", dir);
    rc = ytree_read(text, n, file, err);
    if (rc == -ENOENT && access(dir, F_OK) != 0)
        snprintf(err->text, sizeof err->text,
                 "%.500s: no such directory; policy.directory must name the checkpoint's "
                 "(a relative path counts from the file that says so)",
                 dir);
    else if (rc == -ENOENT)
        snprintf(err->text, sizeof err->text,
                 "%.300s: not there; `actd init %.300s` writes it (joint names, rate and "
                 "units, which a checkpoint does not carry)",
                 file, dir);
    return rc;
}

int config_sidecar_load(struct config_sidecar *out, const char *dir,
                        struct config_error *err)
{
    char file[CONFIG_PATH + 16], *text;
    size_t n;
    int rc = config_sidecar_read(&text, &n, dir, err);

    if (rc)
        return rc;
    snprintf(file, sizeof file, "%.511s/policy.yaml", dir);
    rc = config_sidecar_parse(out, file, text, n, err);
    free(text);
    return rc;
}
