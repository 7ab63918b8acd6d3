#ifdef __x86_64__
#include <immintrin.h>

#define V                  __m512
#define LANES              16
#define PROBE              bench_probe_avx512
#define v_splat(x)         _mm512_set1_ps(x)
#define v_mul_add(a, b, c) _mm512_fmadd_ps(a, b, c)

static inline V v_keep(V x)
{
    __asm__ volatile("" : "+v"(x));
    return x;
}

#include "tests/bench/bench_kernels_probe.h"
#endif
