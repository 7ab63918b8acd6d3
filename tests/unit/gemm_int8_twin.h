// gemm_int8_twin: the product in 8 bits as in a textbook: rows and weights rounded one by one, sums in
// 64 bits. A random case of it, without cmocka, so that it runs under an emulator, too.
#ifndef ACTD_TEST_GEMM_INT8_TWIN_H
#define ACTD_TEST_GEMM_INT8_TWIN_H

#include <float.h>

#include "policy/kernels/gemm_int8.h"
#include "tests/unit/gemm_twin.h"

struct int8_case {
    const struct gemm_int8_kernel *kernel;
    int rows, depth, out;
    size_t x_stride, w_stride, y_stride, x_skew, y_skew;
    float *x, *w, *y0, *bias, *table; // owned
    void *memory, *row_memory;        // owned: the weights and the rows in 8 bits
    struct gemm_finish finish;
    struct gemm_int8 g;
    struct gemm_int8_rows x8;
};

static inline void *int8_zeros(size_t bytes)
{
    void *p = aligned_alloc(GEMM_ALIGN, bytes);

    if (!p)
        exit(3);
    return memset(p, 0, bytes);
}

static inline void int8_case_open(struct int8_case *c, const struct gemm_int8_kernel *k,
                                  struct gemm_random *r, int rows, int out, int depth)
{
    *c = (struct int8_case){.kernel = k, .rows = rows, .depth = depth, .out = out};
    c->x_skew = gemm_next(r) % 16;
    c->y_skew = gemm_next(r) % 16;
    c->x_stride = (size_t)(depth + gemm_between(r, 0, 9));
    c->w_stride = (size_t)(depth + gemm_between(r, 0, 3));
    c->y_stride = (size_t)(out + gemm_between(r, 0, 20));
    c->x = gemm_values(r, (size_t)rows * c->x_stride, c->x_skew);
    c->w = gemm_values(r, (size_t)out * c->w_stride, 0);
    c->y0 = gemm_values(r, (size_t)rows * c->y_stride, 0);
    c->bias = gemm_values(r, (size_t)out, 0);
    c->finish.table_columns = gemm_between(r, 1, out);
    c->finish.table_stride = (size_t)(c->finish.table_columns + gemm_between(r, 0, 9));
    c->table = gemm_values(r, (size_t)rows * c->finish.table_stride, 0);
    c->finish.bias = gemm_next(r) % 2 ? c->bias : NULL;
    c->finish.table = gemm_next(r) % 2 ? c->table : NULL;
    c->finish.accumulate = gemm_next(r) % 2;
    c->finish.f = (enum activation)(gemm_next(r) % 3);
    c->memory = int8_zeros(gemm_int8_bytes(k, depth, out));
    c->row_memory = int8_zeros(gemm_int8_rows_bytes(rows, depth));
    c->g = (struct gemm_int8){.depth = depth, .out = out, .kernel = k};
    gemm_int8_place(&c->g, c->memory);
    c->x8 = gemm_int8_rows_in(c->row_memory, rows, depth);
    memset(c->x8.q, 0xa5, (size_t)rows * c->x8.stride);
}

static inline void int8_case_close(struct int8_case *c)
{
    gemm_free(c->x, c->x_skew);
    free(c->w);
    free(c->y0);
    free(c->bias);
    free(c->table);
    free(c->memory);
    free(c->row_memory);
}

// The weights, put together of two tensors, and the rows, in two shares.
static inline void int8_case_prepare(struct int8_case *c)
{
    int first = c->out / 3, half = c->rows / 2;

    gemm_int8_pack(&c->g, 0, first, c->w, c->w_stride);
    gemm_int8_pack(&c->g, first, c->out - first, c->w + (size_t)first * c->w_stride,
                   c->w_stride);
    gemm_int8_quantise(c->kernel, c->x, c->x_stride, c->depth, half, c->rows, &c->x8);
    gemm_int8_quantise(c->kernel, c->x, c->x_stride, c->depth, 0, half, &c->x8);
}

static inline int int8_weight(const struct gemm_int8 *g, int o, int d)
{
    int nr = g->kernel->nr, depth = (g->depth + 15) / 16 * 16;

    return g->panel[(size_t)(o / nr) * (size_t)(nr * depth) +
                    (size_t)(d / 4 * nr * 4 + o % nr * 4 + d % 4)];
}

typedef void int8_with_kernel(const struct gemm_int8_kernel *k, struct gemm_random *r);

static inline void int8_each_kernel(int8_with_kernel *test)
{
    struct gemm_random r = {7};

    for (int i = 0; gemm_int8_kernel_at(i); i++)
        if (gemm_int8_runs(gemm_int8_kernel_at(i)))
            test(gemm_int8_kernel_at(i), &r);
}

// ---- twins ------------------------------------------------------------------------------

// Row r must be what rounding it value by value gives, and zeros behind.
static inline bool int8_check_row(const struct int8_case *c, int r)
{
    const float *x = c->x + (size_t)r * c->x_stride;
    const uint8_t *q = c->x8.q + (size_t)r * c->x8.stride;
    float low = 0.0f, high = 0.0f, most = (float)c->kernel->x_max;
    bool finite = true;

    for (int d = 0; d < c->depth; d++) {
        low = fminf(low, x[d]);
        high = fmaxf(high, x[d]);
        finite = finite && isfinite(x[d]);
    }
    float scale = fmaxf(high / most - low / most, FLT_MIN);
    long zero = finite ? lrintf(-low / scale) : 0;
    bool good = finite ? c->x8.scale[r] == scale : (bool)isnan(c->x8.scale[r]);
    good = good && c->x8.zero[r] == zero;
    for (int d = 0; d < (int)c->x8.stride; d++) {
        long want = 0;
        if (finite && d < c->depth)
            want = lrintf(x[d] * (1.0f / scale)) + zero;
        want = want < 0 ? 0 : want > c->kernel->x_max ? c->kernel->x_max : want;
        good = good && q[d] == want;
    }
    return good;
}

// The largest sum of products of either sign that can meet in 16 bits, with x8 = 1.
static inline int int8_worst_sum(const struct gemm_int8 *g, int o)
{
    int worst = 0, span = 4 * g->kernel->quads;

    for (int d = 0; span > 0 && d < g->depth; d += span)
        for (int half = 0; half < 2; half++) {
            int up = 0, down = 0;
            for (int e = d; e < d + span && e < g->depth; e++) {
                int w = e % 4 / 2 == half ? int8_weight(g, o, e) : 0;
                up += w > 0 ? w : 0;
                down -= w < 0 ? w : 0;
            }
            worst = up > worst ? up : worst;
            worst = down > worst ? down : worst;
        }
    return worst;
}

// Column o: each weight is the nearest number of steps, none larger than the kernel can take; the
// steps are as fine as that allows, but for 2 %.
static inline bool int8_check_column(const struct int8_case *c, int o)
{
    const struct gemm_int8_kernel *k = c->kernel;
    const float *w = c->w + (size_t)o * c->w_stride;
    double scale = (double)c->g.scale[o];
    int sum = 0, most = 0, worst = int8_worst_sum(&c->g, o);
    bool good = true, some = false;

    for (int d = 0; d < c->depth; d++) {
        int q = int8_weight(&c->g, o, d);
        sum += q;
        most = abs(q) > most ? abs(q) : most;
        some = some || w[d] != 0.0f;
        good = good && fabs(q * scale - (double)w[d]) <= 0.5000001 * scale;
    }
    good = good && c->g.sum[o] == sum && most <= k->weight_max &&
           worst * k->x_max <= INT16_MAX;
    return good &&
           (!some || most == k->weight_max || worst * k->x_max > INT16_MAX * 95 / 100);
}

// *exact: what float weights and rows would give, but for GELU; *bound: how far from it rounding may
// lead.
static inline float int8_twin(const struct int8_case *c, int r, int o, double *exact,
                              double *bound)
{
    const float *x = c->x + (size_t)r * c->x_stride, *w = c->w + (size_t)o * c->w_stride;
    const struct gemm_finish *f = &c->finish;
    double sx = (double)c->x8.scale[r], sw = (double)c->g.scale[o], size = 0.0;
    int64_t sum = 0;

    *exact = *bound = 0.0;
    for (int d = 0; d < c->depth; d++) {
        int q = c->x8.q[(size_t)r * c->x8.stride + (size_t)d];
        sum += (int64_t)(q - c->x8.zero[r]) * int8_weight(&c->g, o, d);
        *exact += (double)x[d] * (double)w[d];
        size += fabs((double)x[d] * (double)w[d]);
        *bound +=
            0.5 * sw * fabs((double)x[d]) + 1.001 * sx * (fabs((double)w[d]) + 0.5 * sw);
    }
    float v = (float)sum * (c->x8.scale[r] * c->g.scale[o]), more[3] = {0};
    more[0] = f->bias ? f->bias[o] : 0.0f;
    if (f->table && o < f->table_columns)
        more[1] = f->table[(size_t)r * f->table_stride + (size_t)o];
    more[2] = f->accumulate ? c->y0[(size_t)r * c->y_stride + (size_t)o] : 0.0f;
    for (int i = 0; i < 3; i++) {
        v += more[i];
        *exact += (double)more[i];
    }
    *bound += 1e-6 * (size + 4.0);
    if (f->f == ACTIVATION_RELU) {
        *exact = *exact < 0.0 ? 0.0 : *exact;
        return v < 0.0f ? 0.0f : v;
    }
    activation_apply(f->f, &v, 1, 1, 1);
    return v;
}

// ---- checks -----------------------------------------------------------------------------

static inline bool int8_wrong(const struct int8_case *c, const char *what, int r, int o)
{
    fprintf(stderr, "%s: %d rows, depth %d, out %d: %s (%d, %d) is wrong\n",
            c->kernel->name, c->rows, c->depth, c->out, what, r, o);
    return false;
}

// All rows and columns of y must be the twin's to the bit, what lies around what it was.
static inline bool int8_case_check(const struct int8_case *c, const float *y)
{
    for (int r = 0; r < c->rows; r++)
        for (int o = 0; o < (int)c->y_stride; o++) {
            size_t at = (size_t)r * c->y_stride + (size_t)o;
            double exact = 0.0, bound = INFINITY;
            float want = o < c->out ? int8_twin(c, r, o, &exact, &bound) : c->y0[at];
            if (memcmp(&y[at], &want, sizeof want) != 0)
                return int8_wrong(c, "value", r, o);
            if (c->finish.f != ACTIVATION_GELU && !(fabs(exact - (double)want) <= bound))
                return int8_wrong(c, "distance of", r, o);
        }
    return true;
}

// By one call, and once more in four shares.
static inline bool int8_case_products(const struct int8_case *c, struct gemm_random *rng)
{
    size_t n = (size_t)c->rows * c->y_stride;
    float *y = gemm_values(rng, n, c->y_skew);
    int panels = gemm_int8_panels(c->kernel, c->out), row = gemm_between(rng, 0, c->rows);
    int panel = gemm_between(rng, 0, panels);

    memcpy(y, c->y0, n * sizeof *y);
    gemm_int8_run(&c->g, &c->x8, 0, c->rows, 0, panels, y, c->y_stride, &c->finish);
    bool good = int8_case_check(c, y);
    memcpy(y, c->y0, n * sizeof *y);
    for (int i = 0; i < 4; i++)
        gemm_int8_run(&c->g, &c->x8, i % 2 ? row : 0, i % 2 ? c->rows : row,
                      i / 2 ? panel : 0, i / 2 ? panels : panel, y, c->y_stride,
                      &c->finish);
    good = good && int8_case_check(c, y);
    gemm_free(y, c->y_skew);
    return good;
}

static inline bool int8_case_run(struct int8_case *c, struct gemm_random *rng)
{
    int8_case_prepare(c);
    for (int r = 0; r < c->rows; r++)
        if (!int8_check_row(c, r))
            return int8_wrong(c, "row", r, 0);
    for (int o = 0; o < c->out; o++)
        if (!int8_check_column(c, o))
            return int8_wrong(c, "column", 0, o);
    return int8_case_products(c, rng);
}

// A random case of sizes that fit no tile. false: it came out wrong.
static inline bool int8_case_random(const struct gemm_int8_kernel *k,
                                    struct gemm_random *r, int rows, int out, int depth)
{
    struct int8_case c;

    int8_case_open(&c, k, r, rows, out, depth);
    bool good = int8_case_run(&c, r);
    int8_case_close(&c);
    return good;
}

#endif
