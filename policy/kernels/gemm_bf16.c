#include "policy/kernels/gemm_bf16.h"

#include <string.h>

#include "policy/kernels/gemm_bf16_priv.h"

// Of x, read again for every panel: 256 KiB at GEMM_BF16_DEPTH, as in gemm.c.
#define BLOCK_ROWS 256

gemm_bf16_expand_fn *gemm_bf16_expand_of(enum cpu_isa isa)
{
    switch (isa) {
    case CPU_GENERIC:
        return gemm_bf16_expand_generic;
#ifdef __x86_64__
    case CPU_AVX2:
        return gemm_bf16_expand_avx2;
    case CPU_AVX512:
        return gemm_bf16_expand_avx512;
#endif
#ifdef __aarch64__
    case CPU_NEON:
        return gemm_bf16_expand_neon;
#endif
    default:
        return NULL;
    }
}

uint16_t gemm_bf16_round(float w)
{
    uint32_t bits;

    memcpy(&bits, &w, sizeof bits);
    if (w != w)
        return (uint16_t)(bits >> 16 | 0x40); // quiet: rounding must not make it infinity
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float gemm_bf16_float(uint16_t w)
{
    uint32_t bits = (uint32_t)w << 16;
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

size_t gemm_bf16_bytes(const struct gemm_kernel *k, int depth, int out)
{
    return gemm_floats(k, depth, out) * sizeof(uint16_t);
}

void gemm_bf16_pack(const struct gemm_bf16 *g, int column, int n, const float *w,
                    size_t w_stride)
{
    size_t depth = (size_t)g->depth, nr = (size_t)g->kernel->nr;

    for (size_t c = (size_t)column; c < (size_t)column + (size_t)n; c++, w += w_stride) {
        uint16_t *to = g->panel + c / nr * depth * nr + c % nr;
        for (size_t k = 0; k < depth; k++)
            to[k * nr] = gemm_bf16_round(w[k]);
    }
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

// What happens after the part [from, to) of the depth: what was asked for, after the last; the sums
// so far are in y.
static struct gemm_finish finish_part(const struct gemm_bf16 *g, int from, int to,
                                      int column, const struct gemm_finish *asked)
{
    struct gemm_finish f = {.accumulate = from > 0 || asked->accumulate};

    if (to < g->depth)
        return f;
    f.bias = asked->bias ? asked->bias + column : NULL;
    if (asked->table && asked->table_columns > column) {
        f.table = asked->table + column;
        f.table_stride = asked->table_stride;
        f.table_columns = asked->table_columns - column;
    }
    f.f = asked->f;
    return f;
}

void gemm_bf16_run(const struct gemm_bf16 *g, const struct gemm_rows *x, int row0,
                   int row1, int panel0, int panel1, float *y, size_t y_stride,
                   const struct gemm_finish *finish, float *scratch)
{
    gemm_bf16_expand_fn *expand = gemm_bf16_expand_of(g->kernel->isa);
    int nr = g->kernel->nr;

    for (int r = row0; r < row1; r += BLOCK_ROWS)
        for (int from = 0, to; from < g->depth; from = to) {
            to = least(from + GEMM_BF16_DEPTH, g->depth);
            struct gemm_rows part = gemm_plain_rows(x->x + from, x->row, to - from);
            for (int p = panel0; p < panel1; p++) {
                int column = p * nr;
                struct gemm one = {to - from, least(g->out - column, nr), g->kernel,
                                   scratch};
                struct gemm_finish f = finish_part(g, from, to, column, finish);
                size_t at = (size_t)column * (size_t)g->depth + (size_t)from * (size_t)nr;
                expand(g->panel + at, (size_t)(to - from) * (size_t)nr, scratch);
                gemm_run(&one, &part, r, least(r + BLOCK_ROWS, row1), 0, 1, y + column,
                         y_stride, &f);
            }
        }
}
