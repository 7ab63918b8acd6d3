#include "policy/kernels/linear.h"

#include "policy/kernels/split.h"

size_t linear_bytes(const struct linear *l)
{
    // To choose asks the processor, which a hypervisor answers in 25 us.
    const struct gemm_int8_kernel *k8 = l->int8.kernel;

    switch (l->precision) {
    case PRECISION_BF16:
        return gemm_bf16_bytes(gemm_kernel(), l->in, l->out);
    case PRECISION_INT8:
        return gemm_int8_bytes(k8 ? k8 : gemm_int8_kernel(), l->in, l->out);
    default:
        return gemm_floats(gemm_kernel(), l->in, l->out) * sizeof(float);
    }
}

void linear_place(struct linear *l, void *memory)
{
    switch (l->precision) {
    case PRECISION_BF16:
        l->bf16 = (struct gemm_bf16){l->in, l->out, gemm_kernel(), memory};
        break;
    case PRECISION_INT8:
        l->int8 = (struct gemm_int8){
            .depth = l->in, .out = l->out, .kernel = gemm_int8_kernel()};
        if (memory)
            gemm_int8_place(&l->int8, memory);
        break;
    default:
        l->weight = (struct gemm){l->in, l->out, gemm_kernel(), memory};
    }
}

void linear_pack(const struct linear *l, int column, int n, const float *w,
                 size_t w_stride)
{
    switch (l->precision) {
    case PRECISION_BF16:
        gemm_bf16_pack(&l->bf16, column, n, w, w_stride);
        break;
    case PRECISION_INT8:
        gemm_int8_pack(&l->int8, column, n, w, w_stride);
        break;
    default:
        gemm_pack(&l->weight, column, n, w, w_stride);
    }
}

size_t linear_room_bytes(enum precision p, int rows, int depth, int workers)
{
    switch (p) {
    case PRECISION_BF16:
        return (size_t)workers * GEMM_BF16_SCRATCH * sizeof(float);
    case PRECISION_INT8:
        return gemm_int8_rows_bytes(rows, depth);
    default:
        return 0;
    }
}

struct job {
    const struct linear *l;
    struct gemm_rows x;
    struct gemm_int8_rows x8;
    float *y; // (rows, y_stride)
    size_t y_stride;
    int rows;
    struct gemm_finish finish;
};

// Tiles of mr rows by one panel, shared out among the workers; none of them.
static bool share(const struct job *j, int mr, int nr, int worker, int workers,
                  struct split_block *b)
{
    *b = split_tiles(j->rows, mr, (j->l->out + nr - 1) / nr, worker, workers);
    return b->row0 < b->row1 && b->col0 < b->col1;
}

static void float_task(void *arg, int worker, int workers)
{
    const struct job *j = arg;
    const struct linear *l = j->l;
    struct split_block b;

    if (share(j, l->weight.kernel->mr, l->weight.kernel->nr, worker, workers, &b))
        gemm_run(&l->weight, &j->x, b.row0, b.row1, b.col0, b.col1, j->y, j->y_stride,
                 &j->finish);
}

static void bf16_task(void *arg, int worker, int workers)
{
    const struct job *j = arg;
    const struct linear *l = j->l;
    float *scratch = (float *)l->room->memory + (size_t)worker * GEMM_BF16_SCRATCH;
    struct split_block b;

    if (share(j, l->bf16.kernel->mr, l->bf16.kernel->nr, worker, workers, &b))
        gemm_bf16_run(&l->bf16, &j->x, b.row0, b.row1, b.col0, b.col1, j->y, j->y_stride,
                      &j->finish, scratch);
}

static void quantise_task(void *arg, int worker, int workers)
{
    const struct job *j = arg;
    size_t begin, end;

    pool_share((size_t)j->rows, worker, workers, &begin, &end);
    gemm_int8_quantise(j->l->int8.kernel, j->x.x, j->x.row, j->l->in, (int)begin,
                       (int)end, &j->x8);
}

static void int8_task(void *arg, int worker, int workers)
{
    const struct job *j = arg;
    const struct linear *l = j->l;
    struct split_block b;

    if (share(j, l->int8.kernel->mr, l->int8.kernel->nr, worker, workers, &b))
        gemm_int8_run(&l->int8, &j->x8, b.row0, b.row1, b.col0, b.col1, j->y, j->y_stride,
                      &j->finish);
}

void linear_run(struct pool *pool, const struct linear *l, const float *x, int rows,
                float *y, struct linear_extra extra)
{
    int table_stride = extra.table_stride ? extra.table_stride : extra.table_cols;
    struct job j = {.l = l,
                    .x = gemm_plain_rows(x, (size_t)l->in, l->in),
                    .y = y,
                    .y_stride = (size_t)(extra.y_stride ? extra.y_stride : l->out),
                    .rows = rows,
                    .finish = {.bias = l->bias,
                               .table = extra.table,
                               .table_stride = (size_t)table_stride,
                               .table_columns = extra.table_cols,
                               .accumulate = extra.accumulate,
                               .f = extra.f}};

    if (l->precision == PRECISION_INT8) {
        j.x8 = gemm_int8_rows_in(l->room->memory, rows, l->in);
        pool_run(pool, quantise_task, &j);
    }
    pool_run(pool,
             l->precision == PRECISION_INT8   ? int8_task
             : l->precision == PRECISION_BF16 ? bf16_task
                                              : float_task,
             &j);
}
