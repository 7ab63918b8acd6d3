// What `actd replay publish` is made of: the command (replay_publish.c), its streams
// (replay_publish_run.c) and the stamps in the messages (replay_publish_stamp.c). Its test, too.
#ifndef ACTD_REPLAY_PUBLISH_IMPL_H
#define ACTD_REPLAY_PUBLISH_IMPL_H

#include <signal.h>

#include "daemon/config.h"
#include "daemon/deadline.h"
#include "daemon/logbook.h"

#define PUBLISH_LATE_NS (2 * NS_PER_MS) // after its time: counted as late

struct publish_options {
    double speed; // 1 = as it was
    bool loop, keep_stamps;
    double wait_s;                      // for who listens, before it begins
    const volatile sig_atomic_t *ended; // looked at between messages
};

struct publish_result {
    uint64_t joints, frames, bytes, late, damaged, loops, refused; // by ZeroMQ
    int streams, listening; // sockets that somebody subscribed to when it began
    struct histogram lateness;
};

// Sends what the streams of cfg's robot were sent when the log was made, in their order and at
// their distances. Waits; plain. 0, or -errno with err.
int publish_run(struct logbook *book, const struct config *cfg,
                const struct publish_options *opt, struct publish_result *out,
                struct config_error *err);

// A message whose stamp (field 1, a google.protobuf.Timestamp) is moved on by shift_ns; one without
// a stamp that can be read stays as it is. *out is malloc'd or realloc'd, capacity its size. Returns
// the bytes, 0 without memory.
size_t publish_restamp(const void *data, size_t size, int64_t shift_ns, void **out,
                       size_t *capacity);

#endif
