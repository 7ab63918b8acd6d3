// stem: the first layer of a ResNet in one pass over the frame: 8-bit pixels are normalised as
// they are read (a table of 256 answers per channel, the same float operations in the same order
// as per pixel), convolved 7x7 with stride 2 and pad 3, a band of three rows at a time, and pooled
// 3x3 with stride 2 while the band lies in the cache. The full-size map between convolution and
// pooling, 320x240x64 floats, is never in memory.
//
// Convolved as Winograd does (winograd.h), F(3x3) of 4x4 taps. Of the image's lines and columns
// every other one meets taps 0, 2, 4, 6 and those between taps 1, 3, 5, so that four images of
// half the size, of three colours each, are twelve channels of one convolution with stride 1:
//
//   weights g (4, 4), zeros where there is no tap 7 -> U = G g G^T: 36 matrices (12, out)
//   tile    d (6, 6) of the half-size lines, overlapping by 3 -> V = B^T d B
//   M = V U, one product per point over the tiles side by side
//   output  (3, 3) = A^T M A, then bias, ReLU
//
// 432 products for 9 pixels of a channel, not 1323. The points are those of F(4x4), so G has the
// same quotients and B^T is the same. Half the time of direct convolution (640x480, Zen 5, one
// core: 3.2 ms for 6.3 with AVX-512, 5.6 for 11.8 with AVX2); relative RMS error against one sum
// of 147, in 1e-7: noise 2.6 for 1.9, a smooth picture 1.1 for 2.0.
#ifndef ACTD_KERNELS_STEM_H
#define ACTD_KERNELS_STEM_H

#include <stdint.h>

#include "policy/kernels/cpu.h"
#include "policy/kernels/map.h"

#define STEM_SIZE 7

struct stem_piece;
struct stem_row;

// What an instruction set computes at a time (stem_priv.h).
struct stem_kernel {
    enum cpu_isa isa;
    int tiles, channels; // at most; an even number of tiles
    void (*convolve)(const struct stem_piece *piece);
    void (*pool)(const struct stem_row *row, float *begin, float *go_on);
};
const struct stem_kernel *stem_kernel(void);                // of cpu_chosen(). Any thread
const struct stem_kernel *stem_kernel_of(enum cpu_isa isa); // NULL: not compiled in

struct stem {
    int out; // channels, a multiple of STEM_CHANNELS
    const struct stem_kernel *kernel;
    float *weight; // U (36, 12, out)
    float *bias;   // (out), batch norm folded in
};
#define STEM_CHANNELS 32

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
size_t stem_scratch_floats(const struct stem *s, int width); // per worker
// plain. Computed in double.
void stem_pack(const struct stem *s, const float *g /* (out, 7, 7, 3) */);

// infer. y = max_pool(relu(conv(image) + bias)), opened by the caller. Pixels are numbers: a NaN
// spreads over its tile. The bits are the same whatever the number of workers.
void stem_run(struct pool *pool, const struct stem *s, const struct stem_image *image,
              const struct map *y, float *scratch, size_t scratch_floats);

#endif
