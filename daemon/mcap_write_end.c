// The summary: what a reader wants to know without reading the file. Everything in it was collected
// while the file was written; it goes out in one piece with what ends the file.
#include "daemon/mcap_write_impl.h"

#include <errno.h>

struct summary {
    struct mcap_bytes out; // from DataEnd to the last magic
    struct mcap_bytes offsets;
    uint64_t start; // file offset of out's first byte
    size_t group;   // where the one under way began
};

static void begin_group(struct summary *s)
{
    s->group = s->out.n;
}

// One SummaryOffset per group that there is.
static void end_group(const struct mcap_writer *w, struct summary *s, enum mcap_op op)
{
    size_t record;

    if (s->out.n == s->group || w->opt.no_summary_offsets)
        return;
    record = mcap_begin(&s->offsets, MCAP_SUMMARY_OFFSET);
    mcap_put_u8(&s->offsets, (uint8_t)op);
    mcap_put_u64(&s->offsets, s->start + s->group);
    mcap_put_u64(&s->offsets, s->out.n - s->group);
    mcap_end(&s->offsets, record, w->opt.pad);
}

static void put_group(const struct mcap_writer *w, struct summary *s, enum mcap_op op,
                      const struct mcap_bytes *records, bool left_out)
{
    begin_group(s);
    if (!left_out)
        mcap_put(&s->out, records->data, records->n);
    end_group(w, s, op);
}

static void put_statistics(const struct mcap_writer *w, struct summary *s)
{
    struct mcap_bytes *out = &s->out;
    size_t record, list;

    if (w->opt.no_statistics)
        return;
    begin_group(s);
    record = mcap_begin(out, MCAP_STATISTICS);
    mcap_put_u64(out, w->messages);
    mcap_put_u16(out, (uint16_t)w->schemas.n);
    mcap_put_u32(out, (uint32_t)w->channels.n);
    mcap_put_u32(out, w->attachments);
    mcap_put_u32(out, w->metadata);
    mcap_put_u32(out, w->chunks);
    mcap_put_u64(out, w->start_ns);
    mcap_put_u64(out, w->end_ns);
    list = mcap_begin_list(out);
    for (int i = 0; i < w->channels.n; i++) {
        if (w->channels.known[i].messages == 0)
            continue;
        mcap_put_u16(out, w->channels.known[i].id);
        mcap_put_u64(out, w->channels.known[i].messages);
    }
    mcap_end_list(out, list);
    mcap_end(out, record, w->opt.pad);
    end_group(w, s, MCAP_STATISTICS);
}

static void put_data_end(const struct mcap_writer *w, struct mcap_bytes *out)
{
    size_t record = mcap_begin(out, MCAP_DATA_END);

    mcap_put_u32(out, w->opt.no_data_crc ? 0 : w->crc);
    mcap_end(out, record, false);
}

// The CRC is over all from the beginning of the summary to just before itself.
static void put_footer(struct summary *s, size_t summary, size_t offsets)
{
    struct mcap_bytes *out = &s->out;
    size_t end = out->n, record = mcap_begin(out, MCAP_FOOTER);

    mcap_put_u64(out, end > summary ? s->start + summary : 0);
    mcap_put_u64(out, end > offsets ? s->start + offsets : 0);
    if (!out->failed) // the length counts as well, and is not filled in yet
        out->data[record + 1] = 8 + 8 + 4;
    if (!out->failed)
        mcap_put_u32(out, mcap_crc(0, out->data + summary, out->n - summary));
    mcap_end(out, record, false);
}

int mcap_writer_finish(struct mcap_writer *w)
{
    struct summary s = {.start = w->bytes};
    size_t summary, offsets;
    struct iovec v;
    int rc;

    if (w->finished)
        return -EINVAL;
    put_data_end(w, &s.out);
    summary = s.out.n;
    put_group(w, &s, MCAP_SCHEMA, &w->schemas.records, w->opt.no_repeat_schemas);
    put_group(w, &s, MCAP_CHANNEL, &w->channels.records, w->opt.no_repeat_channels);
    put_statistics(w, &s);
    put_group(w, &s, MCAP_METADATA_INDEX, &w->metadata_index, w->opt.no_metadata_index);
    put_group(w, &s, MCAP_ATTACHMENT_INDEX, &w->attachment_index,
              w->opt.no_attachment_index);
    put_group(w, &s, MCAP_CHUNK_INDEX, &w->chunk_index, w->opt.no_chunk_index);
    offsets = s.out.n;
    mcap_put(&s.out, s.offsets.data, s.offsets.n);
    put_footer(&s, summary, offsets);
    mcap_put(&s.out, mcap_magic, MCAP_MAGIC_BYTES);
    v = (struct iovec){s.out.data, s.out.n};
    rc = s.out.failed || s.offsets.failed ? -ENOMEM : mcap_writer_emit(w, &v, 1);
    w->finished = rc == 0;
    mcap_bytes_free(&s.out);
    mcap_bytes_free(&s.offsets);
    return rc;
}
