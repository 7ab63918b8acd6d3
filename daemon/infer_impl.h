// What infer.c (the worker), infer_observe.c (what it looks at, and when) and
// infer_trial.c (a candidate beside it) share. Nobody else includes this.
#ifndef ACTD_INFER_IMPL_H
#define ACTD_INFER_IMPL_H

#include <pthread.h>

#include "daemon/infer.h"
#include "daemon/infer_trial.h"

#define INFER_LATENCIES 32 // recent ones whose maximum decides when to start
// Outside RUNNING a chunk is refreshed so often at least.
#define INFER_IDLE_NS (200 * NS_PER_MS)

// Written by plain while TRIAL_NONE, TRIAL_OVER or TRIAL_REFUSED, by infer otherwise: the
// state changes hands with it.
struct infer_trial {
    _Atomic int state;           // enum infer_trial_state
    _Atomic int waits_for, done; // for plain to look at
    _Atomic bool ended;          // plain wants no more
    const struct infer_seat *seat;
    int wanted;
    ns_t longest_ns; // as guessed, then as measured
    float *running, *candidate;
    ns_t ns[INFER_TRIALS];
    char why[INFER_FAILURE_MAX];
    // infer's.
    struct policy_image image[POLICY_MAX_CAMERAS]; // in the candidate's order
    ns_t since_ns;
    int rc;
    bool blind; // a frame for it was missing, which is not its fault
};

struct infer {
    struct infer_config cfg;
    const struct infer_seat *seat; // infer: who thinks
    _Atomic(const struct infer_seat *) offered, seated;
    struct camera *const *cameras;
    struct board *board;
    pthread_t thread;
    _Atomic bool stop;
    struct infer_counts counts;
    struct slot failure;        // char[INFER_FAILURE_MAX]
    _Atomic int64_t longest_ns; // of the recent inferences, for plain

    // The observation. Working memory is allocated once, by plain.
    struct joint_history history;                  // copied out of the board
    const struct joint_sample *joints;             // in it
    struct policy_image frame[POLICY_MAX_CAMERAS]; // by config camera
    bool framed[POLICY_MAX_CAMERAS];               // frame holds this observation's
    struct policy_image image[POLICY_MAX_CAMERAS]; // in the policy's order
    ns_t received_ns[POLICY_MAX_CAMERAS], capture_ns[POLICY_MAX_CAMERAS];
    ns_t anchor_ns, oldest_ns;
    bool used; // the policy in the seat has made a chunk of it; it is all still there

    // The inference.
    ns_t since_ns;                 // when the one in progress began, 0 = none is
    int rc;                        // what the brain said
    uint64_t made;                 // chunks handed over
    ns_t last_anchor_ns;           // of the last observation used
    bool at_once;                  // the next one does not wait for the trigger
    ns_t latency[INFER_LATENCIES]; // anchor to chunk handed over
    ns_t taken[INFER_LATENCIES];   // by the inference alone

    struct infer_trial trial;
};

// infer_observe.c. infer. The longest recent time from anchor to chunk handed over.
ns_t infer_latency(const struct infer *w);
// infer. Waits for the frame of config camera c, which was requested. 0 or -ENODATA.
int infer_frame(struct infer *w, int c);
// infer_trial.c. infer. Does one wait for an observation fresher than one of this age?
bool infer_try_wants(const struct infer *w, ns_t age_ns);

#endif
