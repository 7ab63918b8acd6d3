// mcap_read_check: is a record what its opcode says? Only its own content is looked at: every
// number, string and array must be there. Bytes after the known fields are allowed, the format
// grows that way.
#include "daemon/mcap_read_impl.h"

#include <errno.h>

const char *mcap_op_name(uint8_t op)
{
    static const char *const name[] = {"record of opcode 0",
                                       "Header",
                                       "Footer",
                                       "Schema",
                                       "Channel",
                                       "Message",
                                       "Chunk",
                                       "MessageIndex",
                                       "ChunkIndex",
                                       "Attachment",
                                       "AttachmentIndex",
                                       "Statistics",
                                       "Metadata",
                                       "MetadataIndex",
                                       "SummaryOffset",
                                       "DataEnd"};

    return op <= MCAP_DATA_END ? name[op] : "record of a kind that is not known";
}

uint64_t mcap_record_limit(uint8_t op, const struct mcap_limits *l)
{
    // What does not compress becomes a little longer by it.
    if (op == MCAP_CHUNK)
        return (uint64_t)l->chunk_bytes + l->chunk_bytes / 64 + (64 << 10);
    return l->record_bytes;
}

// Names of a map are unique; with as many as a hostile one can have that is not looked at.
static void map(struct mcap_in *in)
{
    struct mcap_in a = mcap_take_array(in);

    while (a.left > 0 && !a.bad) {
        mcap_take_text(&a);
        mcap_take_text(&a);
    }
    in->bad |= a.bad;
}

// Entries of one size, the last one whole.
static void array(struct mcap_in *in, size_t entry)
{
    struct mcap_in a = mcap_take_array(in);

    in->bad |= a.bad || a.left % entry != 0;
}

static void schema(struct mcap_in *in)
{
    if (mcap_take(in, 2) == 0)
        in->bad = true;
    mcap_take_text(in);
    mcap_take_text(in);
    mcap_take_array(in);
}

static void channel(struct mcap_in *in)
{
    mcap_take_bytes(in, 4);
    mcap_take_text(in);
    mcap_take_text(in);
    map(in);
}

static void chunk_index(struct mcap_in *in)
{
    mcap_take_bytes(in, 32);
    array(in, 10);
    mcap_take_bytes(in, 8);
    mcap_take_text(in);
    mcap_take_bytes(in, 16);
}

static void attachment(struct mcap_in *in)
{
    struct mcap_in all = *in;

    mcap_take_bytes(in, 16);
    mcap_take_text(in);
    mcap_take_text(in);
    mcap_take_bytes(in, mcap_take(in, 8));
    if (in->bad)
        return;
    size_t n = all.left - in->left;
    uint32_t crc = (uint32_t)mcap_take(in, 4);
    if (crc && crc != mcap_crc(0, all.p, n))
        in->bad = true;
}

static void attachment_index(struct mcap_in *in)
{
    mcap_take_bytes(in, 40);
    mcap_take_text(in);
    mcap_take_text(in);
}

static void statistics(struct mcap_in *in)
{
    mcap_take_bytes(in, 8 + 2 + 4 * 4 + 16);
    array(in, 10);
}

static void chunk(struct mcap_in *in)
{
    mcap_take_bytes(in, 28);
    mcap_take_text(in);
    mcap_take_bytes(in, mcap_take(in, 8));
}

static void fields(uint8_t op, struct mcap_in *in)
{
    switch (op) {
    case MCAP_HEADER:
        mcap_take_text(in);
        mcap_take_text(in);
        break;
    case MCAP_FOOTER:
        in->bad = in->left != MCAP_FOOTER_BYTES;
        break;
    case MCAP_SCHEMA:
        schema(in);
        break;
    case MCAP_CHANNEL:
        channel(in);
        break;
    case MCAP_MESSAGE:
        mcap_take_bytes(in, MCAP_MESSAGE_FIXED);
        break;
    case MCAP_CHUNK:
        chunk(in);
        break;
    case MCAP_MESSAGE_INDEX:
        mcap_take_bytes(in, 2);
        array(in, 16);
        break;
    case MCAP_CHUNK_INDEX:
        chunk_index(in);
        break;
    case MCAP_ATTACHMENT:
        attachment(in);
        break;
    case MCAP_ATTACHMENT_INDEX:
        attachment_index(in);
        break;
    case MCAP_STATISTICS:
        statistics(in);
        break;
    case MCAP_METADATA:
        mcap_take_text(in);
        map(in);
        break;
    case MCAP_METADATA_INDEX:
        mcap_take_bytes(in, 16);
        mcap_take_text(in);
        break;
    case MCAP_SUMMARY_OFFSET:
        mcap_take_bytes(in, 17);
        break;
    case MCAP_DATA_END:
        mcap_take_bytes(in, 4);
        break;
    default: // not known: passed over by its length
        break;
    }
}

int mcap_record_check(const struct mcap_record *r, struct mcap_error *err)
{
    struct mcap_in in = {r->content, (size_t)r->length, r->op == 0};

    fields(r->op, &in);
    if (!in.bad)
        return 0;
    return mcap_fail(err, -EBADMSG, "the %s at byte %llu%s is damaged",
                     mcap_op_name(r->op), (unsigned long long)r->offset,
                     r->in_chunk ? " of its chunk" : "");
}

struct mcap_message mcap_message_parse(const struct mcap_record *r)
{
    struct mcap_in in = {r->content, (size_t)r->length, false};
    struct mcap_message m;

    m.channel = (uint16_t)mcap_take(&in, 2);
    m.sequence = (uint32_t)mcap_take(&in, 4);
    m.log_ns = mcap_take(&in, 8);
    m.publish_ns = mcap_take(&in, 8);
    m.data = in.p;
    m.size = in.left;
    return m;
}

int mcap_chunk_parse(const unsigned char *content, uint64_t n,
                     const struct mcap_limits *l, struct mcap_chunk_head *out,
                     struct mcap_error *err)
{
    struct mcap_in in = {content, (size_t)n, false};
    struct mcap_text name;
    int compression;

    out->start_ns = mcap_take(&in, 8);
    out->end_ns = mcap_take(&in, 8);
    out->uncompressed = mcap_take(&in, 8);
    out->crc = (uint32_t)mcap_take(&in, 4);
    name = mcap_take_text(&in);
    out->n = mcap_take(&in, 8);
    out->records = mcap_take_bytes(&in, out->n);
    if (in.bad)
        return mcap_fail(err, -EBADMSG, "a chunk's lengths do not add up");
    compression = mcap_compression_of(name.s, name.n);
    if (compression < 0)
        return mcap_fail(
            err, -EBADMSG,
            "a chunk is compressed with '%.*s', which is neither zstd nor lz4",
            name.n > 20 ? 20 : (int)name.n, name.s);
    out->compression = (enum mcap_compression)compression;
    if (out->start_ns > out->end_ns)
        return mcap_fail(err, -EBADMSG, "a chunk ends before it begins");
    if (out->uncompressed > l->chunk_bytes)
        return mcap_fail(err, -EFBIG, "a chunk says it holds %llu bytes; %zu are allowed",
                         (unsigned long long)out->uncompressed, l->chunk_bytes);
    return 0;
}
