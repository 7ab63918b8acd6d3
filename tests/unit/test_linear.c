// The fully connected layer over a pool, against the twin of the product to the bit: the same for
// any number of threads. And how its tiles are shared out.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/kernels/linear.h"
#include "policy/kernels/split.h"
#include "tests/unit/gemm_twin.h"
#include "tests/unit/slow.h"

// ---- split ----------------------------------------------------------------------------

struct tiles {
    int rows, unit, cols;
};

// Tiles of the block, after a look at its edges.
static int tiles_of(const struct tiles *t, struct split_block b)
{
    assert_true(b.row0 >= 0 && b.row0 <= b.row1 && b.row1 <= t->rows);
    assert_true(b.col0 >= 0 && b.col0 <= b.col1 && b.col1 <= t->cols);
    assert_true(b.row0 % t->unit == 0 && (b.row1 % t->unit == 0 || b.row1 == t->rows));
    return (b.row1 - b.row0 + t->unit - 1) / t->unit * (b.col1 - b.col0);
}

static void check_split(const struct tiles *t, int workers)
{
    int rows = (t->rows + t->unit - 1) / t->unit, all = rows * t->cols, most = 0,
        idle = 0;
    unsigned char *seen = calloc((size_t)all, 1);

    for (int w = 0; w < workers; w++) {
        struct split_block b = split_tiles(t->rows, t->unit, t->cols, w, workers);
        int n = tiles_of(t, b);
        most = n > most ? n : most;
        idle += n == 0;
        for (int r = b.row0; r < b.row1; r += t->unit)
            for (int c = b.col0; c < b.col1; c++)
                seen[r / t->unit * t->cols + c]++;
    }
    for (int i = 0; i < all; i++)
        assert_int_equal(seen[i], 1);
    free(seen);
    if (idle != (all < workers ? workers - all : 0))
        fail_msg("%d x %d tiles: %d of %d workers idle", rows, t->cols, idle, workers);
    // With ten tiles each, nobody has more than 1.5 times the mean (the layers: 1.25).
    if (all >= 10 * workers && most * workers > 3 * all / 2)
        fail_msg("%d x %d tiles, %d workers: one has %d", rows, t->cols, workers, most);
}

static void test_split(void **unused)
{
    (void)unused;
    const struct tiles shapes[] = {
        {1, 12, 1},   {3, 12, 5},     {302, 12, 100}, {302, 12, 16}, {302, 6, 200},
        {302, 6, 32}, {100, 12, 100}, {100, 12, 1},   {51, 12, 16},  {51, 6, 200},
        {11, 12, 32}, {11, 6, 64},    {1202, 12, 48}, {7, 4, 9},     {96, 12, 8}};
    struct gemm_random r = {1};

    for (int workers = 1; workers <= 64; workers++) {
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            check_split(&shapes[s], workers);
        for (int i = 0; i < 100; i++) {
            struct tiles t = {gemm_between(&r, 1, 700), gemm_between(&r, 1, 16),
                              gemm_between(&r, 1, 130)};
            check_split(&t, workers);
        }
    }
}

// ---- linear ---------------------------------------------------------------------------

// A layer of the case's weights, put together of two tensors; close_layer.
struct layer {
    struct linear l;
    struct linear_room room;
};

static void *room(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);

    assert_non_null(p);
    memset(p, 0, bytes);
    return p;
}

static void *open_layer(struct layer *y, const struct gemm_case *c, enum precision p,
                        int workers)
{
    int depth = c->x.length, first = c->out / 3;

    y->l = (struct linear){.in = depth,
                           .out = c->out,
                           .bias = c->finish.bias ? c->bias : NULL,
                           .precision = p,
                           .room = &y->room};
    void *memory = room(linear_bytes(&y->l));
    linear_place(&y->l, memory);
    linear_pack(&y->l, 0, first, c->w, c->w_stride);
    linear_pack(&y->l, first, c->out - first, c->w + (size_t)first * c->w_stride,
                c->w_stride);
    y->room.memory = room(linear_room_bytes(p, c->rows, depth, workers));
    return memory;
}

static void open_case(struct gemm_case *c, struct gemm_random *r, int rows, int in,
                      int out)
{
    gemm_case_open(c, gemm_kernel(), r, rows, out, 1, in);
    c->x.row = (size_t)in;
    if (gemm_between(r, 0, 1))
        return;
    c->y_stride = (size_t)out;
    c->finish.table_stride = (size_t)c->finish.table_columns;
}

static float *run_layer(struct pool *pool, const struct layer *a,
                        const struct gemm_case *c)
{
    size_t n = (size_t)c->rows * c->y_stride;
    float *y = room(n * sizeof *y);
    bool packed = c->y_stride == (size_t)c->out; // which is the default
    struct linear_extra extra = {.table = c->finish.table,
                                 .table_cols = c->finish.table_columns,
                                 .accumulate = c->finish.accumulate,
                                 .f = c->finish.f,
                                 .table_stride = (int)c->finish.table_stride,
                                 .y_stride = packed ? 0 : (int)c->y_stride};

    if (c->finish.table_stride == (size_t)c->finish.table_columns)
        extra.table_stride = 0;

    memcpy(y, c->y0, n * sizeof *y);
    linear_run(pool, &a->l, c->x0, c->rows, y, extra);
    for (size_t i = 0; i < n; i++) // between rows nothing is written
        if (i % c->y_stride >= (size_t)c->out)
            assert_true(memcmp(y + i, c->y0 + i, sizeof *y) == 0);
    return y;
}

static void close_layer(struct layer *a, void *memory)
{
    free(memory);
    free(a->room.memory);
}

// f(sum + bias + table + y), in double.
static double finished(const struct gemm_case *c, int r, int o, double sum)
{
    const struct gemm_finish *f = &c->finish;

    sum += f->bias ? (double)f->bias[o] : 0;
    if (f->table && o < f->table_columns)
        sum += (double)f->table[(size_t)r * f->table_stride + (size_t)o];
    sum += f->accumulate ? (double)c->y0[(size_t)r * c->y_stride + (size_t)o] : 0;
    if (f->f == ACTIVATION_RELU)
        return sum < 0 ? 0 : sum;
    return f->f == ACTIVATION_GELU ? sum / 2 * (1 + erf(sum / sqrt(2))) : sum;
}

// ---- 16 bits --------------------------------------------------------------------------

static void round_weights(struct gemm_case *c)
{
    for (size_t i = 0; i < (size_t)c->out * c->w_stride; i++)
        c->w[i] = gemm_bf16_float(gemm_bf16_round(c->w[i]));
}

// The float32 layer of the rounded weights, to the bit, or where a product comes in parts nearly.
static void check_bf16(const struct gemm_case *c, const float *y)
{
    struct gemm_case rounded = *c;

    rounded.w = room((size_t)c->out * c->w_stride * sizeof *c->w);
    memcpy(rounded.w, c->w, (size_t)c->out * c->w_stride * sizeof *c->w);
    round_weights(&rounded);
    if (c->x.length <= GEMM_BF16_DEPTH)
        assert_true(gemm_case_check(&rounded, y, 0, c->rows));
    for (int r = 0; r < c->rows; r++)
        for (int o = 0; o < c->out; o++) {
            double sum = 0;
            for (int k = 0; k < c->x.length; k++)
                sum += (double)c->x0[(size_t)(r * c->x.length + k)] *
                       (double)rounded.w[(size_t)o * c->w_stride + (size_t)k];
            double off =
                (double)y[(size_t)r * c->y_stride + (size_t)o] - finished(c, r, o, sum);
            assert_true(fabs(off) < 2e-7 * (8 + c->x.length));
        }
    free(rounded.w);
}

static void test_rounding(void **unused)
{
    (void)unused;
    const struct {
        float from;
        uint16_t to;
    } known[] = {{0.0f, 0},
                 {-0.0f, 0x8000},
                 {1.0f, 0x3f80},
                 {0x1.01p0f, 0x3f80},     // half a step up: to the even one below
                 {0x1.03p0f, 0x3f82},     // to the even one above
                 {0x1.010002p0f, 0x3f81}, // a little more than half
                 {0x1.00fffep0f, 0x3f80},
                 {-0x1.03p0f, 0xbf82},
                 {0x1p-133f, 0x0001}, // the least there is
                 {INFINITY, 0x7f80},
                 {-INFINITY, 0xff80},
                 {0x1.fffffep127f, 0x7f80}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(gemm_bf16_round(known[i].from), known[i].to);
    for (uint32_t h = 0; h < 0x10000; h++) { // what is there stays; NaN stays NaN
        float f = gemm_bf16_float((uint16_t)h);
        if (isnan(f))
            assert_true(isnan(gemm_bf16_float(gemm_bf16_round(f))));
        else
            assert_int_equal(gemm_bf16_round(f), h);
    }
    uint32_t low = 0x7f800001; // a NaN whose upper half looks like infinity
    float nan;
    memcpy(&nan, &low, sizeof nan);
    assert_true(isnan(gemm_bf16_float(gemm_bf16_round(nan))));
}

// ---- 8 bits ---------------------------------------------------------------------------

// Weight k of column o, as packed: panels (quads, nr, 4).
static double weight8(const struct gemm_int8 *g, int o, int k)
{
    size_t nr = (size_t)g->kernel->nr, depth = ((size_t)g->depth + 15) / 16 * 16,
           column = (size_t)o, at = (size_t)k;

    return g->panel[column / nr * nr * depth + (at / 4 * nr + column % nr) * 4 + at % 4];
}

// The twin in double on the rounded numbers; and these are as near to the true ones as steps of
// their scales allow.
static void check_int8(const struct layer *a, const struct gemm_case *c, const float *y)
{
    const struct gemm_int8 *g = &a->l.int8;
    int depth = c->x.length;
    void *memory = room(gemm_int8_rows_bytes(c->rows, depth));
    struct gemm_int8_rows x8 = gemm_int8_rows_in(memory, c->rows, depth);

    gemm_int8_quantise(g->kernel, c->x0, (size_t)depth, depth, 0, c->rows, &x8);
    for (int r = 0; r < c->rows; r++)
        for (int o = 0; o < c->out; o++) {
            double sum = 0, most = 0, sw = (double)g->scale[o], sx = (double)x8.scale[r];
            for (int k = 0; k < depth; k++) {
                double w8 = weight8(g, o, k),
                       w = (double)c->w[(size_t)o * c->w_stride + (size_t)k];
                double q = x8.q[(size_t)r * x8.stride + (size_t)k] - x8.zero[r],
                       x = (double)c->x0[(size_t)(r * depth + k)];
                assert_true(fabs(w - sw * w8) <= 0.501 * sw + 1e-12);
                assert_true(fabs(x - sx * q) <= 1.01 * sx + 1e-12);
                sum += q * w8;
                most += fabs(q * w8);
            }
            double want = finished(c, r, o, sx * sw * sum);
            double off = (double)y[(size_t)r * c->y_stride + (size_t)o] - want;
            if (!(fabs(off) <= 1e-6 * (4 + sx * sw * most)))
                fail_msg("%d deep, (%d, %d): %.9g, not %.9g", depth, r, o,
                         (double)y[(size_t)r * c->y_stride + (size_t)o], want);
        }
    free(memory);
}

// ---- all three ------------------------------------------------------------------------

static void check_linear(struct pool *pool, struct gemm_random *r, enum precision p,
                         int rows, int in, int out)
{
    struct gemm_case c;
    struct layer a;
    open_case(&c, r, rows, in, out);
    void *memory = open_layer(&a, &c, p, pool_threads(pool));
    float *y = run_layer(pool, &a, &c);
    if (p == PRECISION_FLOAT32)
        assert_true(gemm_case_check(&c, y, 0, rows));
    else if (p == PRECISION_BF16)
        check_bf16(&c, y);
    else
        check_int8(&a, &c, y);
    free(y);
    close_layer(&a, memory);
    gemm_case_close(&c);
}

// The bits of one thread, whatever their number.
static void check_threads(struct gemm_random *r, enum precision p, int rows, int in,
                          int out)
{
    const int threads[] = {1, 2, 3, 7, 16};
    float *first = NULL;
    struct gemm_case c;
    struct layer a;
    open_case(&c, r, rows, in, out);
    void *memory = open_layer(&a, &c, p, 16);
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        struct pool *pool;
        assert_int_equal(pool_start_serial(&pool, threads[t]), 0);
        float *y = run_layer(pool, &a, &c);
        if (first)
            assert_memory_equal(y, first, (size_t)rows * c.y_stride * sizeof *y);
        pool_stop(pool);
        if (first)
            free(y);
        else
            first = y;
    }
    free(first);
    close_layer(&a, memory);
    gemm_case_close(&c);
}

// A value that is no number reaches its own row, all of it, and no other.
static void check_nan(struct pool *pool, struct gemm_random *r, enum precision p,
                      float odd)
{
    struct gemm_case c;
    struct layer a;
    open_case(&c, r, 9, 40, 70);
    c.finish.f = ACTIVATION_RELU;
    c.x0[5 * 40 + 33] = odd;
    void *memory = open_layer(&a, &c, p, pool_threads(pool));
    float *y = run_layer(pool, &a, &c);
    for (int i = 0; i < 9 * 70; i++) {
        float v = y[(size_t)(i / 70) * c.y_stride + (size_t)(i % 70)];
        bool number = p == PRECISION_INT8 || isnan(odd) ? !isnan(v) : isfinite(v);
        // Infinity is a number in float32, where ReLU makes 0 of a negative one.
        if (i / 70 != 5)
            assert_true(isfinite(v));
        else if (p == PRECISION_INT8 || isnan(odd))
            assert_false(number);
    }
    free(y);
    close_layer(&a, memory);
    gemm_case_close(&c);
}

static void check_precision(struct pool *pool, struct gemm_random *r, enum precision p)
{
    for (int n = 0; n < REPEATS(20, 8); n++)
        check_linear(pool, r, p, gemm_between(r, 1, 70), gemm_between(r, 1, 90),
                     gemm_between(r, 1, 300));
    check_linear(pool, r, p, 1, 14, 512);
    check_linear(pool, r, p, 302, 64, 48);
    check_linear(pool, r, p, 33, GEMM_BF16_DEPTH, 40);
    check_linear(pool, r, p, 33, GEMM_BF16_DEPTH + 1, 40);
    check_linear(pool, r, p, 12, 3 * GEMM_BF16_DEPTH + 100, 65);
    check_linear(pool, r, p, 300, GEMM_BF16_DEPTH + 30, 33); // more rows than a block
    check_nan(pool, r, p, NAN);
    check_nan(pool, r, p, INFINITY);
}

static void test_linear(void **unused)
{
    (void)unused;
    const int threads[] = {1, 2, 3, 16, 64};
    for (int i = 0; i < CPU_ISAS; i++) {
        if (cpu_choose((enum cpu_isa)i) != 0)
            continue;
        struct gemm_random r = {7};
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            struct pool *pool;
            assert_int_equal(pool_start_serial(&pool, threads[t]), 0);
            for (int p = 0; p < PRECISIONS; p++)
                check_precision(pool, &r, (enum precision)p);
            pool_stop(pool);
        }
        for (int p = 0; p < PRECISIONS; p++)
            for (int n = 0; n < 10; n++)
                check_threads(&r, (enum precision)p, gemm_between(&r, 1, 120),
                              gemm_between(&r, 1, 600), gemm_between(&r, 1, 300));
    }
    assert_int_equal(cpu_choose(cpu_best()), 0);
}

// Real threads: what one of them writes is there when the layer returns.
static void test_threads(void **unused)
{
    (void)unused;
    struct gemm_random r = {8};
    struct pool *p;
    assert_int_equal(pool_start(&p, 3, 0), 0);
    for (int n = 0; n < REPEATS(150, 45); n++)
        check_linear(p, &r, (enum precision)(n % PRECISIONS), gemm_between(&r, 1, 100),
                     gemm_between(&r, 1, 50), gemm_between(&r, 1, 200));
    pool_stop(p);
}

// What a precision is for: 16 bits take half of float32's memory, 8 a quarter, and their sums.
static void test_bytes(void **unused)
{
    (void)unused;
    struct linear l = {.in = 512, .out = 3200};
    size_t full = linear_bytes(&l);

    l.precision = PRECISION_BF16;
    assert_int_equal(linear_bytes(&l), full / 2);
    l.precision = PRECISION_INT8;
    assert_in_range(linear_bytes(&l), full / 4, full / 4 + 3200 * 8 + 64);
    assert_string_equal(precision_name(PRECISION_FLOAT32), "float32");
    assert_string_equal(precision_name(PRECISION_BF16), "bf16");
    assert_string_equal(precision_name(PRECISION_INT8), "int8");
    assert_string_equal(precision_name((enum precision)7), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),  cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_linear), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
