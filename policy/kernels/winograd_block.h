// winograd_block: a block of tiles on its way, for the parts of winograd_run.
#ifndef ACTD_KERNELS_WINOGRAD_BLOCK_H
#define ACTD_KERNELS_WINOGRAD_BLOCK_H

#include "policy/kernels/winograd_priv.h"

// How a worker's scratch is used: V, then M.
struct winograd_layout {
    int v_points, q_points; // of V; of M
    int panels;
    int tiles; // of a block
    int group; // panels whose products lie in scratch at a time
    size_t v_row;
    size_t v_floats, q_floats;
};

struct winograd_job {
    const struct winograd *w;
    const struct winograd_transforms *transforms;
    struct winograd_layout l;
    const struct map *x, *y;
    bool accumulate, relu;
    int across, tiles; // tiles in a row of them; in all
    float *scratch;
    size_t scratch_floats, matrix_floats;
};

// Tiles [tile0, tile0 + tiles) on their way; q is of panels [panel0, panel0 + group).
struct winograd_block {
    const struct winograd_job *j;
    int tile0, tiles;
    float *v, *q;
    size_t v_point, q_row, q_point;
    int panel0;
};

// infer. A point of M for one panel: the products of all that belongs to it.
void winograd_multiply(const struct winograd_block *b, int point, int panel);

static inline size_t product(int a, int b)
{
    return (size_t)a * (size_t)b;
}

static inline int clamp(int x, int low, int high)
{
    return x < low ? low : x > high ? high : x;
}

static inline int quotient_up(int a, int b)
{
    return (a + b - 1) / b;
}

#endif
