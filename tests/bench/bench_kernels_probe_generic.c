#include "policy/kernels/vec.h"

#ifdef __x86_64__
#define IN_REGISTER "+x"
#else
#define IN_REGISTER "+w"
#endif

#define V                  v4f
#define LANES              4
#define PROBE              bench_probe_generic
#define v_splat(x)         v4_splat(x)
#define v_mul_add(a, b, c) ((a) * (b) + (c))

static inline V v_keep(V x)
{
    __asm__ volatile("" : IN_REGISTER(x));
    return x;
}

#include "tests/bench/bench_kernels_probe.h"
