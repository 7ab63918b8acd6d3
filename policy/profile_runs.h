// profile_runs: several inferences of one policy, step by step, made one: each step takes as long
// as in the median, whatever else the machine did during one of them. plain.
#ifndef ACTD_PROFILE_RUNS_H
#define ACTD_PROFILE_RUNS_H

#include "policy/profile.h"

struct profile_runs {
    struct profile profile; // attach this one; after profile_runs_end the medians
    int n, most;
    int64_t *ns; // (most, PROFILE_STEPS)
};

// 0, -EINVAL, -ENOMEM. *out is the caller's to profile_runs_free (NULL is fine).
int profile_runs_new(struct profile_runs **out, int most);
void profile_runs_free(struct profile_runs *r);

// After each inference. 0, -EINVAL when it had other steps than the one before, -E2BIG.
int profile_runs_take(struct profile_runs *r);
void profile_runs_end(struct profile_runs *r);

// Steps that belong together.
struct profile_stage {
    char name[16];
    int steps;
    double macs, weight_bytes,
        winograd_bytes; // weights each once: those of the first camera
    int64_t ns;
};
#define PROFILE_STAGES 8

// In the order in which they begin, the whole inference behind them; returns how many there are
// without it.
int profile_stages(const struct profile *p, struct profile_stage out[PROFILE_STAGES + 1]);

// GFLOP/s of macs in ns; 0 when there are none. A multiply-add is two operations.
double profile_gflops(double macs, int64_t ns);

#endif
