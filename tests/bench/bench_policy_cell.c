// One cell of bench_policy: loads, lets the policy look at noise, asks a probe before and after.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policy/pool.h"
#include "tests/bench/bench_kernels.h"
#include "tests/bench/bench_policy.h"
#include "tests/unit/act_fixture.h"

#define PROBE_ROUNDS 20000 // of 12 multiply-adds: some 40 us
#define RUNS_LEAST   5
#define PROFILES     5 // inferences for the times of the stages

static double ms_of(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

// ---- the probe -----------------------------------------------------------------------------

struct probing {
    double end_ms, flops[POOL_MAX_THREADS], cpu_ms[POOL_MAX_THREADS];
};

static void probe_task(void *arg, int worker, int workers)
{
    struct probing *p = arg;
    double cpu = ms_of(CLOCK_THREAD_CPUTIME_ID);

    (void)workers;
    while (ms_of(CLOCK_MONOTONIC) < p->end_ms)
        p->flops[worker] += bench_probe_of(cpu_chosen())(PROBE_ROUNDS);
    p->cpu_ms[worker] = ms_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
}

struct bench_probe bench_probe_threads(int threads)
{
    struct bench_probe out = {0, 0};
    struct probing p = {.end_ms = ms_of(CLOCK_MONOTONIC) + 10};
    struct pool *pool;
    double begin;

    if (pool_start(&pool, threads, 0))
        return out;
    pool_run(pool, probe_task, &p); // wakes the cores and their wide units
    memset(&p, 0, sizeof p);
    begin = ms_of(CLOCK_MONOTONIC);
    p.end_ms = begin + 60;
    pool_run(pool, probe_task, &p);
    begin = ms_of(CLOCK_MONOTONIC) - begin;
    pool_stop(pool);
    for (int i = 0; i < threads; i++) {
        out.wall += 1e-6 * p.flops[i] / begin;
        out.own += p.cpu_ms[i] > 0 ? 1e-6 * p.flops[i] / p.cpu_ms[i] / threads : 0;
    }
    return out;
}

// ---- inferences ----------------------------------------------------------------------------

struct scene {
    struct policy *policy;
    const struct policy_info *info;
    struct policy_image image[POLICY_MAX_CAMERAS];
    float *state, *actions;
    double *wall_ms;
};

static int scene_open(struct scene *s, int runs)
{
    const struct policy_info *info = s->info;

    for (int i = 0; i < info->n_cameras; i++) {
        int w = info->camera[i].width, h = info->camera[i].height;
        size_t n = 3 * (size_t)w * (size_t)h;
        uint8_t *rgb = malloc(n);

        for (size_t k = 0; rgb && k < n; k++)
            rgb[k] = (uint8_t)act_fixture_mix(k);
        s->image[i] =
            (struct policy_image){.rgb = rgb, .width = w, .height = h, .stride = 3 * w};
        if (!rgb)
            return -ENOMEM;
    }
    s->state = calloc((size_t)(info->state_dim + info->env_dim) + 1, sizeof *s->state);
    s->actions =
        calloc((size_t)info->chunk_size * (size_t)info->action_dim, sizeof *s->actions);
    s->wall_ms = calloc((size_t)runs, sizeof *s->wall_ms);
    return s->state && s->actions && s->wall_ms ? 0 : -ENOMEM;
}

static void scene_close(struct scene *s)
{
    for (int i = 0; i < POLICY_MAX_CAMERAS; i++)
        free((void *)(uintptr_t)s->image[i].rgb);
    free(s->state);
    free(s->actions);
    free(s->wall_ms);
    policy_free(s->policy);
}

static int infer(struct scene *s)
{
    const struct policy_observation obs = {
        .state = s->state, .env = s->state + s->info->state_dim, .image = s->image};

    return policy_infer(s->policy, &obs, s->actions, NULL);
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

// After one that is not counted. The least of processor time; with several threads the mean: what the others
// take is booked at a timer's tick, so that one short inference has none of it and the next too much.
static int measure(struct scene *s, const struct bench_how *how, struct bench_cell *out)
{
    double begin = ms_of(CLOCK_MONOTONIC), least = INFINITY, sum = 0;
    int rc = infer(s);

    for (int i = 0; rc == 0 && i < how->runs; i++) {
        double wall = ms_of(CLOCK_MONOTONIC), cpu = ms_of(CLOCK_PROCESS_CPUTIME_ID);

        if (i >= RUNS_LEAST && wall - begin > 1e3 * how->seconds)
            break;
        rc = infer(s);
        s->wall_ms[out->runs++] = ms_of(CLOCK_MONOTONIC) - wall;
        cpu = ms_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        least = fmin(least, cpu);
        sum += cpu;
    }
    out->cpu_ms = out->threads > 1 ? sum / out->runs : least;
    qsort(s->wall_ms, (size_t)out->runs, sizeof *s->wall_ms, compare);
    out->median_ms = s->wall_ms[out->runs / 2];
    out->best_ms = s->wall_ms[0];
    return rc;
}

// F(4x4) multiplies 36 times for 144 of direct convolution, F(2x2) 16 for 36. Tiles that stick out of
// a map are not counted.
static double floor_macs(const struct profile *p)
{
    double macs = 0;

    for (int i = 0; i < p->n; i++) {
        const struct profile_step *s = &p->step[i];
        double left = strcmp(s->way, conv_way_name(CONV_WINOGRAD_4)) == 0   ? 1 / 4.0
                      : strcmp(s->way, conv_way_name(CONV_WINOGRAD_2)) == 0 ? 4 / 9.0
                                                                            : 1.0;
        macs += left * s->macs;
    }
    return macs;
}

static int measure_stages(struct scene *s, struct bench_cell *out)
{
    struct profile_runs *runs;
    int rc = profile_runs_new(&runs, PROFILES);

    if (rc)
        return rc;
    policy_profile(s->policy, &runs->profile);
    for (int i = 0; rc == 0 && i < PROFILES; i++) {
        rc = infer(s);
        rc = rc ? rc : profile_runs_take(runs);
    }
    policy_profile(s->policy, NULL);
    profile_runs_end(runs);
    out->stages = profile_stages(&runs->profile, out->stage);
    out->floor_macs = floor_macs(&runs->profile);
    profile_runs_free(runs);
    return rc;
}

// What loading beside it takes: a swap's share, without its trials.
static int load_beside(const char *dir, struct scene *s, struct bench_cell *out)
{
    struct policy_options opt = {.beside = s->policy, .precision = s->info->precision};
    struct policy_error err = {{0}};
    struct policy *p = NULL;
    double begin = ms_of(CLOCK_PROCESS_CPUTIME_ID);
    int rc = policy_load(&p, dir, &opt, &err);

    if (rc)
        fprintf(stderr, "%s: %s\n", dir, err.text);
    else
        out->beside = policy_describe(p)->load_ms;
    out->beside_cpu_ms = ms_of(CLOCK_PROCESS_CPUTIME_ID) - begin;
    policy_free(p);
    return rc;
}

static int load(const char *dir, const struct bench_how *how, struct scene *s,
                struct bench_cell *out)
{
    struct policy_options opt = {.threads = out->threads, .precision = how->precision};
    struct policy_error err = {{0}};
    double begin = ms_of(CLOCK_PROCESS_CPUTIME_ID);
    int rc = policy_load(&s->policy, dir, &opt, &err);

    if (rc) {
        fprintf(stderr, "%s: %s\n", dir, err.text);
        return rc;
    }
    out->load_cpu_ms = ms_of(CLOCK_PROCESS_CPUTIME_ID) - begin;
    s->info = policy_describe(s->policy);
    out->load = s->info->load_ms;
    out->weight_bytes = s->info->weight_bytes;
    out->table_bytes = s->info->table_bytes;
    out->working_bytes = s->info->activation_bytes;
    out->float32_bytes = 4.0 * (double)s->info->parameters;
    return scene_open(s, how->runs);
}

int bench_cell(const char *name, const char *dir, const struct bench_how *how,
               int threads, struct bench_cell *out)
{
    struct scene s = {0};
    int rc;

    *out = (struct bench_cell){.threads = threads};
    snprintf(out->name, sizeof out->name, "%s", name);
    rc = load(dir, how, &s, out);
    if (rc == 0) {
        out->probe[0] = bench_probe_threads(threads);
        rc = measure(&s, how, out);
        out->probe[1] = bench_probe_threads(threads);
        rc = rc ? rc : measure_stages(&s, out);
        if (rc)
            fprintf(stderr, "%s: inference failed: %d %s\n", name, rc,
                    policy_last_error(s.policy));
    }
    rc = rc ? rc : load_beside(dir, &s, out);
    scene_close(&s);
    return rc;
}
