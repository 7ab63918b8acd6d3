#include "tests/twin.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/rt.h"

#define PRIORITY 50 // the default of control.priority

struct twin {
    pthread_t thread;
    ns_t period_ns;
    _Atomic bool stop;
    _Atomic(struct histogram *) lateness;
    _Atomic uint64_t ticks, skipped, gaps, late_ms, late_period;
};

static void count(struct twin *t, struct schedule *s, ns_t now)
{
    struct histogram *h = atomic_load(&t->lateness);
    ns_t late = schedule_woke(s, now);
    uint64_t skipped = schedule_advance(s, now);

    if (h != NULL)
        hist_add(h, late);
    atomic_fetch_add(&t->late_ms, late > NS_PER_MS);
    atomic_fetch_add(&t->late_period, late > t->period_ns);
    atomic_fetch_add(&t->skipped, skipped);
    atomic_fetch_add(&t->gaps, skipped > 0);
    atomic_fetch_add(&t->ticks, 1 + skipped);
}

static void *turn(void *arg)
{
    struct twin *t = arg;
    struct schedule s;

    schedule_start(&s, clock_now_ns() + t->period_ns, t->period_ns);
    while (!atomic_load(&t->stop) && clock_sleep_until(s.next_ns) == 0)
        count(t, &s, clock_now_ns());
    return NULL;
}

int twin_start(struct twin **out, double rate_hz, char granted[64])
{
    struct rt_thread_spec spec = {
        .name = "twin", .cls = RT_CLASS_RT, .priority = PRIORITY, .cpu = rt_choose_cpu()};
    struct twin *t = calloc(1, sizeof *t);
    int rc;

    *out = NULL;
    if (t == NULL)
        return -ENOMEM;
    t->period_ns = clock_period_ns(rate_hz);
    rc = rt_thread_start(&t->thread, &spec, turn, t, granted);
    if (rc != 0) {
        free(t);
        return rc;
    }
    *out = t;
    return 0;
}

void twin_stop(struct twin *t)
{
    if (t == NULL)
        return;
    atomic_store(&t->stop, true);
    pthread_join(t->thread, NULL);
    free(t);
}

void twin_look(const struct twin *t, struct twin_seen *out)
{
    *out = (struct twin_seen){0};
    if (t == NULL)
        return;
    out->ticks = atomic_load(&t->ticks);
    out->skipped = atomic_load(&t->skipped);
    out->gaps = atomic_load(&t->gaps);
    out->late_ms = atomic_load(&t->late_ms);
    out->late_period = atomic_load(&t->late_period);
}

void twin_note(struct twin *t, struct histogram *lateness)
{
    if (t != NULL)
        atomic_store(&t->lateness, lateness);
}

void twin_add(struct twin_seen *sum, const struct twin_seen *from,
              const struct twin_seen *to)
{
    sum->ticks += to->ticks - from->ticks;
    sum->skipped += to->skipped - from->skipped;
    sum->gaps += to->gaps - from->gaps;
    sum->late_ms += to->late_ms - from->late_ms;
    sum->late_period += to->late_period - from->late_period;
}

double twin_beyond(uint64_t own_gaps, uint64_t own_ticks, uint64_t gaps, uint64_t ticks,
                   double *sigma)
{
    double ratio = own_ticks > 0 ? (double)ticks / (double)own_ticks : 0;

    *sigma = sqrt((double)gaps + (double)own_gaps * ratio * ratio);
    return (double)gaps - (double)own_gaps * ratio;
}
