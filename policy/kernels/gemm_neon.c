// Tiles of 8 rows by 8 columns. A multiply-add takes one of its factors from a lane of a vector: four
// values of a row are loaded at once, so that four depths need 16 loads for 64 multiply-adds. 16
// sums, 8 vectors of the rows, 2 of the panel: 26 of the 32 registers.
#ifdef __aarch64__
#include <arm_neon.h>

#include "policy/kernels/gemm_priv.h"

#define V                  float32x4_t
#define LANES              4
#define MR                 8
#define NV                 2
#define v_load(p)          vld1q_f32(p)
#define v_store(p, x)      vst1q_f32(p, x)
#define v_splat(p)         vld1q_dup_f32(p)
#define v_add(a, b)        vaddq_f32(a, b)
#define v_mul_add(a, b, c) vfmaq_f32(c, a, b)
#define v_relu(x)          vbslq_f32(vcltzq_f32(x), vdupq_n_f32(0.0f), x)

// One depth of four: lane `u` of each row's vector.
#define STEP(u)                                                     \
    do {                                                            \
        V b0 = v_load(b + (u)*NR), b1 = v_load(b + (u)*NR + LANES); \
        UNROLL                                                      \
        for (int i = 0; i < h; i++) {                               \
            sum[i][0] = vfmaq_laneq_f32(sum[i][0], b0, left[i], u); \
            sum[i][1] = vfmaq_laneq_f32(sum[i][1], b1, left[i], u); \
        }                                                           \
    } while (0)

#define OWN_SPAN
INLINE void span(const int h, V (*sum)[NV], const float *x, size_t row, int length,
                 const float *b, struct gemm_ahead *ahead)
{
    V left[MR];

    for (; length >= 4; length -= 4, x += 4, b += 4 * NR) {
        UNROLL
        for (int i = 0; i < h; i++)
            left[i] = v_load(x + (size_t)i * row);
        STEP(0);
        STEP(1);
        STEP(2);
        STEP(3);
        gemm_ahead_step(ahead, AHEAD);
    }
    for (; length > 0; length--, x++, b += NR) {
        UNROLL
        for (int i = 0; i < h; i++)
            left[i] = v_splat(x + (size_t)i * row);
        STEP(0);
    }
}

#include "policy/kernels/gemm_body.h"
#include "policy/kernels/gemm_terms_body.h"

const struct gemm_kernel gemm_neon = {CPU_NEON, MR, NR, all_rows, all_terms};
#endif
