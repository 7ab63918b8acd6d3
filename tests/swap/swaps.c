// swaps: policies change while the arm moves, a thousand times, good ones and bad ones, and what
// that cost. The daemon and the simulated arm are the real ones, at 200 Hz, with a worker that
// infers without a pause. Time goes in turns without and with swaps, and all the time a twin of the
// loop that does nothing sleeps to the same deadlines, so that what the machine does to the loop
// anyway, and what it does when it is given more work, can be told from what swaps do.
//
//   swaps --build DIR [--sim DIR] [--output DIR] [--swaps N] [--seed S] [--full N] [--need-s S]
//         [--tiny]
//
// N swaps are done; to every ten of them come four policies that must be refused, and one event
// in the middle of a swap. --full N: then N more between two policies of 52 million parameters
// at 224×224, which must be live within --need-s (0: only told). --tiny: between small policies,
// and no bad ones, for a daemon that is slowed down by a sanitizer. The daemon's words are in
// OUTPUT/actd.log.
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/swap/swaps_run.h"

#define QUIET_NS (6 * NS_PER_S)
#define BUSY_NS  (20 * NS_PER_S)
#define TINY     32
#define PICTURE  224

struct options {
    const char *build, *sim, *output;
    int swaps, full;
    bool tiny;
    uint64_t seed;
    double need_s;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int s)
{
    interrupted = s;
}

// ---- turns -----------------------------------------------------------------------------------

static void add(struct swaps_seen *sum, const struct swaps_seen *from,
                const struct swaps_seen *to)
{
    struct swaps_seen d = swaps_between(from, to);

    sum->commands += d.commands;
    sum->lost += d.lost;
    sum->ticks += d.ticks;
    sum->skipped += d.skipped;
    sum->gaps += d.gaps;
    sum->late_ms += d.late_ms;
    sum->late_period += d.late_period;
    sum->moved_rad += d.moved_rad;
    for (int i = 0; i < 16; i++)
        sum->in_mode[i] += d.in_mode[i];
}

// The machine may have stopped the arm: that is told, and it goes on.
static void keep_running(struct swaps_run *r)
{
    struct swaps_seen s;

    swaps_eye_look(r->eye, &s);
    if (s.mode == ACTD__V1__MODE__MODE_RUNNING || s.mode == ACTD__V1__MODE__MODE_HOLD)
        return;
    r->rearmed++;
    fprintf(stderr, "swaps: mode %d, reason %d: armed again\n", s.mode, s.reason);
    if (swaps_world_arm(&r->a) != 0)
        swaps_fail(r, "it cannot be armed");
}

static void quiet(struct swaps_run *r, struct swaps_seen *sum)
{
    ns_t until = clock_now_ns() + QUIET_NS;
    struct swaps_seen from, to;
    struct twin_seen twin_from, twin_to;

    swaps_eye_look(r->eye, &from);
    twin_look(r->twin, &twin_from);
    while (clock_now_ns() < until && !interrupted) {
        (void)swaps_ready(r);
        keep_running(r);
        clock_sleep_until(clock_now_ns() + NS_PER_S);
    }
    swaps_eye_look(r->eye, &to);
    twin_look(r->twin, &twin_to);
    add(sum, &from, &to);
    twin_add(&r->twin_without, &twin_from, &twin_to);
}

// Of 15 steps ten are good, four bad, and one is trouble.
static void step(struct swaps_run *r)
{
    static _Thread_local unsigned n;
    unsigned at = n++ % 15;

    if (swaps_ready(r) != 0) {
        swaps_fail(r, "the control socket does not answer");
        interrupted = 1;
    } else if (at == 14) {
        swaps_step_trouble(r);
    } else if (at % 3 == 2 && !r->world.picture) {
        swaps_step_bad(r);
    } else {
        swaps_step_good(r);
    }
}

static void busy(struct swaps_run *r, struct swaps_seen *sum, int swaps)
{
    ns_t until = clock_now_ns() + BUSY_NS;
    struct swaps_seen from, to;
    struct twin_seen twin_from, twin_to;

    swaps_eye_look(r->eye, &from);
    twin_look(r->twin, &twin_from);
    while (clock_now_ns() < until && r->done < swaps && !interrupted) {
        keep_running(r);
        step(r);
    }
    swaps_eye_look(r->eye, &to);
    twin_look(r->twin, &twin_to);
    add(sum, &from, &to);
    twin_add(&r->twin_with, &twin_from, &twin_to);
    printf("%d swaps done, %d refused, %d commands beyond a limit, %d failures\n",
           r->done, r->refused, (int)to.broken, r->failures);
    fflush(stdout);
}

// ---- the run ---------------------------------------------------------------------------------

static int begin(struct swaps_run *r, const char *policy)
{
    struct swaps_seen s = {0};
    char run[PATH_MAX];
    int rc = swaps_world_start(&r->world, policy);

    snprintf(run, sizeof run, "%.100s/run", r->world.work);
    r->a.fd = r->b.fd = -1;
    rc = rc ? rc : swaps_ready(r);
    rc = rc ? rc : swaps_eye_open(&r->eye, run);
    for (int i = 0; i < 1000 && rc == 0 && s.commands == 0; i++) {
        clock_sleep_until(clock_now_ns() + 5 * NS_PER_MS);
        swaps_eye_look(r->eye, &s);
    }
    return rc;
}

static void end(struct swaps_run *r)
{
    swaps_disconnect(&r->a);
    swaps_disconnect(&r->b);
    if (swaps_world_stop(&r->world) != 0)
        swaps_fail(r, "the daemon ended badly; see %s", r->world.log);
    swaps_eye_close(r->eye);
    r->eye = NULL;
}

static int main_part(struct swaps_run *r, const struct options *o)
{
    struct swaps_seen without = {0}, with = {0};
    char granted[64];
    uint64_t before[3];
    int rc;

    r->world.picture = o->tiny ? TINY : 0;
    rc = o->tiny ? swaps_make_tiny(&r->world) : swaps_make_good(&r->world, o->seed);
    rc = rc ? rc : begin(r, swaps_good_name(0));
    if (rc != 0)
        return rc;
    (void)swaps_in_use(r, r->digest[0], &r->generation);
    before[0] = swaps_world_counted(&r->world, "actd-loop");
    before[1] = swaps_world_counted(&r->world, "actd-infer");
    before[2] = swaps_world_counted(&r->world, "actd-pool");
    if (twin_start(&r->twin, SWAPS_HZ, granted) != 0)
        return -EAGAIN;
    printf("the loop's twin: %s\n", granted);
    while (r->done < o->swaps && !interrupted && r->failures < 50) {
        quiet(r, &without);
        busy(r, &with, o->swaps);
    }
    twin_stop(r->twin);
    r->twin = NULL;
    swaps_judge(r, &without, &with, before);
    end(r);
    return 0;
}

static int terminate_part(struct swaps_run *r)
{
    static const ns_t after[] = {NS_PER_MS, 150 * NS_PER_MS, 400 * NS_PER_MS,
                                 800 * NS_PER_MS};
    int rc = 0;

    for (size_t i = 0; i < sizeof after / sizeof *after && rc == 0 && !interrupted; i++) {
        rc = begin(r, swaps_good_name(0));
        r->current = 0;
        if (rc == 0)
            swaps_terminate(r, after[i]);
        end(r);
    }
    return rc;
}

static bool full_swap(struct swaps_run *r, const char *name, double need_s)
{
    Actd__V1__ControlReply *m = swaps_do(
        &r->a, &(struct swaps_ask){ACTD__V1__VERB__VERB_SWAP, name, false, NULL});
    const Actd__V1__SwapReport *s = m ? m->swap : NULL;
    bool done = s && m->result == ACTD__V1__RESULT__RESULT_OK;

    if (swaps_no_time(m)) {
        printf("  not live: %s\n", m->text);
        r->no_time++;
    } else if (!done) {
        swaps_fail(r, "full size: %d, %s", m ? (int)m->result : -1,
                   m ? m->text : "no answer");
    } else {
        printf(
            "  live after %.2f s: load %.2f, trials %.2f (%u, median %.0f ms, worst %.0f "
            "ms), commit %.3f; differs by %.2f rad\n",
            1e-9 * (double)s->total_ns, 1e-9 * (double)s->load_ns,
            1e-9 * (double)s->trial_ns, s->trials, 1e-6 * (double)s->inference_median_ns,
            1e-6 * (double)s->inference_worst_ns, 1e-9 * (double)s->commit_ns,
            s->difference_rad);
        if (need_s > 0 && 1e-9 * (double)s->total_ns > need_s)
            swaps_fail(r, "full size: live after %.2f s", 1e-9 * (double)s->total_ns);
    }
    swaps_free_reply(m);
    return done;
}

static int full_part(struct swaps_run *r, const struct options *o)
{
    double load[1] = {0};
    bool in_use = false; // full-1
    int rc, live = 0;

    r->world.picture = PICTURE;
    rc = swaps_make_full(&r->world);
    rc = rc ? rc : begin(r, "full-0");
    if (rc != 0)
        return rc;
    printf("52 million parameters at 224x224, F32, while driving; load average %.1f\n",
           getloadavg(load, 1) == 1 ? load[0] : 0);
    for (int i = 0; i < o->full && !interrupted; i++) {
        clock_sleep_until(clock_now_ns() + 3 * NS_PER_S);
        (void)swaps_ready(r);
        keep_running(r);
        if (full_swap(r, in_use ? "full-0" : "full-1", o->need_s))
            in_use = !in_use, live++;
    }
    if (live == 0 && o->full > 0 && !interrupted)
        swaps_fail(r, "full size: none of %d went live", o->full);
    swaps_judge_limits(r);
    end(r);
    return 0;
}

// ---- start -----------------------------------------------------------------------------------

static int parse(struct options *o, int argc, char **argv)
{
    static const struct option longs[] = {
        {"build", 1, NULL, 'b'},  {"sim", 1, NULL, 'm'},  {"output", 1, NULL, 'o'},
        {"swaps", 1, NULL, 'n'},  {"seed", 1, NULL, 's'}, {"full", 1, NULL, 'f'},
        {"need-s", 1, NULL, 'd'}, {"tiny", 0, NULL, 't'}, {0}};

    *o = (struct options){
        .build = "build", .output = "build/swap", .swaps = 100, .seed = 1};
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;)
        if (c == 'b')
            o->build = optarg;
        else if (c == 'm')
            o->sim = optarg;
        else if (c == 'o')
            o->output = optarg;
        else if (c == 'n')
            o->swaps = atoi(optarg);
        else if (c == 's')
            o->seed = strtoull(optarg, NULL, 10);
        else if (c == 'f')
            o->full = atoi(optarg);
        else if (c == 't')
            o->tiny = true;
        else if (c == 'd')
            o->need_s = atof(optarg);
        else
            return -EINVAL;
    return optind == argc && o->swaps >= 0 && o->swaps <= SWAPS_MAX ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
    static struct swaps_run r;
    struct options o;
    int rc;

    if (parse(&o, argc, argv) != 0) {
        fprintf(stderr,
                "usage: swaps [--build DIR] [--sim DIR] [--output DIR] [--swaps N] "
                "[--seed S] [--full N] [--need-s S] [--tiny]\n");
        return 2;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    signal(SIGPIPE, SIG_IGN);
    r.random = o.seed;
    rc = swaps_world_new(&r.world, o.build, o.output);
    if (o.sim)
        r.world.sim_build = o.sim;
    if (rc == 0 && o.swaps > 0)
        rc = main_part(&r, &o);
    if (rc == 0 && o.swaps > 0)
        rc = terminate_part(&r);
    if (rc == 0 && o.full > 0 && !interrupted)
        rc = full_part(&r, &o);
    swaps_world_free(&r.world);
    if (rc != 0)
        fprintf(stderr, "swaps: %s\n", strerror(-rc));
    printf("%s\n", rc == 0 && r.failures == 0 && !interrupted ? "ok" : "FAILED");
    return rc == 0 && r.failures == 0 && !interrupted ? 0 : 1;
}
