// deadline: how late, how long, how often. Histograms with log-linear buckets in fixed memory
// (relative error <= 1/16), one writer (rt), any reader at any time; budgets with a window of
// misses; the schedule of a fixed-rate loop. Everything is rt but the summaries.
#ifndef ACTD_DEADLINE_H
#define ACTD_DEADLINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/clock.h"

#define HIST_SUB     16 // buckets per power of two
#define HIST_BUCKETS (HIST_SUB * 40)

struct histogram {
    _Atomic uint64_t bucket[HIST_BUCKETS];
    _Atomic uint64_t count;
    _Atomic int64_t max_ns;
};

struct histogram_summary {
    uint64_t count;
    ns_t p50_ns, p99_ns, max_ns;
};

void hist_add(struct histogram *h, ns_t value_ns);                // rt
struct histogram_summary hist_summary(const struct histogram *h); // plain
// The value below which `part` (0…1) of what was added lies, to the bucket. plain.
ns_t hist_quantile(const struct histogram *h, double part);
// Of what was added between two copies (plain): for "in the last second". max_ns is the
// upper bound of the highest bucket that grew.
struct histogram_summary hist_summary_since(const struct histogram *h, uint64_t *previous
                                            /*(HIST_BUCKETS), updated*/);

// The whole of one reading, for those who draw it: what is not empty, in order, 2^merge
// neighbours as one bucket (2: 4 per power of two, 6: one per 4 powers).
#define HIST_MERGE_LEAST 2
#define HIST_MERGE_MOST  6
struct hist_detail {
    struct histogram_summary summary;
    uint64_t sum_ns; // about: each sample counts as the middle of its (unmerged) bucket
    int n;
    struct {
        uint64_t below_ns, count; // samples below this and not below the one before
    } bucket[HIST_BUCKETS >> HIST_MERGE_LEAST];
};
void hist_detail(const struct histogram *h, int merge, struct hist_detail *out); // plain

// A budget: a bound on a duration, and how well it was kept. One owner (rt).
#define BUDGET_WINDOW_NS   (500 * NS_PER_MS)
#define BUDGET_WINDOW_MOST 1024 // samples; 500 ms at 2 kHz are 1000
struct budget {
    struct histogram *histogram; // of every sample; the owner's owner keeps it
    ns_t limit_ns;
    int window; // samples that the windowed count looks back over
    uint64_t samples, missed;
    uint32_t in_window; // misses among the last `window` samples
    uint32_t consecutive, consecutive_max;
    ns_t worst_ns;                          // the worst sample ever, and
    uint64_t worst_tick;                    // its tick
    uint64_t miss[BUDGET_WINDOW_MOST / 64]; // bit per sample, a ring
};

// window: 1 … BUDGET_WINDOW_MOST samples, cut to that. histogram may be NULL.
void budget_init(struct budget *b, struct histogram *histogram, ns_t limit_ns,
                 int window);
void budget_add(struct budget *b, ns_t value_ns, uint64_t tick);
// n samples that never came since they were skipped: misses without a duration.
void budget_skip(struct budget *b, uint64_t n);
// More than 10 % of a whole window missed. A window that is not full yet counts as kept in the
// part that is to come.
bool budget_over(const struct budget *b);
// Forgets the window and what is consecutive, not the totals: after a reset.
void budget_forgive(struct budget *b);

// The schedule of a fixed-rate loop. Deadlines are absolute; a late tick skips whole periods,
// keeps the phase and counts what it skipped.
struct schedule {
    ns_t start_ns, period_ns, next_ns;
    uint64_t tick;    // number of the tick to come, from 0
    uint64_t skipped; // in all
};
void schedule_start(struct schedule *s, ns_t first_ns, ns_t period_ns);
// After waking at now >= next_ns for tick s->tick: returns how late the wake-up was.
ns_t schedule_woke(const struct schedule *s, ns_t now);
// Moves to the next tick that lies after now; returns how many were skipped.
uint64_t schedule_advance(struct schedule *s, ns_t now);

#endif
