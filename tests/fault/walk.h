// walk: one random robot under one random schedule of faults and requests, in the world, with the
// checker looking on. Everything follows from a seed and a number, so a walk that went wrong can
// be walked again. All functions are plain.
#ifndef ACTD_FAULT_WALK_H
#define ACTD_FAULT_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/fault/world.h"

struct checker;
struct replay_ran;

// Where the next walk records itself, NULL = nowhere; and what the last one ran. The loop's memory is
// not hit in one that is recorded: no input says so, and a replay must differ then.
extern const char *walk_record;
extern struct replay_ran walk_ran;

// What the walks have seen together.
struct walk_totals {
    uint64_t walks, ticks, skipped, commands, injections, requests, motions, swaps;
    uint64_t in_state[LADDER_STATES]; // ticks
    uint64_t reason[LADDER_REASONS];  // times it came up, as a reason told or as a fault
    uint64_t injected[INJECT_TARGETS][VERBS];
    uint64_t violations, broken; // broken: walks with one or more
};

struct walk {
    struct world *world;
    struct checker *checker; // NULL: nobody looks on
    struct blackbox *box;    // nobody reads it, but the loop writes
    struct walk_totals *totals;
    uint64_t seed, random; // random: state of this walk's own generator
    int number;
    // After walk_begin: each step of the ladder and each injection on stdout; each command for
    // this joint, -1 = none.
    bool tell;
    int joint;

    // The temper of this walk: chances per tick, and what the policy likes to do.
    double fault, whim, arm, reset, disarm;
    int style;
    double liveliness;
    double goal[ACTD_MAX_JOINTS];
    double swap;         // chance per inference that another policy has made it
    uint32_t generation; // of the policy that thinks, from 1
    ns_t row_ns;         // of its rows, 0 = as configured

    // Of the tick in progress.
    unsigned requests;
    bool joints_known;
    struct joint_sample joints;
    ns_t frame_ns[WORLD_CAMERAS];
    uint64_t lost_command;   // the board's
    uint64_t commands, lost; // the loop's own counts before it
    enum ladder_state mode;
    enum ladder_reason reason;
};

// Number `number` of the walks from `seed`. 0 or -errno.
int walk_begin(struct walk *k, uint64_t seed, int number, bool check,
               struct walk_totals *totals);
void walk_step(struct walk *k); // up to and including the next tick
// Adds to the totals, frees everything. The first violation, or "": `first` has `size` bytes.
void walk_end(struct walk *k, char *first, size_t size);

#endif
