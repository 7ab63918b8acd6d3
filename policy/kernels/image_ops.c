#include "policy/kernels/image_ops.h"

#include "policy/kernels/vec.h"

struct job {
    const float *x;
    float *y;
    int height, width, channels;
};

static void interleave_task(void *arg, int worker, int workers)
{
    const struct job *j = arg;
    size_t channels = (size_t)j->channels, pixels = (size_t)j->height * (size_t)j->width;
    size_t begin, end;
    pool_share(pixels, worker, workers, &begin, &end);
    for (size_t c = 0; c < channels; c++)
        for (size_t p = begin; p < end; p++)
            j->y[p * channels + c] = j->x[c * pixels + p];
}

void interleave_run(struct pool *pool, const float *planes, int channels, int height,
                    int width, float *pixels)
{
    struct job j = {planes, pixels, height, width, channels};
    pool_run(pool, interleave_task, &j);
}

int max_pool_extent(int extent)
{
    return (extent + 2 - 3) / 2 + 1;
}

static void max_row(float *y, const float *x, int n)
{
    int i = 0;
    for (; i + 4 <= n; i += 4)
        v4_store(y + i, v4_max(v4_load(y + i), v4_load(x + i)));
    for (; i < n; i++)
        y[i] = y[i] > x[i] ? y[i] : x[i];
}

// One output pixel: the centre of its window always lies inside the image.
static void pool_pixel(const struct job *j, int row, int column, float *y)
{
    size_t channels = (size_t)j->channels, width = (size_t)j->width;
    memcpy(y, j->x + ((size_t)row * width + (size_t)column) * channels,
           channels * sizeof *y);
    for (int r = row - 1; r <= row + 1; r++) {
        if (r < 0 || r >= j->height)
            continue;
        for (int c = column - 1; c <= column + 1; c++)
            if (c >= 0 && c < j->width)
                max_row(y, j->x + ((size_t)r * width + (size_t)c) * channels,
                        j->channels);
    }
}

static void max_pool_task(void *arg, int worker, int workers)
{
    const struct job *j = arg;
    int out_width = max_pool_extent(j->width);
    size_t begin, end;
    pool_share((size_t)max_pool_extent(j->height), worker, workers, &begin, &end);
    for (int r = (int)begin; r < (int)end; r++)
        for (int c = 0; c < out_width; c++) {
            size_t at = (size_t)r * (size_t)out_width + (size_t)c;
            pool_pixel(j, 2 * r, 2 * c, j->y + at * (size_t)j->channels);
        }
}

void max_pool_run(struct pool *pool, const float *x, int height, int width, int channels,
                  float *y)
{
    struct job j = {x, y, height, width, channels};
    pool_run(pool, max_pool_task, &j);
}
