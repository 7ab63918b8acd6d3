#include "policy/kernels/activation.h"

#include <math.h>
#include <stddef.h>

#include "policy/kernels/vec.h"

static void relu_row(float *x, int n)
{
    const v4f zero = v4_splat(0.0f);
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        v4f v = v4_load(x + i);
        v4_store(x + i, v4_select(v < zero, zero, v));
    }
    for (; i < n; i++)
        x[i] = x[i] < 0.0f ? 0.0f : x[i];
}

static void gelu_row(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678118654752f));
}

void activation_apply(enum activation f, float *x, int rows, int cols, int stride)
{
    if (f == ACTIVATION_NONE)
        return;
    for (int r = 0; r < rows; r++) {
        float *row = x + (size_t)r * (size_t)stride;
        if (f == ACTIVATION_RELU)
            relu_row(row, cols);
        else
            gelu_row(row, cols);
    }
}
