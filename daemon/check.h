// check: `actd check -c robot.yaml`. Loads everything as `actd run` would, prints every
// fact it resolved, runs the policy three times on a synthetic observation, warns of what
// looks wrong and refuses what would be refused or be useless at run time. Opens no
// socket, moves nothing. plain.
#ifndef ACTD_CHECK_H
#define ACTD_CHECK_H

#include <stdio.h>

#include "daemon/config.h"
#include "policy/policy.h"

// Facts, warnings and "OK" go to out, a refusal to err (both may be the same). Returns the
// exit status: 0, 71 (out of memory) or 78.
int check_run(const char *config_file, FILE *out, FILE *err);

// check_run on standard output and standard error.
int check_main(const char *config_file);

#define CHECK_HURTS 1 // exit status of check --system when something hurts

// `actd check --system [-c FILE]`: what on this PC helps and what hurts, on out. config_file: for
// its priority, core and directories, NULL = the presets; a refusal goes to err. Returns the
// exit status: 0, CHECK_HURTS, or 78.
int check_system(const char *config_file, FILE *out, FILE *err);

// The warnings of check that need no inference (units, limits, rates), one call of say for
// each, for whoever has loaded everything already. How many there were, or -ENOMEM.
int check_warnings(const struct config *cfg, const struct config_sidecar *side,
                   const struct policy_info *info, const struct binding *binding,
                   void (*say)(const char *text));

#endif
