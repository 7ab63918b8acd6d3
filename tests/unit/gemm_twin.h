// gemm_twin: the product as in a textbook, one value after the other, with the same operations in
// the same order as gemm.h promises: it must come out the same to the bit. And a random case of it,
// without cmocka, so that it runs under an emulator, too.
#ifndef ACTD_TEST_GEMM_TWIN_H
#define ACTD_TEST_GEMM_TWIN_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/kernels/gemm.h"

struct gemm_random {
    uint64_t state;
};

static inline uint32_t gemm_next(struct gemm_random *r)
{
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(r->state >> 33);
}

static inline int gemm_between(struct gemm_random *r, int low, int high)
{
    return low + (int)(gemm_next(r) % (uint32_t)(high - low + 1));
}

// n values in [-1, 1), `skew` floats (0 to 15) behind a multiple of 64 bytes; gemm_free.
static inline float *gemm_values(struct gemm_random *r, size_t n, size_t skew)
{
    float *v = aligned_alloc(64, (n + skew + 15) / 16 * 64);

    if (!v)
        exit(3);
    for (size_t i = 0; i < n + skew; i++)
        v[i] = (float)(gemm_next(r) & 0xffff) / 32768.0f - 1.0f;
    return v + skew;
}

static inline void gemm_free(float *v, size_t skew)
{
    free(v - skew);
}

struct gemm_case {
    const struct gemm_kernel *kernel;
    struct gemm_rows x;
    int rows, out;
    size_t w_stride, y_stride;
    struct gemm_finish finish;
    float *x0, *w, *y0; // owned: all of x, the weights (out, w_stride), y as it was
    float *bias, *table;
    size_t x_skew, y_skew;
};

static inline float gemm_twin_product(const struct gemm_case *c, int r, int o,
                                      double *exact)
{
    float sum = 0.0f;
    const float *w = c->w + (size_t)o * c->w_stride;

    *exact = 0.0;
    for (int s = 0; s < c->x.runs; s++)
        for (int k = 0; k < c->x.length; k++, w++) {
            float x = c->x.x[(size_t)r * c->x.row + (size_t)s * c->x.run + (size_t)k];
            sum = c->kernel->isa == CPU_GENERIC ? sum + x * *w : fmaf(x, *w, sum);
            *exact += (double)x * (double)*w;
        }
    return sum;
}

// *exact: the same in double, but for GELU.
static inline float gemm_twin(const struct gemm_case *c, int r, int o, double *exact)
{
    const struct gemm_finish *f = &c->finish;
    float v = gemm_twin_product(c, r, o, exact),
          y = c->y0[(size_t)r * c->y_stride + (size_t)o];

    if (f->bias) {
        v += f->bias[o];
        *exact += (double)f->bias[o];
    }
    if (f->table && o < f->table_columns) {
        float t = f->table[(size_t)r * f->table_stride + (size_t)o];
        v += t;
        *exact += (double)t;
    }
    if (f->accumulate) {
        v += y;
        *exact += (double)y;
    }
    if (f->f == ACTIVATION_RELU) {
        v = v < 0.0f ? 0.0f : v;
        *exact = *exact < 0.0 ? 0.0 : *exact;
    } else {
        activation_apply(f->f, &v, 1, 1, 1);
    }
    return v;
}

static inline void gemm_case_open(struct gemm_case *c, const struct gemm_kernel *k,
                                  struct gemm_random *r, int rows, int out, int runs,
                                  int length)
{
    size_t slack = (size_t)gemm_between(r, 0, 9), depth = (size_t)(runs * length);
    bool overlap = runs > 1 && gemm_next(r) % 2;

    *c = (struct gemm_case){.kernel = k, .rows = rows, .out = out};
    c->x_skew = gemm_next(r) % 16;
    c->y_skew = gemm_next(r) % 16;
    c->x.row = overlap    ? 1 + (size_t)length / 2
               : runs > 1 ? (size_t)length + slack
                          : depth + slack;
    c->x.runs = runs;
    c->x.length = length;
    c->x.run = runs > 1 ? c->x.row * (size_t)rows + (size_t)length + slack : 0;
    c->x0 = gemm_values(r, c->x.run * (size_t)runs + c->x.row * (size_t)rows + depth,
                        c->x_skew);
    c->x.x = c->x0;
    c->w_stride = depth + (size_t)gemm_between(r, 0, 3);
    c->w = gemm_values(r, (size_t)out * c->w_stride, 0);
    c->y_stride = (size_t)(out + gemm_between(r, 0, 20));
    c->y0 = gemm_values(r, (size_t)rows * c->y_stride, 0);
    c->bias = gemm_values(r, (size_t)out, 0);
    c->finish.table_columns = gemm_between(r, 1, out);
    c->finish.table_stride = (size_t)c->finish.table_columns + slack;
    c->table = gemm_values(r, (size_t)rows * c->finish.table_stride, 0);
    c->finish.bias = gemm_next(r) % 2 ? c->bias : NULL;
    c->finish.table = gemm_next(r) % 2 ? c->table : NULL;
    c->finish.accumulate = gemm_next(r) % 2;
    c->finish.f = (enum activation)(gemm_next(r) % 3);
}

static inline void gemm_case_close(struct gemm_case *c)
{
    gemm_free(c->x0, c->x_skew);
    free(c->w);
    free(c->y0);
    free(c->bias);
    free(c->table);
}

// The packed weights, put together of two tensors; free().
static inline struct gemm gemm_case_pack(const struct gemm_case *c)
{
    struct gemm g = {c->x.runs * c->x.length, c->out, c->kernel, NULL};
    size_t bytes = gemm_floats(c->kernel, g.depth, g.out) * sizeof(float);
    int first = c->out / 3;

    g.panel =
        aligned_alloc(GEMM_ALIGN, (bytes + GEMM_ALIGN - 1) / GEMM_ALIGN * GEMM_ALIGN);
    if (!g.panel)
        exit(3);
    memset(g.panel, 0, bytes);
    gemm_pack(&g, 0, first, c->w, c->w_stride);
    gemm_pack(&g, first, c->out - first, c->w + (size_t)first * c->w_stride, c->w_stride);
    return g;
}

// Rows [row0, row1) of all columns must be the twin's, whatever lies around what it was. false, and
// says what on stderr: it is not.
static inline bool gemm_case_check(const struct gemm_case *c, const float *y, int row0,
                                   int row1)
{
    double depth = c->x.runs * c->x.length;

    for (int r = 0; r < c->rows; r++)
        for (int o = 0; o < (int)c->y_stride; o++) {
            size_t at = (size_t)r * c->y_stride + (size_t)o;
            bool ours = o < c->out && r >= row0 && r < row1;
            double exact = (double)y[at];
            float want = ours ? gemm_twin(c, r, o, &exact) : c->y0[at];
            if (c->finish.f == ACTIVATION_GELU)
                exact = (double)want;
            if (memcmp(&y[at], &want, sizeof want) == 0 &&
                fabs(exact - (double)want) < 1e-7 * (4.0 + depth))
                continue;
            fprintf(
                stderr,
                "%s: %d rows, %d runs of %d, out %d: (%d, %d) is %.9g, not %.9g (%.9g)\n",
                cpu_isa_name(c->kernel->isa), c->rows, c->x.runs, c->x.length, c->out, r,
                o, (double)y[at], (double)want, exact);
            return false;
        }
    return true;
}

// All of it by one call, and once more in four shares. false: it came out wrong.
static inline bool gemm_case_run(const struct gemm_case *c, struct gemm_random *rng)
{
    struct gemm g = gemm_case_pack(c);
    size_t n = (size_t)c->rows * c->y_stride;
    float *y = gemm_values(rng, n, c->y_skew);
    int panels = gemm_panels(c->kernel, c->out), row = gemm_between(rng, 0, c->rows);
    int panel = gemm_between(rng, 0, panels);
    bool good;

    memcpy(y, c->y0, n * sizeof *y);
    gemm_run(&g, &c->x, 0, c->rows, 0, panels, y, c->y_stride, &c->finish);
    good = gemm_case_check(c, y, 0, c->rows);
    memcpy(y, c->y0, n * sizeof *y);
    for (int i = 0; i < 4; i++)
        gemm_run(&g, &c->x, i % 2 ? row : 0, i % 2 ? c->rows : row, i / 2 ? panel : 0,
                 i / 2 ? panels : panel, y, c->y_stride, &c->finish);
    good = good && gemm_case_check(c, y, 0, c->rows);
    gemm_free(y, c->y_skew);
    free(g.panel);
    return good;
}

// A random case of sizes that fit no tile. false: it came out wrong.
static inline bool gemm_case_random(const struct gemm_kernel *k, struct gemm_random *r,
                                    int rows, int out, int runs, int length)
{
    struct gemm_case c;

    gemm_case_open(&c, k, r, rows, out, runs, length);
    bool good = gemm_case_run(&c, r);
    gemm_case_close(&c);
    return good;
}

#endif
