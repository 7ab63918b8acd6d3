// Tiles of 6 rows by 16 columns: 12 sums, 2 vectors of the panel and up to 2 of the rows fill the 16
// registers. Per depth 8 loads for 12 multiply-adds; two of either start in a cycle.
#ifdef __x86_64__
#include <immintrin.h>

#define V                  __m256
#define LANES              8
#define MR                 6
#define KEEP               "x"
#define NV                 2
#define v_load(p)          _mm256_loadu_ps(p)
#define v_store(p, x)      _mm256_storeu_ps(p, x)
#define v_splat(p)         _mm256_broadcast_ss(p)
#define v_add(a, b)        _mm256_add_ps(a, b)
#define v_mul_add(a, b, c) _mm256_fmadd_ps(a, b, c)
#define v_relu(x)          _mm256_max_ps(_mm256_setzero_ps(), x) // of a NaN and x it takes x

#include "policy/kernels/gemm_body.h"
#include "policy/kernels/gemm_terms_body.h"

const struct gemm_kernel gemm_avx2 = {CPU_AVX2, MR, NR, all_rows, all_terms};
#endif
