// layer_norm_body: rows of a layer norm; included once per instruction set (simd.h). Four
// sums at a time: one alone would wait for each addition (4 cycles a vector instead of
// one half).
#include <math.h>

#include "policy/kernels/layer_norm.h"
#include "policy/kernels/simd.h"

SIMD_INLINE struct simd_four four_load(const float *x)
{
    return (struct simd_four){{simd_load(x), simd_load(x + SIMD_WIDTH),
                               simd_load(x + 2 * SIMD_WIDTH),
                               simd_load(x + 3 * SIMD_WIDTH)}};
}

SIMD_INLINE float four_sum(struct simd_four s)
{
    return simd_sum((s.v[0] + s.v[1]) + (s.v[2] + s.v[3]));
}

static float row_mean(const float *x, int dim)
{
    const vf zero = simd_splat(0.0f);
    struct simd_four s = {{zero, zero, zero, zero}};
    float rest = 0.0f;
    int i = 0;

    for (; i + 4 * SIMD_WIDTH <= dim; i += 4 * SIMD_WIDTH) {
        struct simd_four v = four_load(x + i);
        s.v[0] += v.v[0];
        s.v[1] += v.v[1];
        s.v[2] += v.v[2];
        s.v[3] += v.v[3];
    }
    for (; i + SIMD_WIDTH <= dim; i += SIMD_WIDTH)
        s.v[0] += simd_load(x + i);
    for (; i < dim; i++)
        rest += x[i];
    return (four_sum(s) + rest) / (float)dim;
}

SIMD_INLINE vf add_square(vf x, vf mean, vf sum)
{
    vf d = x - mean;
    return simd_fma(d, d, sum);
}

static float row_variance(const float *x, int dim, float mean)
{
    const vf zero = simd_splat(0.0f), m = simd_splat(mean);
    struct simd_four s = {{zero, zero, zero, zero}};
    float rest = 0.0f;
    int i = 0;

    for (; i + 4 * SIMD_WIDTH <= dim; i += 4 * SIMD_WIDTH) {
        struct simd_four v = four_load(x + i);
        s.v[0] = add_square(v.v[0], m, s.v[0]);
        s.v[1] = add_square(v.v[1], m, s.v[1]);
        s.v[2] = add_square(v.v[2], m, s.v[2]);
        s.v[3] = add_square(v.v[3], m, s.v[3]);
    }
    for (; i + SIMD_WIDTH <= dim; i += SIMD_WIDTH)
        s.v[0] = add_square(simd_load(x + i), m, s.v[0]);
    for (; i < dim; i++)
        rest += (x[i] - mean) * (x[i] - mean);
    return (four_sum(s) + rest) / (float)dim;
}

static void put_row(const struct layer_norm *n, const float *x, float mean,
                    float variance, float *y)
{
    float scale = 1.0f / sqrtf(variance + LAYER_NORM_EPS);
    const vf m = simd_splat(mean), s = simd_splat(scale);
    int i = 0;

    for (; i + SIMD_WIDTH <= n->dim; i += SIMD_WIDTH) {
        vf v = (simd_load(x + i) - m) * s;
        simd_store(y + i, simd_fma(v, simd_load(n->weight + i), simd_load(n->bias + i)));
    }
    for (; i < n->dim; i++)
        y[i] = (x[i] - mean) * scale * n->weight[i] + n->bias[i];
}

// Each step for several rows, for a row's steps wait for each other: its sum, then its
// variance, then a root and a quotient. 16 KiB of rows stay in the first cache.
#define ROWS 8

static void norm_rows(const struct layer_norm *n, const float *x, int rows, float *y)
{
    float mean[ROWS], variance[ROWS];

    for (int left = rows; left > 0; left -= ROWS) {
        int some = left < ROWS ? left : ROWS;
        for (int r = 0; r < some; r++)
            mean[r] = row_mean(x + r * n->dim, n->dim);
        for (int r = 0; r < some; r++)
            variance[r] = row_variance(x + r * n->dim, n->dim, mean[r]);
        for (int r = 0; r < some; r++)
            put_row(n, x + r * n->dim, mean[r], variance[r], y + r * n->dim);
        x += some * n->dim;
        y += some * n->dim;
    }
}
