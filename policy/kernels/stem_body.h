// stem_body: the pooling of stem_priv.h with the vectors of simd.h, as STEM_POOL.
#include "policy/kernels/simd.h"
#include "policy/kernels/stem_priv.h"

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

static void pool_last(const float *const x[3], int i, float *begin, float *go_on)
{
    float v = x[0][i];

    for (int k = 1; k < 3; k++)
        v = v > x[k][i] || v != v ? v : x[k][i];
    if (begin)
        begin[i] = v;
    if (go_on)
        go_on[i] = v > go_on[i] || v != v ? v : go_on[i];
}

// Beside the image the middle pixel stands in, which always lies inside.
void STEM_POOL(const struct stem_piece *piece, float *begin, float *go_on)
{
    int channels = piece->channels;

    for (int p = 0; p < piece->width; p += 2) {
        const float *middle = piece->x + (size_t)p * (size_t)channels;
        const float *x[3] = {p > 0 || piece->inside ? middle - channels : middle, middle,
                             p + 1 < piece->width ? middle + channels : middle};
        int i = 0;

        for (; i + SIMD_WIDTH <= channels; i += SIMD_WIDTH)
            pool_pixel(x, i, begin, go_on);
        for (; i < channels; i++)
            pool_last(x, i, begin, go_on);
        begin = begin ? begin + channels : NULL;
        go_on = go_on ? go_on + channels : NULL;
    }
}
