// Tiles of 12 rows by 32 columns: 24 sums, 2 vectors of the panel and up to 6 of the rows fill the 32
// registers. Per depth 14 loads for 24 multiply-adds; two of either start in a cycle.
#ifdef __x86_64__
#include <immintrin.h>

#define V                  __m512
#define LANES              16
#define MR                 12
#define KEEP               "v"
#define NV                 2
#define v_load(p)          _mm512_loadu_ps(p)
#define v_store(p, x)      _mm512_storeu_ps(p, x)
#define v_splat(p)         _mm512_set1_ps(*(p))
#define v_add(a, b)        _mm512_add_ps(a, b)
#define v_mul_add(a, b, c) _mm512_fmadd_ps(a, b, c)
#define v_relu(x)          _mm512_max_ps(_mm512_setzero_ps(), x) // of a NaN and x it takes x

#include "policy/kernels/gemm_body.h"
#include "policy/kernels/gemm_terms_body.h"

const struct gemm_kernel gemm_avx512 = {CPU_AVX512, MR, NR, all_rows, all_terms};
#endif
