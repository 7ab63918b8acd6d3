#include "daemon/outbox.h"

#include "daemon/blind.h"

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

// It was taken, and the arm will never hear of it: the loop steps from the one before.
static bool lose(struct board *board, const struct command *c, _Atomic uint64_t *counter)
{
    atomic_store_explicit(&board->lost_command, c->sequence, memory_order_release);
    count(counter);
    return false;
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
        return lose(board, out, &o->cut);
    }
    // The loop may have made it after the caller looked at the clock.
    waited_ns = now > out->made_ns ? now - out->made_ns : 0;
    if (!BLIND(BLIND_OUTBOX_TTL)) {
        if (waited_ns >= out->ttl_ns) {
            return lose(board, out, &o->expired);
        }
        out->ttl_ns -= waited_ns;
    }
    o->last_sequence = out->sequence;
    return true;
}
