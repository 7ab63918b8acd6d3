// One joint, one tick, in discrete time: velocity is the step over the period, acceleration the
// change of velocity over the period, and both are judged as the driver sees them.
//
// Without jerk everything is exact. After a step at velocity v the point can stop over
//   v, v - A dt, v - 2 A dt, … > 0,   a distance of   dt * sum.
// limit_brake_speed inverts that sum. A velocity is allowed towards a position limit only if
// that whole sequence fits before the limit, hence the acceleration limit can always be kept:
// from an allowed state the next term of the sequence is allowed. The same rule with the target
// in place of the limit, and velocities relative to the target's, gives the fastest approach
// that does not overshoot; once the rest of the way is less than A dt² it ends on the target.
//
// With jerk the fallback is limit_brake itself, a fixed feedback law B. A next acceleration is
// taken only if B, started from the state it leads to, would stay inside all limits; then B's
// own next step is always a choice. Whether it would is asked of a closed form: the distance of
// a continuous-time stop (ramp, hold, ramp) from the same state, plus JERK_MARGIN periods of
// the peak velocity, which the tests find to be above B's discrete path everywhere.
//
// Rank when not everything can be kept (after a hard brake, or with a measured start outside
// the limits): position, velocity, acceleration, jerk.
#include "daemon/limit.h"

#include <math.h>

// Rounding of a position of a few rad, seen as velocity, must not count as exceeding a limit.
#define SLACK_POS   1e-12
#define JERK_MARGIN 1.5
#define BISECTIONS  8 // of a window of 2 jerk dt: to 1/256 of it

// fmin and fmax without their calls, which make a tick with jerk half as long again: nothing here
// is NaN.
static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double clamp(double x, double lo, double hi)
{
    return smaller(larger(x, lo), hi);
}

double limit_brake_speed(double room, double rate, double dt)
{
    double unit = rate * dt * dt, n;

    room = larger(room, 0);
    n = floor((sqrt(1 + 8 * room / unit) - 1) / 2); // whole steps after the first
    return (room / dt + rate * dt * n * (n + 1) / 2) / (n + 1);
}

// Distance of the continuous stop: v >= 0 after a is back at 0, a at or above -sqrt(2 J v).
static double stop_distance(double v, double a, double A, double J)
{
    double peak = smaller(sqrt(J * v + a * a / 2), A); // of the deceleration
    double t1 = larger((a + peak) / J, 0);
    double v1 = v + a * t1 - J * t1 * t1 / 2; // where the deceleration is `peak`
    double v2 = peak * peak / (2 * J);        // from where it must shrink again

    return v * t1 + a * t1 * t1 / 2 - J * t1 * t1 * t1 / 6 +
           (v1 * v1 - v2 * v2) / (2 * A) + peak * peak * peak / (6 * J * J);
}

double limit_advance(double v, double a, double A, double J, double dt)
{
    double up = larger(a, 0), down = smaller(a, 0);
    double top = larger(v + up * up / (2 * J), 0); // peak velocity
    double margin = JERK_MARGIN * dt * top;

    // Crosses zero, if ever, with what is left of a; the way back before that counts for nothing.
    if (v < 0)
        return stop_distance(0, sqrt(2 * J * top), A, J) + margin;
    if (v < down * down / (2 * J)) // stops while |a| shrinks: below the chord of v(t)
        return v * v / -a + margin;
    return stop_distance(v, a, A, J) + margin;
}

// Velocity when a has come down to 0 by jerk alone, discrete and exact.
static double peak_velocity(double v, double a, double J, double dt)
{
    double up = larger(a, 0), n = floor(up / (J * dt));

    return v + dt * (n * up - J * dt * n * (n + 1) / 2);
}

// The position limits as velocities. Outside them nothing goes further out.
static double fit_position(const struct limit_joint *j, double pos, double v)
{
    double up = limit_brake_speed(j->max - pos, j->acceleration, j->period_s);
    double down = limit_brake_speed(pos - j->min, j->acceleration, j->period_s);

    return clamp(v, -down, up);
}

// The last word on a velocity: the limit on it, then position. `exact`: it leads to `wanted`.
static struct limit_step finish(const struct limit_joint *j, const struct limit_state *s,
                                double v, enum guard_limit limit, bool exact,
                                double wanted)
{
    double dt = j->period_s, slack = SLACK_POS / dt;
    double asked = v, fit;
    struct limit_step out;

    if (fabs(v) > j->velocity + slack) {
        v = copysign(j->velocity, v);
        limit = GUARD_VELOCITY;
    }
    fit = fit_position(j, s->pos, v);
    if (fabs(fit - v) > (exact ? slack : 0)) {
        v = fit;
        limit = GUARD_POSITION;
    }
    exact = exact && v == asked;
    out.pos = exact ? wanted : s->pos + v * dt;
    out.pos = clamp(out.pos, smaller(j->min, s->pos), larger(j->max, s->pos));
    out.vel = (out.pos - s->pos) / dt;
    if (fabs(out.vel) < slack / 10) { // rounding is not motion
        out.vel = 0;
        out.pos = exact ? out.pos : s->pos;
    }
    out.limit = limit;
    out.jerk_broken = j->jerk > 0 && fabs((out.vel - s->vel) / dt - s->acc) >
                                         j->jerk * dt + 4 * slack / dt;
    return out;
}

// ---- with jerk -------------------------------------------------------------------------------

// One question about a next acceleration: all along `sign` (+1 towards max, -1 towards min).
struct ask {
    const struct limit_joint *j;
    const struct limit_state *s;
    double sign;
    double top, most;      // velocity and acceleration allowed
    double room, vel, acc; // distance and motion of the position limit or the target
};

static bool allowed(const struct ask *q, double a)
{
    double dt = q->j->period_s, J = q->j->jerk, slack = SLACK_POS / dt;
    double v = q->sign * q->s->vel + a * dt;
    double way = v * dt + limit_advance(v - q->vel, a - q->acc, q->most, J, dt);

    return peak_velocity(v, a, J, dt) <= q->top + slack && way <= q->room + SLACK_POS;
}

// The largest acceleration along sign that is allowed, in [lo, hi] along sign; lo if none is.
static double largest(const struct ask *q, double lo, double hi)
{
    if (allowed(q, hi))
        return hi;
    if (!allowed(q, lo))
        return lo;
    for (int i = 0; i < BISECTIONS; i++) {
        double mid = (lo + hi) / 2;

        if (allowed(q, mid))
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static struct ask ask_wall(const struct limit_joint *j, const struct limit_state *s,
                           double sign, double room)
{
    return (struct ask){
        .j = j,
        .s = s,
        .sign = sign,
        .top = j->velocity,
        .most = j->acceleration,
        .room = room,
    };
}

// B: the acceleration of a jerk-limited stop. In the plane of velocity and acceleration it is
// the rule without jerk, one derivative down.
static double brake_law(const struct limit_joint *j, const struct limit_state *s)
{
    double dt = j->period_s, A = j->acceleration;
    double a = copysign(limit_brake_speed(fabs(s->vel), j->jerk, dt), -s->vel);

    a = clamp(a, s->acc - j->jerk * dt, s->acc + j->jerk * dt);
    return clamp(a, -A, A);
}

// Which accelerations the position and velocity limits leave: [*lo, *hi].
static void jerk_window(const struct limit_joint *j, const struct limit_state *s,
                        double *lo, double *hi)
{
    double A = j->acceleration, b = brake_law(j, s);
    double least = clamp(s->acc - j->jerk * j->period_s, -A, A);
    double most = clamp(s->acc + j->jerk * j->period_s, -A, A);
    struct ask up = ask_wall(j, s, 1, j->max - s->pos);
    struct ask down = ask_wall(j, s, -1, s->pos - j->min);

    *hi = larger(largest(&up, least, most), b);
    *lo = smaller(-largest(&down, -most, -least), b);
    if (!allowed(&up, *hi) || !allowed(&down, -*lo))
        *lo = *hi = b;
}

// May the target be met in this very tick? Its own motion is known only as differences, so a
// moving one is met with up to a tick of the acceleration and two of the jerk between them; one
// that stands still only with what the next tick can take away again.
static bool meets(const struct limit_joint *j, double direct, double passing,
                  double wanted_vel, double wanted_acc)
{
    double dt = j->period_s, jerk_step = j->jerk * dt;

    if (wanted_vel == 0 && wanted_acc == 0)
        return fabs(direct) <= jerk_step && fabs(passing) <= jerk_step * dt;
    return fabs(direct - wanted_acc) <= 2 * jerk_step &&
           fabs(passing) <= (fabs(direct) + jerk_step) * dt;
}

// And within the scaled limits, which the window does not know?
static bool slow_enough(const struct limit_joint *j, double vel, double direct,
                        double scale)
{
    double dt = j->period_s, slack = SLACK_POS / dt;

    return fabs(direct) <= j->acceleration * scale + 4 * slack / dt &&
           fabs(vel + direct * dt) <= j->velocity * scale + slack;
}

static double jerk_towards(const struct limit_joint *j, const struct limit_state *s,
                           double wanted, double wanted_vel, double wanted_acc,
                           double scale, enum guard_limit *limit)
{
    double dt = j->period_s, direct = ((wanted - s->pos) / dt - s->vel) / dt;
    double slack = 4 * SLACK_POS / (dt * dt);
    double passing = s->vel + direct * dt - wanted_vel; // relative to the target
    double sign = copysign(1, wanted - s->pos - wanted_vel * dt);
    struct ask target = {
        .j = j,
        .s = s,
        .sign = sign,
        .top = INFINITY,
        .most = j->acceleration * scale,
        .room = sign * (wanted - s->pos),
        .vel = sign * wanted_vel,
        .acc = sign * wanted_acc,
    };
    double lo, hi, along, grow;

    jerk_window(j, s, &lo, &hi);
    if (direct >= lo - slack && direct <= hi + slack &&
        slow_enough(j, s->vel, direct, scale) &&
        meets(j, direct, passing, wanted_vel, wanted_acc))
        return direct;
    *limit = GUARD_JERK;
    along = largest(&target, smaller(sign * lo, sign * hi), larger(sign * lo, sign * hi));
    // Slower than the scaled velocity, by the rule without jerk one derivative down.
    grow = limit_brake_speed(j->velocity * scale - sign * s->vel, j->jerk, dt);
    along = clamp(along, -target.most, smaller(target.most, grow));
    return clamp(sign * along, lo, hi);
}

// ---- the two faces ---------------------------------------------------------------------------

// The velocity that the scaled limits give towards the target, without jerk.
static double plain_towards(const struct limit_joint *j, const struct limit_state *s,
                            double wanted, double wanted_vel, double scale,
                            enum guard_limit *limit)
{
    double dt = j->period_s, slack = SLACK_POS / dt;
    double A = j->acceleration * scale, V = j->velocity * scale;
    double behind = wanted - s->pos - wanted_vel * dt; // where the target was a tick ago
    double v = (wanted - s->pos) / dt;

    if (fabs(behind) > A * dt * dt) {
        v = wanted_vel + copysign(limit_brake_speed(fabs(behind), A, dt), behind);
        *limit = GUARD_ACCELERATION;
    }
    if (fabs(v) > V + slack) {
        v = copysign(V, v);
        *limit = GUARD_VELOCITY;
    }
    if (fabs(v - s->vel) > A * dt + slack) {
        v = s->vel + copysign(A * dt, v - s->vel);
        *limit = GUARD_ACCELERATION;
    }
    return v;
}

struct limit_step limit_towards(const struct limit_joint *j, const struct limit_state *s,
                                double wanted, double wanted_vel, double wanted_acc,
                                double scale)
{
    double inside = clamp(wanted, j->min, j->max), v;
    enum guard_limit limit = GUARD_NONE, acted = GUARD_NONE;

    if (inside != wanted) { // a clamped target stands still
        wanted = inside;
        wanted_vel = wanted_acc = 0;
        limit = GUARD_POSITION;
    }
    wanted_vel = clamp(wanted_vel, -j->velocity, j->velocity);
    wanted_acc = clamp(wanted_acc, -j->acceleration, j->acceleration);
    if (j->jerk > 0)
        v = s->vel + j->period_s * jerk_towards(j, s, wanted, wanted_vel, wanted_acc,
                                                scale, &acted);
    else
        v = plain_towards(j, s, wanted, wanted_vel, scale, &acted);
    if (acted == GUARD_NONE)
        return finish(j, s, v, limit, true, wanted);
    return finish(j, s, v, acted, false, wanted);
}

struct limit_step limit_brake(const struct limit_joint *j, const struct limit_state *s,
                              double brake, bool hard)
{
    double dt = j->period_s, v;
    struct limit_step out;

    if (j->jerk > 0 && !hard)
        v = s->vel + brake_law(j, s) * dt;
    else
        v = s->vel - clamp(s->vel, -brake * dt, brake * dt);
    out = finish(j, s, v, GUARD_NONE, false, s->pos);
    out.jerk_broken = out.jerk_broken && !hard;
    return out;
}
