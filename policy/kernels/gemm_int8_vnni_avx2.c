// A dot product of bytes, with no step in 16 bits: 32 products in one instruction, 4 times what float32
// does. Tiles of 6 rows by 16 columns: 12 sums, 2 vectors of the panel, 2 of the rows.
#ifdef __x86_64__
#define SIMD_AVX2
#include "policy/kernels/gemm_int8_priv.h"
#include "policy/kernels/simd.h"

#define MR             6
#define NV             2
#define BYTES          __m256i
#define LOAD(p)        _mm256_loadu_si256((const void *)(p))
#define SPLAT(quad)    _mm256_set1_epi32(quad)
#define DOT(sum, x, w) _mm256_dpbusd_avx_epi32(sum, x, w)

#include "policy/kernels/gemm_int8_dot.h"
#include "policy/kernels/gemm_int8_body.h"
#include "policy/kernels/gemm_int8_quantise_body.h"

const struct gemm_int8_kernel gemm_int8_vnni_avx2 = {
    .isa = CPU_AVX2,
    .name = "avx2 vnni",
    .vnni = true,
    .mr = MR,
    .nr = NR,
    .weight_max = 127,
    .x_max = 255,
    .quads = 0,
    .panel = all_rows,
    .quantise = quantise,
};
#endif
