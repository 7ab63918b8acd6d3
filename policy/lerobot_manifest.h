// lerobot_manifest: which tensors an ACT of a given configuration has, and of what shape. One
// list in the order of LeRobot's modules serves the check of a file and anybody who has to walk
// the network. All functions are plain.
#ifndef ACTD_LEROBOT_MANIFEST_H
#define ACTD_LEROBOT_MANIFEST_H

#include "policy/lerobot_config.h"
#include "policy/lerobot_names.h"

// Called for each tensor that inference needs; a value other than 0 ends the walk.
typedef int lr_visit(void *context, const char *name, int rank, const int *shape);

// Returns what the last visit returned.
int lr_manifest(const struct lr_config *c, lr_visit *visit, void *context);

// Every tensor of the list is there as F32, F16 or BF16 (F64 too) and has its shape; nothing
// else is but what training leaves behind (vae_*, normalize_*, unnormalize_*,
// num_batches_tracked). 0 or -errno with err filled.
int lr_manifest_check(const struct lr_config *c, const struct lr_names *t,
                      struct policy_error *err);

// One tensor of the table: 0 with *out, or -EINVAL with err filled (missing, other shape or
// no floating point).
int lr_tensor_check(const struct lr_names *t, const char *name, int rank,
                    const int *shape, struct lr_name **out, struct policy_error *err);

#endif
