#include "daemon/mcap_impl.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define FIRST_CAPACITY 512

const unsigned char mcap_magic[MCAP_MAGIC_BYTES] = {0x89, 'M', 'C',  'A',
                                                    'P',  '0', '\r', '\n'};

static const char *const compression_name[] = {
    [MCAP_NONE] = "", [MCAP_LZ4] = "lz4", [MCAP_ZSTD] = "zstd"};

const char *mcap_compression_name(enum mcap_compression c)
{
    return (unsigned)c <= MCAP_ZSTD ? compression_name[c] : NULL;
}

int mcap_compression_of(const char *name, size_t n)
{
    for (int c = MCAP_NONE; c <= MCAP_ZSTD; c++)
        if (strlen(compression_name[c]) == n && memcmp(compression_name[c], name, n) == 0)
            return c;
    return -1;
}

uint32_t mcap_crc(uint32_t before, const void *data, size_t n)
{
    // zlib takes no bytes at NULL for a wish to begin.
    return n > 0 ? (uint32_t)crc32_z(before, data, n) : before;
}

// ---- bytes -----------------------------------------------------------------------------------

void mcap_bytes_free(struct mcap_bytes *b)
{
    free(b->data);
    *b = (struct mcap_bytes){0};
}

// Twice as much each time, so that a megabyte in pieces is copied once in the mean.
bool mcap_reserve(struct mcap_bytes *b, size_t n)
{
    size_t capacity = b->capacity > 0 ? b->capacity : FIRST_CAPACITY;
    unsigned char *data;

    if (n <= b->capacity - b->n)
        return true;
    if (n > SIZE_MAX / 2 - b->n)
        return false;
    while (capacity - b->n < n)
        capacity *= 2;
    data = realloc(b->data, capacity);
    if (!data)
        return false;
    b->data = data;
    b->capacity = capacity;
    return true;
}

void mcap_put(struct mcap_bytes *b, const void *data, size_t n)
{
    if (n == 0 || b->failed)
        return;
    if (!mcap_reserve(b, n)) {
        b->failed = true;
        return;
    }
    memcpy(b->data + b->n, data, n);
    b->n += n;
}

static void store(unsigned char *out, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)(v >> (8 * i));
}

static void put_number(struct mcap_bytes *b, uint64_t v, size_t n)
{
    unsigned char bytes[8];

    store(bytes, v, n);
    mcap_put(b, bytes, n);
}

void mcap_put_u8(struct mcap_bytes *b, uint8_t v)
{
    put_number(b, v, 1);
}

void mcap_put_u16(struct mcap_bytes *b, uint16_t v)
{
    put_number(b, v, 2);
}

void mcap_put_u32(struct mcap_bytes *b, uint32_t v)
{
    put_number(b, v, 4);
}

void mcap_put_u64(struct mcap_bytes *b, uint64_t v)
{
    put_number(b, v, 8);
}

// Bytes behind their length in 32 bits; more than that can hold do not get in.
static void put_sized(struct mcap_bytes *b, const void *data, size_t n)
{
    if (n > UINT32_MAX)
        b->failed = true;
    mcap_put_u32(b, (uint32_t)n);
    mcap_put(b, data, n);
}

void mcap_put_string(struct mcap_bytes *b, const char *s)
{
    put_sized(b, s, strlen(s));
}

// ---- records ---------------------------------------------------------------------------------

size_t mcap_begin(struct mcap_bytes *b, enum mcap_op op)
{
    size_t begin = b->n;

    mcap_put_u8(b, (uint8_t)op);
    mcap_put_u64(b, 0);
    return begin;
}

void mcap_end(struct mcap_bytes *b, size_t begin, bool pad)
{
    static const unsigned char more[] = {0x01, 0xff, 0xff};

    if (pad)
        mcap_put(b, more, sizeof more);
    if (!b->failed)
        store(b->data + begin + 1, b->n - begin - MCAP_HEAD, 8);
}

void mcap_add_length(struct mcap_bytes *b, size_t begin, uint64_t n)
{
    store(b->data + begin + 1, b->n - begin - MCAP_HEAD + n, 8);
}

size_t mcap_begin_list(struct mcap_bytes *b)
{
    size_t begin = b->n;

    mcap_put_u32(b, 0);
    return begin;
}

void mcap_end_list(struct mcap_bytes *b, size_t begin)
{
    if (b->failed)
        return;
    if (b->n - begin - 4 > UINT32_MAX)
        b->failed = true;
    store(b->data + begin, b->n - begin - 4, 4);
}

void mcap_put_pairs(struct mcap_bytes *b, const struct mcap_pair *pairs, int n)
{
    size_t list = mcap_begin_list(b);

    for (int i = 0; i < n; i++) {
        mcap_put_string(b, pairs[i].key);
        mcap_put_string(b, pairs[i].value);
    }
    mcap_end_list(b, list);
}

void mcap_put_header(struct mcap_bytes *b, const char *profile, const char *library,
                     bool pad)
{
    size_t record = mcap_begin(b, MCAP_HEADER);

    mcap_put_string(b, profile);
    mcap_put_string(b, library);
    mcap_end(b, record, pad);
}

void mcap_put_schema(struct mcap_bytes *b, const struct mcap_schema *s, bool pad)
{
    size_t record = mcap_begin(b, MCAP_SCHEMA);

    mcap_put_u16(b, s->id);
    mcap_put_string(b, s->name);
    mcap_put_string(b, s->encoding);
    put_sized(b, s->data, s->size);
    mcap_end(b, record, pad);
}

void mcap_put_channel(struct mcap_bytes *b, const struct mcap_channel *c, bool pad)
{
    size_t record = mcap_begin(b, MCAP_CHANNEL);

    mcap_put_u16(b, c->id);
    mcap_put_u16(b, c->schema);
    mcap_put_string(b, c->topic);
    mcap_put_string(b, c->encoding);
    mcap_put_pairs(b, c->metadata, c->n_metadata);
    mcap_end(b, record, pad);
}

void mcap_put_message(struct mcap_bytes *b, const struct mcap_message *m)
{
    unsigned char head[MCAP_HEAD + MCAP_MESSAGE_FIXED] = {MCAP_MESSAGE};

    store(head + 1, MCAP_MESSAGE_FIXED + (uint64_t)m->size, 8);
    store(head + 9, m->channel, 2);
    store(head + 11, m->sequence, 4);
    store(head + 15, m->log_ns, 8);
    store(head + 23, m->publish_ns, 8);
    mcap_put(b, head, sizeof head);
    mcap_put(b, m->data, m->size);
}
