// wall: has the local wall clock been set? Nothing in actd goes by it, but a driver on
// this machine stamps its messages with it, and when somebody sets it all stamps of such
// drivers jump as one. Whoever knows by how much the clock was set can tell that from a
// driver gone wrong. Pure: the times are the caller's. Class io.
#ifndef ACTD_WALL_H
#define ACTD_WALL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/clock.h"

#define WALL_LEAST_NS NS_PER_MS         // what a slewing clock gains in two seconds
#define WALL_SURE_NS  (100 * NS_PER_US) // between the looks, at most

struct wall { // all zero to begin with
    bool known;
    int64_t ahead_ns; // of the monotonic clock, when last looked at
};

// The wall clock as it was between two looks at the monotonic one. Returns by how much it
// was set since the last call, 0 when it was not, or when the thread lost its core between
// the looks: then it knows no better, and nothing is lost. Call it every second at least.
int64_t wall_moved(struct wall *w, ns_t before_ns, int64_t wall_ns, ns_t after_ns);

#endif
