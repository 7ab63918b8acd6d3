#include "daemon/outbox.h"

#include "daemon/blind.h"

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

// The arm will never hear of it: the loop steps from the one before.
static bool lose(struct board *board, const struct command *c, _Atomic uint64_t *counter)
{
    atomic_store_explicit(&board->lost_command, c->sequence, memory_order_release);
    count(counter);
    return false;
}

static bool may_leave(struct outbox *o, struct board *board, ns_t now, struct command *c)
{
    ns_t waited_ns;

    if (!BLIND(BLIND_OUTBOX_CUT) && c->stalls != atomic_load(&board->stalls)) {
        return lose(board, c, &o->cut);
    }
    // The loop may have made it after the caller looked at the clock.
    waited_ns = now > c->made_ns ? now - c->made_ns : 0;
    if (!BLIND(BLIND_OUTBOX_TTL)) {
        if (waited_ns >= c->ttl_ns) {
            return lose(board, c, &o->expired);
        }
        c->ttl_ns -= waited_ns;
    }
    return true;
}

// A place is given back only when its command's fate is known: an empty ring tells the loop
// that the last one left, unless it was told before that it did not.
bool outbox_next(struct outbox *o, struct board *board, ns_t now, struct command *out)
{
    bool leaves;

    while (!BLIND(BLIND_OUTBOX_NEWEST) && ring_waiting(&board->commands) > 1) {
        count(&o->superseded);
        ring_release(&board->commands);
    }
    if (ring_waiting(&board->commands) == 0)
        return false;
    *out = *(const struct command *)ring_peek(&board->commands);
    leaves = may_leave(o, board, now, out);
    ring_release(&board->commands);
    if (leaves)
        o->last_sequence = out->sequence;
    return leaves;
}
