// blackbox.c holds rt functions only. The ring is slot.c with more copies, and a record is never
// read torn for the same reason: before it touches the place of record n the loop has committed
// n - 1, and a release fence keeps that order. A reader that meets a word of n while it copies
// n - capacity finds a count of at least n - 1 behind its acquire fence and throws its copy away.
// Under ThreadSanitizer gcc needs -Wno-tsan for the fences; every shared access is atomic.
#include <string.h>

#include "daemon/blackbox_impl.h"

#define REASON_BITS 8

struct blackbox_record *blackbox_tick(struct blackbox *b)
{
    memset(b->staging, 0, b->words * sizeof(uint64_t));
    return b->staging;
}

// The first fault that waits gives the file its name; the others are in its rows. One attempt:
// nobody waits for anybody.
static void put_pending(struct blackbox *b, uint64_t number, enum ladder_reason fault)
{
    uint64_t none = 0, mine = number << REASON_BITS | (uint64_t)fault;

    if (fault == REASON_NONE)
        return;
    if (!atomic_compare_exchange_strong_explicit(
            &b->pending, &none, mine, memory_order_release, memory_order_relaxed))
        atomic_fetch_add_explicit(&b->superseded, 1, memory_order_relaxed);
}

void blackbox_commit(struct blackbox *b, enum ladder_reason fault)
{
    uint64_t n = atomic_load_explicit(&b->count, memory_order_relaxed) + 1;
    _Atomic uint64_t *to = b->ring + (n % b->capacity) * b->words;
    const unsigned char *from = (const unsigned char *)b->staging;

    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < b->words; i++) {
        uint64_t word;

        memcpy(&word, from + i * sizeof word, sizeof word);
        atomic_store_explicit(to + i, word, memory_order_relaxed);
    }
    atomic_store_explicit(&b->count, n, memory_order_release);
    put_pending(b, n, fault);
}

void blackbox_trigger(struct blackbox *b, enum ladder_reason fault)
{
    put_pending(b, blackbox_count(b), fault);
}

uint64_t blackbox_count(const struct blackbox *b)
{
    return atomic_load_explicit(&b->count, memory_order_acquire);
}

size_t blackbox_record_bytes(const struct blackbox *b)
{
    return b->words * sizeof(uint64_t);
}

// Record n is whole while the loop has not begun n + capacity, and not known to be once
// n + capacity - 1 is committed.
static bool is_there(const struct blackbox *b, uint64_t number, uint64_t count)
{
    return number > 0 && number <= count && count - number < b->capacity - 1;
}

bool blackbox_at(const struct blackbox *b, uint64_t number, struct blackbox_record *out)
{
    const _Atomic uint64_t *from = b->ring + (number % b->capacity) * b->words;
    unsigned char *to = (unsigned char *)out;

    if (!is_there(b, number, blackbox_count(b)))
        return false;
    for (size_t i = 0; i < b->words; i++) {
        uint64_t word = atomic_load_explicit(from + i, memory_order_relaxed);

        memcpy(to + i * sizeof word, &word, sizeof word);
    }
    atomic_thread_fence(memory_order_acquire);
    return is_there(b, number, atomic_load_explicit(&b->count, memory_order_relaxed));
}

// An index of count or more gives number 0 or, wrapped, one beyond the newest: neither is there.
bool blackbox_read(const struct blackbox *b, uint64_t index, struct blackbox_record *out)
{
    return blackbox_at(b, blackbox_count(b) - index, out);
}
