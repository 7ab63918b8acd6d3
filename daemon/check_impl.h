// check_impl: what the parts of check share. Not for others.
#ifndef ACTD_CHECK_IMPL_H
#define ACTD_CHECK_IMPL_H

#include <stdio.h>

#include "daemon/config.h"
#include "daemon/config_loop.h"
#include "daemon/joint_deviation.h"
#include "daemon/table.h"
#include "daemon/units.h"
#include "policy/policy.h"

#define CHECK_RUNS  3
#define CHECK_NOTES 96

struct check {
    FILE *out;
    struct config cfg;
    struct config_sidecar side;
    struct policy *policy;
    const struct policy_info *info;
    struct binding binding;
    struct loop_config loop;
    // per action, in the checkpoint's order and units
    struct units_range range[ACTD_MAX_JOINTS];
    const char *guess[ACTD_MAX_JOINTS];
    double latency_ms;   // of one inference, median of CHECK_RUNS
    float *actions;      // (info->rows, action_dim) of the last one
    char granted[64];    // what the kernel gives to the loop's thread
    bool fifo, lockable; // is it SCHED_FIFO; does RLIMIT_MEMLOCK suffice
    int n_notes;
    char note[CHECK_NOTES][320];
    struct table table;
    struct config_error err;
};

// Remembers a warning.
void check_note(struct check *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// check_infer.c: times the policy and keeps its last output; asks the kernel. 0 or -errno
// + err.
int check_time(struct check *c);
void check_machine(struct check *c);

// check_report.c: the facts.
void check_report_static(struct check *c);
void check_report_measured(struct check *c);
// check_safety.c: what stops the arm, when.
void check_report_safety(struct check *c);

// check_operators.c: who may act and read, what can be swapped to, where the metrics are; and
// what is wrong with that: warnings, then 0 or -EINVAL with err filled.
void check_report_operators(struct check *c);
int check_judge_operators(struct check *c);

// check_infer.c: rows after which the next inference starts, given the latency measured.
int check_lead_rows(const struct check *c);

// check_judge.c: warnings that need no inference; all of them, then 0 or -EINVAL with err
// filled.
void check_judge_static(struct check *c);
int check_judge(struct check *c);

// In wire units: what was seen in training for action a, or mean -/+ 3 standard deviations
// (range[a].estimated). False without statistics.
bool check_seen(const struct check *c, int action, double *lo, double *hi);

#endif
