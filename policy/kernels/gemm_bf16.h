// gemm_bf16: the product of gemm.h on weights that are kept in 16 bits, the upper half of a float
// (8 bits of fraction: a weight is off by 2^-9 of itself at most). They take half of the memory
// and of its bandwidth. A part of a panel is made floats again in a worker's scratch, which stays
// in its cache, and multiplied by the float32 kernel with all of its rows. With all matrix products
// of a full-size ACT in 16 bits an inference takes 6 % longer at 302 rows, 19 % at 51; Winograd's
// weights (winograd.h) come on top. Up to GEMM_BF16_DEPTH deep a product has the bits that gemm.h
// gives for the rounded weights.
#ifndef ACTD_KERNELS_GEMM_BF16_H
#define ACTD_KERNELS_GEMM_BF16_H

#include <stdint.h>

#include "policy/kernels/gemm.h"

#define GEMM_BF16_DEPTH 256 // of a part: 32 KiB of floats in a panel of 32 columns
#define GEMM_BF16_SCRATCH \
    ((size_t)GEMM_BF16_DEPTH * GEMM_MAX_NR) // floats, of each worker

struct gemm_bf16 {
    int depth, out;
    const struct gemm_kernel *kernel;
    uint16_t *panel; // (panels, depth, nr)
};

size_t gemm_bf16_bytes(const struct gemm_kernel *k, int depth, int out);
// plain. As gemm_pack; rounds to the nearest, to the even one of two. NaN and infinity stay.
void gemm_bf16_pack(const struct gemm_bf16 *g, int column, int n, const float *w,
                    size_t w_stride);
// Any thread.
uint16_t gemm_bf16_round(float w);
float gemm_bf16_float(uint16_t w);

// infer. As gemm_run, for rows of one run. scratch: GEMM_BF16_SCRATCH floats of this thread's own,
// 64-byte aligned.
void gemm_bf16_run(const struct gemm_bf16 *g, const struct gemm_rows *x, int row0,
                   int row1, int panel0, int panel1, float *y, size_t y_stride,
                   const struct gemm_finish *finish, float *scratch);

// By instruction set: n (a multiple of 4) halves into floats. NULL: not compiled in.
typedef void gemm_bf16_expand_fn(const uint16_t *from, size_t n, float *to);
gemm_bf16_expand_fn *gemm_bf16_expand_of(enum cpu_isa isa);

#endif
