// Samples, and the load: one thread per core, SCHED_OTHER, either spinning or computing with a
// policy of its own. A policy per thread and one compute thread each: no core ever waits.
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/rt.h"
#include "policy/policy.h"
#include "tests/bench/bench_loop.h"
#include "tests/unit/act_fixture.h"

#define MOST    64 // threads
#define SHIPPED "config/policies/reach"

const char *const load_name[LOADS] = {"idle", "inference", "hogs"};

// ---- samples ---------------------------------------------------------------------------------

bool samples_make(struct samples *s, size_t room)
{
    *s = (struct samples){calloc(room ? room : 1, sizeof *s->v), 0, room};
    return s->v != NULL;
}

void samples_free(struct samples *s)
{
    free(s->v);
    *s = (struct samples){0};
}

void samples_add(struct samples *s, ns_t v)
{
    if (s->n < s->room)
        s->v[s->n++] = v;
}

void samples_join(struct samples *to, const struct samples *from)
{
    for (size_t i = 0; i < from->n; i++)
        samples_add(to, from->v[i]);
}

static int by_value(const void *a, const void *b)
{
    ns_t x = *(const ns_t *)a, y = *(const ns_t *)b;

    return (x > y) - (x < y);
}

void samples_sort(struct samples *s)
{
    qsort(s->v, s->n, sizeof *s->v, by_value);
}

ns_t samples_at(const struct samples *s, double part)
{
    size_t i = (size_t)(part * (double)s->n);

    return s->n == 0 ? 0 : s->v[i < s->n ? i : s->n - 1];
}

double bench_us(ns_t v)
{
    return (double)v / (double)NS_PER_US;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return n == 0 ? 0 : n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

// ---- load ------------------------------------------------------------------------------------

struct worker {
    pthread_t thread;
    struct policy *policy; // NULL = a hog
    struct policy_observation obs;
    struct policy_image image[POLICY_MAX_CAMERAS];
    float *state, *actions;
    uint8_t *pixels;
};

static struct worker worker[MOST];
static int n_workers, n_running;
static _Atomic bool stop;
static _Atomic long inferences, inference_us;

static void *hog(void *arg)
{
    volatile uint64_t x = 0;

    (void)arg;
    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        x = x + 1;
    return NULL;
}

static void *think(void *arg)
{
    struct worker *w = arg;

    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        ns_t start = clock_now_ns();

        if (policy_infer(w->policy, &w->obs, w->actions, NULL) != 0)
            break;
        inferences++;
        inference_us += (clock_now_ns() - start) / NS_PER_US;
    }
    return NULL;
}

// A picture of noise for every camera, all joints at 0.
static int observe(struct worker *w)
{
    const struct policy_info *info = policy_describe(w->policy);
    size_t most = 0;

    for (int i = 0; i < info->n_cameras; i++) {
        size_t n = 3 * (size_t)info->camera[i].width * (size_t)info->camera[i].height;
        most = n > most ? n : most;
    }
    w->state = calloc((size_t)(info->state_dim + info->env_dim) + 1, sizeof(float));
    w->actions =
        calloc((size_t)info->chunk_size * (size_t)info->action_dim, sizeof(float));
    w->pixels = malloc(most + 1);
    if (!w->state || !w->actions || !w->pixels)
        return -ENOMEM;
    for (size_t i = 0; i < most; i++)
        w->pixels[i] = (uint8_t)act_fixture_mix(i);
    for (int i = 0; i < info->n_cameras; i++)
        w->image[i] = (struct policy_image){.rgb = w->pixels,
                                            .width = info->camera[i].width,
                                            .height = info->camera[i].height,
                                            .stride = 3 * info->camera[i].width};
    w->obs = (struct policy_observation){w->state, w->state, w->image};
    return 0;
}

static int load_all(const char *dir)
{
    const struct policy_options opt = {.threads = 1};
    struct policy_error err = {{0}};
    int rc = 0;

    for (int i = 0; i < n_workers && rc == 0; i++) {
        rc = policy_load(&worker[i].policy, dir, &opt, &err);
        if (rc)
            fprintf(stderr, "bench_loop: %s\n", err.text);
        else
            rc = observe(&worker[i]);
    }
    return rc;
}

int load_prepare(bool small)
{
    struct act_fixture f = act_fixture_tiny();
    char dir[256];
    int rc;

    n_workers = rt_cpu_count() < MOST ? rt_cpu_count() : MOST;
    if (small)
        return load_all(SHIPPED);
    f.dim_model = 512; // LeRobot's defaults for ACT
    f.dim_feedforward = 3200;
    f.n_heads = 8;
    f.n_encoder_layers = 4;
    f.chunk_size = f.n_action_steps = 100;
    f.camera[0] = (struct act_fixture_camera){"observation.images.one", 224, 224};
    rc = act_fixture_mkdir(dir);
    if (rc)
        return rc;
    rc = act_fixture_write(dir, &f);
    if (rc == 0)
        rc = load_all(dir);
    act_fixture_remove(dir);
    return rc;
}

int load_start(enum bench_load l)
{
    int rc = 0;

    stop = false;
    inferences = inference_us = 0;
    for (n_running = 0; n_running < n_workers && l != LOAD_IDLE; n_running++) {
        struct worker *w = &worker[n_running];

        rc = rt_thread_create(&w->thread, "load", RT_CLASS_INFER, 0,
                              l == LOAD_HOGS ? hog : think, w);
        if (rc)
            break;
    }
    return rc;
}

void load_stop(void)
{
    stop = true;
    for (int i = 0; i < n_running; i++)
        pthread_join(worker[i].thread, NULL);
    n_running = 0;
}

double load_inference_ms(void)
{
    return inferences ? 1e-3 * (double)inference_us / (double)inferences : 0;
}

void load_forget(void)
{
    for (int i = 0; i < n_workers; i++) {
        policy_free(worker[i].policy);
        free(worker[i].state);
        free(worker[i].actions);
        free(worker[i].pixels);
    }
}
