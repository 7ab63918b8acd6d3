// gemm_priv: what the kernels of gemm.h share: their names, and words for their inner loops.
#ifndef ACTD_KERNELS_GEMM_PRIV_H
#define ACTD_KERNELS_GEMM_PRIV_H

#include "policy/kernels/gemm.h"

extern const struct gemm_kernel gemm_generic, gemm_blas;
#ifdef __x86_64__
extern const struct gemm_kernel gemm_avx2, gemm_avx512;
#endif
#ifdef __aarch64__
extern const struct gemm_kernel gemm_neon;
#endif

// The finish of rows from `row` and of `columns` columns from `column`, as a kernel takes it: GELU is
// left to the caller, who applies it in a pass of its own.
struct gemm_finish gemm_finish_at(const struct gemm_finish *f, int row, int column,
                                  int columns);

// Code of one instruction set must not end up where another calls it: nothing but static.
#define INLINE static inline __attribute__((always_inline))
// Loops over the registers of a tile have to be gone before registers are given out. Not for clang's
// sanitizers: it takes minutes over what they make of it.
#ifndef __clang__
#define UNROLL _Pragma("GCC unroll 16")
#elif __has_feature(address_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define UNROLL
#else
#define UNROLL _Pragma("clang loop unroll(full)")
#endif
#define NR    (NV * LANES)
#define AHEAD (NR / 4) // lines of 64 bytes in four rows of a panel

// Weights that no cache holds: 137 MB of them go by in one inference. While one part of a panel is
// multiplied the next is asked for, so many lines for every four depths that all tiles together
// have asked for all of it: AHEAD requests, `gap` floats apart, which fall on the same line when
// there are many tiles. With 20 rows, and weights from memory, this is 82 % of the peak, not 55.
struct gemm_ahead {
    const float *at; // may lie behind the end: nothing is read
    size_t gap;
};

INLINE void gemm_ahead_step(struct gemm_ahead *a, const int lines)
{
    UNROLL
    for (int i = 0; i < lines; i++)
        __builtin_prefetch(a->at + (size_t)i * a->gap, 0, 2); // second-level cache
    a->at += (size_t)lines * a->gap;
}

#endif
