// infer_trial: a candidate thinks beside the policy that drives. It is given the very
// observation that the running policy has just used, on the same thread, after that one's
// chunk has been handed over, and only while the chunk in use leaves the time for it: the
// next chunk of the running policy must not come late because somebody else was tried. An
// arm that does not follow a chunk has the time always.
#ifndef ACTD_INFER_TRIAL_H
#define ACTD_INFER_TRIAL_H

#include "daemon/infer.h"

#define INFER_TRIALS 100 // at most

enum infer_trial_state {
    TRIAL_NONE,
    TRIAL_READY,   // the next one is due when there is an observation, and room
    TRIAL_THINKS,  // one is being made
    TRIAL_OVER,    // as many as were wanted
    TRIAL_REFUSED, // the candidate failed: why
};

// What the next trial waits for, as of the worker's last look.
enum infer_trial_wait { TRIAL_NOT_WAITING, TRIAL_FOR_OBSERVATION, TRIAL_FOR_ROOM };

struct infer_tried {
    enum infer_trial_state state;
    enum infer_trial_wait waits_for;
    int done;
    ns_t ns[INFER_TRIALS];       // that each of the `done` took
    char why[INFER_FAILURE_MAX]; // when refused
};

// plain, one caller; none may be on. `trials` inferences (at most INFER_TRIALS) of the
// seat, which guess_ns is thought to be enough for until the first has been timed. Of the
// last one both chunks are kept, rows in the robot's order and rad: running (running's C,
// n), candidate (C, n). What is pointed to stays the caller's, until infer_try_end has
// returned 0.
void infer_try(struct infer *w, const struct infer_seat *seat, int trials, ns_t guess_ns,
               float *running, float *candidate);
// plain. How it goes.
void infer_tried(const struct infer *w, struct infer_tried *out);
// plain. No more of them: the worker has let go of everything. 0, or -EBUSY while one is
// being made: ask again.
int infer_try_end(struct infer *w);

// The longest of the worker's recent inferences by itself, 0 = none yet. plain.
ns_t infer_recent_ns(const struct infer *w);

// The steps, like those of an inference: infer; one caller.
// Is one to be made now?
bool infer_try_due(struct infer *w, ns_t now_ns);
// Begins it at now_ns and returns what the candidate says. 0, or -errno.
int infer_try_think(struct infer *w, ns_t now_ns);
// It is over at now_ns.
void infer_try_finish(struct infer *w, ns_t now_ns);

#endif
