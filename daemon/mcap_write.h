// mcap_write: one file. Bytes go where the caller says; a failed write leaves the file's own count
// at the last good record, so that the caller can cut it there and go on, or give it up. The same
// holds when memory ends. All plain.
#ifndef ACTD_MCAP_WRITE_H
#define ACTD_MCAP_WRITE_H

#include <sys/uio.h>

#include "daemon/mcap_build.h"

struct mcap_writer;

struct mcap_writer_options {
    const char *profile, *library; // Header
    // All n bytes or a failure: 0 or -errno.
    int (*write)(void *arg, const struct iovec *v, int n);
    void *arg;
    // What the summary leaves out; all false: everything is there. For the public test suite.
    bool no_statistics, no_repeat_schemas, no_repeat_channels, no_attachment_index,
        no_metadata_index, no_chunk_index, no_summary_offsets;
    bool no_data_crc; // DataEnd with 0
    bool pad;
};

// Writes magic and Header. 0 or -errno.
int mcap_writer_new(struct mcap_writer **out, const struct mcap_writer_options *opt);
void mcap_writer_free(struct mcap_writer *w); // ends nothing; NULL is fine
// Remembered for the summary. `loose`: also written here, outside of any chunk. Said again it is
// fine, as another one of this id it is -EINVAL; so are a channel whose schema was not said, and a
// message or chunk of a channel that was not.
int mcap_writer_schema(struct mcap_writer *w, const struct mcap_schema *s, bool loose);
int mcap_writer_channel(struct mcap_writer *w, const struct mcap_channel *c, bool loose);
int mcap_writer_message(struct mcap_writer *w, const struct mcap_message *m); // loose
int mcap_writer_chunk(struct mcap_writer *w, const struct mcap_chunk *c); // one writev
int mcap_writer_metadata(struct mcap_writer *w, const char *name,
                         const struct mcap_pair *pairs, int n);
int mcap_writer_attachment(struct mcap_writer *w, uint64_t log_ns, uint64_t create_ns,
                           const char *name, const char *media_type, const void *data,
                           size_t size);
// DataEnd, summary, Footer, magic, in one write. Then only mcap_writer_free; after a failure it may
// be tried again.
int mcap_writer_finish(struct mcap_writer *w);
uint64_t mcap_writer_bytes(const struct mcap_writer *w); // written well
uint64_t mcap_writer_messages(const struct mcap_writer *w);

#endif
