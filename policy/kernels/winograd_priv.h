// What the parts of winograd (pack, run, transforms) share: the points, and the tables of
// the transforms by instruction set.
//
// Cook-Toom evaluates polynomials at m + 1 points and at infinity. With V = B^T d, U = G
// g and y = A^T (U V), and the points p_j:
//
//   B^T, row j     coefficients of prod_{k != j} (x - p_k);    infinity: of prod_k (x - p_k)
//   G, row j       (1, p_j, p_j^2) / prod_{k != j} (p_j - p_k);    infinity: (0, 0, 1)
//   A^T, column j  (1, p_j, ..., p_j^(m - 1));    infinity: (0, ..., 0, 1)
//
// Points come in pairs +-p, so that even and odd halves are shared. The order: 0, +a, -a,
// +b, -b, (+c, -c,) infinity.
//
// Which points, was tried out, over fractions of 8, 16, 32 and 64: the error of F(4x4) is
// least near sqrt(1/2) and sqrt(2), 5 % less with 5/8 and 23/16 than with these
// themselves, half of what it is with 1 and 2. F(6x6) is four times less accurate
// whatever one takes; 1/2, 1, 2 are the best of 8ths. With these points every constant of
// A and B is exact in float32.
//
// Stride 2 has the points 0, 1, -1, infinity down a tile's 3 rows and 0, 1, infinity along
// its 2 columns. There the quotients of G are A's, whose column j is (1, p_j, ...) /
// prod_{k != j} (p_j - p_k), so that G of the one tap is 1 at every finite point and all
// these share a matrix of weights. Along the columns the signs of point 0 cancel out.
#ifndef ACTD_KERNELS_WINOGRAD_PRIV_H
#define ACTD_KERNELS_WINOGRAD_PRIV_H

#include "policy/kernels/winograd.h"

#define WINOGRAD_MAX_N 8 // m + 2; 7 with stride 2
#define WINOGRAD_TAPS  4 // at most; of the stem

#define WINOGRAD_4_A (5.0 / 8)   // sqrt(1/2) = 0.707
#define WINOGRAD_4_B (23.0 / 16) // sqrt(2) = 1.414
#define WINOGRAD_6_A 0.5
#define WINOGRAD_6_B 1.0
#define WINOGRAD_6_C 2.0

// plain. G of stride 1 with the points of F(m x m), m + 1 finite ones: for 3 taps, or for the stem's 4,
// whose tile has a pixel less.
void winograd_matrix_g(int m, int taps, double g[WINOGRAD_MAX_N][WINOGRAD_TAPS]);

// Code of one instruction set must not end up where another calls it: nothing but static.
// Loops over a tile have to be gone before registers are given out.
#define WINOGRAD_INLINE static inline __attribute__((always_inline))
#ifndef __clang__
#define WINOGRAD_UNROLL _Pragma("GCC unroll 8")
#elif __has_feature(address_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define WINOGRAD_UNROLL // clang takes minutes over what its sanitizers make of it
#else
#define WINOGRAD_UNROLL _Pragma("clang loop unroll(full)")
#endif

extern const struct winograd_transforms winograd_transforms_generic;
extern const struct winograd_transforms winograd_transforms_avx2;
extern const struct winograd_transforms winograd_transforms_avx512;
extern const struct winograd_transforms winograd_transforms_neon;

#endif
