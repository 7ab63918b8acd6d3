// conv: 2-D convolution over images whose pixels are rows of channels (height, width,
// channels). The patch under each output pixel is gathered into one row of a tile (a 3x3
// patch is three runs of contiguous memory), and the tile times the weights is one matrix
// product that lands where it belongs. The tile is bounded and belongs to a worker: the
// whole patch matrix of one 120x160x64 layer would be 44 MB. 1x1 with stride 1 needs no
// gathering.
#ifndef ACTD_KERNELS_CONV_H
#define ACTD_KERNELS_CONV_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/kernels/activation.h"
#include "policy/pool.h"

struct conv {
    int in, out; // channels
    int size;    // of the square kernel: 1, 3, 7
    int stride, pad, dilation;
    float *weight; // (out, size, size, in)
    float *bias;   // (out)
};

// Output extent for an input extent (rows or columns).
int conv_extent(const struct conv *c, int extent);

// Floats of tile that each worker needs for an output of `pixels` pixels.
size_t conv_tile_floats(const struct conv *c, int pixels);

// infer. y = f(conv(x) + bias + (accumulate ? y : 0))
//   x      (height, width, in)
//   y      (conv_extent(height), conv_extent(width), out); must not overlap x
//   tiles  (workers, tile_floats), tile_floats >= conv_tile_floats
void conv_run(struct pool *pool, const struct conv *c, const float *x, int height,
              int width, float *y, bool accumulate, enum activation f, float *tiles,
              size_t tile_floats);

#endif
