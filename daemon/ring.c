#include "daemon/ring.h"

#include <string.h>

static void *element(const struct ring *r, uint64_t i)
{
    return r->data + (size_t)(i & r->mask) * r->stride;
}

bool ring_empty(const struct ring *r)
{
    return atomic_load_explicit(&r->head, memory_order_relaxed) ==
           atomic_load_explicit(&r->tail, memory_order_acquire);
}

uint64_t ring_waiting(const struct ring *r)
{
    return atomic_load_explicit(&r->head, memory_order_acquire) -
           atomic_load_explicit(&r->tail, memory_order_relaxed);
}

void *ring_reserve(struct ring *r)
{
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);

    if (head - tail > r->mask) {
        atomic_fetch_add_explicit(&r->dropped, 1, memory_order_relaxed);
        return NULL;
    }
    return element(r, head);
}

void ring_commit(struct ring *r)
{
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

    atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

const void *ring_peek(struct ring *r)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);

    return head == tail ? NULL : element(r, tail);
}

void ring_release(struct ring *r)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

    atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
}

bool ring_push(struct ring *r, const void *from)
{
    void *to = ring_reserve(r);

    if (to == NULL)
        return false;
    memcpy(to, from, r->size);
    ring_commit(r);
    return true;
}

bool ring_pop(struct ring *r, void *to)
{
    const void *from = ring_peek(r);

    if (from == NULL)
        return false;
    memcpy(to, from, r->size);
    ring_release(r);
    return true;
}
