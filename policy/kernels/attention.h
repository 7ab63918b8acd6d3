// attention: softmax(Q K^T / sqrt(head_dim)) V for all heads, without mask. Work is
// divided by head and by blocks of queries; the scores of one block, ATTENTION_BLOCK by
// keys, are all that is ever kept of the (heads, queries, keys) cube.
#ifndef ACTD_KERNELS_ATTENTION_H
#define ACTD_KERNELS_ATTENTION_H

#include <stddef.h>

#include "policy/pool.h"

#define ATTENTION_BLOCK 64 // queries per unit of work

// A matrix whose row r starts at data + r * stride; head h is columns [h*head_dim,
// (h+1)*…).
struct attention_view {
    const float *data;
    int stride;
};

struct attention {
    int heads, head_dim;
    int queries, keys;
    struct attention_view q; // (queries, heads * head_dim)
    struct attention_view k; // (keys, heads * head_dim)
    struct attention_view v; // (keys, heads * head_dim)
    float *out;              // (queries, heads * head_dim), contiguous
    float *scores;           // (workers, score_floats)
    size_t score_floats;     // >= attention_score_floats(keys)
};

// Floats of scores that each worker needs.
size_t attention_score_floats(int keys);

// infer.
void attention_run(struct pool *pool, const struct attention *a);

// In place over each row of x (rows, cols): exp(x - max) / sum. infer; used by
// attention_run.
void softmax_rows(float *x, int rows, int cols);

#endif
