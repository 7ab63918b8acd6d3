// What the files of the checker share. Nobody else includes this.
#ifndef TEST_FAULT_CHECKER_IMPL_H
#define TEST_FAULT_CHECKER_IMPL_H

#include <stddef.h>

#include "actd/v1/joint_command.pb-c.h"
#include "tests/fault/checker.h"

#define M(name) (1u << ACTD__V1__MODE__MODE_##name)
#define IDLE    (M(INIT) | M(WAITING) | M(READY) | M(STOPPED))
#define STOP    (M(STOPPING) | M(STOPPED) | M(ESTOP))
#define SLOW    (M(APPROACH) | M(HOMING))

static inline bool in(int mode, unsigned set)
{
    return mode > 0 && mode < 32 && ((set >> mode) & 1);
}

struct checker_offer { // a chunk
    uint64_t id;
    uint32_t generation;        // of its policy
    int64_t step_ns;            // of its rows
    int64_t seen_ns, anchor_ns; // the anchor may be moved once, when execution begins
    int rows, joints;           // rows that may be used
    bool usable;                // right width, all finite
    float *row;                 // (rows, joints)
};

struct checker_life { // of a command
    struct checker_command command;
    int64_t sent_ttl_ns, received_ns; // 0 = not yet
};

struct checker {
    struct checker_config cfg;
    double dt; // s, the nominal period

    // Ticks.
    uint64_t executed, tick;
    int64_t first_ns;           // when tick 0 was due
    int64_t woke_ns;            // the tick before
    int astray[CHECKER_JOINTS]; // ticks in a row that the arm was not where it should be

    // The ladder.
    int mode, command_mode; // now, and of the command before
    int64_t since_ns;       // in this mode
    uint64_t commands_in_mode;
    bool armed; // since the start at least once

    // Commands: as published last, backward differences over one nominal period.
    uint64_t sequence, received;
    struct { // as of the command before, in case the newest never left
        double pos[CHECKER_JOINTS], vel[CHECKER_JOINTS], acc[CHECKER_JOINTS];
        int mode;
    } before;
    double pos[CHECKER_JOINTS], vel[CHECKER_JOINTS], acc[CHECKER_JOINTS];
    double stop_from[CHECKER_JOINTS];            // rad/s when the stop began
    struct checker_life life[CHECKER_PUBLISHED]; // by sequence, the newest

    // Chunks on offer, and the one in use.
    struct checker_offer *chunk;
    size_t n_chunks, room;
    uint64_t chunk_id;
    uint32_t offered; // generation and step of those that come, and
    int64_t offered_step_ns;
    uint32_t generation;   // in use
    int64_t bridge_end_ns; // until then a target may lie between two policies'
    uint64_t judged;       // `executed` when RUNNING was judged last
    bool begins;           // the next command in RUNNING is the first of an execution

    // Verdicts.
    uint64_t violations, count[CHECKER_RULES];
    char first[256];
};

void checker_blame(struct checker *c, enum checker_rule rule, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// checker_ladder.c. One tick, but for its command.
void checker_ladder_judge(struct checker *c, const struct checker_tick *t);

// checker_chunks.c. The mode changed: from what.
void checker_chunks_step(struct checker *c, int from);
// One finite command.
void checker_chunks_judge(struct checker *c, const struct checker_command *m,
                          int64_t now);

#endif
