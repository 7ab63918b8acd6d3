// mcap_build: one chunk. Messages go in; out come the bytes of the Chunk record and of its
// MessageIndex records in one piece, to be written with one writev. Knows no file. All plain.
#ifndef ACTD_MCAP_BUILD_H
#define ACTD_MCAP_BUILD_H

#include "daemon/mcap.h"

struct mcap_build;

struct mcap_build_options {
    enum mcap_compression compression;
    int level;   // zstd's; 0 = 1
    bool no_crc; // uncompressed_crc 0
    bool no_message_index;
    bool pad;     // the MessageIndex records
    size_t least; // fewer bytes stay uncompressed: 0 = 1024, as the C++ writer has it; a
                  // chunk that compression makes less than 2 % smaller does, too
};

// What a file's summary must know of a chunk.
struct mcap_chunk_facts {
    uint64_t start_ns, end_ns; // of its messages, 0 without
    uint64_t messages;
    uint64_t chunk_bytes, index_bytes; // records, heads included
    uint64_t compressed, uncompressed; // of what is in it
    enum mcap_compression compression; // as it came out
    int n_channels;
    struct mcap_chunk_channel {
        uint16_t id;
        uint64_t messages;
        uint64_t index_offset; // of its MessageIndex, from the chunk's opcode
    } * channel;               // the chunk's own, until it is freed
};

struct mcap_chunk { // finished; mcap_chunk_free's
    struct mcap_chunk_facts facts;
    size_t n;
    unsigned char *bytes; // Chunk record, then its MessageIndex records
};
void mcap_chunk_free(struct mcap_chunk *c); // NULL is fine

int mcap_build_new(struct mcap_build **out,
                   const struct mcap_build_options *opt); // 0 or -ENOMEM
void mcap_build_free(struct mcap_build *b);
// 0 or -ENOMEM: then the chunk is as it was before.
int mcap_build_schema(struct mcap_build *b, const struct mcap_schema *s);
int mcap_build_channel(struct mcap_build *b, const struct mcap_channel *c);
int mcap_build_message(struct mcap_build *b, const struct mcap_message *m);
size_t mcap_build_bytes(const struct mcap_build *b);      // so far, uncompressed
uint64_t mcap_build_messages(const struct mcap_build *b); // so far
// Ends the chunk; the builder begins the next one. *out may be NULL when nothing was put in. 0,
// -ENOMEM, -EIO (a compressor failed): what was in it is lost then.
int mcap_build_finish(struct mcap_build *b, struct mcap_chunk **out);

#endif
