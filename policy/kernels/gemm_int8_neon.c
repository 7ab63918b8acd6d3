// Bytes are multiplied into 16 bits, a second product is added there, pairs of those to 32: three
// instructions for 16 products. Tiles of 4 rows by 8 columns: 16 sums, 8 vectors of the panel, 2 of
// a row.
#ifdef __aarch64__
#define SIMD_NEON
#include "policy/kernels/gemm_int8_priv.h"
#include "policy/kernels/simd.h"

#define MR       4
#define NV       2
#define X_OFFSET 128

// A column's sum is spread over two lanes, of its even and its odd pairs of depths.
#define NS (2 * NV)
typedef int32x4_t sums[NS];

// Bytes less 128 are signed, as the multiplication wants them; `whole` makes up for it. Two products
// fit 16 bits: 2 * 128 * 127.
INLINE int8x8_t signed_quad(const uint8_t *const *p, size_t row, const int i,
                            const int depth)
{
    int32_t quad = gemm_int8_quad(p, row, i, depth);

    return vreinterpret_s8_u8(
        veor_u8(vreinterpret_u8_s32(vdup_n_s32(quad)), vdup_n_u8(0x80)));
}

INLINE void sixteen(const int h, sums *sum, const uint8_t *const *p, size_t row,
                    const int8_t *b)
{
    UNROLL
    for (int depth = 0; depth < 16; depth += 8, b += 8 * NV * SIMD_WIDTH) {
        int8x8_t w0[NS], w1[NS];
        UNROLL
        for (int j = 0; j < NS; j++) {
            w0[j] = vld1_s8(b + 8 * j);
            w1[j] = vld1_s8(b + 4 * NV * SIMD_WIDTH + 8 * j);
        }
        UNROLL
        for (int i = 0; i < h; i++) {
            int8x8_t x0 = signed_quad(p, row, i, depth);
            int8x8_t x1 = signed_quad(p, row, i, depth + 4);
            UNROLL
            for (int j = 0; j < NS; j++)
                sum[i][j] =
                    vpadalq_s16(sum[i][j], vmlal_s8(vmull_s8(x0, w0[j]), x1, w1[j]));
        }
    }
}

INLINE vi whole(const int32x4_t *sum, const int j)
{
    return (vi)vpaddq_s32(sum[2 * j], sum[2 * j + 1]);
}

#include "policy/kernels/gemm_int8_body.h"
#include "policy/kernels/gemm_int8_quantise_body.h"

const struct gemm_int8_kernel gemm_int8_neon = {
    .isa = CPU_NEON,
    .name = "neon",
    .vnni = false,
    .mr = MR,
    .nr = NR,
    .weight_max = 127,
    .x_max = 255,
    .quads = 0,
    .panel = all_rows,
    .quantise = quantise,
};
#endif
