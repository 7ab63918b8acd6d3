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
#include "tests/hygiene/full_loop.h"

#define TICK_NS (5 * NS_PER_MS)
#define WARM    400 // ticks to be in RUNNING with four chunks
#define REPLAYS 3
#define GOAL_NS (20 * NS_PER_US)
#define JERK    2000.0 // rad/s^3
#define REST_NS (500 * NS_PER_US)

struct costs {
    struct samples all; // as measured
    struct samples own; // the least of the replays of each tick
    struct samples
        machine; // of a fixed piece of arithmetic as long as a tick, after each
    long commands, limited; // and in how many a limit acted
};

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

static void count(const struct command *c, void *arg)
{
    struct costs *n = arg;

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

static void keep(struct costs *out, int i, bool first, ns_t cost)
{
    samples_add(&out->all, cost);
    samples_add(&out->machine, one_reference());
    if (first)
        samples_add(&out->own, cost);
    else if (cost < out->own.v[i])
        out->own.v[i] = cost;
}

// `ticks` that count, after WARM that do not.
static void run_ticks(struct loop_world *w, int ticks, bool first, struct costs *out)
{
    for (int i = -WARM; i < ticks; i++) {
        ns_t cost;

        virtual_now += TICK_NS;
        world_feed(w, virtual_now);
        world_arm(w, loop_last(w->loop)->mode, virtual_now);
        clock_sleep_until(clock_now_ns() + (i < 0 ? 0 : REST_NS));
        cost = one_tick(w, i + WARM);
        if (i >= 0)
            keep(out, i, first, cost);
        world_obey(w, i >= 0 ? count : NULL, out);
        empty_eventfd(w->board.command_fd);
    }
}

static int replay(const struct world_spec *spec, int ticks, bool first, struct costs *out)
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
        run_ticks(w, ticks, first, out);
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

// ---- the table -------------------------------------------------------------------------------

static void print_costs(const struct world_spec *spec, struct costs *c)
{
    ns_t all, own;
    char name[64];

    samples_sort(&c->all);
    samples_sort(&c->own);
    samples_sort(&c->machine);
    all = samples_at(&c->all, 0.999);
    own = samples_at(&c->own, 0.999);
    snprintf(name, sizeof name, "%s%s", spec->mode, spec->jerk > 0 ? ", jerk" : "");
    printf("  %-22s %6.1f %6.1f %7.1f %7.1f %7.1f %7.1f %6.1f %7.0f %%  %s\n", name,
           bench_us(samples_at(&c->all, 0.5)), bench_us(all),
           bench_us(samples_at(&c->all, 1)), bench_us(own),
           bench_us(samples_at(&c->own, 1)), bench_us(samples_at(&c->machine, 0.5)),
           bench_us(samples_at(&c->machine, 0.999)),
           c->commands ? 100 * (double)c->limited / (double)c->commands : 0,
           all <= GOAL_NS   ? "ok"
           : own <= GOAL_NS ? "ok, not the machine"
                            : "MISSED");
    fflush(stdout);
}

static int one_mode(const struct world_spec *spec, int ticks)
{
    size_t n = (size_t)ticks;
    struct costs c;
    int rc = -ENOMEM;

    memset(&c, 0, sizeof c);
    if (samples_make(&c.all, n * REPLAYS) && samples_make(&c.own, n) &&
        samples_make(&c.machine, n * REPLAYS))
        rc = 0;
    for (int i = 0; i < REPLAYS && rc == 0; i++)
        rc = replay(spec, ticks, i == 0, &c);
    if (rc == 0)
        print_costs(spec, &c);
    samples_free(&c.all);
    samples_free(&c.own);
    samples_free(&c.machine);
    return rc;
}

struct job {
    int ticks, rc;
};

static void *all_modes(void *arg)
{
    static const char *const mode[] = {"replace",          "crossfade", "ensemble",
                                       "weighted_average", "average",   "conservative",
                                       "latest_only"};
    struct job *job = arg;

    for (size_t i = 0; i < 2 * sizeof mode / sizeof *mode && job->rc == 0; i++) {
        struct world_spec spec = {.control_hz = 200,
                                  .joints = 14,
                                  .mode = mode[i / 2],
                                  .jerk = i % 2 ? JERK : 0,
                                  .lively = 0.02};

        job->rc = one_mode(&spec, job->ticks);
    }
    return NULL;
}

// On a thread of the loop's own class and place.
int tick_table(const struct bench_place *at, int ticks)
{
    struct job job = {ticks, 0};
    const struct rt_thread_spec spec = {
        .name = "ticks", .cls = RT_CLASS_RT, .priority = at->priority, .cpu = at->cpu};
    pthread_t thread;
    int rc;

    printf(
        "\nprocessor time of a tick, us, 14 joints, 4 live chunks, %d ticks, each %d "
        "times; goal p99.9 <= %.0f\nown: the least of the times of each tick; machine: "
        "arithmetic of a tick's length, after each\n"
        "  %-22s %6s %6s %7s %15s %14s %9s\n  %-22s %6s %6s %7s %7s %7s %7s %6s %9s\n",
        ticks, REPLAYS, bench_us(GOAL_NS), "", "tick", "", "", "own", "machine", "", "",
        "p50", "p99.9", "max", "p99.9", "max", "p50", "p99.9", "limited");
    rc = rt_thread_start(&thread, &spec, all_modes, &job, NULL);
    if (rc)
        return rc;
    pthread_join(thread, NULL);
    return job.rc;
}
