// winograd: 3x3 convolutions of stride 1 and 2 with fewer multiplications (Lavin & Gray
// 2015, "Fast Algorithms for Convolutional Neural Networks": Cook-Toom, here with the
// points of winograd_priv.h).
//
//   weights g (3, 3) -> U = G g G^T, once, at load:  (m + 2)^2 matrices (in, out), packed (gemm.h)
//   tile    d (m + 2, m + 2) of the input, overlapping by 2 -> V = B^T d B
//   M = V U, one matrix product per point over all tiles of a block
//   output  (m, m) = A^T M A, then bias, the shortcut, ReLU
//
// A block of tiles goes through all of it while it lies in the cache. Where there are
// many tiles, blocks are shared out among the workers; where the weights are more than
// the tiles, all workers go through one block together, step by step, each with its share
// of the weights. The bits of the output are the same whatever the split.
//
// With stride 2 every other line of a tile, from the first one on, meets taps 0 and 2 of
// the kernel, and those between tap 1; the same for columns. That makes four convolutions
// of stride 1, of 2x2, 2x1, 1x2 and 1x1 taps, whose products are summed up before the one
// output transform. A line of n pixels, 2 n + 1 of the input, has
//
//   V   n + 1 points of the outer values, n of those between
//   U   n + 2 matrices: all n points of the values between share one
//   M   n + 1 points, each the sum of two products, but for infinity: of one
//
// A tile of 3x2 so has 7 * 5 products for 6 pixels, 35 for 54, and 5 * 4 matrices for 9.
// (3x3: 49 for 81, 25 matrices; 4x4: 81 for 144, 36. They were no faster where weights are
// many, and 3 % at best where they are few.)
//
// Relative RMS error in 1e-7, random weights; direct is one long sum in float32
// (test_winograd.c):
//
//   channels   direct   F(2x2)   F(4x4)   F(6x6)   F(3x2), stride 2
//         64      4.2      2.5      7.7       31      2.8
//        128      5.9      2.6      8.0       31      2.9
//        256      8.0      2.6      7.7       34      3.0
//        512     12.1      2.7      8.1       31      3.2
//
// U is 1.8 (F(2x2)), 4 or 7 times as large as g, 2.2 times with stride 2: 64 % of the weights of a
// full-size ACT for 480x640. It may be kept in 16 bits (bf16), which are made floats again part by
// part; then the error is that of rounding U, 27e-4 for F(2x2), 83e-4 for F(4x4), 350e-4 for F(6x6),
// 26e-4 with stride 2, for any number of channels.
#ifndef ACTD_KERNELS_WINOGRAD_H
#define ACTD_KERNELS_WINOGRAD_H

#include <stdint.h>

#include "policy/kernels/gemm.h"
#include "policy/kernels/map.h"

struct winograd {
    int in, out; // multiples of 4
    int m;       // rows of an output tile: 2, 4, 6 with stride 1; 3 with stride 2
    const struct gemm_kernel *kernel;
    float *u; // (rows + 2, columns + 2) packed matrices of gemm_floats(in, out) each
    uint16_t *bf16; // the same in 16 bits, instead of u; or NULL
    float *bias;    // (out)
};

static inline int winograd_stride(int m)
{
    return m == 3 ? 2 : 1;
}

// Columns of an output tile that has m rows.
static inline int winograd_columns(int m)
{
    return m == 3 ? 2 : m;
}

// Values of u, or of bf16.
size_t winograd_weight_floats(const struct gemm_kernel *k, int m, int in, int out);
// plain. g (out, 3, 3, in) into w->u or w->bf16; computed in double.
void winograd_pack(const struct winograd *w, const float *g);
// Floats of scratch that each worker needs, whatever the size of the map; a multiple of
// 16.
size_t winograd_scratch_floats(const struct gemm_kernel *k, int m, int in, int out);

// infer. y = f(conv(x) + bias + (accumulate ? y : 0)), pad 1; y has x's height and width,
// with stride 2 half of them, rounded up, and is opened by the caller; no overlap. f is
// NONE or RELU. scratch: (workers, scratch_floats), 64-byte aligned, scratch_floats >=
// winograd_scratch_floats and a multiple of 16.
void winograd_run(struct pool *pool, const struct winograd *w, const struct map *x,
                  const struct map *y, bool accumulate, enum activation f, float *scratch,
                  size_t scratch_floats);

// Pixel (0, 0) of a tile (m + 2, m + 2), with stride 2 (7, 5), rows d_row floats apart, pixels d_pixel; point p
// of the result goes to v + p * v_point.
struct winograd_input {
    int channels; // that lie side by side; a multiple of 4
    const float *d;
    size_t d_row, d_pixel;
    float *v;
    size_t v_point;
    const float *next; // where a later tile has its pixel (0, 0): asked for meanwhile
};

// Point p at q + p * q_point; of the (m, columns) pixels only those are stored that lie inside.
struct winograd_output {
    int channels;
    const float *q;
    size_t q_point;
    float *y;
    size_t y_row, y_pixel;
    int rows, cols;    // inside: 1 to m
    const float *bias; // (channels)
    bool accumulate, relu;
    float *next; // where a later tile has its pixel (0, 0): asked for meanwhile
};

// The two transforms, by instruction set.
struct winograd_transforms {
    enum cpu_isa isa;
    void (*input)(int m, const struct winograd_input *i);
    void (*output)(int m, const struct winograd_output *o);
};
const struct winograd_transforms *
winograd_transforms_of(enum cpu_isa isa); // NULL: not compiled in

#endif
