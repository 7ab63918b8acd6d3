// pace: does a stream keep the rate that was declared for it? Judged over the last
// hundred messages, so that one late message, or one in twenty lost, says nothing, while
// a camera that fell to half its rate is told. A message that does not come is not seen
// here: that is what age is for. Pure: the times are the caller's. Class io.
#ifndef ACTD_PACE_H
#define ACTD_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/clock.h"

#define PACE_SAMPLES 100
#define PACE_LEAST   90 // percent of the declared rate

struct pace {
    ns_t period_ns;           // declared; 0 = not judged
    uint64_t count;           // ever
    ns_t at_ns[PACE_SAMPLES]; // receipt of the last ones, a ring
};

// rate_hz as declared, 0 = do not judge.
void pace_init(struct pace *p, double rate_hz);

// One more message, received at received_ns. True when the last PACE_SAMPLES of them came
// at less than PACE_LEAST percent of the declared rate; false before there were as many.
bool pace_add(struct pace *p, ns_t received_ns);

#endif
