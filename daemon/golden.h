// golden: `actd golden CHECKPOINT_DIR` records what a checkpoint answers, so that every later
// load can tell whether it still does (policy/golden.h). plain.
#ifndef ACTD_DAEMON_GOLDEN_H
#define ACTD_DAEMON_GOLDEN_H

#include <stdbool.h>
#include <stdio.h>

// Loads the checkpoint, makes up an observation, writes golden.safetensors with the answer,
// loads it again and compares. Says on `out` what was done and why not on `err`.
// Returns an exit status: EX_OK, EX_CONFIG (refused), EX_CANTCREAT.
int golden_run(const char *dir, const char *stats_tag, bool force, FILE *out, FILE *err);

int golden_main(int argc, char **argv);

#endif
