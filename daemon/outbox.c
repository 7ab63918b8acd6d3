#include "daemon/outbox.h"

#include "daemon/blind.h"

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

// The newest command that waits; those before it are dropped.
static bool newest(struct outbox *o, struct board *board, struct command *out)
{
    if (!ring_pop(&board->commands, out))
        return false;
    while (!BLIND(BLIND_OUTBOX_NEWEST) && ring_pop(&board->commands, out))
        count(&o->superseded);
    return true;
}

bool outbox_next(struct outbox *o, struct board *board, ns_t now, struct command *out)
{
    ns_t waited_ns;

    if (!newest(o, board, out))
        return false;
    if (!BLIND(BLIND_OUTBOX_CUT) && out->stalls != atomic_load(&board->stalls)) {
        count(&o->cut);
        return false;
    }
    // The loop may have made it after the caller looked at the clock.
    waited_ns = now > out->made_ns ? now - out->made_ns : 0;
    if (!BLIND(BLIND_OUTBOX_TTL)) {
        if (waited_ns >= out->ttl_ns) {
            count(&o->expired);
            return false;
        }
        out->ttl_ns -= waited_ns;
    }
    o->last_sequence = out->sequence;
    return true;
}
