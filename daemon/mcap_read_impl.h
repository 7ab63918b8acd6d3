// What the reader's files share; nobody else includes it.
//
//   mcap_read_bytes.c  taking numbers and strings out of a record, and out of a file
//   mcap_read_check.c  is a record what its opcode says
//   mcap_read_chunk.c  what is in a chunk
//   mcap_walk.c        record after record, from the beginning
//   mcap_read_index.c  what an open file knows: schemas, channels, places
//   mcap_read_summary.c, mcap_read_scan.c  the two ways to learn that
//   mcap_read.c, mcap_cursor.c  what is asked of it
#ifndef ACTD_MCAP_READ_IMPL_H
#define ACTD_MCAP_READ_IMPL_H

#include "daemon/mcap_read.h"

#define MCAP_CHUNK_FIXED \
    40 // bytes of a Chunk's content beside compression's name and records
#define MCAP_MESSAGE_FIXED 22
#define MCAP_FOOTER_BYTES  20

// Returns rc; err may be NULL.
int mcap_fail(struct mcap_error *err, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
struct mcap_limits mcap_limits_of(const struct mcap_limits *given); // defaults filled in
const char *mcap_op_name(uint8_t op);

// ---- bytes -------------------------------------------------------------------------------------
// After the first number that is not there, `bad` is set and all is 0.
struct mcap_in {
    const unsigned char *p;
    size_t left;
    bool bad;
};
struct mcap_text { // not terminated
    const char *s;
    size_t n;
};
uint64_t mcap_take(struct mcap_in *in, size_t bytes); // 1 … 8, little-endian
const unsigned char *mcap_take_bytes(struct mcap_in *in, uint64_t n);
struct mcap_text mcap_take_text(struct mcap_in *in); // a zero byte in it is bad
// An array or map: its byte length, then an input of its own.
struct mcap_in mcap_take_array(struct mcap_in *in);

// A file through one window, by pread. `size` is what it was when it was opened: what is appended
// later is not looked at, what is cut off is an error.
struct mcap_file {
    int fd;
    uint64_t size;
    unsigned char *window;
    size_t capacity, have;
    uint64_t at;
};
int mcap_file_open(struct mcap_file *f, const char *path, struct mcap_error *err);
void mcap_file_close(struct mcap_file *f);
// *out: n bytes at `at`, until the next call. 0, -ENOMEM, -EIO (also: no longer there) …
int mcap_file_get(struct mcap_file *f, uint64_t at, size_t n, const unsigned char **out,
                  struct mcap_error *err);
int mcap_file_crc(struct mcap_file *f, uint64_t from, uint64_t to, uint32_t *crc,
                  struct mcap_error *err);

// ---- records -----------------------------------------------------------------------------------
struct mcap_chunk_head {
    uint64_t start_ns, end_ns, uncompressed;
    uint32_t crc;
    enum mcap_compression compression;
    const unsigned char *records;
    uint64_t n; // compressed
};
// -EBADMSG: not one; -EFBIG: beyond the limits.
int mcap_chunk_parse(const unsigned char *content, uint64_t n,
                     const struct mcap_limits *l, struct mcap_chunk_head *out,
                     struct mcap_error *err);
// 0 or -EBADMSG; strings, arrays, sizes. Of a Chunk only its head.
int mcap_record_check(const struct mcap_record *r, struct mcap_error *err);
struct mcap_message mcap_message_parse(const struct mcap_record *r); // was checked
// What is no longer than this is read as one piece.
uint64_t mcap_record_limit(uint8_t op, const struct mcap_limits *l);

// ---- a chunk's records -------------------------------------------------------------------------
struct mcap_unpacked {
    unsigned char *data;
    size_t n, capacity;
};
// Decompresses and checks the CRC. 0, -EBADMSG, -EFBIG, -ENOMEM.
int mcap_unpack(struct mcap_unpacked *u, const struct mcap_chunk_head *h,
                struct mcap_error *err);
void mcap_unpacked_free(struct mcap_unpacked *u);
// The record at *at, which moves behind it. 1, 0 at the end, -EBADMSG.
int mcap_inner_next(const struct mcap_unpacked *u, size_t *at, struct mcap_record *r,
                    struct mcap_error *err);

struct mcap_ids {
    unsigned char bits[65536 / 8];
};
bool mcap_ids_has(const struct mcap_ids *s, uint16_t id);
void mcap_ids_add(struct mcap_ids *s, uint16_t id);

// ---- one record after the other ----------------------------------------------------------------
struct mcap_scan {
    struct mcap_file *file;
    const struct mcap_limits *limits;
    struct mcap_ids channels;   // declared so far
    struct mcap_unpacked chunk; // of the last Chunk
    uint64_t at;                // of the next record
    uint64_t chunk_at, loose;   // the last Chunk, messages outside of chunks
    uint32_t crc;               // of all before `at`, if it could be known
    bool crc_unknown;           // bytes were passed over
    bool any_channel; // a message of a channel that was not declared is let through
    bool pass_large;  // attachments beyond the limit: content NULL
    bool data_ended, ended;
};
void mcap_scan_begin(struct mcap_scan *s, struct mcap_file *f,
                     const struct mcap_limits *l);
void mcap_scan_free(struct mcap_scan *s); // not the file
// Magic. 0, -EINVAL, -errno.
int mcap_scan_magic(struct mcap_scan *s, struct mcap_error *err);
// 1 with *r (a Chunk's records are then in s->chunk, each checked), 0 after the magic at the end,
// -errno: `at` is still where it is bad.
int mcap_scan_next(struct mcap_scan *s, struct mcap_record *r, struct mcap_error *err);

// ---- what is known -----------------------------------------------------------------------------
struct mcap_known_channel {
    struct mcap_channel c; // first
    uint64_t messages;
};
struct mcap_known_chunk {
    struct mcap_chunk_place place; // first
    uint32_t first_id, n_ids;      // its channels, in ids; 0 of them: not known
};
struct mcap_loose {
    uint64_t offset, log_ns;
    uint32_t length; // of the content
    uint16_t channel;
};
struct mcap_spot {           // of a Metadata or Attachment record
    uint64_t offset, length; // head included
    const char *name;        // NULL: not yet read
    struct mcap_pair *pair;
    int n;
};
struct mcap_reader {
    struct mcap_file file;
    struct mcap_limits limits;
    size_t kept; // bytes of memory, held against limits.index_bytes
    struct mcap_block *blocks;
    const char *profile, *library;
    bool whole, by_summary;
    struct mcap_error why;
    struct mcap_schema *schema;
    struct mcap_known_channel *channel;
    struct mcap_known_chunk *chunk;
    struct mcap_loose *loose;
    struct mcap_spot *metadata, *attachment;
    uint16_t *ids;
    size_t n_schemas, n_channels, n_chunks, n_loose, n_metadata, n_attachments, n_ids;
    size_t c_schemas, c_channels, c_chunks, c_loose, c_metadata, c_attachments, c_ids;
    int32_t *schema_slot,
        *channel_slot; // by id: place + 1, 0 none; most of it is never touched
    uint64_t messages, start_ns, end_ns;
    uint64_t lost_bytes, damaged; // by a scan that goes on after damage
    uint64_t budget;              // of bytes that it may try in vain
};
// Of schema_slot or channel_slot: -1 none.
int32_t mcap_slot(const int32_t *slot, uint16_t id);
// Memory that lasts until mcap_close; NULL beyond the limit or without memory (-EFBIG is in *rc).
void *mcap_keep(struct mcap_reader *r, size_t n, int *rc);
// The array has room for one more.
int mcap_room(struct mcap_reader *r, void *array, size_t n, size_t *capacity,
              size_t size);
// 0, -EBADMSG (the id is there, and otherwise), -EFBIG, -ENOMEM. Content was checked.
int mcap_learn_schema(struct mcap_reader *r, const struct mcap_record *rec,
                      struct mcap_error *err);
int mcap_learn_channel(struct mcap_reader *r, const struct mcap_record *rec,
                       struct mcap_error *err);
int mcap_learn_header(struct mcap_reader *r, const struct mcap_record *rec);
int mcap_learn_ids(struct mcap_reader *r, const uint16_t *id, size_t n,
                   struct mcap_known_chunk *c);
int mcap_learn_spot(struct mcap_reader *r, bool attachment, uint64_t offset,
                    uint64_t length);
int mcap_read_pairs(struct mcap_reader *r, struct mcap_in *in, struct mcap_pair **out,
                    int *n);
void mcap_forget(struct mcap_reader *r); // all but file, limits, profile and library
void mcap_index_sort(struct mcap_reader *r);

// 0: all is known; 1: there is no summary that says it (why says what is wrong, "" = nothing is);
// -errno.
int mcap_by_summary(struct mcap_reader *r, struct mcap_error *why);
// Knows what is there up to the first damage, or, going on, all that can be found. 0 or -errno.
int mcap_by_scan(struct mcap_reader *r, bool go_on, struct mcap_error *err);
// As mcap_open, but past damage.
int mcap_open_damaged(struct mcap_reader **out, const char *path,
                      const struct mcap_limits *limits, struct mcap_error *err);
// A whole record at a place that the index names; the length holds its head.
int mcap_spot_get(struct mcap_reader *r, uint64_t offset, uint64_t length, uint8_t op,
                  struct mcap_record *out, struct mcap_error *err);

#endif
