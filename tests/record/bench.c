// Does recording make the loop late? 1 kHz, four cameras of 640x480 JPEG at 30 Hz, one daemon;
// recording is switched on and off by hand in turn, and every command says how late its tick woke.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/record/rig.h"
#include "tests/swap/count.h"

#define SLICES  200
#define RUNNING 5 // actd.v1.Mode
#define START_S 60
#define SETTLE  NS_PER_S // after a switch: nothing is counted

struct bench {
    struct rig_daemon daemon;
    struct rig_robot robot;
    char count[PATH_MAX], environment[PATH_MAX + 16], preload[PATH_MAX];
    const struct count_table *table;
    ns_t recorded_ns, cpu_ns;      // while it recorded and was measured
    ns_t on_ns;                    // while it recorded
    double quantile[2][3][SLICES]; // of each slice: p50, p99, p99.9, us
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
    b->daemon.control_hz = 1000;
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
    b->robot.period_ns = NS_PER_MS;
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

// The machine's noise comes and goes: what is compared is the median over slices.
static void note(struct bench *b, bool on, size_t from)
{
    struct rig_samples *all = &b->robot.lateness[on], s = {0};

    for (size_t i = from; i < all->n; i++)
        rig_add(&s, all->v[i]);
    for (int k = 0; k < 3 && b->slices[on] < SLICES; k++)
        b->quantile[on][k][b->slices[on]] = (double)rig_at(&s, part[k]) * 1e-3;
    b->slices[on] += b->slices[on] < SLICES;
    free(s.v);
}

static int slice(struct bench *b, bool on, ns_t ns)
{
    size_t from = b->robot.lateness[on].n;
    ns_t cpu, began = clock_now_ns();

    atomic_store(&b->robot.set, -1);
    if (on && rig_ctl(&b->daemon, "record start") != 0) {
        fprintf(stderr, "bench-record: actctl record start fails; see %s/actctl.log\n",
                b->daemon.work);
        return -1;
    }
    pause_for(SETTLE);
    cpu = rig_thread_cpu(&b->daemon, "actd-recorder");
    atomic_store(&b->robot.set, on);
    pause_for(ns);
    atomic_store(&b->robot.set, -1);
    pause_for(10 * NS_PER_MS); // the robot may be adding one
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

static void medians(struct bench *b)
{
    static const char *const name[] = {"p50", "p99", "p99.9"};

    printf("  median over slices:");
    for (int k = 0; k < 3; k++) {
        double off = median(b->quantile[0][k], b->slices[0]),
               on = median(b->quantile[1][k], b->slices[1]);

        printf("%s %s %.1f -> %.1f us", k > 0 ? "," : "", name[k], off, on);
    }
    printf("\n");
}

static int report(struct bench *b, uint64_t rt, uint64_t io)
{
    struct rig_robot *r = &b->robot;
    struct rig_log log;
    int rc = rig_read(&log, b->daemon.record, ".mcap");

    printf("wake-up lateness, us, 1 kHz, 4 x 640x480 JPEG at 30 Hz, slices in turn\n");
    printf("  %-14s %8s %9s %9s %9s %9s\n", "", "ticks", "p50", "p99", "p99.9", "max");
    line("not recording", &r->lateness[0], r->late[0], r->skipped[0]);
    line("recording", &r->lateness[1], r->late[1], r->skipped[1]);
    medians(b);
    printf("  time left of a tick when its command was made, p50: %.1f and %.1f us\n",
           (double)rig_at(&r->margin[0], 0.5) * 1e-3,
           (double)rig_at(&r->margin[1], 0.5) * 1e-3);
    printf("recorder: %.1f %% of a core, %.2f MB/s, %llu files\n",
           100 * (double)b->cpu_ns / (double)b->recorded_ns,
           1e3 * (double)log.bytes / (double)b->on_ns, (unsigned long long)log.files);
    printf(
        "recorded: %llu ticks (%llu missing), %llu frames (%llu lost), %llu joint states\n",
        (unsigned long long)log.ticks, (unsigned long long)log.skipped,
        (unsigned long long)log.frames, (unsigned long long)log.lost_frames,
        (unsigned long long)log.joints);
    if (b->table != NULL)
        printf("allocations while recording: rt %llu, io %llu\n", (unsigned long long)rt,
               (unsigned long long)io);
    else
        printf("allocations: not counted, swaps-count.so is not there\n");
    fputs(log.events, stdout);
    if (rc != 0 || log.lost_frames > 0 || log.frames == 0 || rt > 0 ||
        log.skipped > r->skipped[1] + r->skipped[0]) {
        printf("FAILED: frames or ticks are lost, or rt allocated\n");
        return 1;
    }
    return 0;
}

int rig_bench(const char *build, int argc, char **argv)
{
    double seconds = argc > 0 ? atof(argv[0]) : 3;
    int pairs = argc > 1 ? atoi(argv[1]) : 12, rc;
    static struct bench b;
    char policy[PATH_MAX];
    uint64_t rt = 0, io = 0;

    rc = rig_policy(policy, RIG_CAMERAS);
    rc = rc ? rc : start(&b, build, policy);
    if (rc == 0) {
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
    if (rc == 0)
        rc = report(&b, rt, io);
    else
        rig_show_log(&b.daemon);
    rig_robot_stop(&b.robot);
    rig_daemon_free(&b.daemon);
    rig_policy_remove(policy);
    return rc != 0;
}
