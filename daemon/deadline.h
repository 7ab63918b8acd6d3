// deadline: how late, how long, how often. A histogram with log-linear buckets in fixed memory
// (relative error <= 1/16), one writer (rt), any reader at any time.
#ifndef ACTD_DEADLINE_H
#define ACTD_DEADLINE_H

#include <stdatomic.h>
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
// Of what was added between two copies (plain): for "in the last second". max_ns is the
// upper bound of the highest bucket that grew.
struct histogram_summary hist_summary_since(const struct histogram *h, uint64_t *previous
                                            /*(HIST_BUCKETS), updated*/);

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
