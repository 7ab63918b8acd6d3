// inspect: see the header.
#include "daemon/inspect.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/config.h"
#include "daemon/inspect_plan.h"
#include "daemon/inspect_precision.h"
#include "daemon/table.h"
#include "daemon/units.h"
#include "policy/lerobot.h"

struct inspect {
    FILE *out;
    struct lerobot_checkpoint *c;
    struct config_sidecar side;
    bool named; // policy.yaml is there and names every value
    struct table table;
};

static void network(struct inspect *s)
{
    const struct lerobot_act *a = &s->c->act;
    struct table *t = &s->table;
    double values = 0;

    for (size_t i = 0; i < st_count(s->c->weights); i++) {
        const struct st_tensor *x = st_at(s->c->weights, i);
        double n = 1;
        for (int d = 0; d < x->rank; d++)
            n *= (double)x->shape[d];
        values += n;
    }
    table_row(t, "written by\t%s", s->c->format);
    table_row(t,
              "network\tACT, %s, dim %d, %d heads, feed-forward %d (%s), %d + %d layers, "
              "%s-norm",
              a->depth ? a->backbone : "no backbone", a->dim_model, a->n_heads,
              a->dim_feedforward, a->activation == LEROBOT_GELU ? "gelu" : "relu",
              a->n_encoder_layers, a->n_decoder_layers, a->pre_norm ? "pre" : "post");
    table_row(t, "chunk\t%d rows, n_action_steps %d", a->chunk_size, a->n_action_steps);
    if (a->has_ensemble_coeff)
        table_row(t, "ensembling\tcoefficient %g", (double)a->ensemble_coeff);
    table_row(t, "file\t%zu tensors, %.1f million values", st_count(s->c->weights),
              values / 1e6);
    for (int i = 0; i < s->c->n_cameras; i++)
        table_row(t, "image\t%s, %dx%d, %s", s->c->camera[i].key, s->c->camera[i].width,
                  s->c->camera[i].height, norm_mode_name(s->c->camera[i].norm.mode));
    if (s->c->env_dim)
        table_row(t,
                  "environment\t%d values: no robot publishes them, actd cannot run this",
                  s->c->env_dim);
    table_print(t, s->out);
}

static void feature(struct inspect *s, const char *what, const struct norm_stats *stats,
                    int n, enum norm_mode mode, const char *names)
{
    struct policy_stats p = units_stats(stats);
    struct units_range range[ACTD_MAX_JOINTS];
    const char *guess[ACTD_MAX_JOINTS];
    char lo[24], hi[24], mean[24], std[24];

    fprintf(s->out, "\n%s: %d value%s, %s\n", what, n, PLURAL(n), norm_mode_name(mode));
    if (n > ACTD_MAX_JOINTS || n == 0)
        return;
    units_ranges(&p, range, n);
    units_guess(range, names, CONFIG_NAME, n, guess);
    table_row(&s->table, "value\tname\tmin\tmax\tmean\tstd\tlooks like");
    for (int i = 0; i < n; i++) {
        snprintf(lo, sizeof lo, i < p.n && p.min ? "%.4g" : "-",
                 p.min ? (double)p.min[i] : 0);
        snprintf(hi, sizeof hi, i < p.n && p.max ? "%.4g" : "-",
                 p.max ? (double)p.max[i] : 0);
        snprintf(mean, sizeof mean, i < p.n && p.mean ? "%.4g" : "-",
                 p.mean ? (double)p.mean[i] : 0);
        snprintf(std, sizeof std, i < p.n && p.std ? "%.4g" : "-",
                 p.std ? (double)p.std[i] : 0);
        table_row(&s->table, "%d\t%s\t%s\t%s\t%s\t%s\t%s", i,
                  names[i * CONFIG_NAME] ? names + i * CONFIG_NAME : "-", lo, hi, mean,
                  std, *guess[i] ? guess[i] : "?");
    }
    table_print(&s->table, s->out);
}

static void sidecar(struct inspect *s, const char *dir)
{
    struct config_error err = {""};
    char path[CONFIG_PATH + 16];

    snprintf(path, sizeof path, "%.511s/policy.yaml", dir);
    if (s->c->env_dim)
        fprintf(s->out,
                "\nactd init writes no policy.yaml for it: see environment above\n");
    else if (access(path, F_OK) != 0)
        fprintf(
            s->out,
            "\nThere is no policy.yaml yet; `actd init %s` writes it, and a robot.yaml\n",
            dir);
    else if (config_sidecar_load(&s->side, dir, &err))
        fprintf(s->out, "\npolicy.yaml is not complete: %s\n", err.text);
    else if (s->side.n_state != s->c->state_dim || s->side.n_action != s->c->action_dim)
        fprintf(s->out,
                "\npolicy.yaml does not fit: it names %d state%s and %d action%s\n",
                s->side.n_state, PLURAL(s->side.n_state), s->side.n_action,
                PLURAL(s->side.n_action));
    else
        s->named = true;
    if (!s->named)
        memset(&s->side, 0, sizeof s->side);
    else
        fprintf(s->out, "\npolicy.yaml: recorded at %g Hz\n", s->side.rate_hz);
}

int inspect_run(const char *dir, const char *stats_tag, FILE *out, FILE *err)
{
    struct inspect *s = calloc(1, sizeof *s);
    struct policy_error why = {"out of memory"};

    if (!s || lerobot_open(&s->c, dir, stats_tag, &why)) {
        fprintf(err, "REFUSED: %s\n", why.text);
        free(s);
        return EX_CONFIG;
    }
    s->out = out;
    fprintf(out, "%s\n", dir);
    network(s);
    sidecar(s, dir);
    feature(s, "observation.state", &s->c->state_stats, s->c->state_dim, s->c->state.mode,
            s->side.state[0]);
    feature(s, "action", &s->c->action_stats, s->c->action_dim, s->c->action.mode,
            s->side.action[0]);
    lerobot_close(s->c);
    free(s);
    return EX_OK;
}

static int usage(FILE *f, int status)
{
    fprintf(
        f,
        "usage: actd inspect CHECKPOINT_DIR [--stats-tag NAME] [--precision P]\n"
        "       actd inspect --plan CHECKPOINT_DIR [options]\n\n"
        "Prints what is in a LeRobot ACT checkpoint directory: format, network, "
        "cameras,\n"
        "statistics and what units they look like. With --plan it loads the policy and\n"
        "prints what an inference does on this machine: every step, in which way and "
        "with\n"
        "which kernel, and how long it takes.\n\n"
        "      --stats-tag NAME  which statistics, for a checkpoint that has several "
        "groups\n"
        "      --plan            the plan of an inference, measured on made-up pictures\n"
        "      --threads N       compute threads of it (1)\n"
        "      --runs N          inferences to take the median of (5)\n"
        "      --kernels NAME    not the best that run here, but generic, openblas, avx2,\n"
        "                        avx512, neon, and with products of bytes for int8\n"
        "                        \"avx2 vnni\", \"avx512 vnni\"\n"
        "      --precision P     float32 (preset), bf16 or int8; without --plan: how far the\n"
        "                        actions are then from float32's\n"
        "      --json            the plan in JSON\n"
        "  -h, --help            this text\n\n"
        "exit status: 0 it can be read, 64 usage, 70 an inference failed, 78 refused\n");
    return status;
}

// A number of an option. false: it is none from 1 to `most`.
static bool number(const char *text, int most, int *out)
{
    char *end;
    long v = strtol(text, &end, 10);

    *out = (int)v;
    return *text && !*end && v >= 1 && v <= most;
}

static bool precision_of(const char *name, enum precision *out)
{
    for (int p = 0; p < PRECISIONS; p++)
        if (strcmp(precision_name((enum precision)p), name) == 0) {
            *out = (enum precision)p;
            return true;
        }
    return false;
}

struct arguments {
    struct inspect_plan plan;
    bool help, planned, plan_only; // of what only a plan has something was said
};

static bool take(struct arguments *a, int c)
{
    struct inspect_plan *p = &a->plan;

    a->plan_only = a->plan_only || (c != 't' && c != 'p' && c != 'h' && c != 'P');
    switch (c) {
    case 'h':
        a->help = true;
        return true;
    case 'p':
        a->planned = true;
        return true;
    case 't':
        p->stats_tag = optarg;
        return true;
    case 'j':
        p->json = true;
        return true;
    case 'k':
        p->kernels = optarg;
        return true;
    case 'n':
        return number(optarg, 64, &p->threads);
    case 'r':
        return number(optarg, 1000, &p->runs);
    case 'P':
        return precision_of(optarg, &p->precision);
    default:
        return false;
    }
}

int inspect_main(int argc, char **argv)
{
    static const struct option option[] = {{"stats-tag", required_argument, NULL, 't'},
                                           {"plan", no_argument, NULL, 'p'},
                                           {"threads", required_argument, NULL, 'n'},
                                           {"runs", required_argument, NULL, 'r'},
                                           {"kernels", required_argument, NULL, 'k'},
                                           {"precision", required_argument, NULL, 'P'},
                                           {"json", no_argument, NULL, 'j'},
                                           {"help", no_argument, NULL, 'h'},
                                           {0}};
    struct arguments a = {.plan = {.threads = 1, .runs = 5}};
    int c;

    optind = 0; // start anew: main has been through its own options
    while (!a.help && (c = getopt_long(argc, argv, "h", option, NULL)) != -1)
        if (!take(&a, c))
            return usage(stderr, EX_USAGE);
    if (a.help)
        return usage(stdout, EX_OK);
    if (optind + 1 != argc || (a.plan_only && !a.planned))
        return usage(stderr, EX_USAGE);
    if (a.planned)
        return inspect_plan_run(argv[optind], &a.plan, stdout, stderr);
    c = inspect_run(argv[optind], a.plan.stats_tag, stdout, stderr);
    if (c != EX_OK || a.plan.precision == PRECISION_FLOAT32)
        return c;
    return inspect_precision_run(argv[optind], a.plan.stats_tag, a.plan.precision, stdout,
                                 stderr);
}
