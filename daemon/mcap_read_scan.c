// mcap_read_scan: learns from the records themselves what the summary should have said.
#include "daemon/mcap_read_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/mcap_recover_impl.h"

static void times(struct mcap_reader *r, uint64_t log_ns)
{
    if (r->messages == 0 || log_ns < r->start_ns)
        r->start_ns = log_ns;
    if (r->messages == 0 || log_ns > r->end_ns)
        r->end_ns = log_ns;
    r->messages++;
}

static void count(struct mcap_reader *r, const struct mcap_message *m)
{
    int32_t i = mcap_slot(r->channel_slot, m->channel);

    times(r, m->log_ns);
    if (i >= 0)
        r->channel[i].messages++;
}

static int loose(struct mcap_reader *r, const struct mcap_record *rec)
{
    struct mcap_message m = mcap_message_parse(rec);
    int rc = mcap_room(r, &r->loose, r->n_loose, &r->c_loose, sizeof *r->loose);

    if (rc != 0)
        return rc;
    count(r, &m);
    r->loose[r->n_loose++] =
        (struct mcap_loose){rec->offset, m.log_ns, (uint32_t)rec->length, m.channel};
    return 0;
}

static int declarations(struct mcap_reader *r, const struct mcap_unpacked *u,
                        struct mcap_error *err)
{
    struct mcap_record in;
    int rc = 0;

    for (size_t at = 0; rc == 0 && mcap_inner_next(u, &at, &in, NULL) == 1;) {
        if (in.op == MCAP_SCHEMA)
            rc = mcap_learn_schema(r, &in, err);
        if (in.op == MCAP_CHANNEL)
            rc = mcap_learn_channel(r, &in, err);
    }
    return rc;
}

// Its messages, and its place with their times as they are, not as it says.
static int messages(struct mcap_reader *r, const struct mcap_unpacked *u,
                    struct mcap_known_chunk *c)
{
    struct mcap_ids seen = {{0}};
    struct mcap_record in;
    bool any = false;

    c->first_id = (uint32_t)r->n_ids;
    for (size_t at = 0; mcap_inner_next(u, &at, &in, NULL) == 1;) {
        if (in.op != MCAP_MESSAGE)
            continue;
        struct mcap_message m = mcap_message_parse(&in);
        count(r, &m);
        if (!any || m.log_ns < c->place.start_ns)
            c->place.start_ns = m.log_ns;
        if (!any || m.log_ns > c->place.end_ns)
            c->place.end_ns = m.log_ns;
        any = true;
        if (mcap_ids_has(&seen, m.channel))
            continue;
        mcap_ids_add(&seen, m.channel);
        struct mcap_known_chunk one;
        int rc = mcap_learn_ids(r, &m.channel, 1, &one);
        if (rc != 0)
            return rc;
        c->n_ids++;
    }
    return 0;
}

static int chunk(struct mcap_reader *r, const struct mcap_scan *s,
                 const struct mcap_record *rec, struct mcap_error *err)
{
    struct mcap_known_chunk c = {0};
    struct mcap_chunk_head h;
    int rc = mcap_chunk_parse(rec->content, rec->length, &r->limits, &h, err);

    if (rc == 0)
        rc = declarations(r, &s->chunk, err);
    if (rc == 0)
        rc = mcap_room(r, &r->chunk, r->n_chunks, &r->c_chunks, sizeof *r->chunk);
    if (rc == 0)
        rc = messages(r, &s->chunk, &c);
    if (rc != 0)
        return rc;
    c.place.offset = rec->offset;
    c.place.length = MCAP_HEAD + rec->length;
    c.place.compressed = h.n;
    c.place.uncompressed = h.uncompressed;
    c.place.compression = h.compression;
    r->chunk[r->n_chunks++] = c;
    return 0;
}

static int learn(struct mcap_reader *r, const struct mcap_scan *s,
                 const struct mcap_record *rec, struct mcap_error *err)
{
    switch (rec->op) {
    case MCAP_HEADER:
        return mcap_learn_header(r, rec);
    case MCAP_SCHEMA:
        return mcap_learn_schema(r, rec, err);
    case MCAP_CHANNEL:
        return mcap_learn_channel(r, rec, err);
    case MCAP_MESSAGE:
        // One flipped bit makes it of a MessageIndex, and no CRC is over it.
        if (s->any_channel && r->n_chunks > 0)
            return mcap_fail(err, -EBADMSG, "byte %llu: a message outside of chunks",
                             (unsigned long long)rec->offset);
        return loose(r, rec);
    case MCAP_CHUNK:
        return chunk(r, s, rec, err);
    case MCAP_ATTACHMENT:
    case MCAP_METADATA:
        return mcap_learn_spot(r, rec->op == MCAP_ATTACHMENT, rec->offset,
                               MCAP_HEAD + rec->length);
    default:
        return 0;
    }
}

// Where the bytes of a record that it accounts for itself end: its length says the rest, and may
// be wrong. Of a Chunk that is the end of what is in it.
static uint64_t accounted(const struct mcap_record *rec, const struct mcap_limits *l)
{
    struct mcap_chunk_head h;

    if (rec->op != MCAP_CHUNK ||
        mcap_chunk_parse(rec->content, rec->length, l, &h, NULL) != 0)
        return rec->offset + 1;
    return rec->offset + MCAP_HEAD + (uint64_t)(h.records - rec->content) + h.n;
}

static bool fatal(int rc)
{
    return rc == -ENOMEM || rc == -EIO;
}

// What the end says of schemas and channels, should the chunk that declared them be gone.
static void declared_at_the_end(struct mcap_reader *r)
{
    struct mcap_reader end = {.file = r->file, .limits = r->limits};
    struct mcap_error why;

    (void)mcap_by_summary(&end, &why); // as far as it comes
    r->file = end.file;
    for (size_t i = 0; i < end.n_schemas; i++)
        (void)mcap_learn_again_schema(r, &end.schema[i]);
    for (size_t i = 0; i < end.n_channels; i++)
        (void)mcap_learn_again_channel(r, &end.channel[i].c);
    mcap_forget(&end);
}

int mcap_by_scan(struct mcap_reader *r, bool go_on, struct mcap_error *err)
{
    struct mcap_scan s;
    struct mcap_record rec;
    struct mcap_error why = {""};
    uint64_t back = 0;
    int rc, more;

    mcap_scan_begin(&s, &r->file, &r->limits);
    s.any_channel = go_on;
    s.pass_large = true;
    r->budget = 64 * r->file.size + 16 * (uint64_t)r->limits.chunk_bytes;
    rc = mcap_scan_magic(&s, err);
    while (rc == 0 && (more = mcap_scan_next(&s, &rec, &why)) != 0) {
        uint64_t at = more == 1 ? rec.offset : s.at;
        rc = more == 1 ? learn(r, &s, &rec, &why) : more;
        if (rc == 0) {
            back = go_on ? accounted(&rec, &r->limits) : 0;
            continue;
        }
        // Too much to know of it is the end; so is what no other place would make better.
        if (fatal(rc) || (rc == -EFBIG && more == 1)) {
            *err = why;
            break;
        }
        if (!r->why.text[0])
            r->why = why;
        rc = go_on ? mcap_resync(r, &s, at, back < at ? back : at, err) : 1;
        back = s.at;
    }
    if (rc == 1)
        rc = 0; // up to there
    r->whole = rc == 0 && s.ended && !r->why.text[0];
    if (rc == 0 && go_on)
        declared_at_the_end(r);
    mcap_index_sort(r);
    mcap_scan_free(&s);
    return rc;
}
