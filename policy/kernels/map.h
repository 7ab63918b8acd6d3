// map: an image or feature map, pixels as rows of channels, with room around it. All
// around lies at least one pixel of zeros, so that a 3x3 kernel meets its padding in
// memory and needs no case for an edge; to the right and below there are as many as a
// Winograd tile may reach beyond. Whoever writes a map writes its inner pixels only.
#ifndef ACTD_KERNELS_MAP_H
#define ACTD_KERNELS_MAP_H

#include <stddef.h>

#include "policy/pool.h"

#define MAP_BORDER 1 // pixels; right and below so many behind the last tile

struct map {
    float *pixel; // (0, 0)
    int height, width, channels;
    size_t row; // floats from one row to the next
};

// Floats of memory for a map of this size, its room included.
size_t map_floats(int height, int width, int channels);
// infer. The map that fills `memory` (map_floats, 64-byte aligned): its room is set to
// zero, its pixels are left as they are.
struct map map_open(float *memory, int height, int width, int channels);
// infer. The inner pixels, one after the other, to (height * width, channels).
void map_flatten(struct pool *pool, const struct map *m, float *out);

static inline float *map_at(const struct map *m, int y, int x)
{
    return m->pixel + (ptrdiff_t)y * (ptrdiff_t)m->row + (ptrdiff_t)x * m->channels;
}

#endif
