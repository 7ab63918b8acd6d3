// What-if: how a run with another policy or configuration differs from the recorded one, joint by
// joint. All plain.
#ifndef ACTD_REPLAY_WHATIF_H
#define ACTD_REPLAY_WHATIF_H

#include <jansson.h>
#include <stdio.h>

#include "daemon/replay.h"

struct whatif_spread { // of differences, rad
    double largest, squares;
    uint64_t n;
    ns_t at_ns; // of the largest, from the first tick
};

struct whatif {
    bool any;
    ns_t first_ns;
    uint64_t ticks;
    uint64_t apart; // ticks in which the ladder was in another state
    ns_t apart_ns;  // the first of them, and
    enum ladder_state apart_then, apart_now;
    struct {
        struct whatif_spread target, command;
        uint64_t limited_then, limited_now;         // ticks
        uint64_t seams_then, seams_now;             // jumps above WHATIF_SEAM
        double largest_seam_then, largest_seam_now; // rad
    } joint[ACTD_MAX_JOINTS];
    int joints;
};
#define WHATIF_SEAM 1e-4 // rad

// replay_options.tick of it; arg is a struct whatif, all zero to begin with.
void whatif_tick(void *arg, const struct tick_record *then,
                 const struct tick_record *now);
// names (joints).
void whatif_print(const struct whatif *w, const char *const *names, FILE *f);
json_t *whatif_json(const struct whatif *w, const char *const *names); // NULL: no memory

#endif
