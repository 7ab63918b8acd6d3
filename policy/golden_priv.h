// golden_priv: an observation and its answer in memory, for golden.c and golden_write.c.
#ifndef ACTD_GOLDEN_PRIV_H
#define ACTD_GOLDEN_PRIV_H

#include "policy/golden.h"
#include "policy/safetensors.h"

struct golden {
    float *state, *env;               // (S), (E)
    float *actions;                   // (C, A) recorded
    float *answer;                    // (C, A) computed
    uint8_t *rgb[POLICY_MAX_CAMERAS]; // (H, W, 3)
    struct policy_image image[POLICY_MAX_CAMERAS];
};

// One tensor of the file: its name and shape, and where its values are in memory.
struct golden_part {
    const char *name;
    enum st_dtype dtype; // F32 or U8
    int rank, shape[3];
    void *data;
    size_t bytes;
};
#define GOLDEN_MAX_PARTS (3 + POLICY_MAX_CAMERAS)

// Memory for an observation of this policy. 0 or -ENOMEM; golden_free in any case.
int golden_allocate(struct golden *g, const struct policy_info *info);
void golden_free(struct golden *g);

// The parts of the file in its order (floats first, so that all are aligned); how many.
int golden_parts(const struct golden *g, const struct policy_info *info,
                 struct golden_part part[GOLDEN_MAX_PARTS]);

// The observation and answer of the file, as `shown` calls it. 0 or -errno with err filled.
int golden_read(const struct golden *g, const struct policy_info *info, struct st_file *f,
                const char *shown, struct policy_error *err);

// An observation made up from `seed`: values that are -1 to 1 once normalised, and pictures of 8 by 8
// fields, each of one colour.
void golden_make_up(struct golden *g, const struct policy *p, uint64_t seed);

// Values of a chunk.
size_t golden_values(const struct policy_info *info);

// Fills g->answer. 0 or -errno with err filled.
int golden_compute(struct golden *g, struct policy *p, struct policy_error *err);

#endif
