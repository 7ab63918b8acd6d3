// swap: another policy takes over while the arm moves. The candidate is loaded and
// checked by a thread of this module (class plain, nice 10), thinks a few times on the
// worker's newest observation between the running policy's inferences, is compared with
// it, and takes the worker's seat between two inferences. Until then any failure leaves
// the running policy as it is. The one before is kept, for the way back.
//
// All functions are plain and may be called from any plain thread; none waits for a swap
// but swap_stop. See swap_job.c for the steps.
#ifndef ACTD_SWAP_H
#define ACTD_SWAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/board.h"
#include "daemon/config.h"
#include "daemon/fitted.h"
#include "daemon/infer.h"

#define SWAP_TEXT 1536

struct swap;

// What may differ from the running policy, as bits.
enum swap_allow {
    SWAP_ALLOW_JOINTS = 1u << 0,  // names of state and action, and their order
    SWAP_ALLOW_UNITS = 1u << 1,   // of an action
    SWAP_ALLOW_CAMERAS = 1u << 2, // which, and the size of their pictures
    SWAP_ALLOW_RATE = 1u << 3,    // rows per second
    SWAP_ALLOW_CHUNK = 1u << 4,   // rows of a chunk
};
// "joints", "units", "cameras", "rate", "chunk"; 0 for any other word.
unsigned swap_allow_bit(const char *word);

struct swap_request {
    char name[CONFIG_NAME]; // ignored when back
    bool back;              // to the policy before this one
    bool force;             // above swap.max_difference, or without a fresh observation
    unsigned allow;         // swap_allow bits
    uid_t uid;              // who asks, for the log
    pid_t pid;
};

// Values equal actd.v1.SwapStage.
enum swap_stage {
    SWAP_LOADING = 1,
    SWAP_TRYING,
    SWAP_COMMITTING,
    SWAP_DONE,
    SWAP_FAILED,
};

// As actd.v1.SwapReport.
struct swap_report {
    uint64_t number;
    enum swap_stage stage;
    int result;           // 0, or -errno once the stage is SWAP_FAILED
    char text[SWAP_TEXT]; // one sentence for a person, once it is over; else ""
    char from[CONFIG_NAME], to[CONFIG_NAME];
    char from_digest[POLICY_DIGEST_HEX], to_digest[POLICY_DIGEST_HEX];
    ns_t load_ns, trial_ns, commit_ns, total_ns;
    int trials;
    ns_t inference_median_ns, inference_worst_ns, deadline_ns;
    double difference_rad;
    char difference_joint[CONFIG_NAME];
    int difference_row;
    double bound_rad;
    double golden_error; // < 0 = it carries no golden forward
    uint64_t tick;       // in which its first chunk came into view
};

// As actd.v1.PolicyStatus.
struct swap_policy {
    char name[CONFIG_NAME], directory[CONFIG_PATH], type[16], precision[16];
    char digest[POLICY_DIGEST_HEX], config_sha256[POLICY_DIGEST_HEX];
    char weights_sha256[POLICY_DIGEST_HEX], statistics_sha256[POLICY_DIGEST_HEX];
    uint32_t generation;
    uint64_t since_tick;
    char previous[CONFIG_NAME]; // "" = none
    uint64_t swaps, swaps_failed;
    char swapping_to[CONFIG_NAME]; // "" = none
};

// As actd.v1.PolicyEntry.
struct swap_entry {
    char name[CONFIG_NAME];
    bool running, previous, usable;
    char note[256]; // why it is not usable, or where it is; ""
    uint64_t bytes;
    int64_t modified_s;
};

struct swap_source {
    const struct config *cfg;
    struct board *board;
    struct infer *infer;
    struct fitted
        *first;       // the running policy. Becomes the swap's, also when swap_new fails
    ns_t deadline_ns; // the chunk_latency budget
    // How a candidate is loaded; NULL: from cfg->swap.directory. name has passed the
    // rules for names. For tests, whose policies are scripts.
    int (*load)(void *arg, const char *name, const _Atomic bool *cancel,
                struct fitted **out, struct config_error *err);
    void (*unload)(void *arg,
                   struct fitted *f); // of what it loaded, and first; NULL: fitted_free
    void *load_arg;
    // Told by the swap's thread when a policy has the worker's seat, and when the old one is
    // about to have it again; NULL: nobody wants to know.
    void (*seated)(void *arg, const struct fitted *f);
    void *seated_arg;
    bool by_hand; // no thread: the owner calls swap_turn in a time of his own
};

// What src points to must outlive the swap. 0 or -errno.
int swap_new(struct swap **out, const struct swap_source *src);

// 0 and its number, from 1; -EBUSY while one is under way (or put away), -EINVAL for a
// name or a configuration that cannot be, -ENOENT for no previous policy, with a sentence
// in why.
int swap_begin(struct swap *s, const struct swap_request *r, uint64_t *number, char why[],
               size_t size);
// How that one goes, or went. False when it is unknown or forgotten: the last 8 are kept.
bool swap_look(struct swap *s, uint64_t number, struct swap_report *out);
// Must the next one wait? For a moment also after a swap is decided, while what it leaves
// behind is put away.
bool swap_busy(struct swap *s);
// The one under way is given up as soon as it can be, and says why; not when it is
// committing.
void swap_cancel(struct swap *s, const char *why);

// The policy in use. It is not freed until the same caller has said swap_release, soon.
const struct fitted *swap_hold(struct swap *s);
void swap_release(struct swap *s);

void swap_policy_status(struct swap *s, struct swap_policy *out);
// What is in swap.directory, by name; the running and the previous policy first where
// they are from elsewhere. How many (at most max), or -errno when the directory cannot be
// read.
int swap_list(struct swap *s, struct swap_entry *out, int max);

// For by_hand: one look at the swap under way, at now_ns. True while there is one.
bool swap_turn(struct swap *s, ns_t now_ns);

// Cancels and ends the thread. Call while the worker still runs.
void swap_stop(struct swap *s);
// After infer_stop: stops, and frees every policy. NULL is fine.
void swap_free(struct swap *s);

#endif
