// The loop's twin: a thread of a test that sleeps to the same kind of deadlines, at the same
// priority and on the same core, and does nothing else. What makes it miss a deadline is the
// machine: a kernel that does not let go of the core, a hypervisor that takes it away. A loop that
// misses no more than its twin, at the same time, misses none for what actd does. All plain.
#ifndef ACTD_TEST_TWIN_H
#define ACTD_TEST_TWIN_H

#include <stdint.h>

#include "daemon/deadline.h"

struct twin;

struct twin_seen {                 // since it began
    uint64_t ticks;                // those skipped among them
    uint64_t skipped, gaps;        // ticks it slept through, and how often in a row
    uint64_t late_ms, late_period; // woke more than 1 ms, a period late
};

// As actd's loop at this rate is by default. granted: what the kernel gave it. 0 or -errno.
int twin_start(struct twin **out, double rate_hz, char granted[64]);
void twin_stop(struct twin *t);                              // NULL is fine
void twin_look(const struct twin *t, struct twin_seen *out); // NULL: all 0
// From now on how late it wakes goes in there; NULL = nowhere. It must outlive the twin.
void twin_note(struct twin *t, struct histogram *lateness);
// Adds what it saw in between.
void twin_add(struct twin_seen *sum, const struct twin_seen *from,
              const struct twin_seen *to);

// How many gaps more than its own in as many ticks: what comes one by one, and by chance, has the
// root of its number as standard deviation. Gaps come so; skipped ticks come in bursts.
double twin_beyond(uint64_t own_gaps, uint64_t own_ticks, uint64_t gaps, uint64_t ticks,
                   double *sigma);

#endif
