// arena: one block of memory for a whole policy, sized before it exists. The same layout
// function runs twice: first over an empty arena, where every take returns NULL and only
// the size grows; then, after arena_reserve, over the real one, where it returns the
// addresses. Between the two nothing can disagree, because it is the same code. All
// functions are plain.
//
// The block comes from mmap, is touched page by page and locked if the process may, so
// that inference meets no page fault: a 34 M-parameter model is 72 000 pages, at about
// 0.25 us each 18 ms of jitter that would fall into the first chunk.
#ifndef ACTD_ARENA_H
#define ACTD_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#define ARENA_ALIGN 64 // bytes: a cache line, and the widest vector register

struct arena {
    char *base;    // NULL while measuring
    size_t size;   // bytes reserved, 0 while measuring
    size_t used;   // bytes taken so far
    bool overflow; // a size did not fit size_t or the reserved block
    bool locked;   // mlock succeeded
};

// n objects of `size` bytes, aligned to ARENA_ALIGN and zero. NULL while measuring, and
// (with `overflow` set) when they do not fit. The arena keeps ownership.
void *arena_take(struct arena *a, size_t n, size_t size);

// n floats; shorthand for the commonest take.
float *arena_floats(struct arena *a, size_t n);

// Ends the measuring pass: reserves exactly what was taken, touched and zero, and starts
// the count anew. 0, -EOVERFLOW when sizes overflowed, -EINVAL when already reserved,
// -ENOMEM.
int arena_reserve(struct arena *a);

// Gives everything back; the arena is empty again. Fine on an empty arena.
void arena_release(struct arena *a);

#endif
