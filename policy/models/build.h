// build: how a model takes its weights. A model describes itself once, in a function that
// names every tensor with its shape and place. The builder runs that function twice:
// first measuring (the arena is empty, nothing is read), then noting for each tensor the
// place it is given. The file is then read in one pass, in its own order, and each tensor goes
// where it will stay as soon as it is there, packed for the kernel that will read it. In memory
// beside that are only the tensor under way, a convolution's both raw and folded (two times 9.4 MB
// in a full-size ACT), and shortcuts' weights that wait for their batch norm. plain.
//
//   struct build b = {.arena = &arena, .weights = checkpoint, .err = err};
//   model_build(&model, &b);            // measures
//   rc = build_begin_reading(&b);       // reserves the arena
//   model_build(&model, &b);            // notes who wants what
//   rc = build_read(&b, cancel, sha);   // reads
//   rc = build_end(&b);                 // 0 or -errno of the first failure
#ifndef ACTD_MODELS_BUILD_H
#define ACTD_MODELS_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/arena.h"
#include "policy/kernels/conv.h"
#include "policy/kernels/layer_norm.h"
#include "policy/kernels/linear.h"
#include "policy/lerobot.h"

#define BUILD_NAME_MAX ST_MAX_NAME

struct build {
    struct arena *arena;
    const struct lerobot_checkpoint *weights;
    struct policy_error *err;
    const struct linear_room *room; // of the layers that are not in float32
    bool bf16;                      // convolutions keep weights in 16 bits where they can
    bool reading;
    int rc;              // first failure; later steps do nothing
    uint64_t parameters; // values of tensors described, each once
    size_t n_wants, n_folds, n_packs;
    struct st_want *want;    // (n_wants) counted while measuring, noted while reading
    struct build_fold *fold; // (n_folds) convolutions and their batch norms
    struct build_pack *pack; // (n_packs) tensors on their way into packed matrices
    float *bn;               // (bn_floats) the batch norms
    size_t bn_floats;
    float *stage; // (staged) where a tensor passes through
    size_t staged;
};

// Every name below is a printf format; the tensors' names are derived from it.

// A tensor of its own: (shape[0], …, shape[rank-1]) floats.
float *build_tensor(struct build *b, int rank, const int *shape, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// Room for a packed matrix (out, in) of the chosen kernel, without a bias.
void build_matrix(struct build *b, struct linear *l, int out, int in, enum precision p);

// Rows [from, from + rows) of a tensor (shape[0], the rest) into columns [column, …) of l.
struct build_part {
    const struct linear *l;
    int column, from, rows;
};
#define BUILD_PARTS 2
void build_parts(struct build *b, int rank, const int *shape, int n_parts,
                 const struct build_part *parts, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

// NAME.weight (out, in), packed; NAME.bias (out).
void build_linear(struct build *b, struct linear *l, int out, int in, enum precision p,
                  const char *format, ...) __attribute__((format(printf, 6, 7)));

// NAME.weight, NAME.bias (dim).
void build_layer_norm(struct build *b, struct layer_norm *n, int dim, const char *format,
                      ...) __attribute__((format(printf, 4, 5)));

// CONV.weight (out, in, size, size) with the frozen batch norm BN.{weight, bias,
// running_mean, running_var} (out, eps 1e-5) folded in: w' = w s, b' = bias - mean s, s =
// weight / sqrt(var + eps). When all five have come, `pack` gets w' as (out, size, size, in);
// bias is filled before.
struct build_conv {
    int out, in, size;
    float *bias; // (out), the caller's
    void *layer; // what pack is called with
    void (*pack)(void *layer, const float *weight);
};
void build_conv_bn(struct build *b, const struct build_conv *c, const char *conv,
                   const char *bn);

// Records -EINVAL and the sentence, unless something was refused before.
void build_refuse(struct build *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Reserves the arena, if the machine has the memory to spare.
int build_begin_reading(struct build *b);

// Reads what was noted; sha256 is the file's. cancel may be NULL: -ECANCELED.
int build_read(struct build *b, const _Atomic bool *cancel,
               char sha256[POLICY_DIGEST_HEX]);

// Frees the builder's own memory.
int build_end(struct build *b);

#endif
