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
// One fold serves all modes: chunks_blend.c.
#include "daemon/chunks.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "daemon/chunks_impl.h"

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

// ---- the target -----------------------------------------------------------------------------

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
    int n = chunks_share(q, now, now);
    double most = 0;

    for (int j = 0; j < q->cfg.joints && n > 0; j++)
        if (q->cfg.blend[j])
            most = fmax(most, fabs(chunks_blend(q, n, now, j).pos - with->pos[j]));
    return most;
}

static void describe(const struct chunks *q, int n, ns_t now, struct chunk_target *out)
{
    const struct live *newest = &q->live[q->share[n - 1].live];
    struct place p = chunks_place(q, newest, now);

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
    n = chunks_share(q, now, INT64_MAX);
    if (n == 0)
        return why_none(q, now);
    describe(q, n, now, out);
    for (int j = 0; j < q->cfg.joints; j++) {
        struct point p = chunks_blend(q, n, now, j);

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
        if (live_usable(&q->live[i], now))
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
    if (!live_usable(c, now))
        return -ESTALE;
    for (int j = 0; j < q->cfg.joints; j++)
        out->pos[j] = (double)c->row[j];
    out->newest_id = c->id;
    out->anchor_ns = c->anchor_ns;
    out->oldest_ns = c->oldest_ns;
    out->blended = 1;
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

    if (c == NULL || !live_usable(c, now))
        return 0;
    return (double)(c->end_ns - now) / (double)q->cfg.step_ns;
}
