// Winograd against direct convolution in double: every instruction set that runs here,
// every tile, shapes that fit no tile, any number of workers; and how accurate it is,
// beside direct convolution in float32.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policy/kernels/gemm_bf16.h"
#include "policy/kernels/winograd.h"
#include "tests/unit/slow.h"

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

// in [-1, 1)
static float value(void)
{
    return (float)(next() & 0xffff) / 32768.0f - 1.0f;
}

// About normal: the sum of 12 uniform values has the variance 12 / 3.
static double normal(void)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (double)value();
    return sum / 2;
}

// All NaN, so that whatever is read before it is written shows.
static float *spoiled(size_t n)
{
    float *v = aligned_alloc(64, (n * sizeof *v + 63) / 64 * 64);
    assert_non_null(v);
    for (size_t i = 0; i < n; i++)
        v[i] = NAN;
    return v;
}

static float *values(size_t n)
{
    float *v = spoiled(n);
    for (size_t i = 0; i < n; i++)
        v[i] = value();
    return v;
}

// ---- a layer and its twins ------------------------------------------------------------

struct layer {
    int height, width, in, out; // of x
    int stride;
    bool accumulate;
    enum activation f;
    float *x;    // (height, width, in)
    float *g;    // (out, 3, 3, in)
    float *bias; // (out)
    float *y;    // (y_height, y_width, out): y's old content; there is room for stride 1
};

static int y_height(const struct layer *l)
{
    return (l->height + l->stride - 1) / l->stride;
}

static int y_width(const struct layer *l)
{
    return (l->width + l->stride - 1) / l->stride;
}

static size_t y_pixels(const struct layer *l)
{
    return (size_t)y_height(l) * (size_t)y_width(l);
}

// With the stride that tiles of m have.
static struct layer strided(const struct layer *l, int m)
{
    struct layer s = *l;
    s.stride = winograd_stride(m);
    return s;
}

static size_t pixels(const struct layer *l)
{
    return (size_t)l->height * (size_t)l->width;
}

static struct layer layer_of(int height, int width, int in, int out)
{
    struct layer l = {
        .height = height, .width = width, .in = in, .out = out, .stride = 1};
    l.x = values(pixels(&l) * (size_t)in);
    l.g = values((size_t)out * 9 * (size_t)in);
    l.bias = values((size_t)out);
    l.y = values(pixels(&l) * (size_t)out);
    return l;
}

static void layer_free(struct layer *l)
{
    free(l->x);
    free(l->g);
    free(l->bias);
    free(l->y);
}

// The pixel under tap (ky, kx) of output pixel (y, x), NULL in the padding.
static const float *under(const struct layer *l, int y, int x, int ky, int kx)
{
    int row = l->stride * y + ky - 1, column = l->stride * x + kx - 1;
    if (row < 0 || row >= l->height || column < 0 || column >= l->width)
        return NULL;
    return l->x + ((size_t)row * (size_t)l->width + (size_t)column) * (size_t)l->in;
}

static double twin_pixel(const struct layer *l, int y, int x, int o)
{
    double sum = 0;
    for (int t = 0; t < 9; t++) {
        const float *d = under(l, y, x, t / 3, t % 3);
        for (int i = 0; d && i < l->in; i++)
            sum += (double)d[i] * (double)l->g[(o * 9 + t) * l->in + i];
    }
    return sum;
}

// Direct convolution in float32, the sum in one order, as a plain kernel does it.
static float float_pixel(const struct layer *l, int y, int x, int o)
{
    float sum = 0;
    for (int t = 0; t < 9; t++) {
        const float *d = under(l, y, x, t / 3, t % 3);
        for (int i = 0; d && i < l->in; i++)
            sum = fmaf(d[i], l->g[(o * 9 + t) * l->in + i], sum);
    }
    return sum + l->bias[o];
}

static double *twin(const struct layer *l)
{
    double *y = malloc(y_pixels(l) * (size_t)l->out * sizeof *y);
    size_t n = 0;
    assert_non_null(y);
    for (int p = 0; p < (int)y_pixels(l); p++)
        for (int o = 0; o < l->out; o++, n++) {
            double v =
                twin_pixel(l, p / y_width(l), p % y_width(l), o) + (double)l->bias[o];
            v += l->accumulate ? (double)l->y[n] : 0;
            y[n] = l->f == ACTIVATION_RELU && v < 0 ? 0 : v;
        }
    return y;
}

// ---- running it -----------------------------------------------------------------------

// A kernel with a tile of its own, that fits nothing: 3 rows, 8 columns.
static void naive_panel(const struct gemm_rows *x, int rows, const float *panel,
                        int columns, float *y, size_t y_stride,
                        const struct gemm_finish *finish)
{
    assert_true(x->runs == 1 && !finish->bias && !finish->table);
    assert_int_equal(finish->f, ACTIVATION_NONE);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            float sum = 0;
            for (int k = 0; k < x->length; k++)
                sum += x->x[(size_t)r * x->row + (size_t)k] * panel[k * 8 + c];
            float *to = y + (size_t)r * y_stride + c;
            *to = finish->accumulate ? sum + *to : sum;
        }
}

static struct winograd winograd_new(const struct gemm_kernel *k, int m,
                                    const struct layer *l)
{
    struct winograd w = {
        .in = l->in, .out = l->out, .m = m, .kernel = k, .bias = l->bias};
    size_t floats = winograd_weight_floats(k, m, l->in, l->out);
    w.u = spoiled(floats);
    memset(w.u, 0, floats * sizeof *w.u); // as an arena is
    winograd_pack(&w, l->g);
    return w;
}

static struct map map_new(int height, int width, int channels, const float *pixel)
{
    struct map m =
        map_open(spoiled(map_floats(height, width, channels)), height, width, channels);
    size_t line = (size_t)width * (size_t)channels;
    for (int y = 0; y < height; y++)
        memcpy(map_at(&m, y, 0), pixel + (size_t)y * line, line * sizeof *pixel);
    return m;
}

static void map_free(struct map *m)
{
    free(m->pixel - (size_t)MAP_BORDER * (m->row + (size_t)m->channels));
}

// Around the inner pixels there must still be zeros afterwards: the next layer reads
// them.
static void assert_room_is_zero(const struct map *m)
{
    for (int y = -1; y <= m->height; y++)
        for (int x = -1; x <= m->width; x++)
            if (y < 0 || y == m->height || x < 0 || x == m->width)
                for (int c = 0; c < m->channels; c++)
                    assert_true(map_at(m, y, x)[c] == 0.0f);
}

// Rows of a tile: 3 with stride 2, the others with stride 1.
static const int tiles[] = {2, 3, 4, 6};
#define TILES 4

#define GUARD 4096 // floats behind scratch that nobody may touch

// The layer by the workers of a pool, to (height, width, out). The caller's.
static float *run_in(struct pool *pool, const struct winograd *w, const struct layer *l)
{
    size_t workers = (size_t)pool_threads(pool);
    size_t scratch_floats = winograd_scratch_floats(w->kernel, w->m, l->in, l->out);
    float *scratch = spoiled(workers * scratch_floats + GUARD);
    float *out = spoiled(y_pixels(l) * (size_t)l->out);
    struct map x = map_new(l->height, l->width, l->in, l->x);
    struct map y = map_new(y_height(l), y_width(l), l->out, l->y);

    assert_int_equal(scratch_floats % 16, 0);
    winograd_run(pool, w, &x, &y, l->accumulate, l->f, scratch, scratch_floats);
    assert_room_is_zero(&y);
    for (size_t i = 0; i < GUARD; i++)
        assert_true(isnan(scratch[workers * scratch_floats + i]));
    map_flatten(pool, &y, out);
    map_free(&x);
    map_free(&y);
    free(scratch);
    return out;
}

static float *run(const struct winograd *w, const struct layer *l, int workers)
{
    struct pool *pool;
    float *out;

    assert_int_equal(pool_start_serial(&pool, workers), 0);
    out = run_in(pool, w, l);
    pool_stop(pool);
    return out;
}

// ---- tests ----------------------------------------------------------------------------

// Sixteen times the error to be expected of an output (a tile's corner has more than the
// rest), whose size is sqrt(in): what the transforms add and what summing up adds.
static double tolerance_of(int m, int in)
{
    return 16e-7 * (m == 6 ? 5 : 1) * (4 + sqrt(16 + 0.7 * in) * sqrt(in));
}

static void check(const struct gemm_kernel *k, int m, const struct layer *any)
{
    static const int workers[] = {2, 3, 16};
    struct layer strided_layer = strided(any, m), *l = &strided_layer;
    struct winograd w = winograd_new(k, m, l);
    float *y = run(&w, l, 1);
    double *want = twin(l), tolerance = tolerance_of(m, l->in);
    size_t n = y_pixels(l) * (size_t)l->out;

    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)y[i] - want[i]) <= tolerance))
            fail_msg("%s, F%d, %dx%d, %d to %d: got %.9g, want %.9g",
                     cpu_isa_name(k->isa), m, l->height, l->width, l->in, l->out,
                     (double)y[i], want[i]);
    for (size_t i = 0; i < 3; i++) {
        float *other = run(&w, l, workers[i]);
        assert_memory_equal(y, other, n * sizeof *y);
        free(other);
    }
    free(want);
    free(y);
    free(w.u);
}

static void check_all(const struct layer *l)
{
    for (int isa = 0; isa < CPU_ISAS; isa++)
        for (int i = 0; i < TILES && cpu_runs((enum cpu_isa)isa); i++) {
            const struct gemm_kernel naive = {(enum cpu_isa)isa, 3, 8, naive_panel, NULL};
            check(&naive, tiles[i], l);
            check(gemm_kernel_of((enum cpu_isa)isa), tiles[i], l);
        }
}

static void test_shapes(void **unused)
{
    (void)unused;
    for (int i = 0; i < REPEATS(40, 10); i++) {
        struct layer l = layer_of(between(1, 15), between(1, 15), 4 * between(1, 12),
                                  4 * between(1, 20));
        l.accumulate = i & 1;
        l.f = i & 2 ? ACTIVATION_RELU : ACTIVATION_NONE;
        check_all(&l);
        layer_free(&l);
    }
}

// Several blocks per worker, and several groups of panels per block.
static void test_blocks(void **unused)
{
    static const int shapes[][4] = {{31, 50, 8, 12},
                                    {50, 61, 4, 4},
                                    {9, 40, 20, 300},
                                    {11, 9, 272, 8},
                                    {6, 9, 128, 132}};
    (void)unused;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int *s = shapes[i];
        struct layer l = layer_of(s[0], s[1], s[2], s[3]);
        l.accumulate = true;
        check_all(&l);
        layer_free(&l);
    }
}

// On real threads, too: a map of many tiles, where each worker has its own, and one of
// few tiles and many weights, where all work on one block.
static void test_threads(void **unused)
{
    static const int shapes[][4] = {{41, 30, 8, 8}, {6, 9, 128, 132}};
    const struct gemm_kernel *k = gemm_kernel();
    struct pool *pool;
    (void)unused;
    assert_int_equal(pool_start(&pool, 3, 0), 0);
    for (int i = 0; i < 2 * TILES; i++) {
        const int *s = shapes[i % 2];
        struct layer all = layer_of(s[0], s[1], s[2], s[3]),
                     l = strided(&all, tiles[i / 2]);
        struct winograd w = winograd_new(k, tiles[i / 2], &l);
        float *y = run(&w, &l, 1), *z = run_in(pool, &w, &l);
        assert_memory_equal(y, z, y_pixels(&l) * (size_t)l.out * sizeof *y);
        free(y);
        free(z);
        free(w.u);
        layer_free(&l);
    }
    pool_stop(pool);
}

// Together two workers would have less to read here, but their scratch is too small for
// that.
static void test_too_much_for_all(void **unused)
{
    const struct gemm_kernel *k = gemm_kernel();
    struct layer l = layer_of(30, 32, 512, 64);
    struct winograd w = winograd_new(k, 4, &l);
    float *y = run(&w, &l, 1), *z = run(&w, &l, 2);
    (void)unused;
    assert_memory_equal(y, z, pixels(&l) * (size_t)l.out * sizeof *y);
    free(y);
    free(z);
    free(w.u);
    layer_free(&l);
}

// With and without a fused multiply-add the transforms round differently, but all sets
// that have it agree bit by bit: whatever the width of their vectors.
static void test_sets_agree(void **unused)
{
    const struct gemm_kernel narrow = {CPU_AVX2, 3, 8, naive_panel, NULL};
    const struct gemm_kernel wide = {CPU_AVX512, 3, 8, naive_panel, NULL};
    (void)unused;
    if (!cpu_runs(CPU_AVX512))
        skip();
    for (int i = 0; i < TILES; i++) {
        int m = tiles[i];
        struct layer all = layer_of(7, 9, 28, 44), l = strided(&all, m);
        struct winograd a = winograd_new(&narrow, m, &l), b = winograd_new(&wide, m, &l);
        float *y = run(&a, &l, 1), *z = run(&b, &l, 1);
        assert_memory_equal(y, z, y_pixels(&l) * (size_t)l.out * sizeof *y);
        free(y);
        free(z);
        free(a.u);
        free(b.u);
        layer_free(&l);
    }
}

// A NaN reaches every output that depends on it, through ReLU, too.
static void nan_at(const struct gemm_kernel *k, int m, int row, int column)
{
    struct layer all = layer_of(13, 11, 20, 20); // a vector of 16 and one of 4
    struct layer l = strided(&all, m);
    struct winograd w = winograd_new(k, m, &l);
    float *y;

    l.f = ACTIVATION_RELU;
    l.x[((size_t)row * 11 + (size_t)column) * 20 + next() % 20] = NAN;
    y = run(&w, &l, 2);
    for (int p = 0; p < (int)y_pixels(&l); p++)
        if (abs(p / y_width(&l) * l.stride - row) <= 1 &&
            abs(p % y_width(&l) * l.stride - column) <= 1)
            for (int o = 0; o < 20; o++)
                assert_true(isnan(y[p * 20 + o]));
    free(y);
    free(w.u);
    layer_free(&l);
}

static void test_nan(void **unused)
{
    (void)unused;
    for (int isa = 0; isa < CPU_ISAS; isa++)
        for (int i = 0; i < REPEATS(20, 6) * TILES && cpu_runs((enum cpu_isa)isa); i++)
            nan_at(gemm_kernel_of((enum cpu_isa)isa), tiles[i % TILES], between(0, 12),
                   between(0, 10));
}

static double relative_rms(const float *y, const double *want, size_t n)
{
    double square = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        square += ((double)y[i] - want[i]) * ((double)y[i] - want[i]);
        all += want[i] * want[i];
    }
    return sqrt(square / all);
}

// ---- in 16 bits -----------------------------------------------------------------------

// Weights are those of float32, rounded; with them float32 gives the very bits. The relative RMS
// error.
static double check_bf16(const struct gemm_kernel *k, int m, const struct layer *any)
{
    struct layer strided_layer = strided(any, m), *l = &strided_layer;
    struct winograd w = winograd_new(k, m, l), half = w;
    size_t floats = winograd_weight_floats(k, m, l->in, l->out),
           n = y_pixels(l) * (size_t)l->out;

    half.u = NULL;
    half.bf16 = calloc(floats, sizeof *half.bf16);
    assert_non_null(half.bf16);
    winograd_pack(&half, l->g);
    for (size_t i = 0; i < floats; i++) {
        assert_int_equal(half.bf16[i], gemm_bf16_round(w.u[i]));
        w.u[i] = gemm_bf16_float(half.bf16[i]);
    }
    float *y = run(&w, l, 1);
    for (int workers = 1; workers <= 3; workers += 2) {
        float *z = run(&half, l, workers);
        assert_memory_equal(y, z, n * sizeof *y);
        free(z);
    }
    double *want = twin(l), error = relative_rms(y, want, n);
    free(want);
    free(y);
    free(w.u);
    free(half.bf16);
    return error;
}

static void test_bf16(void **unused)
{
    (void)unused;
    for (int isa = 0; isa < CPU_ISAS; isa++)
        for (int i = 0; i < TILES && cpu_runs((enum cpu_isa)isa); i++) {
            const struct gemm_kernel *k = gemm_kernel_of((enum cpu_isa)isa);
            struct layer l = layer_of(17, 13, 4 * between(1, 40), 4 * between(1, 20));
            l.accumulate = true;
            l.f = ACTIVATION_RELU;
            check_bf16(k, tiles[i], &l);
            layer_free(&l);
        }
    for (int in = 64; in <= 256; in *= 4) {
        struct layer l = layer_of(12, 24, in, 32);
        double error[7];
        for (int i = 0; i < TILES; i++) {
            int m = tiles[i];
            error[m] = check_bf16(gemm_kernel(), m, &l);
            assert_true(error[m] < (m <= 3 ? 5e-3 : m == 4 ? 12e-3 : 50e-3));
        }
        print_message(
            "in 16 bits, %3d channels: relative RMS error in 1e-4: F2 %.0f, F3/2 %.0f, "
            "F4 %.0f, F6 %.0f\n",
            in, 1e4 * error[2], 1e4 * error[3], 1e4 * error[4], 1e4 * error[6]);
        layer_free(&l);
    }
}

// ---- accuracy -------------------------------------------------------------------------

struct errors {
    double direct, winograd[7]; // relative RMS; by m
};

static double direct_error(const struct layer *l)
{
    double *want = twin(l), error;
    size_t n = y_pixels(l) * (size_t)l->out;
    float *y = spoiled(n);

    for (size_t i = 0; i < n; i++) {
        int p = (int)(i / (size_t)l->out);
        y[i] = float_pixel(l, p / y_width(l), p % y_width(l), (int)(i % (size_t)l->out));
    }
    error = relative_rms(y, want, n);
    free(y);
    free(want);
    return error;
}

static struct errors errors_of(const struct gemm_kernel *k, const struct layer *any)
{
    struct errors e = {.direct = direct_error(any)};

    for (int i = 0; i < TILES; i++) {
        struct layer l = strided(any, tiles[i]);
        struct winograd w = winograd_new(k, tiles[i], &l);
        float *y = run(&w, &l, 1);
        double *want = twin(&l);
        e.winograd[tiles[i]] = relative_rms(y, want, y_pixels(&l) * (size_t)l.out);
        free(want);
        free(y);
        free(w.u);
    }
    return e;
}

// As trained nets are: inputs behind a ReLU, half of them zero; input channels and
// filters of very different sizes (a factor 20 is not rare), single taps far above the
// others.
static void make_trained_like(struct layer *l)
{
    float *size = values((size_t)l->in);

    for (int i = 0; i < l->in; i++)
        size[i] = (float)exp(1.5 * normal());
    for (size_t i = 0; i < pixels(l) * (size_t)l->in; i++)
        l->x[i] = (float)fmax(0, normal()) * size[i % (size_t)l->in];
    for (int o = 0; o < l->out; o++) {
        double filter = exp(normal());
        for (int i = 0; i < 9 * l->in; i++) {
            double tail = normal();
            l->g[o * 9 * l->in + i] = (float)(filter * tail * tail * tail);
        }
    }
    free(size);
}

static void test_accuracy(void **unused)
{
    static const int shapes[][4] = {
        {24, 24, 64, 64}, {12, 14, 128, 64}, {12, 12, 256, 32}, {15, 20, 512, 12}};
    (void)unused;
    rng = 7;
    print_message("relative RMS error, 1e-7     direct     F2   F3/2     F4     F6\n");
    for (int i = 0; i < 8; i++) {
        const int *s = shapes[i / 2];
        const struct gemm_kernel *k = gemm_kernel();
        struct layer l = layer_of(s[0], s[1], s[2], s[3]);
        if (i % 2)
            make_trained_like(&l);
        struct errors e = errors_of(k, &l);
        print_message("%3d channels, %-12s %8.2f %6.2f %6.2f %6.2f %6.2f\n", s[2],
                      i % 2 ? "trained-like" : "random", e.direct * 1e7,
                      e.winograd[2] * 1e7, e.winograd[3] * 1e7, e.winograd[4] * 1e7,
                      e.winograd[6] * 1e7);
        assert_true(e.winograd[2] < 1.0 * e.direct);
        assert_true(e.winograd[3] < 1.0 * e.direct && e.winograd[3] < 5e-7);
        assert_true(e.winograd[4] < 2.5 * e.direct && e.winograd[4] < 1e-6);
        assert_true(e.winograd[6] < 4e-6);
        layer_free(&l);
    }
}

// Whatever a tile may reach lies in the map and is zero. With stride 2 tiles take 6 lines and 4
// columns more than the one before: no more than tiles of 6 and 4.
static void test_room(void **unused)
{
    (void)unused;
    for (int height = 1; height <= 25; height++)
        for (int width = 1; width <= 25; width++) {
            float *inner = values((size_t)(height * width * 4)), *memory;
            struct map m = map_new(height, width, 4, inner);
            size_t floats = map_floats(height, width, 4);
            memory = m.pixel - (m.row + 4);
            for (int t = 2; t <= 6; t += 2) {
                int down = (height + t - 1) / t * t, right = (width + t - 1) / t * t;
                assert_true(map_at(&m, down, right) + 4 <= memory + floats);
                assert_true((size_t)(right + 2) * 4 <= m.row);
                for (int p = -1; p <= down; p++)
                    for (int q = -1; q <= right; q++)
                        if (p < 0 || p >= height || q < 0 || q >= width)
                            assert_true(map_at(&m, p, q)[0] == 0 &&
                                        map_at(&m, p, q)[3] == 0);
            }
            map_free(&m);
            free(inner);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_room),     cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_blocks),   cmocka_unit_test(test_sets_agree),
        cmocka_unit_test(test_threads),  cmocka_unit_test(test_nan),
        cmocka_unit_test(test_bf16),     cmocka_unit_test(test_too_much_for_all),
        cmocka_unit_test(test_accuracy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
