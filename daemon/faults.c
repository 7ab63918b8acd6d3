#include "daemon/faults.h"

static uint64_t bit(enum ladder_reason r)
{
    return UINT64_C(1) << r;
}

_Static_assert(LADDER_REASONS <= 64, "a bit per reason");

// Which reasons are there, and which of them stop the arm.
static uint64_t reasons_of(uint64_t conditions, uint64_t *stopping)
{
    uint64_t there = 0;

    *stopping = 0;
    for (int i = 0; i < ladder_faults; i++) {
        const struct ladder_fault *f = &ladder_fault[i];

        if (!(conditions & f->condition))
            continue;
        there |= bit(f->reason);
        if (f->severity == LADDER_STOPS)
            *stopping |= bit(f->reason);
    }
    return there;
}

static void count(struct fault_count *c, bool new, uint64_t tick)
{
    if (new) {
        c->episodes++;
        c->first_tick = tick;
    }
    c->ticks++;
    c->last_tick = tick;
}

uint64_t faults_update(struct faults *f, uint64_t conditions, bool stops, uint64_t tick)
{
    uint64_t stopping, there = reasons_of(conditions, &stopping);
    uint64_t came = there & ~f->active;

    for (int r = 0; r < LADDER_REASONS; r++)
        if (there & bit((enum ladder_reason)r))
            count(&f->of[r], (came >> r) & 1, tick);
    f->active = there;
    f->stopping = stopping;
    if (stops)
        f->latched |= stopping;
    return came;
}

void faults_latch(struct faults *f, enum ladder_reason reason)
{
    if (reason != REASON_NONE)
        f->latched |= bit(reason);
}

bool faults_reset(struct faults *f)
{
    f->latched &= f->stopping;
    return f->latched == 0;
}
