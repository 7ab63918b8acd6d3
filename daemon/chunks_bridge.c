// From one policy's motion to the next one's. chunks.h has the formula and its bounds.
//
//            old ──────────────╮             what is asked of the arm leaves the old target at t0
//                              |╲            with its position and its slope, and is on the new
//             offset, slope {  | ╲__         one at t0 + T with that one's: what lies between
//            new ──────────────+────`────    only adds to the new target, so that more of its
//                              t0    t0+T    chunks may come and blend meanwhile as ever
//
// A cubic, since it is the least that has four ends to meet; in closed form, so that a tick that
// was skipped changes nothing. Its slope may exceed the joint's limit where T is short for the
// offset (1.5 |offset| / T): the guard is behind it as behind any target.
//
// chunks.c and chunks_bridge.c hold rt functions only.
#include <math.h>
#include <string.h>

#include "daemon/chunks_impl.h"

void chunks_commanded(struct chunks *q, const double *pos, const double *vel)
{
    for (int j = 0; j < q->cfg.joints; j++)
        q->commanded[j] = (struct point){pos[j], vel[j]};
    q->told = true;
}

// Hermite's h00 and h10 on x = (now - start) / T, and their slopes.
bool chunks_crossing(const struct chunks *q, ns_t now, struct crossing *x)
{
    const struct bridge *b = &q->bridge;
    ns_t since = now - b->start_ns;
    double s, T;

    if (since >= b->length_ns)
        return false;
    T = (double)b->length_ns / (double)NS_PER_S;
    s = (double)since / (double)b->length_ns;
    x->pos = 1 - s * s * (3 - 2 * s);
    x->pos_rate = -6 * s * (1 - s) / T;
    x->vel = T * s * (1 - s) * (1 - s);
    x->vel_rate = (1 - s) * (1 - 3 * s);
    return true;
}

// What the bridge adds never takes a target beyond the hard range, which no row may leave either:
// an old policy on its way out there and a short bridge would stop the arm for a fault of neither.
struct point chunks_cross(const struct chunks *q, const struct crossing *x, int joint,
                          struct point p)
{
    const struct point *f = &q->bridge.from[joint];
    double lo = q->cfg.hard_min[joint], hi = q->cfg.hard_max[joint];
    struct point r = {p.pos + x->pos * f->pos + x->vel * f->vel,
                      p.vel + x->pos_rate * f->pos + x->vel_rate * f->vel};

    if (lo == 0 && hi == 0)
        return r;
    if (r.pos > hi && r.pos > p.pos)
        return (struct point){fmax(hi, p.pos), 0};
    if (r.pos < lo && r.pos < p.pos)
        return (struct point){fmin(lo, p.pos), 0};
    return r;
}

// Places change, so that no two chunks share their rows' memory.
void chunks_forget(struct chunks *q, int k)
{
    for (int i = k; i < q->n && k > 0; i++) {
        struct live kept = q->live[i];

        q->live[i] = q->live[i - k];
        q->live[i - k] = kept;
    }
    q->n -= k;
}

// Where the old motion is at `now`, NULL when nothing is known of it.
static const struct point *origin(const struct chunks *q)
{
    if (q->before.n > 0)
        return q->before.joint;
    return q->told ? q->commanded : NULL;
}

// until: what the new chunk covers.
static void start(struct chunks *q, ns_t now, ns_t until)
{
    const struct point *old = origin(q);
    ns_t length = q->cfg.bridge_ns < until - now ? q->cfg.bridge_ns : until - now;
    int n = chunks_share(q, now);

    if (old == NULL || length == 0)
        return;
    for (int j = 0; j < q->cfg.joints; j++) {
        struct point fresh = chunks_blend(q, n, now, j);

        q->bridge.from[j] =
            (struct point){old[j].pos - fresh.pos, old[j].vel - fresh.vel};
    }
    q->bridge.start_ns = now;
    q->bridge.length_ns = length;
}

void chunks_take_over(struct chunks *q, int i, ns_t now)
{
    uint32_t generation = q->live[i].generation;
    ns_t until = q->live[i].end_ns;

    while (i > 0 && q->live[i - 1].generation == generation)
        i--;
    chunks_forget(q, i);
    q->bridge.length_ns = 0;
    if (q->in_view)
        start(q, now, until);
    q->generation = generation;
    q->in_view = true;
}
