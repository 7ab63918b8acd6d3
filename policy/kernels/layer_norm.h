// layer_norm: y = (x - mean) / sqrt(variance + 1e-5) * weight + bias over each row. Two
// passes over the row (mean, then squared distances from it): one pass over x and x^2
// loses half the digits when the mean is large against the spread.
#ifndef ACTD_KERNELS_LAYER_NORM_H
#define ACTD_KERNELS_LAYER_NORM_H

#include "policy/kernels/cpu.h"
#include "policy/pool.h"

#define LAYER_NORM_EPS 1e-5f

struct layer_norm {
    int dim;
    float *weight, *bias; // (dim)
};

// infer. Which kernel: that of cpu_chosen().
//   x, y  (rows, dim); they may be the same memory
void layer_norm_run(struct pool *pool, const struct layer_norm *n, const float *x,
                    int rows, float *y);

// By instruction set; for tests and benches, too. NULL: not compiled in.
struct layer_norm_kernel {
    enum cpu_isa isa;
    void (*rows)(const struct layer_norm *n, const float *x, int rows, float *y);
};
const struct layer_norm_kernel *layer_norm_kernel_of(enum cpu_isa isa);

extern const struct layer_norm_kernel layer_norm_generic, layer_norm_avx2,
    layer_norm_avx512, layer_norm_neon;

#endif
