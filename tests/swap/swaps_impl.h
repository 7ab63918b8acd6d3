// Files of policies: shared by swaps_good.c and swaps_bad.c.
#ifndef SWAPS_IMPL_H
#define SWAPS_IMPL_H

#include "tests/swap/swaps.h"

// *bytes is the caller's to free, with a NUL behind it. 0 or -errno.
int swaps_read(const char *path, uint8_t **bytes, size_t *size);
int swaps_write(const char *path, const void *bytes, size_t size); // mode 0644
int swaps_copy(const char *from, const char *to);
// Everything of reach but model.safetensors and golden.safetensors into policies/NAME.
int swaps_copy_small(const struct swaps_world *w, const char *name);
// Turns the lowest bit of one weight in 64.
void swaps_turn(uint8_t *weights, size_t size, uint64_t seed);

#endif
