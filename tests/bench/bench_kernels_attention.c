// Attention in one pass beside what it replaced, for the shapes of the
// standard cases: OpenBLAS's two products per block of 64 queries and a softmax in
// between.
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "policy/kernels/attention.h"
#include "policy/kernels/vec.h"
#include "tests/bench/bench_kernels.h"

struct shape {
    int heads, head_dim, queries, keys;
};

static const struct shape shapes[] = {
    {8, 64, 302, 302}, {8, 64, 602, 602}, {8, 64, 1202, 1202}, {8, 64, 51, 51},
    {8, 64, 11, 11},   {8, 64, 100, 302}, {8, 64, 100, 1202},  {8, 64, 100, 51},
    {8, 32, 302, 302}, {8, 32, 602, 602}, {8, 32, 1202, 1202}, {8, 32, 51, 51},
    {8, 32, 11, 11},   {8, 32, 100, 302}, {8, 32, 50, 11},
};

// ---- the twin -------------------------------------------------------------------------

// n is padded with -infinity to a multiple of 4.
static void softmax_row(float *x, int n)
{
    v4f max = v4_load(x), sum = v4_splat(0.0f);

    for (int i = 4; i < n; i += 4) {
        v4f v = v4_load(x + i);
        max = v4_select(v > max, v, max);
    }
    for (int k = 1; k < 4; k++)
        max[0] = max[k] > max[0] ? max[k] : max[0];
    for (int i = 0; i < n; i += 4)
        v4_store(x + i, v4_load(x + i) - v4_splat(max[0]));
    attention_kernel_of(cpu_chosen())->exp_nonpositive(x, x, n);
    for (int i = 0; i < n; i += 4)
        sum += v4_load(x + i);
    sum = v4_splat(1.0f / ((sum[0] + sum[1]) + (sum[2] + sum[3])));
    for (int i = 0; i < n; i += 4)
        v4_store(x + i, v4_load(x + i) * sum);
}

static void twin_block(const struct attention *a, int h, int from, int rows,
                       float *scores)
{
    int head = h * a->head_dim, dim = a->heads * a->head_dim;
    int row = (a->keys + 3) / 4 * 4;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, a->keys, a->head_dim,
                1.0f / sqrtf((float)a->head_dim), a->q.data + from * a->q.stride + head,
                a->q.stride, a->k.data + head, a->k.stride, 0.0f, scores, row);
    for (int r = 0; r < rows; r++) {
        for (int k = a->keys; k < row; k++)
            scores[r * row + k] = -INFINITY;
        softmax_row(scores + r * row, row);
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, a->head_dim, a->keys,
                1.0f, scores, row, a->v.data + head, a->v.stride, 0.0f,
                a->out + from * dim + head, dim);
}

// ---- the race -------------------------------------------------------------------------

static void all_blocks(const struct attention *a,
                       void (*block)(const struct attention *, int, int, int, float *))
{
    for (int h = 0; h < a->heads; h++)
        for (int from = 0; from < a->queries; from += ATTENTION_BLOCK) {
            int left = a->queries - from;
            block(a, h, from, left < ATTENTION_BLOCK ? left : ATTENTION_BLOCK,
                  a->scratch);
        }
}

struct job {
    struct attention a;
    const struct attention_kernel *kernel;
};

static void run_ours(void *arg)
{
    const struct job *j = arg;
    all_blocks(&j->a, j->kernel->block);
}

static void run_twin(void *arg)
{
    const struct job *j = arg;
    all_blocks(&j->a, twin_block);
}

static void bench_shape(const struct shape *s, enum cpu_isa isa, double seconds)
{
    int dim = s->heads * s->head_dim, most = s->queries > s->keys ? s->queries : s->keys;
    size_t scratch = attention_scratch_floats(s->head_dim);
    size_t scores = (size_t)ATTENTION_BLOCK * (size_t)(s->keys + 3);
    float *x = bench_values(3 * (size_t)dim * (size_t)most);
    struct job j = {.kernel = attention_kernel_of(isa)};
    double flops = 4.0 * dim * (double)s->queries * s->keys;
    struct bench_entry e[] = {{run_ours, &j, flops, 0, 0}, {run_twin, &j, flops, 0, 0}};

    j.a = (struct attention){.heads = s->heads, .head_dim = s->head_dim};
    j.a.queries = s->queries;
    j.a.keys = s->keys;
    j.a.q = (struct attention_view){x, 3 * dim};
    j.a.k = (struct attention_view){x + dim, 3 * dim};
    j.a.v = (struct attention_view){x + 2 * dim, 3 * dim};
    j.a.out = bench_values((size_t)(dim * s->queries));
    j.a.scratch = bench_values(scratch > scores ? scratch : scores);
    bench_race(isa, e, 2, seconds);
    printf("  %d x %2d  %4d x %4d  %8.3f ms  %6.1f GFLOP/s  %5.1f %%", s->heads,
           s->head_dim, s->queries, s->keys, 1e-6 * flops / e[0].gflops, e[0].gflops,
           100 * e[0].share);
    printf("  twin %8.3f ms  ratio %.2f\n", 1e-6 * flops / e[1].gflops,
           e[1].gflops / e[0].gflops);
    free(x);
    free(j.a.out);
    free(j.a.scratch);
}

void bench_attention(enum cpu_isa isa, double seconds)
{
    printf("attention  queries x keys; twin: OpenBLAS and a softmax\n");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        bench_shape(&shapes[i], isa, seconds);
}
