// Disks that are full, broken, slow or gone, under the daemon as it is: the robot must not notice.
// Each trouble is looked at in turn with no recording at all, in the same run: there may be no
// late tick more. Then the trouble goes away, and recording must be going on again.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/record/disk.h"
#include "tests/record/rig.h"

#define RUNNING 5
#define ROUNDS  3 // a machine that others use, too, may be late by itself

enum trouble { FULL_TMPFS, DEV_FULL, BROKEN, SLOW, REMOVED };
static const char *const name[] = {"a full tmpfs", "no space (as /dev/full)",
                                   "every write fails (EIO)", "every write takes 5 s",
                                   "the directory is removed"};

struct scene {
    struct rig_daemon daemon;
    struct rig_robot robot;
    struct disk_orders *orders;
    char orders_file[PATH_MAX], environment[PATH_MAX + 16], preload[PATH_MAX];
    enum trouble trouble;
    double seconds;
    bool mounted;
};

static void pause_for(double seconds)
{
    clock_sleep_until(clock_now_ns() + (ns_t)(seconds * 1e9));
}

static bool wait_logged(const struct scene *s, const char *text, double seconds)
{
    for (ns_t until = clock_now_ns() + (ns_t)(seconds * 1e9); clock_now_ns() < until;) {
        if (rig_logged(&s->daemon, text))
            return true;
        pause_for(0.1);
    }
    return false;
}

// ---- trouble -------------------------------------------------------------------------------------

static int mount_small(struct scene *s, const char *options)
{
    if (mount("tmpfs", s->daemon.record, "tmpfs", s->mounted ? MS_REMOUNT : 0, options) !=
        0)
        return -errno;
    s->mounted = true;
    return 0;
}

static int make_orders(struct scene *s)
{
    int fd;

    snprintf(s->orders_file, sizeof s->orders_file, "%s/orders", s->daemon.work);
    snprintf(s->environment, sizeof s->environment, "RECORD_DISK=%s", s->orders_file);
    snprintf(s->preload, sizeof s->preload, "%.4000s/record-disk.so", s->daemon.build);
    fd = open(s->orders_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *s->orders) != 0)
        return -errno;
    s->orders = mmap(NULL, sizeof *s->orders, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    s->daemon.preload = s->preload;
    s->daemon.environment[0] = s->environment;
    return s->orders == MAP_FAILED ? -errno : 0;
}

static void remove_record(const struct scene *s)
{
    char command[PATH_MAX + 16];

    snprintf(command, sizeof command, "rm -rf '%.4000s'", s->daemon.record);
    if (system(command) != 0)
        fprintf(stderr, "record-disk: cannot remove %s\n", s->daemon.record);
}

static int begin_trouble(struct scene *s)
{
    switch (s->trouble) {
    case FULL_TMPFS:
        return 0; // by itself, in two seconds
    case DEV_FULL:
        s->orders->error = ENOSPC;
        return 0;
    case BROKEN:
        s->orders->error = EIO;
        return 0;
    case SLOW:
        s->orders->sleep_ms = 5000;
        return 0;
    case REMOVED:
        remove_record(s);
        return 0;
    }
    return -EINVAL;
}

static int end_trouble(struct scene *s)
{
    if (s->trouble == FULL_TMPFS)
        return mount_small(s, "size=256m");
    if (s->trouble != REMOVED)
        s->orders->error = s->orders->sleep_ms = 0;
    return 0;
}

// ---- one scene -----------------------------------------------------------------------------------

static int start(struct scene *s, const char *build, const char *policy)
{
    int rc = rig_daemon_new(&s->daemon, build, policy);

    rc = rc ? rc : make_orders(s);
    if (rc == 0 && s->trouble == FULL_TMPFS)
        rc = mkdir(s->daemon.record, 0750) == 0 ? mount_small(s, "size=4m") : -errno;
    if (rc != 0)
        return rc;
    s->daemon.mode = "off";
    s->daemon.cameras = s->robot.cameras = 2;
    snprintf(s->robot.runtime, sizeof s->robot.runtime, "%s/run", s->daemon.work);
    s->robot.joint_hz = 200;
    s->robot.frame_hz = 30;
    s->robot.period_ns = 5 * NS_PER_MS;
    rc = rig_robot_start(&s->robot);
    rc = rc ? rc : rig_daemon_start(&s->daemon);
    for (int i = 0; rc == 0 && i < 1200 && s->robot.mode != RUNNING; i++)
        pause_for(0.05);
    return rc ? rc : s->robot.mode == RUNNING ? 0 : -ETIMEDOUT;
}

static void measure(struct scene *s, int set)
{
    atomic_store(&s->robot.set, set);
    pause_for(s->seconds);
    atomic_store(&s->robot.set, -1);
}

// True = no more ticks were late or skipped with it than without.
static bool compare(struct scene *s)
{
    struct rig_robot *r = &s->robot;
    uint64_t without, with;

    for (int i = 0; i < 2; i++)
        r->late[i] = r->skipped[i] = r->lateness[i].n = 0;
    measure(s, 0);
    if (rig_ctl(&s->daemon, "record start") != 0)
        return false;
    pause_for(0.7);
    if (begin_trouble(s) != 0)
        return false;
    measure(s, 1);
    without = r->late[0] + r->skipped[0];
    with = r->late[1] + r->skipped[1];
    printf(
        "  %-26s late or skipped ticks: %llu of %zu without recording, %llu of %zu with; "
        "worst %.0f and %.0f us\n",
        name[s->trouble], (unsigned long long)without, r->lateness[0].n,
        (unsigned long long)with, r->lateness[1].n,
        (double)rig_at(&r->lateness[0], 1) * 1e-3,
        (double)rig_at(&r->lateness[1], 1) * 1e-3);
    return with <= without;
}

// It says what was wrong, comes back by itself, and what it wrote can be read.
static int aftermath(struct scene *s)
{
    bool said, back;
    struct rig_log log;
    int rc;

    // A slow disk is no failure: what did not fit is said when it is over, or nothing was lost.
    said = s->trouble == SLOW || wait_logged(s, "recording: ", 5);
    rc = end_trouble(s);
    back = s->trouble == SLOW || wait_logged(s, "recording: again", 40);
    pause_for(s->trouble == SLOW ? 12 : 2);
    rc = rc ? rc : rig_ctl(&s->daemon, "record stop");
    pause_for(1);
    rc = rc ? rc : rig_daemon_end(&s->daemon);
    rc = rc ? rc : rig_read(&log, s->daemon.record, ".mcap");
    if (rc == 0 && said && back && log.ticks > 0) {
        printf("    %llu files, %llu ticks, %llu frames in them\n%s",
               (unsigned long long)log.files, (unsigned long long)log.ticks,
               (unsigned long long)log.frames, log.events);
        return 0;
    }
    printf("  FAILED: status %d, said %d, back %d\n", rc, said, back);
    rig_show_log(&s->daemon);
    return -1;
}

static int scene(const char *build, const char *policy, enum trouble t, double seconds,
                 bool last)
{
    static struct scene s;
    bool same;
    int rc;

    memset(&s, 0, sizeof s);
    s.trouble = t;
    s.seconds = seconds;
    rc = start(&s, build, policy);
    if (rc == -EPERM && t == FULL_TMPFS) {
        printf("  %-26s SKIPPED: mounting a tmpfs needs root\n", name[t]);
        rig_daemon_free(&s.daemon);
        return 0;
    }
    same = rc == 0 && compare(&s);
    if (rc != 0) {
        printf("  %s: cannot begin: %s\n", name[t], strerror(-rc));
        rig_show_log(&s.daemon);
    } else
        rc = aftermath(&s);
    rig_robot_stop(&s.robot);
    if (s.mounted)
        (void)umount2(s.daemon.record, MNT_DETACH);
    if (s.orders != NULL && s.orders != MAP_FAILED)
        munmap(s.orders, sizeof *s.orders);
    rig_daemon_free(&s.daemon);
    return rc != 0 ? rc : same ? 0 : last ? -1 : 1;
}

// Arguments: seconds of each half.
int rig_disk(const char *build, int argc, char **argv)
{
    double seconds = argc > 0 ? atof(argv[0]) : 12;
    char policy[PATH_MAX];
    int bad = 0;

    // Mounts of our own, that go with us.
    if (unshare(CLONE_NEWNS) == 0)
        (void)mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    if (rig_policy(policy, 2) != 0)
        return 1;
    printf("troubled disks, 200 Hz, 2 cameras, %.0f s of each\n", seconds);
    for (int t = FULL_TMPFS; t <= REMOVED; t++) {
        int rc = 1;

        for (int i = 1; i <= ROUNDS && rc == 1; i++)
            rc = scene(build, policy, (enum trouble)t, seconds, i == ROUNDS);
        bad += rc != 0;
    }
    rig_policy_remove(policy);
    printf("%s\n", bad == 0 ? "the robot did not notice" : "FAILED");
    return bad != 0;
}
