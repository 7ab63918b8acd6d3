// What infer.c (the worker), infer_observe.c (what it looks at, and when), infer_see.c (what it
// does before all is there) and infer_trial.c (a candidate beside it) share. Nobody else includes
// this.
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

// The frame of the primary camera that an inference is due for.
struct infer_anchor {
    ns_t capture_ns, received_ns;
};

// The set that is being gathered: infer_see.c.
struct infer_look {
    bool on;
    ns_t anchor_ns, received_ns;   // of the primary camera's frame
    bool held[POLICY_MAX_CAMERAS]; // by config camera: its frame of this set is there
    int camera;                    // in the policy's order: to be seen next
    uint32_t seen;                 // bit per camera of the policy
    ns_t since_ns, took_ns;        // seeing in progress; all of it so far
    bool jointed; // joints is the sample nearest to the anchor when it began
    struct joint_sample joints;
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
    struct joint_history history;      // copied out of the board
    const struct joint_sample *joints; // in it, or look's
    struct infer_look look;
    struct policy_image frame[POLICY_MAX_CAMERAS]; // by config camera
    bool framed[POLICY_MAX_CAMERAS];               // frame holds this observation's
    struct policy_image image[POLICY_MAX_CAMERAS]; // in the policy's order
    ns_t received_ns[POLICY_MAX_CAMERAS], capture_ns[POLICY_MAX_CAMERAS];
    ns_t anchor_ns, oldest_ns;
    uint32_t seen;                            // bit per camera of the policy: early, and
    ns_t seeing_ns;                           // how long that took
    uint64_t last_number[POLICY_MAX_CAMERAS]; // by config camera: of the inference before
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
// infer. Is one due, were the set complete? Says for which frame.
bool infer_triggered(const struct infer *w, struct infer_anchor *a);
// infer. Has every camera brought the frame that belongs to the anchor, or had its time to?
bool infer_complete(const struct infer *w, const struct infer_anchor *a, ns_t now_ns);
// infer. Keeps the joint sample that is nearest to the look's anchor for now.
void infer_keep_joints(struct infer *w);

// infer_see.c. infer. The earliest capture of a frame of config camera c that belongs to an anchor,
// and whether one has come.
ns_t infer_from_ns(const struct infer *w, int c, ns_t anchor_ns);
bool infer_came(const struct infer *w, int c, ns_t anchor_ns);
// infer. No set is being gathered any more. look.joints stays, for who has found them.
void infer_look_away(struct infer *w);
// infer. After an inference that was good.
void infer_count_seen(struct infer *w);

// infer_trial.c. infer. Does one wait for an observation fresher than one of this age?
bool infer_try_wants(const struct infer *w, ns_t age_ns);

#endif
