// mcap_read_summary: what the end of a file says of the rest. It is taken at its word only when it
// says everything, agrees with itself, and a record of the right kind and length lies wherever it
// points; the file is walked through otherwise.
#include "daemon/mcap_read_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAIL     (MCAP_HEAD + MCAP_FOOTER_BYTES + MCAP_MAGIC_BYTES)
#define DATA_END (MCAP_HEAD + 4)

struct statistics {
    bool there;
    uint64_t messages, schemas, channels, attachments, metadata, chunks;
};

// A record of this kind and length (head included) begins there.
static bool lies_at(struct mcap_reader *r, uint64_t offset, uint64_t length, uint8_t op)
{
    unsigned char head[MCAP_HEAD];
    struct mcap_in in = {head, sizeof head, false};

    if (length < MCAP_HEAD || offset < MCAP_MAGIC_BYTES || offset > r->file.size ||
        length > r->file.size - offset)
        return false;
    if (pread(r->file.fd, head, sizeof head, (off_t)offset) != (ssize_t)sizeof head)
        return false;
    return mcap_take(&in, 1) == op && mcap_take(&in, 8) == length - MCAP_HEAD;
}

static int chunk_index(struct mcap_reader *r, const struct mcap_record *rec)
{
    struct mcap_in in = {rec->content, (size_t)rec->length, false};
    struct mcap_known_chunk c = {0};
    struct mcap_in ids;
    struct mcap_text name;
    uint16_t id[64];
    int compression, rc;

    c.place.start_ns = mcap_take(&in, 8);
    c.place.end_ns = mcap_take(&in, 8);
    c.place.offset = mcap_take(&in, 8);
    c.place.length = mcap_take(&in, 8);
    ids = mcap_take_array(&in);
    mcap_take(&in, 8);
    name = mcap_take_text(&in);
    c.place.compressed = mcap_take(&in, 8);
    c.place.uncompressed = mcap_take(&in, 8);
    compression = mcap_compression_of(name.s, name.n);
    if (compression < 0 || !lies_at(r, c.place.offset, c.place.length, MCAP_CHUNK))
        return 1;
    c.place.compression = (enum mcap_compression)compression;
    c.first_id = (uint32_t)r->n_ids;
    while (ids.left > 0) {
        size_t n = 0;
        for (; n < 64 && ids.left > 0; n++) {
            id[n] = (uint16_t)mcap_take(&ids, 2);
            mcap_take(&ids, 8);
        }
        uint32_t first = c.first_id, before = c.n_ids;
        rc = mcap_learn_ids(r, id, n, &c);
        if (rc != 0)
            return rc;
        c.first_id = first;
        c.n_ids += before;
    }
    rc = mcap_room(r, &r->chunk, r->n_chunks, &r->c_chunks, sizeof *r->chunk);
    if (rc == 0)
        r->chunk[r->n_chunks++] = c;
    return rc;
}

static int spot(struct mcap_reader *r, const struct mcap_record *rec)
{
    struct mcap_in in = {rec->content, (size_t)rec->length, false};
    uint64_t offset = mcap_take(&in, 8), length = mcap_take(&in, 8);
    bool attachment = rec->op == MCAP_ATTACHMENT_INDEX;

    if (!lies_at(r, offset, length, attachment ? MCAP_ATTACHMENT : MCAP_METADATA))
        return 1;
    return mcap_learn_spot(r, attachment, offset, length);
}

// Channels come before Statistics here; a file in which they do not is walked through.
static int statistics(struct mcap_reader *r, const struct mcap_record *rec,
                      struct statistics *s)
{
    struct mcap_in in = {rec->content, (size_t)rec->length, false};
    struct mcap_in counts;
    uint64_t sum = 0;

    if (s->there)
        return 1;
    s->there = true;
    s->messages = mcap_take(&in, 8);
    s->schemas = mcap_take(&in, 2);
    s->channels = mcap_take(&in, 4);
    s->attachments = mcap_take(&in, 4);
    s->metadata = mcap_take(&in, 4);
    s->chunks = mcap_take(&in, 4);
    r->start_ns = mcap_take(&in, 8);
    r->end_ns = mcap_take(&in, 8);
    counts = mcap_take_array(&in);
    while (counts.left > 0) {
        uint16_t id = (uint16_t)mcap_take(&counts, 2);
        uint64_t n = mcap_take(&counts, 8);
        int32_t i = mcap_slot(r->channel_slot, id);
        if (i < 0)
            return 1;
        r->channel[i].messages = n;
        sum += n;
    }
    r->messages = s->messages;
    return sum == s->messages ? 0 : 1;
}

static int one(struct mcap_reader *r, const struct mcap_record *rec, struct statistics *s,
               struct mcap_error *why)
{
    switch (rec->op) {
    case MCAP_SCHEMA:
        return mcap_learn_schema(r, rec, why);
    case MCAP_CHANNEL:
        return mcap_learn_channel(r, rec, why);
    case MCAP_STATISTICS:
        return statistics(r, rec, s);
    case MCAP_CHUNK_INDEX:
        return chunk_index(r, rec);
    case MCAP_METADATA_INDEX:
    case MCAP_ATTACHMENT_INDEX:
        return spot(r, rec);
    case MCAP_SUMMARY_OFFSET:
        return 0;
    default:
        return rec->op > MCAP_DATA_END ? 0 : 1;
    }
}

static int records(struct mcap_reader *r, uint64_t at, uint64_t end, struct statistics *s,
                   struct mcap_error *why)
{
    const unsigned char *p;
    struct mcap_record rec;
    int rc = 0;

    while (rc == 0 && at < end) {
        if (end - at < MCAP_HEAD)
            return 1;
        rc = mcap_file_get(&r->file, at, MCAP_HEAD, &p, why);
        if (rc != 0)
            return rc;
        struct mcap_in in = {p, MCAP_HEAD, false};
        rec = (struct mcap_record){.op = (uint8_t)mcap_take(&in, 1), .offset = at};
        rec.length = mcap_take(&in, 8);
        if (rec.length > end - at - MCAP_HEAD ||
            rec.length > mcap_record_limit(rec.op, &r->limits))
            return 1;
        rc = mcap_file_get(&r->file, at + MCAP_HEAD, (size_t)rec.length, &rec.content,
                           why);
        if (rc == 0)
            rc = mcap_record_check(&rec, why);
        if (rc == 0)
            rc = one(r, &rec, s, why);
        at += MCAP_HEAD + rec.length;
    }
    return rc;
}

static int by_offset(const void *a, const void *b)
{
    const struct mcap_known_chunk *x = a, *y = b;

    return (x->place.offset > y->place.offset) - (x->place.offset < y->place.offset);
}

static bool all_is_there(struct mcap_reader *r, const struct statistics *s)
{
    if (!s->there || s->chunks != r->n_chunks || s->metadata != r->n_metadata ||
        s->attachments != r->n_attachments || s->channels != r->n_channels ||
        s->schemas != r->n_schemas || (s->messages > 0 && s->chunks == 0))
        return false;
    if (r->n_chunks)
        qsort(r->chunk, r->n_chunks, sizeof *r->chunk, by_offset);
    for (size_t i = 1; i < r->n_chunks; i++)
        if (r->chunk[i].place.offset - r->chunk[i - 1].place.offset <
            r->chunk[i - 1].place.length)
            return false;
    for (size_t i = 0; i < r->n_channels; i++)
        if (r->channel[i].c.schema &&
            mcap_slot(r->schema_slot, r->channel[i].c.schema) < 0)
            return false;
    return true;
}

// Where the summary begins and ends. 0; 1: there is none, or not a good one.
static int bounds(struct mcap_reader *r, uint64_t *from, uint64_t *to,
                  struct mcap_error *why)
{
    const unsigned char *p;
    uint32_t crc = 0, want;
    int rc;

    if (r->file.size < MCAP_MAGIC_BYTES + DATA_END + TAIL)
        return 1;
    rc = mcap_file_get(&r->file, r->file.size - TAIL, TAIL, &p, why);
    if (rc != 0)
        return rc;
    struct mcap_in in = {p, TAIL, false};
    if (mcap_take(&in, 1) != MCAP_FOOTER || mcap_take(&in, 8) != MCAP_FOOTER_BYTES ||
        memcmp(p + TAIL - MCAP_MAGIC_BYTES, mcap_magic, MCAP_MAGIC_BYTES) != 0)
        return 1;
    *from = mcap_take(&in, 8);
    *to = mcap_take(&in, 8);
    want = (uint32_t)mcap_take(&in, 4);
    if (*to == 0)
        *to = r->file.size - TAIL;
    if (*from < MCAP_MAGIC_BYTES + DATA_END || *from > *to || *to > r->file.size - TAIL)
        return 1;
    if (want)
        rc = mcap_file_crc(&r->file, *from, r->file.size - MCAP_MAGIC_BYTES - 4, &crc,
                           why);
    if (rc != 0)
        return rc;
    return (want && crc != want) ||
           !lies_at(r, *from - DATA_END, DATA_END, MCAP_DATA_END);
}

static int header(struct mcap_reader *r, struct mcap_error *why)
{
    struct mcap_scan s;
    struct mcap_record rec;

    mcap_scan_begin(&s, &r->file, &r->limits);
    int rc = mcap_scan_magic(&s, why);
    if (rc == 0)
        rc = mcap_scan_next(&s, &rec, why) == 1 ? mcap_learn_header(r, &rec) : 1;
    mcap_scan_free(&s);
    return rc;
}

int mcap_by_summary(struct mcap_reader *r, struct mcap_error *why)
{
    struct statistics s = {0};
    uint64_t from, to;
    int rc = header(r, why);

    if (rc == 0)
        rc = bounds(r, &from, &to, why);
    if (rc == 0)
        rc = records(r, from, to, &s, why);
    if (rc == -EBADMSG)
        return 1;
    if (rc != 0)
        return rc;
    if (!all_is_there(r, &s))
        return 1;
    mcap_index_sort(r);
    r->whole = r->by_summary = true;
    return 0;
}
