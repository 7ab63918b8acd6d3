// attention_impl: how a worker's scratch is divided; shared by the kernels and by
// attention.c, which says how much it is. Sizes fit every instruction set: vectors of up
// to 16 floats, tiles of up to 8 rows.
#ifndef ACTD_KERNELS_ATTENTION_IMPL_H
#define ACTD_KERNELS_ATTENTION_IMPL_H

#include "policy/kernels/attention.h"

// Keys that go by at once. Their scores and values take 24 KiB each at head_dim 64 and
// are read again and again, so they must stay in the first caches (32 or 48 KiB); fewer
// keys would mean more passes over the result.
#define ATTENTION_KEYS     96
#define ATTENTION_MAX_ROWS 8 // of a register tile
#define ATTENTION_EDGE     16

struct attention_scratch {
    float *q;      // queries as columns, scaled: (vectors of queries, head_dim, width)
    float *scores; // (ATTENTION_KEYS, ATTENTION_BLOCK) and an edge that tiles read beyond
    float *values; // (ATTENTION_KEYS, padded head_dim), in groups of columns
    float *result; // (ATTENTION_BLOCK and an edge, padded head_dim)
    float *rest;   // the last keys, as many as a tile has rows
    // by query
    float *best;  // greatest score of these keys
    float *top;   // greatest so far
    float *total; // of the exponentials against it
    float *fade;  // what older ones are multiplied with
};

static inline int attention_padded(int head_dim)
{
    return (head_dim + 15) / 16 * 16;
}

// Divides `scratch`, or only counts: the floats that were needed.
static inline size_t attention_divide(int head_dim, float *scratch,
                                      struct attention_scratch *s)
{
    size_t padded = (size_t)attention_padded(head_dim), at = 0;
    struct {
        float **part;
        size_t floats;
    } parts[] = {
        {&s->q, padded * ATTENTION_BLOCK},
        {&s->scores, ATTENTION_KEYS * ATTENTION_BLOCK + ATTENTION_EDGE},
        {&s->values, padded * ATTENTION_KEYS},
        {&s->result, padded * (ATTENTION_BLOCK + ATTENTION_MAX_ROWS)},
        {&s->rest, padded * ATTENTION_MAX_ROWS},
        {&s->best, ATTENTION_BLOCK},
        {&s->top, ATTENTION_BLOCK},
        {&s->total, ATTENTION_BLOCK},
        {&s->fade, ATTENTION_BLOCK + ATTENTION_EDGE},
    };

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *parts[i].part = scratch ? scratch + at : NULL;
        at += parts[i].floats;
    }
    return at;
}

// One per instruction set; which are there depends on the architecture.
extern const struct attention_kernel attention_generic, attention_avx2, attention_avx512,
    attention_neon;

#endif
