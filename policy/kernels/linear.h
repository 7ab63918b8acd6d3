// linear: the fully connected layer y = f(x W^T + b + T + y) on OpenBLAS, one BLAS thread
// per worker. The added terms are written into y first and the product is accumulated
// onto them, which costs no pass of its own: sgemm would otherwise write zeros there.
#ifndef ACTD_KERNELS_LINEAR_H
#define ACTD_KERNELS_LINEAR_H

#include <stdbool.h>

#include "policy/kernels/activation.h"
#include "policy/pool.h"

struct linear {
    int in, out;
    float *weight; // (out, in), as PyTorch stores it
    float *bias;   // (out) or NULL
};

// What besides the product goes into y.
struct linear_extra {
    const float *table; // (rows, table_cols): T, added to the first table_cols columns
    int table_cols;     // at most `out`
    bool accumulate;    // y's old content is added too: the residual connection
    enum activation f;
};

// infer.
//   x  (rows, in)
//   y  (rows, out); must not overlap x
void linear_run(struct pool *pool, const struct linear *l, const float *x, int rows,
                float *y, struct linear_extra extra);

#endif
