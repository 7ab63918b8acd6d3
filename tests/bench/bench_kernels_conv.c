// The convolutions of a ResNet in every way that can do them, for the table in conv_plan.c, and the
// stem. Between two inferences all weights have left the caches: each run here takes another copy
// of them, or ways with many weights would look better than they are.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/kernels/conv.h"
#include "policy/kernels/stem.h"
#include "tests/bench/bench_kernels.h"

#define COLD_FLOATS ((size_t)24 << 20) // 96 MiB, three times the third-level cache

struct shape {
    int in, out, size, stride, height, width; // of the input
};

// 480x640, 224x224 and 96x96 through ResNet-18.
static const struct shape shapes[] = {
    {64, 128, 3, 2, 120, 160}, {128, 256, 3, 2, 60, 80},  {256, 512, 3, 2, 30, 40},
    {64, 128, 3, 2, 56, 56},   {128, 256, 3, 2, 28, 28},  {256, 512, 3, 2, 14, 14},
    {64, 128, 3, 2, 24, 24},   {128, 256, 3, 2, 12, 12},  {256, 512, 3, 2, 6, 6},
    {64, 128, 1, 2, 120, 160}, {128, 256, 1, 2, 60, 80},  {256, 512, 1, 2, 30, 40},
    {256, 512, 1, 2, 14, 14},  {256, 512, 1, 2, 6, 6},    {512, 512, 1, 1, 15, 20},
    {512, 512, 1, 1, 3, 3},    {256, 1024, 1, 1, 30, 40}, {64, 64, 3, 1, 120, 160},
    {64, 64, 3, 1, 56, 56},    {64, 64, 3, 1, 24, 24},    {128, 128, 3, 1, 60, 80},
    {128, 128, 3, 1, 28, 28},  {128, 128, 3, 1, 12, 12},  {256, 256, 3, 1, 30, 40},
    {256, 256, 3, 1, 14, 14},  {256, 256, 3, 1, 6, 6},    {512, 512, 3, 1, 15, 20},
    {512, 512, 3, 1, 10, 10},  {512, 512, 3, 1, 7, 7},    {512, 512, 3, 1, 5, 5},
    {512, 512, 3, 1, 3, 3},
};

// One convolution in one way.
struct run {
    struct conv c;
    struct pool *pool;
    const struct map *x, *y;
    float *weights;
    size_t weight_floats;
    int copies, turn;
    float *scratch;
    size_t scratch_floats;
};

static void run_conv(void *arg)
{
    struct run *r = arg;

    r->c.weight = r->weights + (size_t)r->turn * r->weight_floats;
    r->turn = (r->turn + 1) % r->copies;
    conv_run(r->pool, &r->c, r->x, r->y, false, ACTIVATION_RELU, r->scratch,
             r->scratch_floats);
}

static void run_init(struct run *r, struct conv c, enum conv_way way, const float *g)
{
    r->c = c;
    r->c.way = way;
    r->weight_floats = (conv_weight_floats(&r->c) + 15) / 16 * 16;
    r->copies = 1 + (int)(COLD_FLOATS / r->weight_floats);
    r->weights = bench_values(r->weight_floats * (size_t)r->copies);
    r->c.weight = r->weights;
    conv_pack(&r->c, g);
    for (int i = 1; i < r->copies; i++)
        memcpy(r->weights + (size_t)i * r->weight_floats, r->weights,
               r->weight_floats * sizeof *r->weights);
    r->scratch_floats = conv_scratch_floats(&r->c, r->x->width);
    r->scratch = bench_values(r->scratch_floats + 1);
}

static bool possible(const struct conv *c, enum conv_way way)
{
    if (way == CONV_DIRECT || way == CONV_GATHERED)
        return true;
    return c->size == 3 && c->stride == (way < CONV_WINOGRAD_HALVING ? 1 : 2);
}

static void race(const struct shape *s, struct conv c, struct run *run, enum cpu_isa isa,
                 double seconds, const float *g)
{
    struct bench_entry entry[CONV_GATHERED + 1];
    int n = 0, height = conv_extent(&c, s->height), width = conv_extent(&c, s->width);
    double flops = 2.0 * height * width * s->out * s->in * s->size * s->size;
    enum conv_way plan = conv_plan(&c, s->height, s->width);

    for (int way = CONV_DIRECT; way <= CONV_GATHERED; way++) {
        if (!possible(&c, (enum conv_way)way))
            continue;
        run_init(&run[n], c, (enum conv_way)way, g);
        entry[n] = (struct bench_entry){.run = run_conv, .arg = &run[n], .flops = flops};
        n++;
    }
    bench_race(isa, entry, n, seconds);
    for (int i = 0; i < n; i++) {
        printf(
            "conv %dx%d/%d %3dx%-3d %4d > %-4d %c%-12s %7.3f ms %7.1f GFLOP/s %5.1f %%\n",
            s->size, s->size, s->stride, s->height, s->width, s->in, s->out,
            run[i].c.way == plan ? '*' : ' ', conv_way_name(run[i].c.way),
            1e-6 * flops / entry[i].gflops, entry[i].gflops, 100.0 * entry[i].share);
        free(run[i].weights);
        free(run[i].scratch);
    }
}

static void bench_shape(const struct shape *s, struct pool *pool, enum cpu_isa isa,
                        double seconds)
{
    struct conv c = {.in = s->in,
                     .out = s->out,
                     .size = s->size,
                     .stride = s->stride,
                     .pad = s->size / 2,
                     .dilation = 1,
                     .kernel = gemm_kernel_of(isa)};
    int height = conv_extent(&c, s->height), width = conv_extent(&c, s->width);
    float *g = bench_values((size_t)(s->out * s->in * s->size * s->size));
    float *from = bench_values(map_floats(s->height, s->width, s->in));
    float *to = bench_values(map_floats(height, width, s->out));
    struct map x = map_open(from, s->height, s->width, s->in);
    struct map y = map_open(to, height, width, s->out);
    struct run run[CONV_GATHERED + 1] = {0};

    c.bias = bench_values((size_t)s->out);
    for (int i = 0; i <= CONV_GATHERED; i++) {
        run[i].pool = pool;
        run[i].x = &x;
        run[i].y = &y;
    }
    race(s, c, run, isa, seconds, g);
    free(c.bias);
    free(g);
    free(from);
    free(to);
}

// ---- the stem -----------------------------------------------------------------------------

struct stem_arg {
    struct pool *pool;
    struct stem s;
    struct stem_image image;
    struct map y;
    float *scratch;
    size_t scratch_floats;
};

static void run_stem(void *arg)
{
    struct stem_arg *a = arg;

    stem_run(a->pool, &a->s, &a->image, &a->y, a->scratch, a->scratch_floats);
}

static void bench_stem(struct pool *pool, enum cpu_isa isa, double seconds, int height,
                       int width)
{
    struct stem_arg a = {.pool = pool, .s = {.out = 64, .kernel = stem_kernel_of(isa)}};
    size_t pixels = (size_t)(height * width);
    float *values = bench_values(3 * 256 + 64 * 148), *weight, *to;
    uint8_t *rgb = calloc(pixels, 3);
    struct bench_entry e = {.run = run_stem, .arg = &a};
    int h, w;

    for (size_t i = 0; rgb && i < 3 * pixels; i++)
        rgb[i] = (uint8_t)(i * 2654435761u >> 24);
    stem_extent(height, width, &h, &w);
    a.image = (struct stem_image){.height = height, .width = width, .rgb = rgb};
    a.image.stride = 3 * (size_t)width;
    a.image.table = (const float(*)[256])values;
    a.s.bias = values + 3 * 256;
    a.s.weight = weight = bench_values(stem_weight_floats(&a.s));
    stem_pack(&a.s, values + 3 * 256 + 64);
    a.scratch_floats = stem_scratch_floats(&a.s, width);
    a.scratch = bench_values(a.scratch_floats);
    to = bench_values(map_floats(h, w, 64));
    a.y = map_open(to, h, w, 64);
    e.flops = 2.0 * 147 * 64 * ((height - 1) / 2 + 1) * ((width - 1) / 2 + 1);
    if (rgb)
        bench_race(isa, &e, 1, seconds);
    printf("stem %3dx%-3d %33.3f ms %7.1f GFLOP/s %5.1f %%\n", height, width,
           1e-6 * e.flops / e.gflops, e.gflops, 100.0 * e.share);
    free(rgb);
    free(values);
    free(weight);
    free(a.scratch);
    free(to);
}

void bench_conv(enum cpu_isa isa, double seconds)
{
    struct pool *pool;

    if (pool_start_serial(&pool, 1) != 0)
        return;
    printf("convolutions, * as conv_plan has it\n");
    bench_stem(pool, isa, seconds, 480, 640);
    bench_stem(pool, isa, seconds, 224, 224);
    bench_stem(pool, isa, seconds, 96, 96);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        bench_shape(&shapes[i], pool, isa, seconds);
    pool_stop(pool);
}
