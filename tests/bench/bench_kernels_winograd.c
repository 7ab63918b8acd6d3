// Winograd by tile, one worker and two, beside the peak. Between two inferences all
// weights have left the caches, so each run takes another copy of them: tiles with many
// weights would look better than they are.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policy/kernels/winograd.h"
#include "tests/bench/bench_kernels.h"

#define COLD_FLOATS ((size_t)24 << 20) // 96 MiB, three times the third cache
#define WORKERS_MAX 2

struct shape {
    int height, width, channels;
};

// The 3x3 layers of ResNet-18 at 480x640, 224x224, 96x96.
static const struct shape shapes[] = {
    {120, 160, 64}, {60, 80, 128}, {30, 40, 256}, {15, 20, 512},
    {56, 56, 64},   {28, 28, 128}, {14, 14, 256}, {7, 7, 512},
    {24, 24, 64},   {12, 12, 128}, {6, 6, 256},   {3, 3, 512},
};

struct subject {
    struct winograd w;
    struct map x, y;
    float *weights, *scratch;
    size_t weight_floats, scratch_floats;
    int copies;
};

static double now_ms(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void pack_copies(struct subject *s, int channels)
{
    float *g = bench_values((size_t)(9 * channels * channels));

    s->weight_floats = winograd_weight_floats(s->w.kernel, s->w.m, channels, channels);
    s->copies = 1 + (int)(COLD_FLOATS / s->weight_floats);
    s->weights = bench_values(s->weight_floats * (size_t)s->copies);
    s->w.u = s->weights;
    winograd_pack(&s->w, g);
    for (int i = 1; i < s->copies; i++)
        memcpy(s->weights + (size_t)i * s->weight_floats, s->weights,
               s->weight_floats * sizeof *s->weights);
    free(g);
}

static double best_ms(struct subject *s, int workers, double seconds)
{
    struct pool *pool;
    // One worker's own time does not depend on who else runs here.
    clockid_t clock = workers == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    double best = INFINITY, start = now_ms(clock);

    if (pool_start(&pool, workers, 0) != 0)
        return best;
    for (int i = 0; i < 8 || now_ms(clock) - start < 1e3 * seconds; i++) {
        double before = now_ms(clock);
        s->w.u = s->weights + (size_t)(i % s->copies) * s->weight_floats;
        winograd_run(pool, &s->w, &s->x, &s->y, true, ACTIVATION_RELU, s->scratch,
                     s->scratch_floats);
        best = fmin(best, now_ms(clock) - before);
    }
    pool_stop(pool);
    return best;
}

static void bench_shape(const struct shape *shape, int m, enum cpu_isa isa,
                        double seconds)
{
    int c = shape->channels;
    struct subject s = {.w = {.in = c, .out = c, .m = m, .kernel = gemm_kernel_of(isa)}};
    size_t map = map_floats(shape->height, shape->width, c);
    float *x = bench_values(map), *y = bench_values(map);
    double flops = 18.0 * c * c * shape->height * shape->width;

    s.w.bias = bench_values((size_t)c);
    s.x = map_open(x, shape->height, shape->width, c);
    s.y = map_open(y, shape->height, shape->width, c);
    s.scratch_floats = winograd_scratch_floats(s.w.kernel, m, c, c);
    s.scratch = bench_values(WORKERS_MAX * s.scratch_floats);
    pack_copies(&s, c);
    printf("winograd F(%dx%d) %3dx%-3d x %-3d", m, m, shape->height, shape->width, c);
    for (int workers = 1; workers <= WORKERS_MAX; workers++) {
        double ms = best_ms(&s, workers, seconds), gflops = 1e-6 * flops / ms;
        printf("  %d: %7.3f ms %6.1f GFLOP/s %5.1f %%", workers, ms, gflops,
               100 * gflops / bench_peak(isa) / workers);
    }
    printf("\n");
    free(s.w.bias);
    free(s.weights);
    free(s.scratch);
    free(x);
    free(y);
}

void bench_winograd(enum cpu_isa isa, double seconds)
{
    printf("winograd, nominal operations; by 1 worker, by 2\n");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int m = 2; m <= 6; m += 2)
            bench_shape(&shapes[i], m, isa, seconds);
}
