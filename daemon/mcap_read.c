// mcap_read: opens a file and answers about it; see mcap_read_impl.h for the parts.
#include "daemon/mcap_read_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int begin(struct mcap_reader **out, const char *path,
                 const struct mcap_limits *limits, struct mcap_error *err)
{
    struct mcap_reader *r = calloc(1, sizeof *r);

    *out = NULL;
    if (!r)
        return mcap_fail(err, -ENOMEM, "%s: no memory", path);
    r->limits = mcap_limits_of(limits);
    r->profile = r->library = "";
    int rc = mcap_file_open(&r->file, path, err);
    if (rc != 0) {
        free(r);
        return rc;
    }
    *out = r;
    return 0;
}

static int ended(struct mcap_reader **out, int rc, const char *path,
                 const struct mcap_error *why, struct mcap_error *err)
{
    if (rc == 0)
        return 0;
    mcap_close(*out);
    *out = NULL;
    return mcap_fail(err, rc, "%.120s %.130s", path,
                     why->text[0] ? why->text : strerror(-rc));
}

int mcap_open(struct mcap_reader **out, const char *path,
              const struct mcap_limits *limits, struct mcap_error *err)
{
    struct mcap_error why = {""};
    int rc = begin(out, path, limits, err);

    if (rc != 0)
        return rc;
    rc = mcap_by_summary(*out, &why);
    if (rc == 1) {
        mcap_forget(*out);
        why.text[0] = 0;
        rc = mcap_by_scan(*out, false, &why);
    }
    return ended(out, rc, path, &why, err);
}

int mcap_open_damaged(struct mcap_reader **out, const char *path,
                      const struct mcap_limits *limits, struct mcap_error *err)
{
    struct mcap_error why = {""};
    int rc = begin(out, path, limits, err);

    if (rc == 0)
        rc = ended(out, mcap_by_scan(*out, true, &why), path, &why, err);
    return rc;
}

void mcap_close(struct mcap_reader *r)
{
    if (!r)
        return;
    mcap_forget(r);
    mcap_file_close(&r->file);
    free(r);
}

// ---- answers ----------------------------------------------------------------------------------

bool mcap_whole(const struct mcap_reader *r, const char **why)
{
    if (why)
        *why = r->why.text;
    return r->whole;
}

const char *mcap_profile(const struct mcap_reader *r)
{
    return r->profile;
}

const char *mcap_library(const struct mcap_reader *r)
{
    return r->library;
}

uint64_t mcap_file_bytes(const struct mcap_reader *r)
{
    return r->file.size;
}

uint64_t mcap_message_count(const struct mcap_reader *r)
{
    return r->messages;
}

uint64_t mcap_start_ns(const struct mcap_reader *r)
{
    return r->start_ns;
}

uint64_t mcap_end_ns(const struct mcap_reader *r)
{
    return r->end_ns;
}

int mcap_schemas(const struct mcap_reader *r)
{
    return (int)r->n_schemas;
}

const struct mcap_schema *mcap_schema_at(const struct mcap_reader *r, int i)
{
    return i < 0 || (size_t)i >= r->n_schemas ? NULL : &r->schema[i];
}

const struct mcap_schema *mcap_schema_of(const struct mcap_reader *r, uint16_t id)
{
    int32_t i = mcap_slot(r->schema_slot, id);

    return i < 0 ? NULL : &r->schema[i];
}

int mcap_channels(const struct mcap_reader *r)
{
    return (int)r->n_channels;
}

const struct mcap_channel *mcap_channel_at(const struct mcap_reader *r, int i)
{
    return i < 0 || (size_t)i >= r->n_channels ? NULL : &r->channel[i].c;
}

static const struct mcap_known_channel *known(const struct mcap_reader *r, uint16_t id)
{
    int32_t i = mcap_slot(r->channel_slot, id);

    return i < 0 ? NULL : &r->channel[i];
}

const struct mcap_channel *mcap_channel_of(const struct mcap_reader *r, uint16_t id)
{
    const struct mcap_known_channel *k = known(r, id);

    return k ? &k->c : NULL;
}

uint64_t mcap_channel_count_of(const struct mcap_reader *r, uint16_t channel)
{
    const struct mcap_known_channel *k = known(r, channel);

    return k ? k->messages : 0;
}

const struct mcap_channel *mcap_channel_named(const struct mcap_reader *r,
                                              const char *topic)
{
    for (size_t i = 0; i < r->n_channels; i++)
        if (strcmp(r->channel[i].c.topic, topic) == 0)
            return &r->channel[i].c;
    return NULL;
}

int mcap_chunks(const struct mcap_reader *r)
{
    return (int)r->n_chunks;
}

const struct mcap_chunk_place *mcap_chunk_at(const struct mcap_reader *r, int i)
{
    return i < 0 || (size_t)i >= r->n_chunks ? NULL : &r->chunk[i].place;
}

// ---- beside the messages ----------------------------------------------------------------------

int mcap_spot_get(struct mcap_reader *r, uint64_t offset, uint64_t length, uint8_t op,
                  struct mcap_record *out, struct mcap_error *err)
{
    const unsigned char *p;

    if (length < MCAP_HEAD || length - MCAP_HEAD > mcap_record_limit(op, &r->limits))
        return mcap_fail(err, -EFBIG, "the %s at byte %llu has %llu bytes; too many",
                         mcap_op_name(op), (unsigned long long)offset,
                         (unsigned long long)length);
    int rc = mcap_file_get(&r->file, offset, (size_t)length, &p, err);
    if (rc != 0)
        return rc;
    struct mcap_in in = {p, (size_t)length, false};
    *out = (struct mcap_record){.op = (uint8_t)mcap_take(&in, 1), .offset = offset};
    out->length = mcap_take(&in, 8);
    out->content = in.p;
    if (out->op != op || out->length != length - MCAP_HEAD)
        return mcap_fail(err, -EBADMSG, "at byte %llu there is no %s as its index says",
                         (unsigned long long)offset, mcap_op_name(op));
    return mcap_record_check(out, err);
}

int mcap_metadata(struct mcap_reader *r)
{
    return (int)r->n_metadata;
}

int mcap_metadata_at(struct mcap_reader *r, int i, const char **name,
                     const struct mcap_pair **pairs, int *n, struct mcap_error *err)
{
    struct mcap_record rec;
    struct mcap_spot *m;
    int rc = 0;

    if (i < 0 || (size_t)i >= r->n_metadata)
        return mcap_fail(err, -ENOENT, "there is no metadata record %d", i);
    m = &r->metadata[i];
    if (!m->name) {
        rc = mcap_spot_get(r, m->offset, m->length, MCAP_METADATA, &rec, err);
        if (rc != 0)
            return rc;
        struct mcap_in in = {rec.content, (size_t)rec.length, false};
        struct mcap_text t = mcap_take_text(&in);
        char *s = mcap_keep(r, t.n + 1, &rc);
        if (s)
            rc = mcap_read_pairs(r, &in, &m->pair, &m->n);
        if (!s || rc != 0)
            return mcap_fail(err, rc, "no memory for the metadata at byte %llu",
                             (unsigned long long)m->offset);
        memcpy(s, t.s, t.n);
        s[t.n] = 0;
        m->name = s;
    }
    *name = m->name;
    *pairs = m->pair;
    *n = m->n;
    return 0;
}

int mcap_attachments(struct mcap_reader *r)
{
    return (int)r->n_attachments;
}

static char *terminated(char **to, struct mcap_text t)
{
    char *s = *to;

    memcpy(s, t.s, t.n);
    s[t.n] = 0;
    *to += t.n + 1;
    return s;
}

int mcap_attachment_at(struct mcap_reader *r, int i, struct mcap_attachment *out,
                       void **own, struct mcap_error *err)
{
    struct mcap_record rec;
    int rc;

    *own = NULL;
    if (i < 0 || (size_t)i >= r->n_attachments)
        return mcap_fail(err, -ENOENT, "there is no attachment %d", i);
    rc = mcap_spot_get(r, r->attachment[i].offset, r->attachment[i].length,
                       MCAP_ATTACHMENT, &rec, err);
    if (rc != 0)
        return rc;
    struct mcap_in in = {rec.content, (size_t)rec.length, false};
    out->log_ns = mcap_take(&in, 8);
    out->create_ns = mcap_take(&in, 8);
    struct mcap_text name = mcap_take_text(&in), type = mcap_take_text(&in);
    out->size = (size_t)mcap_take(&in, 8);
    const unsigned char *data = mcap_take_bytes(&in, out->size);
    char *p = data ? malloc(out->size + name.n + type.n + 2) : NULL;
    if (!p)
        return mcap_fail(err, -ENOMEM, "no memory for an attachment");
    *own = p;
    memcpy(p, data, out->size);
    out->data = p;
    p += out->size;
    out->name = terminated(&p, name);
    out->media_type = terminated(&p, type);
    return 0;
}
