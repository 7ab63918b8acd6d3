// activation: the non-linear functions between two layers, over part of a matrix.
#ifndef ACTD_KERNELS_ACTIVATION_H
#define ACTD_KERNELS_ACTIVATION_H

#include "policy/kernels/cpu.h"

enum activation {
    ACTIVATION_NONE,
    ACTIVATION_RELU, // max(x, 0); a NaN stays
    ACTIVATION_GELU, // x/2 (1 + erf(x / sqrt 2)), the exact one of torch's default
};

// infer. x (rows, cols) in place, rows `stride` floats apart. Which kernel: that of
// cpu_chosen().
void activation_apply(enum activation f, float *x, int rows, int cols, int stride);

// By instruction set; for tests and benches, too. NULL: not compiled in.
struct activation_kernel {
    enum cpu_isa isa;
    void (*relu)(float *x, int n); // in place
    void (*gelu)(float *x, int n);
};
const struct activation_kernel *activation_kernel_of(enum cpu_isa isa);

extern const struct activation_kernel activation_generic, activation_avx2,
    activation_avx512, activation_neon;

#endif
