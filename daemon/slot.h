// slot: the newest value wins. One writer, any number of readers, nobody waits. The writer
// fills one of SLOT_COPIES copies in turn and then publishes its number; a reader copies the
// published one out and takes it only if the writer has not come round to it meanwhile. Data
// moves as relaxed atomic words, so a torn read is detected and never undefined.
#ifndef ACTD_SLOT_H
#define ACTD_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLOT_COPIES 4

struct slot {
    size_t size;            // bytes of one value
    size_t words;           // the same in whole 64-bit words
    _Atomic uint64_t count; // values published; 0 = none yet
    _Atomic uint64_t *copy; // (SLOT_COPIES, words)
};

// plain; allocates. 0 or -ENOMEM.
int slot_init(struct slot *s, size_t size);
void slot_free(struct slot *s);

// The one writer: rt, io or any.
void slot_write(struct slot *s, const void *value);

// Any reader, any class. Copies the newest value out; returns its number (1, 2, …), or 0 when
// there is none yet or the writer was too fast three times in a row (out is then garbage).
uint64_t slot_read(const struct slot *s, void *value);

// Number of the newest value, without reading it.
uint64_t slot_count(const struct slot *s);

#endif
