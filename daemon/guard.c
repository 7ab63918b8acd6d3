#include "daemon/guard.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>

#include "daemon/limit.h"

// A policy that asks for more than this beyond a limit is not a bit off but wrong.
static void default_hard_limits(struct guard_limits *lim, int i)
{
    double width = lim->max[i] - lim->min[i];

    if (lim->hard_min[i] != 0 || lim->hard_max[i] != 0)
        return;
    lim->hard_min[i] = lim->min[i] - width;
    lim->hard_max[i] = lim->max[i] + width;
}

void guard_init(struct guard *g, const struct guard_limits *lim, double period_s)
{
    *g = (struct guard){.lim = *lim, .period_s = period_s, .refused_joint = -1};
    for (int i = 0; i < lim->n; i++)
        default_hard_limits(&g->lim, i);
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

static int judge_joint(const struct guard_limits *lim, int i, double wanted, double vel)
{
    if (!isfinite(wanted) || !isfinite(vel))
        return -EDOM;
    return wanted < lim->hard_min[i] || wanted > lim->hard_max[i] ? -ERANGE : 0;
}

// 0 if the whole vector may be followed. Counts it if not.
static int judge(struct guard *g, const double *wanted, const double *wanted_vel)
{
    const double *vel = wanted_vel ? wanted_vel : wanted;

    for (int i = 0; i < g->lim.n; i++) {
        int rc = judge_joint(&g->lim, i, wanted[i], vel[i]);

        if (rc == 0)
            continue;
        g->refused += rc == -EDOM;
        g->out_of_range += rc == -ERANGE;
        g->refused_joint = i;
        return rc;
    }
    return 0;
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
    double v = wanted_vel ? wanted_vel[i] : (wanted - g->wanted[i]) / g->period_s;

    v = within(v, -top, top);
    *acc = (v - before) / g->period_s;
    g->wanted[i] = wanted;
    g->wanted_vel[i] = v;
    return v;
}

int guard_apply(struct guard *g, const double *wanted, const double *wanted_vel,
                double scale, struct guard_result *out)
{
    int rc = judge(g, wanted, wanted_vel);

    if (rc != 0)
        return rc;
    scale = scale > 0 ? fmin(scale, 1) : 1; // NaN is not > 0
    *out = (struct guard_result){.first_joint = -1};
    for (int i = 0; i < g->lim.n; i++) {
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
    *out = (struct guard_result){.first_joint = -1};
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
