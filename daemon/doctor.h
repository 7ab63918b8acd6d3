// doctor: what on this PC helps a real-time loop and what hurts it, each with the command that
// mends it. Reads only; changes nothing. Class plain.
//
// Two views of one machine are merged by `actctl doctor`: the client's, which sees all of /proc and
// /sys but has the limits of a login, and the daemon's own, which has the limits that count but
// may sit in a sandbox that hides half of the machine. What cannot be seen is said to be unknown,
// never guessed: its text begins with DOCTOR_UNKNOWN.
#ifndef ACTD_DOCTOR_H
#define ACTD_DOCTOR_H

#include <stdbool.h>
#include <stdio.h>

#include "daemon/config.h"

#define DOCTOR_MOST    32 // findings there can be
#define DOCTOR_WHAT    24
#define DOCTOR_TEXT    320
#define DOCTOR_REMEDY  320
#define DOCTOR_UNKNOWN "unknown: "

// As actd.v1.Finding.Severity.
enum doctor_severity { DOCTOR_GOOD, DOCTOR_NOTE, DOCTOR_HURTS };

struct doctor_finding {
    char what[DOCTOR_WHAT]; // "scheduling", "governor", …
    enum doctor_severity severity;
    char text[DOCTOR_TEXT];     // what was found, in a sentence
    char remedy[DOCTOR_REMEDY]; // a command or a step; "" = nothing to mend
};

// What only the process itself knows.
struct doctor_self {
    const char
        *scheduling;     // class granted to its loop, "SCHED_FIFO 50"; NULL = has no loop
    bool memory_locked;  // with a loop only, as loop_cpu
    int loop_cpu;        // core of its loop, -1 = any
    const char *kernels; // in use, policy_info.kernels; NULL = does not compute
    const char *blas_core; // of OpenBLAS, if that computes
};

// plain. Looks at the machine, and at the calling process. cfg: for its priority, core and
// directories, NULL = the presets. self: NULL = neither has a loop nor computes; without a loop a
// thread that ends at once tries what scheduling class one would get. Fills at most `max`
// findings, in a fixed order; returns how many.
int doctor_look(const struct config *cfg, const struct doctor_self *self,
                struct doctor_finding *out, int max);

// plain. The daemon's view and ours of one machine, in the order of the daemon's: of two with one
// `what`, the daemon's where it is about the process (its limits, its environment) or known, else
// ours. Returns how many in out (max); out is neither of the others.
int doctor_merge(const struct doctor_finding *daemon, int n_daemon,
                 const struct doctor_finding *ours, int n_ours,
                 struct doctor_finding *out, int max);

// plain. For people: worst first, each with its remedy below it. Returns the worst severity.
enum doctor_severity doctor_print(const struct doctor_finding *f, int n, FILE *out);

// plain. "good", "note", "hurts".
const char *doctor_word(enum doctor_severity severity);

#endif
