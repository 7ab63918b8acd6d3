// mcap_recover: what can be saved of a damaged file, as a new, whole one. After damage it looks for
// the next chunk that is one: its CRC decides. What it wrote is read back before it says so.
#ifndef ACTD_MCAP_RECOVER_H
#define ACTD_MCAP_RECOVER_H

#include "daemon/mcap_read.h"

struct mcap_recovery {
    uint64_t bytes_in, bytes_lost, bytes_out;
    uint64_t chunks, messages; // saved
    uint64_t damaged;          // places
    uint64_t loose;            // messages found outside of chunks
    bool was_whole;
    bool no_output; // what failed is `to`
};

// Writes `to` (under a name of its own, TO.XXXXXX, until it was read back). 0: all was there;
// 1: saved with losses; -errno with err: nothing could be saved, `to` is not there or as it was.
int mcap_recover(const char *from, const char *to, const struct mcap_limits *limits,
                 struct mcap_recovery *out, struct mcap_error *err);

#endif
