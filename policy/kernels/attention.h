// attention: softmax(Q K^T / sqrt(head_dim)) V for all heads, without mask, in one pass (Milakov &
// Gimelshein 2018; Dao et al. 2022): for a block of queries, blocks of keys go by, each with its
// scores, their exponentials against the greatest score so far, and their share of the result;
// when a greater score comes, what was summed before is scaled down. Scores never leave the cache,
// whatever the number of keys. Work is divided by head and by blocks of queries.
#ifndef ACTD_KERNELS_ATTENTION_H
#define ACTD_KERNELS_ATTENTION_H

#include <stddef.h>

#include "policy/kernels/cpu.h"
#include "policy/pool.h"

// A matrix whose row r starts at data + r * stride; head h is columns [h*head_dim, (h+1)*…).
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
    float *scratch;          // (workers, scratch_floats), 64-byte aligned
    size_t scratch_floats;   // >= attention_scratch_floats(head_dim), a multiple of 16
};

// Floats of scratch that each worker needs, whatever the number of keys.
size_t attention_scratch_floats(int head_dim);

// infer. Which kernel: that of cpu_chosen().
void attention_run(struct pool *pool, const struct attention *a);

// By instruction set; for tests and benches, too. NULL: not compiled in.
struct attention_kernel {
    enum cpu_isa isa;
    // Queries [from, from + rows) of head h, rows <= ATTENTION_BLOCK.
    void (*block)(const struct attention *a, int h, int from, int rows, float *scratch);
    // y[i] = exp(x[i]), x <= 0, at most 2 ulp off; a NaN stays one. y and x may be the same.
    void (*exp_nonpositive)(const float *x, float *y, int n);
};
#define ATTENTION_BLOCK 64 // queries per unit of work
const struct attention_kernel *attention_kernel_of(enum cpu_isa isa);

#endif
