// Why a torn read can not go unnoticed: before it touches copy m % SLOT_COPIES the writer has
// published value m - 1, and a release fence keeps that order. A reader that meets a word of
// value m while it copies value n (m = n + SLOT_COPIES, the same copy) therefore finds a count
// of at least m - 1 behind its acquire fence, that is SLOT_COPIES - 1 more than n, and throws
// its copy away. gcc can not follow fences under ThreadSanitizer; every access is atomic, so
// nothing is reported for it, but it needs -Wno-tsan there.
#include "daemon/slot.h"

#include <string.h>

#define TRIES 3

void slot_write(struct slot *s, const void *value)
{
    const unsigned char *from = value;
    uint64_t n = atomic_load_explicit(&s->count, memory_order_relaxed) + 1;
    _Atomic uint64_t *to = s->copy + (n % SLOT_COPIES) * s->words;

    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < s->words; i++) {
        size_t at = i * sizeof(uint64_t);
        size_t left = s->size - at;
        uint64_t word = 0;

        memcpy(&word, from + at, left < sizeof word ? left : sizeof word);
        atomic_store_explicit(to + i, word, memory_order_relaxed);
    }
    atomic_store_explicit(&s->count, n, memory_order_release);
}

static void copy_out(const struct slot *s, uint64_t n, unsigned char *to)
{
    const _Atomic uint64_t *from = s->copy + (n % SLOT_COPIES) * s->words;

    for (size_t i = 0; i < s->words; i++) {
        size_t at = i * sizeof(uint64_t);
        size_t left = s->size - at;
        uint64_t word = atomic_load_explicit(from + i, memory_order_relaxed);

        memcpy(to + at, &word, left < sizeof word ? left : sizeof word);
    }
}

uint64_t slot_read(const struct slot *s, void *value)
{
    for (int i = 0; i < TRIES; i++) {
        uint64_t n = atomic_load_explicit(&s->count, memory_order_acquire);

        if (n == 0)
            return 0;
        copy_out(s, n, value);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&s->count, memory_order_relaxed) - n < SLOT_COPIES - 1)
            return n;
    }
    return 0;
}

uint64_t slot_count(const struct slot *s)
{
    return atomic_load_explicit(&s->count, memory_order_acquire);
}
