// The product in 8-bit numbers, by each of the instruction set's kernels, rows quantised in every
// round, against float32's on the same shape.
#include "tests/bench/bench_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/kernels/gemm_int8.h"

struct shape {
    const char *name;
    int rows, out, depth;
    bool
        cold; // other weights each time, 64 MiB of float32: as in a network, they come from memory
};

#define COLD_FLOATS (64 * 1024 * 1024 / sizeof(float))

static const struct shape shapes[] = {
    {"encoder a: q, k, v", 302, 1536, 512, false},
    {"encoder a: out", 302, 512, 512, false},
    {"encoder a: linear1", 302, 3200, 512, false},
    {"encoder a: linear2", 302, 512, 3200, false},
    {"encoder c: linear1", 1202, 3200, 512, false},
    {"encoder c: linear2", 1202, 512, 3200, false},
    {"decoder: linear1", 100, 3200, 512, false},
    {"decoder: linear2", 100, 512, 3200, false},
    {"encoder e: linear1", 11, 1024, 256, false},
    {"encoder e: linear2", 11, 256, 1024, false},
    {"encoder a: q, k, v", 302, 1536, 512, true},
    {"encoder a: linear1", 302, 3200, 512, true},
    {"encoder a: linear2", 302, 512, 3200, true},
    {"decoder: linear1", 100, 3200, 512, true},
    {"decoder: linear2", 100, 512, 3200, true},
    {"encoder e: linear1", 11, 1024, 256, true},
    {"encoder e: linear2", 11, 256, 1024, true},
};

struct job {
    struct gemm g;
    struct gemm_int8 g8;
    struct gemm_rows x;
    struct gemm_int8_rows x8;
    int rows;
    size_t copies, turn; // of the weights, and whose turn it is
    void *memory, *row_memory;
    float *w, *y;
    struct gemm_finish finish;
};

static void run_float(void *arg)
{
    struct job *j = arg;
    struct gemm g = j->g;

    j->turn = (j->turn + 1) % j->copies;
    g.panel += j->turn * gemm_floats(g.kernel, g.depth, g.out);
    gemm_run(&g, &j->x, 0, j->rows, 0, gemm_panels(g.kernel, g.out), j->y, (size_t)g.out,
             &j->finish);
}

static void run_quantise(void *arg)
{
    const struct job *j = arg;

    gemm_int8_quantise(j->g8.kernel, j->x.x, j->x.row, j->g8.depth, 0, j->rows, &j->x8);
}

static void run_int8(void *arg)
{
    struct job *j = arg;
    struct gemm_int8 g = j->g8;

    j->turn = (j->turn + 1) % j->copies;
    g.panel += j->turn * gemm_int8_bytes(g.kernel, g.depth, g.out);
    run_quantise(arg);
    gemm_int8_run(&g, &j->x8, 0, j->rows, 0, gemm_int8_panels(g.kernel, g.out), j->y,
                  (size_t)g.out, &j->finish);
}

static void job_open(struct job *j, const struct gemm_int8_kernel *k,
                     const struct shape *s)
{
    const struct gemm_kernel *kf = gemm_kernel_of(k->isa);
    size_t n = gemm_floats(kf, s->depth, s->out),
           copies = s->cold ? COLD_FLOATS / n + 1 : 1;
    size_t bytes = gemm_int8_bytes(k, s->depth, s->out);
    int depth = s->depth;

    *j = (struct job){.g = {depth, s->out, kf, bench_values(n * copies)},
                      .g8 = {.depth = depth, .out = s->out, .kernel = k},
                      .rows = s->rows,
                      .copies = copies};
    j->memory = bench_values(bytes * copies / sizeof(float));
    j->w = bench_values((size_t)s->out * (size_t)depth);
    j->row_memory = bench_values(gemm_int8_rows_bytes(s->rows, depth) / sizeof(float));
    j->y = bench_values((size_t)s->rows * (size_t)s->out);
    j->finish = (struct gemm_finish){.bias = j->w, .f = ACTIVATION_RELU};
    j->x = gemm_plain_rows(bench_values((size_t)s->rows * (size_t)depth), (size_t)depth,
                           depth);
    j->x8 = gemm_int8_rows_in(j->row_memory, s->rows, depth);
    gemm_pack(&j->g, 0, s->out, j->w, (size_t)depth);
    gemm_int8_place(&j->g8, j->memory);
    memset(j->memory, 0, bytes);
    gemm_int8_pack(&j->g8, 0, s->out, j->w, (size_t)depth);
}

static void job_close(struct job *j)
{
    free((void *)(uintptr_t)j->x.x);
    free(j->g.panel);
    free(j->memory);
    free(j->row_memory);
    free(j->w);
    free(j->y);
}

static void bench_shape(const struct gemm_int8_kernel *k, double seconds,
                        const struct shape *s)
{
    struct job j;

    job_open(&j, k, s);
    double ops = 2.0 * s->rows * s->out * s->depth;
    struct bench_entry e[] = {{run_int8, &j, ops, 0, 0},
                              {run_float, &j, ops, 0, 0},
                              {run_quantise, &j, ops, 0, 0}};
    bench_race(k->isa, e, 3, seconds);
    printf("  %-18s%s %5d %5d %5d  %7.1f GOP/s %4.0f %%  float32 %6.1f %4.0f %%  %5.2fx  "
           "rows %4.1f %%\n",
           s->name, s->cold ? "*" : " ", s->rows, s->out, s->depth, e[0].gflops,
           100 * e[0].share, e[1].gflops, 100 * e[1].share, e[0].share / e[1].share,
           100 * e[0].share / e[2].share);
    job_close(&j);
}

void bench_int8(enum cpu_isa isa, double seconds)
{
    for (int i = 0; gemm_int8_kernel_at(i); i++) {
        const struct gemm_int8_kernel *k = gemm_int8_kernel_at(i);
        if (k->isa != isa || !gemm_int8_runs(k))
            continue;
        printf(
            "int8, %-14s     rows   out depth           best  of float32's peak (median); * "
            "cold weights; rows: their share of the time\n",
            k->name);
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            bench_shape(k, seconds, &shapes[s]);
    }
}
