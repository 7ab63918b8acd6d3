// The way back: all is checked before anything is changed, since it comes from a file. What is
// left to believe are numbers: no place in memory, no shift and no division hangs on them.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/keyframe_loop_impl.h"

struct parts {
    struct keyframe_head head;
    struct loop *memory; // only what is remembered is there
    struct chunks chunks;
    const unsigned char *live, *rows; // inside the data
};

static int refuse(char why[160], const char *text)
{
    (void)snprintf(why, 160, "%s", text);
    return -EINVAL;
}

static int check_head(const struct keyframe_head *h, const struct loop *l, size_t size,
                      char why[160])
{
    if (h->magic != KEYFRAME_MAGIC || h->kind != KEYFRAME_LOOP || h->bytes != size)
        return refuse(why,
                      "the state of the loop in the log is damaged: begin the replay "
                      "at another one");
    if (h->build != keyframe_build())
        return refuse(why,
                      "the state of the loop in the log is of another build: replay it "
                      "with the actd that recorded it, or from its first tick");
    if (h->joints != (uint32_t)l->cfg.joints ||
        h->cameras != (uint32_t)l->cfg.n_cameras ||
        h->rows != (uint32_t)l->chunks->cfg.rows ||
        h->capacity != (uint32_t)l->chunks->cfg.capacity)
        return refuse(why,
                      "the state of the loop in the log is of another robot or horizon: "
                      "replay it with the configuration it was recorded with");
    return 0;
}

static bool good_faults(const struct faults *f)
{
    return ((f->active | f->latched | f->stopping) >> LADDER_REASONS) == 0;
}

// A bool that is neither 0 nor 1 is no value, and may not be looked at as one.
static bool flag(const bool *b)
{
    unsigned char c;

    memcpy(&c, b, sizeof c);
    return c <= 1;
}

static bool good_flags(const struct loop *m, const struct chunks *q)
{
    return flag(&m->joints_seen) && flag(&m->armed_before) && flag(&m->held) &&
           flag(&m->approached) && flag(&m->degraded) && flag(&m->live) &&
           flag(&m->outside) && flag(&m->stale) && flag(&m->ran) && flag(&q->in_view) &&
           flag(&q->told);
}

static bool good_memory(const struct loop *m, int joints)
{
    return m->state >= LADDER_INIT && (unsigned)m->state < LADDER_STATES &&
           (unsigned)m->reason < LADDER_REASONS && (unsigned)m->gate < GATE_VERDICTS &&
           good_faults(&m->faults) && good_faults(&m->report.faults) &&
           (!m->joints_seen || m->joints.n == joints);
}

// A row is found by dividing the time since the anchor: it must be one of those that are there.
static bool good_live(const struct live *c, const struct chunks_config *cfg)
{
    ns_t covered;

    if (c->rows < 1 || c->rows > cfg->rows || c->step_ns < 1 ||
        c->step_ns > CHUNKS_STEP_MOST ||
        __builtin_sub_overflow(c->end_ns, c->anchor_ns, &covered))
        return false;
    return covered <= (ns_t)c->rows * c->step_ns;
}

static struct live live_at(const struct parts *p, int i)
{
    struct live c;

    memcpy(&c, p->live + (size_t)i * sizeof c, sizeof c);
    return c;
}

static size_t row_bytes(const struct loop *l, const struct live *c)
{
    return (size_t)c->rows * (size_t)l->cfg.joints * sizeof(float);
}

// left: bytes behind what is always there. They must be those of the live chunks and no more.
static bool good_chunks(struct parts *p, const struct loop *l, size_t left)
{
    const struct chunks_config *cfg = &l->chunks->cfg;
    size_t n;

    if (p->chunks.n < 0 || p->chunks.n > cfg->capacity ||
        p->chunks.before.n > cfg->capacity)
        return false;
    n = (size_t)p->chunks.n * sizeof(struct live);
    if (left < n)
        return false;
    p->rows = p->live + n;
    left -= n;
    for (int i = 0; i < p->chunks.n; i++) {
        struct live c = live_at(p, i);

        if (!good_live(&c, cfg) || left < row_bytes(l, &c))
            return false;
        left -= row_bytes(l, &c);
    }
    return left == 0;
}

static int split(struct parts *p, const struct loop *l, const unsigned char *data,
                 size_t size, char why[160])
{
    int rc;

    if (size < KEYFRAME_LOOP_FIXED)
        return refuse(why, "the state of the loop in the log is cut: begin the replay at "
                           "another one");
    memcpy(&p->head, data, sizeof p->head);
    rc = check_head(&p->head, l, size, why);
    if (rc != 0)
        return rc;
    data += sizeof p->head;
    memcpy((unsigned char *)p->memory + KEYFRAME_LOOP_FROM, data, KEYFRAME_LOOP_BYTES);
    data += KEYFRAME_LOOP_BYTES;
    memcpy(&p->chunks, data, sizeof p->chunks);
    p->live = data + sizeof p->chunks;
    if (!good_flags(p->memory, &p->chunks) || !good_memory(p->memory, l->cfg.joints) ||
        !good_chunks(p, l, size - KEYFRAME_LOOP_FIXED))
        return refuse(why,
                      "the state of the loop in the log is damaged: begin the replay at "
                      "another one");
    return 0;
}

// What was configured stays this loop's own.
static void keep_budget(struct budget *b, const struct budget *own)
{
    int window = b->window;

    b->histogram = own->histogram;
    b->limit_ns = own->limit_ns;
    b->window = own->window;
    if (window != own->window)
        budget_forgive(b);
}

static void restore_memory(struct loop *l, struct loop *m)
{
    m->guard.lim = m->sent.lim = m->left.lim = l->guard.lim;
    for (int b = 0; b < BOARD_BUDGETS; b++)
        keep_budget(&m->budget[b], &l->budget[b]);
    memcpy((unsigned char *)l + KEYFRAME_LOOP_FROM,
           (const unsigned char *)m + KEYFRAME_LOOP_FROM, KEYFRAME_LOOP_BYTES);
}

static void restore_chunks(const struct loop *l, struct parts *p)
{
    struct chunks *q = l->chunks;
    const unsigned char *from = p->rows;

    p->chunks.cfg = q->cfg;
    p->chunks.live = q->live;
    p->chunks.share = q->share;
    p->chunks.rows = q->rows;
    p->chunks.decay = q->decay;
    memcpy(q, &p->chunks, sizeof *q);
    for (int i = 0; i < q->n; i++) {
        struct live c = live_at(p, i);

        c.row = q->live[i].row; // each place has its memory
        q->live[i] = c;
        memcpy(c.row, from, row_bytes(l, &c));
        from += row_bytes(l, &c);
    }
}

int keyframe_loop_restore(struct loop *l, const void *data, size_t size, char why[160])
{
    struct parts p;
    int rc;

    memset(&p, 0, sizeof p);
    why[0] = 0;
    p.memory = calloc(1, sizeof *p.memory);
    if (p.memory == NULL) {
        (void)refuse(why, "no memory for the state of the loop: make some free");
        return -ENOMEM;
    }
    rc = split(&p, l, data, size, why);
    if (rc == 0) {
        restore_memory(l, p.memory);
        restore_chunks(l, &p);
    }
    free(p.memory);
    return rc;
}
