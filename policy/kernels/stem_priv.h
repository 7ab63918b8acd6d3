// stem_priv: the pooling half of stem.c, by instruction set.
#ifndef ACTD_KERNELS_STEM_PRIV_H
#define ACTD_KERNELS_STEM_PRIV_H

#include <stdbool.h>

#include "policy/kernels/cpu.h"

// A piece of a row of the convolution; its first column is an even one.
struct stem_piece {
    const float *x; // (width, channels)
    int width, channels;
    bool inside; // there is a column before x, in memory too
};

// A piece into the rows of the output under whose windows of 3x3 it lies: `begin` ((width + 1) / 2,
// channels) is written, `go_on` raised; either may be NULL. A NaN wins.
typedef void stem_pool_fn(const struct stem_piece *piece, float *begin, float *go_on);

stem_pool_fn *stem_pool_of(enum cpu_isa isa);

extern stem_pool_fn stem_pool_generic;
#ifdef __x86_64__
extern stem_pool_fn stem_pool_avx2, stem_pool_avx512;
#endif
#ifdef __aarch64__
extern stem_pool_fn stem_pool_neon;
#endif

#endif
