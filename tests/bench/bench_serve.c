// bench_serve: a policy that infers when it is told to, so that somebody else can take turns with
// other engines and measure all of them in the same minute (tests/bench/peers.py).
//
//   bench_serve DIR THREADS CORES [KERNELS [PRECISION]]
//
// CORES: as many as THREADS, "0,1"; the caller's first. KERNELS: "best" or a name of kernels.h; PRECISION:
// precision.h's.
// DIR holds a checkpoint, image0.rgb … (uint8, H W 3) and state.f32, in the checkpoint's units.
//
//   prints once      ready {facts as JSON}
//   run N            ms WALL/CPU WALL/CPU …     N inferences; CPU: of all threads
//   actions FILE     actions                    the last normalised actions, float32
//   end of input     ends
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policy/kernels/kernels.h"
#include "policy/policy.h"

struct serve {
    struct policy *policy;
    struct policy_observation obs;
    struct policy_image image[POLICY_MAX_CAMERAS];
    float *actions, *normalized;
    size_t n; // values in each
};

static double ms_of(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void *read_file(const char *dir, const char *name, size_t bytes)
{
    char path[1024];
    void *data = malloc(bytes);
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "rb");
    if (!f || !data || fread(data, 1, bytes, f) != bytes) {
        fprintf(stderr, "bench_serve: %s: missing, or less than %zu bytes\n", path,
                bytes);
        free(data);
        data = NULL;
    }
    if (f)
        fclose(f);
    return data;
}

static int read_inputs(struct serve *s, const char *dir)
{
    const struct policy_info *info = policy_describe(s->policy);

    for (int i = 0; i < info->n_cameras; i++) {
        int h = info->camera[i].height, w = info->camera[i].width;
        char name[32];
        snprintf(name, sizeof name, "image%d.rgb", i);
        void *rgb = read_file(dir, name, 3 * (size_t)h * (size_t)w);
        if (!rgb)
            return -ENOENT;
        s->image[i] =
            (struct policy_image){.rgb = rgb, .width = w, .height = h, .stride = 3 * w};
    }
    s->obs.image = s->image;
    s->obs.state = read_file(dir, "state.f32", (size_t)info->state_dim * sizeof(float));
    s->n = (size_t)info->chunk_size * (size_t)info->action_dim;
    s->actions = calloc(2 * s->n, sizeof *s->actions);
    s->normalized = s->actions + s->n;
    return !s->obs.state ? -ENOENT : s->actions ? 0 : -ENOMEM;
}

// The caller stays on the first core, and the pool keeps each of its threads on one of the others: as
// the peers are set.
static int read_cores(const char *cores, int threads, uint64_t *mask, int *first)
{
    const char *at = cores;

    *mask = 0;
    for (int i = 0; i < threads; i++) {
        char *end;
        long core = strtol(at, &end, 10);
        if (end == at || core < 0 || core > 63)
            return -EINVAL;
        at = *end == ',' ? end + 1 : end;
        *mask |= UINT64_C(1) << core;
        *first = i == 0 ? (int)core : *first;
    }
    return 0;
}

// After the pool has been started, which looks where its starter may run.
static int stay_on(int core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    return sched_setaffinity(0, sizeof set, &set) ? -errno : 0;
}

static int run(struct serve *s, long n)
{
    printf("ms");
    for (long i = 0; i < n; i++) {
        double wall = ms_of(CLOCK_MONOTONIC), cpu = ms_of(CLOCK_PROCESS_CPUTIME_ID);
        int rc = policy_infer(s->policy, &s->obs, s->actions, s->normalized);
        cpu = ms_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        wall = ms_of(CLOCK_MONOTONIC) - wall;
        if (rc) {
            fprintf(stderr, "bench_serve: %s\n", policy_last_error(s->policy));
            return rc;
        }
        printf(" %.4f/%.4f", wall, cpu);
    }
    printf("\n");
    return 0;
}

static int write_actions(const struct serve *s, const char *path)
{
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(s->normalized, sizeof(float), s->n, f) == s->n;

    if (f)
        good = fclose(f) == 0 && good;
    if (!good) {
        fprintf(stderr, "bench_serve: %s: not written\n", path);
        return -EIO;
    }
    printf("actions\n");
    return 0;
}

static int serve(struct serve *s)
{
    char line[1100];
    int rc = 0;

    while (rc == 0 && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "run ", 4) == 0)
            rc = run(s, strtol(line + 4, NULL, 10));
        else if (strncmp(line, "actions ", 8) == 0)
            rc = write_actions(s, line + 8);
        else
            rc = -EINVAL;
        fflush(stdout);
    }
    return rc;
}

static void print_ready(const struct policy_info *info, enum precision precision)
{
    printf("ready {\"isa\": \"%s\", \"precision\": \"%s\", \"threads\": %d, \"load_ms\": "
           "%.0f, \"weights_mib\": %zu, \"work_mib\": %zu}\n",
           kernels_name(precision), precision_name(precision), info->threads,
           info->load_ms.total, info->weight_bytes >> 20, info->activation_bytes >> 20);
    fflush(stdout);
}

static int choose_isa(const char *name)
{
    return kernels_choose(strcmp(name, "best") == 0 ? NULL : name);
}

static int precision_of(const char *name, enum precision *out)
{
    for (*out = PRECISION_FLOAT32; *out <= PRECISION_INT8; (*out)++)
        if (strcmp(name, precision_name(*out)) == 0)
            return 0;
    return -EINVAL;
}

static int read_options(int argc, char **argv, struct policy_options *opt, int *first)
{
    opt->threads = argc >= 4 && argc <= 6 ? atoi(argv[2]) : 0;
    if (opt->threads < 1 || read_cores(argv[3], opt->threads, &opt->cpu_mask, first))
        return -EINVAL;
    if (argc > 4 && choose_isa(argv[4]))
        return -EINVAL;
    return argc > 5 ? precision_of(argv[5], &opt->precision) : 0;
}

int main(int argc, char **argv)
{
    struct serve s = {0};
    struct policy_options opt = {0};
    struct policy_error err = {{0}};
    int rc, first = 0;

    if (read_options(argc, argv, &opt, &first)) {
        fprintf(stderr,
                "usage: bench_serve DIR THREADS CORES [KERNELS [PRECISION]]   (0,1 avx2 "
                "int8; kernels that run here)\n");
        return 2;
    }
    if ((rc = policy_load(&s.policy, argv[1], &opt, &err)))
        fprintf(stderr, "bench_serve: %s\n", err.text);
    else if ((rc = stay_on(first)) == 0 && (rc = read_inputs(&s, argv[1])) == 0) {
        print_ready(policy_describe(s.policy), opt.precision);
        rc = serve(&s);
    }
    policy_free(s.policy);
    for (int i = 0; i < POLICY_MAX_CAMERAS; i++)
        free((void *)(uintptr_t)s.image[i].rgb);
    free((void *)(uintptr_t)s.obs.state);
    free(s.actions);
    return rc ? 1 : 0;
}
