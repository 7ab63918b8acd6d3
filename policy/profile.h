// profile: what an inference does, step by step, and how long each takes. The model's code says
// where a step ends and what it was; so there is no second description of it that could be
// wrong. Without a profile attached (always, but for `actd inspect --plan` and benches) a step
// is one branch and no clock is read. All infer, by the thread that calls policy_infer.
//
// Multiplications are the textbook's: a direct convolution's. Who does with fewer (winograd.h) may
// so reach more than the processor's peak.
#ifndef ACTD_PROFILE_H
#define ACTD_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/kernels/attention.h"
#include "policy/kernels/conv.h"
#include "policy/kernels/linear.h"
#include "policy/kernels/stem.h"

#define PROFILE_STEPS 4096 // 16 cameras through a ResNet-152 are 2500

struct profile_step {
    char what[40];        // "encoder 2 linear1"
    char stage[16];       // "backbone", "encoder", …: what belongs together
    char way[16];         // "winograd 4x4", "direct", "packed", …
    char kernel[24];      // "avx512 12x32": instruction set, rows and columns of a tile
    int rows, depth, out; // of its product; 0 = none
    double macs;          // multiplications as in the textbook
    double weight_bytes;  // as packed
    int64_t ns;
};

// The caller's, 0 at first. After a policy_infer it holds that inference, with what policy_see did
// for it.
struct profile {
    int n;
    bool over;                           // the next step begins another inference
    int64_t mark_ns;                     // when the step under way began
    char stage[16], part[12], block[16]; // of the steps that come
    struct profile_step step[PROFILE_STEPS];
};

void profile_open(struct profile *p);
void profile_name(struct profile *p, const char *stage, const char *part, int number);
void profile_name_block(struct profile *p, int layer, int block);
void profile_add_stem(struct profile *p, const struct stem *s, int height, int width);
void profile_add_conv(struct profile *p, const char *what, const struct conv *c,
                      int height, int width);
void profile_add_linear(struct profile *p, const char *what, const struct linear *l,
                        int rows);
void profile_add_attention(struct profile *p, const struct attention *a);
void profile_add_other(struct profile *p, const char *what);

// ---- what the model's code calls: p may be NULL ------------------------------------------------

// The clock starts: what came before is no step.
static inline void profile_begin(struct profile *p)
{
    if (p)
        profile_open(p);
}

// The inference is complete.
static inline void profile_end(struct profile *p)
{
    if (p)
        p->over = true;
}

// Steps from here on belong to `stage`, and are called "part NUMBER …" ("part …": number < 0).
static inline void profile_part(struct profile *p, const char *stage, const char *part,
                                int number)
{
    if (p)
        profile_name(p, stage, part, number);
}

// Block `block` of ResNet's layer `layer`, of the camera that profile_part named.
static inline void profile_block(struct profile *p, int layer, int block)
{
    if (p)
        profile_name_block(p, layer, block);
}

// A step has ended; it was … (sizes: the stem's image, the convolution's output)
static inline void profile_stem(struct profile *p, const struct stem *s, int height,
                                int width)
{
    if (p)
        profile_add_stem(p, s, height, width);
}

static inline void profile_conv(struct profile *p, const char *what, const struct conv *c,
                                int height, int width)
{
    if (p)
        profile_add_conv(p, what, c, height, width);
}

static inline void profile_linear(struct profile *p, const char *what,
                                  const struct linear *l, int rows)
{
    if (p)
        profile_add_linear(p, what, l, rows);
}

static inline void profile_attention(struct profile *p, const struct attention *a)
{
    if (p)
        profile_add_attention(p, a);
}

// … no product: a norm, copies.
static inline void profile_other(struct profile *p, const char *what)
{
    if (p)
        profile_add_other(p, what);
}

#endif
