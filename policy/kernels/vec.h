// vec: four floats at a time in the compiler's own vector type, so that the short passes
// around the matrix products are vector code at -O2, with gcc and clang alike, and
// compute the same bits on every x86-64 and ARM machine: all lanes are independent and
// nothing is contracted.
//
// Comparisons are written so that a NaN stays a NaN: what overflows inside the network
// must reach policy_infer's last check instead of turning into a plausible zero on the
// way.
#ifndef ACTD_KERNELS_VEC_H
#define ACTD_KERNELS_VEC_H

#include <stdint.h>
#include <string.h>

typedef float v4f __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));
typedef uint32_t v4u __attribute__((vector_size(16)));

static inline v4f v4_load(const float *p)
{
    v4f v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void v4_store(float *p, v4f v)
{
    memcpy(p, &v, sizeof v);
}

static inline v4f v4_splat(float x)
{
    return (v4f){x, x, x, x};
}

// where mask is all ones a, elsewhere b
static inline v4f v4_select(v4i mask, v4f a, v4f b)
{
    return (v4f)((mask & (v4i)a) | (~mask & (v4i)b));
}

static inline v4f v4_max(v4f a, v4f b) // b's NaN stays
{
    return v4_select(a > b, a, b);
}

static inline float v4_sum(v4f v)
{
    return (v[0] + v[1]) + (v[2] + v[3]);
}

// exp(x) for x <= 0, at most 2 ulp off; below -87 (1e-38) it stays at exp(-87). x = n ln
// 2 + r with |r| <= 0.347, ln 2 split so that n * high part is exact; Taylor series to
// r^7, whose first neglected term is 5e-9 of the result.
static inline v4f v4_exp_nonpositive(v4f x)
{
    const v4f low = v4_splat(-87.0f), magic = v4_splat(12582912.0f); // 1.5 * 2^23
    x = v4_select(x < low, low, x);
    v4f n = x * v4_splat(1.44269504088896341f) + magic - magic; // rounds to nearest
    v4f r = x - n * v4_splat(0.693359375f) - n * v4_splat(-2.12194440e-4f);
    v4f p = v4_splat(1.0f / 5040.0f);
    p = p * r + v4_splat(1.0f / 720.0f);
    p = p * r + v4_splat(1.0f / 120.0f);
    p = p * r + v4_splat(1.0f / 24.0f);
    p = p * r + v4_splat(1.0f / 6.0f);
    p = p * r + v4_splat(0.5f);
    p = p * r + v4_splat(1.0f);
    p = p * r + v4_splat(1.0f);
    v4u bits = ((v4u) __builtin_convertvector(n, v4i) + 127u) << 23;
    return p * (v4f)bits;
}

// erfc(x) for x >= 0, off by at most 2e-7; above 4 (1.5e-8) it stays at erfc(4). Equals
// exp(-x^2) times a smooth function of t = 1 / (1 + 0.4 x), here its Chebyshev
// interpolation of degree 8 on [0, 4] written in powers of t, exact to 2.4e-9.
static inline v4f v4_erfc_nonnegative(v4f x)
{
    static const float c[9] = {0.000135650755f, 0.222847417f,  0.250100293f,
                               0.0908876071f,   0.513907363f,  -0.514616853f,
                               0.798873923f,    -0.446532212f, 0.0843968143f};
    const v4f high = v4_splat(4.0f), one = v4_splat(1.0f);
    x = v4_select(x > high, high, x);
    v4f t = one / (one + v4_splat(0.4f) * x), p = v4_splat(c[8]);
    for (int i = 7; i >= 0; i--)
        p = p * t + v4_splat(c[i]);
    return p * v4_exp_nonpositive(-(x * x));
}

#endif
