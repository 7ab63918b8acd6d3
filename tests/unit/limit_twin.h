// A second limit, naive and slow, for tests: sums are counted out, a stop is integrated phase by
// phase, and everything is thought towards larger positions only, the rest being mirrored.
#ifndef ACTD_TESTS_LIMIT_TWIN_H
#define ACTD_TESTS_LIMIT_TWIN_H

#include <math.h>
#include <stdbool.h>

#include "daemon/limit.h"

#define TWIN_SLACK 1e-12 // rad

// The first of the steps x, x - b, … whose sum is room / dt, by trying how many there are.
static inline double twin_brake_speed(double room, double rate, double dt)
{
    double b = rate * dt, less = 0; // what the later steps lack, all together
    int steps = 1;

    if (room <= 0)
        return 0;
    while ((room / dt + less) / steps > steps * b) {
        less += steps * b;
        steps++;
    }
    return (room / dt + less) / steps;
}

struct twin_motion {
    double x, v, a;
};

static inline void twin_phase(struct twin_motion *m, double jerk, double t)
{
    m->x += m->v * t + m->a * t * t / 2 + jerk * t * t * t / 6;
    m->v += m->a * t + jerk * t * t / 2;
    m->a += jerk * t;
}

// The way to rest, v >= 0: a down to a deceleration, that held, and back to 0.
static inline double twin_stop(double v, double a, double A, double J)
{
    struct twin_motion m = {0, v, fmax(a, -A)};
    double most = fmin(A, sqrt(J * v + a * a / 2));

    if (m.a > -most)
        twin_phase(&m, -J, (m.a + most) / J);
    m.a = -most;
    if (most == A)
        twin_phase(&m, 0, (m.v - A * A / (2 * J)) / A);
    twin_phase(&m, J, most / J);
    return m.x;
}

static inline double twin_advance(double v, double a, double A, double J, double dt)
{
    double top = v;

    if (a > 0)
        top = v + a * a / (2 * J);
    if (top <= 0)
        return 0;
    if (v < 0)
        return twin_stop(0, sqrt(a * a + 2 * J * v), A, J) + 1.5 * dt * top;
    if (a < 0 && 2 * J * v < a * a)
        return v * v / fabs(a) + 1.5 * dt * top;
    return twin_stop(v, a, A, J) + 1.5 * dt * top;
}

// A step with acceleration a towards larger positions: does it leave room to stop?
static inline bool twin_fits(const struct limit_joint *j, double vel, double a,
                             double room, double most)
{
    double v = vel + a * j->period_s;

    return v * j->period_s + twin_advance(v, a, most, j->jerk, j->period_s) <=
           room + TWIN_SLACK;
}

// And does the velocity stay allowed while a comes down to 0?
static inline bool twin_slow(const struct limit_joint *j, double vel, double a)
{
    double peak = vel + a * j->period_s;

    for (double x = a - j->jerk * j->period_s; x > 0; x -= j->jerk * j->period_s)
        peak += x * j->period_s;
    return peak <= j->velocity + TWIN_SLACK / j->period_s;
}

static inline bool twin_wall(const struct limit_joint *j, const struct limit_state *s,
                             double a)
{
    return twin_slow(j, s->vel, a) &&
           twin_fits(j, s->vel, a, j->max - s->pos, j->acceleration);
}

struct twin_target {
    double pos, vel, acc, most;
};

static inline bool twin_target(const struct limit_joint *j, const struct limit_state *s,
                               const struct twin_target *t, double a)
{
    double dt = j->period_s, v = s->vel + a * dt;

    return v * dt + twin_advance(v - t->vel, a - t->acc, t->most, j->jerk, dt) <=
           t->pos - s->pos + TWIN_SLACK;
}

// The largest of 256 steps from lo to hi that is allowed, by halving.
static inline double twin_largest(const struct limit_joint *j,
                                  const struct limit_state *s,
                                  const struct twin_target *t, double lo, double hi)
{
    int yes = 0, no = 256;
#define OK(x) (t ? twin_target(j, s, t, (x)) : twin_wall(j, s, (x)))

    if (OK(hi))
        return hi;
    if (!OK(lo))
        return lo;
    while (no - yes > 1) {
        int mid = (yes + no) / 2;

        if (OK(lo + (hi - lo) * mid / 256))
            yes = mid;
        else
            no = mid;
    }
    return lo + (hi - lo) * yes / 256;
#undef OK
}

static inline double twin_into(double x, double lo, double hi)
{
    return x > hi ? hi : x < lo ? lo : x;
}

static inline struct limit_joint twin_mirror(const struct limit_joint *j)
{
    struct limit_joint m = *j;

    m.min = -j->max;
    m.max = -j->min;
    return m;
}

static inline double twin_stop_law(const struct limit_joint *j,
                                   const struct limit_state *s)
{
    double step = j->jerk * j->period_s, a;

    if (s->vel < 0) {
        struct limit_state m = {-s->pos, -s->vel, -s->acc};
        return -twin_stop_law(j, &m);
    }
    a = -twin_brake_speed(s->vel, j->jerk, j->period_s);
    a = twin_into(a, s->acc - step, s->acc + step);
    return twin_into(a, -j->acceleration, j->acceleration);
}

static inline void twin_window(const struct limit_joint *j, const struct limit_state *s,
                               double *lo, double *hi)
{
    struct limit_joint back = twin_mirror(j);
    struct limit_state rear = {-s->pos, -s->vel, -s->acc};
    double A = j->acceleration, stop = twin_stop_law(j, s);
    double least = twin_into(s->acc - j->jerk * j->period_s, -A, A);
    double most = twin_into(s->acc + j->jerk * j->period_s, -A, A);

    *hi = twin_largest(j, s, NULL, least, most);
    *lo = -twin_largest(&back, &rear, NULL, -most, -least);
    if (*hi < stop)
        *hi = stop;
    if (*lo > stop)
        *lo = stop;
    if (!twin_wall(j, s, *hi) || !twin_wall(&back, &rear, -*lo))
        *lo = *hi = stop;
}

// The acceleration towards a target, with jerk; *met when it is the one that leads there.
static inline double twin_jerk(const struct limit_joint *j, const struct limit_state *s,
                               const struct twin_target *t, double scale, bool *met)
{
    double dt = j->period_s, step = j->jerk * dt, lo, hi, a;
    double direct = ((t->pos - s->pos) / dt - s->vel) / dt;
    double hair = 4 * TWIN_SLACK / dt / dt;
    double past = fabs(s->vel + direct * dt - t->vel);

    if (t->pos - s->pos - t->vel * dt < 0) {
        struct limit_joint m = twin_mirror(j);
        struct limit_state r = {-s->pos, -s->vel, -s->acc};
        struct twin_target o = {-t->pos, -t->vel, -t->acc, t->most};
        return -twin_jerk(&m, &r, &o, scale, met);
    }
    twin_window(j, s, &lo, &hi);
    *met = direct > lo - hair && direct < hi + hair;
    if (t->vel == 0 && t->acc == 0)
        *met = *met && fabs(direct) <= step && past <= step * dt;
    else
        *met = *met && fabs(direct - t->acc) <= 2 * step &&
               past <= (fabs(direct) + step) * dt;
    *met = *met && fabs(direct) <= t->most + hair &&
           fabs(s->vel + direct * dt) <= j->velocity * scale + TWIN_SLACK / dt;
    if (*met)
        return direct;
    a = twin_largest(j, s, t, lo, hi);
    a = twin_into(a, -t->most, t->most);
    if (a > twin_brake_speed(j->velocity * scale - s->vel, j->jerk, dt))
        a = twin_brake_speed(j->velocity * scale - s->vel, j->jerk, dt);
    return twin_into(a, lo, hi);
}

static inline double twin_plain(const struct limit_joint *j, const struct limit_state *s,
                                const struct twin_target *t, double scale, bool *met,
                                enum guard_limit *limit)
{
    double dt = j->period_s, A = j->acceleration * scale, V = j->velocity * scale;
    double hair = TWIN_SLACK / dt, behind = t->pos - t->vel * dt - s->pos;
    double v = (t->pos - s->pos) / dt;

    if (behind < -A * dt * dt)
        v = t->vel - twin_brake_speed(-behind, A, dt), *limit = GUARD_ACCELERATION;
    else if (behind > A * dt * dt)
        v = t->vel + twin_brake_speed(behind, A, dt), *limit = GUARD_ACCELERATION;
    if (v > V + hair || v < -V - hair)
        v = twin_into(v, -V, V), *limit = GUARD_VELOCITY;
    if (v > s->vel + A * dt + hair || v < s->vel - A * dt - hair)
        v = twin_into(v, s->vel - A * dt, s->vel + A * dt), *limit = GUARD_ACCELERATION;
    *met = v == (t->pos - s->pos) / dt;
    return v;
}

struct twin_step {
    struct limit_step step;
    bool
        close; // to the position limit, to the last bits: which limit acted is up to rounding
};

// Velocity, then position; `to` is where v leads when that is known to the bit, else NAN.
static inline struct twin_step twin_finish(const struct limit_joint *j,
                                           const struct limit_state *s, double v,
                                           enum guard_limit limit, double to)
{
    double dt = j->period_s, hair = TWIN_SLACK / dt, broken;
    double up = twin_brake_speed(j->max - s->pos, j->acceleration, dt);
    double down = twin_brake_speed(s->pos - j->min, j->acceleration, dt);
    double forgiven = isnan(to) ? 0 : hair;
    struct limit_step o = {.limit = limit};
    bool close = fabs(v - up) < 1e-12 || fabs(v + down) < 1e-12;

    if (v > j->velocity + hair || v < -j->velocity - hair) {
        v = v > 0 ? j->velocity : -j->velocity;
        o.limit = GUARD_VELOCITY;
        to = NAN;
    }
    if (v > up + forgiven || v < -down - forgiven) {
        v = twin_into(v, -down, up);
        o.limit = GUARD_POSITION;
        to = NAN;
    }
    o.pos = isnan(to) ? s->pos + v * dt : to;
    if (s->pos >= j->min && s->pos <= j->max)
        o.pos = twin_into(o.pos, j->min, j->max);
    o.vel = (o.pos - s->pos) / dt;
    if (fabs(o.vel) < hair / 10) {
        o.vel = 0;
        o.pos = isnan(to) ? s->pos : o.pos;
    }
    broken = fabs((o.vel - s->vel) / dt - s->acc) - j->jerk * dt;
    o.jerk_broken = j->jerk > 0 && broken > 4 * TWIN_SLACK / dt / dt;
    return (struct twin_step){o, close};
}

static inline struct twin_step twin_towards(const struct limit_joint *j,
                                            const struct limit_state *s, double wanted,
                                            double vel, double acc, double scale)
{
    double V = j->velocity, A = j->acceleration, v, dt = j->period_s;
    enum guard_limit limit = GUARD_NONE;
    struct twin_target t = {wanted, twin_into(vel, -V, V), twin_into(acc, -A, A),
                            A * scale};
    bool met;

    if (wanted > j->max || wanted < j->min) {
        t = (struct twin_target){wanted > j->max ? j->max : j->min, 0, 0, A * scale};
        limit = GUARD_POSITION;
    }
    if (j->jerk > 0) {
        v = s->vel + twin_jerk(j, s, &t, scale, &met) * dt;
        limit = met ? limit : GUARD_JERK;
    } else {
        v = twin_plain(j, s, &t, scale, &met, &limit);
    }
    return twin_finish(j, s, v, limit, met ? t.pos : NAN);
}

static inline struct twin_step twin_brake(const struct limit_joint *j,
                                          const struct limit_state *s, double brake,
                                          bool hard)
{
    double dt = j->period_s, v;
    struct twin_step o;

    if (j->jerk > 0 && !hard)
        v = s->vel + twin_stop_law(j, s) * dt;
    else if (fabs(s->vel) <= brake * dt)
        v = 0;
    else
        v = s->vel > 0 ? s->vel - brake * dt : s->vel + brake * dt;
    o = twin_finish(j, s, v, GUARD_NONE, NAN);
    if (hard)
        o.step.jerk_broken = false;
    return o;
}

#endif
