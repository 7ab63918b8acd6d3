// What every live chunk wants now, and the mode that makes one target of it. chunks.h has the
// formulas, chunks.c the picture and everything about arrival and time.
//
// A mode is one small function that says how much of the fold so far chunk j replaces, and how
// fast that changes, since the slope of the target is handed on as well: the guard wants to know
// with which velocity to arrive.
#include <math.h>
#include <stdint.h>

#include "daemon/blind.h"
#include "daemon/chunks_impl.h"

#define SHARE_WEIGHTED_AVERAGE 0.7 // LeRobot async_inference, share of the newer chunk
#define SHARE_AVERAGE          0.5
#define SHARE_CONSERVATIVE     0.3

// ---- one chunk -----------------------------------------------------------------------------

// Share of a chunk in its own last step while others go on: 1 down to 0.
static double leaving(const struct live *c, ns_t now, double *slope)
{
    ns_t last = c->end_ns - c->step_ns;

    *slope = 0;
    if (now < last)
        return 1;
    *slope = -1 / c->step_s;
    return 1 - (double)(now - last) / (double)c->step_ns;
}

struct place chunks_place(const struct live *c, ns_t now)
{
    ns_t t = now - c->anchor_ns;

    if (BLIND(BLIND_CHUNK_END) && t >= (ns_t)c->rows * c->step_ns)
        return (struct place){c->rows - 1, 0};
    return (struct place){(int)(t / c->step_ns),
                          (double)(t % c->step_ns) / (double)c->step_ns};
}

static double at(const struct chunks *q, const struct live *c, int row, int joint)
{
    return (double)c->row[(size_t)row * (size_t)q->cfg.joints + (size_t)joint];
}

// Catmull-Rom: the slope at a row is half the way between its neighbours, one-sided at row 0.
// The last row is held for its step and nothing may follow, so the motion comes to rest there:
// any other slope would end in a step of the velocity (50 rad/s to 0 for 1 rad per 20 ms).
static double tangent(const struct chunks *q, const struct live *c, int row, int joint)
{
    int a = row > 0 ? row - 1 : row;

    if (row >= c->rows - 1)
        return 0;
    return (at(q, c, row + 1, joint) - at(q, c, a, joint)) / (row + 1 - a);
}

static struct point cubic(const struct chunks *q, const struct live *c, struct place p,
                          int joint)
{
    double y0 = at(q, c, p.row, joint), y1 = at(q, c, p.row + 1, joint);
    double m0 = tangent(q, c, p.row, joint), m1 = tangent(q, c, p.row + 1, joint);
    double d = y1 - y0, x = p.part;
    double c2 = 3 * d - 2 * m0 - m1, c3 = m0 + m1 - 2 * d;

    return (struct point){y0 + x * (m0 + x * (c2 + x * c3)),
                          m0 + x * (2 * c2 + x * 3 * c3)};
}

// What one chunk wants of one joint; the slope is per row.
static struct point sample(const struct chunks *q, const struct live *c, struct place p,
                           int joint)
{
    double y0 = at(q, c, p.row, joint);
    bool last = p.row == c->rows - 1;

    if (last || q->cfg.interpolation == CHUNK_HOLD || !q->cfg.blend[joint])
        return (struct point){y0, 0};
    if (q->cfg.interpolation == CHUNK_CUBIC)
        return cubic(q, c, p, joint);
    double d = at(q, c, p.row + 1, joint) - y0;
    return (struct point){y0 + p.part * d, d};
}

// ---- modes -----------------------------------------------------------------------------------

struct fold { // of the chunks so far, oldest first
    int n;
    double weight, dweight;     // ensemble: of the chunk to come, and
    double sum, dsum;           // of all so far
    double presence, dpresence; // of the firmest chunk among them
};

// How much of the fold so far chunk c replaces, in (0, 1]; *ds is its slope in 1/s.
typedef double weigh(const struct chunks *q, const struct live *c, ns_t now,
                     struct fold *f, double *ds);

static double weigh_replace(const struct chunks *q, const struct live *c, ns_t now,
                            struct fold *f, double *ds)
{
    (void)q, (void)c, (void)now, (void)f;
    *ds = 0;
    return 1;
}

static double weigh_crossfade(const struct chunks *q, const struct live *c, ns_t now,
                              struct fold *f, double *ds)
{
    ns_t t = now - c->shown_ns;
    double x;

    (void)q, (void)f;
    *ds = 0;
    if (t >= c->fade_ns)
        return 1;
    x = (double)t / (double)c->fade_ns;
    *ds = 6 * x * (1 - x) / ((double)c->fade_ns / (double)NS_PER_S);
    return x * x * (3 - 2 * x);
}

// w_i = exp(-m i). A chunk on its way out counts as the part of a place that its presence is:
// counted whole to its end, it would make those after it move up in a step.
static double weigh_ensemble(const struct chunks *q, const struct live *c, ns_t now,
                             struct fold *f, double *ds)
{
    double down, here = leaving(c, now, &down);
    double m = q->cfg.ensemble_coeff, next = here < 1 ? exp(-m * here) : q->decay;
    double w = here * f->weight, dw = down * f->weight + here * f->dweight;

    f->sum += w;
    f->dsum += dw;
    f->dweight = (f->dweight - m * down * f->weight) * next;
    f->weight *= next;
    *ds = (dw * f->sum - w * f->dsum) / (f->sum * f->sum);
    return w / f->sum;
}

// s of the new one and 1 - s of the old ones, each as far as it is present.
static double weigh_share(double s, const struct live *c, ns_t now, struct fold *f,
                          double *ds)
{
    double down, here = leaving(c, now, &down);
    double a = s * here, b = (1 - s) * f->presence;
    double da = s * down, db = (1 - s) * f->dpresence;

    if (f->n == 0 || here >= f->presence) {
        f->presence = here;
        f->dpresence = down;
    }
    *ds = (da * b - a * db) / ((a + b) * (a + b));
    return a / (a + b);
}

static double weigh_weighted(const struct chunks *q, const struct live *c, ns_t now,
                             struct fold *f, double *ds)
{
    (void)q;
    return weigh_share(SHARE_WEIGHTED_AVERAGE, c, now, f, ds);
}

static double weigh_average(const struct chunks *q, const struct live *c, ns_t now,
                            struct fold *f, double *ds)
{
    (void)q;
    return weigh_share(SHARE_AVERAGE, c, now, f, ds);
}

static double weigh_conservative(const struct chunks *q, const struct live *c, ns_t now,
                                 struct fold *f, double *ds)
{
    (void)q;
    return weigh_share(SHARE_CONSERVATIVE, c, now, f, ds);
}

static weigh *const mode[] = {
    [CHUNK_REPLACE] = weigh_replace,           [CHUNK_CROSSFADE] = weigh_crossfade,
    [CHUNK_ENSEMBLE] = weigh_ensemble,         [CHUNK_WEIGHTED_AVERAGE] = weigh_weighted,
    [CHUNK_LATEST_ONLY] = weigh_replace,       [CHUNK_AVERAGE] = weigh_average,
    [CHUNK_CONSERVATIVE] = weigh_conservative,
};

// ---- the fold --------------------------------------------------------------------------------

int chunks_share(struct chunks *q, ns_t now)
{
    struct fold f = {.n = 0, .weight = 1};
    int n = 0;

    for (int i = 0; i < q->n; i++) {
        const struct live *c = &q->live[i];
        double s, ds;

        if (!live_usable(c, now) || c->shown_ns == CHUNKS_NEVER)
            continue;
        s = mode[q->cfg.mode](q, c, now, &f, &ds);
        if (f.n == 0 || s >= 1)
            s = 1, ds = 0, n = 0;
        f.n++;
        q->share[n++] = (struct share){i, s, ds};
    }
    return n;
}

struct point chunks_blend(const struct chunks *q, int n, ns_t now, int joint)
{
    struct point p = {0, 0};

    for (int i = q->cfg.blend[joint] ? 0 : n - 1; i < n; i++) {
        const struct share *h = &q->share[i];
        const struct live *c = &q->live[h->live];
        struct point w = sample(q, c, chunks_place(c, now), joint);
        w.vel /= c->step_s;
        bool alone = !q->cfg.blend[joint] || i == 0;

        if (alone) {
            p = w;
            continue;
        }
        p.vel += h->s * (w.vel - p.vel) + h->ds * (w.pos - p.pos);
        p.pos += h->s * (w.pos - p.pos);
    }
    return p;
}
