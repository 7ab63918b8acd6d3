// inspect_precision: `actd inspect --precision P CHECKPOINT_DIR`: what another precision than
// float32 does to a checkpoint's actions, before there is a robot that could bound it. Loads the
// policy. plain.
#ifndef ACTD_INSPECT_PRECISION_H
#define ACTD_INSPECT_PRECISION_H

#include <stdio.h>

#include "policy/kernels/precision.h"

// A table of all values of an action to out, in the units that policy.yaml tells; a refusal's
// sentence to err. Returns the exit status: 0 or 78.
int inspect_precision_run(const char *dir, const char *stats_tag,
                          enum precision precision, FILE *out, FILE *err);

#endif
