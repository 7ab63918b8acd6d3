// What a tick costs in processor time: the real loop_tick under a virtual clock, 200 Hz, on a
// thread that sleeps between ticks as the loop does, so that caches are as cold as in life. An
// interrupt, or a hypervisor that takes the core away, is charged to whoever runs: of ticks of a
// few microseconds about one in a thousand meets the kernel's own timer. Hence the replays: the
// virtual clock makes tick i the same work every time, and the least of them is its own cost.
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "daemon/rt.h"
#include "tests/bench/bench_loop.h"
#include "tests/hygiene/loop_world.h"

#define TICK_NS (5 * NS_PER_MS)
#define WARM    400 // ticks to be in RUNNING with four chunks
#define REST_NS (500 * NS_PER_US)

static ns_t virtual_now;

static ns_t virtual_clock(void)
{
    return virtual_now;
}

static ns_t cpu_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

// About 5 us of arithmetic in registers.
static void reference(void)
{
    volatile double out;
    double x = 1;

    for (int i = 0; i < 2500; i++)
        x = x * 0.999 + 0.5;
    out = x;
    (void)out;
}

struct counted {
    long commands, limited;
};

static void count(const struct command *c, void *arg)
{
    struct counted *n = arg;

    n->commands++;
    n->limited += c->first_joint >= 0;
}

static void empty_eventfd(int fd)
{
    uint64_t n;

    if (read(fd, &n, sizeof n) < 0)
        return; // nothing was published
}

static ns_t one_tick(struct loop_world *w, int i)
{
    ns_t start = cpu_now_ns();

    loop_tick(w->loop, (uint64_t)i, virtual_now, 0, virtual_clock);
    return cpu_now_ns() - start;
}

static ns_t one_reference(void)
{
    ns_t start = cpu_now_ns();

    reference();
    return cpu_now_ns() - start;
}

// `ticks` of them into out after WARM that do not count.
static void run_ticks(struct loop_world *w, int ticks, bool first, struct tick_costs *out,
                      struct counted *n)
{
    for (int i = 0; i < WARM + ticks; i++) {
        ns_t cost, least;

        virtual_now += TICK_NS;
        world_feed(w, virtual_now);
        world_arm(w, loop_last(w->loop)->mode, virtual_now);
        clock_sleep_until(clock_now_ns() + (i < WARM ? 0 : REST_NS));
        cost = one_tick(w, i);
        if (i >= WARM) {
            samples_add(&out->all, cost);
            samples_add(&out->machine, one_reference());
            least = first ? cost : out->own.v[i - WARM];
            out->own.v[i - WARM] = cost < least ? cost : least;
        }
        world_obey(w, i >= WARM ? count : NULL, n);
        empty_eventfd(w->board.command_fd);
    }
    out->own.n = (size_t)ticks;
}

static int replay(const struct world_spec *spec, int ticks, bool first,
                  struct tick_costs *out, struct counted *n)
{
    struct loop_world *w = calloc(1, sizeof *w);
    int rc;

    if (w == NULL)
        return -ENOMEM;
    virtual_now = 1000 * NS_PER_S;
    rc = world_open(w, spec);
    if (rc)
        fprintf(stderr, "bench_loop: %s\n", w->err.text);
    else
        run_ticks(w, ticks, first, out, n);
    if (rc == 0 && loop_last(w->loop)->mode != LADDER_RUNNING) {
        fprintf(stderr, "bench_loop: ticks of %s in %s (%s), not in RUNNING\n",
                spec->mode, ladder_state_name(loop_last(w->loop)->mode),
                ladder_reason_name(loop_last(w->loop)->reason));
        rc = -EPROTO;
    }
    world_close(w);
    free(w);
    return rc;
}

int tick_cost(const char *mode, double jerk, int ticks, struct tick_costs *out)
{
    const struct world_spec spec = {
        .control_hz = 200, .joints = 14, .mode = mode, .jerk = jerk, .lively = 0.02};
    struct counted n = {0};
    int rc = 0;

    for (int i = 0; i < TICK_REPLAYS && rc == 0; i++)
        rc = replay(&spec, ticks, i == 0, out, &n);
    out->limited = n.commands ? (double)n.limited / (double)n.commands : 0;
    return rc;
}
