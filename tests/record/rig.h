// The recorder in the daemon as it is: a robot that publishes joint states and stored pictures,
// the daemon as a process, and a reader of what it left.
#ifndef ACTD_TEST_RECORD_RIG_H
#define ACTD_TEST_RECORD_RIG_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/clock.h"

#define RIG_JOINTS  6
#define RIG_CAMERAS 4
extern const char *const rig_joint[RIG_JOINTS];
extern const char *const rig_camera[RIG_CAMERAS];

// ---- samples -----------------------------------------------------------------------------------
struct rig_samples {
    ns_t *v;
    size_t n, room;
};
void rig_add(struct rig_samples *s, ns_t v);
ns_t rig_at(struct rig_samples *s, double part); // sorts; 1 = the largest

// ---- the robot (rig_robot.c) ---------------------------------------------------------------------
struct rig_robot {
    char runtime[128];
    double joint_hz, frame_hz; // frame_hz 0 = no cameras
    int cameras;
    // Of every command that came, into the set that is chosen at the time.
    struct rig_samples lateness[2], margin[2];
    uint64_t late[2];    // commands whose tick woke a whole period late, or more
    uint64_t skipped[2]; // ticks that made none
    uint64_t gaps[2];    // how often in a row
    ns_t period_ns;
    _Atomic int set;         // 0, 1; -1 = none
    _Atomic int mode;        // of the newest command
    _Atomic uint64_t tick;   // likewise
    _Atomic uint64_t none;   // ticks that made none, ever
    _Atomic uint64_t frames; // sent
    _Atomic bool stop;
    pthread_t thread;
    struct rig_pictures *pictures;
};
int rig_robot_start(struct rig_robot *r);
// Commands that come in the next `ns` go into the set.
void rig_robot_measure(struct rig_robot *r, int set, ns_t ns);
void rig_robot_stop(struct rig_robot *r);

// ---- the daemon (rig_daemon.c) -------------------------------------------------------------------
struct rig_daemon {
    const char *build;
    char work[64]; // its directory
    char policy[PATH_MAX];
    char record[PATH_MAX]; // where recordings go; default work/record
    double control_hz, joint_hz;
    int cameras;
    const char *mode;    // record.mode
    const char *more;    // more lines of its section record, or ""
    const char *preload; // LD_PRELOAD, or NULL
    const char *environment[4];
    pid_t pid;
    long log_from; // where rig_log_lines begins
};
int rig_policy(char dir[PATH_MAX], int cameras); // random weights; rig_policy_remove's
void rig_policy_remove(const char *dir);
int rig_daemon_new(struct rig_daemon *d, const char *build, const char *policy);
int rig_daemon_start(struct rig_daemon *d);
int rig_daemon_end(struct rig_daemon *d); // SIGTERM; its status
void rig_daemon_free(struct rig_daemon *d);
int rig_ctl(const struct rig_daemon *d, const char *arguments); // actctl's status
// Each line of its log since rig_log_forget that has `text` in it: from there on. How many.
int rig_log_lines(const struct rig_daemon *d, const char *text,
                  void (*line)(void *arg, const char *from_text), void *arg);
void rig_log_forget(struct rig_daemon *d);
void rig_show_log(const struct rig_daemon *d);
// Processor time of its thread of this name; -1 = there is none.
ns_t rig_thread_cpu(const struct rig_daemon *d, const char *name);

// ---- what is in the logs (rig_read.c) ------------------------------------------------------------
struct rig_log {
    uint64_t files, bytes, ticks, skipped, frames, inputs, lost_frames, joints, messages;
    ns_t first_tick_ns, last_tick_ns; // CLOCK_MONOTONIC
    uint64_t
        gaps; // ticks whose number does not follow, beyond what the loop skipped itself
    char events[4096];
};
// All files of the directory that end so; each must be readable to its end. 0 or -errno, said.
int rig_read(struct rig_log *out, const char *directory, const char *end);
int rig_read_file(struct rig_log *out, const char *path);

int rig_bench(const char *build, int argc, char **argv);
int rig_kill(const char *build, int argc, char **argv);
int rig_disk(const char *build, int argc, char **argv);

#endif
