// gemm_int8: the product of gemm.h in 8-bit numbers. A column of weights has one scale for all
// observations, w = scale w8; a row of x gets its own when it comes, x = scale (x8 - zero), x8
// unsigned. With whole numbers exact sums are cheap, so that
//
//   y = f(scale_row scale_column (sum x8 w8 - zero_row sum w8) + bias + table + y)
//
// has the same bits for any split, and (where weight_max, x_max and quads are the same) for any
// instruction set. Panels hold four depths of each column, a quad, side by side: (quads, nr, 4).
//
// Without a dot product of bytes, x86 multiplies them into pairs of 16 bits, which cost as much to
// widen as the product itself; so the products of two quads are added there. Sums that 16 bits
// might not hold can not occur: a column's scale is such that x_max times the positive weights of
// any four that meet there, or the negative ones, fits. Of normally distributed weights this costs
// a quarter of the range (100 of 127 steps), where limits on each weight would cost half of it.
//
// Speed as a multiple of float32's (gemm.h; Zen 5, 302 rows, 512 x 3200, rows rounded in each round)
// and RMS error of y as a share of y's: weights and rows normally distributed, rows 512 (and 3200)
// deep; the same behind ReLU; with four values of a row eight times as large:
//
//   dot product of bytes, x8 to 255, w8 to 127   3.87   1.01 (1.18) %   0.82 (0.94)   1.9 (2.2)
//   two quads,  x8 to 180, w8 as above           2.57   1.34 (1.60)     1.05 (1.22)   2.6 (3.1)
//   four quads, x8 to 144, w8 alike              2.95   1.62 (1.91)     1.25 (1.41)   3.3 (3.9)
//   two quads,  x8 to 127, w8 to 63              2.57   2.04 (2.35)     1.63 (1.91)   3.8 (4.4)
//   one quad,   x8 to 255, w8 to 63              1.99   1.65 (1.90)     1.53 (1.77)   2.3 (2.7)
//   one quad,   x8 to 127, w8 to 127             1.99   1.57 (1.84)     1.01 (1.17)   3.6 (4.2)
//
// The first two are what the kernels do.
#ifndef ACTD_KERNELS_GEMM_INT8_H
#define ACTD_KERNELS_GEMM_INT8_H

#include <stdint.h>

#include "policy/kernels/gemm.h"

// Rows of x in 8 bits. Rows are `stride` bytes apart, a multiple of 64; behind `depth` they are 0.
struct gemm_int8_rows {
    uint8_t *q; // (rows, stride)
    size_t stride;
    float *scale;  // (rows); NaN if a value was not finite: so is the result
    int32_t *zero; // (rows)
};

#define GEMM_INT8_DEPTH_MAX 65536 // whoever loads sees to it: 255 * 127 * 65536 < 2^31

// Rows [row0, row0 + rows) by one panel of `depth`, a multiple of 16; finished as in gemm.h, y and
// the table beginning at row0. `sum`, `scale` are those of these columns.
typedef void gemm_int8_panel_fn(const struct gemm_int8_rows *x, int row0, int rows,
                                int depth, const int8_t *panel, const float *scale,
                                const int32_t *sum, int columns, float *y,
                                size_t y_stride, const struct gemm_finish *finish);

struct gemm_int8_kernel {
    enum cpu_isa isa;
    const char *name; // "avx2", "avx512 vnni", ...
    bool vnni;        // needs a dot product of bytes (cpu_runs_vnni)
    int mr, nr;
    int weight_max; // weights are -weight_max ... weight_max
    int x_max;      // x8 is 0 ... x_max
    int quads; // of which products are added in 16 bits: first pairs and second pairs; 0: no such
    gemm_int8_panel_fn *panel;
    // One row, x8 = x (1 / scale) to the nearest, halves to even, + zero; 0 is exact, zeros stay
    // behind `depth`. One with a value that is not finite: zeros, scale NaN.
    void (*quantise)(const float *x, int depth, int x_max, uint8_t *q, size_t stride,
                     float *scale, int32_t *zero);
};
const struct gemm_int8_kernel *gemm_int8_kernel(void); // of cpu_chosen(); any thread
// With a dot product of bytes where cpu_use_vnni() says so. NULL: not compiled in.
const struct gemm_int8_kernel *gemm_int8_kernel_of(enum cpu_isa isa);
// All that are compiled in, from 0; NULL behind the last. For tests and benches.
const struct gemm_int8_kernel *gemm_int8_kernel_at(int i);
bool gemm_int8_runs(const struct gemm_int8_kernel *k); // on this machine

struct gemm_int8 {
    int depth, out;
    const struct gemm_int8_kernel *kernel;
    int8_t *panel; // (panels, quads, nr, 4); depth rounded up to a multiple of 16
    float *scale;  // (panels * nr)
    int32_t *sum;  // (panels * nr) of the column's weights
};

int gemm_int8_panels(const struct gemm_int8_kernel *k, int out);
size_t gemm_int8_bytes(const struct gemm_int8_kernel *k, int depth,
                       int out); // a multiple of 64
// plain. `memory` (gemm_int8_bytes, 64-byte aligned, all 0) is g's from now on.
void gemm_int8_place(struct gemm_int8 *g, void *memory);
// plain. Columns [column, column + n) from W (n, w_stride >= depth). A column with a weight that is
// not finite gives NaN.
void gemm_int8_pack(const struct gemm_int8 *g, int column, int n, const float *w,
                    size_t w_stride);

size_t gemm_int8_rows_bytes(int rows, int depth); // a multiple of 64
struct gemm_int8_rows gemm_int8_rows_in(void *memory, int rows, int depth);
// infer. Rows [row0, row1) of x into those of `to`.
void gemm_int8_quantise(const struct gemm_int8_kernel *k, const float *x, size_t x_stride,
                        int depth, int row0, int row1, const struct gemm_int8_rows *to);
// infer. As gemm_run.
void gemm_int8_run(const struct gemm_int8 *g, const struct gemm_int8_rows *x, int row0,
                   int row1, int panel0, int panel1, float *y, size_t y_stride,
                   const struct gemm_finish *finish);

#endif
