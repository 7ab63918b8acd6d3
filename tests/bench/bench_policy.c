// bench_policy: how long one inference takes. Without arguments: the standard cases with
// random weights, 1 and 2 threads. With a checkpoint directory: that policy.
//
//   bench_policy [RUNS [DIR]]
//
// `cpu` is the processor time of all threads for the best run: on a busy machine it says
// what the work costs when the wall clock no longer does. Under it, where the time of loading
// went: alone, and once more beside that policy (a swap's share, without its trials).
#include <math.h>
#include <time.h>

#include "policy/policy.h"
#include "tests/unit/act_fixture.h"

struct bench_case {
    const char *name;
    int cameras, height, width, dim, feedforward, chunk;
};

static const struct bench_case cases[] = {
    {"a: 1 camera 480x640", 1, 480, 640, 512, 3200, 100},
    {"b: 2 cameras 480x640", 2, 480, 640, 512, 3200, 100},
    {"d: 1 camera 224x224", 1, 224, 224, 512, 3200, 100},
    {"e: 96x96, dim 256", 1, 96, 96, 256, 1024, 50},
};

static double ms_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static bool make_frames(const struct policy_info *info, struct policy_image *image)
{
    for (int i = 0; i < info->n_cameras; i++) {
        int w = info->camera[i].width, h = info->camera[i].height;
        size_t n = 3 * (size_t)w * (size_t)h;
        uint8_t *rgb = malloc(n);
        if (!rgb)
            return false;
        for (size_t k = 0; k < n; k++)
            rgb[k] = (uint8_t)act_fixture_mix(k);
        image[i] = (struct policy_image){rgb, w, h, 3 * w};
    }
    return true;
}

// `runs` inferences after one that is not counted.
static int measure(struct policy *p, const struct policy_observation *obs, int runs,
                   const char *name)
{
    const struct policy_info *info = policy_describe(p);
    size_t n = (size_t)info->chunk_size * (size_t)info->action_dim;
    float *actions = malloc(n * sizeof *actions);
    double *wall = calloc((size_t)runs, sizeof *wall), cpu = INFINITY;
    int rc = actions && wall ? policy_infer(p, obs, actions, NULL) : -ENOMEM;
    for (int i = 0; i < runs && rc == 0; i++) {
        double wall0 = ms_of(CLOCK_MONOTONIC), cpu0 = ms_of(CLOCK_PROCESS_CPUTIME_ID);
        rc = policy_infer(p, obs, actions, NULL);
        wall[i] = ms_of(CLOCK_MONOTONIC) - wall0;
        cpu = fmin(cpu, ms_of(CLOCK_PROCESS_CPUTIME_ID) - cpu0);
    }
    if (rc == 0) {
        qsort(wall, (size_t)runs, sizeof *wall, compare);
        printf("%-22s %2d thread(s)  median %8.1f ms  best %8.1f ms  cpu %8.1f ms  "
               "weights %4zu MiB  work %4zu MiB  %s\n",
               name, info->threads, wall[runs / 2], wall[0], cpu,
               info->weight_bytes >> 20, info->activation_bytes >> 20, info->blas_core);
    }
    free(wall);
    free(actions);
    return rc;
}

static void print_load(const char *how, const struct policy *p, double cpu_ms)
{
    const struct policy_load_ms *t = &policy_describe(p)->load_ms;
    printf("    load %-7s %7.1f ms, cpu %7.1f: open %5.1f  memory %6.1f  read and hash "
           "%6.1f  prepare %5.1f  trial %6.1f\n",
           how, t->total, cpu_ms, t->open, t->memory, t->read, t->prepare, t->trial);
}

static int load_beside(const char *dir, struct policy *first, struct policy_error *err)
{
    struct policy *p = NULL;
    struct policy_options opt = {.beside = first};
    double cpu0 = ms_of(CLOCK_PROCESS_CPUTIME_ID);
    int rc = policy_load(&p, dir, &opt, err);
    if (rc == 0)
        print_load("beside", p, ms_of(CLOCK_PROCESS_CPUTIME_ID) - cpu0);
    policy_free(p);
    return rc;
}

static int bench(const char *name, const char *dir, int threads, int runs)
{
    struct policy *p = NULL;
    struct policy_error err;
    struct policy_options opt = {.threads = threads};
    struct policy_image image[POLICY_MAX_CAMERAS] = {{0}};
    double start = ms_of(CLOCK_PROCESS_CPUTIME_ID);
    int rc = policy_load(&p, dir, &opt, &err);
    double cpu_ms = ms_of(CLOCK_PROCESS_CPUTIME_ID) - start;
    if (rc) {
        fprintf(stderr, "%s: %s\n", dir, err.text);
        return rc;
    }
    const struct policy_info *info = policy_describe(p);
    float *state = calloc((size_t)(info->state_dim + info->env_dim) + 1, sizeof *state);
    struct policy_observation obs = {state, state, image};
    rc = state && make_frames(info, image) ? measure(p, &obs, runs, name) : -ENOMEM;
    if (rc)
        fprintf(stderr, "%s: inference failed: %d %s\n", name, rc, policy_last_error(p));
    print_load("alone", p, cpu_ms);
    if (rc == 0 && (rc = load_beside(dir, p, &err)))
        fprintf(stderr, "%s: %s\n", dir, err.text);
    for (int i = 0; i < info->n_cameras; i++)
        free((void *)(uintptr_t)image[i].rgb);
    free(state);
    policy_free(p);
    return rc;
}

static int bench_case(const struct bench_case *c, int runs)
{
    char dir[256];
    struct act_fixture f = act_fixture_tiny();
    f.dim_model = c->dim;
    f.dim_feedforward = c->feedforward;
    f.n_heads = 8;
    f.n_encoder_layers = 4;
    f.chunk_size = f.n_action_steps = c->chunk;
    f.n_cameras = c->cameras;
    f.camera[0] =
        (struct act_fixture_camera){"observation.images.one", c->height, c->width};
    f.camera[1] =
        (struct act_fixture_camera){"observation.images.two", c->height, c->width};
    int rc = act_fixture_mkdir(dir);
    if (rc)
        return rc;
    rc = act_fixture_write(dir, &f);
    for (int threads = 1; threads <= 2 && rc == 0; threads++)
        rc = bench(c->name, dir, threads, runs);
    act_fixture_remove(dir);
    return rc;
}

int main(int argc, char **argv)
{
    int runs = argc > 1 ? atoi(argv[1]) : 5, rc = 0;
    if (runs < 1 || runs > 100000) {
        fprintf(stderr, "usage: bench_policy [RUNS [DIR]]\n");
        return 2;
    }
    if (argc > 2)
        for (int threads = 1; threads <= 2 && rc == 0; threads++)
            rc = bench("checkpoint", argv[2], threads, runs);
    else
        for (size_t i = 0; i < sizeof cases / sizeof *cases && rc == 0; i++)
            rc = bench_case(&cases[i], runs);
    return rc ? 1 : 0;
}
