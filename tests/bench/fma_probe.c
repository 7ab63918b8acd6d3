// fma_probe: are the cores really there? Multiply-adds on registers alone, on one core and on
// several at once: on a shared machine a virtual core may be half of one for minutes, and whoever
// measures something else meanwhile measures that (tests/bench/peers.py asks before and after).
//
//   fma_probe CORES                    "0,1"
//
//   prints once          ready BEST [ISA …]       instruction sets that run here
//   probe N ISA MS       gflops X Y               N threads on the first N cores for about MS: what
//                                                 they did by the wall's clock, and by their own
//   end of input         ends
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/bench_kernels.h"

#define MOST 64
#define ROUNDS \
    20000 // of 12 multiply-adds: some 30 to 60 us, so that all end nearly together

struct share {
    pthread_t thread;
    pthread_barrier_t *start;
    bench_probe_fn *probe;
    int core;
    double seconds; // to go on for
    double flops, from, to, cpu;
};

static double now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *work(void *arg)
{
    struct share *s = arg;
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)s->core, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    s->probe(ROUNDS); // wakes the core and its wide units
    pthread_barrier_wait(s->start);
    double cpu = now(CLOCK_THREAD_CPUTIME_ID);
    s->from = s->to = now(CLOCK_MONOTONIC);
    while (s->to - s->from < s->seconds) {
        s->flops += s->probe(ROUNDS);
        s->to = now(CLOCK_MONOTONIC);
    }
    s->cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    return NULL;
}

struct result {
    double
        wall; // between the first start and the last end: less when a core was not there
    double own; // each by its own processor time: what the cores could do if they were
};

// What all threads did together, GFLOP/s.
static struct result probe(const int *core, int n, bench_probe_fn *fn, double seconds)
{
    struct share share[MOST] = {0};
    pthread_barrier_t start;
    double from = 0, to = 0, flops = 0, own = 0;

    pthread_barrier_init(&start, NULL, (unsigned)n);
    for (int i = 0; i < n; i++) {
        share[i].start = &start;
        share[i].probe = fn;
        share[i].core = core[i];
        share[i].seconds = seconds;
        if (pthread_create(&share[i].thread, NULL, work, &share[i])) {
            fprintf(stderr, "fma_probe: no thread\n");
            exit(1);
        }
    }
    for (int i = 0; i < n; i++) {
        pthread_join(share[i].thread, NULL);
        flops += share[i].flops;
        own += share[i].flops / share[i].cpu;
        from = i == 0 || share[i].from < from ? share[i].from : from;
        to = share[i].to > to ? share[i].to : to;
    }
    pthread_barrier_destroy(&start);
    return (struct result){1e-9 * flops / (to - from), 1e-9 * own};
}

static int cores_of(const char *text, int *core)
{
    int n = 0;

    for (char *end; n < MOST; text = end + 1) {
        long v = strtol(text, &end, 10);
        if (end == text || v < 0 || v >= CPU_SETSIZE)
            return 0;
        core[n++] = (int)v;
        if (*end != ',')
            return *end ? 0 : n;
    }
    return 0;
}

static bool answer(const char *line, const int *core, int n_cores)
{
    char name[16];
    double ms;
    int n;

    if (sscanf(line, "probe %d %15s %lf", &n, name, &ms) != 3 || n < 1 || n > n_cores)
        return false;
    enum cpu_isa isa = cpu_isa_of(name);
    if (isa == CPU_ISAS || !cpu_runs(isa) || !bench_probe_of(isa))
        return false;
    struct result r = probe(core, n, bench_probe_of(isa), 1e-3 * ms);
    printf("gflops %.2f %.2f\n", r.wall, r.own);
    fflush(stdout);
    return true;
}

int main(int argc, char **argv)
{
    int core[MOST], n = argc == 2 ? cores_of(argv[1], core) : 0;
    char line[128];

    if (n == 0) {
        fprintf(stderr, "usage: fma_probe CORES   (0,1)\n");
        return 2;
    }
    printf("ready %s", cpu_isa_name(cpu_best()));
    for (int isa = 0; isa < CPU_ISAS; isa++)
        if (cpu_runs((enum cpu_isa)isa))
            printf(" %s", cpu_isa_name((enum cpu_isa)isa));
    printf("\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        if (!answer(line, core, n)) {
            fprintf(stderr, "fma_probe: %s", line);
            return 1;
        }
    return 0;
}
