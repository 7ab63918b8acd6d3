// What writes on the tape and what reads it; tape.c holds rt functions only.
#include "daemon/tape.h"

#include <string.h>

#include "daemon/content.h"

// ---- writing ---------------------------------------------------------------------------------

void *tape_reserve(struct tape *t, enum tape_class c, enum tape_kind kind, ns_t at_ns,
                   size_t size)
{
    struct tape_entry *e = NULL;

    if (!tape_on(t))
        return NULL;
    if (size <= UINT32_MAX)
        e = spool_reserve(&t->spool[c], sizeof *e + size);
    if (e == NULL) {
        atomic_fetch_add_explicit(&t->lost[c], 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&t->lost_bytes[c], size, memory_order_relaxed);
        return NULL;
    }
    *e = (struct tape_entry){kind, (uint32_t)size, at_ns};
    return e + 1;
}

void tape_commit(struct tape *t, enum tape_class c)
{
    spool_commit(&t->spool[c]);
}

// A record in two pieces.
static bool put(struct tape *t, enum tape_class c, enum tape_kind kind, ns_t at_ns,
                const void *first, size_t n, const void *then, size_t m)
{
    unsigned char *to = tape_reserve(t, c, kind, at_ns, n + m);

    if (to == NULL)
        return false;
    if (n > 0)
        memcpy(to, first, n);
    if (m > 0)
        memcpy(to + n, then, m);
    tape_commit(t, c);
    return true;
}

bool tape_tick(struct tape *t, const struct tick_record *r)
{
    return put(t, TAPE_TICKS, TAPE_TICK, r->in.now_ns, r, tick_record_bytes(r->joints),
               NULL, 0);
}

bool tape_command(struct tape *t, ns_t sent_ns, const void *data, size_t size)
{
    return put(t, TAPE_BUS, TAPE_COMMAND, sent_ns, data, size, NULL, 0);
}

bool tape_chunk(struct tape *t, struct tape_chunk *c, const float *row)
{
    if (t == NULL)
        return false;
    c->number = ++t->chunks;
    return put(t, TAPE_CHUNKS, TAPE_CHUNK, c->ready_ns, c, sizeof *c, row,
               (size_t)c->rows * (size_t)c->joints * sizeof *row);
}

// Frames go first, however small they are: as soon as half of the room for ticks or for the bus is
// taken, of which at 1 kHz there is 25 s in all.
static bool others_are_short(const struct tape *t)
{
    const struct spool *ticks = &t->spool[TAPE_TICKS], *bus = &t->spool[TAPE_BUS];

    return spool_waiting(ticks) > ticks->capacity / 2 ||
           spool_waiting(bus) > bus->capacity / 2;
}

static bool give_up_frame(struct tape *t, size_t size)
{
    atomic_fetch_add_explicit(&t->lost[TAPE_FRAMES], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->lost_bytes[TAPE_FRAMES], size, memory_order_relaxed);
    return false;
}

static bool put_frame(struct tape *t, const struct tape_input *in, const void *data,
                      size_t size)
{
    struct tape_frame f;

    if (others_are_short(t))
        return give_up_frame(t, size);
    memset(&f, 0, sizeof f); // its padding, too: equal frames are equal bytes
    f.camera = in->stream - 1;
    f.form = in->form;
    f.first = in->kind == TAPE_SEVERAL_PARTS;
    f.more = in->more;
    f.stamp_wall_ns = in->stamp_wall_ns;
    return put(t, TAPE_FRAMES, TAPE_FRAME, in->at_ns, &f, sizeof f, data, size);
}

void tape_input(struct tape *t, struct tape_input *in, const void *data, size_t size)
{
    bool beside = in->stream > 0; // its bytes go elsewhere

    in->bytes = size;
    in->kept = false;
    if (t == NULL)
        return;
    in->number = ++t->inputs;
    if (!tape_on(t))
        return;
    if (data != NULL)
        in->check = content_check(data, size);
    if (data != NULL && beside)
        in->kept = put_frame(t, in, data, size);
    if (data != NULL && !beside) {
        in->kept = true;
        if (put(t, TAPE_BUS, TAPE_INPUT, in->at_ns, in, sizeof *in, data, size))
            return;
        in->kept = false; // what became of it may still fit
    }
    (void)put(t, TAPE_BUS, TAPE_INPUT, in->at_ns, in, sizeof *in, NULL, 0);
}

// ---- states ----------------------------------------------------------------------------------

bool tape_loop_state_due(struct tape *t, ns_t now)
{
    uint32_t asked;

    if (!tape_on(t))
        return false;
    asked = atomic_load_explicit(&t->loop_state_asked, memory_order_acquire);
    if (asked == t->loop_state_given)
        return false;
    if (asked != t->loop_state_seen) {
        t->loop_state_seen = asked;
        t->loop_state_seen_ns = now;
    }
    if (atomic_load_explicit(&t->bus_state_given, memory_order_acquire) !=
            atomic_load_explicit(&t->bus_state_asked, memory_order_relaxed) &&
        now - t->loop_state_seen_ns < TAPE_BUS_FIRST_NS)
        return false;
    t->loop_state_given = asked;
    return true;
}

bool tape_bus_state_due(struct tape *t)
{
    uint32_t asked;

    if (!tape_on(t))
        return false;
    asked = atomic_load_explicit(&t->bus_state_asked, memory_order_acquire);
    if (asked == atomic_load_explicit(&t->bus_state_given, memory_order_relaxed))
        return false;
    atomic_store_explicit(&t->bus_state_given, asked, memory_order_release);
    return true;
}

// ---- reading ---------------------------------------------------------------------------------

const struct tape_entry *tape_peek(struct tape *t, enum tape_class c)
{
    size_t size;

    return spool_peek(&t->spool[c], &size);
}

void tape_release(struct tape *t, enum tape_class c)
{
    spool_release(&t->spool[c]);
}

uint64_t tape_lost(const struct tape *t, enum tape_class c)
{
    return atomic_load_explicit(&t->lost[c], memory_order_relaxed);
}
