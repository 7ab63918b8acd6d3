// As gemm_int8_vnni_avx2.c, in twice the width. Tiles of 12 rows by 32 columns: 24 sums, 2 vectors of
// the panel, up to 6 of the rows.
#ifdef __x86_64__
#define SIMD_AVX512
#include "policy/kernels/gemm_int8_priv.h"
#include "policy/kernels/simd.h"

#define MR             12
#define NV             2
#define BYTES          __m512i
#define LOAD(p)        _mm512_loadu_si512((const void *)(p))
#define SPLAT(quad)    _mm512_set1_epi32(quad)
#define DOT(sum, x, w) _mm512_dpbusd_epi32(sum, x, w)

#include "policy/kernels/gemm_int8_dot.h"
#include "policy/kernels/gemm_int8_body.h"
#include "policy/kernels/gemm_int8_quantise_body.h"

const struct gemm_int8_kernel gemm_int8_vnni_avx512 = {
    .isa = CPU_AVX512,
    .name = "avx512 vnni",
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
