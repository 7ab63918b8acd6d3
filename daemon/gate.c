// The last gate before the bus. It trusts nobody: neither the guard, whose work it repeats in
// the simplest possible form, nor the numbers it is given. Written apart from guard.c and
// limit.c on purpose, with no helper in common, so that one mistake can not blind both.
#include <float.h>

#include "daemon/guard.h"

#define GATE_SLACK 1e-9 // of a limit, relative and absolute: the rounding of a difference

// Every comparison is written so that a NaN fails it.
static bool between(double x, double lo, double hi)
{
    return x >= lo && x <= hi;
}

bool guard_gate(const struct guard_limits *lim, double period_s, const double *previous,
                const double *command, const double *velocity)
{
    for (int i = 0; i < lim->n; i++) {
        double top = lim->velocity[i] * (1 + GATE_SLACK) + GATE_SLACK;
        double step = lim->velocity[i] * period_s * (1 + GATE_SLACK) + GATE_SLACK;

        if (!between(command[i], -DBL_MAX, DBL_MAX))
            return false;
        if (!between(command[i], lim->min[i], lim->max[i]))
            return false;
        if (!between(velocity[i], -top, top))
            return false;
        if (!between(command[i] - previous[i], -step, step))
            return false;
    }
    return true;
}
