// run: `actd run`. Brings the daemon up in one fixed order, watches over it, and takes it down
// in reverse. Class plain.
#ifndef ACTD_RUN_H
#define ACTD_RUN_H

#include <stdbool.h>

struct run_options {
    const char *config; // robot.yaml
    bool arm;           // arm once by itself, for demos; refused under a service manager
    bool home;          // go to the rest pose once, then end; refused likewise
    double seconds;     // end after so long, 0 = until a signal
};

// Returns the exit status: 0, or one of sysexits.h (78 config, 69 unavailable, 71 system).
int run(const struct run_options *opt);

#endif
