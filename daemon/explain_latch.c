#include "daemon/explain_latch.h"

#include <stdio.h>
#include <string.h>

// How long after it was asked a stop may still be that one: the loop takes it in its next tick, and
// whoever asks is told after 0.2 s that it does not answer.
#define ASKED_S 1.0

int explain_latch_init(struct explain_latch *l)
{
    memset(l, 0, sizeof *l);
    l->stop.after = l->estop.after = UINT64_MAX;
    return -pthread_mutex_init(&l->mutex, NULL);
}

void explain_latch_free(struct explain_latch *l)
{
    pthread_mutex_destroy(&l->mutex);
}

void explain_latch_asked(struct explain_latch *l, enum board_request request,
                         const struct explain_asker *who, uint64_t tick)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->mutex);
    *(request == BOARD_ESTOP ? &l->estop : &l->stop) = (struct explain_ask){*who, tick};
    pthread_mutex_unlock(&l->mutex);
}

static bool latched(enum ladder_state s)
{
    return s == LADDER_STOPPING || s == LADDER_STOPPED || s == LADDER_ESTOP;
}

// The step that brought the reason of now, from 1; 0 = not known. STOPPED keeps that of STOPPING;
// an emergency stop in between is a step of its own.
static uint64_t latching(const struct loop_report *now)
{
    uint64_t first = 0;

    for (uint64_t i = now->events; i > 0 && now->events - i < BOARD_EVENTS; i--) {
        const struct loop_event *e = &now->event[(i - 1) % BOARD_EVENTS];

        if (!latched(e->to) || e->reason != now->reason)
            break;
        first = i;
    }
    return first;
}

// "e-stop by user pilot (uid 1000, process 1959) at 23:51:38".
static void who(const struct explain_ask *a, const char *what, char *text, size_t size)
{
    char clock[16] = "";
    struct tm tm;

    if (localtime_r(&a->who.at, &tm))
        strftime(clock, sizeof clock, " at %H:%M:%S", &tm);
    snprintf(text, size, "%s by user %s%s(uid %u, process %d)%s", what, a->who.name,
             a->who.name[0] ? " " : "", (unsigned)a->who.uid, (int)a->who.pid, clock);
}

static void compose(const struct explain_source *s, const struct loop_report *now,
                    const struct loop_event *e, char *text, size_t size)
{
    const struct explain_latch *l = s->board->latch; // locked
    const struct explain_ask *a = e->reason == REASON_ESTOP ? &l->estop : &l->stop;
    double within = ASKED_S * s->cfg->control.rate_hz;

    if (e->reason != REASON_ESTOP && e->reason != REASON_OPERATOR)
        explain_reason(s, now, e->reason, e->index, e->value, text, size);
    else if (a->after != UINT64_MAX && e->tick > a->after &&
             (double)(e->tick - a->after) <= within)
        who(a, e->reason == REASON_ESTOP ? "e-stop" : "stop", text, size);
    else
        text[0] = '\0';
}

bool explain_latched(const struct explain_source *s, const struct loop_report *now,
                     char *text, size_t size)
{
    struct explain_latch *l = s->board->latch;
    uint64_t event = latched(now->mode) ? latching(now) : 0;

    if (event == 0)
        return false;
    const struct loop_event *e = &now->event[(event - 1) % BOARD_EVENTS];
    if (!l) { // each time anew
        explain_reason(s, now, e->reason, e->index, e->value, text, size);
        return true;
    }
    pthread_mutex_lock(&l->mutex);
    if (l->event != event) {
        l->event = event;
        compose(s, now, e, l->text, sizeof l->text);
    }
    snprintf(text, size, "%s", l->text);
    pthread_mutex_unlock(&l->mutex);
    return true;
}

void explain_latching(const struct explain_source *s, const struct loop_report *now,
                      const struct loop_event *e, char *text, size_t size)
{
    struct explain_latch *l = s->board->latch;

    if (e->reason == now->reason && explain_latched(s, now, text, size))
        return;
    if (!l) {
        explain_reason(s, now, e->reason, e->index, e->value, text, size);
        return;
    }
    pthread_mutex_lock(&l->mutex);
    compose(s, now, e, text, size);
    pthread_mutex_unlock(&l->mutex);
}
