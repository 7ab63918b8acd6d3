// check: `actd check -c robot.yaml`. Loads everything as `actd run` would, prints every
// fact it resolved, runs the policy three times on a synthetic observation, warns of what
// looks wrong and refuses what would be refused or be useless at run time. Opens no
// socket, moves nothing. plain.
#ifndef ACTD_CHECK_H
#define ACTD_CHECK_H

#include <stdio.h>

// Facts and the verdict ("OK", or the refusal) go to out. Returns the exit status: 0, 71
// (out of memory) or 78.
int check_run(const char *config_file, FILE *out);

// check_run on standard output.
int check_main(const char *config_file);

#endif
