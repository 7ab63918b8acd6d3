// What the parts of the soak share: the daemon under test as a process, and a robot (driver and
// two cameras) that misbehaves at random from a seed. All plain, one thread.
#ifndef SOAK_H
#define SOAK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/clock.h"

#define SOAK_JOINTS   6
#define SOAK_CAMERAS  2
#define SOAK_STATES   16
#define SOAK_PICTURES 24 // of each camera, taken from the simulator once

extern const char *const soak_joint[SOAK_JOINTS];
extern const char *const soak_camera[SOAK_CAMERAS];

uint64_t soak_random(uint64_t *state); // xorshift64*
uint64_t soak_below(uint64_t *state, uint64_t n);

// ---- the robot -------------------------------------------------------------------------------
enum soak_mood {
    SOAK_MILD,  // one bad message at a time, short silences: the arm goes on or holds
    SOAK_HARSH, // whatever stops an arm
    SOAK_CALM,  // everything connected, nothing wrong: for a sample that can be compared
};

struct soak_counts {
    uint64_t states, frames, commands;           // sent, sent, received
    uint64_t dropped, duplicate, reordered, bad; // joint states
    uint64_t bad_frames, silences, reconnects, restarts, harsh;
    uint64_t in_mode[SOAK_STATES]; // commands by mode
    int mode, reason;              // of the newest command
};

struct soak_robot;

// Takes pictures from the simulator in `build`, connects to the daemon's sockets in `runtime`.
// 0 or -errno, said on stderr.
int soak_robot_new(struct soak_robot **out, const char *build, const char *runtime,
                   uint64_t seed);
void soak_robot_free(struct soak_robot *r);
// 2 ms of the robot's life.
void soak_robot_step(struct soak_robot *r, enum soak_mood mood, ns_t now);
// A fresh daemon knows nothing of this robot's past.
void soak_robot_forget(struct soak_robot *r);
// No joint states until then.
void soak_robot_hush(struct soak_robot *r, ns_t until);
const struct soak_counts *soak_robot_counts(const struct soak_robot *r);

// ---- the daemon ------------------------------------------------------------------------------
struct soak_daemon {
    const char *build;
    char config[PATH_MAX], log[PATH_MAX], runtime[PATH_MAX];
    pid_t pid; // 0 = none
};
// Makes its directory of sockets and its configuration in `output`. 0 or -errno.
int soak_daemon_prepare(struct soak_daemon *d, const char *output);
void soak_daemon_clean(struct soak_daemon *d);
// Starts it, armed. 0 or -errno.
int soak_daemon_start(struct soak_daemon *d);
// SIGTERM; 0 when it ended by itself with status 0 within 10 s, else -errno, said on stderr.
int soak_daemon_stop(struct soak_daemon *d);
bool soak_daemon_lives(struct soak_daemon *d); // false: it ended, which is a failure
int soak_daemon_sample(const struct soak_daemon *d, long *rss_kib, int *descriptors);

// ---- the control socket ----------------------------------------------------------------------
struct soak_control { // all zero to begin with
    int fd;
    bool asking;
    ns_t asked_ns;
    char text[512]; // of the newest answer
};
enum soak_answer { SOAK_SILENT, SOAK_DONE, SOAK_REFUSED };
// Asks for actd.v1.Verb; what was asked before is forgotten. 0 or -errno.
int soak_control_ask(struct soak_control *c, const char *runtime, int verb, ns_t now);
// Has it been answered? No answer within 5 s is a refusal.
enum soak_answer soak_control_look(struct soak_control *c, ns_t now);

#endif
