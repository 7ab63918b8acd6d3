// The loop thread's own function: sleeps to absolute deadlines, keeps the phase, counts
// what it misses. All it asks of the kernel per tick is clock_nanosleep and the loop's
// eventfd write. loop_run.c holds rt functions only.
#include <stdatomic.h>

#include "daemon/loop_impl.h"

void *loop_run(void *arg)
{
    struct loop_thread *t = arg;
    struct schedule s;

    schedule_start(&s, clock_now_ns() + t->loop->period_ns, t->loop->period_ns);
    while (!atomic_load_explicit(&t->stop, memory_order_relaxed)) {
        ns_t now;

        if (clock_sleep_until(s.next_ns) != 0)
            break; // EINVAL alone is left, for a time that can not be
        now = clock_now_ns();
        loop_tick(t->loop, s.tick, now, schedule_woke(&s, now), clock_now_ns);
        schedule_advance(&s, clock_now_ns());
    }
    return NULL;
}
