// What the two files of mcap_write share: the file so far.
#ifndef ACTD_MCAP_WRITE_IMPL_H
#define ACTD_MCAP_WRITE_IMPL_H

#include "daemon/mcap_impl.h"
#include "daemon/mcap_write.h"

struct mcap_known { // a schema or channel that the summary will have
    uint16_t id;
    size_t at, n; // its record, in mcap_table.records
    uint64_t messages;
};

struct mcap_table {
    struct mcap_bytes records;
    struct mcap_known *known; // (n of capacity), as they came
    int n, capacity;
    uint32_t slot[MCAP_IDS]; // 1 + index into known, 0 = not known
};

struct mcap_writer {
    struct mcap_writer_options opt;
    bool finished;
    uint64_t bytes;           // written well, and
    uint32_t crc;             // over them
    struct mcap_bytes record; // being made
    struct mcap_table schemas, channels;
    struct mcap_bytes chunk_index, attachment_index,
        metadata_index; // records of the summary
    uint32_t chunks, attachments, metadata;
    uint64_t messages, start_ns, end_ns;
};

// All of v or nothing, and its count and CRC only if all. 0 or -errno.
int mcap_writer_emit(struct mcap_writer *w, const struct iovec *v, int n);

#endif
