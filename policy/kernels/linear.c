#include "policy/kernels/linear.h"

#include <cblas.h>
#include <stddef.h>

#include "policy/kernels/split.h"
#include "policy/kernels/vec.h"

struct job {
    const struct linear *l;
    const float *x; // (rows, in)
    float *y;       // (rows, out)
    int rows;
    struct linear_extra extra;
};

static void add_row(float *y, const float *a, int n)
{
    int i = 0;
    for (; i + 4 <= n; i += 4)
        v4_store(y + i, v4_load(y + i) + v4_load(a + i));
    for (; i < n; i++)
        y[i] += a[i];
}

// Columns [col0, col1) of row r of y before the product is added.
static void start_row(const struct job *j, int r, int col0, int col1)
{
    float *y = j->y + (size_t)r * (size_t)j->l->out + col0;
    int n = col1 - col0;
    if (!j->extra.accumulate && j->l->bias)
        memcpy(y, j->l->bias + col0, (size_t)n * sizeof *y);
    else if (!j->extra.accumulate)
        memset(y, 0, (size_t)n * sizeof *y);
    else if (j->l->bias)
        add_row(y, j->l->bias + col0, n);
    if (j->extra.table && col0 < j->extra.table_cols) {
        int end = col1 < j->extra.table_cols ? col1 : j->extra.table_cols;
        add_row(y, j->extra.table + (size_t)r * (size_t)j->extra.table_cols + col0,
                end - col0);
    }
}

static void linear_task(void *arg, int worker, int workers)
{
    const struct job *j = arg;
    struct split_block b = split_block(j->rows, j->l->out, worker, workers);
    int rows = b.row1 - b.row0, cols = b.col1 - b.col0, in = j->l->in, out = j->l->out;
    if (rows <= 0 || cols <= 0)
        return;
    for (int r = b.row0; r < b.row1; r++)
        start_row(j, r, b.col0, b.col1);
    float *y = j->y + (size_t)b.row0 * (size_t)out + b.col0;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, cols, in, 1.0f,
                j->x + (size_t)b.row0 * (size_t)in, in,
                j->l->weight + (size_t)b.col0 * (size_t)in, in, 1.0f, y, out);
    activation_apply(j->extra.f, y, rows, cols, out);
}

void linear_run(struct pool *pool, const struct linear *l, const float *x, int rows,
                float *y, struct linear_extra extra)
{
    struct job j = {.l = l, .x = x, .y = y, .rows = rows, .extra = extra};
    pool_run(pool, linear_task, &j);
}
