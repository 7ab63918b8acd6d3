// Does recording make the loop late? 1 kHz, four cameras of 640x480 JPEG at 30 Hz, one daemon;
// recording is switched on and off by hand in turn, and every command says how late its tick woke.
// Beside it a twin of the loop says what the machine does. What was recorded is then replayed.
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/record/bench_replay.h"
#include "tests/record/tally.h"
#include "tests/swap/count.h"

#define SLICES    200
#define RUNNING   5 // actd.v1.Mode
#define START_S   60
#define QUANTILES 4
#define SETTLE    NS_PER_S // after a switch: nothing is counted
#define HZ        1000
#define WORSE     1.2 // p99 with recording to that without, at most: medians of slices,
#define SIGMAS    3   // unless slices differ as much by themselves: so much is chance
#define REPLAY    20  // times real time, at least

struct bench {
    struct rig_daemon daemon;
    struct rig_robot robot;
    struct twin *twin;
    struct histogram twin_slice, twin_lateness[2];
    double twin_p99[2][SLICES];
    struct rig_tally tally;
    char count[PATH_MAX], environment[PATH_MAX + 16], preload[PATH_MAX];
    const struct count_table *table;
    ns_t recorded_ns, cpu_ns; // while it recorded and was measured
    ns_t on_ns;               // while it recorded
    // Of each slice, us: lateness p50, p99, p99.9; p99 of the time until the command was made.
    double quantile[2][QUANTILES][SLICES];
    int slices[2];
};
static const double part[3] = {0.5, 0.99, 0.999};

static void pause_for(ns_t ns)
{
    clock_sleep_until(clock_now_ns() + ns);
}

// ---- allocations ---------------------------------------------------------------------------------

static void look_at_counts(struct bench *b)
{
    int fd = open(b->count, O_RDONLY | O_CLOEXEC);
    void *p =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *b->table, PROT_READ, MAP_SHARED, fd, 0);

    b->table = p == MAP_FAILED ? NULL : p;
    if (fd >= 0)
        close(fd);
}

// malloc, free, mmap by the thread of this name; 0 without the counting library.
static uint64_t counted(const struct bench *b, const char *name)
{
    uint64_t sum = 0;

    for (int i = 0; b->table != NULL && i < COUNT_THREADS; i++)
        if (strncmp(b->table->row[i].name, name, 15) == 0)
            for (int k = 0; k < COUNT_KINDS; k++)
                sum += b->table->row[i].count[k];
    return sum;
}

// ---- one run -------------------------------------------------------------------------------------

static int start(struct bench *b, const char *build, const char *policy)
{
    int rc = rig_daemon_new(&b->daemon, build, policy);

    if (rc != 0)
        return rc;
    b->daemon.control_hz = HZ;
    b->daemon.joint_hz = 500;
    b->daemon.cameras = RIG_CAMERAS;
    b->daemon.mode = "off";
    snprintf(b->count, sizeof b->count, "%s/count", b->daemon.work);
    snprintf(b->environment, sizeof b->environment, "SWAPS_COUNT=%s", b->count);
    snprintf(b->preload, sizeof b->preload, "%.4000s/swaps-count.so", build);
    if (access(b->preload, R_OK) == 0) {
        b->daemon.preload = b->preload;
        b->daemon.environment[0] = b->environment;
    }
    snprintf(b->robot.runtime, sizeof b->robot.runtime, "%s/run", b->daemon.work);
    b->robot.joint_hz = b->daemon.joint_hz;
    b->robot.frame_hz = 30;
    b->robot.cameras = RIG_CAMERAS;
    b->robot.period_ns = clock_period_ns(HZ);
    rc = rig_robot_start(&b->robot);
    rc = rc ? rc : rig_daemon_start(&b->daemon);
    for (int i = 0; rc == 0 && i < START_S * 20 && b->robot.mode != RUNNING; i++)
        pause_for(50 * NS_PER_MS);
    if (rc == 0 && b->robot.mode != RUNNING) {
        fprintf(stderr, "bench-record: the arm does not get to RUNNING (mode %d):\n",
                b->robot.mode);
        rig_show_log(&b->daemon);
        return -1;
    }
    look_at_counts(b);
    return rc;
}

static void merge(struct histogram *all, const struct histogram *h)
{
    for (int i = 0; i < HIST_BUCKETS; i++)
        atomic_fetch_add(&all->bucket[i], atomic_load(&h->bucket[i]));
    atomic_fetch_add(&all->count, atomic_load(&h->count));
    if (atomic_load(&h->max_ns) > atomic_load(&all->max_ns))
        atomic_store(&all->max_ns, atomic_load(&h->max_ns));
}

static void note_made(struct bench *b, bool on, size_t from, struct rig_samples *s)
{
    const struct rig_samples *margin = &b->robot.margin[on];

    s->n = 0;
    for (size_t i = from; i < margin->n; i++)
        rig_add(s, b->robot.period_ns - margin->v[i]);
    if (b->slices[on] < SLICES)
        b->quantile[on][3][b->slices[on]] = (double)rig_at(s, 0.99) * 1e-3;
}

// The machine's noise comes and goes: what is compared is the median over slices.
static void note(struct bench *b, bool on, size_t from)
{
    struct rig_samples *all = &b->robot.lateness[on], s = {0};

    for (size_t i = from; i < all->n; i++)
        rig_add(&s, all->v[i]);
    for (int k = 0; k < 3 && b->slices[on] < SLICES; k++)
        b->quantile[on][k][b->slices[on]] = (double)rig_at(&s, part[k]) * 1e-3;
    if (b->slices[on] < SLICES)
        b->twin_p99[on][b->slices[on]] =
            (double)hist_quantile(&b->twin_slice, 0.99) * 1e-3;
    merge(&b->twin_lateness[on], &b->twin_slice);
    note_made(b, on, from, &s);
    b->slices[on] += b->slices[on] < SLICES;
    free(s.v);
}

static void measure(struct bench *b, bool on, ns_t ns)
{
    memset(&b->twin_slice, 0, sizeof b->twin_slice);
    twin_note(b->twin, &b->twin_slice);
    rig_tally_measure(&b->tally, &b->robot, b->twin, on, ns);
    twin_note(b->twin, NULL);
}

static int slice(struct bench *b, bool on, ns_t ns)
{
    size_t from = b->robot.lateness[on].n;
    ns_t cpu, began = clock_now_ns();

    if (on && rig_ctl(&b->daemon, "record start") != 0) {
        fprintf(stderr, "bench-record: actctl record start fails; see %s/actctl.log\n",
                b->daemon.work);
        return -1;
    }
    pause_for(SETTLE);
    cpu = rig_thread_cpu(&b->daemon, "actd-recorder");
    measure(b, on, ns);
    note(b, on, from);
    if (!on)
        return 0;
    b->cpu_ns += rig_thread_cpu(&b->daemon, "actd-recorder") - cpu;
    b->recorded_ns += ns;
    b->on_ns += clock_now_ns() - began;
    return rig_ctl(&b->daemon, "record stop");
}

// ---- what came of it -----------------------------------------------------------------------------

static void line(const char *what, struct rig_samples *s, uint64_t late, uint64_t skipped)
{
    printf("  %-14s %8zu %9.1f %9.1f %9.1f %9.1f   late %llu, skipped %llu\n", what, s->n,
           (double)rig_at(s, 0.5) * 1e-3, (double)rig_at(s, 0.99) * 1e-3,
           (double)rig_at(s, 0.999) * 1e-3, (double)rig_at(s, 1) * 1e-3,
           (unsigned long long)late, (unsigned long long)skipped);
}

static void twin_line(const char *what, const struct histogram *h,
                      const struct twin_seen *s)
{
    printf("  %-14s %8llu %9.1f %9.1f %9.1f %9.1f   late %llu, skipped %llu\n", what,
           (unsigned long long)atomic_load(&h->count),
           (double)hist_quantile(h, 0.5) * 1e-3, (double)hist_quantile(h, 0.99) * 1e-3,
           (double)hist_quantile(h, 0.999) * 1e-3, (double)atomic_load(&h->max_ns) * 1e-3,
           (unsigned long long)s->late_period, (unsigned long long)s->skipped);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return n == 0 ? 0 : v[n / 2];
}

// By how many standard deviations those of `on` rank above those of `off` (Mann and Whitney).
static double ranked_above(const double *off, int n_off, const double *on, int n_on)
{
    double above = 0, n = (double)n_off * n_on;

    for (int i = 0; i < n_on; i++)
        for (int k = 0; k < n_off; k++)
            above += on[i] > off[k] ? 1 : on[i] < off[k] ? 0 : 0.5;
    return n > 0 ? (above - n / 2) / sqrt(n * (n_off + n_on + 1) / 12) : 0;
}

static double say_median(const char *what, double *off, int n_off, double *on, int n_on)
{
    double a = median(off, n_off), b = median(on, n_on);

    printf(" %s %.1f -> %.1f us (%.2f, %.1f sigma);", what, a, b, a > 0 ? b / a : 0,
           ranked_above(off, n_off, on, n_on));
    return a > 0 ? b / a : 1e9;
}

static bool worse(struct bench *b, int k, double ratio)
{
    return ratio > WORSE && ranked_above(b->quantile[0][k], b->slices[0],
                                         b->quantile[1][k], b->slices[1]) > SIGMAS;
}

// Is a p99 worse with recording, and not by chance?
static bool medians(struct bench *b)
{
    static const char *const name[] = {"p50", "p99", "p99.9", "command made p99"};
    double ratio[QUANTILES];
    int off = b->slices[0], on = b->slices[1];

    printf("  median over %d slices:", on);
    for (int k = 0; k < QUANTILES; k++)
        ratio[k] = say_median(name[k], b->quantile[0][k], off, b->quantile[1][k], on);
    printf(" its twin:");
    (void)say_median("p99", b->twin_p99[0], off, b->twin_p99[1], on);
    printf("\n");
    return worse(b, 1, ratio[1]) || worse(b, 3, ratio[3]);
}

// True = worse.
static bool lateness(struct bench *b)
{
    struct rig_robot *r = &b->robot;
    bool late;

    printf("wake-up lateness, us, 1 kHz, 4 x 640x480 JPEG at 30 Hz, slices in turn\n");
    printf("  %-14s %8s %9s %9s %9s %9s\n", "", "ticks", "p50", "p99", "p99.9", "max");
    line("not recording", &r->lateness[0], r->late[0], r->skipped[0]);
    line("recording", &r->lateness[1], r->late[1], r->skipped[1]);
    twin_line("twin, not", &b->twin_lateness[0], &b->tally.half[0].twin);
    twin_line("twin, rec.", &b->twin_lateness[1], &b->tally.half[1].twin);
    late = medians(b);
    printf("  time left of a tick when its command was made, p50: %.1f and %.1f us\n",
           (double)rig_at(&r->margin[0], 0.5) * 1e-3,
           (double)rig_at(&r->margin[1], 0.5) * 1e-3);
    return rig_tally_judge("ticks", &b->tally) != 0 || late;
}

static void say_recorded(const struct bench *b, const struct rig_log *log, uint64_t rt,
                         uint64_t io)
{
    printf("recorder: %.1f %% of a core, %.2f MB/s, %llu files\n",
           100 * (double)b->cpu_ns / (double)b->recorded_ns,
           1e3 * (double)log->bytes / (double)b->on_ns, (unsigned long long)log->files);
    printf(
        "recorded: %llu ticks (%llu missing), %llu frames (%llu lost), %llu joint states\n",
        (unsigned long long)log->ticks, (unsigned long long)log->skipped,
        (unsigned long long)log->frames, (unsigned long long)log->lost_frames,
        (unsigned long long)log->joints);
    if (b->table != NULL)
        printf("allocations while recording: rt %llu, io %llu\n", (unsigned long long)rt,
               (unsigned long long)io);
    else
        printf("allocations: not counted, swaps-count.so is not there\n");
    fputs(log->events, stdout);
}

static int fails(bool bad, const char *what)
{
    if (bad)
        printf("FAILED: %s\n", what);
    return bad;
}

static int report(struct bench *b, uint64_t rt, uint64_t io)
{
    struct rig_log log;
    struct bench_replay replay;
    int rc = rig_read(&log, b->daemon.record, ".mcap"), bad;
    bool late = lateness(b);

    say_recorded(b, &log, rt, io);
    bad = fails(rc != 0 || log.ticks == 0, "what was recorded cannot be read");
    bad += fails(late, "recording makes the loop late");
    bad += fails(log.lost_frames > 0 || log.frames == 0, "frames are lost");
    bad += fails(log.skipped > atomic_load(&b->robot.none), "ticks are lost");
    bad += fails(rt > 0, "the loop asked for memory");
    rc = bench_replay(b->daemon.build, b->daemon.record, &replay);
    if (rc == 0)
        printf("replay of the control core: %.0f s and %llu ticks in %.2f s (%.2f s of a "
               "core): %.0f times real time\n",
               replay.covered_s, (unsigned long long)replay.ticks, replay.wall_s,
               replay.cpu_s, replay.times);
    bad += fails(rc != 0, "what was recorded does not replay to the same");
    bad += fails(rc == 0 && replay.times < REPLAY, "replay is slow");
    return bad != 0;
}

int rig_bench(const char *build, int argc, char **argv)
{
    double seconds = argc > 0 ? atof(argv[0]) : 3;
    int pairs = argc > 1 ? atoi(argv[1]) : 12, rc;
    static struct bench b;
    char policy[PATH_MAX], granted[64];
    uint64_t rt = 0, io = 0;

    rc = rig_policy(policy, RIG_CAMERAS);
    rc = rc ? rc : start(&b, build, policy);
    rc = rc ? rc : twin_start(&b.twin, HZ, granted);
    if (rc == 0) {
        printf("the loop's twin: %s\n", granted);
        pause_for(2 * NS_PER_S);
        rt = counted(&b, "actd-loop");
        io = counted(&b, "actd-bus");
    }
    for (int i = 0; rc == 0 && i < 2 * pairs; i++)
        rc = slice(&b, (i + i / 2) % 2 == 1, (ns_t)(seconds * 1e9)); // off on on off …
    if (rc == 0) {
        rt = counted(&b, "actd-loop") - rt;
        io = counted(&b, "actd-bus") - io;
        if (b.robot.mode != RUNNING)
            printf("the arm ended in mode %d, not RUNNING\n", b.robot.mode);
        rc = rig_daemon_end(&b.daemon);
    }
    twin_stop(b.twin);
    if (rc == 0)
        rc = report(&b, rt, io);
    else
        rig_show_log(&b.daemon);
    rig_robot_stop(&b.robot);
    rig_daemon_free(&b.daemon);
    rig_policy_remove(policy);
    return rc != 0;
}
