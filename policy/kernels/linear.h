// linear: the fully connected layer y = f(x W^T + b + T + y), on weights packed once: in float32
// (gemm.h), in 16 bits (gemm_bf16.h) or in 8 (gemm_int8.h).
#ifndef ACTD_KERNELS_LINEAR_H
#define ACTD_KERNELS_LINEAR_H

#include <stdbool.h>

#include "policy/kernels/activation.h"
#include "policy/kernels/gemm.h"
#include "policy/kernels/gemm_bf16.h"
#include "policy/kernels/gemm_int8.h"
#include "policy/kernels/precision.h"
#include "policy/pool.h"

// Working memory of layers that are not in float32, which share it: they run one at a time.
struct linear_room {
    void *memory; // linear_room_bytes, 64-byte aligned
};

struct linear {
    int in, out;
    struct gemm weight; // (out, in), packed; in float32, and the next two instead of it
    float *bias;        // (out) or NULL
    enum precision precision;
    struct gemm_bf16 bf16;
    struct gemm_int8 int8;
    const struct linear_room *room; // NULL: float32
};

// What besides the product goes into y.
struct linear_extra {
    const float *table; // (rows, table_stride): T, added to the first table_cols columns
    int table_cols;     // at most `out`
    bool accumulate;    // y's old content is added too: the residual connection
    enum activation f;
    int table_stride, y_stride; // floats from row to row; 0: table_cols, `out`
};

// plain. Bytes of l's packed weights for the chosen kernel; in, out and precision are set.
size_t linear_bytes(const struct linear *l);
// plain. `memory` (linear_bytes, 64-byte aligned, all 0) is l's from now on; NULL while measuring.
void linear_place(struct linear *l, void *memory);
// plain. Columns [column, column + n) of the packed matrix from W (n, w_stride >= in). The rest
// stays as it is: 0.
void linear_pack(const struct linear *l, int column, int n, const float *w,
                 size_t w_stride);
// plain. What layers of this precision need for at most so many rows, as deep as this.
size_t linear_room_bytes(enum precision p, int rows, int depth, int workers);

// infer. In 8 bits each row of x gets a scale of its own first. The bits are the same for any
// number of threads.
//   x  (rows, in)
//   y  (rows, y_stride), of which `out` columns are written; must not overlap x
void linear_run(struct pool *pool, const struct linear *l, const float *x, int rows,
                float *y, struct linear_extra extra);

#endif
