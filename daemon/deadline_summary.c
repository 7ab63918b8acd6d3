// Reading a histogram: plain. deadline.c holds rt functions only.
#include "daemon/deadline.h"

// Largest value of a bucket: what is reported is never better than what was.
static ns_t upper(int i)
{
    int e = i / HIST_SUB + 3;

    if (i < HIST_SUB)
        return i;
    return ((ns_t)(HIST_SUB + i % HIST_SUB + 1) << (e - 4)) - 1;
}

// The value below which `share` of all counts lie.
static ns_t quantile(const uint64_t *n, uint64_t all, double share)
{
    double wanted = share * (double)all;
    uint64_t seen = 0;

    for (int i = 0; i < HIST_BUCKETS; i++) {
        seen += n[i];
        if (n[i] > 0 && (double)seen >= wanted)
            return upper(i);
    }
    return 0;
}

static ns_t highest(const uint64_t *n)
{
    for (int i = HIST_BUCKETS - 1; i >= 0; i--)
        if (n[i] > 0)
            return upper(i);
    return 0;
}

static ns_t least(ns_t a, ns_t b)
{
    return a < b ? a : b;
}

static struct histogram_summary summarize(const uint64_t *n, ns_t max_ns)
{
    struct histogram_summary s = {0};

    for (int i = 0; i < HIST_BUCKETS; i++)
        s.count += n[i];
    s.max_ns = least(highest(n), max_ns);
    s.p50_ns = least(quantile(n, s.count, 0.50), s.max_ns);
    s.p99_ns = least(quantile(n, s.count, 0.99), s.max_ns);
    return s;
}

struct histogram_summary hist_summary(const struct histogram *h)
{
    uint64_t n[HIST_BUCKETS];
    struct histogram_summary s;
    ns_t max_ns;

    (void)atomic_load_explicit(&h->count, memory_order_acquire);
    for (int i = 0; i < HIST_BUCKETS; i++)
        n[i] = atomic_load_explicit(&h->bucket[i], memory_order_relaxed);
    max_ns = atomic_load_explicit(&h->max_ns, memory_order_relaxed);
    s = summarize(n, max_ns);
    if (s.count > 0)
        s.max_ns = max_ns; // exact, also above the last bucket
    return s;
}

struct histogram_summary hist_summary_since(const struct histogram *h, uint64_t *previous)
{
    uint64_t n[HIST_BUCKETS];
    ns_t max_ns;

    (void)atomic_load_explicit(&h->count, memory_order_acquire);
    for (int i = 0; i < HIST_BUCKETS; i++) {
        uint64_t now = atomic_load_explicit(&h->bucket[i], memory_order_relaxed);

        n[i] = now - previous[i];
        previous[i] = now;
    }
    max_ns = atomic_load_explicit(&h->max_ns, memory_order_relaxed);
    return summarize(n, max_ns);
}
