// The race of bench_kernels: everybody in turn, round after round, so that a neighbour who comes or
// goes meets all alike.
#include "tests/bench/bench_kernels.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS_MAX   200
#define PROBE_ROUNDS 100000 // about 150 us

static double best_probe[CPU_ISAS];

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bench_probe_fn *bench_probe_of(enum cpu_isa isa)
{
    switch (isa) {
    case CPU_GENERIC:
        return bench_probe_generic;
#ifdef __x86_64__
    case CPU_AVX2:
        return bench_probe_avx2;
    case CPU_AVX512:
        return bench_probe_avx512;
#endif
#ifdef __aarch64__
    case CPU_NEON:
        return bench_probe_neon;
#endif
    default:
        return NULL;
    }
}

static double run_probe(enum cpu_isa isa)
{
    double start = seconds_now(), flops = bench_probe_of(isa)(PROBE_ROUNDS);
    double gflops = 1e-9 * flops / (seconds_now() - start);

    best_probe[isa] = fmax(best_probe[isa], gflops);
    return gflops;
}

double bench_peak(enum cpu_isa isa)
{
    for (int i = 0; i < 20 && best_probe[isa] == 0.0; i++)
        run_probe(isa);
    return best_probe[isa];
}

// At least 1 ms, so that the clock's own 0.3 us do not count.
static double run_entry(const struct bench_entry *e)
{
    double start = seconds_now(), took;
    int runs = 0;

    do {
        e->run(e->arg);
        runs++;
        took = seconds_now() - start;
    } while (took < 1e-3);
    return 1e-9 * e->flops * runs / took;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

void bench_race(enum cpu_isa isa, struct bench_entry *entry, int n, double seconds)
{
    double share[8][ROUNDS_MAX], start = seconds_now();
    int rounds = 0;

    for (int i = 0; i < n; i++) {
        entry[i].gflops = 0.0;
        entry[i].run(entry[i].arg); // its memory, its weights
    }
    while (rounds < 5 || (rounds < ROUNDS_MAX && seconds_now() - start < seconds)) {
        for (int i = 0; i < n; i++) {
            double before = run_probe(isa), own = run_entry(&entry[i]),
                   after = run_probe(isa);
            entry[i].gflops = fmax(entry[i].gflops, own);
            share[i][rounds] = 2.0 * own / (before + after);
        }
        rounds++;
    }
    for (int i = 0; i < n; i++) {
        qsort(share[i], (size_t)rounds, sizeof **share, compare);
        entry[i].share = share[i][rounds / 2];
    }
}

float *bench_values(size_t n)
{
    float *v = aligned_alloc(64, (n * sizeof *v + 63) / 64 * 64);
    uint64_t state = 1;

    if (!v) {
        fprintf(stderr, "bench_kernels: no memory for %zu floats\n", n);
        exit(1);
    }
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        v[i] = (float)(state >> 48) / 32768.0f - 1.0f;
    }
    return v;
}
