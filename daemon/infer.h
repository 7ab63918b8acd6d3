// infer: the policy worker. Waits for a new frame of the primary camera and for the trigger,
// gathers one complete observation around that frame's capture time, runs the policy, and
// hands the chunk to the loop in the robot's units. What can be computed of a frame alone is
// computed while the others are awaited, and kept while the frame stays the newest. Class infer:
// after infer_start it allocates nothing and waits only for frames to be decoded, for the trigger
// and for its compute pool.
#ifndef ACTD_INFER_H
#define ACTD_INFER_H

#include <stdatomic.h>

#include "daemon/board.h"
#include "daemon/camera.h"
#include "daemon/config.h"
#include "policy/policy.h"

#define INFER_FAILURE_MAX 160

struct infer_config {
    enum config_trigger trigger;
    ns_t max_skew_ns; // between the anchor and another stream's sample
    ns_t camera_period_ns[POLICY_MAX_CAMERAS]; // as declared, by config camera
    int cpu_not; // core the loop owns, -1 = none: the worker keeps off it
    // Cores of the policy's pool, where each of its threads has one of its own (pool.h): the worker,
    // who is the first of them, stays on the first, since on another's core the two would wait for
    // each other. 0 = anywhere.
    uint64_t cpu_mask;
};

// What came of a camera's part in the inferences that were made, each counted once.
struct infer_seen {
    _Atomic uint64_t early; // computed as the frame landed, while others were awaited
    _Atomic uint64_t kept;  // there from the inference before: no newer frame had come
    _Atomic uint64_t computed;
};

// Inferences that were not made, by cause; and how those were that were.
struct infer_counts {
    _Atomic uint64_t done, no_frame, skew, no_joints, failed, ring_full;
    _Atomic uint64_t seat_done, seat_failed;    // since the last change of who thinks
    struct infer_seen seen[POLICY_MAX_CAMERAS]; // by config camera
};

// Who makes chunks of observations: the policy, or a test's script.
struct infer_brain {
    // infer. actions is (R, A) in the checkpoint's units; 0, or -errno when there is none.
    int (*infer)(void *self, const struct policy_observation *obs, float *actions);
    // infer. As policy_see and policy_reused; NULL = it only thinks.
    int (*see)(void *self, int camera, const struct policy_image *image);
    uint32_t (*reused)(void *self);
    const char *(*why)(void *self); // a sentence for the last failure, never NULL
    void *self;
};
struct infer_brain infer_brain_of(struct policy *policy);

// Who thinks, and what it needs to do so for this robot. Made by plain, used by the worker,
// one at a time: a change of policy is a change of seats between two inferences.
struct infer_seat {
    struct infer_brain brain;
    const struct policy_info *info;
    const struct binding *binding;
    uint32_t generation; // goes into its chunks
    ns_t step_ns;        // policy period
    int every_rows; // start the next inference when this many rows of the last have passed
    int horizon_rows; // rows of a chunk that may be executed
    int rows;         // R of its chunks: info's, or all C where that does not say
    float *state;     // (S + 1), in the checkpoint's units
    float *actions;   // (R, A), likewise
};
// plain. Rows and working memory for a seat whose info is set. 0 or -ENOMEM.
int infer_seat_init(struct infer_seat *seat);
void infer_seat_free(struct infer_seat *seat);

struct infer;

// plain. seat and what it points to, cameras and board stay the caller's and must outlive the
// worker (the seat: its use). One inference is made on a synthetic observation first, so that the
// first real one is warm. 0 or -errno with err filled.
int infer_start(struct infer **out, const struct infer_config *cfg,
                const struct infer_seat *seat, struct camera *const *cameras,
                struct board *board, struct config_error *err);
// plain. Ends after the inference in progress; joins.
void infer_stop(struct infer *w);

// The same without warm-up and thread, for whoever goes through the steps in a time of his own:
// plain. What is pointed to stays the caller's and must outlive the worker. 0 or -ENOMEM.
int infer_new(struct infer **out, const struct infer_config *cfg,
              const struct infer_seat *seat, struct camera *const *cameras,
              struct board *board);
void infer_free(struct infer *w);

// plain, one caller. Another seat is to be taken, between two inferences; its first one is then
// due with the next frame. At most one is on offer.
void infer_offer(struct infer *w, const struct infer_seat *seat);
// plain. The seat in use. Once it is the one that was offered, the one before may be freed.
const struct infer_seat *infer_seated(const struct infer *w);
// plain. Takes the offer back. False when it has been taken, or is at this moment.
bool infer_withdraw(struct infer *w);

// The steps of one inference. infer; one caller, in this order; no clock is read, but by
// camera_wait while a frame is being decoded.
//
// Takes the seat that is on offer, if any.
void infer_change(struct infer *w);
// Is there a frame to be seen now, while others of its set are awaited? When one is to be made but
// for frames that have yet to come, this takes the anchor's frame, and from then until infer_observe
// the set is that frame's. Each frame once. Who does not call it has the same inferences, later.
bool infer_look(struct infer *w, ns_t now_ns);
// Sees it, beginning at now_ns (> 0): an inference is in progress, board->inferring_since_ns, so one
// that hangs here looks to the loop like one that hangs later, a slow policy. Between frames none is
// in progress: who is awaited then is a camera. It is over at now_ns:
void infer_see(struct infer *w, ns_t now_ns);
void infer_saw(struct infer *w, ns_t now_ns);
// Is one to be made now? Yes when there is a new frame of the primary camera, in company, the
// trigger says so, the loop wants one and none is in progress.
bool infer_due(const struct infer *w, ns_t now_ns);
// Gathers the observation and says in board->starved what is missing. 0 or -ENODATA, counted.
int infer_observe(struct infer *w);
// Begins at now_ns (> 0): board->inferring_since_ns. Returns what the brain says. The pictures must
// stay as they are until it has returned.
int infer_think(struct infer *w, ns_t now_ns);
// It is over at now_ns: hands the chunk to the loop, or counts the failure. Nothing when none
// was begun.
void infer_finish(struct infer *w, ns_t now_ns);

// Any thread.
const struct infer_counts *infer_counts(const struct infer *w);

// plain. Why the last failed inference failed; "" when none did.
void infer_last_failure(const struct infer *w, char text[INFER_FAILURE_MAX]);

// Rows after which the next inference must start so that its chunk is in view before the last
// one ends: never more than asked, never so many that horizon - latency would be overrun.
// Pure; latency_ns is the longest of the recent ones.
int infer_lead_rows(int every_rows, int horizon_rows, ns_t step_ns, ns_t latency_ns);

#endif
