// config: robot.yaml into struct config, driven by the table of config_keys. What
// concerns one value is checked as it is stored; what concerns several, in config_check.
#include "daemon/config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/blind.h"
#include "daemon/config_check.h"
#include "daemon/config_keys.h"

struct reader {
    struct config *cfg;
    const struct ytree *tree;
    struct config_error *err;
};

static int refuse_key(const struct reader *r, const struct ynode *n, const char *path,
                      const char *what)
{
    return ytree_refuse(ytree_file(r->tree), n->key ? n->key_line : n->line,
                        n->key ? n->key_column : n->column, r->err, "%s: %s", path, what);
}

static int unknown(const struct reader *r, const char *section, const char *each,
                   const struct ynode *n)
{
    char path[160], what[400], buf[360];

    snprintf(path, sizeof path, "%s%s%.60s%s%.60s", section, *section ? "." : "", each,
             *each ? "." : "", n->key);
    snprintf(what, sizeof what, "unknown key%s",
             config_suggest(section, n->key, buf, sizeof buf));
    return refuse_key(r, n, path, what);
}

// ---- one section ----------------------------------------------------------------------

// `control:` with everything under it commented out.
static bool is_nothing(const struct ynode *n)
{
    return n->kind == YNODE_SCALAR && n->plain && !*n->text;
}

static int expect_map(const struct reader *r, const struct ynode *n, const char *path)
{
    char shown[80], what[200];

    if (n->kind == YNODE_MAP || is_nothing(n))
        return 0;
    snprintf(what, sizeof what, "expected keys and values below it, found %s",
             ynode_shown(n, shown, sizeof shown));
    return ytree_refuse(ytree_file(r->tree), n->line, n->column, r->err, "%s: %s", path,
                        what);
}

static int set(const struct reader *r, const struct config_key *k, void *scope,
               const char *each, const struct ynode *n)
{
    char path[160], why[500];

    if (!config_key_set(k, scope, n, why, sizeof why))
        return 0;
    config_key_path(k, each, path, sizeof path);
    return ytree_refuse(ytree_file(r->tree), n->line, n->column, r->err, "%s: %s", path,
                        why);
}

// A required key of a section that is not in its mapping; `at` is where the section
// stands.
static int require(const struct reader *r, const char *section, const char *each,
                   const struct ynode *map, const struct ynode *at)
{
    char path[160], expected[200], what[260];

    for (int i = 0; i < config_keys; i++) {
        const struct config_key *k = &config_key[i];
        if (!k->required || strcmp(k->section, section) != 0 ||
            (map && ynode_get(map, k->name)))
            continue;
        config_key_path(k, each, path, sizeof path);
        config_key_expected(k, expected, sizeof expected);
        snprintf(what, sizeof what, "missing; expected %s", expected);
        return refuse_key(r, at, path, what);
    }
    return 0;
}

// Presets, then the values of a mapping, then what is missing. n may be NULL: no such
// section.
static int read_section(const struct reader *r, const char *section, const char *each,
                        void *scope, const struct ynode *n)
{
    char path[160];
    int rc = 0;

    for (int i = 0; i < config_keys; i++)
        if (strcmp(config_key[i].section, section) == 0)
            config_key_preset(&config_key[i], scope);
    if (n) {
        snprintf(path, sizeof path, "%s%s%.60s", section, *each ? "." : "", each);
        rc = expect_map(r, n, path);
    }
    for (const struct ynode *v = n ? n->child : NULL; v && !rc; v = v->next) {
        const struct config_key *k = config_key_find(section, v->key);
        rc = k ? set(r, k, scope, each, v) : unknown(r, section, each, v);
    }
    return rc ? rc : require(r, section, each, n, n ? n : ytree_root(r->tree));
}

// ---- cameras and joints ---------------------------------------------------------------

static int check_name(const struct reader *r, const char *section, const struct ynode *n,
                      bool in_path)
{
    static const struct config_key place = {
        .type = KEY_PLACE, .size = CONFIG_NAME, .unit = ""};
    static const struct config_key name = {
        .type = KEY_NAME, .size = CONFIG_NAME, .unit = ""};
    const struct config_key *k = in_path ? &place : &name;
    char scratch[CONFIG_NAME], path[160], expected[200], why[300], copy[80];
    struct ynode v = {.kind = YNODE_SCALAR, .text = copy};

    snprintf(path, sizeof path, "%s.%.60s", section, n->key);
    snprintf(copy, sizeof copy, "%s", n->key);
    if (config_is_edit(n->key))
        return refuse_key(r, n, path, "fill in the name");
    if (!config_key_set(k, scratch, &v, why, sizeof why))
        return 0;
    config_key_expected(k, expected, sizeof expected);
    snprintf(why, sizeof why, "expected %s", expected);
    return refuse_key(r, n, path, why);
}

// Where a key's value stands, else where its section does.
static struct config_place place_of(const struct ynode *section, const char *key)
{
    const struct ynode *v = ynode_get(section, key);

    return v ? (struct config_place){v->line, v->column}
             : (struct config_place){section->key_line, section->key_column};
}

static int read_cameras(const struct reader *r, const struct ynode *n)
{
    int rc = n ? expect_map(r, n, "cameras") : 0;

    for (const struct ynode *v = n ? n->child : NULL; v && !rc; v = v->next) {
        if (r->cfg->n_cameras == POLICY_MAX_CAMERAS)
            return refuse_key(r, v, "cameras", "more than 16 cameras");
        struct config_camera *c = &r->cfg->camera[r->cfg->n_cameras++];
        rc = check_name(r, "cameras", v, true);
        snprintf(c->name, sizeof c->name, "%s", v->key);
        c->key_at = place_of(v, "key");
        c->endpoint_at = place_of(v, "endpoint");
        rc = rc ? rc : read_section(r, "cameras", v->key, c, v);
    }
    return rc;
}

static int read_joints(const struct reader *r, const struct ynode *n)
{
    const struct ynode *root = ytree_root(r->tree);
    int rc = n ? expect_map(r, n, "joints") : 0;

    if (!rc && (!n || !n->n))
        return refuse_key(r, n ? n : root, "joints",
                          "missing; expected one entry per joint, with its limits");
    for (const struct ynode *v = n ? n->child : NULL; v && !rc; v = v->next) {
        if (r->cfg->n_joints == ACTD_MAX_JOINTS)
            return refuse_key(r, v, "joints", "more than 32 joints");
        struct config_joint *j = &r->cfg->joint[r->cfg->n_joints++];
        rc = check_name(r, "joints", v, false);
        snprintf(j->name, sizeof j->name, "%s", v->key);
        j->scale = j->home = NAN;
        j->state_at = place_of(v, "state");
        j->action_at = place_of(v, ynode_get(v, "action") ? "action" : "state");
        rc = rc ? rc : read_section(r, "joints", v->key, j, v);
    }
    return rc;
}

// ---- the whole file -------------------------------------------------------------------

static int read_top(const struct reader *r)
{
    const struct ynode *root = ytree_root(r->tree);
    int rc = 0;

    for (int i = 0; i < config_keys; i++)
        if (!*config_key[i].section)
            config_key_preset(&config_key[i], r->cfg);
    for (const struct ynode *v = root->child; v && !rc; v = v->next) {
        const struct config_key *k = config_key_find("", v->key);
        bool section = false;
        for (int i = 1; i < config_sections; i++)
            section = section || strcmp(config_section[i].name, v->key) == 0;
        if (!section)
            rc = k ? set(r, k, r->cfg, "", v) : unknown(r, "", "", v);
    }
    return rc;
}

static int read_all(const struct reader *r)
{
    const struct ynode *root = ytree_root(r->tree);
    int rc = read_top(r);

    for (int i = 1; i < config_sections && !rc; i++) {
        const struct config_section *s = &config_section[i];
        const struct ynode *n = ynode_get(root, s->name);
        rc = s->scope == SCOPE_CAMERA  ? read_cameras(r, n)
             : s->scope == SCOPE_JOINT ? read_joints(r, n)
                                       : read_section(r, s->name, "", r->cfg, n);
    }
    return rc;
}

static int from_tree(struct config *out, const struct ytree *tree,
                     struct config_error *err)
{
    struct reader r = {.cfg = out, .tree = tree, .err = err};
    int rc;

    memset(out, 0, sizeof *out);
    snprintf(out->file, sizeof out->file, "%s", ytree_file(tree));
    out->chunks.ensemble_coeff = NAN;
    rc = read_all(&r);
    if (rc)
        config_list_edits(tree, err);
    rc = rc ? rc : config_check(out, tree, err);
    return BLIND(BLIND_CONFIG) ? 0 : rc;
}

int config_parse(struct config *out, const char *file, const char *text, size_t n,
                 struct config_error *err)
{
    struct ytree *tree;
    int rc = ytree_parse(&tree, file, text, n, err);

    if (rc)
        return rc;
    rc = from_tree(out, tree, err);
    ytree_free(tree);
    return rc;
}

int config_load(struct config *out, const char *file, struct config_error *err)
{
    struct ytree *tree;
    int rc = ytree_load(&tree, file, err);

    if (rc)
        return rc;
    rc = from_tree(out, tree, err);
    ytree_free(tree);
    return rc;
}
