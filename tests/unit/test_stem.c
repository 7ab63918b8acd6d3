// The stem against a naive twin in double: normalise, pad, convolve, ReLU, pool, each over the
// whole image; sizes from one pixel up, both kinds of input, every instruction set that runs here.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policy/kernels/stem.h"

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

static float *values(size_t n)
{
    float *v = aligned_alloc(64, (n + 15) / 16 * 16 * sizeof *v);

    assert_non_null(v);
    for (size_t i = 0; i < (n + 15) / 16 * 16; i++)
        v[i] = (float)(next() & 0xffff) / 32768.0f - 1.0f;
    return v;
}

// ---- an image, as bytes and as planes ---------------------------------------------------------

struct scene {
    struct stem s;
    int h, w, ph, pw; // of the image; after the pooling
    float *g;         // (out, 7, 7, 3)
    uint8_t *rgb;
    size_t stride;
    float table[3][256];
    float *planes; // the same values
};

static void scene_new(struct scene *s, const struct stem_kernel *k, int h, int w, int out)
{
    *s = (struct scene){.s = {.out = out, .kernel = k}, .h = h, .w = w};
    stem_extent(h, w, &s->ph, &s->pw);
    assert_int_equal(s->ph, ((h - 1) / 2 + 1 - 1) / 2 + 1);
    assert_int_equal(s->pw, ((w - 1) / 2 + 1 - 1) / 2 + 1);
    s->g = values((size_t)(out * 147));
    s->s.bias = values((size_t)out);
    s->s.weight = values(stem_weight_floats(&s->s));
    memset(s->s.weight, 0, stem_weight_floats(&s->s) * sizeof(float));
    stem_pack(&s->s, s->g);
    for (int i = 0; i < 3 * 256; i++)
        s->table[i / 256][i % 256] = (float)(next() & 0xffff) / 16384.0f - 2.0f;
    s->stride = (size_t)(3 * w + between(0, 9));
    s->rgb = malloc(s->stride * (size_t)h);
    for (size_t i = 0; i < s->stride * (size_t)h; i++)
        s->rgb[i] = (uint8_t)next();
    s->planes = values((size_t)(3 * h * w));
    for (int c = 0; c < 3; c++)
        for (int p = 0; p < h * w; p++)
            s->planes[c * h * w + p] =
                s->table[c]
                        [s->rgb[(size_t)(p / w) * s->stride + (size_t)(p % w * 3 + c)]];
}

static void scene_free(struct scene *s)
{
    free(s->g);
    free(s->s.bias);
    free(s->s.weight);
    free(s->rgb);
    free(s->planes);
}

static double conv_twin(const struct scene *s, int cy, int cx, int o)
{
    double sum = (double)s->s.bias[o];

    for (int a = 0; a < 7; a++)
        for (int b = 0; b < 7; b++)
            for (int c = 0; c < 3; c++) {
                int y = 2 * cy - 3 + a, x = 2 * cx - 3 + b;

                if (y >= 0 && y < s->h && x >= 0 && x < s->w)
                    sum += (double)s->planes[(c * s->h + y) * s->w + x] *
                           (double)s->g[((o * 7 + a) * 7 + b) * 3 + c];
            }
    return sum < 0.0 ? 0.0 : sum;
}

static double pool_twin(const struct scene *s, const double *conv, int py, int px, int o)
{
    int ch = (s->h - 1) / 2 + 1, cw = (s->w - 1) / 2 + 1;
    double best = -INFINITY;

    for (int y = 2 * py - 1; y <= 2 * py + 1; y++)
        for (int x = 2 * px - 1; x <= 2 * px + 1; x++) {
            if (y < 0 || y >= ch || x < 0 || x >= cw)
                continue;
            double v = conv[(y * cw + x) * s->s.out + o];

            if (isnan(v) || v > best)
                best = v;
            if (isnan(v))
                return v;
        }
    return best;
}

// The stem's answer with this many workers: map memory, the caller's to free.
static float *run(const struct scene *s, bool bytes, int workers)
{
    size_t scratch = stem_scratch_floats(&s->s, s->w),
           n = map_floats(s->ph, s->pw, s->s.out);
    float *memory = values(n), *tiles = values(scratch * (size_t)workers + 16);
    float behind = tiles[scratch * (size_t)workers];
    struct stem_image image = {.height = s->h, .width = s->w};
    struct pool *pool;
    struct map y;

    memset(memory, 0, n * sizeof *memory);
    if (bytes) {
        image.rgb = s->rgb;
        image.stride = s->stride;
        image.table = s->table;
    } else {
        image.planes = s->planes;
    }
    // threads, so that ThreadSanitizer sees who writes what
    assert_int_equal(workers < 4 ? pool_start(&pool, workers, 0)
                                 : pool_start_serial(&pool, workers),
                     0);
    y = map_open(memory, s->ph, s->pw, s->s.out);
    stem_run(pool, &s->s, &image, &y, tiles, scratch);
    assert_true(tiles[scratch * (size_t)workers] == behind);
    pool_stop(pool);
    free(tiles);
    return memory;
}

static void compare(const struct scene *s, float *memory)
{
    int ch = (s->h - 1) / 2 + 1, cw = (s->w - 1) / 2 + 1, out = s->s.out;
    double *conv = malloc((size_t)(ch * cw * out) * sizeof *conv);
    struct map y = map_open(memory, s->ph, s->pw, out);

    for (int i = 0; i < ch * cw * out; i++)
        conv[i] = conv_twin(s, i / out / cw, i / out % cw, i % out);
    for (int p = 0; p < s->ph * s->pw; p++)
        for (int o = 0; o < out; o++) {
            double want = pool_twin(s, conv, p / s->pw, p % s->pw, o);
            double got = (double)map_at(&y, p / s->pw, p % s->pw)[o];

            if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= 5e-5))
                fail_msg("%s, %dx%d: pixel %d channel %d of %d is %.9g, not %.9g",
                         cpu_isa_name(s->s.kernel->isa), s->h, s->w, p, o, out, got,
                         want);
        }
    free(conv);
}

static void check(struct scene *s, bool bytes)
{
    static const int workers[] = {1, 2, 3, 16};
    size_t n = map_floats(s->ph, s->pw, s->s.out) * sizeof(float);
    float *first = run(s, bytes, 1), *room = values(n / sizeof *room);

    memcpy(room, first, n); // the room is as it was: clearing it anew changes nothing
    map_open(room, s->ph, s->pw, s->s.out);
    assert_memory_equal(room, first, n);
    for (size_t i = 1; i < sizeof workers / sizeof *workers; i++) {
        float *y = run(s, bytes, workers[i]);

        assert_memory_equal(first, y, n);
        free(y);
    }
    compare(s, first);
    free(first);
    free(room);
}

// ---- tests ------------------------------------------------------------------------------------

static const struct stem_kernel *kernel_at(int isa)
{
    return cpu_runs((enum cpu_isa)isa) ? stem_kernel_of((enum cpu_isa)isa) : NULL;
}

static void both(const struct stem_kernel *k, int h, int w, int out)
{
    struct scene s;

    scene_new(&s, k, h, w, out);
    check(&s, true);
    check(&s, false);
    scene_free(&s);
}

static void test_random(void **unused)
{
    (void)unused;
    for (int isa = 0; isa < CPU_ISAS; isa++) {
        const struct stem_kernel *k = kernel_at(isa);

        for (int i = 0; k && i < 24; i++)
            both(k, between(1, 40), between(1, 40), 32 * between(1, 3));
    }
}

static void test_sizes(void **unused)
{
    (void)unused;
    for (int isa = 0; isa < CPU_ISAS; isa++) {
        const struct stem_kernel *k = kernel_at(isa);

        for (int i = 1; k && i <= 9; i++) {
            both(k, i, 1, 32);
            both(k, 1, i, 64);
        }
        if (k) { // lines move to the front several times; rows in several pieces
            both(k, 131, 22, 32);
            both(k, 60, 301, 32);
            both(k, 5, 289, 96);
        }
    }
}

// The same pixels as bytes and as floats: the same bits.
static void test_inputs_agree(void **unused)
{
    struct scene s;

    (void)unused;
    scene_new(&s, stem_kernel(), 37, 53, 64);
    float *a = run(&s, true, 2), *b = run(&s, false, 3);
    assert_memory_equal(a, b, map_floats(s.ph, s.pw, 64) * sizeof *a);
    free(a);
    free(b);
    scene_free(&s);
}

// Each NaN, of either sign, is one wherever the twin has one: first, middle and last of a window. It
// spreads over its tile, no further: the next but one pixel of the output is as it was.
static void nan_spreads(struct scene *s, int at)
{
    float *before = run(s, false, 1), *after;
    int y = at / s->w % s->h / 4, x = at % s->w / 4;
    struct map a, b;

    s->planes[at] = next() & 1 ? NAN : -NAN;
    after = run(s, false, between(1, 4));
    a = map_open(before, s->ph, s->pw, s->s.out);
    b = map_open(after, s->ph, s->pw, s->s.out);
    for (int i = 0; i < s->ph * s->pw; i++) {
        int dy = abs(i / s->pw - y), dx = abs(i % s->pw - x);
        const float *was = map_at(&a, i / s->pw, i % s->pw);
        const float *is = map_at(&b, i / s->pw, i % s->pw);

        for (int o = 0; o < s->s.out; o++)
            if (dy > 3 || dx > 3 ? is[o] != was[o] : dy == 0 && dx == 0 && !isnan(is[o]))
                fail_msg("%s: a NaN at %d,%d: pixel %d is %g, was %g",
                         cpu_isa_name(s->s.kernel->isa), at / s->w % s->h, at % s->w, i,
                         (double)is[o], (double)was[o]);
    }
    free(before);
    free(after);
}

static void test_nan(void **unused)
{
    (void)unused;
    for (int isa = 0; isa < CPU_ISAS; isa++) {
        const struct stem_kernel *k = kernel_at(isa);
        struct scene s;

        for (int i = 0; k && i < 40; i++) {
            scene_new(&s, k, 30, 34, i & 1 ? 64 : 32);
            nan_spreads(&s, between(0, 3 * 30 * 34 - 1));
            scene_free(&s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_inputs_agree),
        cmocka_unit_test(test_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
