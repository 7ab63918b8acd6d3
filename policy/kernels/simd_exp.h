// simd_exp: exp(x) for x <= 0 at most 2 ulp off, for the softmax and the GELU.
//
// x = n ln 2 + r, |r| <= 0.347; ln 2 is split so that n times its high part is exact even
// without fma. e^r is 1 + r + r^2 P(r), P of degree 4 with the smallest relative error
// there (Remez exchange): 4e-9, a tenth of an ulp at worst. 2^n comes of the bits that
// adding 1.5 * 2^23 leaves at the low end. Below -87.33 (the smallest normal number is
// e^-87.337) the result stays at 1.18e-38: a subnormal one would cost a hundred cycles
// wherever it is multiplied.
//
// 2^n is multiplied, not added to the exponent's bits: a NaN with a payload has anything
// in place of n, and only a product with it remains a NaN.
#ifndef ACTD_KERNELS_SIMD_EXP_H
#define ACTD_KERNELS_SIMD_EXP_H

#include "policy/kernels/simd.h"

SIMD_INLINE vf simd_exp_nonpositive(vf x)
{
    const vf round = simd_splat(12582912.0f + 127.0f); // and the exponent's bias
    x = simd_max(simd_splat(-87.33f), x);
    vf t = simd_fma(x, simd_splat(1.44269504088896341f), round), n = t - round;
    vf r = simd_fma(n, simd_splat(-0.693359375f), x);
    r = simd_fma(n, simd_splat(2.12194440e-4f), r);
    vf r2 = r * r, p = simd_fma(r, simd_splat(0.00836878084f), simd_splat(0.0416683927f));
    p = simd_fma(r2, simd_splat(0.00138144661f), p);
    p = simd_fma(r2, p, simd_fma(r, simd_splat(0.166665196f), simd_splat(0.49999994f)));
    p = simd_fma(r2, p, r) + simd_splat(1.0f);
    return p * (vf)((vu)t << 23);
}

#endif
