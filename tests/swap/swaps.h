// What the parts of the swap test share: a daemon and a simulated arm as processes, a client of
// the control socket, policies good and bad, and an independent eye on the commands. All plain.
#ifndef SWAPS_H
#define SWAPS_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "actd/v1/control.pb-c.h"
#include "daemon/clock.h"
#include "tests/swap/count.h"

#define SWAPS_JOINTS 6
#define SWAPS_GOOD   3 // policies that can take over, of one shape
#define SWAPS_HZ     200.0
#define SWAPS_NAME   64

uint64_t swaps_random(uint64_t *state); // splitmix64
uint64_t swaps_below(uint64_t *state, uint64_t n);

// ---- a client of the control socket ----------------------------------------------------------
struct swaps_client {
    int fd; // -1 = closed
    uint64_t id;
    uint8_t *buffer;
};
// 0 or -errno.
int swaps_connect(struct swaps_client *c, const char *socket);
void swaps_disconnect(struct swaps_client *c);
struct swaps_ask {
    Actd__V1__Verb verb;
    const char *name;
    bool force;
    const char *allow; // one word, NULL = none
};
int swaps_send(struct swaps_client *c, const struct swaps_ask *ask);
// The next reply to what was sent last, PROGRESS included; NULL after timeout_ms or when closed.
// The caller's to free with actd__v1__control_reply__free_unpacked(m, NULL).
Actd__V1__ControlReply *swaps_receive(struct swaps_client *c, int timeout_ms);
// Sends, waits for the end, asks again when it was too fast. NULL when there is no answer.
Actd__V1__ControlReply *swaps_do(struct swaps_client *c, const struct swaps_ask *ask);
void swaps_free_reply(Actd__V1__ControlReply *m); // NULL is fine

// ---- processes -------------------------------------------------------------------------------
struct swaps_world {
    const char *build, *sim_build;
    char work[PATH_MAX];     // everything of this run; removed at the end
    char policies[PATH_MAX]; // swap.directory
    char socket[PATH_MAX], config[PATH_MAX], log[PATH_MAX], count[PATH_MAX];
    int picture; // the front camera's size in pixels, 0 = as reach was trained
    pid_t daemon, sim;
    const struct count_table *counted; // of the daemon, NULL when it is not counted
};
int swaps_world_new(struct swaps_world *w, const char *build, const char *output);
// The daemon, with policies/NAME, and the arm; armed and RUNNING when it returns. 0 or -errno.
int swaps_world_start(struct swaps_world *w, const char *name);
int swaps_world_arm(struct swaps_client *c); // READY -> RUNNING; 0 or -errno
// Status of the daemon's end, -errno when it had to be killed.
int swaps_world_stop(struct swaps_world *w);
int swaps_world_wait(struct swaps_world *w, int seconds); // for an end that was asked for
void swaps_world_free(struct swaps_world *w);
int swaps_world_sample(const struct swaps_world *w, long *rss_kib, int *descriptors);
// Allocations so far of the threads whose names begin so.
uint64_t swaps_world_counted(const struct swaps_world *w, const char *name);

// ---- policies --------------------------------------------------------------------------------
// Three of one shape: reach, and reach with the lowest bit of some weights turned.
int swaps_make_good(const struct swaps_world *w, uint64_t seed);
// Three small ACTs for the arm, w->picture pixels wide: where everything is slow.
int swaps_make_tiny(const struct swaps_world *w);
// Two ACTs of 52 million parameters for the arm, at 224×224: "full-0" and "full-1".
int swaps_make_full(const struct swaps_world *w);

// One kind of bad policy.
struct swaps_bad {
    const char *what;
    const char *name; // what is asked for; NULL: "bad", made by `make`
    int (*make)(const struct swaps_world *w, uint64_t *random);
    const char *told[3]; // what the refusal must name, each
};
extern const struct swaps_bad swaps_bad[];
extern const int swaps_bad_count;
void swaps_remove_bad(const struct swaps_world *w);
// The name of the tensor that the newest bad policy was spoilt at, "" = none.
const char *swaps_spoilt(void);

// ---- the wire --------------------------------------------------------------------------------
struct swaps_seen {                // of commands, since it began
    uint64_t commands, lost;       // received; missing by their sequence
    uint64_t ticks;                // from the first to the newest
    uint64_t skipped, gaps;        // ticks without a command, and how often in a row
    uint64_t late_ms, late_period; // woke more than 1 ms, a period late
    uint64_t broken;               // commands beyond a limit
    uint64_t in_mode[16];
    double moved_rad;        // all joints, all ways
    double worst_v, worst_a; // of the limit, 1 = at it
    int mode, reason;
    char first_broken[256];
};
struct swaps_eye;
int swaps_eye_open(struct swaps_eye **out, const char *runtime);
void swaps_eye_close(struct swaps_eye *e);
void swaps_eye_look(struct swaps_eye *e, struct swaps_seen *out);
// Ticks without a command among `tick` and its neighbours, one before and two after.
int swaps_eye_missed(struct swaps_eye *e, uint64_t tick);
struct swaps_seen swaps_between(const struct swaps_seen *from,
                                const struct swaps_seen *to);

// As swaps_world writes them into the configuration.
extern const char *const swaps_joint[SWAPS_JOINTS];
extern const double swaps_min[SWAPS_JOINTS], swaps_max[SWAPS_JOINTS];
#define SWAPS_VELOCITY     3.0
#define SWAPS_ACCELERATION 40.0

#endif
