// inspect: `actd inspect CHECKPOINT_DIR`: what is in a checkpoint directory, before there
// is a robot.yaml: format, network, cameras, statistics with a guess at their units, and
// policy.yaml if it is there. Reads tables and statistics, not the weights. plain.
#ifndef ACTD_INSPECT_H
#define ACTD_INSPECT_H

#include <stdio.h>

// Facts go to out, a refusal's sentence to err. Returns the exit status: 0 or 78.
int inspect_run(const char *dir, const char *stats_tag, FILE *out, FILE *err);

// argv[0] is "inspect": DIR [--stats-tag NAME] [--precision P] (inspect_precision.h), or
// --plan DIR (inspect_plan.h). Returns the exit
// status: 0, 64, 70 or 78.
int inspect_main(int argc, char **argv);

#endif
