// mcap_recover: reads what can be read (mcap_read_scan.c, mcap_recover_find.c), and writes it anew,
// each chunk as a chunk, in the order of the file.
#include "daemon/mcap_recover_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct copy {
    struct mcap_reader *r;
    struct mcap_out out;
    struct mcap_recovery *sum;
    enum mcap_compression compression;
    uint64_t strange; // messages of channels that are declared nowhere
    int rc;
};

static int put(struct copy *c, const struct mcap_message *m)
{
    int rc = mcap_out_message(&c->out, c->r, m, c->compression);

    if (rc == -ENODATA) {
        c->strange++;
        c->sum->bytes_lost += m->size;
        return 0;
    }
    return rc;
}

static int put_one(void *arg, const struct mcap_message *m)
{
    return put(arg, m);
}

static int chunk(struct copy *c, const struct mcap_chunk_place *p, struct mcap_error *err)
{
    c->compression = p->compression;
    int rc = mcap_chunk_each(c->r, p, put_one, c, err);
    if (rc == 0)
        rc = mcap_out_flush(&c->out, c->compression);
    c->sum->chunks += rc == 0;
    return rc;
}

static int loose(struct copy *c, const struct mcap_loose *l, struct mcap_error *err)
{
    struct mcap_message m;
    int rc = mcap_loose_get(c->r, l, &m, err);

    c->compression = MCAP_ZSTD;
    if (rc == 0)
        rc = put(c, &m);
    c->sum->loose += rc == 0;
    if (rc == 0 && mcap_out_bytes(&c->out, MCAP_ZSTD) > 1 << 20)
        rc = mcap_out_flush(&c->out, MCAP_ZSTD);
    return rc;
}

// What was good a moment ago and is no longer, or too large to be copied, is one more loss.
static int aside(struct copy *c, const struct mcap_spot *s, int rc)
{
    if (rc == 0 || (rc != -EBADMSG && rc != -EFBIG))
        return rc;
    c->sum->damaged++;
    c->sum->bytes_lost += s->length;
    return 0;
}

static int metadata(struct copy *c, size_t i, struct mcap_error *err)
{
    return aside(c, &c->r->metadata[i], mcap_copy_metadata(&c->out, c->r, (int)i, err));
}

static int attachment(struct copy *c, size_t i, struct mcap_error *err)
{
    return aside(c, &c->r->attachment[i],
                 mcap_copy_attachment(&c->out, c->r, (int)i, err));
}

// Merges the four kinds by where they are.
static int in_file_order(struct copy *c, struct mcap_error *err)
{
    struct mcap_reader *r = c->r;
    size_t i = 0, l = 0, m = 0, a = 0;
    int rc = 0;

    while (rc == 0) {
        uint64_t at[4] = {i < r->n_chunks ? r->chunk[i].place.offset : UINT64_MAX,
                          l < r->n_loose ? r->loose[l].offset : UINT64_MAX,
                          m < r->n_metadata ? r->metadata[m].offset : UINT64_MAX,
                          a < r->n_attachments ? r->attachment[a].offset : UINT64_MAX};
        int first = 0;
        for (int k = 1; k < 4; k++)
            first = at[k] < at[first] ? k : first;
        if (at[first] == UINT64_MAX)
            return 0;
        if (first == 0)
            rc = chunk(c, &r->chunk[i++].place, err);
        else if (first == 1)
            rc = loose(c, &r->loose[l++], err);
        else if (first == 2)
            rc = metadata(c, m++, err);
        else
            rc = attachment(c, a++, err);
    }
    return rc;
}

static bool anything(const struct mcap_reader *r)
{
    return r->whole || r->messages || r->n_metadata || r->n_attachments;
}

int mcap_recover(const char *from, const char *to, const struct mcap_limits *limits,
                 struct mcap_recovery *out, struct mcap_error *err)
{
    struct mcap_recovery ignored = {0};
    struct copy c = {.sum = out ? out : &ignored};
    struct mcap_error why = {""};
    int rc = mcap_open_damaged(&c.r, from, limits, err);

    *c.sum = (struct mcap_recovery){0};
    if (rc != 0)
        return rc;
    c.sum->bytes_in = mcap_file_bytes(c.r);
    c.sum->bytes_lost = c.r->lost_bytes;
    c.sum->damaged = c.r->damaged;
    c.sum->was_whole = c.r->whole;
    if (!anything(c.r)) {
        rc = mcap_fail(err, -ENODATA, "%.120s: nothing in it can be saved: %.100s", from,
                       c.r->why.text);
        goto out;
    }
    rc = mcap_out_open(&c.out, to, c.r->file.fd, mcap_profile(c.r), mcap_library(c.r),
                       err);
    c.sum->no_output = rc != 0;
    if (rc == 0)
        rc = in_file_order(&c, &why);
    else
        goto out;
    if (rc == 0 && c.strange)
        c.sum->damaged++;
    c.sum->messages = c.out.messages;
    if (rc == 0)
        rc = mcap_out_close(&c.out, limits, &c.sum->bytes_out, err);
    else
        mcap_fail(err, rc, "%.120s cannot be written: %.100s", to,
                  why.text[0] ? why.text : strerror(-rc));
    mcap_out_drop(&c.out);
    if (rc == 0)
        rc = c.sum->damaged > 0 || c.sum->bytes_lost > 0;
out:
    mcap_close(c.r);
    return rc;
}
