// infer_dir: one inference of a checkpoint directory, compared with what LeRobot computed for
// it. tests/parity/run.py compiles and runs it; the directory holds, beside the checkpoint,
// image0.rgb, image1.rgb, ... (uint8, H W 3, in the order of config.json), state.f32, env.f32 if
// there is an environment state, expected.f32 (normalised actions, then actions) and range.f32
// (the range of each action).
//
//   infer_dir DIR THREADS      prints: normalised-difference range-difference milliseconds
//                              golden-error (of golden.safetensors, -1 without one)
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "policy/policy.h"

static void *read_file(const char *dir, const char *name, size_t bytes)
{
    char path[1024];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st) || (size_t)st.st_size != bytes) {
        fprintf(stderr, "infer_dir: %s: missing, or not %zu bytes\n", path, bytes);
        exit(1);
    }
    void *data = malloc(bytes);
    if (!data || fread(data, 1, bytes, f) != bytes)
        exit(1);
    fclose(f);
    return data;
}

static double ms_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static struct policy_observation observation(const struct policy_info *info,
                                             const char *dir)
{
    static struct policy_image image[POLICY_MAX_CAMERAS];
    struct policy_observation obs = {.image = image};

    for (int i = 0; i < info->n_cameras; i++) {
        int h = info->camera[i].height, w = info->camera[i].width;
        char name[32];

        snprintf(name, sizeof(name), "image%d.rgb", i);
        image[i].rgb = read_file(dir, name, (size_t)h * (size_t)w * 3);
        image[i].width = w;
        image[i].height = h;
        image[i].stride = 3 * w;
    }
    obs.state = read_file(dir, "state.f32", (size_t)info->state_dim * sizeof(float));
    if (info->env_dim)
        obs.env = read_file(dir, "env.f32", (size_t)info->env_dim * sizeof(float));
    return obs;
}

// The best of three runs: the first also pays for page faults.
static double infer(struct policy *p, const struct policy_observation *obs,
                    float *actions, float *normalized)
{
    double best = INFINITY;

    for (int i = 0; i < 3; i++) {
        double t = ms_now();

        if (policy_infer(p, obs, actions, normalized)) {
            fprintf(stderr, "infer_dir: %s\n", policy_last_error(p));
            exit(1);
        }
        best = fmin(best, ms_now() - t);
    }
    return best;
}

int main(int argc, char **argv)
{
    struct policy_options opt = {.threads = argc > 2 ? atoi(argv[2]) : 1};
    struct policy_error err = {{0}};
    struct policy *p;

    if (argc < 2 || policy_load(&p, argv[1], &opt, &err)) {
        fprintf(stderr, "infer_dir: %s\n",
                argc < 2 ? "infer_dir DIR [THREADS]" : err.text);
        return 1;
    }
    const struct policy_info *info = policy_describe(p);
    size_t cols = (size_t)info->action_dim, n = (size_t)info->chunk_size * cols;
    struct policy_observation obs = observation(info, argv[1]);
    const float *want = read_file(argv[1], "expected.f32", 2 * n * sizeof(float));
    const float *range = read_file(argv[1], "range.f32", cols * sizeof(float));
    float *normalized = calloc(2 * n, sizeof(float)), *actions = normalized + n;
    double ms = infer(p, &obs, actions, normalized), a = 0, b = 0;

    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)normalized[i] - (double)want[i]);
        double e =
            fabs((double)actions[i] - (double)want[n + i]) / (double)range[i % cols];

        a = isnan(d) ? INFINITY : fmax(a, d);
        b = isnan(e) ? INFINITY : fmax(b, e);
    }
    printf("%.3g %.3g %.1f %.3g\n", a, b, ms, info->golden_error);
    policy_free(p);
    return 0;
}
