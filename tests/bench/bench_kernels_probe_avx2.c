#ifdef __x86_64__
#include <immintrin.h>

#define V                  __m256
#define LANES              8
#define PROBE              bench_probe_avx2
#define v_splat(x)         _mm256_set1_ps(x)
#define v_mul_add(a, b, c) _mm256_fmadd_ps(a, b, c)

static inline V v_keep(V x)
{
    __asm__ volatile("" : "+x"(x));
    return x;
}

#include "tests/bench/bench_kernels_probe.h"
#endif
