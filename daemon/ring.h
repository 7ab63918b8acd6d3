// ring: a bounded queue from one thread to one other. Elements are copied. A full ring refuses
// the new element and counts it; it never makes anybody wait.
#ifndef ACTD_RING_H
#define ACTD_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
    size_t size;   // bytes of one element
    size_t stride; // the same in whole cache lines: elements are aligned like malloc's
    uint64_t mask; // capacity - 1; the capacity is a power of two
    unsigned char *data;
    _Alignas(64) _Atomic uint64_t head; // next to write
    _Alignas(64) _Atomic uint64_t tail; // next to read
    _Atomic uint64_t dropped;
};

// plain; allocates. capacity is rounded up to a power of two. 0 or -ENOMEM.
int ring_init(struct ring *r, size_t size, size_t capacity);
void ring_free(struct ring *r);

bool ring_push(struct ring *r, const void *element); // the writer; false = full, counted
bool ring_pop(struct ring *r, void *element);        // the reader; false = empty
bool ring_empty(const struct ring *r);               // the writer: the reader has had all
uint64_t ring_waiting(const struct ring *r);         // the reader: how many wait for it
// In place, for elements too large to copy twice: NULL = full (counted) or empty.
void *ring_reserve(struct ring *r);
void ring_commit(struct ring *r);
const void *ring_peek(struct ring *r);
void ring_release(struct ring *r);

#endif
