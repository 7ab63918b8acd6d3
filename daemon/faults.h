// faults: what is remembered of each fault, by reason: whether it is there now, whether it is
// latched, how often it came and when. A fault that stops the arm latches the moment it does;
// only a reset that finds it gone opens the latch. Pure but for struct faults; no
// clock: ticks are numbers. Everything here is rt.
#ifndef ACTD_FAULTS_H
#define ACTD_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/ladder.h"

struct fault_count {
    uint64_t episodes;              // times it came up
    uint64_t ticks;                 // in which it was there
    uint64_t first_tick, last_tick; // of the newest episode
};

struct faults {
    uint64_t active, latched; // bit per enum ladder_reason
    uint64_t stopping;        // those of the active ones that stop the arm now
    struct fault_count of[LADDER_REASONS];
};

// One tick. stops: the ladder stops in it, or goes on to; then what stops the arm latches.
// Returns the reasons (bits) that came up in this tick.
uint64_t faults_update(struct faults *f, uint64_t conditions, bool stops, uint64_t tick);

// A reason that has no condition of its own (an expired HOLD, an operator's stop): latched as
// well. REASON_NONE is ignored.
void faults_latch(struct faults *f, enum ladder_reason reason);

// A person's reset, after the ladder took it: opens every latch whose fault does not stop the arm
// any more. True when none is left.
bool faults_reset(struct faults *f);

#endif
