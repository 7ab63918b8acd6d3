// activation_body: ReLU and GELU over a row; included once per instruction set (simd.h).
#include "policy/kernels/activation.h"
#include "policy/kernels/simd_exp.h"

// erfc(x) for x >= 0, off by at most 2e-7. Equals exp(-x^2) times a smooth function of t
// = 1 / (1 + 0.4 x), here its Chebyshev interpolation of degree 8 on [0, 4] written in
// powers of t, exact to 2.4e-9; beyond 4 the whole is below 1.6e-8 and goes on falling.
SIMD_INLINE vf erfc_nonnegative(vf x)
{
    static const float c[9] = {0.000135650755f, 0.222847417f,  0.250100293f,
                               0.0908876071f,   0.513907363f,  -0.514616853f,
                               0.798873923f,    -0.446532212f, 0.0843968143f};
    const vf one = simd_splat(1.0f);
    vf t = one / simd_fma(simd_splat(0.4f), x, one), p = simd_splat(c[8]);
    p = simd_fma(p, t, simd_splat(c[7]));
    p = simd_fma(p, t, simd_splat(c[6]));
    p = simd_fma(p, t, simd_splat(c[5]));
    p = simd_fma(p, t, simd_splat(c[4]));
    p = simd_fma(p, t, simd_splat(c[3]));
    p = simd_fma(p, t, simd_splat(c[2]));
    p = simd_fma(p, t, simd_splat(c[1]));
    p = simd_fma(p, t, simd_splat(c[0]));
    return p * simd_exp_nonpositive(-(x * x));
}

// x/2 erfc(-x/sqrt 2), taken from the side where nothing cancels. libm's erff would take
// a tenth of a whole inference: it is called four million times for one camera.
SIMD_INLINE vf gelu(vf x)
{
    vi negative = (vi)(x < simd_splat(0.0f));
    vf size = (vf)((vi)x & (0x7fffffff - (vi){0}));
    vf tail = erfc_nonnegative(size * simd_splat(0.707106781f));
    return simd_splat(0.5f) * x * simd_select(negative, tail, simd_splat(2.0f) - tail);
}

SIMD_INLINE vf relu(vf x)
{
    return simd_max(simd_splat(0.0f), x);
}

// f over x in place; the last few floats by way of a vector of their own.
#define OVER_ROW(f)                                       \
    int i = 0;                                            \
    for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH)          \
        simd_store(x + i, f(simd_load(x + i)));           \
    if (i < n) {                                          \
        float rest[SIMD_WIDTH] = {0};                     \
        memcpy(rest, x + i, (size_t)(n - i) * sizeof *x); \
        simd_store(rest, f(simd_load(rest)));             \
        memcpy(x + i, rest, (size_t)(n - i) * sizeof *x); \
    }

static void relu_row(float *x, int n)
{
    OVER_ROW(relu)
}

static void gelu_row(float *x, int n)
{
    OVER_ROW(gelu)
}
