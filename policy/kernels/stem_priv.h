// stem_priv: what stem.c has an instruction set do: the products and the output transform of some
// tiles side by side, and the pooling of a row of them.
#ifndef ACTD_KERNELS_STEM_PRIV_H
#define ACTD_KERNELS_STEM_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/kernels/stem.h"

#define STEM_TILE   3  // pixels of a tile, down and across
#define STEM_SIDE   6  // points of a tile, down and across
#define STEM_POINTS 36 // in all
#define STEM_DEPTH  12 // even and odd lines, even and odd columns, three colours
#define STEM_PIXEL  16 // floats of these, 4 of them zero: one vector of AVX-512

// Tiles side by side through their products to pixels.
struct stem_piece {
    const struct stem *s;
    int tiles;      // even, no more than the kernel's
    const float *v; // (STEM_POINTS, the kernel's tiles, STEM_PIXEL)
    float *m;       // scratch (STEM_POINTS, the kernel's tiles, the kernel's channels)
    float *y;       // (STEM_TILE rows y_row apart, STEM_TILE * tiles, out)
    size_t y_row;
};

// Part of a row of the convolution; its first column is an even one.
struct stem_row {
    const float *x; // (width, channels)
    int width, channels;
    bool inside; // there is a column before x, in memory too
};

// kernel->pool(): a row into the rows of the output under whose windows of 3x3 it lies: `begin`
// ((width + 1) / 2, channels) is written, `go_on` raised; either may be NULL. A NaN wins.

extern const struct stem_kernel stem_kernel_generic;
#ifdef __x86_64__
extern const struct stem_kernel stem_kernel_avx2, stem_kernel_avx512;
#endif
#ifdef __aarch64__
extern const struct stem_kernel stem_kernel_neon;
#endif

#endif
