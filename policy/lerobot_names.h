// lerobot_names: the tensors of a file under the names that LeRobot's modules have today.
// Compiled training leaves `._orig_mod` in the middle of names; early 0.1 called one embedding
// differently; `removed_name` entries of the metadata add names. All functions are plain.
#ifndef ACTD_LEROBOT_NAMES_H
#define ACTD_LEROBOT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/safetensors.h"

struct lr_name {
    char *name; // owned by the table
    const struct st_tensor *tensor;
    bool used; // false for a tensor until the caller sets it; true for an alias
};

struct lr_names {
    size_t n;
    struct lr_name *at; // (n) sorted by name
};

// Refuses two tensors that would share a name. *out is the caller's to lr_names_close, on
// failure too; f must outlive it. 0 or -errno with err filled.
int lr_names_build(struct lr_names *out, const struct st_file *f,
                   struct policy_error *err);
void lr_names_close(struct lr_names *t);

struct lr_name *lr_names_find(const struct lr_names *t, const char *name); // or NULL

#endif
