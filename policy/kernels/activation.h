// activation: the non-linear functions between two layers, over part of a matrix.
#ifndef ACTD_KERNELS_ACTIVATION_H
#define ACTD_KERNELS_ACTIVATION_H

enum activation {
    ACTIVATION_NONE,
    ACTIVATION_RELU, // max(x, 0); a NaN stays
    ACTIVATION_GELU, // x/2 (1 + erf(x / sqrt 2)), the exact one of torch's default
};

// infer. x (rows, cols) in place, rows `stride` floats apart.
void activation_apply(enum activation f, float *x, int rows, int cols, int stride);

#endif
