// gate: the last look at a command before it leaves. It trusts nobody: neither the guard, whose
// work it repeats in the simplest possible form, nor the numbers it is given. Written apart from
// guard.c and limit.c, with no helper in common, so that one mistake can not blind both.
#ifndef ACTD_GATE_H
#define ACTD_GATE_H

#include "daemon/clock.h"
#include "daemon/guard.h"

// What was wrong with a command, GATE_PASSED when nothing was.
enum gate_verdict {
    GATE_PASSED,
    GATE_NOT_FINITE,
    GATE_POSITION, // outside the limits
    GATE_VELOCITY, // the velocity it names
    GATE_STEP,     // further from the command before than the velocity limit allows
    GATE_TTL,      // lives no time, or longer than any command may
};
#define GATE_VERDICTS    6
#define GATE_TTL_MOST_NS (10 * NS_PER_S)

// rt, pure. command and velocity (lim->n), previous (lim->n) is the last command that left.
// *joint is the first joint that is wrong, -1 when none is.
enum gate_verdict gate_check(const struct guard_limits *lim, double period_s,
                             const double *previous, const double *command,
                             const double *velocity, ns_t ttl_ns, int *joint);

const char *gate_verdict_name(enum gate_verdict v); // any thread class

#endif
