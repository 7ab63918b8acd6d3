// build: how a model takes its weights. A model describes itself once, in a function that
// names every tensor with its shape and place. The builder runs that function twice:
// first measuring (the arena is empty, nothing is read), then noting for each tensor the
// place it is given. The file is then read in one pass, in its own order. plain.
//
//   struct build b = {.arena = &arena, .weights = checkpoint, .err = err};
//   model_build(&model, &b);            // measures
//   rc = build_begin_reading(&b);       // reserves the arena
//   model_build(&model, &b);            // notes who wants what
//   rc = build_read(&b, cancel, sha);   // reads
//   rc = build_fold(&b);                // batch norms into their convolutions
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
    bool reading;
    int rc;              // first failure; later steps do nothing
    uint64_t parameters; // values of tensors described, each once
    size_t n_wants, n_folds;
    struct st_want *want; // (n_wants) counted while measuring, noted while reading
    struct build_fold
        *fold; // (n_folds) convolutions whose batch norm is still beside them
    float *bn; // (bn_floats) the batch norms
    size_t bn_floats;
};

// Every name below is a printf format; the tensors' names are derived from it.

// A tensor of its own: (shape[0], …, shape[rank-1]) floats.
float *build_tensor(struct build *b, int rank, const int *shape, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// NAME.weight (out, in), NAME.bias (out).
void build_linear(struct build *b, struct linear *l, int out, int in, const char *format,
                  ...) __attribute__((format(printf, 5, 6)));

// NAME.weight, NAME.bias (dim).
void build_layer_norm(struct build *b, struct layer_norm *n, int dim, const char *format,
                      ...) __attribute__((format(printf, 4, 5)));

// CONV.weight (out, in, size, size) with the frozen batch norm BN.{weight, bias,
// running_mean, running_var} (out, eps 1e-5) folded in: w' = w s, b' = bias - mean s, s =
// weight / sqrt(var + eps). c's sizes are set by the caller; weights are laid out as
// conv.h wants them.
void build_conv_bn(struct build *b, struct conv *c, const char *conv, const char *bn);

// Records -EINVAL and the sentence, unless something was refused before.
void build_refuse(struct build *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Reserves the arena, if the machine has the memory to spare.
int build_begin_reading(struct build *b);

// Reads what was noted; sha256 is the file's. cancel may be NULL: -ECANCELED.
int build_read(struct build *b, const _Atomic bool *cancel,
               char sha256[POLICY_DIGEST_HEX]);

int build_fold(struct build *b);

// Frees the builder's own memory.
int build_end(struct build *b);

#endif
