// stem_body: the two parts of stem_priv.h with the vectors of simd.h, as STEM_KERNEL. Whoever includes
// it has defined
//
//   STEM_NAME, STEM_ISA   of the kernel
//   TILES                 of a product; with VECTORS of channels so many sums lie in registers
//   KEEP                  how an asm statement calls a vector register; or nothing
#include "policy/kernels/gemm_priv.h"
#include "policy/kernels/simd.h"
#include "policy/kernels/stem_priv.h"
#include "policy/kernels/winograd_priv.h"

#define VECTORS  2
#define CHANNELS (VECTORS * SIMD_WIDTH)

// x is in a register from here on, and not an operand in memory of each of its multiplications.
#ifdef KEEP
#define keep(x) __asm__ volatile("" : "+" KEEP(x))
#else
#define keep(x)
#endif

// ---- products ---------------------------------------------------------------------------------

// h tiles of one point. v (h, STEM_PIXEL), u (STEM_DEPTH rows u_row apart), m (h, CHANNELS).
SIMD_INLINE void product(const int h, const float *v, const float *u, size_t u_row,
                         float *m)
{
    vf sum[TILES][VECTORS];

    UNROLL
    for (int k = 0; k < STEM_DEPTH; k++) {
        vf right[VECTORS];
        UNROLL
        for (int j = 0; j < VECTORS; j++) {
            right[j] = simd_load(u + (size_t)k * u_row + j * SIMD_WIDTH);
            keep(right[j]);
        }
        UNROLL
        for (int i = 0; i < h; i++) {
            vf left = simd_splat(v[i * STEM_PIXEL + k]);
            keep(left);
            UNROLL
            for (int j = 0; j < VECTORS; j++)
                sum[i][j] = k ? simd_fma(left, right[j], sum[i][j]) : left * right[j];
        }
    }
    UNROLL
    for (int i = 0; i < h; i++) {
        UNROLL
        for (int j = 0; j < VECTORS; j++)
            simd_store(m + i * CHANNELS + j * SIMD_WIDTH, sum[i][j]);
    }
}

// All points of h tiles, CHANNELS of them from u on.
typedef void products_fn(const struct stem_piece *p, const float *u);
#define PRODUCTS(h)                                                      \
    static void products_##h(const struct stem_piece *p, const float *u) \
    {                                                                    \
        size_t u_row = (size_t)p->s->out;                                \
        for (int i = 0; i < STEM_POINTS; i++)                            \
            product(h, p->v + i * TILES * STEM_PIXEL,                    \
                    u + (size_t)i * STEM_DEPTH * u_row, u_row,           \
                    p->m + i * TILES * CHANNELS);                        \
    }

PRODUCTS(2)
PRODUCTS(4)
PRODUCTS(6)
#if TILES > 6
PRODUCTS(8)
PRODUCTS(10)
PRODUCTS(12)
#endif

static products_fn *const products[TILES / 2] = {
    products_2, products_4,  products_6,
#if TILES > 6
    products_8, products_10, products_12,
#endif
};

// ---- output transform -------------------------------------------------------------------------

struct six {
    vf v[STEM_SIDE];
};
struct three {
    vf v[STEM_TILE];
};

// A^T q
SIMD_INLINE struct three line(const struct six q)
{
    const float a = (float)WINOGRAD_4_A, b = (float)WINOGRAD_4_B, aa = a * a, bb = b * b;
    vf even_a = q.v[1] + q.v[2], odd_a = q.v[1] - q.v[2];
    vf even_b = q.v[3] + q.v[4], odd_b = q.v[3] - q.v[4];

    return (struct three){
        {q.v[0] + (even_a + even_b),
         simd_fma(simd_splat(a), odd_a, simd_splat(b) * odd_b),
         simd_fma(simd_splat(aa), even_a, simd_fma(simd_splat(bb), even_b, q.v[5]))}};
}

// One vector of one tile: q (STEM_POINTS, TILES * CHANNELS) to y (STEM_TILE, STEM_TILE).
SIMD_INLINE void output(const float *q, vf bias, float *y, size_t y_row, size_t y_pixel)
{
    struct six t[STEM_TILE];

    UNROLL
    for (int x = 0; x < STEM_SIDE; x++) {
        struct six column;
        UNROLL
        for (int i = 0; i < STEM_SIDE; i++)
            column.v[i] = simd_load(q + (i * STEM_SIDE + x) * TILES * CHANNELS);
        struct three to = line(column);
        UNROLL
        for (int i = 0; i < STEM_TILE; i++)
            t[i].v[x] = to.v[i];
    }
    UNROLL
    for (int i = 0; i < STEM_TILE; i++) {
        struct three to = line(t[i]);
        UNROLL
        for (int x = 0; x < STEM_TILE; x++)
            simd_store(y + (size_t)i * y_row + (size_t)x * y_pixel,
                       simd_max((vf){0}, to.v[x] + bias)); // a NaN stays
    }
}

static void convolve(const struct stem_piece *p)
{
    size_t out = (size_t)p->s->out;

    for (size_t c = 0; c < out; c += CHANNELS) {
        products[p->tiles / 2 - 1](p, p->s->weight + c);
        for (int t = 0; t < p->tiles; t++)
            for (size_t j = 0; j < CHANNELS; j += SIMD_WIDTH)
                output(p->m + (size_t)t * CHANNELS + j, simd_load(p->s->bias + c + j),
                       p->y + (size_t)(STEM_TILE * t) * out + c + j, p->y_row, out);
    }
}

// ---- pooling ----------------------------------------------------------------------------------

// simd_max loses the first one's NaN; all bits set are a NaN, too.
SIMD_INLINE vf max_or_nan(vf a, vf b)
{
    return (vf)((vi)simd_max(a, b) | (vi)(a != a));
}

// The largest of three pixels begins an output pixel, or goes on with one, or both.
SIMD_INLINE void pool_pixel(const float *const x[3], int i, float *begin, float *go_on)
{
    vf v = max_or_nan(simd_load(x[0] + i), simd_load(x[1] + i));

    v = max_or_nan(v, simd_load(x[2] + i));
    if (begin)
        simd_store(begin + i, v);
    if (go_on)
        simd_store(go_on + i, max_or_nan(v, simd_load(go_on + i)));
}

// Beside the image the middle pixel stands in, which always lies inside.
static void pool(const struct stem_row *row, float *begin, float *go_on)
{
    int channels = row->channels;

    for (int p = 0; p < row->width; p += 2) {
        const float *middle = row->x + (size_t)p * (size_t)channels;
        const float *x[3] = {p > 0 || row->inside ? middle - channels : middle, middle,
                             p + 1 < row->width ? middle + channels : middle};

        for (int i = 0; i < channels; i += SIMD_WIDTH)
            pool_pixel(x, i, begin, go_on);
        begin = begin ? begin + channels : NULL;
        go_on = go_on ? go_on + channels : NULL;
    }
}

const struct stem_kernel STEM_NAME = {STEM_ISA, TILES, CHANNELS, convolve, pool};
