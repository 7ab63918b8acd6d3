// The robot of a recording: the configuration that the file carries, and the few facts of the policy
// that the loop was configured for, so that none need be there to replay all but the policy.
#include <cblas.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config_loop.h"
#include "daemon/replay_impl.h"
#include "daemon/replay_known.h"
#include "policy/digest.h"
#include "policy/kernels/cpu.h"
#include "policy/kernels/kernels.h"

// ---- facts -----------------------------------------------------------------------------------

static double number(struct logbook *book, const char *key, double otherwise)
{
    const char *text = logbook_fact(book, key);
    char *end;
    double v;

    if (!text || !*text)
        return otherwise;
    v = strtod(text, &end);
    return *end ? otherwise : v;
}

static bool whole_in(double v, double least, double most)
{
    return v >= least && v <= most && floor(v) == v;
}

// What config_loop wants to know of the policy.
static int policy_facts(struct replay_known *k, struct config_sidecar *side,
                        struct policy_info *info, struct config_error *err)
{
    double rows = number(k->book, "rows", 0);
    double steps = number(k->book, "action_steps", 0);
    double coeff = number(k->book, "ensemble_coeff", NAN);

    side->rate_hz = number(k->book, "policy_hz", 0);
    if (!whole_in(rows, 1, 1e6) || !whole_in(steps, 0, 1e6) || !(side->rate_hz > 0.01) ||
        side->rate_hz > 1e4) {
        snprintf(
            err->text, sizeof err->text,
            "%.400s: its metadata does not say what the policy was (rows, policy_hz): "
            "it was recorded by another version; replay it with that",
            logbook_path(k->book, 0));
        return -EINVAL;
    }
    info->chunk_size = (int)rows;
    info->n_action_steps = (int)steps;
    info->has_ensemble_coeff = !isnan(coeff);
    info->ensemble_coeff = (float)coeff;
    return 0;
}

bool replay_same_program(struct logbook *book)
{
    const char *exe = logbook_fact(book, "exe_sha256");
    char self[POLICY_DIGEST_HEX];

    digest_program(self);
    return exe && self[0] && strcmp(exe, self) == 0;
}

static bool in_8_bits(struct logbook *book)
{
    const char *precision = logbook_fact(book, "precision");

    return precision && strcmp(precision, precision_name(PRECISION_INT8)) == 0;
}

// From here on this process computes chunks as the one that recorded did. false: it can not.
// (Recordings of a time when OpenBLAS computed name no kernels.) VNNI is part of the name in 8 bits
// only: what-if may ask for them where the recording did not.
static bool take_kernels(struct logbook *book)
{
    const char *then = logbook_fact(book, "kernels");
    const char *core = logbook_fact(book, "blas_core");

    if (then && *then && kernels_choose(then) != 0) {
        (void)kernels_choose(NULL);
        return false;
    }
    if (!then || !*then)
        return false;
    if (!strstr(then, " vnni") && !in_8_bits(book))
        cpu_use_vnni(true);
    return !core || !*core || strcmp(core, openblas_get_corename()) == 0;
}

// ---- configuration ---------------------------------------------------------------------------

static int read_config(struct replay_known *k, struct config_error *err)
{
    const char *text = logbook_fact(k->book, "config");
    const char *file = logbook_fact(k->book, "config_file");

    if (k->opt->config_file)
        return config_load(&k->cfg, k->opt->config_file, err);
    if (!logbook_ours(k->book) || !text || !*text) {
        snprintf(err->text, sizeof err->text,
                 "%.400s: not a recording of actd: it has no metadata 'actd' with a "
                 "configuration; `actd log info` says what is in it",
                 logbook_path(k->book, 0));
        return -EINVAL;
    }
    return config_parse(&k->cfg, file && *file ? file : "recorded.yaml", text,
                        strlen(text), err);
}

// The n-th line of a list; NULL = it has none.
static const char *line(const char *list, int n)
{
    for (; list && n > 0; n--) {
        list = strchr(list, '\n');
        list = list ? list + 1 : NULL;
    }
    return list && *list ? list : NULL;
}

static bool same_name(const char *at, const char *name)
{
    size_t n = strlen(name);

    return at && strncmp(at, name, n) == 0 && (at[n] == '\n' || at[n] == '\0');
}

// Another configuration must be of the same robot: the log has its joints and cameras.
static int check_names(const struct replay_known *k, struct config_error *err)
{
    const char *joints = logbook_fact(k->book, "joints");
    const char *cameras = logbook_fact(k->book, "cameras");
    bool same = !line(joints, k->cfg.n_joints) && !line(cameras, k->cfg.n_cameras);

    for (int i = 0; i < k->cfg.n_joints && same; i++)
        same = same_name(line(joints, i), k->cfg.joint[i].name);
    for (int i = 0; i < k->cfg.n_cameras && same; i++)
        same = same_name(line(cameras, i), k->cfg.camera[i].name);
    if (same)
        return 0;
    snprintf(err->text, sizeof err->text,
             "%.400s: joints and cameras are not those of the recording, in its order: "
             "change only limits, blending and rates",
             k->cfg.file);
    return -EINVAL;
}

static void expect_size(struct replay_known *k, int camera)
{
    const char *size = line(logbook_fact(k->book, "sizes"), camera);
    int width, height;

    if (size && sscanf(size, "%dx%d", &width, &height) == 2 && width > 0 && height > 0) {
        k->robot.camera[camera].width = width;
        k->robot.camera[camera].height = height;
    }
}

static struct intake_config intake_of(const struct config *cfg)
{
    struct intake_config in = {.joints = cfg->n_joints,
                               .max_jump = cfg->safety.max_jump,
                               .rate_hz = cfg->joint_state.rate_hz};

    for (int i = 0; i < cfg->n_joints; i++)
        in.velocity[i] = cfg->joint[i].velocity;
    return in;
}

// Which samples were believed stays as it was, whatever else is asked: what came in is what was
// sensed then.
static struct intake_config recorded_intake(const struct replay_known *k)
{
    const char *text = logbook_fact(k->book, "config");
    struct intake_config in = intake_of(&k->cfg);
    struct config *was = calloc(1, sizeof *was);
    struct config_error e;

    if (was && text && config_parse(was, "recorded.yaml", text, strlen(text), &e) == 0 &&
        was->n_joints == k->cfg.n_joints)
        in = intake_of(was);
    free(was);
    return in;
}

static void fill_robot(struct replay_known *k)
{
    struct replay_robot *r = &k->robot;
    const struct config *cfg = &k->cfg;

    r->intake = k->opt->config_file ? recorded_intake(k) : intake_of(cfg);
    for (int i = 0; i < cfg->n_joints; i++)
        r->joint[i] = cfg->joint[i].name;
    r->cameras = cfg->n_cameras;
    for (int i = 0; i < cfg->n_cameras; i++) {
        r->camera[i].name = cfg->camera[i].name;
        r->camera[i].latency_ms = cfg->camera[i].latency_ms;
        r->camera[i].rate_hz = cfg->camera[i].rate_hz;
        expect_size(k, i);
    }
    r->arg = k;
    r->think = replay_think;
}

static int configure(struct replay_known *k, struct config_error *err)
{
    struct config_sidecar *side = calloc(1, sizeof *side);
    struct policy_info *info = calloc(1, sizeof *info);
    int rc = side && info ? 0 : -ENOMEM;

    if (rc == 0 && k->instead) {
        *side = k->instead->side;
        *info = *k->instead->info;
        k->robot.think_rows = k->instead->seat.rows;
        k->robot.think_step_ns = k->instead->seat.step_ns;
    } else if (rc == 0) {
        rc = policy_facts(k, side, info, err);
    }
    if (rc == 0)
        rc = config_loop(&k->cfg, side, info, &k->robot.loop, err);
    // A chunk may still have to be taken as it was recorded.
    if (rc == 0)
        k->robot.rows =
            (int)fmax(info->chunk_size, fmin(number(k->book, "rows", 0), 1e6));
    if (rc == 0 && k->opt->config_file && !k->instead)
        k->robot.think_rows =
            k->robot.rows; // its horizon may be longer than was computed
    free(side);
    free(info);
    return rc;
}

int replay_known_new(struct replay_known **out, struct logbook *book,
                     const struct replay_options *opt, struct config_error *err)
{
    struct replay_known *k = calloc(1, sizeof *k);
    int rc = k ? 0 : -ENOMEM;

    *out = k;
    if (!k) {
        snprintf(err->text, sizeof err->text, "out of memory");
        return rc;
    }
    k->book = book;
    k->opt = opt;
    k->same_kernels = take_kernels(book);
    rc = read_config(k, err);
    if (rc == 0)
        rc = check_names(k, err);
    if (rc == 0 && opt->policy_directory)
        rc = replay_load_instead(k, err);
    if (rc == 0)
        rc = configure(k, err);
    if (rc == 0)
        rc = replay_seats_read(k);
    fill_robot(k);
    if (rc == 0)
        return 0;
    if (!err->text[0])
        snprintf(err->text, sizeof err->text, "%s", strerror(-rc));
    replay_known_free(k);
    *out = NULL;
    return rc;
}

void replay_known_free(struct replay_known *k)
{
    if (!k)
        return;
    for (int i = 0; i < REPLAY_LOADED; i++)
        fitted_free(k->fitted[i]);
    fitted_free(k->instead);
    replay_seats_free(k);
    free(k);
}

int replay_run(struct logbook *book, const struct replay_options *opt,
               struct replay_result *out, struct config_error *err)
{
    struct replay_options with = *opt;
    struct replay_known *k;
    int rc;

    memset(out, 0, sizeof *out);
    err->text[0] = '\0';
    rc = replay_known_new(&k, book, opt, err);
    if (rc)
        return rc;
    bool same_kernels = opt->no_policy || k->same_kernels;
    if (opt->tolerance_rad == 0 && !(same_kernels && replay_same_program(book)))
        with.tolerance_rad = REPLAY_TOLERANCE;
    rc = replay_run_robot(book, &k->robot, &with, out, err);
    out->other_kernels = !same_kernels;
    if (k->note[0])
        snprintf(out->note, sizeof out->note, "%s", k->note);
    replay_known_free(k);
    return rc;
}
