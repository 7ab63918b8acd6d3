// The loop's twin: a thread of this test that sleeps to the same kind of deadlines, at the same
// priority and on the same core, and does nothing else. What makes it miss a deadline is the
// machine: a kernel that does not let go of the core, a hypervisor that takes it away. A loop that
// misses no more than its twin, at the same time, misses none for what actd does.
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/deadline.h"
#include "daemon/rt.h"
#include "tests/swap/swaps.h"

#define PRIORITY 50 // the default of control.priority

struct swaps_twin {
    pthread_t thread;
    _Atomic bool stop;
    _Atomic uint64_t ticks, skipped, gaps, late_ms, late_period;
};

static void *turn(void *arg)
{
    struct swaps_twin *t = arg;
    ns_t period = clock_period_ns(SWAPS_HZ);
    struct schedule s;

    schedule_start(&s, clock_now_ns() + period, period);
    while (!atomic_load(&t->stop)) {
        uint64_t skipped;
        ns_t now;

        if (clock_sleep_until(s.next_ns) != 0)
            break;
        now = clock_now_ns();
        atomic_fetch_add(&t->late_ms, schedule_woke(&s, now) > NS_PER_MS);
        atomic_fetch_add(&t->late_period, schedule_woke(&s, now) > period);
        skipped = schedule_advance(&s, now);
        atomic_fetch_add(&t->skipped, skipped);
        atomic_fetch_add(&t->gaps, skipped > 0);
        atomic_fetch_add(&t->ticks, 1 + skipped);
    }
    return NULL;
}

int swaps_twin_start(struct swaps_twin **out, char granted[64])
{
    struct rt_thread_spec spec = {.name = "swaps-twin",
                                  .cls = RT_CLASS_RT,
                                  .priority = PRIORITY,
                                  .cpu = rt_choose_cpu()};
    struct swaps_twin *t = calloc(1, sizeof *t);
    int rc;

    *out = NULL;
    if (!t)
        return -1;
    rc = rt_thread_start(&t->thread, &spec, turn, t, granted);
    if (rc != 0) {
        free(t);
        return rc;
    }
    *out = t;
    return 0;
}

void swaps_twin_stop(struct swaps_twin *t)
{
    if (!t)
        return;
    atomic_store(&t->stop, true);
    pthread_join(t->thread, NULL);
    free(t);
}

void swaps_twin_look(const struct swaps_twin *t, struct swaps_seen *out)
{
    *out = (struct swaps_seen){0};
    if (!t)
        return;
    out->ticks = atomic_load(&t->ticks);
    out->skipped = atomic_load(&t->skipped);
    out->gaps = atomic_load(&t->gaps);
    out->late_ms = atomic_load(&t->late_ms);
    out->late_period = atomic_load(&t->late_period);
}
