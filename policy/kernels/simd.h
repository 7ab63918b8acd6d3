// simd: the vector of one instruction set, for kernels that are written once (x_body.h)
// and compiled once per set: x_avx2.c defines SIMD_AVX2 and includes the body. Without
// any of these macros it is four floats in plain C. Everything is inlined by force: a
// copy that the linker might share with other files would carry instructions that not
// every machine has.
//
// fma is one rounding where the set has it and two in plain C; max and min give their
// second argument if one of them is a NaN, so that simd_max(limit, x) keeps a NaN in x.
#ifndef ACTD_KERNELS_SIMD_H
#define ACTD_KERNELS_SIMD_H

#include <stdint.h>
#include <string.h>

#define SIMD_INLINE static inline __attribute__((always_inline))

#if defined(SIMD_AVX512)
#define SIMD_WIDTH 16
#elif defined(SIMD_AVX2)
#define SIMD_WIDTH 8
#else
#define SIMD_WIDTH 4
#endif

#if defined(SIMD_AVX512) || defined(SIMD_AVX2)
#include <immintrin.h>
#elif defined(SIMD_NEON)
#include <arm_neon.h>
#endif

#if defined(SIMD_NEON)
typedef float32x4_t vf;
#else
typedef float vf __attribute__((vector_size(4 * SIMD_WIDTH)));
#endif
typedef int32_t vi __attribute__((vector_size(4 * SIMD_WIDTH)));
typedef uint32_t vu __attribute__((vector_size(4 * SIMD_WIDTH)));

SIMD_INLINE vf simd_load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

SIMD_INLINE void simd_store(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}

// where mask is all ones a, elsewhere b
SIMD_INLINE vf simd_select(vi mask, vf a, vf b)
{
    return (vf)((mask & (vi)a) | (~mask & (vi)b));
}

#if defined(SIMD_AVX512)

SIMD_INLINE vf simd_splat(float x)
{
    return _mm512_set1_ps(x);
}

SIMD_INLINE vf simd_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

SIMD_INLINE vf simd_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

SIMD_INLINE vf simd_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}

// Of all lanes, halves first.
SIMD_INLINE float simd_sum(vf v)
{
    return _mm512_reduce_add_ps(v);
}

// Four floats of each of the rows 0, 4, 8, 12.
SIMD_INLINE vf simd_quads(const float *const *row, int i)
{
    __m512 v = _mm512_castps128_ps512(_mm_loadu_ps(row[0] + i));
    v = _mm512_insertf32x4(v, _mm_loadu_ps(row[4] + i), 1);
    v = _mm512_insertf32x4(v, _mm_loadu_ps(row[8] + i), 2);
    return _mm512_insertf32x4(v, _mm_loadu_ps(row[12] + i), 3);
}

#define SIMD_LOW(a, b)  _mm512_unpacklo_ps(a, b)
#define SIMD_HIGH(a, b) _mm512_unpackhi_ps(a, b)
#define SIMD_LOW_PAIRS(a, b) \
    _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)))
#define SIMD_HIGH_PAIRS(a, b) \
    _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)))

#elif defined(SIMD_AVX2)

SIMD_INLINE vf simd_splat(float x)
{
    return _mm256_set1_ps(x);
}

SIMD_INLINE vf simd_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

SIMD_INLINE vf simd_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

SIMD_INLINE vf simd_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}

SIMD_INLINE float simd_sum(vf v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}

// Four floats of each of the rows 0, 4.
SIMD_INLINE vf simd_quads(const float *const *row, int i)
{
    __m256 v = _mm256_castps128_ps256(_mm_loadu_ps(row[0] + i));
    return _mm256_insertf128_ps(v, _mm_loadu_ps(row[4] + i), 1);
}

#define SIMD_LOW(a, b)  _mm256_unpacklo_ps(a, b)
#define SIMD_HIGH(a, b) _mm256_unpackhi_ps(a, b)
#define SIMD_LOW_PAIRS(a, b) \
    _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)))
#define SIMD_HIGH_PAIRS(a, b) \
    _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)))

#else

SIMD_INLINE vf simd_splat(float x)
{
    return (vf){x, x, x, x};
}

SIMD_INLINE vf simd_fma(vf a, vf b, vf c)
{
#if defined(SIMD_NEON)
    return vfmaq_f32(c, a, b);
#else
    return a * b + c;
#endif
}

SIMD_INLINE vf simd_max(vf a, vf b)
{
    return simd_select((vi)(a > b), a, b);
}

SIMD_INLINE vf simd_min(vf a, vf b)
{
    return simd_select((vi)(a < b), a, b);
}

SIMD_INLINE float simd_sum(vf v)
{
    return (v[0] + v[2]) + (v[1] + v[3]);
}

SIMD_INLINE vf simd_quads(const float *const *row, int i)
{
    return simd_load(row[0] + i);
}

#define SIMD_LOW(a, b)        __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define SIMD_HIGH(a, b)       __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define SIMD_LOW_PAIRS(a, b)  __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define SIMD_HIGH_PAIRS(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)

#endif

struct simd_four {
    vf v[4];
};

// Columns i to i + 3 of SIMD_WIDTH rows: each has one float of every row.
SIMD_INLINE struct simd_four simd_columns(const float *const *row, int i)
{
    vf r0 = simd_quads(row, i), r1 = simd_quads(row + 1, i);
    vf r2 = simd_quads(row + 2, i), r3 = simd_quads(row + 3, i);
    vf low01 = SIMD_LOW(r0, r1), high01 = SIMD_HIGH(r0, r1);
    vf low23 = SIMD_LOW(r2, r3), high23 = SIMD_HIGH(r2, r3);
    return (struct simd_four){
        {SIMD_LOW_PAIRS(low01, low23), SIMD_HIGH_PAIRS(low01, low23),
         SIMD_LOW_PAIRS(high01, high23), SIMD_HIGH_PAIRS(high01, high23)}};
}

#endif
