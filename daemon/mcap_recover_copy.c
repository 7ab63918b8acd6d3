// mcap_recover_copy: what an open file has, taken out piece by piece.
#include "daemon/mcap_recover_impl.h"

#include <errno.h>
#include <stdlib.h>

int mcap_chunk_each(struct mcap_reader *r, const struct mcap_chunk_place *p,
                    int (*visit)(void *arg, const struct mcap_message *m), void *arg,
                    struct mcap_error *err)
{
    struct mcap_unpacked u = {0};
    struct mcap_chunk_head h;
    struct mcap_record rec;
    int rc = mcap_spot_get(r, p->offset, p->length, MCAP_CHUNK, &rec, err), more = 0;

    if (rc == 0)
        rc = mcap_chunk_parse(rec.content, rec.length, &r->limits, &h, err);
    if (rc == 0)
        rc = mcap_unpack(&u, &h, err);
    for (size_t at = 0; rc == 0 && (more = mcap_inner_next(&u, &at, &rec, err)) == 1;) {
        if (rec.op != MCAP_MESSAGE)
            continue;
        struct mcap_message m = mcap_message_parse(&rec);
        rc = visit(arg, &m);
    }
    mcap_unpacked_free(&u);
    return rc != 0 ? rc : more < 0 ? more : 0;
}

int mcap_loose_get(struct mcap_reader *r, const struct mcap_loose *l,
                   struct mcap_message *m, struct mcap_error *err)
{
    struct mcap_record rec;
    int rc = mcap_spot_get(r, l->offset, MCAP_HEAD + (uint64_t)l->length, MCAP_MESSAGE,
                           &rec, err);

    if (rc == 0)
        *m = mcap_message_parse(&rec);
    return rc;
}

int mcap_copy_metadata(struct mcap_out *o, struct mcap_reader *r, int i,
                       struct mcap_error *err)
{
    const struct mcap_pair *pair;
    const char *name;
    int n, rc = mcap_metadata_at(r, i, &name, &pair, &n, err);

    return rc != 0 ? rc : mcap_writer_metadata(o->writer, name, pair, n);
}

int mcap_copy_attachment(struct mcap_out *o, struct mcap_reader *r, int i,
                         struct mcap_error *err)
{
    struct mcap_attachment a;
    void *own;
    int rc = mcap_attachment_at(r, i, &a, &own, err);

    if (rc == 0)
        rc = mcap_writer_attachment(o->writer, a.log_ns, a.create_ns, a.name,
                                    a.media_type, a.data, a.size);
    free(own);
    return rc;
}
