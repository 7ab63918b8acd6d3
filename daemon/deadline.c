#include "daemon/deadline.h"

// Values below HIST_SUB have a bucket each; above, every power of two is cut into HIST_SUB.
static int bucket_of(ns_t v)
{
    int e, i;

    if (v < HIST_SUB)
        return v < 0 ? 0 : (int)v;
    e = 63 - __builtin_clzll((unsigned long long)v); // v in [2^e, 2^(e+1)), e >= 4
    i = (e - 3) * HIST_SUB + (int)((v >> (e - 4)) & (HIST_SUB - 1));
    return i < HIST_BUCKETS ? i : HIST_BUCKETS - 1; // from 2.4 hours on: the last one
}

// One writer: plain loads and stores, no locked instruction.
void hist_add(struct histogram *h, ns_t value_ns)
{
    _Atomic uint64_t *b = &h->bucket[bucket_of(value_ns)];
    uint64_t n = atomic_load_explicit(b, memory_order_relaxed);
    uint64_t all = atomic_load_explicit(&h->count, memory_order_relaxed);

    if (value_ns > atomic_load_explicit(&h->max_ns, memory_order_relaxed))
        atomic_store_explicit(&h->max_ns, value_ns, memory_order_relaxed);
    atomic_store_explicit(b, n + 1, memory_order_relaxed);
    atomic_store_explicit(&h->count, all + 1, memory_order_release);
}

void schedule_start(struct schedule *s, ns_t first_ns, ns_t period_ns)
{
    *s = (struct schedule){
        .start_ns = first_ns, .period_ns = period_ns, .next_ns = first_ns};
}

ns_t schedule_woke(const struct schedule *s, ns_t now)
{
    return now > s->next_ns ? now - s->next_ns : 0;
}

uint64_t schedule_advance(struct schedule *s, ns_t now)
{
    uint64_t next = s->tick + 1, skipped = 0;
    ns_t at = s->next_ns + s->period_ns;

    if (at <= now) {
        skipped = (uint64_t)((now - at) / s->period_ns) + 1;
        next += skipped;
        at += (ns_t)skipped * s->period_ns;
    }
    s->tick = next;
    s->next_ns = at;
    s->skipped += skipped;
    return skipped;
}
