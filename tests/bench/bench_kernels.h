// bench_kernels: how fast the kernels are, as a share of what the processor can do at all with the
// same instruction set, measured in the same second: on a shared machine the clock says little.
#ifndef ACTD_BENCH_KERNELS_H
#define ACTD_BENCH_KERNELS_H

#include <stddef.h>

#include "policy/kernels/cpu.h"

// One contestant: `run` does `flops` floating-point operations (a multiply-add is two).
struct bench_entry {
    void (*run)(void *arg);
    void *arg;
    double flops;
    double gflops,
        share; // set by bench_race: best of all rounds; median of its share of the peak
};

// Lets the probe and all entries run in turn for about `seconds`, on this thread, timed by its
// processor time.
void bench_race(enum cpu_isa isa, struct bench_entry *entry, int n, double seconds);
// The best that the probe has reached so far, GFLOP/s.
double bench_peak(enum cpu_isa isa);

// What --need is asked of: the best of a product that is large enough to reach the peak.
void bench_share(enum cpu_isa isa, double gflops);

// n floats in [-1, 1), 64-byte aligned; ends the program when there is no memory. free().
float *bench_values(size_t n);

// Multiply-adds on registers alone; returns the operations done. By instruction set; NULL: not
// compiled in.
typedef double bench_probe_fn(long rounds);
bench_probe_fn *bench_probe_of(enum cpu_isa isa);
bench_probe_fn bench_probe_generic, bench_probe_avx2, bench_probe_avx512,
    bench_probe_neon;

// One per bench_kernels_NAME.c, in the table of bench_kernels.c.
typedef void bench_fn(enum cpu_isa isa, double seconds);
bench_fn bench_gemm, bench_conv, bench_int8, bench_winograd, bench_attention;

#endif
