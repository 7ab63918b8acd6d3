// The memory of a chunk is kept for the next one: of the records, of the index of each channel, of
// the compressor. What goes out is copied once, into a piece of just its size, since in trigger
// mode a few hundred of them are held.
#include "daemon/mcap_build.h"

#include <errno.h>
#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "daemon/mcap_impl.h"

#define LEAST       1024
#define ENTRY_BYTES 16 // of a message in its channel's index
// A MessageIndex without its entries, a Chunk without its records and its compression's name.
#define INDEX_FIXED (MCAP_HEAD + 2 + 4)
#define CHUNK_FIXED (MCAP_HEAD + 8 + 8 + 8 + 4 + 4 + 8)
#define PAD_BYTES   3

struct lane { // a channel of this chunk
    uint16_t id;
    struct mcap_bytes
        entries; // (log time, offset) of each message, as in its MessageIndex
};

struct mcap_build {
    struct mcap_build_options opt;
    struct mcap_bytes records, packed;
    uint64_t messages, start_ns, end_ns;
    struct lane *lane; // (n_lanes of lanes): in the order of their first messages
    int n_lanes, lanes;
    uint32_t slot[MCAP_IDS]; // 1 + index of the channel's lane, 0 = none
    ZSTD_CCtx *zstd;
};

void mcap_chunk_free(struct mcap_chunk *c)
{
    if (c)
        free(c->bytes);
    free(c);
}

int mcap_build_new(struct mcap_build **out, const struct mcap_build_options *opt)
{
    struct mcap_build *b = calloc(1, sizeof *b);

    *out = NULL;
    if (!b)
        return -ENOMEM;
    b->opt = *opt;
    b->opt.level = opt->level != 0 ? opt->level : 1;
    b->opt.least = opt->least > 0 ? opt->least : LEAST;
    if (opt->compression == MCAP_ZSTD) {
        b->zstd = ZSTD_createCCtx();
        if (!b->zstd) {
            mcap_build_free(b);
            return -ENOMEM;
        }
    }
    *out = b;
    return 0;
}

void mcap_build_free(struct mcap_build *b)
{
    if (!b)
        return;
    for (int i = 0; i < b->lanes; i++)
        mcap_bytes_free(&b->lane[i].entries);
    free(b->lane);
    mcap_bytes_free(&b->records);
    mcap_bytes_free(&b->packed);
    ZSTD_freeCCtx(b->zstd);
    free(b);
}

// ---- in --------------------------------------------------------------------------------------

// After a record was put: 0, or what was before.
static int kept(struct mcap_build *b, size_t before)
{
    if (!b->records.failed)
        return 0;
    b->records.failed = false;
    b->records.n = before;
    return -ENOMEM;
}

int mcap_build_schema(struct mcap_build *b, const struct mcap_schema *s)
{
    size_t before = b->records.n;

    mcap_put_schema(&b->records, s, false);
    return kept(b, before);
}

int mcap_build_channel(struct mcap_build *b, const struct mcap_channel *c)
{
    size_t before = b->records.n;

    mcap_put_channel(&b->records, c, false);
    return kept(b, before);
}

// The lane of a channel with room for one message more. A lane without one is nobody's.
static struct lane *lane_of(struct mcap_build *b, uint16_t id)
{
    struct lane *lane;

    if (b->slot[id] == 0 && b->n_lanes == b->lanes) {
        int lanes = b->lanes > 0 ? 2 * b->lanes : 16;

        lane = realloc(b->lane, (size_t)lanes * sizeof *lane);
        if (!lane)
            return NULL;
        memset(lane + b->lanes, 0, (size_t)(lanes - b->lanes) * sizeof *lane);
        b->lane = lane;
        b->lanes = lanes;
    }
    lane = b->slot[id] > 0 ? &b->lane[b->slot[id] - 1] : &b->lane[b->n_lanes];
    if (!mcap_reserve(&lane->entries, ENTRY_BYTES))
        return NULL;
    if (b->slot[id] == 0) {
        lane->id = id;
        b->slot[id] = (uint32_t)++b->n_lanes;
    }
    return lane;
}

int mcap_build_message(struct mcap_build *b, const struct mcap_message *m)
{
    size_t before = b->records.n;
    struct lane *lane;

    if (m->size > SIZE_MAX / 2 ||
        !mcap_reserve(&b->records, MCAP_HEAD + MCAP_MESSAGE_FIXED + m->size))
        return -ENOMEM;
    lane = lane_of(b, m->channel);
    if (!lane)
        return -ENOMEM;
    mcap_put_message(&b->records, m);
    mcap_put_u64(&lane->entries, m->log_ns);
    mcap_put_u64(&lane->entries, before);
    b->start_ns = b->messages == 0 || m->log_ns < b->start_ns ? m->log_ns : b->start_ns;
    b->end_ns = b->messages == 0 || m->log_ns > b->end_ns ? m->log_ns : b->end_ns;
    b->messages++;
    return 0;
}

size_t mcap_build_bytes(const struct mcap_build *b)
{
    return b->records.n;
}

uint64_t mcap_build_messages(const struct mcap_build *b)
{
    return b->messages;
}

// ---- out -------------------------------------------------------------------------------------

static int zstd(struct mcap_build *b)
{
    const struct mcap_bytes *in = &b->records;
    size_t n;

    if (!mcap_reserve(&b->packed, ZSTD_compressBound(in->n)))
        return -ENOMEM;
    n = ZSTD_compressCCtx(b->zstd, b->packed.data, b->packed.capacity, in->data, in->n,
                          b->opt.level);
    if (ZSTD_isError(n))
        return ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation ? -ENOMEM : -EIO;
    b->packed.n = n;
    return 0;
}

static int lz4(struct mcap_build *b)
{
    const struct mcap_bytes *in = &b->records;
    LZ4F_preferences_t how = {.frameInfo = {.contentSize = in->n}};
    size_t n;

    if (!mcap_reserve(&b->packed, LZ4F_compressFrameBound(in->n, &how)))
        return -ENOMEM;
    n = LZ4F_compressFrame(b->packed.data, b->packed.capacity, in->data, in->n, &how);
    if (LZ4F_isError(n))
        return -EIO;
    b->packed.n = n;
    return 0;
}

// *as: what is worth it.
static int compress(struct mcap_build *b, enum mcap_compression *as)
{
    size_t n = b->records.n;
    int rc;

    *as = MCAP_NONE;
    b->packed.n = 0;
    if (b->opt.compression == MCAP_NONE || n < b->opt.least)
        return 0;
    rc = b->opt.compression == MCAP_ZSTD ? zstd(b) : lz4(b);
    if (rc < 0)
        return rc;
    if (b->packed.n <= n - n / 50)
        *as = b->opt.compression;
    return 0;
}

static const struct mcap_bytes *content_of(const struct mcap_build *b,
                                           enum mcap_compression as)
{
    return as == MCAP_NONE ? &b->records : &b->packed;
}

static void put_chunk(const struct mcap_build *b, struct mcap_bytes *out,
                      struct mcap_chunk_facts *f)
{
    const struct mcap_bytes *in = &b->records, *content = content_of(b, f->compression);
    size_t record = mcap_begin(out, MCAP_CHUNK);

    mcap_put_u64(out, f->start_ns);
    mcap_put_u64(out, f->end_ns);
    mcap_put_u64(out, in->n);
    mcap_put_u32(out, b->opt.no_crc ? 0 : mcap_crc(0, in->data, in->n));
    mcap_put_string(out, mcap_compression_name(f->compression));
    mcap_put_u64(out, content->n);
    mcap_put(out, content->data, content->n);
    mcap_end(out, record, false);
    f->chunk_bytes = out->n;
}

static void put_indexes(const struct mcap_build *b, struct mcap_bytes *out,
                        struct mcap_chunk_facts *f)
{
    for (int i = 0; i < b->n_lanes; i++) {
        const struct lane *lane = &b->lane[i];
        size_t record, list;

        f->channel[i].id = lane->id;
        f->channel[i].messages = lane->entries.n / ENTRY_BYTES;
        if (b->opt.no_message_index)
            continue;
        f->channel[i].index_offset = out->n;
        record = mcap_begin(out, MCAP_MESSAGE_INDEX);
        mcap_put_u16(out, lane->id);
        list = mcap_begin_list(out);
        mcap_put(out, lane->entries.data, lane->entries.n);
        mcap_end_list(out, list);
        mcap_end(out, record, b->opt.pad);
    }
    f->index_bytes = out->n - f->chunk_bytes;
}

// Bytes that it all comes to: no more is held for as long as the chunk is.
static size_t room_for(const struct mcap_build *b, enum mcap_compression as)
{
    return CHUNK_FIXED + sizeof "zstd" + content_of(b, as)->n +
           (size_t)b->n_lanes * (INDEX_FIXED + PAD_BYTES) +
           (size_t)b->messages * ENTRY_BYTES;
}

static int finish(struct mcap_build *b, struct mcap_chunk **out)
{
    size_t lanes = (size_t)b->n_lanes;
    struct mcap_bytes bytes = {0};
    enum mcap_compression as;
    struct mcap_chunk *c;
    int rc = compress(b, &as);

    if (rc < 0)
        return rc;
    c = calloc(1, sizeof *c + lanes * sizeof *c->facts.channel);
    if (!c)
        return -ENOMEM;
    c->facts = (struct mcap_chunk_facts){
        .start_ns = b->start_ns,
        .end_ns = b->end_ns,
        .messages = b->messages,
        .compressed = content_of(b, as)->n,
        .uncompressed = b->records.n,
        .compression = as,
        .n_channels = b->n_lanes,
        .channel = (struct mcap_chunk_channel *)(c + 1),
    };
    bytes.capacity = room_for(b, as);
    bytes.data = malloc(bytes.capacity);
    bytes.failed = !bytes.data;
    put_chunk(b, &bytes, &c->facts);
    put_indexes(b, &bytes, &c->facts);
    c->bytes = bytes.data;
    c->n = bytes.n;
    if (bytes.failed) {
        mcap_chunk_free(c);
        return -ENOMEM;
    }
    *out = c;
    return 0;
}

int mcap_build_finish(struct mcap_build *b, struct mcap_chunk **out)
{
    int rc = 0;

    *out = NULL;
    if (b->records.n > 0)
        rc = finish(b, out);
    for (int i = 0; i < b->n_lanes; i++) {
        b->slot[b->lane[i].id] = 0;
        b->lane[i].entries.n = 0;
    }
    b->n_lanes = 0;
    b->records.n = 0;
    b->messages = b->start_ns = b->end_ns = 0;
    return rc;
}
