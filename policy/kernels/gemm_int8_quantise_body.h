// gemm_int8_quantise_body: a row of floats into bytes, once per instruction set, with the same bits
// in all: x8 = x / scale + zero, to the nearest, halves to even. After simd.h.
#include <float.h>
#include <math.h>

#include "policy/kernels/gemm_int8_priv.h"

#define AT_ONCE (4 * SIMD_WIDTH) // values: as many as fill a vector of bytes

struct extent {
    float low, high; // of the values and 0
    bool finite;
};

static void extend(struct extent *e, float x)
{
    e->low = x < e->low ? x : e->low;
    e->high = x > e->high ? x : e->high;
    e->finite = e->finite && x - x == 0.0f;
}

// Four of each, as a minimum takes 4 cycles.
static struct extent extent_of(const float *x, int n)
{
    vf low[4] = {{0}}, high[4] = {{0}};
    vi broken[4] = {{0}};
    struct extent e = {0.0f, 0.0f, true};
    int i = 0;

    for (; i + AT_ONCE <= n; i += AT_ONCE) {
        UNROLL
        for (int j = 0; j < 4; j++) {
            vf v = simd_load(x + i + j * SIMD_WIDTH);
            low[j] = simd_min(v, low[j]);
            high[j] = simd_max(v, high[j]);
            broken[j] |= (vi)(v - v); // 0, or not a number
        }
    }
    vf least = simd_min(simd_min(low[0], low[1]), simd_min(low[2], low[3]));
    vf most = simd_max(simd_max(high[0], high[1]), simd_max(high[2], high[3]));
    vi any = (broken[0] | broken[1]) | (broken[2] | broken[3]);
    for (int k = 0; k < SIMD_WIDTH; k++) {
        e.low = least[k] < e.low ? least[k] : e.low;
        e.high = most[k] > e.high ? most[k] : e.high;
        e.finite = e.finite && any[k] == 0;
    }
    for (; i < n; i++)
        extend(&e, x[i]);
    return e;
}

// Four vectors of whole numbers 0 ... 255 as bytes.
INLINE void store_bytes(uint8_t *q, const vi *k)
{
#if defined(SIMD_AVX2)
    // Packing works within halves: 0 4 8 12 1 5 9 13 (by fours) is what comes out.
    __m256i low = _mm256_packs_epi32((__m256i)k[0], (__m256i)k[1]);
    __m256i high = _mm256_packs_epi32((__m256i)k[2], (__m256i)k[3]);
    __m256i b = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high),
                                            _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    memcpy(q, &b, sizeof b);
#elif defined(SIMD_NEON)
    int16x8_t low = vcombine_s16(vmovn_s32((int32x4_t)k[0]), vmovn_s32((int32x4_t)k[1]));
    int16x8_t high = vcombine_s16(vmovn_s32((int32x4_t)k[2]), vmovn_s32((int32x4_t)k[3]));
    vst1q_u8(q, vcombine_u8(vqmovun_s16(low), vqmovun_s16(high)));
#else
    typedef uint8_t bytes __attribute__((vector_size(SIMD_WIDTH)));
    UNROLL
    for (int j = 0; j < 4; j++) {
        bytes b = __builtin_convertvector(k[j], bytes);
        memcpy(q + j * SIMD_WIDTH, &b, sizeof b);
    }
#endif
}

// 1.5 * 2^23: added to a smaller number, it leaves the nearest whole one in the last bits, on every
// machine alike.
#define MAGIC      12582912.0f
#define MAGIC_BITS 0x4b400000

static float nearest(float x)
{
    return (x + MAGIC) - MAGIC;
}

static void to_bytes(const float *x, int n, float inverse, float zero, float most,
                     uint8_t *q)
{
    const float low = -zero, high = most - zero;
    const int32_t offset = MAGIC_BITS - (int32_t)zero;
    int i = 0;

    for (; i + AT_ONCE <= n; i += AT_ONCE) {
        vi k[4];
        UNROLL
        for (int j = 0; j < 4; j++) {
            vf v = simd_load(x + i + j * SIMD_WIDTH) * simd_splat(inverse);
            v = simd_min(simd_max(v, simd_splat(low)), simd_splat(high));
            k[j] = (vi)(v + simd_splat(MAGIC)) - offset;
        }
        store_bytes(q + i, k);
    }
    for (; i < n; i++) {
        float v = x[i] * inverse;
        v = v < low ? low : v > high ? high : v;
        q[i] = (uint8_t)(nearest(v) + zero);
    }
}

static void quantise(const float *x, int depth, int x_max, uint8_t *q, size_t stride,
                     float *scale, int32_t *zero)
{
    struct extent e = extent_of(x, depth);
    // In two halves, whose difference does not overflow; never so small that 1 / scale does: a row
    // of zeros, and what is as good as that, becomes zeros.
    float most = (float)x_max, s = e.high / most - e.low / most;

    s = s < FLT_MIN ? FLT_MIN : s;
    *scale = e.finite ? s : NAN;
    *zero = 0;
    memset(q + depth, 0, stride - (size_t)depth);
    if (!e.finite) {
        memset(q, 0, (size_t)depth);
        return;
    }
    float z = nearest(-e.low / s);
    *zero = (int32_t)z;
    to_bytes(x, depth, 1.0f / s, z, most, q);
}
