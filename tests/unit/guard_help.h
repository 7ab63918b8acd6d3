// What the tests of guard and limit share: random numbers, a joint, and a checker that knows
// nothing of how the guard works.
#ifndef ACTD_TESTS_GUARD_HELP_H
#define ACTD_TESTS_GUARD_HELP_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/guard.h"

#define JOINTS 4

static uint64_t seed = 88172645463325252u;
static inline double rnd(void) // [0, 1)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) * 0x1p-53;
}
static inline double between(double lo, double hi)
{
    return lo + (hi - lo) * rnd();
}

static inline struct guard_limits one_joint(double jerk)
{
    return (struct guard_limits){.n = 1,
                                 .min = {-2},
                                 .max = {2},
                                 .velocity = {2},
                                 .acceleration = {8},
                                 .jerk = {jerk},
                                 .stop_acceleration = {16}};
}

// ---- the checker: differences of published positions, nothing else --------------------------
struct check {
    struct guard_limits lim;
    double dt, p[JOINTS], v[JOINTS], a[JOINTS];
    double worst_v, worst_a, worst_j;
    uint64_t ticks, jerk_over;
    int loose; // ticks for which jerk is not asked for: a hard brake and the one after
};

static inline void check_start(struct check *c, const struct guard_limits *lim, double dt,
                               const double *pos)
{
    memset(c, 0, sizeof *c);
    c->lim = *lim;
    c->dt = dt;
    for (int i = 0; i < lim->n; i++)
        c->p[i] = pos[i];
    c->loose = 1;
}

static inline void check_tick(struct check *c, const struct guard_result *r, int hard)
{
    if (hard)
        c->loose = 2;
    c->ticks++;
    for (int i = 0; i < c->lim.n; i++) {
        double p = r->pos[i], v = (p - c->p[i]) / c->dt, a = (v - c->v[i]) / c->dt;
        double j = (a - c->a[i]) / c->dt;
        double eps_a = 1e-11 / (c->dt * c->dt), eps_j = 4e-11 / (c->dt * c->dt * c->dt);
        double A = c->lim.acceleration[i];

        if (hard && c->lim.stop_acceleration[i] > A)
            A = c->lim.stop_acceleration[i];
        assert_true(isfinite(p) && isfinite(r->vel[i]));
        assert_true(p >= c->lim.min[i] && p <= c->lim.max[i]);
        assert_true(fabs(r->vel[i] - v) < 1e-9);
        if (fabs(v) > c->lim.velocity[i] * (1 + 1e-9) + 1e-11 / c->dt)
            fail_msg("joint %d velocity %.12g over %g", i, v, c->lim.velocity[i]);
        if (fabs(a) > A * (1 + 1e-7) + eps_a)
            fail_msg("joint %d tick %lu acceleration %.12g over %g", i,
                     (unsigned long)c->ticks, a, A);
        if (c->lim.jerk[i] > 0 && c->loose == 0 &&
            fabs(j) > c->lim.jerk[i] * (1 + 1e-7) + eps_j)
            c->jerk_over++;
        c->p[i] = p;
        c->v[i] = v;
        c->a[i] = a;
    }
    if (c->loose > 0)
        c->loose--;
}

#endif
