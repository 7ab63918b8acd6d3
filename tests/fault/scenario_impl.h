// What scenario.c, the run of one, and verdict.c share. Nobody else includes this.
#ifndef ACTD_FAULT_SCENARIO_IMPL_H
#define ACTD_FAULT_SCENARIO_IMPL_H

#include "tests/fault/matrix.h"

// One tick, and a look at everything.
void probe_step(struct probe *p);

// What the driver must read in a command that holds or stops.
enum ladder_reason verdict_reason(const struct scenario *s);
// Was it detected, answered and told as it must be? reset: one was taken while the cause was
// there.
void verdict_run(struct probe *p, bool reset);
// Asks for a reset. True when it was taken.
bool verdict_reset(struct probe *p);
// Latched, and left by a reset alone.
void verdict_latch(struct probe *p);
// READY again, still until somebody arms, and then it goes.
void verdict_rearm(struct probe *p);

#endif
