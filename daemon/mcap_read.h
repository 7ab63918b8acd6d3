// mcap_read: a file as it is. Nothing in it is believed: every length is held against what is left
// of the file, the record, the chunk; nothing is allocated on its word beyond the limits. By pread,
// never mmap: a log may grow, or be cut, while it is read.
#ifndef ACTD_MCAP_READ_H
#define ACTD_MCAP_READ_H

#include "daemon/mcap.h"

struct mcap_reader;

struct mcap_limits {
    size_t chunk_bytes;  // uncompressed, of one chunk; 0 = 256 MiB
    size_t record_bytes; // of any other record; 0 = 64 MiB
    size_t index_bytes;  // memory for the whole index; 0 = 256 MiB
};

// Opens by the summary; where there is none, or a bad one, by a walk through all records (the index
// is then built in memory, up to the first damage). 0 or -errno with err: -ENOENT …, -EINVAL not an
// MCAP file, -EFBIG beyond a limit.
int mcap_open(struct mcap_reader **out, const char *path,
              const struct mcap_limits *limits, struct mcap_error *err);
void mcap_close(struct mcap_reader *r); // NULL is fine

// Whole: magic, DataEnd and Footer are there. Else *why (may be NULL) is what is wrong, and where.
bool mcap_whole(const struct mcap_reader *r, const char **why);
const char *mcap_profile(const struct mcap_reader *r);
const char *mcap_library(const struct mcap_reader *r);
uint64_t mcap_file_bytes(const struct mcap_reader *r);
uint64_t mcap_message_count(const struct mcap_reader *r); // by index or statistics
uint64_t mcap_channel_count_of(const struct mcap_reader *r, uint16_t channel);
uint64_t mcap_start_ns(const struct mcap_reader *r); // of messages
uint64_t mcap_end_ns(const struct mcap_reader *r);
// In the order of ids; valid until mcap_close. NULL = no such.
int mcap_schemas(const struct mcap_reader *r);
const struct mcap_schema *mcap_schema_at(const struct mcap_reader *r, int i);
const struct mcap_schema *mcap_schema_of(const struct mcap_reader *r, uint16_t id);
int mcap_channels(const struct mcap_reader *r);
const struct mcap_channel *mcap_channel_at(const struct mcap_reader *r, int i);
const struct mcap_channel *mcap_channel_of(const struct mcap_reader *r, uint16_t id);
const struct mcap_channel *mcap_channel_named(const struct mcap_reader *r,
                                              const char *topic);
int mcap_chunks(const struct mcap_reader *r);
struct mcap_chunk_place {
    uint64_t offset, length, start_ns, end_ns, compressed, uncompressed;
    enum mcap_compression compression;
};
const struct mcap_chunk_place *mcap_chunk_at(const struct mcap_reader *r, int i);
// Metadata and attachments, read when asked for. pairs stay valid until mcap_close.
int mcap_metadata(struct mcap_reader *r); // how many
int mcap_metadata_at(struct mcap_reader *r, int i, const char **name,
                     const struct mcap_pair **pairs, int *n, struct mcap_error *err);
int mcap_attachments(struct mcap_reader *r);
struct mcap_attachment {
    const char *name, *media_type;
    uint64_t log_ns, create_ns;
    const void *data;
    size_t size;
};
// data is malloc'd into *own, the caller's.
int mcap_attachment_at(struct mcap_reader *r, int i, struct mcap_attachment *out,
                       void **own, struct mcap_error *err);

// ---- messages --------------------------------------------------------------------------------
enum mcap_order {
    MCAP_FILE_ORDER, // as they were written
    MCAP_LOG_ORDER,  // by log time, then as they were written
};
struct mcap_cursor;
// Of the channels listed (n = 0: of all), with from_ns <= log time < to_ns (0: no end). Chunks
// without a message of these are not even read. Each cursor holds one chunk (LOG_ORDER: those that
// overlap) in memory. The reader must outlive it.
int mcap_cursor_new(struct mcap_cursor **out, struct mcap_reader *r,
                    const uint16_t *channel, int n, enum mcap_order order,
                    uint64_t from_ns, uint64_t to_ns);
void mcap_cursor_free(struct mcap_cursor *c);
// 1: *m, valid until the next call; 0: no more; -errno with err: what is damaged is passed over when
// called again.
int mcap_next(struct mcap_cursor *c, struct mcap_message *m, struct mcap_error *err);

// ---- records, one after the other ------------------------------------------------------------
// For who wants to see the file itself. visit returns 0 to go on. offset: of the opcode. Records in
// a chunk come after it, with in_chunk and their offset in its uncompressed bytes. 0, what visit
// returned, or -errno with err: where it stopped.
struct mcap_record {
    uint8_t op;
    bool in_chunk;
    uint64_t offset, length; // of the content
    const unsigned char *content;
};
int mcap_walk(const char *path, const struct mcap_limits *limits,
              int (*visit)(void *arg, const struct mcap_record *r), void *arg,
              struct mcap_error *err);

#endif
