// Disks that are full, broken, slow or gone, under the daemon as it is: the robot must not notice.
// Time goes in rounds: half without recording, half with it and the trouble; and all the time a
// twin of the loop, which does nothing, has the same core. Of a round, the trouble goes away in the
// end, and recording must go on by itself, and say what was lost.
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "tests/record/disk_scene.h"

#define RUNNING 5
#define HZ      200
#define BACK_S  40 // the recorder tries again after 1, 2, 4 … 30 s
#define WHOLE_S 20 // and makes whole what it could not end

static void pause_for(double seconds)
{
    clock_sleep_until(clock_now_ns() + (ns_t)(seconds * 1e9));
}

static int start(struct disk_scene *s, const char *build, const char *policy)
{
    char granted[64] = "";
    int rc = rig_daemon_new(&s->daemon, build, policy);

    rc = rc ? rc : disk_trouble_prepare(s);
    if (rc != 0)
        return rc;
    s->daemon.mode = "off";
    s->daemon.cameras = s->robot.cameras = 2;
    snprintf(s->robot.runtime, sizeof s->robot.runtime, "%s/run", s->daemon.work);
    s->robot.joint_hz = HZ;
    s->robot.frame_hz = 30;
    s->robot.period_ns = clock_period_ns(HZ);
    rc = rig_robot_start(&s->robot);
    rc = rc ? rc : rig_daemon_start(&s->daemon);
    for (int i = 0; rc == 0 && i < 1200 && s->robot.mode != RUNNING; i++)
        pause_for(0.05);
    rc = rc ? rc : s->robot.mode == RUNNING ? 0 : -ETIMEDOUT;
    return rc ? rc : twin_start(&s->twin, HZ, granted);
}

// ---- one round -----------------------------------------------------------------------------------

static bool has_parts(const char *directory)
{
    DIR *d = opendir(directory);
    struct dirent *e;
    bool found = false;

    while (d != NULL && !found && (e = readdir(d)) != NULL)
        found = strstr(e->d_name, ".part") != NULL;
    if (d != NULL)
        closedir(d);
    return found;
}

// A slow disk is never said to be back: it was only slow.
static void wait_until_back(const struct disk_scene *s)
{
    for (int i = 0; s->trouble != SLOW && i < BACK_S * 10; i++) {
        if (rig_log_lines(&s->daemon, "recording: again", NULL, NULL) > 0)
            break;
        pause_for(0.1);
    }
    pause_for(s->trouble == SLOW ? 6 : 2);
}

static uint64_t ticks_now(const struct disk_scene *s)
{
    return atomic_load(&s->robot.tick) - atomic_load(&s->robot.none);
}

// Its memory is touched first; a mark is taken when there is a tape to write it on.
static int begin_recording(const struct disk_scene *s)
{
    int rc = rig_ctl(&s->daemon, "record start");

    for (int i = 0; rc == 0 && i < 20; i++)
        if (rig_ctl(&s->daemon, "record mark begun") == 0)
            return 0;
    return rc ? rc : -ETIMEDOUT;
}

static int record(struct disk_scene *s)
{
    uint64_t before = ticks_now(s), begun;
    int rc = begin_recording(s);

    pause_for(0.5);
    begun = ticks_now(s);
    rc = rc ? rc : disk_trouble_begin(s);
    if (rc != 0)
        return rc;
    rig_tally_measure(&s->tally, &s->robot, s->twin, 1, s->half_ns);
    rc = disk_trouble_end(s);
    wait_until_back(s);
    s->least = ticks_now(s) - begun;
    s->stopped_ns = clock_now_ns();
    rc = rc ? rc : rig_ctl(&s->daemon, "record stop");
    s->most = ticks_now(s) - before;
    for (int i = 0; i < WHOLE_S * 10 && has_parts(s->daemon.record); i++)
        pause_for(0.1);
    pause_for(1.2); // what found no room on the tape is said a second later
    return rc;
}

static int one_round(struct disk_scene *s)
{
    int rc;

    rig_log_forget(&s->daemon);
    rig_tally_measure(&s->tally, &s->robot, s->twin, 0, s->half_ns);
    rc = record(s);
    rc = rc ? rc : disk_judge_log(s);
    if (rc == 0 && s->robot.mode != RUNNING)
        printf("    the arm is in mode %d, not RUNNING\n", s->robot.mode);
    return rc ? rc : disk_trouble_clear(s);
}

// ---- scenes --------------------------------------------------------------------------------------

static int play(struct disk_scene *s, int rounds)
{
    int rc = 0;

    printf("  %s\n", disk_trouble_name[s->trouble]);
    for (int i = 0; i < rounds && rc == 0; i++)
        rc = one_round(s);
    if (rc == 0)
        rc = rig_daemon_end(&s->daemon);
    if (rc != 0) {
        printf("  FAILED: status %d\n", rc);
        rig_show_log(&s->daemon);
        return -1;
    }
    return rig_tally_judge("all of it", &s->tally);
}

static int scene(const char *build, const char *policy, enum disk_trouble t, ns_t half_ns,
                 int rounds, struct rig_tally *sum)
{
    static struct disk_scene s;
    int rc;

    memset(&s, 0, sizeof s);
    s.trouble = t;
    s.half_ns = half_ns;
    rc = start(&s, build, policy);
    if (rc == -EPERM && t == FULL_TMPFS) {
        printf("  %s: SKIPPED, mounting a tmpfs needs root\n", disk_trouble_name[t]);
        rc = 0;
    } else if (rc != 0) {
        printf("  %s: cannot begin: %s\n", disk_trouble_name[t], strerror(-rc));
        rig_show_log(&s.daemon);
    } else {
        rc = play(&s, rounds);
    }
    twin_stop(s.twin);
    rig_robot_stop(&s.robot);
    disk_trouble_free(&s);
    rig_daemon_free(&s.daemon);
    rig_tally_add(sum, &s.tally);
    return rc;
}

// Arguments: seconds of each half, rounds; the number of the one trouble, from 0.
int rig_disk(const char *build, int argc, char **argv)
{
    double seconds = argc > 0 ? atof(argv[0]) : 8;
    int rounds = argc > 1 ? atoi(argv[1]) : 4, only = argc > 2 ? atoi(argv[2]) : -1,
        bad = 0;
    static struct rig_tally sum;
    char policy[PATH_MAX];

    // Mounts of our own, that go with us.
    if (unshare(CLONE_NEWNS) == 0)
        (void)mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    if (rig_policy(policy, 2) != 0)
        return 1;
    printf(
        "troubled disks, %d Hz, 2 cameras, %d rounds of %.0f s without recording and %.0f "
        "s with it\n",
        HZ, rounds, seconds, seconds);
    for (int t = FULL_TMPFS; t < DISK_TROUBLES; t++)
        if (only < 0 || t == only)
            bad += scene(build, policy, (enum disk_trouble)t, (ns_t)(seconds * 1e9),
                         rounds, &sum) != 0;
    bad += rig_tally_judge("every trouble", &sum) != 0;
    rig_policy_remove(policy);
    printf("%s\n", bad == 0 ? "the robot did not notice" : "FAILED");
    return bad != 0;
}
