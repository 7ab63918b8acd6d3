// replay_check: is what a world recorded what a replay of it makes? Four times: the recording, the
// replay's own log, the recording's second half, which begins with a keyframe, and a copy of it in
// which one byte of what came in is another: that must differ.
#ifndef ACTD_REPLAY_CHECK_H
#define ACTD_REPLAY_CHECK_H

#include "tests/fault/world.h"

struct replay_ran { // what the world knows of its run by itself
    struct world_config cfg;
    uint64_t ticks, commands, inputs, chunks;
    // The tick in which memory of the loop was hit, + 1; 0 = in none. From there on no input says
    // what the loop did, and a replay must differ: by the tick `shown` at the latest.
    uint64_t hit, shown;
};

struct replay_checked {
    struct replay_result result; // of the recording
    int flips;                   // bytes that were another, one at a time
    char problem[400];           // "" = all is as it must be
};

// plain. dir has the recording, and takes what is made of it.
void replay_check(const char *dir, const struct replay_ran *ran,
                  struct replay_checked *out);

#endif
