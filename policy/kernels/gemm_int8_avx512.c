// As gemm_int8_avx2.c, in twice the width: for processors with AVX-512 but no dot product of bytes
// (Skylake-X). Tiles of 8 rows by 32 columns: 16 sums, 4 vectors of the panel, 2 of a row.
#ifdef __x86_64__
#define SIMD_AVX512
#include "policy/kernels/gemm_int8_priv.h"
#include "policy/kernels/simd.h"

#define MR          8
#define NV          2
#define KEEP        "v"
#define BYTES       __m512i
#define LOAD(p)     _mm512_loadu_si512((const void *)(p))
#define SPLAT(quad) _mm512_set1_epi32(quad)
#define MUL(x, w)   _mm512_maddubs_epi16(x, w)
#define ADD(a, b)   _mm512_add_epi16(a, b)
#define WIDEN(a)    _mm512_madd_epi16(a, _mm512_set1_epi16(1))

#include "policy/kernels/gemm_int8_quads.h"
#include "policy/kernels/gemm_int8_body.h"
#include "policy/kernels/gemm_int8_quantise_body.h"

const struct gemm_int8_kernel gemm_int8_avx512 = {
    .isa = CPU_AVX512,
    .name = "avx512",
    .vnni = false,
    .mr = MR,
    .nr = NR,
    .weight_max = 127,
    .x_max = 180,
    .quads = 2,
    .panel = all_rows,
    .quantise = quantise,
};
#endif
