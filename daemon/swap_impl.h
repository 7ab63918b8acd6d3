// What swap's own files share. Nobody else includes this.
//
//   swap.c        the face: who asks, who looks, who holds; the thread
//   swap_job.c    one swap, step by step
//   swap_load.c   the candidate, before it has thought
//   swap_commit.c its end: who thinks
//   swap_judge.c  what must be equal, how far two chunks are apart: pure
//   swap_files.c  names inside swap.directory
//   swap_notes.c  why policies were refused
#ifndef ACTD_SWAP_IMPL_H
#define ACTD_SWAP_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/infer_trial.h"
#include "daemon/swap.h"

#define SWAP_KEPT  8 // reports
#define SWAP_NOTES 32
#define SWAP_NOTE  120 // bytes of a reason
// For an observation, room, a trial, a seat, a first chunk.
#define SWAP_PATIENCE (3 * NS_PER_S)

// The swap under way. The thread's alone (or the owner's, by_hand).
struct swap_job {
    struct swap_request request;
    struct swap_report report;
    uint64_t stamp; // of its files before they were read, 0 = unknown
    struct fitted *candidate;
    struct fitted *before;  // who was `previous` when the candidate took over
    uint64_t before_tick;   // since_tick of then
    float *running, *tried; // chunks of the last trial, (C, n)
    ns_t begin_ns, stage_ns, progress_ns;
    uint64_t events;    // of the ladder, looked at,
    bool watched;       // since this swap began
    uint64_t seen_tick; // in which its first chunk had been handed over; 0 = not yet
    bool untried;       // there was nothing to try it on, and force was given
    bool seated;        // the worker has taken the seat,
    bool returns;       // and is to take the old one again: its first chunk did not come
    int result;         // then, with report.text
};

// Why a policy was refused while its files were as stamp says.
struct swap_note {
    char name[CONFIG_NAME]; // "" = none
    uint64_t stamp, number; // of the swap
    char clock[16], why[SWAP_NOTE + 1];
};

struct swap {
    struct swap_source src;
    int rows; // of a chunk that the loop executes at most

    pthread_mutex_t mutex; // of what follows but job; among plain threads only
    pthread_cond_t changed;
    bool mutex_ready, thread_runs;
    pthread_t thread;
    struct fitted *current, *previous; // changed by the job's thread alone
    int holds;
    uint32_t generations; // given out
    uint64_t since_tick, number, done, failed;
    struct swap_report kept[SWAP_KEPT]; // by number % SWAP_KEPT
    struct swap_note note[SWAP_NOTES];
    bool busy, committing, stop;
    ns_t stop_ns;
    char cancel_why[160];
    _Atomic bool cancel; // written under the mutex, looked at by policy_load without

    struct swap_job job;
};

// All in swap.c, for the job:
// Copies its report where others see it.
void swap_publish(struct swap *s);
// The point of no return; gives the candidate's seat its generation. False when somebody
// has cancelled before.
bool swap_commits(struct swap *s);
// The candidate thinks now: it is `current`, and who was is `previous`.
void swap_takes_over(struct swap *s);
// Both are again who they were, the old seat with a generation of its own.
void swap_gives_back(struct swap *s);
// False while somebody holds a policy: ask again. Else nobody can come to hold one that
// is neither current nor previous.
bool swap_unheld(struct swap *s);
// Frees a policy that nobody uses; NULL is fine.
void swap_unload(struct swap *s, struct fitted *f);
// It is decided: publishes and counts.
void swap_decided(struct swap *s);
// And put away: another may begin.
void swap_ended(struct swap *s);

// swap_job.c. See swap_turn.
bool swap_job_turn(struct swap *s, ns_t now_ns);
// swap_job.c. It is over, as report.text says: told and logged.
void swap_decide(struct swap *s, enum swap_stage stage, int result, ns_t now);
void swap_fail(struct swap *s, int result, ns_t now, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// swap_commit.c. A look while it is committing.
void swap_commit_turn(struct swap *s, ns_t now);

// May one say of a policy that it drives?
static inline bool swap_drives(const struct loop_report *r)
{
    return r->mode == LADDER_RUNNING;
}

static inline double swap_ms(ns_t ns)
{
    return (double)ns / (double)NS_PER_MS;
}

// What the loop says; false when that can not be read just now.
static inline bool swap_loop(const struct swap *s, struct loop_report *out)
{
    return slot_read(&s->src.board->report, out) != 0;
}

// swap_load.c. Brings job.candidate. 0 or -errno with err filled.
int swap_load(struct swap *s, struct config_error *err);
// swap_load.c. Holds it against the running policy, fits its seat to the loop and makes
// room for the chunks of its trials. 0 or -errno with err filled.
int swap_check(struct swap *s, struct config_error *err);
// swap_load.c. How long the candidate may think, before it has once: only the first trial
// hangs on it.
ns_t swap_guess_ns(const struct swap *s);

// swap_judge.c, pure. Every difference between two policies that `allow` does not name,
// in one sentence with the remedy. True when there is none.
bool swap_equal(const struct config *cfg, const struct fitted *running,
                const struct fitted *candidate, unsigned allow, char *text, size_t size);
// The largest distance of two chunks of one observation. Row k of each is for k steps of
// its own after the anchor; the running one is interpolated linearly between its rows.
struct swap_chunk {
    const float *row; // (rows, n) rad
    int rows;
    ns_t step_ns;
};
struct swap_distance {
    double rad;     // < 0: they have no time in common
    int joint, row; // the candidate's
};
struct swap_distance swap_compare(const struct swap_chunk *running,
                                  const struct swap_chunk *candidate, int n);
// The first value of a chunk beyond a joint's hard limits; joint -1 = none.
struct chunk_culprit swap_beyond(const struct config *cfg, const struct swap_chunk *c);
ns_t swap_median(const ns_t *v, int n);

// swap_files.c. May this be the name of a policy? Else a sentence in why.
bool swap_name_fits(const char *name, char *why, size_t size);
// swap_files.c. A descriptor of the checkpoint `name` of swap.directory, reached by no
// symbolic link, and the path that people call it. >= 0, or -errno with a sentence.
int swap_open(const struct config *cfg, const char *name, char path[CONFIG_PATH],
              struct config_error *err);
// swap_files.c. Appends what is in swap.directory to the n that are there. How many, or
// -errno.
int swap_files_list(const struct config *cfg, struct swap_entry *out, int n, int max);
// swap_files.c. A number that is another when a file of the policy is another: sizes and
// times of them all. 0 when they cannot be looked at.
uint64_t swap_files_stamp(const struct config *cfg, const char *name);

// swap_notes.c. The job is decided: remembers why it failed, or forgets that it ever did.
void swap_note(struct swap *s);
// swap_notes.c. To the entries that have nothing else to say.
void swap_notes_tell(struct swap *s, struct swap_entry *e, int n);

#endif
