// Reading a histogram: plain. deadline.c holds rt functions only.
#include "daemon/deadline.h"

#include <stddef.h>

struct reading {
    uint64_t n[HIST_BUCKETS];
    uint64_t count;
    ns_t max_ns; // the largest ever, exact
};

// Largest value of a bucket: what is reported is never better than what was. The last has none.
static ns_t upper(int i)
{
    int e = i / HIST_SUB + 3;

    if (i < HIST_SUB)
        return i;
    if (i == HIST_BUCKETS - 1)
        return INT64_MAX;
    return ((ns_t)(HIST_SUB + i % HIST_SUB + 1) << (e - 4)) - 1;
}

static ns_t least(ns_t a, ns_t b)
{
    return a < b ? a : b;
}

// The value below which `share` (more than 0, at most 1) of all counts lie.
static ns_t quantile(const struct reading *r, double share)
{
    double wanted = share * (double)r->count;
    uint64_t seen = 0;

    for (int i = 0; i < HIST_BUCKETS; i++) {
        seen += r->n[i];
        if (r->n[i] > 0 && (double)seen >= wanted)
            return least(upper(i), r->max_ns);
    }
    return 0;
}

static ns_t highest(const struct reading *r)
{
    for (int i = HIST_BUCKETS - 1; i >= 0; i--)
        if (r->n[i] > 0)
            return least(upper(i), r->max_ns);
    return 0;
}

// previous (HIST_BUCKETS), updated; NULL = since ever. The writer goes on meanwhile, so that the
// count is what the buckets add up to.
static void take(struct reading *r, const struct histogram *h, uint64_t *previous)
{
    (void)atomic_load_explicit(&h->count, memory_order_acquire);
    r->count = 0;
    for (int i = 0; i < HIST_BUCKETS; i++) {
        uint64_t now = atomic_load_explicit(&h->bucket[i], memory_order_relaxed);

        r->n[i] = previous ? now - previous[i] : now;
        r->count += r->n[i];
        if (previous)
            previous[i] = now;
    }
    r->max_ns = atomic_load_explicit(&h->max_ns, memory_order_relaxed);
}

static struct histogram_summary summarize(const struct reading *r)
{
    return (struct histogram_summary){
        .count = r->count,
        .p50_ns = quantile(r, 0.50),
        .p99_ns = quantile(r, 0.99),
        .max_ns = highest(r),
    };
}

struct histogram_summary hist_summary(const struct histogram *h)
{
    struct reading r;

    take(&r, h, NULL);
    return summarize(&r);
}

struct histogram_summary hist_summary_since(const struct histogram *h, uint64_t *previous)
{
    struct reading r;

    take(&r, h, previous);
    return summarize(&r);
}

ns_t hist_quantile(const struct histogram *h, double part)
{
    struct reading r;

    take(&r, h, NULL);
    return quantile(&r, part < 1 ? part : 1); // not a number: the largest
}

// ---- the whole of it -------------------------------------------------------------------------

// Of a bucket, rounded down; the last one has no other end, so that its own counts.
static uint64_t middle(int i)
{
    ns_t least = i > 0 ? upper(i - 1) + 1 : 0;

    return (uint64_t)(i == HIST_BUCKETS - 1 ? least : least + (upper(i) - least) / 2);
}

void hist_detail(const struct histogram *h, int merge, struct hist_detail *out)
{
    struct reading r;

    if (merge < HIST_MERGE_LEAST)
        merge = HIST_MERGE_LEAST;
    if (merge > HIST_MERGE_MOST)
        merge = HIST_MERGE_MOST;
    take(&r, h, NULL);
    out->summary = summarize(&r);
    out->sum_ns = 0;
    out->n = 0;
    for (int first = 0; first < HIST_BUCKETS; first += 1 << merge) {
        int last = first + (1 << merge) - 1;
        uint64_t count = 0;

        for (int i = first; i <= last; i++) {
            count += r.n[i];
            out->sum_ns += r.n[i] * middle(i);
        }
        if (count == 0)
            continue;
        out->bucket[out->n].below_ns = (uint64_t)upper(last) + 1;
        out->bucket[out->n++].count = count;
    }
}
