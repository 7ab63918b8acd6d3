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
// One fold serves all modes: chunks_blend.c. A chunk of another policy does not blend: it takes
// over, by way of a bridge, chunks_bridge.c.
#include "daemon/chunks.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "daemon/blind.h"
#include "daemon/chunks_impl.h"

size_t chunk_bytes(int rows, int joints)
{
    size_t bytes = sizeof(struct chunk) + (size_t)rows * (size_t)joints * sizeof(float);

    return (bytes + 7) / 8 * 8; // the next one in an array is aligned again
}

const char *chunk_verdict_name(enum chunk_verdict v)
{
    static const char *const name[] = {"used",        "late",        "out of order",
                                       "too old",     "wrong shape", "not finite",
                                       "out of range"};

    _Static_assert(sizeof name / sizeof *name == CHUNK_VERDICTS, "a name per verdict");
    return (unsigned)v < CHUNK_VERDICTS ? name[v] : "?";
}

uint64_t chunks_count(const struct chunks *q, enum chunk_verdict v)
{
    return (unsigned)v < CHUNK_VERDICTS ? q->count[v] : 0;
}

struct chunk_culprit chunks_culprit(const struct chunks *q)
{
    return q->culprit;
}

// ---- one chunk -------------------------------------------------------------------------------

static ns_t rows_end(ns_t anchor_ns, int rows, ns_t step_ns)
{
    if (BLIND(BLIND_CHUNK_END))
        return CHUNKS_NEVER;
    return anchor_ns + (ns_t)rows * step_ns;
}

static ns_t live_rows_end(const struct live *c)
{
    return rows_end(c->anchor_ns, c->rows, c->step_ns);
}

static bool in_rows(const struct live *c, ns_t now)
{
    return now >= c->anchor_ns && now < live_rows_end(c);
}

static ns_t max_age(const struct chunks *q, int rows, ns_t step_ns)
{
    if (BLIND(BLIND_CHUNK_AGE))
        return CHUNKS_NEVER / 2;
    if (q->cfg.max_age_ns > 0 && !q->cfg.own_age)
        return q->cfg.max_age_ns;
    return (ns_t)rows * step_ns;
}

// After its anchor is set. An age of exactly max_age is still good.
static void set_end(const struct chunks *q, struct live *c)
{
    ns_t rows = live_rows_end(c);
    ns_t old = c->seen_ns + max_age(q, c->rows, c->step_ns) + 1;

    c->end_ns = rows < old ? rows : old;
}

// ---- coming and going ------------------------------------------------------------------------

// The oldest chunk that can still matter. Where a newer chunk replaces the older ones whole,
// they are not gone back to when it ends: that would be a jump to an older plan.
static int oldest_of_use(const struct chunks *q, ns_t now)
{
    bool whole = q->cfg.mode == CHUNK_REPLACE || q->cfg.mode == CHUNK_CROSSFADE ||
                 q->cfg.mode == CHUNK_LATEST_ONLY;

    for (int i = q->n - 1; whole && i > 0; i--)
        if (q->live[i].shown_ns != CHUNKS_NEVER && now >= q->live[i].end_ns)
            return i;
    return 0;
}

static void drop_ended(struct chunks *q, ns_t now)
{
    int kept = 0;

    for (int i = oldest_of_use(q, now); i < q->n; i++) {
        struct live c = q->live[i];

        if (now >= live_rows_end(&c))
            continue;
        if (i != kept) { // the two change places, so that no two share their rows' memory
            q->live[i] = q->live[kept];
            q->live[kept] = c;
        }
        kept++;
    }
    q->n = kept;
}

// Of the first n shares: the blend, and what is left of a bridge.
static void wish(const struct chunks *q, int n, ns_t now, struct point *out)
{
    struct crossing x;
    bool crossing = chunks_crossing(q, now, &x);

    for (int j = 0; j < q->cfg.joints; j++) {
        out[j] = chunks_blend(q, n, now, j);
        if (crossing && q->cfg.blend[j])
            out[j] = chunks_cross(q, &x, j, out[j]);
    }
}

// The target as it is before the first change in this tick.
static void keep_before(struct chunks *q, ns_t now)
{
    struct chunks_before *b = &q->before;

    if (b->now_ns == now)
        return;
    b->now_ns = now;
    b->n = chunks_share(q, now);
    if (b->n > 0)
        wish(q, b->n, now, b->joint);
}

// How long those before chunk `until` still cover: a longer fade would end in a step. The newest
// of them counts; what is older may go earlier, its own successor's fade was cut to it.
static ns_t covered(const struct chunks *q, int until, ns_t now)
{
    for (int i = until - 1; i >= 0; i--)
        if (live_usable(&q->live[i], now))
            return q->live[i].end_ns - now;
    return 0;
}

// Chunks that arrived, or whose row 0 has come, are in view from now on.
static void show(struct chunks *q, ns_t now)
{
    int newest = -1;

    for (int i = 0; i < q->n; i++) {
        struct live *c = &q->live[i];

        if (c->shown_ns != CHUNKS_NEVER || !live_usable(c, now))
            continue;
        keep_before(q, now);
        c->shown_ns = now;
        c->fade_ns = covered(q, i, now);
        if (c->fade_ns > q->cfg.fade_ns)
            c->fade_ns = q->cfg.fade_ns;
        newest = i;
    }
    if (newest >= 0 && (!q->in_view || q->live[newest].generation != q->generation))
        chunks_take_over(q, newest, now);
}

// ---- the target -----------------------------------------------------------------------------

static int why_none(const struct chunks *q, ns_t now)
{
    for (int i = 0; i < q->n; i++)
        if (in_rows(&q->live[i], now))
            return -ESTALE;
    return -ENODATA;
}

static void tell_seam(const struct chunks *q, struct chunk_target *out)
{
    for (int j = 0; j < q->cfg.joints; j++) {
        out->seam[j] = fabs(out->pos[j] - q->before.joint[j].pos);
        out->seam_vel[j] = fabs(out->vel[j] - q->before.joint[j].vel);
        if (q->cfg.blend[j] && out->seam[j] > out->seam_max)
            out->seam_max = out->seam[j];
    }
}

static void describe_newest(const struct live *c, struct chunk_target *out)
{
    out->newest_id = c->id;
    out->generation = c->generation;
    out->anchor_ns = c->anchor_ns;
    out->oldest_ns = c->oldest_ns;
    out->rows = c->rows;
    out->step_ns = c->step_ns;
    out->blended = 1;
}

static void describe(const struct chunks *q, int n, ns_t now, struct chunk_target *out)
{
    const struct live *newest = &q->live[q->share[n - 1].live];
    struct place p = chunks_place(newest, now);

    describe_newest(newest, out);
    out->row = p.row + p.part;
    out->blended = n;
    for (int i = 0; i < n; i++)
        if (q->live[q->share[i].live].oldest_ns < out->oldest_ns)
            out->oldest_ns = q->live[q->share[i].live].oldest_ns;
}

int chunks_target(struct chunks *q, ns_t now, struct chunk_target *out)
{
    struct point p[ACTD_MAX_JOINTS];
    int n;

    memset(out, 0, sizeof *out);
    drop_ended(q, now);
    show(q, now);
    n = chunks_share(q, now);
    if (n == 0) {
        q->bridge.length_ns = 0; // the motion that it continued is over
        return why_none(q, now);
    }
    describe(q, n, now, out);
    wish(q, n, now, p);
    for (int j = 0; j < q->cfg.joints; j++) {
        out->pos[j] = p[j].pos;
        out->vel[j] = p[j].vel;
    }
    if (q->before.now_ns == now && q->before.n > 0)
        tell_seam(q, out);
    return 0;
}

// ---- arrival and start -----------------------------------------------------------------------

static bool finite_rows(struct chunks *q, const struct chunk *c)
{
    size_t width = (size_t)c->joints, n = (size_t)c->rows * width;

    for (size_t i = 0; i < n; i++)
        if (!isfinite(c->row[i])) {
            q->culprit = (struct chunk_culprit){(int)(i % width), (int)(i / width),
                                                (double)c->row[i]};
            return false;
        }
    return true;
}

static bool in_range(struct chunks *q, const struct chunk *c, int rows)
{
    size_t width = (size_t)q->cfg.joints;

    for (int j = 0; j < q->cfg.joints; j++) {
        double lo = q->cfg.hard_min[j], hi = q->cfg.hard_max[j];

        for (int k = 0; k < rows && (lo != 0 || hi != 0); k++) {
            double v = (double)c->row[(size_t)k * width + (size_t)j];

            if (v < lo || v > hi) {
                q->culprit = (struct chunk_culprit){j, k, v};
                return false;
            }
        }
    }
    return true;
}

// A newer policy's first may be of the very observation of the old one's last.
static bool in_order(const struct chunks *q, const struct chunk *c)
{
    if (q->newest_id == 0 || c->generation > q->newest_generation)
        return true;
    return c->generation == q->newest_generation && c->id > q->newest_id &&
           c->anchor_ns > q->newest_seen_ns;
}

static ns_t step_of(const struct chunks *q, const struct chunk *c)
{
    return c->step_ns != 0 ? c->step_ns : q->cfg.step_ns;
}

static enum chunk_verdict judge(struct chunks *q, const struct chunk *c, ns_t now)
{
    int rows = c->rows < q->cfg.rows ? c->rows : q->cfg.rows;
    ns_t step = step_of(q, c);

    if (c->rows < 1 || c->joints < 1 || step < 1 || step > CHUNKS_STEP_MOST ||
        (c->joints != q->cfg.joints && !BLIND(BLIND_CHUNK_SHAPE)))
        return CHUNK_WRONG_SHAPE;
    if (!finite_rows(q, c) && !BLIND(BLIND_CHUNK_FINITE))
        return CHUNK_NOT_FINITE;
    if (!in_range(q, c, rows) && !BLIND(BLIND_CHUNK_RANGE))
        return CHUNK_OUT_OF_RANGE;
    if (!in_order(q, c) && !BLIND(BLIND_CHUNK_ORDER))
        return CHUNK_OUT_OF_ORDER;
    if (now >= rows_end(c->anchor_ns, rows, step))
        return CHUNK_LATE;
    if (now - c->anchor_ns > max_age(q, rows, step))
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

enum chunk_verdict chunks_push(struct chunks *q, const struct chunk *c, ns_t now)
{
    enum chunk_verdict v = judge(q, c, now);
    struct live *l;

    q->count[v]++;
    if (v != CHUNK_USED)
        return v;
    keep_before(q, now);
    l = make_room(q, now);
    l->id = c->id;
    l->generation = c->generation;
    l->step_ns = step_of(q, c);
    l->step_s = (double)l->step_ns / (double)NS_PER_S;
    l->seen_ns = l->anchor_ns = c->anchor_ns;
    l->oldest_ns = c->oldest_ns;
    l->shown_ns = CHUNKS_NEVER;
    l->rows = c->rows < q->cfg.rows ? c->rows : q->cfg.rows;
    memcpy(l->row, c->row, (size_t)l->rows * (size_t)q->cfg.joints * sizeof *l->row);
    set_end(q, l);
    q->n++;
    q->newest_id = c->id;
    q->newest_seen_ns = c->anchor_ns;
    q->newest_generation = c->generation;
    return v;
}

int chunks_first(const struct chunks *q, ns_t now, struct chunk_target *out)
{
    const struct live *c = q->n > 0 ? &q->live[q->n - 1] : NULL;

    memset(out, 0, sizeof *out);
    if (c == NULL || !in_rows(c, now))
        return -ENODATA;
    if (!live_usable(c, now))
        return -ESTALE;
    for (int j = 0; j < q->cfg.joints; j++)
        out->pos[j] = (double)c->row[j];
    describe_newest(c, out);
    return 0;
}

int chunks_begin(struct chunks *q, ns_t now)
{
    struct live first;

    if (q->n == 0 || !live_usable(&q->live[q->n - 1], now))
        return -ENODATA;
    first = q->live[q->n - 1];
    q->live[q->n - 1] = q->live[0];
    first.anchor_ns = first.shown_ns = now;
    first.fade_ns = 0;
    set_end(q, &first);
    q->live[0] = first;
    q->n = 1;
    q->before.now_ns = CHUNKS_NEVER;
    q->bridge.length_ns = 0;
    q->generation = first.generation;
    q->in_view = true;
    return 0;
}

void chunks_clear(struct chunks *q)
{
    q->n = 0;
    q->before.now_ns = CHUNKS_NEVER;
    q->newest_id = 0;
    q->newest_seen_ns = 0;
    q->newest_generation = 0;
    q->bridge.length_ns = 0;
    q->in_view = false;
}

double chunks_remaining(const struct chunks *q, ns_t now)
{
    const struct live *c = q->n > 0 ? &q->live[q->n - 1] : NULL;

    if (c == NULL || !live_usable(c, now))
        return 0;
    return (double)(c->end_ns - now) / (double)c->step_ns;
}
