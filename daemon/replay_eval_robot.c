// Which robot, and which policy for it. A recording says itself which robot it is of. A converted
// data set has the names of its values and its cameras: the robot is made of them, and since its
// values are in the checkpoint's own units, nothing is scaled.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/replay_eval_impl.h"

static const char smallest[] =
    "instance: dataset\n"
    "runtime: /tmp\n"
    "policy: {directory: /}\n"
    "control: {rate_hz: 30}\n"
    "joint_state: {rate_hz: 30}\n"
    "cameras:\n  a: {key: observation.images.a, rate_hz: 30, primary: true}\n"
    "joints:\n  a: {state: a, action: a, position: [-1, 1], velocity: 1, acceleration: 1, "
    "scale: 1}\n";

static int no(struct config_error *err, const char *path, const char *what)
{
    snprintf(err->text, sizeof err->text, "%.400s%s", path, what);
    return -EINVAL;
}

// ---- a data set's robot ----------------------------------------------------------------------

static const char *value_of(const struct mcap_pair *pair, int n, const char *key)
{
    for (int i = 0; i < n; i++)
        if (strcmp(pair[i].key, key) == 0)
            return pair[i].value;
    return NULL;
}

// The metadata record "dataset" of the converter. Valid until the log is closed.
static int find_dataset(struct logbook *book, const struct mcap_pair **pair, int *n)
{
    struct mcap_reader *m = logbook_reader(book, 0);
    struct mcap_error err;
    const char *name;
    for (int i = 0; i < mcap_metadata(m); i++)
        if (mcap_metadata_at(m, i, &name, pair, n, &err) == 0 &&
            strcmp(name, "dataset") == 0)
            return 0;
    return -ENOENT;
}

// The next line of a list; false at its end, or when it is too long to be a name.
static bool next_line(const char **list, char *out, size_t size)
{
    size_t n = strcspn(*list, "\n");
    if (n == 0 || n >= size)
        return false;
    memcpy(out, *list, n);
    out[n] = '\0';
    *list += n + ((*list)[n] == '\n');
    return true;
}

static bool has_line(const char *list, const char *name)
{
    char line[CONFIG_NAME];
    while (next_line(&list, line, sizeof line))
        if (strcmp(line, name) == 0)
            return true;
    return false;
}

static void make_joints(struct config *cfg, const char *states, const char *actions)
{
    const struct config_joint any = cfg->joint[0];
    char state[CONFIG_NAME], action[CONFIG_NAME];
    const char *rest = states;
    cfg->n_joints = 0;
    while (cfg->n_joints < ACTD_MAX_JOINTS &&
           next_line(&actions, action, sizeof action)) {
        struct config_joint *j = &cfg->joint[cfg->n_joints++];
        if (!next_line(&rest, state, sizeof state) || has_line(states, action))
            memcpy(state, action,
                   sizeof state); // by name where there is one, else by place
        *j = any;
        memcpy(j->name, action, sizeof j->name);
        memcpy(j->action, action, sizeof j->action);
        memcpy(j->state, state, sizeof j->state);
    }
}

// Lines "front=observation.images.front".
static void make_cameras(struct config *cfg, const char *cameras, double fps)
{
    const struct config_camera any = cfg->camera[0];
    char line[CONFIG_NAME + POLICY_NAME_MAX];
    cfg->n_cameras = 0;
    while (cfg->n_cameras < POLICY_MAX_CAMERAS &&
           next_line(&cameras, line, sizeof line)) {
        struct config_camera *c = &cfg->camera[cfg->n_cameras];
        char *equals = strchr(line, '=');
        if (!equals || equals - line >= CONFIG_NAME ||
            strlen(equals + 1) >= POLICY_NAME_MAX)
            continue;
        *c = any;
        snprintf(c->name, sizeof c->name, "%.*s", (int)(equals - line), line);
        memcpy(c->key, equals + 1, strlen(equals + 1) + 1);
        c->rate_hz = fps;
        c->primary = cfg->n_cameras == 0;
        c->latency_ms = 0;
        cfg->n_cameras++;
    }
}

static int dataset_robot(struct eval *e, struct config_error *err)
{
    const struct mcap_pair *pair;
    const char *path = logbook_path(e->book, 0);
    int n, rc;
    if (find_dataset(e->book, &pair, &n)) {
        (void)no(err, path,
                 " is neither a recording of actd nor a data set that "
                 "policy/convert/dataset_to_mcap.py has converted");
        return -ENODATA;
    }
    const char *fps = value_of(pair, n, "fps"),
               *states = value_of(pair, n, "state_names"),
               *actions = value_of(pair, n, "action_names"),
               *cameras = value_of(pair, n, "cameras");
    double rate = fps ? strtod(fps, NULL) : 0;
    if (!(rate > 0 && rate < 10000) || !states || !actions || !cameras)
        return no(err, path,
                  ": its metadata \"dataset\" lacks fps or names: convert it again");
    e->dataset = true;
    rc = config_parse(&e->cfg, path, smallest, sizeof smallest - 1, err);
    if (rc)
        return rc;
    e->cfg.control.rate_hz = e->cfg.joint_state.rate_hz = rate;
    e->cfg.inference.max_skew_ms = 500 / rate; // half a frame
    make_joints(&e->cfg, states, actions);
    make_cameras(&e->cfg, cameras, rate);
    return e->cfg.n_joints > 0 && e->cfg.n_cameras > 0
               ? 0
               : no(err, path,
                    ": no action names or no cameras in it: nothing to evaluate");
}

// Told by the caller, for a data set whose names are not the checkpoint's.
static int told_robot(struct eval *e, struct config_error *err)
{
    const struct mcap_pair *pair;
    int n, rc = config_load(&e->cfg, e->opt.config, err);
    if (rc || logbook_ours(e->book))
        return rc;
    if (find_dataset(e->book, &pair, &n) == 0) {
        e->dataset = true;
        for (int j = 0; j < e->cfg.n_joints; j++) {
            e->cfg.joint[j].scale = 1;
            e->cfg.joint[j].offset = 0;
        }
    }
    return 0;
}

static int recorded_robot(struct eval *e, struct config_error *err)
{
    const char *text = logbook_fact(e->book, "config");
    const char *file = logbook_fact(e->book, "config_file");
    if (!text)
        return no(err, logbook_path(e->book, 0),
                  " holds no configuration: give the robot's with -c robot.yaml");
    return config_parse(&e->cfg, file ? file : "robot.yaml", text, strlen(text), err);
}

// ---- the policy ------------------------------------------------------------------------------

// As fitted_load, but cameras of the robot that the policy does not look at are no mistake here.
static int load(struct eval *e, struct fitted *f, struct config_error *err)
{
    const struct policy_options opt = {
        .threads = e->cfg.policy.threads,
        .resize = e->cfg.policy.resize,
        .stats_tag = *e->cfg.policy.stats_tag ? e->cfg.policy.stats_tag : NULL,
        .precision = e->cfg.policy.precision};
    struct policy_error why = {""};
    int rc = config_sidecar_load(&f->side, f->directory, err);
    if (rc)
        return rc;
    rc = policy_load(&f->policy, f->directory, &opt, &why);
    if (rc) {
        snprintf(err->text, sizeof err->text, "%s", why.text);
        return rc;
    }
    f->info = policy_describe(f->policy);
    f->seat.brain = infer_brain_of(f->policy);
    // How the run was to use chunks is nothing to this: all rows are compared.
    e->cfg.chunks.horizon_rows = 0;
    e->cfg.inference.every_rows = 1;
    return fitted_fit(f, &e->cfg, true, err);
}

static int load_policy(struct eval *e, struct config_error *err)
{
    struct fitted *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    e->fitted = f;
    if (strlen(e->opt.policy) >= sizeof f->directory)
        return no(err, "--policy", ": a path that is too long");
    memcpy(f->directory, e->opt.policy, strlen(e->opt.policy) + 1);
    fitted_name(f->directory, f->name);
    return load(e, f, err);
}

static void name_units(struct eval *e)
{
    const struct binding *b = &e->fitted->binding;
    for (int j = 0; j < b->n; j++)
        snprintf(e->unit[j], sizeof e->unit[j], "rad");
    for (int i = 0; i < b->n && e->dataset; i++)
        memcpy(e->unit[b->joint_of[i]], e->fitted->side.units[i], sizeof e->unit[0]);
}

int eval_prepare(struct eval *e, struct config_error *err)
{
    int rc = e->opt.config           ? told_robot(e, err)
             : logbook_ours(e->book) ? recorded_robot(e, err)
                                     : dataset_robot(e, err);
    rc = rc ? rc : load_policy(e, err);
    if (rc)
        return rc;
    const struct fitted *f = e->fitted;
    name_units(e);
    double rate = e->dataset ? e->cfg.camera[0].rate_hz : e->cfg.control.rate_hz;
    int64_t reach = (int64_t)(3.5e9 / rate);
    rc = eval_score_init(&e->score, f->binding.n, f->info->chunk_size, f->seat.step_ns,
                         reach);
    if (rc)
        snprintf(err->text, sizeof err->text, "out of memory");
    // Times of a data set are float32 seconds: half a millisecond off after some hours.
    e->score.slack_ns = e->dataset ? f->seat.step_ns / 50 : 0;
    return rc;
}

void eval_free(struct eval *e)
{
    fitted_free(e->fitted);
    e->fitted = NULL;
    eval_score_free(&e->score);
}
