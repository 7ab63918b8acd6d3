// See gate.h for why this repeats, in the simplest form, what guard has done.
#include "daemon/gate.h"

#include <float.h>

#define SLACK 1e-9 // of a limit, relative and absolute: the rounding of a difference

// Every comparison is written so that a NaN fails it.
static bool between(double x, double lo, double hi)
{
    return x >= lo && x <= hi;
}

static enum gate_verdict check_joint(const struct guard_limits *lim, int i,
                                     double period_s, double previous, double command,
                                     double velocity)
{
    double top = lim->velocity[i] * (1 + SLACK) + SLACK;
    double step = lim->velocity[i] * period_s * (1 + SLACK) + SLACK;

    if (!between(command, -DBL_MAX, DBL_MAX) || !between(velocity, -DBL_MAX, DBL_MAX))
        return GATE_NOT_FINITE;
    if (!between(command, lim->min[i], lim->max[i]))
        return GATE_POSITION;
    if (!between(velocity, -top, top))
        return GATE_VELOCITY;
    if (!between(command - previous, -step, step))
        return GATE_STEP;
    return GATE_PASSED;
}

enum gate_verdict gate_check(const struct guard_limits *lim, double period_s,
                             const double *previous, const double *command,
                             const double *velocity, ns_t ttl_ns, int *joint)
{
    *joint = -1;
    for (int i = 0; i < lim->n; i++) {
        enum gate_verdict v =
            check_joint(lim, i, period_s, previous[i], command[i], velocity[i]);

        if (v != GATE_PASSED) {
            *joint = i;
            return v;
        }
    }
    if (ttl_ns < 1 || ttl_ns > GATE_TTL_MOST_NS)
        return GATE_TTL;
    return GATE_PASSED;
}

const char *gate_verdict_name(enum gate_verdict v)
{
    static const char *const name[] = {
        "passed",   "not finite", "outside the position limits",
        "too fast", "a jump",     "its time to live",
    };

    _Static_assert(sizeof name / sizeof *name == GATE_VERDICTS, "a name per verdict");
    return (unsigned)v < GATE_VERDICTS ? name[v] : "?";
}
