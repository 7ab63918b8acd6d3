// The loop's part of a keyframe: one copy, made in place on the tape. keyframe_loop.c holds rt
// functions only.
#include <string.h>

#include "daemon/keyframe_loop_impl.h"

static size_t row_bytes(const struct chunks *q, const struct live *c)
{
    return (size_t)c->rows * (size_t)q->cfg.joints * sizeof *c->row;
}

static size_t bytes(const struct loop *l)
{
    const struct chunks *q = l->chunks;
    size_t n = KEYFRAME_LOOP_FIXED + (size_t)q->n * sizeof *q->live;

    for (int i = 0; i < q->n; i++)
        n += row_bytes(q, &q->live[i]);
    return n;
}

static unsigned char *put(unsigned char *to, const void *from, size_t n)
{
    memcpy(to, from, n);
    return to + n;
}

// A member of the copy, which lies at any address.
static void blank(unsigned char *copy, size_t offset, size_t n)
{
    memset(copy + offset - KEYFRAME_LOOP_FROM, 0, n);
}

static unsigned char *put_memory(unsigned char *to, const struct loop *l)
{
    const size_t lim = offsetof(struct guard, lim);

    memcpy(to, (const unsigned char *)l + KEYFRAME_LOOP_FROM, KEYFRAME_LOOP_BYTES);
    blank(to, offsetof(struct loop, guard) + lim, sizeof l->guard.lim);
    blank(to, offsetof(struct loop, sent) + lim, sizeof l->sent.lim);
    blank(to, offsetof(struct loop, left) + lim, sizeof l->left.lim);
    for (size_t b = 0; b < BOARD_BUDGETS; b++)
        blank(to,
              offsetof(struct loop, budget) + b * sizeof l->budget[0] +
                  offsetof(struct budget, histogram),
              sizeof(void *));
    blank(to, offsetof(struct loop, report.budget), sizeof l->report.budget);
    return to + KEYFRAME_LOOP_BYTES;
}

static unsigned char *put_live(unsigned char *to, const struct live *from)
{
    struct live c;

    memset(&c, 0, sizeof c); // its padding, too
    c.id = from->id;
    c.generation = from->generation;
    c.step_ns = from->step_ns;
    c.step_s = from->step_s;
    c.seen_ns = from->seen_ns;
    c.anchor_ns = from->anchor_ns;
    c.end_ns = from->end_ns;
    c.oldest_ns = from->oldest_ns;
    c.shown_ns = from->shown_ns;
    if (c.shown_ns != CHUNKS_NEVER) // until then it is some earlier chunk's
        c.fade_ns = from->fade_ns;
    c.rows = from->rows;
    return put(to, &c, sizeof c);
}

static unsigned char *put_chunks(unsigned char *to, const struct chunks *q)
{
    struct chunks c = *q;

    memset(&c.cfg, 0, sizeof c.cfg);
    c.live = NULL;
    c.share = NULL;
    c.rows = NULL;
    c.decay = 0;
    to = put(to, &c, sizeof c);
    for (int i = 0; i < q->n; i++)
        to = put_live(to, &q->live[i]);
    for (int i = 0; i < q->n; i++)
        to = put(to, q->live[i].row, row_bytes(q, &q->live[i]));
    return to;
}

static void fill(unsigned char *to, size_t n, const struct loop *l, uint64_t tick,
                 ns_t now)
{
    struct keyframe_head h;

    memset(&h, 0, sizeof h);
    h.magic = KEYFRAME_MAGIC;
    h.kind = KEYFRAME_LOOP;
    h.build = keyframe_build();
    h.number = tick;
    h.at_ns = now;
    h.joints = (uint32_t)l->cfg.joints;
    h.cameras = (uint32_t)l->cfg.n_cameras;
    h.rows = (uint32_t)l->chunks->cfg.rows;
    h.capacity = (uint32_t)l->chunks->cfg.capacity;
    h.bytes = n;
    to = put(to, &h, sizeof h);
    to = put_memory(to, l);
    (void)put_chunks(to, l->chunks);
}

void keyframe_loop(struct loop *l, struct tape *t, uint64_t tick, ns_t now)
{
    size_t n;
    unsigned char *to;

    if (!tape_loop_state_due(t, now))
        return;
    n = bytes(l);
    to = tape_reserve(t, TAPE_TICKS, TAPE_LOOP_STATE, now, n);
    if (to == NULL)
        return; // counted; the recorder asks again
    fill(to, n, l, tick, now);
    tape_commit(t, TAPE_TICKS);
}

size_t keyframe_loop_bytes(struct loop *l, uint64_t tick, void *out, size_t capacity)
{
    size_t n = bytes(l);

    if (n > capacity)
        return 0;
    fill(out, n, l, tick, 0);
    return n;
}
