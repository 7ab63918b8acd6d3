// gemm: the product of many rows with a matrix of weights that never changes. OpenBLAS packs both
// matrices anew on every call, which at 100 rows costs as much as the product itself, and does not
// win with more: from 300 rows up these kernels are 1.02 to 1.07 times as fast as its kernels for
// AVX2, with AVX-512 1.95 to 2.1 times (Zen 5, bench_kernels). Here the weights are packed once, at
// load, in the order in which the kernel reads them:
//
//   panel p holds columns [p * nr, (p + 1) * nr) of B = W^T as (depth, nr), zeros behind the last
//
// and the rows are read where they lie: a row may be one run of floats (a fully connected layer)
// or several that lie apart (the three lines under a 3x3 kernel), so that a convolution needs no
// copy of its patches. A kernel computes tiles of mr rows by one panel with all sums in registers;
// mr and nr are the kernel's. The sum runs in one order, from depth 0 up, whatever the split: the
// same bits for any number of threads.
#ifndef ACTD_KERNELS_GEMM_H
#define ACTD_KERNELS_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/kernels/activation.h"
#include "policy/kernels/cpu.h"

#define GEMM_MAX_MR 16
#define GEMM_MAX_NR 64 // whoever sizes memory for all kernels
#define GEMM_ALIGN  64 // bytes; of panels

// Row r, value k of run s: x[r * row + s * run + k], k < length, s < runs.
struct gemm_rows {
    const float *x;
    size_t row;
    int runs, length; // depth = runs * length
    size_t run;
};
static inline struct gemm_rows gemm_plain_rows(const float *x, size_t row, int depth)
{
    return (struct gemm_rows){x, row, 1, depth, 0};
}

// What happens to a tile before it is stored: y = f(sum + bias + table + y).
struct gemm_finish {
    const float *bias;  // by column, or NULL
    const float *table; // (rows, table_stride): added to the first table_columns; or NULL
    size_t table_stride;
    int table_columns;
    bool accumulate; // y's old content is added, too
    enum activation f;
};

// y (rows, y_stride)[0, columns) = finish(x * panel). rows: any number, mr at a time; columns <=
// nr: no more are stored. finish is that of these columns; its f is NONE or RELU.
typedef void gemm_panel_fn(const struct gemm_rows *x, int rows, const float *panel,
                           int columns, float *y, size_t y_stride,
                           const struct gemm_finish *finish);

// Rows x + r * row of `depth` floats by as many of a panel.
struct gemm_term {
    const float *x;
    int depth;
    const float *panel;
    const float *next; // as deep a part of a panel, asked for meanwhile; not read
};

// y (rows, y_stride)[0, columns) = sum of terms (+ y): each of them a sum of its own, added to
// those before it, the first to y, if accumulate. More than 256 deep, all together, do not
// stay in the first-level cache.
typedef void gemm_terms_fn(const struct gemm_term *term, int terms, size_t row, int rows,
                           int columns, float *y, size_t y_stride, bool accumulate);

struct gemm_kernel {
    enum cpu_isa isa;
    int mr, nr;
    gemm_panel_fn *panel;
    gemm_terms_fn *terms; // or NULL: gemm_terms goes through panel
};
const struct gemm_kernel *
gemm_kernel(void); // of cpu_chosen(), or OpenBLAS (kernels.h). Any thread
const struct gemm_kernel *gemm_kernel_of(enum cpu_isa isa); // NULL: not compiled in
const char *gemm_kernel_name(const struct gemm_kernel *k);  // "avx2", …, "openblas"

// A matrix of weights, packed. Its first columns are a matrix, too: the same with a smaller `out`.
struct gemm {
    int depth, out;
    const struct gemm_kernel *kernel;
    float *panel; // (panels, depth, nr)
};

int gemm_panels(const struct gemm_kernel *k, int out);
size_t gemm_floats(const struct gemm_kernel *k, int depth,
                   int out); // that the panels take
// plain. Columns [column, column + n) of the packed matrix from W (n, w_stride >= depth), PyTorch's
// (out, in): for matrices that are put together of several tensors. The rest stays as it is: 0.
void gemm_pack(const struct gemm *g, int column, int n, const float *w, size_t w_stride);

// infer. Rows [row0, row1) and panels [panel0, panel1) of y = finish(x W^T): a thread's share.
// y, bias, table begin at row 0, column 0. Blocks of rows and depth are chosen so that what is
// read again stays in the cache; f may be GELU. x and y must not overlap.
void gemm_run(const struct gemm *g, const struct gemm_rows *x, int row0, int row1,
              int panel0, int panel1, float *y, size_t y_stride,
              const struct gemm_finish *finish);

// infer. By k->terms, or by k->panel, term after term: the same bits, unless k is OpenBLAS.
void gemm_terms(const struct gemm_kernel *k, const struct gemm_term *term, int terms,
                size_t row, int rows, int columns, float *y, size_t y_stride,
                bool accumulate);

#endif
