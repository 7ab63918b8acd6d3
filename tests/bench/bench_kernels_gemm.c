// The matrix product: the shapes of the network's layers, against OpenBLAS on the same shape; rows
// of several runs, against rows of one.
#include "tests/bench/bench_kernels.h"

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/kernels/gemm.h"

struct shape {
    const char *name;
    int rows, out, depth;
    bool
        cold; // other weights each time, 64 MiB of them: as in a network, they come from memory
};

#define COLD_FLOATS (64 * 1024 * 1024 / sizeof(float))

static const struct shape shapes[] = {
    {"encoder a: q, k", 302, 1024, 512, false},
    {"encoder a: out", 302, 512, 512, false},
    {"encoder a: linear1", 302, 3200, 512, false},
    {"encoder a: linear2", 302, 512, 3200, false},
    {"encoder b: linear1", 602, 3200, 512, false},
    {"encoder b: linear2", 602, 512, 3200, false},
    {"encoder c: linear1", 1202, 3200, 512, false},
    {"encoder c: linear2", 1202, 512, 3200, false},
    {"decoder: linear1", 100, 3200, 512, false},
    {"decoder: linear2", 100, 512, 3200, false},
    {"encoder d: linear1", 51, 3200, 512, false},
    {"encoder d: linear2", 51, 512, 3200, false},
    {"encoder e: linear1", 11, 1024, 256, false},
    {"encoder e: linear2", 11, 256, 1024, false},
    {"state", 1, 512, 14, false},
    {"head", 100, 14, 512, false},
    {"winograd layer1", 1200, 64, 64, false},
    {"winograd layer2", 300, 128, 128, false},
    {"winograd layer3", 80, 256, 256, false},
    {"winograd layer4", 20, 512, 512, false},
    {"encoder a: linear1", 302, 3200, 512, true},
    {"encoder a: linear2", 302, 512, 3200, true},
    {"decoder: linear1", 100, 3200, 512, true},
    {"decoder: linear2", 100, 512, 3200, true},
    {"encoder d: linear1", 51, 3200, 512, true},
    {"encoder d: linear2", 51, 512, 3200, true},
    {"encoder e: linear1", 11, 1024, 256, true},
    {"encoder e: linear2", 11, 256, 1024, true},
    {"winograd layer4", 20, 512, 512, true},
};

// Lines of a convolution: kernels of `runs` lines, `length` floats of each; a row begins `row`
// floats after the one before.
struct lines {
    const char *name;
    int rows, out, runs, length, row;
};

static const struct lines lines[] = {
    {"stem 7x7", 320, 64, 7, 21, 6},        {"layer1 3x3", 160, 64, 3, 192, 64},
    {"layer2 3x3", 80, 128, 3, 384, 128},   {"layer3 3x3", 40, 256, 3, 768, 256},
    {"layer4 3x3", 20, 512, 3, 1536, 512},  {"layer2 3x3/2", 80, 128, 3, 192, 128},
    {"layer3 3x3/2", 40, 256, 3, 384, 256}, {"layer4 3x3/2", 20, 512, 3, 768, 512},
};

struct job {
    struct gemm g;
    struct gemm_rows x;
    int rows;
    size_t copies, ours, theirs; // of the weights, and whose turn it is
    float *dense, *w;            // the same for OpenBLAS: (rows, depth), (out, depth)
    float *y;
    struct gemm_finish finish;
};

static void run_ours(void *arg)
{
    struct job *j = arg;
    struct gemm g = j->g;

    j->ours = (j->ours + 1) % j->copies;
    g.panel += j->ours * gemm_floats(g.kernel, g.depth, g.out);
    gemm_run(&g, &j->x, 0, j->rows, 0, gemm_panels(j->g.kernel, j->g.out), j->y,
             (size_t)j->g.out, &j->finish);
}

static void run_plain(void *arg)
{
    struct job j = *(const struct job *)arg;

    j.x = gemm_plain_rows(j.dense, (size_t)j.g.depth, j.g.depth);
    run_ours(&j);
}

static void run_openblas(void *arg)
{
    struct job *j = arg;

    j->theirs = (j->theirs + 1) % j->copies;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, j->rows, j->g.out, j->g.depth,
                1.0f, j->dense, j->g.depth,
                j->w + j->theirs * (size_t)(j->g.out * j->g.depth), j->g.depth, 0.0f,
                j->y, j->g.out);
}

static void job_open(struct job *j, enum cpu_isa isa, int rows, int out, int depth,
                     bool cold)
{
    const struct gemm_kernel *k = gemm_kernel_of(isa);
    size_t n = gemm_floats(k, depth, out), copies = cold ? COLD_FLOATS / n + 1 : 1;

    *j = (struct job){
        .g = {depth, out, k, bench_values(n * copies)}, .rows = rows, .copies = copies};
    j->w = bench_values((size_t)out * (size_t)depth * copies);
    j->dense = bench_values((size_t)rows * (size_t)depth);
    j->y = bench_values((size_t)rows * (size_t)out);
    j->finish = (struct gemm_finish){.bias = j->w, .f = ACTIVATION_RELU};
    gemm_pack(&j->g, 0, out, j->w, (size_t)depth);
    j->x = gemm_plain_rows(j->dense, (size_t)depth, depth);
}

static void job_close(struct job *j)
{
    free(j->g.panel);
    free(j->w);
    free(j->dense);
    free(j->y);
}

static void bench_shape(enum cpu_isa isa, double seconds, const struct shape *s)
{
    struct job j;

    job_open(&j, isa, s->rows, s->out, s->depth, s->cold);
    double flops = 2.0 * s->rows * s->out * s->depth;
    struct bench_entry e[] = {{run_ours, &j, flops, 0, 0},
                              {run_openblas, &j, flops, 0, 0}};
    bench_race(isa, e, 2, seconds);
    printf("  %-18s%s %5d %5d %5d  %6.1f GF %4.0f %%  OpenBLAS %6.1f GF  %5.2fx\n",
           s->name, s->cold ? "*" : " ", s->rows, s->out, s->depth, e[0].gflops,
           100 * e[0].share, e[1].gflops, e[0].gflops / e[1].gflops);
    if (s->rows >= 48 && s->out >= 48 && !s->cold)
        bench_share(isa, e[0].gflops);
    job_close(&j);
}

static void bench_lines(enum cpu_isa isa, double seconds, const struct lines *l)
{
    struct job j;
    size_t run = (size_t)l->row * (size_t)l->rows + (size_t)l->length;
    float *map = bench_values(run * (size_t)l->runs);

    job_open(&j, isa, l->rows, l->out, l->runs * l->length, false);
    j.x = (struct gemm_rows){map, (size_t)l->row, l->runs, l->length, run};
    double flops = 2.0 * l->rows * l->out * j.g.depth;
    struct bench_entry e[] = {{run_ours, &j, flops, 0, 0},
                              {run_plain, &j, flops, 0, 0},
                              {run_openblas, &j, flops, 0, 0}};
    bench_race(isa, e, 3, seconds);
    printf(
        "  %-14s %4d %4d %2dx%4d  %6.1f GF %4.0f %%  one run %6.1f GF %4.0f %%  OpenBLAS %6.1f GF\n",
        l->name, l->rows, l->out, l->runs, l->length, e[0].gflops, 100 * e[0].share,
        e[1].gflops, 100 * e[1].share, e[2].gflops);
    job_close(&j);
    free(map);
}

void bench_gemm(enum cpu_isa isa, double seconds)
{
    printf(
        "gemm                    rows   out depth      best  of peak (median); * cold weights\n");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        bench_shape(isa, seconds, &shapes[i]);
    printf("gemm, several runs   rows  out runs x length\n");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        bench_lines(isa, seconds, &lines[i]);
}
