// The kernel of gemm.h by OpenBLAS: a panel (depth, nr) is a matrix as cblas_sgemm wants it, with
// 64 columns, at which its own packing costs 10 %. For machines that it knows kernels for and we do
// not (kernels.c). Holds OpenBLAS's lock around its table of buffers for some 50 ns per product.
#include <cblas.h>

#include "policy/kernels/gemm_priv.h"
#include "policy/kernels/vec.h"

#define MR 8 // nothing but how finely work is shared out

// OpenBLAS's kernels for AVX leave the upper halves of registers in use, and the SSE code of all
// the others then waits for them: it took 2.4 times as long.
static void zero_upper(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx"))
        __asm__ volatile("vzeroupper");
#endif
}

// y = x b (+ y)
static void product(const float *x, size_t row, int rows, int depth, const float *b,
                    int columns, float *y, size_t y_stride, bool add)
{
    int apart = row < (size_t)depth ? depth : (int)row; // of one row: it does not matter

    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, depth, 1.0f, x,
                apart, b, GEMM_MAX_NR, add ? 1.0f : 0.0f, y, (int)y_stride);
}

// A run at a time; of rows that overlap (OpenBLAS wants them apart), as much as lies between two.
static void products(const struct gemm_rows *x, int rows, const float *b, int columns,
                     float *y, size_t y_stride, bool add)
{
    int most = rows > 1 && x->row < (size_t)x->length ? (int)x->row : x->length;

    for (int s = 0; s < x->runs; s++)
        for (int k = 0, n; k < x->length; k += n, add = true) {
            n = x->length - k < most ? x->length - k : most;
            product(x->x + (size_t)s * x->run + k, x->row, rows, n, b, columns, y,
                    y_stride, add);
            b += (size_t)n * GEMM_MAX_NR;
        }
}

// One row: what is added to the sums, then f. Lanes of 4, then what is left.
static void finish_row(const struct gemm_finish *f, const float *table, int columns,
                       float *y)
{
    int c = 0, tables = table ? f->table_columns : 0;
    bool relu = f->f == ACTIVATION_RELU;

    for (int i = 0; i < tables; i++)
        y[i] += table[i];
    for (; c + 4 <= columns; c += 4) {
        v4f v = v4_load(y + c);
        v = f->bias ? v + v4_load(f->bias + c) : v;
        v4_store(y + c, relu ? v4_select(v < v4_splat(0.0f), v4_splat(0.0f), v) : v);
    }
    for (; c < columns; c++) {
        float v = f->bias ? y[c] + f->bias[c] : y[c];
        y[c] = relu && v < 0.0f ? 0.0f : v;
    }
}

static void all_rows(const struct gemm_rows *x, int rows, const float *panel, int columns,
                     float *y, size_t y_stride, const struct gemm_finish *f)
{
    products(x, rows, panel, columns, y, y_stride, f->accumulate);
    zero_upper();
    if (!f->bias && !f->table && f->f == ACTIVATION_NONE)
        return;
    for (int r = 0; r < rows; r++)
        finish_row(f, f->table ? f->table + (size_t)r * f->table_stride : NULL, columns,
                   y + (size_t)r * y_stride);
}

const struct gemm_kernel gemm_blas = {CPU_GENERIC, MR, GEMM_MAX_NR, all_rows, NULL};
