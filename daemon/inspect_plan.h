// inspect_plan: `actd inspect --plan CHECKPOINT_DIR`: what an inference does here, step by step:
// in which way, with which kernel, on what shape, and how long it takes. Loads the policy and lets
// it look at made-up pictures. plain.
#ifndef ACTD_INSPECT_PLAN_H
#define ACTD_INSPECT_PLAN_H

#include <stdbool.h>
#include <stdio.h>

#include "policy/kernels/precision.h"

struct inspect_plan {
    const char *stats_tag; // NULL: there is but one group
    int threads, runs;     // 1 to 64, 1 to 1000
    const char *kernels;   // NULL: the best that run here
    enum precision precision;
    bool json;
};

// The plan goes to out, a refusal's sentence to err. Returns the exit status: 0, 70 when an
// inference failed, or 78.
int inspect_plan_run(const char *dir, const struct inspect_plan *how, FILE *out,
                     FILE *err);

#endif
