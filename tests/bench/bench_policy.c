// bench_policy: see the header.
//
//   bench_policy [--runs N] [--seconds S] [--cases abcde] [--threads 12] [--kernels NAME]
//                [--precision P] [--peers RESULTS.md] [CHECKPOINT_DIR]
//
// Exit status: 0, 1 when an inference failed, 2 usage.
#include "tests/bench/bench_policy.h"

#include <ctype.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/kernels/kernels.h"
#include "tests/unit/act_fixture.h"

// Of the best that the probe reached with as many threads: below, somebody else was there, or a
// virtual core was half of one. As in peers.py.
#define NEED_ONE  0.83
#define NEED_MORE 0.80

static const struct bench_case {
    const char *name;
    int cameras, height, width, dim, feedforward, chunk;
} cases[] = {
    {"a: 1 camera 480x640", 1, 480, 640, 512, 3200, 100},
    {"b: 2 cameras 480x640", 2, 480, 640, 512, 3200, 100},
    {"c: 4 cameras 480x640", 4, 480, 640, 512, 3200, 100},
    {"d: 1 camera 224x224", 1, 224, 224, 512, 3200, 100},
    {"e: 96x96, dim 256", 1, 96, 96, 256, 1024, 50},
};

struct table {
    struct bench_cell cell[BENCH_CELLS];
    int n;
};

// Each number of threads.
static int run(struct table *t, const char *name, const char *dir,
               const struct bench_how *how)
{
    int rc = 0;

    for (const char *c = how->threads; *c && rc == 0 && t->n < BENCH_CELLS; c++) {
        fprintf(stderr, "%s, threads: %c\n", name, *c);
        rc = bench_cell(name, dir, how, *c - '0', &t->cell[t->n]);
        t->n += rc == 0;
    }
    return rc;
}

static int run_case(struct table *t, const struct bench_case *c,
                    const struct bench_how *how)
{
    static const char *const key[] = {"observation.images.one", "observation.images.two",
                                      "observation.images.three",
                                      "observation.images.four"};
    struct act_fixture f = act_fixture_tiny();
    char dir[256];
    int rc = act_fixture_mkdir(dir);

    if (rc)
        return rc;
    f.dim_model = c->dim;
    f.dim_feedforward = c->feedforward;
    f.n_heads = 8;
    f.n_encoder_layers = 4;
    f.chunk_size = f.n_action_steps = c->chunk;
    f.n_cameras = c->cameras;
    f.state_dim = f.action_dim = 14;
    for (int i = 0; i < c->cameras; i++)
        f.camera[i] = (struct act_fixture_camera){key[i], c->height, c->width};
    rc = act_fixture_write(dir, &f);
    rc = rc ? rc : run(t, c->name, dir, how);
    act_fixture_remove(dir);
    return rc;
}

// Which cells count: known only when the probe's best is.
static void judge(struct table *t)
{
    double best[10] = {0};

    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < 2; k++)
            best[t->cell[i].threads] =
                fmax(best[t->cell[i].threads], t->cell[i].probe[k].wall);
    for (int i = 0; i < t->n; i++) {
        struct bench_cell *c = &t->cell[i];
        // Two cores are two: else the second one was not there all the time.
        double whole = fmax(best[c->threads], c->threads * best[1]);

        c->there = fmin(c->probe[0].wall, c->probe[1].wall) >=
                   (c->threads == 1 ? NEED_ONE : NEED_MORE) * whole;
    }
}

// ---- the command line ----------------------------------------------------------------------

static int usage(void)
{
    fprintf(
        stderr,
        "usage: bench_policy [--runs N] [--seconds S] [--cases abcde] [--threads 12]\n"
        "         [--kernels NAME] [--precision P] [--peers FILE] [CHECKPOINT_DIR]\n");
    return 2;
}

static bool digits(const char *text)
{
    for (const char *c = text; *c; c++)
        if (*c < '1' || *c > '9')
            return false;
    return *text;
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

static bool take(struct bench_how *how, int c)
{
    switch (c) {
    case 'r':
        how->runs = atoi(optarg);
        return how->runs >= 1 && how->runs <= 10000;
    case 's':
        how->seconds = strtod(optarg, NULL);
        return how->seconds >= 0;
    case 'c':
        how->cases = optarg;
        return true;
    case 't':
        how->threads = optarg;
        return digits(optarg);
    case 'k':
        return kernels_choose(optarg) == 0;
    case 'p':
        return precision_of(optarg, &how->precision);
    case 'f':
        how->peers = optarg;
        return true;
    default:
        return false;
    }
}

int main(int argc, char **argv)
{
    static const struct option option[] = {{"runs", required_argument, NULL, 'r'},
                                           {"seconds", required_argument, NULL, 's'},
                                           {"cases", required_argument, NULL, 'c'},
                                           {"threads", required_argument, NULL, 't'},
                                           {"kernels", required_argument, NULL, 'k'},
                                           {"precision", required_argument, NULL, 'p'},
                                           {"peers", required_argument, NULL, 'f'},
                                           {0}};
    struct bench_how how = {.runs = 20, .seconds = 4, .cases = "abcde", .threads = "12"};
    static struct table t;
    int rc = 0;

    for (int c; (c = getopt_long(argc, argv, "", option, NULL)) != -1;)
        if (!take(&how, c))
            return usage();
    if (optind + 1 < argc)
        return usage();
    if (optind < argc)
        rc = run(&t, "checkpoint", argv[optind], &how);
    for (size_t i = 0; optind == argc && rc == 0 && i < sizeof cases / sizeof *cases; i++)
        if (strchr(how.cases, cases[i].name[0]))
            rc = run_case(&t, &cases[i], &how);
    judge(&t);
    bench_print(t.cell, t.n, &how);
    return rc ? 1 : 0;
}
