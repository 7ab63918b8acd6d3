// init: see the header.
#include "daemon/init.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/table.h"

static int no(struct config_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int no(struct config_error *err, int code, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(err->text, sizeof err->text, format, ap);
    va_end(ap);
    for (char *p = err->text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return -code;
}

// ---- facts ----------------------------------------------------------------------------

static void make_up(char (*name)[CONFIG_NAME], int n, const char *what)
{
    for (int i = 0; i < n; i++)
        snprintf(name[i], CONFIG_NAME, "%s_%d", what, i);
}

static int take_dataset(struct init_facts *facts, const char *file,
                        const struct lerobot_checkpoint *c, struct config_error *err)
{
    struct init_dataset d;
    int rc = init_dataset_read(&d, file, err);

    if (rc)
        return rc;
    if (d.fps >= 0.5 && d.fps <= 1000) {
        facts->side.rate_hz = d.fps;
        snprintf(facts->rate_source, CONFIG_NAME, "the data set's fps");
    }
    memcpy(facts->robot_type, d.robot_type, sizeof facts->robot_type);
    for (char *p = facts->robot_type; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    if (d.n_action == 0)
        return 0; // a data set without names: made-up ones stay
    if (d.n_action != c->action_dim || (d.n_state != c->state_dim && c->state_dim > 0))
        return no(
            err, EINVAL,
            "%.300s names %d state%s and %d action%s, but the checkpoint has %d and "
            "%d; name the data set it was trained on",
            file, d.n_state, PLURAL(d.n_state), d.n_action, PLURAL(d.n_action),
            c->state_dim, c->action_dim);
    memcpy(facts->side.action, d.action, sizeof d.action);
    if (c->state_dim > 0)
        memcpy(facts->side.state, d.state, sizeof d.state);
    facts->named = true;
    return 0;
}

// Under another name this might be a gripper's 0..1.
static bool within_0_1(const struct units_range *r)
{
    double mean = (r->lo + r->hi) / 2;

    return r->estimated ? mean >= 0 && mean <= 1 : r->lo >= -0.1 && r->hi <= 1.1;
}

// A guess is written down only where it cannot be mistaken for another; it would load
// unread. SO arms have been recorded in degrees, in -100..100 and in degrees with another
// zero, so theirs never is, but for the gripper, which was always 0..100. Without names
// nobody knows which value is a gripper, and its range hides within an arm's.
static const char *decide_unit(const struct init_facts *facts, int i)
{
    const struct units_range *r = &facts->action[i];
    const char *looks = facts->looks[i];
    bool rad = strcmp(looks, "rad") == 0 || strcmp(looks, UNITS_GRIP_SMALL) == 0;

    if (units_is_so_arm(facts->robot_type))
        return r->known && !rad && units_is_gripper(facts->side.action[i]) ? "0_100" : "";
    if (!facts->named && (!rad || within_0_1(r)))
        return "";
    return units_is_sure(looks) ? looks : "";
}

static void guess_units(struct init_facts *facts)
{
    struct config_sidecar *s = &facts->side;

    units_guess(facts->action, s->action[0], CONFIG_NAME, s->n_action, facts->looks);
    for (int i = 0; i < s->n_action; i++)
        snprintf(s->units[i], sizeof s->units[i], "%s", decide_unit(facts, i));
}

static int check_shape(const struct lerobot_checkpoint *c, struct config_error *err)
{
    if (c->action_dim > ACTD_MAX_JOINTS || c->state_dim > ACTD_MAX_JOINTS)
        return no(err, EINVAL,
                  "%.400s: %d states and %d actions; actd drives at most %d joints",
                  c->dir, c->state_dim, c->action_dim, ACTD_MAX_JOINTS);
    if (c->env_dim > 0)
        return no(err, EINVAL,
                  "%.400s wants observation.environment_state, which no robot publishes; "
                  "train a policy on cameras and joints",
                  c->dir);
    return 0;
}

static void take_ranges(struct init_facts *facts, const struct lerobot_checkpoint *c)
{
    struct policy_stats state = units_stats(&c->state_stats);
    struct policy_stats action = units_stats(&c->action_stats);

    units_ranges(&state, facts->state, c->state_dim);
    units_ranges(&action, facts->action, c->action_dim);
    facts->has_ensemble_coeff = c->act.has_ensemble_coeff;
    facts->ensemble_coeff = c->act.ensemble_coeff;
}

static int take_checkpoint(struct init_facts *facts, const struct init_options *opt,
                           const struct lerobot_checkpoint *c, struct config_error *err)
{
    struct config_sidecar *s = &facts->side;
    double rate = init_train_rate(facts->directory);
    int rc = check_shape(c, err);

    if (rc)
        return rc;
    if (rate >= 0.5 && rate <= 1000) {
        s->rate_hz = rate;
        snprintf(facts->rate_source, CONFIG_NAME, "train_config.json's env.fps");
    }
    s->n_state = c->state_dim;
    s->n_action = c->action_dim;
    make_up(s->state, s->n_state, "state");
    make_up(s->action, s->n_action, "action");
    s->n_cameras = c->n_cameras;
    for (int i = 0; i < c->n_cameras; i++)
        memcpy(s->camera[i], c->camera[i].key, sizeof s->camera[i]);
    take_ranges(facts, c);
    rc = opt->dataset ? take_dataset(facts, opt->dataset, c, err) : 0;
    if (!rc)
        guess_units(facts);
    return rc;
}

// A policy.yaml that is there wins: whoever wrote it knew the robot.
static int keep_sidecar(struct init_facts *facts, const struct lerobot_checkpoint *c,
                        struct config_error *err)
{
    int rc = config_sidecar_load(&facts->side, facts->directory, err);
    size_t n = strlen(err->text);

    if (rc) {
        snprintf(err->text + n, sizeof err->text - n,
                 " (or --force writes a new policy.yaml)");
        return rc;
    }
    rc = check_shape(c, err);
    if (rc)
        return rc;
    if (facts->side.n_action != c->action_dim || facts->side.n_state != c->state_dim)
        return no(
            err, EINVAL,
            "%.300s/policy.yaml names %d state%s and %d action%s, but the checkpoint "
            "has %d and %d; --force writes a new one",
            facts->directory, facts->side.n_state, PLURAL(facts->side.n_state),
            facts->side.n_action, PLURAL(facts->side.n_action), c->state_dim,
            c->action_dim);
    facts->kept = facts->named = true;
    facts->side.n_cameras = c->n_cameras;
    for (int i = 0; i < c->n_cameras; i++)
        memcpy(facts->side.camera[i], c->camera[i].key, sizeof facts->side.camera[i]);
    take_ranges(facts, c);
    return 0;
}

static int gather(struct init_facts *facts, const struct init_options *opt, bool keep,
                  struct config_error *err)
{
    struct lerobot_checkpoint *c;
    struct policy_error why = {""};
    int rc = lerobot_open(&c, facts->directory, opt->stats_tag, &why);

    if (rc)
        return no(err, -rc, "%s", why.text);
    rc = keep ? keep_sidecar(facts, c, err) : take_checkpoint(facts, opt, c, err);
    lerobot_close(c);
    return rc;
}

// ---- files ----------------------------------------------------------------------------

static int write_file(const char *path, bool force, const struct init_facts *facts,
                      void (*text)(FILE *, const struct init_facts *),
                      struct config_error *err)
{
    int fd =
        open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL), 0644);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    int bad;

    if (!f) {
        bad = errno;
        if (fd >= 0)
            close(fd);
        return no(err, bad, "%.400s: %s", path,
                  bad == EEXIST ? "is there already; --force overwrites it"
                                : strerror(bad));
    }
    text(f, facts);
    bad = ferror(f);
    if (fclose(f) != 0 || bad)
        return no(err, EIO, "%.400s: could not be written whole", path);
    return 0;
}

// Both files are looked for before either is written.
static int check_targets(const struct init_options *opt, const char *sidecar,
                         const char *robot, bool *keep, struct config_error *err)
{
    *keep = !opt->force && access(sidecar, F_OK) == 0;
    if (!opt->force && access(robot, F_OK) == 0)
        return no(err, EEXIST,
                  "%.400s: is there already; --force overwrites it, --output names "
                  "another file",
                  robot);
    if (*keep && opt->dataset)
        return no(err, EEXIST,
                  "%.400s: is there already, so --dataset would not be used; leave that "
                  "out, or --force writes a new one",
                  sidecar);
    return 0;
}

static void say_next(FILE *say, const struct init_facts *facts, const char *sidecar,
                     const char *robot)
{
    const struct config_sidecar *s = &facts->side;
    char joint[INIT_JOINT];
    bool guessed = true;

    fprintf(say, "%s %s (states: %d, actions: %d, cameras: %d)\n",
            facts->kept ? "kept " : "wrote", sidecar, s->n_state, s->n_action,
            s->n_cameras);
    fprintf(say, "wrote %s\n\nStill to do, in %s:\n", robot, robot);
    fprintf(say,
            "  joint_state.rate_hz, and each joint's position, velocity and acceleration "
            "limits%s\n",
            facts->named ? "" : ",\n  and the driver's name of each joint");
    for (int i = 0; i < s->n_action; i++) {
        init_joint_name(facts, i, joint, sizeof joint);
        if (*s->units[i] && isnan(units_scale(s->units[i])))
            fprintf(
                say,
                "  joints.%s: scale and offset, since %s does not say how far it turns\n",
                joint, s->units[i]);
    }
    if (!facts->kept) {
        fprintf(say, "in %s:\n", sidecar);
        if (!(s->rate_hz > 0))
            fprintf(say,
                    "  rate_hz: the data set's fps (or give --dataset meta/info.json)\n");
        for (int i = 0; i < s->n_action; i++)
            guessed = guessed && *s->units[i];
        fprintf(say, "  units: %s\n",
                guessed ? "confirm the guess"
                        : "fill in; the file says what fits and how to tell");
    }
    fprintf(say, "\nThen: actd check -c %s\n", robot);
}

int init_run(const struct init_options *opt, FILE *say, struct config_error *err)
{
    const char *robot = opt->output ? opt->output : "robot.yaml";
    struct init_facts *facts = calloc(1, sizeof *facts);
    char *full = realpath(opt->checkpoint, NULL), sidecar[CONFIG_PATH + 16];
    bool keep = false;
    int rc = -ENOMEM;

    if (!facts)
        goto out;
    if (!full || strlen(full) >= CONFIG_PATH) {
        rc = no(err, full ? ENAMETOOLONG : errno, "%.400s: %s", opt->checkpoint,
                full ? "path too long" : "no such directory");
        goto out;
    }
    snprintf(facts->directory, CONFIG_PATH, "%s", full);
    snprintf(sidecar, sizeof sidecar, "%.511s/policy.yaml", full);
    facts->stats_tag = opt->stats_tag;
    rc = check_targets(opt, sidecar, robot, &keep, err);
    rc = rc ? rc : gather(facts, opt, keep, err);
    if (!rc && !keep)
        rc = write_file(sidecar, opt->force, facts, init_write_sidecar, err);
    rc = rc ? rc : write_file(robot, opt->force, facts, init_write_robot, err);
    if (!rc)
        say_next(say, facts, sidecar, robot);
out:
    free(full);
    free(facts);
    return rc;
}

// ---- command line ---------------------------------------------------------------------

static int usage(FILE *f, int status)
{
    fprintf(
        f,
        "usage: actd init CHECKPOINT_DIR [--dataset meta/info.json] [--output "
        "robot.yaml]\n"
        "                 [--stats-tag NAME] [--force]\n\n"
        "Writes policy.yaml into the checkpoint directory and robot.yaml here, with all\n"
        "that can be known filled in and the rest marked EDIT.\n\n"
        "  --dataset FILE    the data set's meta/info.json: joint names and rate\n"
        "  --output FILE     instead of robot.yaml\n"
        "  --stats-tag NAME  which statistics, for a checkpoint that has several groups\n"
        "  --force           overwrite files that are there\n"
        "  -h, --help        this text\n\n"
        "exit status: 0 written, 64 usage, 78 refused or not writable\n");
    return status;
}

int init_main(int argc, char **argv)
{
    static const struct option option[] = {{"dataset", required_argument, NULL, 'd'},
                                           {"output", required_argument, NULL, 'o'},
                                           {"stats-tag", required_argument, NULL, 't'},
                                           {"force", no_argument, NULL, 'f'},
                                           {"help", no_argument, NULL, 'h'},
                                           {0}};
    struct init_options opt = {0};
    struct config_error err = {"out of memory"};
    int c;

    optind = 0; // start anew: main has been through its own options
    while ((c = getopt_long(argc, argv, "d:o:fh", option, NULL)) != -1) {
        if (c == 'h')
            return usage(stdout, EX_OK);
        if (c == '?')
            return usage(stderr, EX_USAGE);
        opt.dataset = c == 'd' ? optarg : opt.dataset;
        opt.output = c == 'o' ? optarg : opt.output;
        opt.stats_tag = c == 't' ? optarg : opt.stats_tag;
        opt.force = opt.force || c == 'f';
    }
    if (optind + 1 != argc)
        return usage(stderr, EX_USAGE);
    opt.checkpoint = argv[optind];
    if (init_run(&opt, stdout, &err) == 0)
        return EX_OK;
    fprintf(stderr, "actd init: %s\n", err.text);
    return EX_CONFIG;
}
