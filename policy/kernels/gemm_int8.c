#include "policy/kernels/gemm_int8.h"

#include <float.h>
#include <math.h>

#include "policy/kernels/gemm_int8_priv.h"
#include "policy/kernels/gemm_priv.h"

// Of x, read again for every panel: half of the smallest second-level cache we expect (Zen 3: 512
// KiB), the other half is the panel's.
#define BLOCK_BYTES (256 * 1024)
// However long the rows: the panel, which is read once per block, must pay, too.
#define BLOCK_ROWS_MIN 96

// ---- which kernel ----------------------------------------------------------------------

static const struct gemm_int8_kernel *const kernels[] = {
    &gemm_int8_generic,
#ifdef __x86_64__
    &gemm_int8_avx2,
    &gemm_int8_vnni_avx2,
    &gemm_int8_avx512,
    &gemm_int8_vnni_avx512,
#endif
#ifdef __aarch64__
    &gemm_int8_neon,
#endif
    NULL,
};

const struct gemm_int8_kernel *gemm_int8_kernel_at(int i)
{
    return kernels[i];
}

bool gemm_int8_runs(const struct gemm_int8_kernel *k)
{
    return k->vnni ? cpu_runs_vnni(k->isa) : cpu_runs(k->isa);
}

const struct gemm_int8_kernel *gemm_int8_kernel_of(enum cpu_isa isa)
{
    const struct gemm_int8_kernel *k = NULL;

    for (int i = 0; kernels[i]; i++)
        if (kernels[i]->isa == isa && (!kernels[i]->vnni || cpu_uses_vnni(isa)))
            k = kernels[i];
    return k;
}

const struct gemm_int8_kernel *gemm_int8_kernel(void)
{
    return gemm_int8_kernel_of(cpu_chosen());
}

// ---- memory ----------------------------------------------------------------------------

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static size_t panel_depth(int depth)
{
    return round_up((size_t)depth, 16);
}

int gemm_int8_panels(const struct gemm_int8_kernel *k, int out)
{
    return (out + k->nr - 1) / k->nr;
}

// The panels, whose nr is a multiple of 4, end at a multiple of 64.
size_t gemm_int8_bytes(const struct gemm_int8_kernel *k, int depth, int out)
{
    size_t columns = (size_t)gemm_int8_panels(k, out) * (size_t)k->nr;

    return columns * panel_depth(depth) +
           round_up(columns * (sizeof(float) + sizeof(int32_t)), GEMM_ALIGN);
}

void gemm_int8_place(struct gemm_int8 *g, void *memory)
{
    size_t columns = (size_t)gemm_int8_panels(g->kernel, g->out) * (size_t)g->kernel->nr;

    g->panel = memory;
    g->scale = (void *)(g->panel + columns * panel_depth(g->depth));
    g->sum = (void *)(g->scale + columns);
}

static size_t row_stride(int depth)
{
    return round_up((size_t)depth, 64);
}

size_t gemm_int8_rows_bytes(int rows, int depth)
{
    size_t n = (size_t)rows;

    return n * row_stride(depth) +
           round_up(n * (sizeof(float) + sizeof(int32_t)), GEMM_ALIGN);
}

struct gemm_int8_rows gemm_int8_rows_in(void *memory, int rows, int depth)
{
    struct gemm_int8_rows x = {.q = memory, .stride = row_stride(depth)};

    x.scale = (void *)(x.q + (size_t)rows * x.stride);
    x.zero = (void *)(x.scale + rows);
    return x;
}

// ---- weights ---------------------------------------------------------------------------

// The largest sum of positive weights, or of negative ones, whose products meet in 16 bits: of depths
// first, first + 1 and the same in the next quads.
static double group_sum(const float *w, int depth, int first, int quads)
{
    double size = 0.0, sum = 0.0;

    for (int d = first; d < first + 4 * quads && d < depth; d += d % 2 ? 3 : 1) {
        size += fabs((double)w[d]);
        sum += (double)w[d];
    }
    return 0.5 * (size + fabs(sum));
}

// The finest steps for which the largest weight is at most weight_max of them and no sum exceeds 16
// bits; each weight of a group may be rounded up by half a step.
static double column_scale(const struct gemm_int8_kernel *k, const float *w, int depth)
{
    double most = 0.0, group = 0.0;

    for (int d = 0; d < depth; d++)
        most = fabs((double)w[d]) > most ? fabs((double)w[d]) : most;
    for (int d = 0; k->quads > 0 && d < depth; d += d % 4 == 0 ? 2 : 4 * k->quads - 2) {
        double sum = group_sum(w, depth, d, k->quads);
        group = sum > group ? sum : group;
    }
    most /= k->weight_max;
    group /= INT16_MAX / k->x_max - k->quads;
    return most > group ? most : group;
}

static bool all_finite(const float *w, int n)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(w[i]))
            return false;
    return true;
}

// The nearest whole number, halves to even, as long as it is small; without a call.
static int nearest(double x)
{
    return (int)((x + 0x1.8p52) - 0x1.8p52);
}

// One column. A scale is no smaller than what a float holds exactly: weights below 1e-38 become 0.
static void pack_column(const struct gemm_int8 *g, size_t column, const float *w)
{
    size_t nr = (size_t)g->kernel->nr;
    int8_t *to = g->panel + column / nr * nr * panel_depth(g->depth) + column % nr * 4;

    g->sum[column] = 0;
    g->scale[column] = NAN;
    if (!all_finite(w, g->depth))
        return;
    float scale = nextafterf((float)column_scale(g->kernel, w, g->depth), INFINITY);
    scale = scale < FLT_MIN ? FLT_MIN : scale;
    double inverse = 1.0 / (double)scale;
    g->scale[column] = scale;
    for (int d = 0; d < g->depth; d++) {
        int q = nearest((double)w[d] * inverse);
        to[(size_t)(d / 4) * nr * 4 + (size_t)(d % 4)] = (int8_t)q;
        g->sum[column] += q;
    }
}

void gemm_int8_pack(const struct gemm_int8 *g, int column, int n, const float *w,
                    size_t w_stride)
{
    for (int c = 0; c < n; c++, w += w_stride)
        pack_column(g, (size_t)column + (size_t)c, w);
}

// ---- products --------------------------------------------------------------------------

static int least(int a, int b)
{
    return a < b ? a : b;
}

void gemm_int8_quantise(const struct gemm_int8_kernel *k, const float *x, size_t x_stride,
                        int depth, int row0, int row1, const struct gemm_int8_rows *to)
{
    for (int r = row0; r < row1; r++)
        k->quantise(x + (size_t)r * x_stride, depth, k->x_max,
                    to->q + (size_t)r * to->stride, to->stride, &to->scale[r],
                    &to->zero[r]);
}

// All rows [row, row + rows) of one panel; GELU as gemm.c has it.
static void one_panel(const struct gemm_int8 *g, const struct gemm_int8_rows *x, int row,
                      int rows, int index, float *y, size_t y_stride,
                      const struct gemm_finish *finish)
{
    const struct gemm_int8_kernel *k = g->kernel;
    int column = index * k->nr, columns = least(g->out - column, k->nr);
    size_t depth = panel_depth(g->depth);
    struct gemm_finish at = gemm_finish_at(finish, row, column, columns);
    float *to = y + (size_t)row * y_stride + column;

    k->panel(x, row, rows, (int)depth, g->panel + (size_t)column * depth,
             g->scale + column, g->sum + column, columns, to, y_stride, &at);
    if (finish->f == ACTIVATION_GELU)
        activation_apply(ACTIVATION_GELU, to, rows, columns, (int)y_stride);
}

// Rows that are read for one panel after the other: blocks of nearly the same size, whole tiles.
static int block_rows(const struct gemm_int8 *g, size_t stride, int rows)
{
    int fit = (int)(BLOCK_BYTES / stride), mr = g->kernel->mr;
    int most = fit < BLOCK_ROWS_MIN ? BLOCK_ROWS_MIN : fit;
    int blocks = (rows + most - 1) / most;

    return ((rows + blocks - 1) / blocks + mr - 1) / mr * mr;
}

void gemm_int8_run(const struct gemm_int8 *g, const struct gemm_int8_rows *x, int row0,
                   int row1, int panel0, int panel1, float *y, size_t y_stride,
                   const struct gemm_finish *finish)
{
    if (row0 >= row1)
        return;
    int block = block_rows(g, x->stride, row1 - row0);
    for (int r = row0; r < row1; r += block)
        for (int p = panel0; p < panel1; p++)
            one_panel(g, x, r, least(block, row1 - r), p, y, y_stride, finish);
}
