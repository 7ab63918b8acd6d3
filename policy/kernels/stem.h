// stem: the first layer of a ResNet in one pass over the frame: 8-bit pixels are normalised as
// they are read (a table of 256 answers per channel, the same float operations in the same order
// as per pixel), a strip of lines at a time, convolved 7x7 with stride 2 and pad 3, and pooled 3x3
// with stride 2 while the strip lies in the cache. The full-size map between convolution and
// pooling, 320x240x64 floats, is never in memory.
#ifndef ACTD_KERNELS_STEM_H
#define ACTD_KERNELS_STEM_H

#include <stdint.h>

#include "policy/kernels/gemm.h"
#include "policy/kernels/map.h"

#define STEM_SIZE 7

struct stem {
    int out; // channels
    const struct gemm_kernel *kernel;
    float *weight; // packed (7 runs of 7 * 3, out)
    float *bias;   // (out), batch norm folded in
};

// What is read: pixels of 8 bits with a table per channel, or planes of floats as they are (a frame
// that had to be resized). One of the two is NULL.
struct stem_image {
    int height, width;
    const uint8_t *rgb; // (height, stride)
    size_t stride;
    const float (*table)[256]; // (3): value of each channel
    const float *planes;       // (3, height, width)
};

void stem_extent(int height, int width, int *out_height,
                 int *out_width); // after the pooling
size_t stem_weight_floats(const struct stem *s);
size_t stem_scratch_floats(const struct stem *s, int width);               // per worker
void stem_pack(const struct stem *s, const float *g /* (out, 7, 7, 3) */); // plain

// infer. y = max_pool(relu(conv(image) + bias)), opened by the caller.
void stem_run(struct pool *pool, const struct stem *s, const struct stem_image *image,
              const struct map *y, float *scratch, size_t scratch_floats);

#endif
