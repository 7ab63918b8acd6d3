#include "daemon/guard.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "daemon/limit.h"

void guard_init(struct guard *g, const struct guard_limits *lim, double period_s)
{
    memset(g, 0, sizeof *g);
    g->lim = *lim;
    g->period_s = period_s;
}

void guard_reset(struct guard *g, const double *measured)
{
    for (int i = 0; i < g->lim.n; i++) {
        g->pos[i] = g->wanted[i] = measured[i];
        g->vel[i] = g->acc[i] = g->wanted_vel[i] = 0;
    }
}

static struct limit_joint joint(const struct guard *g, int i)
{
    return (struct limit_joint){
        .min = g->lim.min[i],
        .max = g->lim.max[i],
        .velocity = g->lim.velocity[i],
        .acceleration = g->lim.acceleration[i],
        .jerk = g->lim.jerk[i],
        .period_s = g->period_s,
    };
}

static struct limit_state state(const struct guard *g, int i)
{
    return (struct limit_state){g->pos[i], g->vel[i], g->acc[i]};
}

static void begin(struct guard_result *out)
{
    memset(out, 0, sizeof *out);
    out->first_joint = -1;
}

static void publish(struct guard *g, int i, const struct limit_step *s,
                    struct guard_result *out)
{
    g->acc[i] = (s->vel - g->vel[i]) / g->period_s;
    g->vel[i] = s->vel;
    g->pos[i] = s->pos;
    g->jerk_broken += s->jerk_broken;
    out->pos[i] = s->pos;
    out->vel[i] = s->vel;
    out->limit[i] = s->limit;
    if (s->limit == GUARD_NONE)
        return;
    g->limited[i][s->limit]++;
    if (out->first_joint < 0) {
        out->first = s->limit;
        out->first_joint = i;
    }
}

static bool finite_vector(const double *x, int n)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

static double within(double x, double lo, double hi)
{
    return fmin(fmax(x, lo), hi);
}

// How fast the target of joint i moves, and how that changed, as far as the limits go: a jump of
// the target is not a speed that the arm should arrive with.
static double target_motion(struct guard *g, int i, double wanted,
                            const double *wanted_vel, double *acc)
{
    double top = g->lim.velocity[i], before = g->wanted_vel[i];
    double v = wanted_vel != NULL ? wanted_vel[i] : (wanted - g->wanted[i]) / g->period_s;

    v = within(v, -top, top);
    *acc = (v - before) / g->period_s;
    g->wanted[i] = wanted;
    g->wanted_vel[i] = v;
    return v;
}

int guard_apply(struct guard *g, const double *wanted, const double *wanted_vel,
                double scale, struct guard_result *out)
{
    int n = g->lim.n;

    if (!finite_vector(wanted, n) ||
        (wanted_vel != NULL && !finite_vector(wanted_vel, n))) {
        g->refused++;
        return -EDOM;
    }
    if (!(scale > 0 && scale <= 1))
        scale = 1;
    begin(out);
    for (int i = 0; i < n; i++) {
        struct limit_joint j = joint(g, i);
        struct limit_state s = state(g, i);
        double inside = within(wanted[i], j.min, j.max), acc;
        double vel = target_motion(g, i, inside, wanted_vel, &acc);
        struct limit_step step = limit_towards(&j, &s, wanted[i], vel, acc, scale);

        publish(g, i, &step, out);
    }
    return 0;
}

void guard_brake(struct guard *g, bool hard, struct guard_result *out)
{
    begin(out);
    for (int i = 0; i < g->lim.n; i++) {
        struct limit_joint j = joint(g, i);
        struct limit_state s = state(g, i);
        double brake = hard ? g->lim.stop_acceleration[i] : j.acceleration;
        struct limit_step step = limit_brake(&j, &s, brake, hard);

        publish(g, i, &step, out);
        g->wanted[i] = step.pos;
        g->wanted_vel[i] = step.vel;
    }
}

// With jerk a velocity of 0 may be on its way through.
bool guard_at_rest(const struct guard *g)
{
    for (int i = 0; i < g->lim.n; i++)
        if (g->vel[i] != 0 || (g->lim.jerk[i] > 0 && g->acc[i] != 0))
            return false;
    return true;
}

void guard_stopping(const struct guard_limits *lim, int j, double *time_s,
                    double *distance)
{
    *time_s = lim->velocity[j] / lim->stop_acceleration[j];
    *distance = lim->velocity[j] * *time_s / 2;
}
