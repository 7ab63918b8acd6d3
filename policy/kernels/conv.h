// conv: 2-D convolution over maps (map.h), in one of three ways:
//
//   direct    the lines under a kernel are runs of a gemm's row (gemm.h): no copy of patches.
//             Any size and stride without dilation, pad <= MAP_BORDER
//   winograd  3x3, stride 1 or 2, pad 1 (winograd.h)
//   gathered  each patch is copied into one row of a tile first: for short rows, and for whatever
//             else there is
//
// Which way, a fixed table says (conv_plan): by shape and instruction set, filled from
// `make bench-kernels`, never by a timing at start, since other ways have other bits.
#ifndef ACTD_KERNELS_CONV_H
#define ACTD_KERNELS_CONV_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/kernels/activation.h"
#include "policy/kernels/gemm.h"
#include "policy/kernels/map.h"
#include "policy/pool.h"

enum conv_way {
    CONV_DIRECT,
    CONV_WINOGRAD_2,
    CONV_WINOGRAD_4,
    CONV_WINOGRAD_6,
    CONV_WINOGRAD_HALVING, // 3x3 with stride 2
    CONV_GATHERED
};

struct conv {
    int in, out; // channels
    int size;    // of the square kernel: 1, 3, 7
    int stride, pad, dilation;
    enum conv_way way;
    const struct gemm_kernel *kernel;
    bool bf16;     // a Winograd's weights are kept in 16 bits
    float *weight; // packed for its way: conv_weight_floats
    float *bias;   // (out)
};

// Output extent for an input extent (rows or columns).
int conv_extent(const struct conv *c, int extent);

// The way for maps of this size (of the input), by the table of kernel->isa. c's sizes and kernel
// are set. Any thread.
enum conv_way conv_plan(const struct conv *c, int height, int width);
// "direct", "winograd 4x4", "winograd 3x2/2", …
const char *conv_way_name(enum conv_way way);

// With c->way and c->bf16 set: floats of the packed weights, and of scratch per worker for any image up to
// `width` wide.
size_t conv_weight_floats(const struct conv *c);
size_t conv_scratch_floats(const struct conv *c, int width);
// plain. g (out, size, size, in) into c->weight.
void conv_pack(const struct conv *c, const float *g);

// infer. y = f(conv(x) + bias + (accumulate ? y : 0))
//   x        (height, width, in)
//   y        (conv_extent(height), conv_extent(width), out), opened by the caller; no overlap
//   scratch  (workers, scratch_floats)
void conv_run(struct pool *pool, const struct conv *c, const struct map *x,
              const struct map *y, bool accumulate, enum activation f, float *scratch,
              size_t scratch_floats);

#endif
