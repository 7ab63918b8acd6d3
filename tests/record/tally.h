// Ticks that were late or skipped, in halves of rounds: without recording, and with it. What is
// counted is gaps: whatever makes a tick late by a period, or last longer than one, leaves a gap.
#ifndef ACTD_TEST_RECORD_TALLY_H
#define ACTD_TEST_RECORD_TALLY_H

#include "tests/record/rig.h"
#include "tests/twin.h"

#define RIG_ROUNDS 200

struct rig_half {
    uint64_t ticks, gaps, skipped;
    ns_t worst_ns;
    struct twin_seen twin; // at the same time
    int rounds;
    double of_round[RIG_ROUNDS]; // gaps
};
struct rig_tally {
    struct rig_half half[2];
};

void rig_tally_measure(struct rig_tally *t, struct rig_robot *r, struct twin *twin,
                       int half, ns_t ns);
void rig_tally_add(struct rig_tally *sum, const struct rig_tally *t);
// Says what came of it. 0, or -1: with recording there are more gaps than without, or than the twin
// has, and not by chance.
int rig_tally_judge(const char *what, const struct rig_tally *t);

#endif
