// Tiles of 2 rows by 8 columns in the compiler's own vectors.
#include "policy/kernels/gemm_int8_priv.h"
#include "policy/kernels/simd.h"

#define MR 2
#define NV 2

// A column's sum is spread over two lanes, of its even and its odd pairs of depths.
#define NS (2 * NV)
typedef vi sums[NS];
typedef int16_t shorts __attribute__((vector_size(16)));
typedef int8_t signed_bytes __attribute__((vector_size(8)));
typedef uint8_t unsigned_bytes __attribute__((vector_size(8)));

// Products of 8 bits fit 16 exactly (255 * 127); the lower and the upper of each 32 are added.
INLINE void quad_products(const int h, sums *sum, const uint8_t *const *p, size_t row,
                          const int depth, const int j, shorts w)
{
    UNROLL
    for (int i = 0; i < h; i++) {
        int32_t quad = gemm_int8_quad(p, row, i, depth), twice[2] = {quad, quad};
        unsigned_bytes x;
        memcpy(&x, twice, sizeof x);
        vi product = (vi)(__builtin_convertvector(x, shorts) * w);
        sum[i][j] += ((vi)((vu)product << 16) >> 16) + (product >> 16);
    }
}

INLINE void sixteen(const int h, sums *sum, const uint8_t *const *p, size_t row,
                    const int8_t *b)
{
    for (int depth = 0; depth < 16; depth += 4) {
        UNROLL
        for (int j = 0; j < NS; j++, b += 8) {
            signed_bytes w;
            memcpy(&w, b, sizeof w);
            quad_products(h, sum, p, row, depth, j, __builtin_convertvector(w, shorts));
        }
    }
}

INLINE vi whole(const vi *sum, const int j)
{
    vi a = sum[2 * j], b = sum[2 * j + 1];

    return __builtin_shufflevector(a, b, 0, 2, 4, 6) +
           __builtin_shufflevector(a, b, 1, 3, 5, 7);
}

#include "policy/kernels/gemm_int8_body.h"
#include "policy/kernels/gemm_int8_quantise_body.h"

const struct gemm_int8_kernel gemm_int8_generic = {
    .isa = CPU_GENERIC,
    .name = "generic",
    .vnni = false,
    .mr = MR,
    .nr = NR,
    .weight_max = 127,
    .x_max = 255,
    .quads = 0,
    .panel = all_rows,
    .quantise = quantise,
};
