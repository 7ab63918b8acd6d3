// The plain side of the tape: memory, the switch, and what writers share a lock for.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/tape.h"

static const size_t usual[TAPE_CLASSES] = {
    [TAPE_FRAMES] = TAPE_DEFAULT_FRAMES, [TAPE_EVENTS] = TAPE_DEFAULT_EVENTS,
    [TAPE_CHUNKS] = TAPE_DEFAULT_CHUNKS, [TAPE_BUS] = TAPE_DEFAULT_BUS,
    [TAPE_TICKS] = TAPE_DEFAULT_TICKS,
};

int tape_new(struct tape **out, const struct tape_sizes *sizes)
{
    struct tape *t = aligned_alloc(_Alignof(struct tape), sizeof *t);
    int rc;

    *out = NULL;
    if (t == NULL)
        return -ENOMEM;
    memset(t, 0, sizeof *t);
    rc = -pthread_mutex_init(&t->plain, NULL);
    if (rc != 0) {
        free(t);
        return rc;
    }
    for (int c = 0; c < TAPE_CLASSES && rc == 0; c++) {
        size_t n = sizes != NULL ? sizes->bytes[c] : 0;

        rc = spool_init(&t->spool[c], n != 0 ? n : usual[c]);
    }
    if (rc != 0) {
        tape_free(t);
        return rc;
    }
    *out = t;
    return 0;
}

void tape_free(struct tape *t)
{
    if (t == NULL)
        return;
    for (int c = 0; c < TAPE_CLASSES; c++)
        spool_free(&t->spool[c]);
    pthread_mutex_destroy(&t->plain);
    free(t);
}

void tape_ask_states(struct tape *t)
{
    // The bus' first: who sees the loop's asked for sees that the bus' is not there yet.
    atomic_fetch_add_explicit(&t->bus_state_asked, 1, memory_order_release);
    atomic_fetch_add_explicit(&t->loop_state_asked, 1, memory_order_release);
}

void tape_turn(struct tape *t, bool on)
{
    if (on == tape_on(t))
        return;
    if (on && !t->touched) {
        for (int c = 0; c < TAPE_CLASSES; c++)
            spool_touch(&t->spool[c]);
        t->touched = true;
    }
    if (on)
        tape_ask_states(t);
    atomic_store_explicit(&t->on, on, memory_order_release);
}

// A record in two pieces, by whoever has one.
static bool put(struct tape *t, enum tape_kind kind, ns_t at_ns, const void *first,
                size_t n, const void *then, size_t m)
{
    unsigned char *to;

    pthread_mutex_lock(&t->plain);
    to = tape_reserve(t, TAPE_EVENTS, kind, at_ns, n + m);
    if (to != NULL) {
        memcpy(to, first, n);
        if (m > 0)
            memcpy(to + n, then, m);
        tape_commit(t, TAPE_EVENTS);
    }
    pthread_mutex_unlock(&t->plain);
    return to != NULL;
}

bool tape_event(struct tape *t, ns_t at_ns, enum tape_level level, const char *name,
                const char *text)
{
    struct tape_event e;

    if (!tape_on(t))
        return false;
    memset(&e, 0, sizeof e);
    e.level = level;
    (void)snprintf(e.name, sizeof e.name, "%s", name);
    return put(t, TAPE_EVENT, at_ns, &e, sizeof e, text, strlen(text));
}
