// One run of the swap test: its tally, shared by swaps.c (the order of things), swaps_judge.c,
// swaps_steps.c (one swap, good or bad) and swaps_trouble.c (what may happen during one).
#ifndef SWAPS_RUN_H
#define SWAPS_RUN_H

#include "tests/swap/swaps.h"
#include "tests/twin.h"

#define SWAPS_MAX 100000

struct swaps_times { // of one swap that was done, ms
    double total, load, trial, commit;
};

struct swaps_run {
    struct swaps_world world;
    struct swaps_eye *eye;
    struct twin *twin;
    struct twin_seen twin_without, twin_with; // in the same turns
    struct swaps_client a, b;
    uint64_t random;
    int current; // the good one in use
    char digest[SWAPS_GOOD][65];
    uint32_t generation;
    // Tally.
    int done, back, forced, refused, next_bad, next_trouble;
    int waited;       // asks that came before the last one was put away
    double waited_ms; // the longest of those
    int no_time;      // swaps given up since inferences took all the time; asked again
    int busy, disarmed, estopped, abandoned, left, terminated, rearmed;
    int missed_at_commit;
    int failures;
    double worst_difference;
    struct swaps_times times[SWAPS_MAX];
    long rss_kib[SWAPS_MAX];
    int fds[SWAPS_MAX];
    int n_samples;
};

// Everything but the full size. counted: the allocations of loop, infer and pool at the start.
void swaps_judge(struct swaps_run *r, const struct swaps_seen *without,
                 const struct swaps_seen *with, const uint64_t counted[3]);
void swaps_judge_limits(struct swaps_run *r);

// Says what is wrong and counts it.
void swaps_fail(struct swaps_run *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Both clients connected; an idle session is closed after 10 s.
int swaps_ready(struct swaps_run *r);
// Digest and generation of the policy in use.
int swaps_in_use(struct swaps_run *r, char digest[65], uint32_t *generation);
void swaps_note_done(struct swaps_run *r, const Actd__V1__SwapReport *s, int to);
// Another one than the current one.
int swaps_other(struct swaps_run *r);
const char *swaps_good_name(int i);

// swaps_do by client a, again while another swap is put away. before is called before each.
Actd__V1__ControlReply *swaps_do_when_free(struct swaps_run *r,
                                           const struct swaps_ask *ask,
                                           void (*before)(struct swaps_run *));
// It was given up since there was no time to try it.
bool swaps_no_time(const Actd__V1__ControlReply *m);
void swaps_step_good(struct swaps_run *r);
void swaps_step_bad(struct swaps_run *r);
// A second swap, disarm, e-stop or the client's end, during a swap, in turn.
void swaps_step_trouble(struct swaps_run *r);
// SIGTERM during a swap: the daemon ends, with status 0.
void swaps_terminate(struct swaps_run *r, ns_t after_ns);

#endif
