// Makers of bad policies: shared by swaps_bad.c (their table, and what is wrong with files) and
// swaps_bad_weights.c. Each writes policies/bad; 0 or -errno.
#ifndef SWAPS_BAD_H
#define SWAPS_BAD_H

#include "tests/swap/swaps_impl.h"

#define WEIGHTS "model.safetensors"

// A path in policies/bad; until the next call.
const char *swaps_bad_path(const struct swaps_world *w, const char *file);
int swaps_bad_base(const struct swaps_world *w);  // everything but weights
int swaps_bad_whole(const struct swaps_world *w); // and good weights

int bad_cut_in_length(const struct swaps_world *w, uint64_t *random);
int bad_cut_in_header(const struct swaps_world *w, uint64_t *random);
int bad_cut_anywhere(const struct swaps_world *w, uint64_t *random);
int bad_cut_last(const struct swaps_world *w, uint64_t *random);
int bad_longer(const struct swaps_world *w, uint64_t *random);
int bad_broken_header(const struct swaps_world *w, uint64_t *random);
int bad_hostile_length(const struct swaps_world *w, uint64_t *random);
int bad_hostile_depth(const struct swaps_world *w, uint64_t *random);
int bad_hostile_shape(const struct swaps_world *w, uint64_t *random);
int bad_hostile_overlap(const struct swaps_world *w, uint64_t *random);
int bad_twice(const struct swaps_world *w, uint64_t *random);
int bad_other_dtype(const struct swaps_world *w, uint64_t *random);
int bad_other_tensor(const struct swaps_world *w, uint64_t *random);
int bad_not_finite(const struct swaps_world *w, uint64_t *random);
int bad_wrong_golden(const struct swaps_world *w, uint64_t *random);

#endif
