#include <string.h>

#include "policy/kernels/gemm_bf16.h"
#include "policy/kernels/winograd_priv.h"

#define LANES 4 // input channels at a time; their number is a multiple of it

typedef double lanes[LANES];

// Stride 2: the one tap of the values between; the outer ones' two at 0, 1, (-1,) infinity.
static const double halving_rows[5][WINOGRAD_TAPS] = {
    {0, 1, 0}, {1, 0, 0}, {1, 0, 1}, {1, 0, -1}, {0, 0, 1}};
static const double halving_columns[4][WINOGRAD_TAPS] = {
    {0, 1, 0}, {1, 0, 0}, {1, 0, 1}, {0, 0, 1}};

void winograd_matrix_g(int m, int taps, double g[WINOGRAD_MAX_N][WINOGRAD_TAPS])
{
    static const double points[3][WINOGRAD_MAX_N - 1] = {
        {0, 1, -1},
        {0, WINOGRAD_4_A, -WINOGRAD_4_A, WINOGRAD_4_B, -WINOGRAD_4_B},
        {0, WINOGRAD_6_A, -WINOGRAD_6_A, WINOGRAD_6_B, -WINOGRAD_6_B, WINOGRAD_6_C,
         -WINOGRAD_6_C}};
    const double *p = points[m / 2 - 1];

    for (int j = 0; j <= m; j++) {
        double norm = 1;
        for (int k = 0; k <= m; k++)
            norm *= k == j ? 1 : p[j] - p[k];
        g[j][0] = 1 / norm;
        for (int k = 1; k < taps; k++)
            g[j][k] = g[j][k - 1] * p[j];
    }
    for (int k = 0; k < taps; k++)
        g[m + 1][k] = k == taps - 1;
}

// G of columns and of rows, which differ with stride 2 only.
struct matrices {
    int n, columns;
    double g[WINOGRAD_MAX_N][WINOGRAD_TAPS], h[WINOGRAD_MAX_N][WINOGRAD_TAPS];
};

static void matrices_of(int m, struct matrices *to)
{
    to->n = m + 2;
    to->columns = winograd_columns(m) + 2;
    if (winograd_stride(m) == 2) {
        memcpy(to->g, halving_rows, sizeof halving_rows);
        memcpy(to->h, halving_columns, sizeof halving_columns);
    } else {
        winograd_matrix_g(m, 3, to->g);
        memcpy(to->h, to->g, sizeof to->g);
    }
}

// G w H^T for LANES input channels of one output channel. w: the 9 taps, `in` floats
// apart.
static void transform(const struct matrices *m, const float *w, size_t in,
                      lanes u[WINOGRAD_MAX_N][WINOGRAD_MAX_N])
{
    for (int x = 0; x < 3; x++) {
        lanes column[WINOGRAD_MAX_N];
        for (int y = 0; y < m->n; y++)
            for (int i = 0; i < LANES; i++)
                column[y][i] = m->g[y][0] * (double)w[(size_t)x * in + (size_t)i] +
                               m->g[y][1] * (double)w[((size_t)x + 3) * in + (size_t)i] +
                               m->g[y][2] * (double)w[((size_t)x + 6) * in + (size_t)i];
        for (int y = 0; y < m->n; y++)
            for (int p = 0; p < m->columns; p++)
                for (int i = 0; i < LANES; i++)
                    u[y][p][i] = (x ? u[y][p][i] : 0) + column[y][i] * m->h[p][x];
    }
}

// To `at` of w, one output channel's: points `point` values apart, input channels nr.
static void put(const struct winograd *w, lanes from[WINOGRAD_MAX_N][WINOGRAD_MAX_N],
                size_t at, size_t point, size_t nr)
{
    for (int y = 0; y < w->m + 2; y++)
        for (int x = 0; x < winograd_columns(w->m) + 2; x++, at += point)
            for (size_t i = 0; i < LANES; i++) {
                float u = (float)from[y][x][i];
                if (w->bf16)
                    w->bf16[at + i * nr] = gemm_bf16_round(u);
                else
                    w->u[at + i * nr] = u;
            }
}

void winograd_pack(const struct winograd *w, const float *g)
{
    lanes u[WINOGRAD_MAX_N][WINOGRAD_MAX_N];
    struct matrices matrices;
    size_t in = (size_t)w->in, nr = (size_t)w->kernel->nr, out = (size_t)w->out;
    size_t point = gemm_floats(w->kernel, w->in, w->out);

    matrices_of(w->m, &matrices);
    for (size_t panel = 0; panel * nr < out; panel++)
        for (size_t k = 0; k < in; k += LANES)
            for (size_t o = panel * nr; o < (panel + 1) * nr && o < out; o++) {
                transform(&matrices, g + o * 9 * in + k, in, u);
                put(w, u, (panel * in + k) * nr + o % nr, point, nr);
            }
}
