// The thread around loop_tick: sleeps to absolute deadlines, keeps the phase, counts what it
// misses. All it asks of the kernel per tick is clock_nanosleep and the loop's eventfd write.
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/loop_impl.h"
#include "daemon/rt.h"

struct loop_thread {
    struct loop *loop;
    pthread_t thread;
    _Atomic bool stop;
};

static void *run(void *arg)
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

int loop_thread_start(struct loop_thread **out, struct loop *l,
                      const struct loop_thread_config *cfg, char granted[64])
{
    struct rt_thread_spec spec = {.name = "actd-loop",
                                  .cls = RT_CLASS_RT,
                                  .priority = cfg->priority,
                                  .cpu = cfg->cpu,
                                  .require_rt = cfg->require_rt};
    struct loop_thread *t = calloc(1, sizeof *t);
    int rc;

    *out = NULL;
    if (t == NULL)
        return -ENOMEM;
    t->loop = l;
    rc = rt_thread_start(&t->thread, &spec, run, t, granted);
    if (rc != 0) {
        free(t);
        return rc;
    }
    *out = t;
    return 0;
}

void loop_thread_stop(struct loop_thread *t)
{
    if (t == NULL)
        return;
    atomic_store(&t->stop, true);
    (void)pthread_join(t->thread, NULL);
    free(t);
}
