// spool: a bounded queue of records of any length, from one thread to one other. A record that
// does not fit is refused and counted, whole; nobody waits. Records lie in one piece, so that the
// writer can fill them and the reader look at them in place. Where the end of the memory is too
// short for a record it begins anew at the start.
//
// spool_init.c (plain) allocates; all else is rt: no allocation, no lock, no system call.
#ifndef ACTD_SPOOL_H
#define ACTD_SPOOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spool {
    unsigned char *data;                // (capacity), 64-byte aligned
    uint64_t capacity;                  // a power of two, bytes
    uint64_t reserved;                  // writer: where the reserved record begins, and
    uint64_t end;                       // writer: where it ends
    _Alignas(64) _Atomic uint64_t head; // next to write
    _Alignas(64) _Atomic uint64_t tail; // next to read
    _Atomic uint64_t lost, lost_bytes;  // records refused, and their bytes
};

// plain; allocates (no page of it is touched: see spool_touch). capacity is rounded up to a power
// of two of at least 4096. 0 or -ENOMEM.
int spool_init(struct spool *s, size_t capacity);
void spool_free(struct spool *s); // plain
// plain. Writes to every page, so that the writer does not fault them in. Only while nobody writes.
void spool_touch(struct spool *s);

// The writer. Room for a record of `size` bytes (at most a quarter of the capacity), 8-byte aligned;
// NULL = no room, counted. The record is there once it is committed; a reserve not committed is as
// if it had not been.
void *spool_reserve(struct spool *s, size_t size);
void spool_commit(struct spool *s);

// The reader. The oldest record, in place until it is released; NULL = empty.
const void *spool_peek(struct spool *s, size_t *size);
void spool_release(struct spool *s);

// Any thread: bytes that wait; about, while others are at work.
uint64_t spool_waiting(const struct spool *s);
uint64_t spool_lost(const struct spool *s);

#endif
