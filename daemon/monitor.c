#include "daemon/monitor.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/blind.h"
#include "daemon/rt.h"
#include "daemon/watchdog.h"

struct monitor {
    struct board *board;
    ns_t limit_ns;
    pthread_t thread;
    _Atomic bool stop;
    _Atomic bool stalled;      // as of the last look
    _Atomic int64_t looked_ns; // when that was
    const _Atomic int64_t *alive_ns;
    struct watchdog *_Atomic dog; // NULL = pings nobody; written after alive_ns
};

// ---- the judgement ---------------------------------------------------------------------------

// Time since the look before, as far as it was watched.
static ns_t watched(const struct monitor_state *s, ns_t now, ns_t limit_ns)
{
    const ns_t since = s->looked_ns ? now - s->looked_ns : 0;

    return since < limit_ns / 2 ? since : limit_ns / 2;
}

bool monitor_look(struct monitor_state *s, uint64_t ticks, ns_t now, ns_t limit_ns)
{
    const bool stalled = s->stalled, moved = ticks != s->ticks;

    s->still_ns = moved ? 0 : s->still_ns + watched(s, now, limit_ns);
    s->ticks = ticks;
    s->looked_ns = now;
    s->stalled = s->still_ns >= limit_ns && !BLIND(BLIND_MONITOR);
    return s->stalled && !stalled && ticks > 0;
}

ns_t monitor_limit_ns(ns_t period_ns)
{
    const ns_t three = 3 * period_ns;

    return (three > MONITOR_LIMIT_NS ? three : MONITOR_LIMIT_NS) - 2 * MONITOR_LOOK_NS;
}

// ---- the thread ------------------------------------------------------------------------------

static void look(struct monitor *m, struct monitor_state *s)
{
    const ns_t now = clock_now_ns();
    const uint64_t ticks = atomic_load_explicit(&m->board->ticks, memory_order_acquire);

    if (monitor_look(s, ticks, now,
                     m->limit_ns)) // first of all: it is what stops the arm
        atomic_fetch_add_explicit(&m->board->stalls, 1, memory_order_release);
    atomic_store_explicit(&m->stalled, s->stalled, memory_order_relaxed);
    atomic_store_explicit(&m->looked_ns, now, memory_order_release);
}

static void ping(struct monitor *m, const struct monitor_state *s)
{
    struct watchdog *dog = atomic_load_explicit(&m->dog, memory_order_acquire);
    const ns_t now = clock_now_ns();

    if (dog != NULL)
        (void)watchdog_ping(
            dog, now, !s->stalled && now - atomic_load(m->alive_ns) <= MONITOR_ALIVE_NS);
}

static void *run(void *arg)
{
    struct monitor *m = arg;
    struct monitor_state s = {0};
    struct schedule due;

    schedule_start(&due, clock_now_ns(), MONITOR_LOOK_NS);
    while (!atomic_load_explicit(&m->stop, memory_order_relaxed)) {
        look(m, &s);
        ping(m, &s);
        schedule_advance(&due, clock_now_ns());
        if (clock_sleep_until(due.next_ns) != 0)
            break; // monitor_fine is false from then on
    }
    return NULL;
}

// Refused above the loop, its own priority is second best, and any thread is better than none.
static int start_thread(struct monitor *m, int priority)
{
    struct rt_thread_spec spec = {
        .name = "actd-monitor", .cls = RT_CLASS_IO, .cpu = -1, .require_rt = true};
    int rc = -EPERM;

    for (int above = 1; above >= 0 && priority > 0 && rc != 0; above--) {
        spec.priority = priority + above;
        rc = rt_thread_start(&m->thread, &spec, run, m, NULL);
    }
    if (rc == 0)
        return 0;
    spec.priority = 0;
    spec.require_rt = false;
    return rt_thread_start(&m->thread, &spec, run, m, NULL);
}

int monitor_start(struct monitor **out, struct board *board, ns_t period_ns, int priority)
{
    struct monitor *m = calloc(1, sizeof *m);
    int rc;

    *out = NULL;
    if (m == NULL)
        return -ENOMEM;
    m->board = board;
    m->limit_ns = monitor_limit_ns(period_ns);
    rc = start_thread(m, priority);
    if (rc != 0) {
        free(m);
        return rc;
    }
    *out = m;
    return 0;
}

void monitor_stop(struct monitor *m)
{
    if (m == NULL)
        return;
    atomic_store(&m->stop, true);
    (void)pthread_join(m->thread, NULL);
    free(m);
}

void monitor_ping(struct monitor *m, struct watchdog *dog,
                  const _Atomic int64_t *alive_ns)
{
    m->alive_ns = alive_ns;
    atomic_store_explicit(&m->dog, dog, memory_order_release);
}

bool monitor_fine(const struct monitor *m)
{
    const ns_t looked = atomic_load_explicit(&m->looked_ns, memory_order_acquire);

    return looked != 0 && clock_now_ns() - looked <= MONITOR_AWAY_NS &&
           !atomic_load_explicit(&m->stalled, memory_order_relaxed);
}
