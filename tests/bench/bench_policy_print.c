// The tables of bench_policy.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "policy/kernels/kernels.h"
#include "tests/bench/bench_policy.h"

static double mib(double bytes)
{
    return bytes / (1024.0 * 1024.0);
}

static const struct profile_stage *all_of(const struct bench_cell *c)
{
    return &c->stage[c->stages];
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100.0 * part / whole : 0.0;
}

static void print_speed(const struct bench_cell *c, const struct bench_how *how)
{
    const struct bench_probe *p = c->probe;
    double macs = all_of(c)->macs,
           gflops = profile_gflops(macs, (int64_t)(1e6 * c->median_ms));
    int64_t cpu_ns = (int64_t)(1e6 * c->cpu_ms);
    double by_cpu = profile_gflops(macs, cpu_ns), own = 0.5 * (p[0].own + p[1].own);
    struct bench_peer peer;

    printf(
        "  %-20s %7d %8.2f %8.2f %8.2f %7.3f %8.1f %5.0f %% %5.0f %% %8.2f %6.0f / %-6.0f",
        c->name, c->threads, c->median_ms, c->best_ms, c->cpu_ms, 1e-9 * macs, gflops,
        percent(gflops, 0.5 * (p[0].wall + p[1].wall)), percent(by_cpu, own),
        own / profile_gflops(c->floor_macs, cpu_ns), p[0].wall, p[1].wall);
    if (bench_peer_of(how->peers, c->name[0], c->threads, &peer))
        printf("  %5.2f of %.1f ms, %s", c->median_ms / peer.ms, peer.ms, peer.name);
    printf("%s\n", c->there ? "" : "  ! the cores were not there");
}

static void speed(const struct bench_cell *cell, int n, const struct bench_how *how)
{
    printf("  %-20s %7s %8s %8s %8s %7s %8s %7s %7s %8s  %-15s\n", "case", "threads",
           "ms median", "best", "cpu ms", "GMAC", "GFLOP/s", "of peak", "by cpu",
           "x floor", "probe, GFLOP/s");
    for (int i = 0; i < n; i++)
        print_speed(&cell[i], how);
    printf(
        "\n  GMAC and GFLOP/s are the textbook's, of what is left after loading: a direct\n"
        "  convolution's, so that Winograd's may be above 100 %% of the peak. That is what a "
        "probe\n  reached with multiply-adds on registers alone, before and after a cell; `by "
        "cpu` is a\n  core's share by processor time, which a busy machine does not change "
        "much. `x floor`: cpu ms\n  as a multiple of what Winograd's multiplications (a "
        "quarter of the textbook's in tiles of 4x4,\n  4/9 in 2x2) and all others would take "
        "at the peak.\n");
    if (how->peers)
        printf("  The last column compares with what %s says,\n  if that is of this "
               "processor: another day's milliseconds.\n",
               how->peers);
}

static void stages(const struct bench_cell *cell, int n)
{
    printf("\n  %-20s", "ms with one thread");
    for (int k = 0; n > 0 && k < cell->stages; k++)
        printf(" %10s", cell->stage[k].name);
    printf(" %10s\n", "sum");
    for (int i = 0; i < n; i++) {
        if (cell[i].threads != 1)
            continue;
        printf("  %-20s", cell[i].name);
        for (int k = 0; k <= cell[i].stages; k++)
            printf(" %10.3f", 1e-6 * (double)cell[i].stage[k].ns);
        printf("\n  %-20s", "      GFLOP/s");
        for (int k = 0; k <= cell[i].stages; k++)
            printf(" %10.1f", profile_gflops(cell[i].stage[k].macs, cell[i].stage[k].ns));
        printf("\n");
    }
}

static void memory(const struct bench_cell *cell, int n)
{
    printf("\n  %-20s %12s %12s %14s %12s %12s %12s\n", "MiB", "packed", "of float32",
           "for winograd", "tables", "working", "OpenBLAS's");
    for (int i = 0; i < n; i++) {
        const struct bench_cell *c = &cell[i];

        if (i > 0 && strcmp(c->name, cell[i - 1].name) == 0)
            continue;
        printf("  %-20s %12.1f %11.2fx %14.1f %12.1f %12.1f %12d\n", c->name,
               mib((double)c->weight_bytes), (double)c->weight_bytes / c->float32_bytes,
               mib(all_of(c)->winograd_bytes), mib((double)c->table_bytes),
               mib((double)c->working_bytes),
               kernels_blas() ? 128 * (c->threads + 1) : 0);
    }
}

static void print_load(const char *how, const struct bench_cell *c,
                       const struct policy_load_ms *t, double cpu_ms)
{
    printf("  %-20s %7d %-7s %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %9.1f\n", c->name,
           c->threads, how, t->total, cpu_ms, t->open, t->memory, t->read, t->prepare,
           t->trial, t->reference);
}

static void loads(const struct bench_cell *cell, int n)
{
    printf("\n  %-20s %7s %-7s %8s %8s %8s %8s %8s %8s %8s %9s\n", "loading, ms",
           "threads", "", "total", "cpu", "open", "memory", "read", "prepare", "trial",
           "reference");
    for (int i = 0; i < n; i++) {
        print_load("alone", &cell[i], &cell[i].load, cell[i].load_cpu_ms);
        print_load("beside", &cell[i], &cell[i].beside, cell[i].beside_cpu_ms);
    }
}

void bench_print(const struct bench_cell *cell, int n, const struct bench_how *how)
{
    printf("kernels: %s: %s; precision: %s\n\n", kernels_name(how->precision),
           kernels_why(), precision_name(how->precision));
    speed(cell, n, how);
    stages(cell, n);
    memory(cell, n);
    loads(cell, n);
}
