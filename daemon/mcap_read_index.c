// mcap_read_index: what an open file knows. All of it is counted, and held against one limit.
#include "daemon/mcap_read_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct mcap_block { // of mcap_keep
    struct mcap_block *next;
    max_align_t data[];
};

static int account(struct mcap_reader *r, size_t n)
{
    if (n > r->limits.index_bytes - r->kept)
        return -EFBIG;
    r->kept += n;
    return 0;
}

void *mcap_keep(struct mcap_reader *r, size_t n, int *rc)
{
    struct mcap_block *b;

    *rc = account(r, n + sizeof *b);
    if (*rc != 0)
        return NULL;
    b = malloc(sizeof *b + n);
    if (!b) {
        *rc = -ENOMEM;
        return NULL;
    }
    b->next = r->blocks;
    r->blocks = b;
    return b->data;
}

int mcap_room(struct mcap_reader *r, void *array, size_t n, size_t *capacity, size_t size)
{
    void *p, *q; // array is the address of a pointer of another type
    size_t more = *capacity ? *capacity : 16;

    if (n < *capacity)
        return 0;
    int rc = account(r, more * size);
    if (rc != 0)
        return rc;
    memcpy(&p, array, sizeof p);
    q = realloc(p, (*capacity + more) * size);
    if (!q)
        return -ENOMEM;
    memcpy(array, &q, sizeof q);
    *capacity += more;
    // cppcheck-suppress memleak ; it is in *array
    return 0;
}

static const char *keep_text(struct mcap_reader *r, struct mcap_text t, int *rc)
{
    char *s = mcap_keep(r, t.n + 1, rc);

    if (!s)
        return NULL;
    memcpy(s, t.s, t.n);
    s[t.n] = 0;
    return s;
}

int mcap_read_pairs(struct mcap_reader *r, struct mcap_in *in, struct mcap_pair **out,
                    int *n)
{
    struct mcap_in a = mcap_take_array(in), count = a;
    int rc = 0;

    for (*n = 0; count.left > 0 && !count.bad; ++*n) {
        mcap_take_text(&count);
        mcap_take_text(&count);
    }
    *out = NULL;
    if (*n == 0)
        return 0;
    struct mcap_pair *p = mcap_keep(r, (size_t)*n * sizeof *p, &rc);
    for (int i = 0; rc == 0 && i < *n; i++) {
        p[i].key = keep_text(r, mcap_take_text(&a), &rc);
        if (rc == 0)
            p[i].value = keep_text(r, mcap_take_text(&a), &rc);
    }
    *out = p;
    return rc;
}

static int slots(struct mcap_reader *r, int32_t **slot)
{
    if (*slot)
        return 0;
    int rc = account(r, 65536 * sizeof **slot);
    if (rc == 0)
        *slot = calloc(65536, sizeof **slot);
    return rc != 0 ? rc : *slot ? 0 : -ENOMEM;
}

int32_t mcap_slot(const int32_t *slot, uint16_t id)
{
    return slot ? slot[id] - 1 : -1;
}

static int too_much(struct mcap_error *err, int rc)
{
    if (rc == -EFBIG)
        return mcap_fail(err, rc,
                         "what must be known of the file is larger than the limit");
    return mcap_fail(err, rc, "no memory for what must be known of the file");
}

static bool text_is(const char *s, struct mcap_text t)
{
    return strlen(s) == t.n && memcmp(s, t.s, t.n) == 0;
}

int mcap_learn_schema(struct mcap_reader *r, const struct mcap_record *rec,
                      struct mcap_error *err)
{
    struct mcap_in in = {rec->content, (size_t)rec->length, false};
    uint16_t id = (uint16_t)mcap_take(&in, 2);
    struct mcap_text name = mcap_take_text(&in), encoding = mcap_take_text(&in);
    struct mcap_in data = mcap_take_array(&in);
    int rc = slots(r, &r->schema_slot);

    if (rc == 0 && r->schema_slot[id]) {
        const struct mcap_schema *was = &r->schema[r->schema_slot[id] - 1];
        if (text_is(was->name, name) && text_is(was->encoding, encoding) &&
            was->size == data.left && memcmp(was->data, data.p, data.left) == 0)
            return 0;
        return mcap_fail(err, -EBADMSG, "schema %u is declared twice, and differently",
                         id);
    }
    if (rc == 0)
        rc = mcap_room(r, &r->schema, r->n_schemas, &r->c_schemas, sizeof *r->schema);
    struct mcap_schema s = {.id = id, .size = data.left};
    if (rc == 0)
        s.name = keep_text(r, name, &rc);
    if (rc == 0)
        s.encoding = keep_text(r, encoding, &rc);
    if (rc == 0)
        s.data = keep_text(r, (struct mcap_text){(const char *)data.p, data.left}, &rc);
    if (rc != 0)
        return too_much(err, rc);
    r->schema[r->n_schemas++] = s;
    r->schema_slot[id] = (int32_t)r->n_schemas;
    return 0;
}

static bool pairs_are(const struct mcap_channel *c, struct mcap_in *in)
{
    struct mcap_in a = mcap_take_array(in);

    for (int i = 0; i < c->n_metadata; i++) {
        struct mcap_text key = mcap_take_text(&a), value = mcap_take_text(&a);
        if (a.bad || !text_is(c->metadata[i].key, key) ||
            !text_is(c->metadata[i].value, value))
            return false;
    }
    return a.left == 0;
}

int mcap_learn_channel(struct mcap_reader *r, const struct mcap_record *rec,
                       struct mcap_error *err)
{
    struct mcap_in in = {rec->content, (size_t)rec->length, false};
    struct mcap_known_channel k = {0};
    uint16_t id = (uint16_t)mcap_take(&in, 2), schema = (uint16_t)mcap_take(&in, 2);
    struct mcap_text topic = mcap_take_text(&in), encoding = mcap_take_text(&in);
    struct mcap_pair *pairs = NULL;
    int rc = slots(r, &r->channel_slot);

    if (rc == 0 && r->channel_slot[id]) {
        const struct mcap_channel *was = &r->channel[r->channel_slot[id] - 1].c;
        if (was->schema == schema && text_is(was->topic, topic) &&
            text_is(was->encoding, encoding) && pairs_are(was, &in))
            return 0;
        return mcap_fail(err, -EBADMSG, "channel %u is declared twice, and differently",
                         id);
    }
    if (rc == 0)
        rc = mcap_room(r, &r->channel, r->n_channels, &r->c_channels, sizeof *r->channel);
    k.c.id = id;
    k.c.schema = schema;
    if (rc == 0)
        k.c.topic = keep_text(r, topic, &rc);
    if (rc == 0)
        k.c.encoding = keep_text(r, encoding, &rc);
    if (rc == 0)
        rc = mcap_read_pairs(r, &in, &pairs, &k.c.n_metadata);
    if (rc != 0)
        return too_much(err, rc);
    k.c.metadata = pairs;
    r->channel[r->n_channels++] = k;
    r->channel_slot[id] = (int32_t)r->n_channels;
    return 0;
}

int mcap_learn_header(struct mcap_reader *r, const struct mcap_record *rec)
{
    struct mcap_in in = {rec->content, (size_t)rec->length, false};
    int rc = 0;

    r->profile = keep_text(r, mcap_take_text(&in), &rc);
    if (rc == 0)
        r->library = keep_text(r, mcap_take_text(&in), &rc);
    return rc;
}

int mcap_learn_ids(struct mcap_reader *r, const uint16_t *id, size_t n,
                   struct mcap_known_chunk *c)
{
    if (n == 0 || r->n_ids + n > UINT32_MAX)
        return 0;
    c->first_id = (uint32_t)r->n_ids;
    for (size_t i = 0; i < n; i++) {
        int rc = mcap_room(r, &r->ids, r->n_ids, &r->c_ids, sizeof *r->ids);
        if (rc != 0)
            return rc;
        r->ids[r->n_ids++] = id[i];
    }
    c->n_ids = (uint32_t)n;
    return 0;
}

int mcap_learn_spot(struct mcap_reader *r, bool attachment, uint64_t offset,
                    uint64_t length)
{
    struct mcap_spot **spot = attachment ? &r->attachment : &r->metadata;
    size_t *n = attachment ? &r->n_attachments : &r->n_metadata;
    int rc = mcap_room(r, spot, *n, attachment ? &r->c_attachments : &r->c_metadata,
                       sizeof **spot);

    if (rc == 0)
        (*spot)[(*n)++] = (struct mcap_spot){.offset = offset, .length = length};
    return rc;
}

void mcap_forget(struct mcap_reader *r)
{
    struct mcap_reader keep = {.file = r->file, .limits = r->limits};

    for (struct mcap_block *b = r->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(r->schema);
    free(r->channel);
    free(r->chunk);
    free(r->loose);
    free(r->metadata);
    free(r->attachment);
    free(r->ids);
    free(r->schema_slot);
    free(r->channel_slot);
    *r = keep;
    r->profile = r->library = "";
}

static int by_schema(const void *a, const void *b)
{
    const struct mcap_schema *x = a, *y = b;

    return x->id - y->id;
}

static int by_channel(const void *a, const void *b)
{
    const struct mcap_known_channel *x = a, *y = b;

    return x->c.id - y->c.id;
}

void mcap_index_sort(struct mcap_reader *r)
{
    if (r->n_schemas)
        qsort(r->schema, r->n_schemas, sizeof *r->schema, by_schema);
    for (size_t i = 0; i < r->n_schemas; i++)
        r->schema_slot[r->schema[i].id] = (int32_t)i + 1;
    if (r->n_channels)
        qsort(r->channel, r->n_channels, sizeof *r->channel, by_channel);
    for (size_t i = 0; i < r->n_channels; i++)
        r->channel_slot[r->channel[i].c.id] = (int32_t)i + 1;
}
