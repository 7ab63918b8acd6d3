#include "daemon/deadline.h"

#include <string.h>

// Values below 2 * HIST_SUB have a bucket each; above, every power of two is cut into HIST_SUB.
static int bucket_of(ns_t v)
{
    int shift, i;

    if (v < 1)
        return 0;
    shift = 59 - __builtin_clzll((unsigned long long)v | HIST_SUB); // v >> shift < 32
    i = shift * HIST_SUB + (int)(v >> shift);
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

// ---- budgets ---------------------------------------------------------------------------------

void budget_init(struct budget *b, struct histogram *histogram, ns_t limit_ns, int window)
{
    if (window <= 0)
        window = 1;
    if (window > BUDGET_WINDOW_MOST)
        window = BUDGET_WINDOW_MOST;
    *b = (struct budget){.histogram = histogram, .limit_ns = limit_ns, .window = window};
}

// Sample `number` takes the place of the one a window before it, and of that one's miss.
static void remember(struct budget *b, uint64_t number, bool missed)
{
    const unsigned place = (unsigned)(number % (unsigned)b->window);
    uint64_t *word = &b->miss[place / 64];
    const uint64_t bit = UINT64_C(1) << (place % 64);

    b->in_window -= (*word & bit) != 0;
    b->in_window += missed;
    *word = missed ? *word | bit : *word & ~bit;
}

static void count_missed(struct budget *b, uint64_t n)
{
    b->missed += n;
    if (__builtin_add_overflow(b->consecutive, n, &b->consecutive))
        b->consecutive = UINT32_MAX; // away for longer than 2^32 periods
    if (b->consecutive > b->consecutive_max)
        b->consecutive_max = b->consecutive;
}

void budget_add(struct budget *b, ns_t value_ns, uint64_t tick)
{
    const bool missed = value_ns > b->limit_ns;

    if (b->histogram)
        hist_add(b->histogram, value_ns);
    if (value_ns > b->worst_ns) {
        b->worst_ns = value_ns;
        b->worst_tick = tick;
    }
    remember(b, b->samples++, missed);
    if (missed)
        count_missed(b, 1);
    else
        b->consecutive = 0;
}

// However many: once all in the window are misses, another one changes nothing.
void budget_skip(struct budget *b, uint64_t n)
{
    for (uint64_t i = 0; i < n && b->in_window < (uint32_t)b->window; i++)
        remember(b, b->samples + i, true);
    b->samples += n;
    count_missed(b, n);
}

bool budget_over(const struct budget *b)
{
    return b->in_window * 10 > (uint32_t)b->window;
}

void budget_forgive(struct budget *b)
{
    memset(b->miss, 0, sizeof b->miss);
    b->in_window = 0;
    b->consecutive = 0;
}

// ---- the schedule ----------------------------------------------------------------------------

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
