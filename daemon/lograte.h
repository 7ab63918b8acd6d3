// lograte: steps of the ladder that come again and again must not fill the log. Of each class of
// step, the same from, to and reason, at most one line a second is written; how many were left out
// is told by the class's next line, or, where none follows, once it has been silent for a second.
// So an arm that chatters between HOLD and RUNNING at 20 Hz writes two lines a second, not forty.
// A step to a latched state, or on the way to one, is always told: it is what one looks for.
//
// Pure: the times are the caller's. Any thread class, one at a time.
#ifndef ACTD_LOGRATE_H
#define ACTD_LOGRATE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/clock.h"
#include "daemon/ladder.h"

#define LOGRATE_PERIOD_NS NS_PER_S

struct lograte_class {
    bool told; // ever
    ns_t told_ns, came_ns;
    uint32_t left_out; // since told_ns
};

struct lograte {       // all zero at first
    uint64_t left_out; // of all classes
    // Every class has its place, 150 kB in all: none is ever forgotten for another.
    struct lograte_class of[LADDER_STATES][LADDER_STATES][LADDER_REASONS];
};

// One more step, seen at now. True: it gets its line, and *left_out of its class got none since
// their last one. Its own silence is broken either way.
bool lograte_step(struct lograte *l, enum ladder_state from, enum ladder_state to,
                  enum ladder_reason reason, ns_t now, uint32_t *left_out);

// A class of which some were left out and that has been silent for a second: its line is due.
// True, and *from, *to, *reason, *left_out say which; call again until false.
bool lograte_silent(struct lograte *l, ns_t now, enum ladder_state *from,
                    enum ladder_state *to, enum ladder_reason *reason,
                    uint32_t *left_out);

#endif
