#ifdef __aarch64__
#include <arm_neon.h>

#define V                  float32x4_t
#define LANES              4
#define PROBE              bench_probe_neon
#define v_splat(x)         vdupq_n_f32(x)
#define v_mul_add(a, b, c) vfmaq_f32(c, a, b)

static inline V v_keep(V x)
{
    __asm__ volatile("" : "+w"(x));
    return x;
}

#include "tests/bench/bench_kernels_probe.h"
#endif
