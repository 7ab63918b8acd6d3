// config_check: see the header.
#include "daemon/config_check.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config_keys.h"

#define MAX_THREADS \
    8 // more than this gains nothing for a ResNet-18 and one ACT layer stack

#define SOCKET_MAX 107 // sun_path has 108 bytes with its NUL

struct checker {
    struct config *cfg;
    const struct ytree *tree;
    struct config_error *err;
};

// Refuses the key section.each.name where it stands, else where its section stands.
static int refuse_at(const struct checker *c, const char *section, const char *each,
                     const char *name, const char *what)
{
    const char *step[3] = {section, each, name};
    const struct ynode *n = ytree_root(c->tree); // the deepest that is there
    bool there = true;
    char path[200] = "";
    size_t at = 0;

    for (int i = 0; i < 3; i++) {
        if (!*step[i])
            continue;
        const struct ynode *below = there ? ynode_get(n, step[i]) : NULL;
        there = below != NULL;
        n = there ? below : n;
        at += (size_t)snprintf(path + at, sizeof path - at, "%s%.60s", at ? "." : "",
                               step[i]);
    }
    bool by_key = n->kind == YNODE_MAP && n->key; // a value stands at its own place
    return ytree_refuse(ytree_file(c->tree), by_key ? n->key_line : n->line,
                        by_key ? n->key_column : n->column, c->err, "%s: %s", path, what);
}

// ---- joints and cameras ---------------------------------------------------------------

static int same_twice(const struct checker *c, const char *section, const char *each,
                      const char *key, const char *value, const char *other)
{
    char what[300];

    snprintf(what, sizeof what,
             "'%.100s' belongs to %s.%.60s already; names go one-to-one", value, section,
             other);
    return refuse_at(c, section, each, key, what);
}

// The hard range must hold the limits, the rest pose lie inside them and be whole.
static int check_reach(const struct checker *c, const struct config_joint *j,
                       bool no_home)
{
    if (j->hard_min > j->min || j->hard_max < j->max)
        return refuse_at(c, "joints", j->name, "hard_position",
                         "expected a range that holds all of position; widen it");
    if (isnan(j->home) != no_home)
        return refuse_at(c, "joints", j->name, "home",
                         "expected for all joints or for none; add it or leave it out");
    if (j->home < j->min || j->home > j->max)
        return refuse_at(c, "joints", j->name, "home",
                         "expected a pose inside position; correct it");
    return 0;
}

static int check_joints(const struct checker *c)
{
    struct config *cfg = c->cfg;

    for (int i = 0; i < cfg->n_joints; i++) {
        struct config_joint *j = &cfg->joint[i];
        if (!*j->state)
            memcpy(j->state, j->name, sizeof j->state);
        if (!*j->action)
            memcpy(j->action, j->state, sizeof j->action);
        if (j->stop_acceleration == 0)
            j->stop_acceleration = j->acceleration;
        if (j->hard_min == 0 && j->hard_max == 0) {
            j->hard_min = j->min - (j->max - j->min);
            j->hard_max = j->max + (j->max - j->min);
        }
        if (check_reach(c, j, isnan(cfg->joint[0].home)))
            return -EINVAL;
        if (fabs(j->scale) < 1e-6) // false for NAN: not given
            return refuse_at(c, "joints", j->name, "scale",
                             "expected a number other than 0; it divides");
        for (int k = 0; k < i; k++) {
            const struct config_joint *o = &cfg->joint[k];
            if (strcmp(j->state, o->state) == 0)
                return same_twice(c, "joints", j->name, "state", j->state, o->name);
            if (strcmp(j->action, o->action) == 0)
                return same_twice(c, "joints", j->name, "action", j->action, o->name);
        }
    }
    return 0;
}

static int check_cameras(const struct checker *c)
{
    struct config *cfg = c->cfg;
    const char *primary = NULL;

    for (int i = 0; i < cfg->n_cameras; i++) {
        struct config_camera *cam = &cfg->camera[i];
        for (int k = 0; k < i; k++)
            if (strcmp(cam->key, cfg->camera[k].key) == 0)
                return same_twice(c, "cameras", cam->name, "key", cam->key,
                                  cfg->camera[k].name);
        if (cam->primary && primary)
            return same_twice(c, "cameras", cam->name, "primary", "primary", primary);
        primary = cam->primary ? cam->name : primary;
    }
    if (!primary && cfg->n_cameras)
        cfg->camera[0].primary = true;
    return 0;
}

// ---- directories and endpoints --------------------------------------------------------

// Relative paths count from the file, not from where the daemon was started. Whether the
// directory is there is not looked at here. given: CONFIG_PATH bytes.
static int resolve_directory(const struct checker *c, const char *section, char *given)
{
    char dir[CONFIG_PATH], full[PATH_MAX], joined[2 * PATH_MAX];
    char *slash;

    if (*given == '~')
        return refuse_at(c, section, "", "directory",
                         "'~' is not expanded; write the whole path");
    if (*given == '/' || !*given)
        return 0;
    snprintf(dir, sizeof dir, "%s", c->cfg->file);
    slash = strrchr(dir, '/');
    if (slash)
        slash[slash == dir] = '\0';
    // The configuration of a recording may be from another machine, or its place may be gone.
    if (slash && *dir == '/' && !realpath(dir, full))
        snprintf(full, sizeof full, "%s", dir);
    else if (!realpath(slash ? dir : ".", full))
        return refuse_at(c, section, "", "directory",
                         "its place cannot be found; write the whole path");
    snprintf(joined, sizeof joined, "%s/%s", strcmp(full, "/") == 0 ? "" : full, given);
    if (strlen(joined) >= CONFIG_PATH)
        return refuse_at(c, section, "", "directory",
                         "longer than 511 bytes with the place of this file before it");
    memcpy(given, joined, strlen(joined) + 1);
    return 0;
}

// 0 means the default; less than a microsecond nobody means.
static int check_deadlines(const struct checker *c)
{
    const double ms[] = {c->cfg->deadlines.wakeup_ms, c->cfg->deadlines.tick_ms,
                         c->cfg->deadlines.chunk_latency_ms,
                         c->cfg->deadlines.sensor_age_ms};
    const char *const key[] = {"wakeup_ms", "tick_ms", "chunk_latency_ms",
                               "sensor_age_ms"};

    for (int i = 0; i < 4; i++)
        if (ms[i] > 0 && ms[i] < 0.001)
            return refuse_at(c, "deadlines", "", key[i],
                             "expected 0 (the default) or at least 0.001 ms");
    return 0;
}

// Where evidence goes must not hang on where the daemon was started.
static int check_absolute(const struct checker *c, const char *section,
                          const char *directory)
{
    if (*directory && *directory != '/')
        return refuse_at(c, section, "", "directory",
                         "expected an absolute path (starting with '/')");
    return 0;
}

// actd@left has its sockets in /run/actd/left: that is its name, unless it was given another.
static void name_after_unit(struct config *cfg, const char *made)
{
    const char *end = made + strcspn(made, ":"), *name = end;

    while (name > made && name[-1] != '/')
        name--;
    if (strcmp(cfg->instance, "default") == 0 && name < end && end - name < CONFIG_NAME)
        snprintf(cfg->instance, sizeof cfg->instance, "%.*s", (int)(end - name), name);
}

// What a service manager made for us; /run/actd where root can make it; else the user's own.
static int choose_runtime(const struct checker *c)
{
    char *out = c->cfg->runtime;
    const char *user = getenv("XDG_RUNTIME_DIR"), *made = getenv("RUNTIME_DIRECTORY");
    bool ours =
        access("/run/actd", W_OK) == 0 ||
        (geteuid() == 0 && access("/run/actd", F_OK) != 0 && access("/run", W_OK) == 0);
    int n;

    if (made && *made == '/')
        name_after_unit(c->cfg, made);
    if (*out == '/')
        return 0;
    if (*out)
        return refuse_at(c, "runtime", "", "",
                         "expected an absolute path (starting with '/')");
    if (made && *made == '/') // several are separated by colons
        n = snprintf(out, CONFIG_PATH, "%.*s", (int)strcspn(made, ":"), made);
    else if (ours)
        n = snprintf(out, CONFIG_PATH, "/run/actd/%s", c->cfg->instance);
    else if (user && *user == '/')
        n = snprintf(out, CONFIG_PATH, "%s/actd/%s", user, c->cfg->instance);
    else
        return refuse_at(c, "runtime", "", "",
                         "/run/actd is not ours and XDG_RUNTIME_DIR is not set; write "
                         "`runtime: /a/directory` for the sockets");
    return n < CONFIG_PATH
               ? 0
               : refuse_at(c, "runtime", "", "", "too long; write a shorter one");
}

static int fill_endpoint(const struct checker *c, char *endpoint, const char *section,
                         const char *each, const char *base, const char *tail)
{
    char made[2 * CONFIG_PATH];

    if (*endpoint)
        return 0;
    snprintf(made, sizeof made, "%s/%s%s", c->cfg->runtime, base, tail);
    if (strlen(made) > SOCKET_MAX)
        return refuse_at(c, section, each, "endpoint",
                         "the socket's path in the directory `runtime` is longer than "
                         "107 bytes; write a shorter `runtime` or an endpoint");
    snprintf(endpoint, CONFIG_PATH, "ipc://%.*s", SOCKET_MAX, made);
    return 0;
}

// Default and form of the control socket.
static int check_control(const struct checker *c)
{
    char *out = c->cfg->operators.socket, made[2 * CONFIG_PATH];

    if (*out && *out != '/')
        return refuse_at(c, "operators", "", "socket",
                         "expected an absolute path (starting with '/')");
    snprintf(made, sizeof made, "%s%s", *out ? out : c->cfg->runtime,
             *out ? "" : "/control");
    if (strlen(made) > SOCKET_MAX)
        return refuse_at(c, "operators", "", "socket",
                         "longer than 107 bytes; write a shorter one, or a shorter "
                         "`runtime`");
    memcpy(out, made, strlen(made) + 1);
    return 0;
}

static int check_distinct(const struct checker *c)
{
    struct config *cfg = c->cfg;
    char control[CONFIG_PATH + 8], what[300];
    struct {
        const char *endpoint, *section, *each;
    } all[POLICY_MAX_CAMERAS + 4] = {{control, "operators", ""},
                                     {cfg->joint_state.endpoint, "joint_state", ""},
                                     {cfg->joint_command.endpoint, "joint_command", ""},
                                     {cfg->status.endpoint, "status", ""}};
    int n = 4;

    snprintf(control, sizeof control, "ipc://%s", cfg->operators.socket);
    for (int i = 0; i < cfg->n_cameras; i++, n++) {
        all[n].endpoint = cfg->camera[i].endpoint;
        all[n].section = "cameras";
        all[n].each = cfg->camera[i].name;
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(all[i].endpoint, all[k].endpoint) == 0) {
                snprintf(what, sizeof what, "same as %s%s%s; each %s needs its own",
                         all[k].section, *all[k].each ? "." : "", all[k].each,
                         k ? "stream" : "socket");
                return refuse_at(c, all[i].section, all[i].each, "endpoint", what);
            }
    return 0;
}

static int fill_endpoints(const struct checker *c)
{
    struct config *cfg = c->cfg;
    int rc = fill_endpoint(c, cfg->joint_state.endpoint, "joint_state", "",
                           "joints.state", "");

    if (!rc)
        rc = fill_endpoint(c, cfg->joint_command.endpoint, "joint_command", "",
                           "joints.command", "");
    if (!rc)
        rc = fill_endpoint(c, cfg->status.endpoint, "status", "", "status", "");
    for (int i = 0; i < cfg->n_cameras && !rc; i++)
        rc = fill_endpoint(c, cfg->camera[i].endpoint, "cameras", cfg->camera[i].name,
                           "camera.", cfg->camera[i].name);
    rc = rc ? rc : check_control(c);
    return rc ? rc : check_distinct(c);
}

// ---- rates ----------------------------------------------------------------------------

static int check_rates(const struct checker *c)
{
    const struct config *cfg = c->cfg;
    double two_periods_ms = 2000 / cfg->control.rate_hz;
    char what[200];

    if (cfg->joint_command.ttl_ms > 0 && cfg->joint_command.ttl_ms < two_periods_ms) {
        snprintf(what, sizeof what,
                 "expected at least two control periods, %.4g ms at control.rate_hz "
                 "%.4g; the robot would stop between commands",
                 two_periods_ms, cfg->control.rate_hz);
        return refuse_at(c, "joint_command", "", "time_to_live_ms", what);
    }
    if (cfg->safety.tick_gap_ms < two_periods_ms) {
        snprintf(what, sizeof what,
                 "expected at least two control periods, %.4g ms at control.rate_hz "
                 "%.4g; every tick would count as a gap",
                 two_periods_ms, cfg->control.rate_hz);
        return refuse_at(c, "safety", "", "tick_gap_ms", what);
    }
    if (cfg->inference.every_rows > 0 && cfg->inference.trigger == TRIGGER_CONTINUOUS)
        return refuse_at(
            c, "inference", "", "every_rows",
            "has no effect without `trigger: rows`; write that, or remove this");
    return 0;
}

static int count_threads(int asked)
{
    cpu_set_t set;
    int n = asked;

    if (n == 0) // one core stays the loop's
        n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) - 1 : 1;
    return asked ? asked : n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
}

int config_check(struct config *cfg, const struct ytree *tree, struct config_error *err)
{
    const struct checker c = {.cfg = cfg, .tree = tree, .err = err};
    int rc = resolve_directory(&c, "policy", cfg->policy.directory);

    rc = rc ? rc : resolve_directory(&c, "swap", cfg->swap.directory);
    cfg->policy.threads = count_threads(cfg->policy.threads);
    rc = rc ? rc : choose_runtime(&c);
    rc = rc ? rc : check_absolute(&c, "black_box", cfg->black_box.directory);
    rc = rc ? rc : check_absolute(&c, "record", cfg->record.directory);
    rc = rc ? rc : check_deadlines(&c);
    rc = rc ? rc : check_joints(&c);
    rc = rc ? rc : check_cameras(&c);
    rc = rc ? rc : fill_endpoints(&c);
    return rc ? rc : check_rates(&c);
}
