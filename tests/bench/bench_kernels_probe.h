// The probe of bench_kernels, once per instruction set. Whoever includes it has defined V, LANES,
// v_splat(value), v_mul_add(a, b, c) = a * b + c, v_keep(x) = x in a register, PROBE its name.
#include "tests/bench/bench_kernels.h"

// Two multiply-adds per cycle that take 4 cycles each need 8 chains.
#define CHAINS 12

double PROBE(long rounds)
{
    V sum[CHAINS], x = v_splat(0.999f), y = v_splat(0.001f);

    for (int i = 0; i < CHAINS; i++)
        sum[i] = v_splat((float)i);
    for (long r = 0; r < rounds; r++) {
#define CHAIN(i) sum[i] = v_keep(v_mul_add(sum[i], x, y));
        CHAIN(0)
        CHAIN(1)
        CHAIN(2) CHAIN(3) CHAIN(4) CHAIN(5) CHAIN(6) CHAIN(7) CHAIN(8) CHAIN(9) CHAIN(10)
            CHAIN(11)
    }
    for (int i = 0; i < CHAINS; i++)
        v_keep(sum[i]);
    return 2.0 * LANES * CHAINS * (double)rounds;
}
