// Overlapping chunks. The picture, time to the right, four chunks of one joint, `|` = now:
//
//   chunk 7   [0--1--2--3--4--5--6--7--]  ends: leaves over its last step
//   chunk 8           [0--1--2--3--4--5--6--7--]
//   chunk 9                          ^    [0--1--2--3--  first shown here ^, rows 0… are past:
//                     anchored at capture, shown when computed   they were never in view
//                                    |
//
// Everything about time is integer: row = (now - anchor) / step and the rest of that division,
// so a chunk anchored whole steps ago gives exactly a row, on every machine and after every
// number of hours. Only the place between two rows is a double.
//
// One fold serves all modes (chunks.h). A mode is one small function that says how much of the
// fold so far chunk j replaces, and how fast that changes, since the slope of the target is
// handed on as well: the guard wants to know with which velocity to arrive.
#include "daemon/chunks.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "daemon/chunks_impl.h"

#define SHARE_WEIGHTED_AVERAGE 0.7 // LeRobot async_inference, share of the newer chunk
#define SHARE_AVERAGE          0.5
#define SHARE_CONSERVATIVE     0.3

size_t chunk_bytes(int rows, int joints)
{
    size_t bytes = sizeof(struct chunk) + (size_t)rows * (size_t)joints * sizeof(float);

    return (bytes + 7) / 8 * 8; // the next one in an array is aligned again
}

const char *chunk_verdict_name(enum chunk_verdict v)
{
    static const char *const name[] = {"used",    "late",        "out of order",
                                       "too old", "wrong shape", "not finite"};

    _Static_assert(sizeof name / sizeof *name == CHUNK_VERDICTS, "a name per verdict");
    return (unsigned)v < CHUNK_VERDICTS ? name[v] : "?";
}

uint64_t chunks_count(const struct chunks *q, enum chunk_verdict v)
{
    return (unsigned)v < CHUNK_VERDICTS ? q->count[v] : 0;
}

// ---- one chunk -------------------------------------------------------------------------------

static ns_t rows_end(const struct live *c, ns_t step)
{
    return c->anchor_ns + (ns_t)c->rows * step;
}

static bool in_rows(const struct chunks *q, const struct live *c, ns_t now)
{
    return now >= c->anchor_ns && now < rows_end(c, q->cfg.step_ns);
}

static bool usable(const struct live *c, ns_t now)
{
    return now >= c->anchor_ns && now < c->end_ns;
}

static ns_t max_age(const struct chunks *q, int rows)
{
    return q->cfg.max_age_ns > 0 ? q->cfg.max_age_ns : (ns_t)rows * q->cfg.step_ns;
}

// After its anchor is set. An age of exactly max_age is still good.
static void set_end(const struct chunks *q, struct live *c)
{
    ns_t rows = rows_end(c, q->cfg.step_ns), old = c->seen_ns + max_age(q, c->rows) + 1;

    c->end_ns = rows < old ? rows : old;
}

// Share of a chunk in its own last step while others go on: 1 down to 0.
static double leaving(const struct chunks *q, const struct live *c, ns_t now, double *slope)
{
    ns_t last = c->end_ns - q->cfg.step_ns;

    *slope = 0;
    if (now < last)
        return 1;
    *slope = -1 / q->step_s;
    return 1 - (double)(now - last) / (double)q->cfg.step_ns;
}

struct place { // inside a chunk
    int row;
    double part; // [0, 1) of the way to the next row
};

static struct place place_of(const struct chunks *q, const struct live *c, ns_t now)
{
    ns_t t = now - c->anchor_ns;

    return (struct place){(int)(t / q->cfg.step_ns),
                          (double)(t % q->cfg.step_ns) / (double)q->cfg.step_ns};
}

struct point {
    double pos, vel; // vel per step until the end of the fold
};

static double at(const struct chunks *q, const struct live *c, int row, int joint)
{
    return (double)c->row[(size_t)row * (size_t)q->cfg.joints + (size_t)joint];
}

// Catmull-Rom: the slope at a row is half the way between its neighbours, one-sided at the ends.
static double tangent(const struct chunks *q, const struct live *c, int row, int joint)
{
    int a = row > 0 ? row - 1 : row, b = row < c->rows - 1 ? row + 1 : row;

    return a == b ? 0 : (at(q, c, b, joint) - at(q, c, a, joint)) / (b - a);
}

static struct point cubic(const struct chunks *q, const struct live *c, struct place p, int joint)
{
    double y0 = at(q, c, p.row, joint), y1 = at(q, c, p.row + 1, joint);
    double m0 = tangent(q, c, p.row, joint), m1 = tangent(q, c, p.row + 1, joint);
    double d = y1 - y0, x = p.part;
    double c2 = 3 * d - 2 * m0 - m1, c3 = m0 + m1 - 2 * d;

    return (struct point){y0 + x * (m0 + x * (c2 + x * c3)), m0 + x * (2 * c2 + x * 3 * c3)};
}

// What one chunk wants of one joint.
static struct point sample(const struct chunks *q, const struct live *c, struct place p, int joint)
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
    double sum, dsum;           // ensemble: of weights
    double presence, dpresence; // of the firmest chunk among them
};

// How much of the fold so far chunk c replaces, in (0, 1]; *ds is its slope in 1/s.
typedef double weigh(const struct chunks *q, const struct live *c, ns_t now, struct fold *f,
                     double *ds);

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

static double weigh_ensemble(const struct chunks *q, const struct live *c, ns_t now,
                             struct fold *f, double *ds)
{
    double dw, w = leaving(q, c, now, &dw) * q->weight[f->n];

    dw *= q->weight[f->n];
    f->sum += w;
    f->dsum += dw;
    *ds = (dw * f->sum - w * f->dsum) / (f->sum * f->sum);
    return w / f->sum;
}

static double weigh_share(double s, const struct chunks *q, const struct live *c, ns_t now,
                          struct fold *f, double *ds)
{
    double old = s + (1 - s) * f->presence, down, here = leaving(q, c, now, &down);

    *ds = f->n > 0 ? -s * (1 - s) * f->dpresence / (old * old) : 0;
    s = s / old;
    if (f->n == 0 || here >= f->presence) {
        f->presence = here;
        f->dpresence = down;
    }
    return s;
}

static double weigh_weighted(const struct chunks *q, const struct live *c, ns_t now,
                             struct fold *f, double *ds)
{
    return weigh_share(SHARE_WEIGHTED_AVERAGE, q, c, now, f, ds);
}

static double weigh_average(const struct chunks *q, const struct live *c, ns_t now,
                            struct fold *f, double *ds)
{
    return weigh_share(SHARE_AVERAGE, q, c, now, f, ds);
}

static double weigh_conservative(const struct chunks *q, const struct live *c, ns_t now,
                                 struct fold *f, double *ds)
{
    return weigh_share(SHARE_CONSERVATIVE, q, c, now, f, ds);
}

static weigh *const mode[] = {
    [CHUNK_REPLACE] = weigh_replace,
    [CHUNK_CROSSFADE] = weigh_crossfade,
    [CHUNK_ENSEMBLE] = weigh_ensemble,
    [CHUNK_WEIGHTED_AVERAGE] = weigh_weighted,
    [CHUNK_LATEST_ONLY] = weigh_replace,
    [CHUNK_AVERAGE] = weigh_average,
    [CHUNK_CONSERVATIVE] = weigh_conservative,
};

// ---- the fold --------------------------------------------------------------------------------

// Shares of all usable chunks shown before `before`, oldest first, into q->share; those that a
// newer one replaces whole are left out. Returns how many.
static int share_out(struct chunks *q, ns_t now, ns_t before)
{
    struct fold f = {.n = 0};
    int n = 0;

    for (int i = 0; i < q->n; i++) {
        const struct live *c = &q->live[i];
        double s, ds;

        if (!usable(c, now) || c->shown_ns >= before)
            continue;
        s = mode[q->cfg.mode](q, c, now, &f, &ds);
        if (f.n == 0 || s >= 1)
            s = 1, ds = 0, n = 0;
        f.n++;
        q->share[n++] = (struct share){i, s, ds};
    }
    return n;
}

// One joint of the blended target, of the first n shares.
static struct point blend(const struct chunks *q, int n, ns_t now, int joint)
{
    struct point p = {0, 0};

    for (int i = q->cfg.blend[joint] ? 0 : n - 1; i < n; i++) {
        const struct share *h = &q->share[i];
        const struct live *c = &q->live[h->live];
        struct point w = sample(q, c, place_of(q, c, now), joint);
        bool alone = !q->cfg.blend[joint] || i == 0;

        p.vel = alone ? w.vel : p.vel + h->s * (w.vel - p.vel) + h->ds * q->step_s * (w.pos - p.pos);
        p.pos = alone ? w.pos : p.pos + h->s * (w.pos - p.pos);
    }
    p.vel /= q->step_s;
    return p;
}

static void drop_ended(struct chunks *q, ns_t now)
{
    int kept = 0;

    for (int i = 0; i < q->n; i++) {
        struct live c = q->live[i];

        if (now >= rows_end(&c, q->cfg.step_ns))
            continue;
        if (i != kept) { // the two change places, so that no two share their rows' memory
            q->live[i] = q->live[kept];
            q->live[kept] = c;
        }
        kept++;
    }
    q->n = kept;
}

static int why_none(const struct chunks *q, ns_t now)
{
    for (int i = 0; i < q->n; i++)
        if (in_rows(q, &q->live[i], now))
            return -ESTALE;
    return -ENODATA;
}

// The largest jump that chunks first shown in this very tick make.
static double seam(struct chunks *q, ns_t now, const struct chunk_target *with)
{
    int n = share_out(q, now, now);
    double most = 0;

    for (int j = 0; j < q->cfg.joints && n > 0; j++)
        if (q->cfg.blend[j])
            most = fmax(most, fabs(blend(q, n, now, j).pos - with->pos[j]));
    return most;
}

static void describe(const struct chunks *q, int n, ns_t now, struct chunk_target *out)
{
    const struct live *newest = &q->live[q->share[n - 1].live];
    struct place p = place_of(q, newest, now);

    out->newest_id = newest->id;
    out->anchor_ns = newest->anchor_ns;
    out->row = p.row + p.part;
    out->blended = n;
    out->oldest_ns = newest->oldest_ns;
    for (int i = 0; i < n; i++)
        if (q->live[q->share[i].live].oldest_ns < out->oldest_ns)
            out->oldest_ns = q->live[q->share[i].live].oldest_ns;
}

int chunks_target(struct chunks *q, ns_t now, struct chunk_target *out)
{
    int n;

    memset(out, 0, sizeof *out);
    drop_ended(q, now);
    n = share_out(q, now, INT64_MAX);
    if (n == 0)
        return why_none(q, now);
    describe(q, n, now, out);
    for (int j = 0; j < q->cfg.joints; j++) {
        struct point p = blend(q, n, now, j);

        out->pos[j] = p.pos;
        out->vel[j] = p.vel;
    }
    if (q->live[q->n - 1].shown_ns == now)
        out->seam = seam(q, now, out);
    return 0;
}

// ---- arrival and start -----------------------------------------------------------------------

static bool finite_rows(const struct chunk *c)
{
    size_t n = (size_t)c->rows * (size_t)c->joints;

    for (size_t i = 0; i < n; i++)
        if (!isfinite(c->row[i]))
            return false;
    return true;
}

static enum chunk_verdict judge(const struct chunks *q, const struct chunk *c, ns_t now)
{
    int rows;

    if (c->joints != q->cfg.joints || c->rows < 1)
        return CHUNK_WRONG_SHAPE;
    if (!finite_rows(c))
        return CHUNK_NOT_FINITE;
    if (q->newest_id > 0 && (c->id <= q->newest_id || c->anchor_ns <= q->newest_seen_ns))
        return CHUNK_OUT_OF_ORDER;
    rows = c->rows < q->cfg.rows ? c->rows : q->cfg.rows;
    if (now >= c->anchor_ns + (ns_t)rows * q->cfg.step_ns)
        return CHUNK_LATE;
    if (now - c->anchor_ns > max_age(q, rows))
        return CHUNK_TOO_OLD;
    return CHUNK_USED;
}

// Room for one more at the end; at capacity the oldest gives way.
static struct live *make_room(struct chunks *q, ns_t now)
{
    drop_ended(q, now);
    if (q->n == q->cfg.capacity) {
        struct live oldest = q->live[0];

        memmove(q->live, q->live + 1, (size_t)(q->n - 1) * sizeof *q->live);
        q->live[--q->n] = oldest;
    }
    return &q->live[q->n];
}

// How long the one before still covers: a longer fade would end in a step. (The one before that
// may go earlier; its own successor's fade was cut to it.)
static ns_t covered(const struct chunks *q, ns_t now)
{
    for (int i = q->n - 1; i >= 0; i--)
        if (usable(&q->live[i], now))
            return q->live[i].end_ns - now;
    return 0;
}

enum chunk_verdict chunks_push(struct chunks *q, const struct chunk *c, ns_t now)
{
    enum chunk_verdict v = judge(q, c, now);
    struct live *l;

    q->count[v]++;
    if (v != CHUNK_USED)
        return v;
    l = make_room(q, now);
    l->id = c->id;
    l->seen_ns = l->anchor_ns = c->anchor_ns;
    l->oldest_ns = c->oldest_ns;
    l->shown_ns = now;
    l->rows = c->rows < q->cfg.rows ? c->rows : q->cfg.rows;
    memcpy(l->row, c->row, (size_t)l->rows * (size_t)c->joints * sizeof *l->row);
    set_end(q, l);
    l->fade_ns = covered(q, now);
    if (l->fade_ns > q->cfg.fade_ns)
        l->fade_ns = q->cfg.fade_ns;
    q->n++;
    q->newest_id = c->id;
    q->newest_seen_ns = c->anchor_ns;
    return v;
}

int chunks_first(const struct chunks *q, ns_t now, struct chunk_target *out)
{
    const struct live *c = q->n > 0 ? &q->live[q->n - 1] : NULL;

    memset(out, 0, sizeof *out);
    if (c == NULL || !in_rows(q, c, now))
        return -ENODATA;
    if (!usable(c, now))
        return -ESTALE;
    for (int j = 0; j < q->cfg.joints; j++)
        out->pos[j] = at(q, c, 0, j);
    out->newest_id = c->id;
    out->anchor_ns = c->anchor_ns;
    out->oldest_ns = c->oldest_ns;
    out->blended = 1;
    return 0;
}

int chunks_begin(struct chunks *q, ns_t now)
{
    struct live first;

    if (q->n == 0 || !usable(&q->live[q->n - 1], now))
        return -ENODATA;
    first = q->live[q->n - 1];
    q->live[q->n - 1] = q->live[0];
    first.anchor_ns = first.shown_ns = now;
    first.fade_ns = 0;
    set_end(q, &first);
    q->live[0] = first;
    q->n = 1;
    return 0;
}

void chunks_clear(struct chunks *q)
{
    q->n = 0;
    q->newest_id = 0;
    q->newest_seen_ns = 0;
}

double chunks_remaining(const struct chunks *q, ns_t now)
{
    const struct live *c = q->n > 0 ? &q->live[q->n - 1] : NULL;

    if (c == NULL || !usable(c, now))
        return 0;
    return (double)(c->end_ns - now) / (double)q->cfg.step_ns;
}
