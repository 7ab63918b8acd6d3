// outbox: what becomes of the loop's commands on their way to the socket. Of several that
// wait only the newest leaves: a bus that was held up must not send a burst of old
// positions, each with a fresh time to live. A command that has waited its time to live
// out, or that was made before the monitor cut the output, does not leave at all; one
// that has waited a while leaves with what is left of it. Everything is counted. Class
// io; no thread, no socket, no clock.
#ifndef ACTD_OUTBOX_H
#define ACTD_OUTBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/board.h"

struct outbox { // all zero to begin with; the counters are read by any thread
    _Atomic uint64_t superseded; // a newer one was there
    _Atomic uint64_t expired;    // lived too long in the ring
    _Atomic uint64_t cut;        // made before the monitor's last cut
    uint64_t last_sequence;      // of the last one that left
};

// io. The command to send at `now`, with what is left of its time to live. False when
// there is none; *out is then garbage. Empties the ring in any case: what this call does
// not send is never sent. made_ns of a command may lie after `now` by the time it takes
// to get here.
bool outbox_next(struct outbox *o, struct board *board, ns_t now, struct command *out);

#endif
