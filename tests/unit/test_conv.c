// Convolution in every way, on every instruction set that runs here, against a naive twin in
// double: odd sizes, one pixel, maps narrower than a tile, every epilogue, any number of workers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/kernels/conv.h"
#include "tests/unit/slow.h"

#define ALIGN  64
#define MARGIN 16 // floats behind everything that is written, to be left alone

static uint64_t rng = 1;

static uint32_t next(void)
{
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(rng >> 33);
}

static int between(int low, int high)
{
    return low + (int)(next() % (uint32_t)(high - low + 1));
}

static float *floats(size_t n)
{
    float *v = aligned_alloc(ALIGN, (n + MARGIN + 15) / 16 * 16 * sizeof *v);

    assert_non_null(v);
    return v;
}

// n values in [-1, 1)
static float *values(size_t n)
{
    float *v = floats(n);

    for (size_t i = 0; i < n + MARGIN; i++)
        v[i] = (float)(next() & 0xffff) / 32768.0f - 1.0f;
    return v;
}

// What nobody may read before writing it.
static float *nans(size_t n)
{
    float *v = floats(n);

    memset(v, 0xff, (n + MARGIN) * sizeof *v);
    return v;
}

// The three small ones have threads, so that ThreadSanitizer sees who writes what; 16 do not.
static const int workers[] = {1, 2, 3, 16};
#define POOLS (sizeof workers / sizeof *workers)
static struct pool *pools[POOLS];

static int start_pools(void **unused)
{
    int rc = 0;

    (void)unused;
    for (size_t i = 0; i < POOLS && rc == 0; i++)
        rc = workers[i] < 4 ? pool_start(&pools[i], workers[i], 0)
                            : pool_start_serial(&pools[i], workers[i]);
    return rc;
}

static int stop_pools(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < POOLS; i++)
        pool_stop(pools[i]);
    return 0;
}

// ---- one convolution and its twin -----------------------------------------------------------

struct scene {
    struct conv c;
    int h, w, oh, ow;
    bool add, relu;
    float *g;                // (out, size, size, in)
    float *x_memory, *start; // the input; what lies in y before
    size_t y_floats;
    struct map x;
};

static void fill(const struct map *m, bool nan_somewhere)
{
    for (int y = 0; y < m->height; y++)
        for (int i = 0; i < m->width * m->channels; i++)
            map_at(m, y, 0)[i] = (float)(next() & 0xffff) / 32768.0f - 1.0f;
    if (nan_somewhere)
        map_at(m, between(0, m->height - 1), between(0, m->width - 1))[0] = NAN;
}

static void scene_new(struct scene *s, struct conv c, int h, int w, bool nan_somewhere)
{
    size_t n = map_floats(h, w, c.in);

    *s = (struct scene){.c = c, .h = h, .w = w, .add = next() & 1, .relu = next() & 1};
    s->oh = (h + 2 * c.pad - c.dilation * (c.size - 1) - 1) / c.stride + 1;
    s->ow = (w + 2 * c.pad - c.dilation * (c.size - 1) - 1) / c.stride + 1;
    assert_int_equal(conv_extent(&c, h), s->oh);
    assert_int_equal(conv_extent(&c, w), s->ow);
    s->g = values((size_t)(c.size * c.size * c.in * c.out));
    s->c.bias = values((size_t)c.out);
    s->x_memory = values(n);
    s->x = map_open(s->x_memory, h, w, c.in);
    fill(&s->x, nan_somewhere);
    s->y_floats = map_floats(s->oh, s->ow, c.out);
    s->start = values(s->y_floats);
    struct map y = map_open(s->start, s->oh, s->ow, c.out);
    fill(&y, false);
}

static void scene_free(struct scene *s)
{
    free(s->g);
    free(s->c.bias);
    free(s->x_memory);
    free(s->start);
}

static double twin(const struct scene *s, int oy, int ox, int o)
{
    const struct conv *c = &s->c;
    double sum = (double)c->bias[o];

    for (int a = 0; a < c->size; a++)
        for (int b = 0; b < c->size; b++) {
            int y = oy * c->stride - c->pad + a * c->dilation;
            int x = ox * c->stride - c->pad + b * c->dilation;

            if (y < 0 || y >= s->h || x < 0 || x >= s->w)
                continue;
            for (int i = 0; i < c->in; i++)
                sum += (double)map_at(&s->x, y, x)[i] *
                       (double)s->g[((o * c->size + a) * c->size + b) * c->in + i];
        }
    return sum;
}

// What the convolution makes of `start` in this pool: map memory, the caller's to free.
static float *run(const struct scene *s, enum conv_way way, struct pool *pool)
{
    struct conv c = s->c;
    size_t bytes = (s->y_floats + MARGIN) * sizeof(float);
    float *memory = floats(s->y_floats);

    c.way = way;
    size_t scratch = conv_scratch_floats(&c, s->w), weights = conv_weight_floats(&c);
    size_t all = scratch * (size_t)pool_threads(pool);
    float *tiles = nans(all);
    c.weight = floats(weights);
    memset(c.weight, 0, weights * sizeof *c.weight);
    conv_pack(&c, s->g);
    memcpy(memory, s->start, bytes);
    struct map y = map_open(memory, s->oh, s->ow, c.out);
    conv_run(pool, &c, &s->x, &y, s->add, s->relu ? ACTIVATION_RELU : ACTIVATION_NONE,
             tiles, scratch);
    for (size_t i = 0; i < MARGIN; i++)
        assert_true(isnan(tiles[all + i]));
    free(tiles);
    free(c.weight);
    return memory;
}

// Inside it is the twin's, around it what was there.
static void compare(const struct scene *s, enum conv_way way, float *memory)
{
    float *start = floats(s->y_floats);
    struct map y = map_open(memory, s->oh, s->ow, s->c.out);
    double tolerance = 2e-6 * (2.0 + s->c.size * s->c.size * s->c.in / 8.0);
    bool product =
        way == CONV_DIRECT || way == CONV_GATHERED; // Winograd has a test of its own

    memcpy(start, s->start, s->y_floats * sizeof *start);
    struct map before = map_open(start, s->oh, s->ow, s->c.out);
    for (int p = 0; p < s->oh * s->ow; p++)
        for (int o = 0; o < s->c.out; o++) {
            double want = twin(s, p / s->ow, p % s->ow, o);
            double got = (double)map_at(&y, p / s->ow, p % s->ow)[o];

            want += s->add ? (double)map_at(&before, p / s->ow, p % s->ow)[o] : 0.0;
            want = s->relu && want < 0.0 ? 0.0 : want;
            if (isnan(want) ? !isnan(got)
                            : !(fabs(got - want) <= (product ? 1.0 : 20.0) * tolerance))
                fail_msg(
                    "%s %s: %dx%d, %d to %d, kernel %d, stride %d, pad %d, dilation %d: "
                    "pixel %d channel %d is %.9g, not %.9g",
                    cpu_isa_name(s->c.kernel->isa), conv_way_name(way), s->h, s->w,
                    s->c.in, s->c.out, s->c.size, s->c.stride, s->c.pad, s->c.dilation, p,
                    o, got, want);
        }
    free(start);
}

static void check_way(const struct scene *s, enum conv_way way, bool nan_somewhere)
{
    size_t bytes = (s->y_floats + MARGIN) * sizeof(float);
    float *first = NULL;

    for (size_t i = 0; i < POOLS; i++) {
        float *y = run(s, way, pools[i]), *room = floats(s->y_floats);

        // The room is as it was: clearing it anew changes nothing.
        memcpy(room, y, bytes);
        map_open(room, s->oh, s->ow, s->c.out);
        assert_memory_equal(room, y, bytes);
        free(room);
        if (!first) {
            first = y;
            continue;
        }
        if (!nan_somewhere)
            assert_memory_equal(first, y,
                                bytes); // the same bits for any number of workers
        free(y);
    }
    compare(s, way, first);
    free(first);
}

static bool can_winograd(const struct conv *c)
{
    return c->size == 3 && c->pad == 1 && c->dilation == 1 && c->in % 4 == 0 &&
           c->out % 4 == 0;
}

static void check(struct conv c, int h, int w, bool nan_somewhere)
{
    struct scene s;

    scene_new(&s, c, h, w, nan_somewhere);
    if (c.dilation == 1 && c.pad <= MAP_BORDER)
        check_way(&s, CONV_DIRECT, nan_somewhere);
    check_way(&s, CONV_GATHERED, nan_somewhere);
    if (can_winograd(&c) && !nan_somewhere && c.stride == 2)
        check_way(&s, CONV_WINOGRAD_HALVING, false);
    if (can_winograd(&c) && !nan_somewhere && c.stride == 1)
        for (int way = CONV_WINOGRAD_2; way <= CONV_WINOGRAD_6; way++)
            check_way(&s, (enum conv_way)way, nan_somewhere);
    if (!nan_somewhere) // a tile of Winograd spreads it
        check_way(&s, conv_plan(&c, h, w), false);
    scene_free(&s);
}

// ---- tests ----------------------------------------------------------------------------------

static const struct gemm_kernel *kernel_at(int isa)
{
    return cpu_runs((enum cpu_isa)isa) ? gemm_kernel_of((enum cpu_isa)isa) : NULL;
}

// The planned way for some shapes needs channels in fours.
static struct conv random_conv(const struct gemm_kernel *k, int i)
{
    static const int sizes[] = {1, 3, 3, 5};
    struct conv c = {.size = sizes[i % 4], .kernel = k};

    c.in = i % 4 == 1 ? 4 * between(1, 5) : between(1, 9);
    c.out = i % 4 == 1 ? 4 * between(1, 25) : between(1, 90);
    c.stride = i % 4 == 1 ? 1 + i / 4 % 2 : between(1, 2);
    c.dilation = i % 4 == 2 ? between(1, 2) : 1;
    c.pad = i % 5 == 4 ? 0 : c.size / 2 * c.dilation;
    if (c.size == 3 && i % 4 == 2 && c.stride == 1 && c.dilation == 1 && c.pad == 1)
        c.stride = 2;
    return c;
}

static void test_random(void **unused)
{
    (void)unused;
    for (int isa = 0; isa < CPU_ISAS; isa++) {
        const struct gemm_kernel *k = kernel_at(isa);

        for (int i = 0; k && i < REPEATS(60, 24); i++) {
            struct conv c = random_conv(k, i);
            int least = c.dilation * (c.size - 1) + 1 - 2 * c.pad; // one output pixel

            least = least < 1 ? 1 : least;
            check(c, between(least, 15), between(least, 27), i % 10 == 7);
        }
    }
}

static void test_shapes(void **unused)
{
    (void)unused;
    for (int isa = 0; isa < CPU_ISAS; isa++) {
        const struct gemm_kernel *k = kernel_at(isa);

        if (!k)
            continue;
        check((struct conv){.in = 4,
                            .out = 12,
                            .size = 3,
                            .stride = 1,
                            .pad = 1,
                            .dilation = 1,
                            .kernel = k},
              1, 1, false);
        check((struct conv){.in = 7,
                            .out = 3,
                            .size = 1,
                            .stride = 2,
                            .pad = 0,
                            .dilation = 1,
                            .kernel = k},
              1, 1, false);
        check((struct conv){.in = 3,
                            .out = 64,
                            .size = 7,
                            .stride = 2,
                            .pad = 3,
                            .dilation = 1,
                            .kernel = k},
              19, 12, false);
        check((struct conv){.in = 5,
                            .out = 7,
                            .size = 3,
                            .stride = 1,
                            .pad = 2,
                            .dilation = 2,
                            .kernel = k},
              1, 2, false); // all of it padding but the middle
        // several tiles of patches; a panel that does not fit beside another
        check((struct conv){.in = 300,
                            .out = 70,
                            .size = 3,
                            .stride = 2,
                            .pad = 1,
                            .dilation = 1,
                            .kernel = k},
              21, 40, false);
    }
}

// A NaN in the input is one in every output that it reaches, through ReLU and sums as well.
static void test_nan(void **unused)
{
    (void)unused;
    for (int isa = 0; isa < CPU_ISAS; isa++) {
        const struct gemm_kernel *k = kernel_at(isa);

        for (int i = 0; k && i < 12; i++)
            check(random_conv(k, i), between(5, 9), between(5, 9), true);
    }
}

// What the table says, for squares of this side: changing it changes a policy's bits, so it is not
// changed by accident.
static void expect(enum cpu_isa isa, struct conv c, int side, enum conv_way way)
{
    c.kernel = gemm_kernel_of(isa);
    if (c.kernel && conv_plan(&c, side, side) != way)
        fail_msg("%s: %s for %dx%d", cpu_isa_name(isa),
                 conv_way_name(conv_plan(&c, side, side)), side, side);
}

static void test_plan(void **unused)
{
    struct conv c = {
        .in = 64, .out = 64, .size = 3, .stride = 1, .pad = 1, .dilation = 1};
    struct conv odd = c, two = c, odd_two = c, one = c, dilated = c;

    (void)unused;
    odd.in = 6;
    odd_two.in = 6;
    two.stride = odd_two.stride = one.stride = 2;
    one.size = 1;
    one.pad = 0;
    dilated.pad = dilated.dilation = 2;
    for (int isa = 0; isa < CPU_ISAS; isa++) {
        expect((enum cpu_isa)isa, c, 30, CONV_WINOGRAD_4);
        expect((enum cpu_isa)isa, c, 20, CONV_WINOGRAD_4);
        expect((enum cpu_isa)isa, odd, 30, CONV_DIRECT);
        expect((enum cpu_isa)isa, two, 56, CONV_WINOGRAD_HALVING);
        expect((enum cpu_isa)isa, two, 28, CONV_WINOGRAD_HALVING);
        expect((enum cpu_isa)isa, odd_two, 56, CONV_DIRECT);
        expect((enum cpu_isa)isa, one, 56, CONV_DIRECT);
        expect((enum cpu_isa)isa, dilated, 30, CONV_GATHERED);
    }
    expect(CPU_GENERIC, c, 9, CONV_WINOGRAD_4);
    expect(CPU_GENERIC, c, 5, CONV_WINOGRAD_2);
    expect(CPU_GENERIC, c, 3, CONV_DIRECT);
    expect(CPU_GENERIC, two, 24, CONV_WINOGRAD_HALVING);
    expect(CPU_GENERIC, two, 14, CONV_DIRECT);
    expect(CPU_AVX2, c, 14, CONV_WINOGRAD_4);
    expect(CPU_AVX2, c, 7, CONV_WINOGRAD_2);
    expect(CPU_AVX2, c, 3, CONV_GATHERED);
    expect(CPU_AVX2, two, 24, CONV_WINOGRAD_HALVING);
    expect(CPU_AVX2, two, 14, CONV_GATHERED);
    expect(CPU_AVX512, c, 14, CONV_WINOGRAD_2);
    expect(CPU_AVX512, c, 6, CONV_WINOGRAD_2);
    expect(CPU_AVX512, c, 5, CONV_GATHERED);
    expect(CPU_AVX512, two, 24, CONV_GATHERED);
    expect(CPU_AVX512, one, 28, CONV_GATHERED);
    for (int way = CONV_DIRECT; way <= CONV_GATHERED; way++)
        assert_non_null(conv_way_name((enum conv_way)way));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_plan),
    };
    return cmocka_run_group_tests(tests, start_pools, stop_pools);
}
