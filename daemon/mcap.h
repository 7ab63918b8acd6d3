// mcap: the container format that recordings have (https://mcap.dev/spec), what writer and reader
// share. A file is magic, Header, data, DataEnd, summary, Footer, magic; messages lie in chunks,
// each followed by its MessageIndex records. All numbers are little-endian.
//
//   mcap_build.c   one chunk: messages in, its records as bytes out      (mcap_build.h)
//   mcap_write.c   one file around them; mcap_write_end.c ends it        (mcap_write.h)
//   mcap_read.c    a file as it is, by index or from its beginning       (mcap_read.h)
//   mcap_recover.c what can be saved of a damaged one                    (mcap_recover.h)
//
// All plain.
#ifndef ACTD_MCAP_H
#define ACTD_MCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MCAP_MAGIC_BYTES 8
extern const unsigned char mcap_magic[MCAP_MAGIC_BYTES];

enum mcap_op {
    MCAP_HEADER = 0x01,
    MCAP_FOOTER = 0x02,
    MCAP_SCHEMA = 0x03,
    MCAP_CHANNEL = 0x04,
    MCAP_MESSAGE = 0x05,
    MCAP_CHUNK = 0x06,
    MCAP_MESSAGE_INDEX = 0x07,
    MCAP_CHUNK_INDEX = 0x08,
    MCAP_ATTACHMENT = 0x09,
    MCAP_ATTACHMENT_INDEX = 0x0a,
    MCAP_STATISTICS = 0x0b,
    MCAP_METADATA = 0x0c,
    MCAP_METADATA_INDEX = 0x0d,
    MCAP_SUMMARY_OFFSET = 0x0e,
    MCAP_DATA_END = 0x0f,
};
#define MCAP_HEAD 9 // bytes before a record's content: op, u64 length

enum mcap_compression { MCAP_NONE, MCAP_LZ4, MCAP_ZSTD };
// "", "lz4", "zstd"; NULL for none of these.
const char *mcap_compression_name(enum mcap_compression c);
// -1: none that we know.
int mcap_compression_of(const char *name, size_t n);

struct mcap_pair { // of a map<string, string>
    const char *key, *value;
};

struct mcap_schema {
    uint16_t id; // not 0
    const char *name, *encoding;
    const void *data;
    size_t size;
};

struct mcap_channel {
    uint16_t id, schema; // schema 0 = none
    const char *topic, *encoding;
    const struct mcap_pair *metadata;
    int n_metadata;
};

struct mcap_message {
    uint16_t channel;
    uint32_t sequence;
    uint64_t log_ns, publish_ns;
    const void *data;
    size_t size;
};

struct mcap_error {
    char text[256]; // one sentence: what, where (byte), and the remedy where there is one
};

// Bytes that grow; for records under construction. data is realloc's.
struct mcap_bytes {
    unsigned char *data;
    size_t n, capacity;
    bool failed; // out of memory: what was put since is missing
};
void mcap_bytes_free(struct mcap_bytes *b);
void mcap_put(struct mcap_bytes *b, const void *data, size_t n);
void mcap_put_u8(struct mcap_bytes *b, uint8_t v);
void mcap_put_u16(struct mcap_bytes *b, uint16_t v);
void mcap_put_u32(struct mcap_bytes *b, uint32_t v);
void mcap_put_u64(struct mcap_bytes *b, uint64_t v);
void mcap_put_string(struct mcap_bytes *b, const char *s);
// A whole record; pad: the bytes 01 FF FF after its content, as the public test suite has them.
void mcap_put_header(struct mcap_bytes *b, const char *profile, const char *library,
                     bool pad);
void mcap_put_schema(struct mcap_bytes *b, const struct mcap_schema *s, bool pad);
void mcap_put_channel(struct mcap_bytes *b, const struct mcap_channel *c, bool pad);
void mcap_put_message(struct mcap_bytes *b, const struct mcap_message *m);
uint32_t mcap_crc(uint32_t before, const void *data,
                  size_t n); // zlib's crc32; before 0 at first

#endif
