// Where things lie: a record is a word with its size, its bytes, and padding to the next word.
// Positions count bytes since the start and never wrap, so full and empty are told apart without
// a byte to spare; position & (capacity - 1) is the place. A rest of the memory that a record does
// not fit into has SKIP in its first word, which is always there since all is in whole words.
#include "daemon/spool.h"

#include <string.h>

#define WORD sizeof(uint64_t)
#define SKIP UINT64_MAX

static unsigned char *at(const struct spool *s, uint64_t position)
{
    return s->data + (position & (s->capacity - 1));
}

static void put(const struct spool *s, uint64_t position, uint64_t word)
{
    memcpy(at(s, position), &word, WORD);
}

static uint64_t get(const struct spool *s, uint64_t position)
{
    uint64_t word;

    memcpy(&word, at(s, position), WORD);
    return word;
}

static uint64_t in_words(uint64_t size)
{
    return WORD + (size + WORD - 1) / WORD * WORD;
}

static void *refuse(struct spool *s, size_t size)
{
    atomic_fetch_add_explicit(&s->lost, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->lost_bytes, size, memory_order_relaxed);
    return NULL;
}

void *spool_reserve(struct spool *s, size_t size)
{
    uint64_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&s->tail, memory_order_acquire);
    uint64_t rest = s->capacity - (head & (s->capacity - 1));
    uint64_t need, skip;

    if (size > s->capacity / 4) // before it is added to: size may be anything
        return refuse(s, size);
    need = in_words(size);
    skip = need > rest ? rest : 0;
    if (need + skip > s->capacity - (head - tail))
        return refuse(s, size);
    if (skip > 0)
        put(s, head, SKIP);
    s->reserved = head + skip;
    s->end = s->reserved + need;
    put(s, s->reserved, size);
    return at(s, s->reserved) + WORD;
}

void spool_commit(struct spool *s)
{
    atomic_store_explicit(&s->head, s->end, memory_order_release);
}

// Where the oldest record begins; false when there is none. Whoever skips commits a record too.
static bool oldest(const struct spool *s, uint64_t *position)
{
    uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&s->head, memory_order_acquire);

    if (head == tail)
        return false;
    if (get(s, tail) == SKIP)
        tail += s->capacity - (tail & (s->capacity - 1));
    *position = tail;
    return true;
}

const void *spool_peek(struct spool *s, size_t *size)
{
    uint64_t position;

    if (!oldest(s, &position))
        return NULL;
    *size = get(s, position);
    return at(s, position) + WORD;
}

void spool_release(struct spool *s)
{
    uint64_t position;

    if (oldest(s, &position))
        atomic_store_explicit(&s->tail, position + in_words(get(s, position)),
                              memory_order_release);
}

uint64_t spool_waiting(const struct spool *s)
{
    uint64_t tail = atomic_load_explicit(&s->tail, memory_order_acquire);

    return atomic_load_explicit(&s->head, memory_order_acquire) - tail;
}

uint64_t spool_lost(const struct spool *s)
{
    return atomic_load_explicit(&s->lost, memory_order_relaxed);
}
