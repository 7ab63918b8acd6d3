// The simulator's two main loops, and what they share.
#ifndef ACTD_SIM_RUN_H
#define ACTD_SIM_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/sim/eyes.h"
#include "daemon/sim/options.h"
#include "daemon/sim/plant.h"
#include "daemon/sim/sheet.h"
#include "daemon/sim/wire.h"

struct run {
    const struct options *o;
    const volatile sig_atomic_t *stop; // set by a signal
    void *zmq, *joints, *commands, *status;
    struct plant plant;
    struct wire_counts counts;
    struct eyes *eyes;
    struct sheet_story story; // the first episode, for the contact sheet
    uint64_t resyncs; // times the live loop fell so far behind that it let time go
};

// Opens the world, the cameras and the sockets. 0 or -errno with a sentence in err.
int run_open(struct run *r, const struct options *o, const volatile sig_atomic_t *stop,
             char *err, size_t err_len);
// Closes everything, draws the sheet if one is wanted. 0 or -errno with a sentence in err.
int run_close(struct run *r, char *err, size_t err_len);

// Real time: absolute deadlines of one physics step; commands are obeyed as they come.
// Returns when all episodes are over or *stop is set.
void run_live(struct run *r);

// One control period of sim time per command. Waits for a command as long as it takes.
void run_lockstep(struct run *r);

// One physics step, and the story's next picture. Shared by both loops.
void run_step(struct run *r);

// CLOCK_REALTIME for stamps, in ns.
int64_t run_wall_ns(void);

#endif
