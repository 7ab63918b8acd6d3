// The data section. Whatever the summary has to know of a record is made room for before the record
// is written, so that nothing can fail once it is in the file; and nothing is remembered before. So
// after a write that failed the writer is what it was, and the caller may cut the file to
// mcap_writer_bytes and go on.
#include "daemon/mcap_write_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int mcap_writer_emit(struct mcap_writer *w, const struct iovec *v, int n)
{
    uint64_t bytes = w->bytes;
    uint32_t crc = w->crc;
    int rc = w->opt.write(w->opt.arg, v, n);

    if (rc < 0)
        return rc;
    for (int i = 0; i < n; i++) {
        bytes += v[i].iov_len;
        if (!w->opt.no_data_crc)
            crc = mcap_crc(crc, v[i].iov_base, v[i].iov_len);
    }
    w->bytes = bytes;
    w->crc = crc;
    return 0;
}

static struct iovec piece(const void *data, size_t n)
{
    return (struct iovec){(void *)(uintptr_t)data, n}; // writev only reads
}

// The record under construction. 0, -ENOMEM.
static struct mcap_bytes *begin(struct mcap_writer *w)
{
    w->record.n = 0;
    w->record.failed = false;
    return &w->record;
}

static int emit_record(struct mcap_writer *w)
{
    struct iovec v = piece(w->record.data, w->record.n);

    return w->record.failed ? -ENOMEM : mcap_writer_emit(w, &v, 1);
}

int mcap_writer_new(struct mcap_writer **out, const struct mcap_writer_options *opt)
{
    struct mcap_writer *w = calloc(1, sizeof *w);
    int rc;

    *out = NULL;
    if (!w)
        return -ENOMEM;
    w->opt = *opt;
    mcap_put(&w->record, mcap_magic, sizeof mcap_magic);
    mcap_put_header(&w->record, opt->profile, opt->library, opt->pad);
    rc = emit_record(w);
    if (rc < 0) {
        mcap_writer_free(w);
        return rc;
    }
    *out = w;
    return 0;
}

static void free_table(struct mcap_table *t)
{
    mcap_bytes_free(&t->records);
    free(t->known);
}

void mcap_writer_free(struct mcap_writer *w)
{
    if (!w)
        return;
    free_table(&w->schemas);
    free_table(&w->channels);
    mcap_bytes_free(&w->record);
    mcap_bytes_free(&w->chunk_index);
    mcap_bytes_free(&w->attachment_index);
    mcap_bytes_free(&w->metadata_index);
    free(w);
}

// ---- schemas, channels -----------------------------------------------------------------------

static struct mcap_known *known(struct mcap_table *t, uint16_t id)
{
    return t->slot[id] > 0 ? &t->known[t->slot[id] - 1] : NULL;
}

// May this id stand for this record, and is there room for it? 0; -EINVAL: it stands for another
// one, -ENOMEM.
static int table_check(struct mcap_table *t, uint16_t id, const struct mcap_bytes *record)
{
    const struct mcap_known *k = known(t, id);
    int capacity = t->capacity > 0 ? 2 * t->capacity : 16;
    struct mcap_known *more;

    if (record->failed || !mcap_reserve(&t->records, record->n))
        return -ENOMEM;
    if (k)
        return k->n == record->n &&
                       memcmp(t->records.data + k->at, record->data, k->n) == 0
                   ? 0
                   : -EINVAL;
    if (t->n < t->capacity)
        return 0;
    more = realloc(t->known, (size_t)capacity * sizeof *more);
    if (!more)
        return -ENOMEM;
    t->known = more;
    t->capacity = capacity;
    return 0;
}

// Can not fail after table_check.
static void table_add(struct mcap_table *t, uint16_t id, const struct mcap_bytes *record)
{
    if (t->slot[id] > 0)
        return;
    t->known[t->n] = (struct mcap_known){id, t->records.n, record->n, 0};
    mcap_put(&t->records, record->data, record->n);
    t->slot[id] = (uint32_t)++t->n;
}

static int remember(struct mcap_writer *w, struct mcap_table *t, uint16_t id, bool loose)
{
    int rc = w->finished ? -EINVAL : table_check(t, id, &w->record);

    if (rc == 0 && loose)
        rc = emit_record(w);
    if (rc == 0)
        table_add(t, id, &w->record);
    return rc;
}

int mcap_writer_schema(struct mcap_writer *w, const struct mcap_schema *s, bool loose)
{
    if (s->id == 0)
        return -EINVAL;
    mcap_put_schema(begin(w), s, w->opt.pad);
    return remember(w, &w->schemas, s->id, loose);
}

int mcap_writer_channel(struct mcap_writer *w, const struct mcap_channel *c, bool loose)
{
    if (c->schema != 0 && !known(&w->schemas, c->schema))
        return -EINVAL;
    mcap_put_channel(begin(w), c, w->opt.pad);
    return remember(w, &w->channels, c->id, loose);
}

// ---- messages --------------------------------------------------------------------------------

static void count(struct mcap_writer *w, uint64_t messages, uint64_t start_ns,
                  uint64_t end_ns)
{
    if (messages == 0)
        return;
    if (w->messages == 0 || start_ns < w->start_ns)
        w->start_ns = start_ns;
    if (w->messages == 0 || end_ns > w->end_ns)
        w->end_ns = end_ns;
    w->messages += messages;
}

int mcap_writer_message(struct mcap_writer *w, const struct mcap_message *m)
{
    struct mcap_known *channel = known(&w->channels, m->channel);
    int rc;

    if (!channel || w->finished)
        return -EINVAL;
    mcap_put_message(begin(w), m);
    rc = emit_record(w);
    if (rc < 0)
        return rc;
    channel->messages++;
    count(w, 1, m->log_ns, m->log_ns);
    return 0;
}

static void put_chunk_index(struct mcap_bytes *out, const struct mcap_chunk_facts *f,
                            uint64_t offset, bool pad)
{
    size_t record = mcap_begin(out, MCAP_CHUNK_INDEX), list;

    mcap_put_u64(out, f->start_ns);
    mcap_put_u64(out, f->end_ns);
    mcap_put_u64(out, offset);
    mcap_put_u64(out, f->chunk_bytes);
    list = mcap_begin_list(out);
    for (int i = 0; i < f->n_channels && f->index_bytes > 0; i++) {
        mcap_put_u16(out, f->channel[i].id);
        mcap_put_u64(out, offset + f->channel[i].index_offset);
    }
    mcap_end_list(out, list);
    mcap_put_u64(out, f->index_bytes);
    mcap_put_string(out, mcap_compression_name(f->compression));
    mcap_put_u64(out, f->compressed);
    mcap_put_u64(out, f->uncompressed);
    mcap_end(out, record, pad);
}

static bool all_known(struct mcap_writer *w, const struct mcap_chunk_facts *f)
{
    for (int i = 0; i < f->n_channels; i++)
        if (!known(&w->channels, f->channel[i].id))
            return false;
    return true;
}

// Of whatever list: a failure is as if nothing had been put.
static int put_back(struct mcap_bytes *list, size_t n, int rc)
{
    list->n = n;
    list->failed = false;
    return rc;
}

int mcap_writer_chunk(struct mcap_writer *w, const struct mcap_chunk *c)
{
    const struct mcap_chunk_facts *f = &c->facts;
    struct mcap_bytes *index = &w->chunk_index;
    struct iovec v = piece(c->bytes, c->n);
    size_t before = index->n;
    int rc;

    if (w->finished || !all_known(w, f))
        return -EINVAL;
    put_chunk_index(index, f, w->bytes, w->opt.pad);
    rc = index->failed ? -ENOMEM : mcap_writer_emit(w, &v, 1);
    if (rc < 0)
        return put_back(index, before, rc);
    for (int i = 0; i < f->n_channels; i++)
        known(&w->channels, f->channel[i].id)->messages += f->channel[i].messages;
    count(w, f->messages, f->start_ns, f->end_ns);
    w->chunks++;
    return 0;
}

// ---- metadata, attachments -------------------------------------------------------------------

int mcap_writer_metadata(struct mcap_writer *w, const char *name,
                         const struct mcap_pair *pairs, int n)
{
    struct mcap_bytes *out = begin(w), *index = &w->metadata_index;
    size_t before = index->n, record;
    int rc;

    if (w->finished)
        return -EINVAL;
    record = mcap_begin(out, MCAP_METADATA);
    mcap_put_string(out, name);
    mcap_put_pairs(out, pairs, n);
    mcap_end(out, record, w->opt.pad);
    record = mcap_begin(index, MCAP_METADATA_INDEX);
    mcap_put_u64(index, w->bytes);
    mcap_put_u64(index, out->n);
    mcap_put_string(index, name);
    mcap_end(index, record, w->opt.pad);
    rc = index->failed ? -ENOMEM : emit_record(w);
    if (rc < 0)
        return put_back(index, before, rc);
    w->metadata++;
    return 0;
}

static void put_attachment_index(struct mcap_writer *w, uint64_t length, uint64_t log_ns,
                                 uint64_t create_ns, const char *name,
                                 const char *media_type, size_t size)
{
    struct mcap_bytes *index = &w->attachment_index;
    size_t record = mcap_begin(index, MCAP_ATTACHMENT_INDEX);

    mcap_put_u64(index, w->bytes);
    mcap_put_u64(index, length);
    mcap_put_u64(index, log_ns);
    mcap_put_u64(index, create_ns);
    mcap_put_u64(index, size);
    mcap_put_string(index, name);
    mcap_put_string(index, media_type);
    mcap_end(index, record, w->opt.pad);
}

int mcap_writer_attachment(struct mcap_writer *w, uint64_t log_ns, uint64_t create_ns,
                           const char *name, const char *media_type, const void *data,
                           size_t size)
{
    struct mcap_bytes *out = begin(w), *index = &w->attachment_index;
    // The data is written from where it is: what comes before and behind it is in `out`.
    size_t before = index->n, record = mcap_begin(out, MCAP_ATTACHMENT), head;
    struct iovec v[3];
    int rc;

    if (w->finished)
        return -EINVAL;
    mcap_put_u64(out, log_ns);
    mcap_put_u64(out, create_ns);
    mcap_put_string(out, name);
    mcap_put_string(out, media_type);
    mcap_put_u64(out, size);
    head = out->n;
    if (!out->failed)
        mcap_put_u32(out, mcap_crc(mcap_crc(0, out->data + MCAP_HEAD, head - MCAP_HEAD),
                                   data, size));
    mcap_end(out, record, w->opt.pad);
    put_attachment_index(w, out->n + size, log_ns, create_ns, name, media_type, size);
    rc = out->failed || index->failed ? -ENOMEM : 0;
    if (rc == 0) {
        mcap_add_length(out, record, size);
        v[0] = piece(out->data, head);
        v[1] = piece(data, size);
        v[2] = piece(out->data + head, out->n - head);
        rc = mcap_writer_emit(w, v, 3);
    }
    if (rc < 0)
        return put_back(index, before, rc);
    w->attachments++;
    return 0;
}

uint64_t mcap_writer_bytes(const struct mcap_writer *w)
{
    return w->bytes;
}

uint64_t mcap_writer_messages(const struct mcap_writer *w)
{
    return w->messages;
}
