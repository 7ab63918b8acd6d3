#include "policy/kernels/gemm.h"

#include "policy/kernels/gemm_priv.h"

// Of x, read again for every panel: half of the smallest second-level cache we expect (Zen 3: 512
// KiB), the other half is the panel's.
#define BLOCK_FLOATS (256 * 1024 / sizeof(float))
// However long the rows: the panel, which is read once per block, must pay, too.
#define BLOCK_ROWS_MIN 96

const struct gemm_kernel *gemm_kernel_of(enum cpu_isa isa)
{
    switch (isa) {
    case CPU_GENERIC:
        return &gemm_generic;
#ifdef __x86_64__
    case CPU_AVX2:
        return &gemm_avx2;
    case CPU_AVX512:
        return &gemm_avx512;
#endif
#ifdef __aarch64__
    case CPU_NEON:
        return &gemm_neon;
#endif
    default:
        return NULL;
    }
}

int gemm_panels(const struct gemm_kernel *k, int out)
{
    return (out + k->nr - 1) / k->nr;
}

size_t gemm_floats(const struct gemm_kernel *k, int depth, int out)
{
    return (size_t)gemm_panels(k, out) * (size_t)depth * (size_t)k->nr;
}

void gemm_pack(const struct gemm *g, int column, int n, const float *w, size_t w_stride)
{
    size_t depth = (size_t)g->depth, nr = (size_t)g->kernel->nr;

    for (size_t c = (size_t)column; c < (size_t)column + (size_t)n; c++, w += w_stride) {
        float *to = g->panel + c / nr * depth * nr + c % nr;
        for (size_t k = 0; k < depth; k++)
            to[k * nr] = w[k];
    }
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

struct gemm_finish gemm_finish_at(const struct gemm_finish *f, int row, int column,
                                  int columns)
{
    struct gemm_finish at = *f;

    at.table_columns = f->table ? least(f->table_columns - column, columns) : 0;
    at.table =
        at.table_columns > 0 ? f->table + (size_t)row * f->table_stride + column : NULL;
    at.bias = f->bias ? f->bias + column : NULL;
    at.f = f->f == ACTIVATION_GELU ? ACTIVATION_NONE : f->f;
    return at;
}

// All rows [row, row + rows) of one panel. GELU is 60 operations per value: it may as well have a
// pass of its own, while the values lie in the first-level cache.
static void one_panel(const struct gemm *g, const struct gemm_rows *x, int row, int rows,
                      int index, float *y, size_t y_stride,
                      const struct gemm_finish *finish)
{
    const struct gemm_kernel *k = g->kernel;
    int column = index * k->nr, columns = least(g->out - column, k->nr);
    struct gemm_rows from = *x;
    struct gemm_finish at = gemm_finish_at(finish, row, column, columns);
    float *to = y + (size_t)row * y_stride + column;

    from.x += (size_t)row * x->row;
    k->panel(&from, rows, g->panel + (size_t)column * (size_t)g->depth, columns, to,
             y_stride, &at);
    if (finish->f == ACTIVATION_GELU)
        activation_apply(ACTIVATION_GELU, to, rows, columns, (int)y_stride);
}

// Rows that are read for one panel after the other: blocks of nearly the same size, whole tiles.
// What a row adds to the memory that is read is less than its depth when rows overlap.
static int block_rows(const struct gemm *g, const struct gemm_rows *x, int rows)
{
    size_t fresh = x->row < (size_t)x->length ? x->row : (size_t)x->length;
    size_t fit = BLOCK_FLOATS / (fresh * (size_t)x->runs + 1);
    int most = fit < BLOCK_ROWS_MIN ? BLOCK_ROWS_MIN
               : fit < (size_t)rows ? (int)fit
                                    : rows;
    int blocks = (rows + most - 1) / most, mr = g->kernel->mr;

    return ((rows + blocks - 1) / blocks + mr - 1) / mr * mr;
}

void gemm_terms(const struct gemm_kernel *k, const struct gemm_term *term, int terms,
                size_t row, int rows, int columns, float *y, size_t y_stride,
                bool accumulate)
{
    if (k->terms) {
        k->terms(term, terms, row, rows, columns, y, y_stride, accumulate);
        return;
    }
    for (int i = 0; i < terms; i++) {
        struct gemm_rows x = gemm_plain_rows(term[i].x, row, term[i].depth);
        const struct gemm_finish finish = {.accumulate = accumulate || i > 0,
                                           .f = ACTIVATION_NONE};
        k->panel(&x, rows, term[i].panel, columns, y, y_stride, &finish);
    }
}

void gemm_run(const struct gemm *g, const struct gemm_rows *x, int row0, int row1,
              int panel0, int panel1, float *y, size_t y_stride,
              const struct gemm_finish *finish)
{
    if (row0 >= row1)
        return;
    int block = block_rows(g, x, row1 - row0);
    for (int r = row0; r < row1; r += block)
        for (int p = panel0; p < panel1; p++)
            one_panel(g, x, r, least(block, row1 - r), p, y, y_stride, finish);
}
