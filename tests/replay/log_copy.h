// log_copy: a recording once more, with one byte changed, or from its middle on.
#ifndef ACTD_LOG_COPY_H
#define ACTD_LOG_COPY_H

#include "daemon/logbook.h"

struct log_flip { // in the message of this topic and log time
    const char *topic;
    uint64_t log_ns;
    size_t offset;
    unsigned char with; // exclusive or
};

// plain. From a whole file of one segment; flip NULL: none. What came before from_log_ns is left
// out, but for chunks: the loop may take one long after it was handed over. 0, -ENOENT: there is no message to change, or -errno.
int log_copy(const char *from, const char *to, const struct log_flip *flip,
             uint64_t from_log_ns);

// plain. Do both say the same, byte by byte, in what a run consists of: ticks, commands, inputs,
// chunks, messages? Else what differs is in `what`.
bool log_same(struct logbook *a, struct logbook *b, const char *const *topic, int n,
              char what[200]);

#endif
