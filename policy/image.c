// image: see the header.
#include "policy/image.h"

#include <errno.h>
#include <math.h>

// Where the picture lies in the output: everything outside is a bar.
struct placing {
    int top, left, height, width;
};

static float normalised(const struct norm *m, int c, float value)
{
    return ((value - m->sub[c]) / m->div[c]) * m->mul[c] + m->add[c];
}

static void fill_table(const struct norm *norm, int c, float table[256])
{
    for (int v = 0; v < 256; v++)
        table[v] = normalised(norm, c, (float)v / 255.0f);
}

void image_table(const struct norm *norm, float table[3][256])
{
    for (int c = 0; c < 3; c++)
        fill_table(norm, c, table[c]);
}

// All 256 answers for a channel, then one look-up per pixel: the same float operations in the
// same order as per pixel, so the same bits, at a fifth of the time (two divisions saved).
static void copy_channel(const struct policy_image *im, const struct norm *norm, int c,
                         float *plane)
{
    float table[256];

    fill_table(norm, c, table);
    for (int y = 0; y < im->height; y++) {
        const uint8_t *row = im->rgb + (size_t)y * (size_t)im->stride + c;

        for (int x = 0; x < im->width; x++)
            *plane++ = table[row[(size_t)x * 3]];
    }
}

// One output coordinate: two neighbours and the share of the second. float32 as in torch.
struct tap {
    int first, second;
    float share;
};

static struct tap tap_at(int destination, int source_size, float scale)
{
    float s = scale * ((float)destination + 0.5f) - 0.5f;
    struct tap t;

    if (s < 0.0f)
        s = 0.0f;
    t.first = (int)s;
    if (t.first > source_size - 1)
        t.first = source_size - 1;
    t.second = t.first + (t.first < source_size - 1);
    t.share = s - (float)t.first;
    return t;
}

#define COLUMNS 256 // columns whose taps are kept at a time, so that no memory is needed

// Resamples columns [x0, x0 + n) of every row of one channel.
static void resample_columns(const struct policy_image *im, const struct norm *norm,
                             int c, const struct placing *at, int x0, int n, float *plane,
                             int width)
{
    float scale_y = (float)im->height / (float)at->height;
    float scale_x = (float)im->width / (float)at->width;
    struct tap column[COLUMNS];

    for (int i = 0; i < n; i++) {
        column[i] = tap_at(x0 + i, im->width, scale_x);
        column[i].first = column[i].first * 3 + c;
        column[i].second = column[i].second * 3 + c;
    }
    for (int y = 0; y < at->height; y++) {
        struct tap row = tap_at(y, im->height, scale_y);
        const uint8_t *p = im->rgb + (size_t)row.first * (size_t)im->stride;
        const uint8_t *q = im->rgb + (size_t)row.second * (size_t)im->stride;
        float *out = plane + (size_t)(at->top + y) * (size_t)width + at->left + x0;

        for (int i = 0; i < n; i++) {
            const struct tap *t = &column[i];
            float upper =
                (1.0f - t->share) * (float)p[t->first] + t->share * (float)p[t->second];
            float lower =
                (1.0f - t->share) * (float)q[t->first] + t->share * (float)q[t->second];
            float v = (1.0f - row.share) * upper + row.share * lower;

            out[i] = normalised(norm, c, v / 255.0f);
        }
    }
}

static void fill_bars(const struct placing *at, float value, float *plane, int height,
                      int width)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < (y < at->top ? width : at->left); x++)
            plane[(size_t)y * (size_t)width + (size_t)x] = value;
}

// int(h / r), int(w / r) in double, as LeRobot's Python computes them.
static struct placing letterbox(const struct policy_image *im, int height, int width)
{
    double ratio = fmax((double)im->width / width, (double)im->height / height);
    struct placing p;

    p.height = (int)(im->height / ratio);
    p.width = (int)(im->width / ratio);
    if (p.height < 1)
        p.height = 1;
    if (p.width < 1)
        p.width = 1;
    p.top = height - p.height;
    p.left = width - p.width;
    return p;
}

static bool plausible(const struct policy_image *im, const struct norm *norm, int height,
                      int width, const float *chw)
{
    return im && im->rgb && norm && norm->n == 3 && chw && height > 0 && width > 0 &&
           im->height > 0 && im->width > 0 && im->stride / 3 >= im->width;
}

int image_to_planes(const struct policy_image *image, enum policy_resize resize,
                    const struct norm *norm, int height, int width, float *chw)
{
    struct placing at = {0, 0, height, width};
    bool same;

    if (!plausible(image, norm, height, width, chw))
        return -EINVAL;
    same = image->height == height && image->width == width;
    if (!same && resize == POLICY_RESIZE_REFUSE)
        return -EINVAL;
    if (!same && resize == POLICY_RESIZE_LETTERBOX)
        at = letterbox(image, height, width);
    for (int c = 0; c < 3; c++) {
        float *plane = chw + (size_t)c * (size_t)height * (size_t)width;

        if (same) {
            copy_channel(image, norm, c, plane);
            continue;
        }
        fill_bars(&at, normalised(norm, c, 0.0f), plane, height, width);
        for (int x = 0; x < at.width; x += COLUMNS)
            resample_columns(image, norm, c, &at, x,
                             at.width - x < COLUMNS ? at.width - x : COLUMNS, plane,
                             width);
    }
    return 0;
}
