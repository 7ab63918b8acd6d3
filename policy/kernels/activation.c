#include "policy/kernels/activation.h"

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

// x/2 erfc(-x/sqrt 2), taken from the side where nothing cancels. libm's erff would take
// a tenth of a whole inference: it is called four million times for one camera.
static v4f gelu(v4f x)
{
    const v4f zero = v4_splat(0.0f);
    v4i negative = x < zero;
    v4f tail = v4_erfc_nonnegative(v4_select(negative, -x, x) * v4_splat(0.707106781f));
    return v4_splat(0.5f) * x * v4_select(negative, tail, v4_splat(2.0f) - tail);
}

static void gelu_row(float *x, int n)
{
    int i = 0;
    for (; i + 4 <= n; i += 4)
        v4_store(x + i, gelu(v4_load(x + i)));
    for (; i < n; i++)
        x[i] = gelu(v4_splat(x[i]))[0];
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
