// The last seconds, as finished chunks in memory: what happened before a fault is known only after
// it. Every chunk repeats its schemas and channels (recorder_chunk.c), so any of them may go.
#include <stdlib.h>

#include "daemon/recorder_parts.h"

static size_t bytes_of(const struct mcap_chunk *c)
{
    return sizeof *c + c->n + (size_t)c->facts.n_channels * sizeof *c->facts.channel;
}

const struct mcap_chunk *recorder_hold_first(const struct recorder_hold *h)
{
    return h->n > 0 ? h->ring[h->first].chunk : NULL;
}

void recorder_hold_drop(struct recorder_hold *h)
{
    struct recorder_held *held = &h->ring[h->first];

    h->bytes -= bytes_of(held->chunk);
    mcap_chunk_free(held->chunk);
    h->first = (h->first + 1) % h->capacity;
    h->n--;
}

static bool grow(struct recorder_hold *h)
{
    size_t capacity = h->capacity > 0 ? 2 * h->capacity : 64;
    struct recorder_held *ring = calloc(capacity, sizeof *ring);

    if (ring == NULL)
        return false;
    for (size_t i = 0; i < h->n; i++)
        ring[i] = h->ring[(h->first + i) % h->capacity];
    free(h->ring);
    h->ring = ring;
    h->first = 0;
    h->capacity = capacity;
    return true;
}

bool recorder_hold_fits(const struct recorder_hold *h, const struct mcap_chunk *c,
                        size_t most)
{
    return h->bytes + bytes_of(c) <= most;
}

void recorder_hold_put(struct recorder_hold *h, struct mcap_chunk *c, ns_t now,
                       ns_t before_ns, size_t most)
{
    size_t size = bytes_of(c);

    // A chunk finished at t holds what came in up to 0.4 s before: those are kept that much longer.
    while (h->n > 0 && (h->bytes + size > most ||
                        now - h->ring[h->first].at_ns > before_ns + RECORDER_CHUNK_NS))
        recorder_hold_drop(h);
    if (size > most || (h->n == h->capacity && !grow(h))) {
        mcap_chunk_free(c);
        return;
    }
    h->ring[(h->first + h->n) % h->capacity] = (struct recorder_held){c, now};
    h->n++;
    h->bytes += size;
}

void recorder_hold_free(struct recorder_hold *h)
{
    while (h->n > 0)
        recorder_hold_drop(h);
    free(h->ring);
    *h = (struct recorder_hold){0};
}
