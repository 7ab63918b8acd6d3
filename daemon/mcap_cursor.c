// mcap_cursor: messages, in one of two orders. In the order of the file one chunk is open at a
// time. In the order of time a chunk is opened when the message in front is no earlier than the
// chunk's first, and all open ones lie in a heap by their next message; messages outside of chunks
// are one more of them, open from the beginning.
#include "daemon/mcap_read_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct entry { // of a wanted message
    uint64_t log_ns;
    size_t at; // in its chunk's records; of the loose ones, which
};

struct open_chunk {
    struct mcap_unpacked records;
    struct entry *entry;
    size_t n, next;
    uint64_t offset; // of the chunk; UINT64_MAX: the loose messages
};

struct mcap_cursor {
    struct mcap_reader *r;
    struct mcap_file file; // the reader's, with a window of its own
    struct mcap_ids wanted;
    bool all;
    enum mcap_order order;
    uint64_t from_ns, to_ns; // to_ns 0 = no end
    size_t *chunk;           // which, in the order in which they are opened
    size_t n_chunks, next_chunk, next_loose;
    struct open_chunk **heap; // FILE_ORDER: heap[0] is the one
    size_t n_heap, c_heap;
    struct open_chunk *used_up; // its last message is the caller's still
    uint64_t held;              // bytes of open chunks
};

static bool in_time(const struct mcap_cursor *c, uint64_t ns)
{
    return ns >= c->from_ns && (c->to_ns == 0 || ns < c->to_ns);
}

static bool wants(const struct mcap_cursor *c, uint16_t channel)
{
    return c->all || mcap_ids_has(&c->wanted, channel);
}

static bool wants_chunk(const struct mcap_cursor *c, const struct mcap_known_chunk *k)
{
    if (k->place.end_ns < c->from_ns || (c->to_ns && k->place.start_ns >= c->to_ns))
        return false;
    if (c->all || k->n_ids == 0)
        return true;
    for (uint32_t i = 0; i < k->n_ids; i++)
        if (mcap_ids_has(&c->wanted, c->r->ids[k->first_id + i]))
            return true;
    return false;
}

static void close_chunk(struct mcap_cursor *c, struct open_chunk *o)
{
    if (!o)
        return;
    c->held -= o->records.n;
    mcap_unpacked_free(&o->records);
    free(o->entry);
    free(o);
}

// ---- the heap ---------------------------------------------------------------------------------

static bool before(const struct open_chunk *a, const struct open_chunk *b)
{
    const struct entry *x = &a->entry[a->next], *y = &b->entry[b->next];

    return x->log_ns != y->log_ns ? x->log_ns < y->log_ns : a->offset < b->offset;
}

static void sink(struct mcap_cursor *c)
{
    struct open_chunk **h = c->heap, *o = h[0];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < c->n_heap; i = child) {
        if (child + 1 < c->n_heap && before(h[child + 1], h[child]))
            child++;
        if (!before(h[child], o))
            break;
        h[i] = h[child];
    }
    h[i] = o;
}

static int push(struct mcap_cursor *c, struct open_chunk *o)
{
    size_t i = c->n_heap;

    if (c->n_heap == c->c_heap) {
        size_t more = c->c_heap ? 2 * c->c_heap : 8;
        // NOLINTNEXTLINE(bugprone-sizeof-expression): it is an array of pointers
        struct open_chunk **p = realloc(c->heap, more * sizeof *p);
        if (!p)
            return -ENOMEM;
        c->heap = p;
        c->c_heap = more;
    }
    for (c->n_heap++; i > 0 && before(o, c->heap[(i - 1) / 2]); i = (i - 1) / 2)
        c->heap[i] = c->heap[(i - 1) / 2];
    c->heap[i] = o;
    return 0;
}

// The front one has one message fewer.
static void advance(struct mcap_cursor *c)
{
    struct open_chunk *o = c->heap[0];

    if (++o->next < o->n) {
        sink(c);
        return;
    }
    c->used_up = o;
    c->heap[0] = c->heap[--c->n_heap];
    if (c->n_heap > 0)
        sink(c);
}

// ---- opening a chunk ---------------------------------------------------------------------------

static int by_time(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->log_ns != y->log_ns)
        return x->log_ns < y->log_ns ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

// Counts, then fills: a chunk of small messages has some 20 000.
static int entries(struct mcap_cursor *c, struct open_chunk *o, struct mcap_error *err)
{
    struct mcap_record rec = {0};
    unsigned strange = 0;
    size_t n = 0;
    int rc = 0;

    for (size_t at = 0; (rc = mcap_inner_next(&o->records, &at, &rec, err)) == 1;)
        n += rec.op == MCAP_MESSAGE;
    if (rc != 0)
        return rc;
    o->entry = malloc((n ? n : 1) * sizeof *o->entry);
    if (!o->entry)
        return mcap_fail(err, -ENOMEM, "no memory for a chunk of %zu messages", n);
    for (size_t at = 0, begin = 0; mcap_inner_next(&o->records, &at, &rec, err) == 1;
         begin = at) {
        if (rec.op != MCAP_MESSAGE)
            continue;
        struct mcap_message m = mcap_message_parse(&rec);
        bool known = mcap_channel_of(c->r, m.channel) != NULL;
        strange += !known;
        if (known && wants(c, m.channel) && in_time(c, m.log_ns))
            o->entry[o->n++] = (struct entry){m.log_ns, begin};
    }
    if (c->order == MCAP_LOG_ORDER && o->n)
        qsort(o->entry, o->n, sizeof *o->entry, by_time);
    if (strange)
        return mcap_fail(err, -ENODATA,
                         "byte %llu: %u messages of channels that are declared nowhere",
                         (unsigned long long)o->offset, strange);
    return 0;
}

static int unpack(struct mcap_cursor *c, const struct mcap_chunk_place *p,
                  struct open_chunk *o, struct mcap_error *err)
{
    uint64_t most = 2 * (uint64_t)c->r->limits.chunk_bytes;
    const unsigned char *bytes = NULL;
    struct mcap_chunk_head h = {0};
    struct mcap_error why = {""};
    int rc;

    if (p->length - MCAP_HEAD > mcap_record_limit(MCAP_CHUNK, &c->r->limits))
        rc = mcap_fail(&why, -EFBIG, "the chunk has %llu bytes, more than are allowed",
                       (unsigned long long)p->length);
    else
        rc = mcap_file_get(&c->file, p->offset, (size_t)p->length, &bytes, &why);
    if (rc == 0)
        rc = mcap_chunk_parse(bytes + MCAP_HEAD, p->length - MCAP_HEAD, &c->r->limits, &h,
                              &why);
    if (rc == 0 && c->held + h.uncompressed > most)
        rc = mcap_fail(
            &why, -EFBIG,
            "so many chunks overlap here that more than %llu bytes are needed at "
            "once",
            (unsigned long long)most);
    if (rc == 0)
        rc = mcap_unpack(&o->records, &h, &why);
    if (rc != 0)
        return mcap_fail(err, rc, "byte %llu: %.200s", (unsigned long long)p->offset,
                         why.text);
    c->held += o->records.n;
    return 0;
}

// -ENODATA: it was opened, and something in it is amiss.
static int open_chunk(struct mcap_cursor *c, const struct mcap_known_chunk *k,
                      struct mcap_error *err)
{
    struct open_chunk *o = calloc(1, sizeof *o);
    int rc, rc2 = 0;

    if (!o)
        return mcap_fail(err, -ENOMEM, "no memory for a chunk");
    o->offset = k->place.offset;
    rc = unpack(c, &k->place, o, err);
    if (rc == 0)
        rc = entries(c, o, err);
    if ((rc == 0 || rc == -ENODATA) && o->n > 0 && (rc2 = push(c, o)) == 0)
        return rc;
    close_chunk(c, o);
    return rc2 != 0 ? mcap_fail(err, rc2, "no memory for a chunk") : rc;
}

static int open_loose(struct mcap_cursor *c)
{
    struct mcap_reader *r = c->r;
    struct open_chunk *o = calloc(1, sizeof *o);

    if (!o)
        return -ENOMEM;
    o->offset = UINT64_MAX;
    o->entry = malloc((r->n_loose + 1) * sizeof *o->entry);
    for (size_t i = 0; o->entry && i < r->n_loose; i++)
        if (wants(c, r->loose[i].channel) && in_time(c, r->loose[i].log_ns))
            o->entry[o->n++] = (struct entry){r->loose[i].log_ns, i};
    if (o->entry && o->n)
        qsort(o->entry, o->n, sizeof *o->entry, by_time);
    if (!o->entry || (o->n && push(c, o) != 0)) {
        close_chunk(c, o);
        return -ENOMEM;
    }
    if (!o->n)
        close_chunk(c, o);
    return 0;
}

// ---- making one ---------------------------------------------------------------------------------

static int by_start(const void *a, const void *b, void *reader)
{
    const struct mcap_reader *r = reader;
    const size_t *x = a, *y = b;
    uint64_t s = r->chunk[*x].place.start_ns, t = r->chunk[*y].place.start_ns;

    return s != t ? (s < t ? -1 : 1) : (*x > *y) - (*x < *y);
}

static int prepare(struct mcap_cursor *c)
{
    c->chunk = malloc((c->r->n_chunks + 1) * sizeof *c->chunk);
    if (!c->chunk)
        return -ENOMEM;
    for (size_t i = 0; i < c->r->n_chunks; i++)
        if (wants_chunk(c, &c->r->chunk[i]))
            c->chunk[c->n_chunks++] = i;
    if (c->order == MCAP_FILE_ORDER)
        return 0;
    if (c->n_chunks)
        qsort_r(c->chunk, c->n_chunks, sizeof *c->chunk, by_start, c->r);
    return c->r->n_loose ? open_loose(c) : 0;
}

int mcap_cursor_new(struct mcap_cursor **out, struct mcap_reader *r,
                    const uint16_t *channel, int n, enum mcap_order order,
                    uint64_t from_ns, uint64_t to_ns)
{
    struct mcap_cursor *c = calloc(1, sizeof *c);

    *out = NULL;
    if (!c)
        return -ENOMEM;
    c->r = r;
    c->file = (struct mcap_file){.fd = r->file.fd, .size = r->file.size};
    c->all = n == 0;
    c->order = order;
    c->from_ns = from_ns;
    c->to_ns = to_ns;
    for (int i = 0; i < n; i++)
        mcap_ids_add(&c->wanted, channel[i]);
    int rc = prepare(c);
    if (rc != 0) {
        mcap_cursor_free(c);
        return rc;
    }
    *out = c;
    return 0;
}

void mcap_cursor_free(struct mcap_cursor *c)
{
    if (!c)
        return;
    close_chunk(c, c->used_up);
    for (size_t i = 0; i < c->n_heap; i++)
        close_chunk(c, c->heap[i]);
    free(c->heap);
    free(c->chunk);
    free(c->file.window);
    free(c);
}

// ---- the next message -----------------------------------------------------------------------

static int loose_message(struct mcap_cursor *c, size_t i, struct mcap_message *m,
                         struct mcap_error *err)
{
    const struct mcap_loose *l = &c->r->loose[i];
    const unsigned char *p;
    int rc = mcap_file_get(&c->file, l->offset, MCAP_HEAD + (size_t)l->length, &p, err);

    if (rc != 0)
        return rc;
    struct mcap_record rec = {.length = l->length, .content = p + MCAP_HEAD};
    *m = mcap_message_parse(&rec);
    return 1;
}

static int front(struct mcap_cursor *c, struct mcap_message *m, struct mcap_error *err)
{
    struct open_chunk *o = c->heap[0];
    size_t at = o->entry[o->next].at;
    struct mcap_record rec;
    int rc = 1;

    if (o->offset == UINT64_MAX) {
        rc = loose_message(c, at, m, err);
    } else {
        rc = mcap_inner_next(&o->records, &at, &rec, err);
        if (rc == 1)
            *m = mcap_message_parse(&rec);
    }
    advance(c);
    return rc;
}

// The next loose message that is wanted; r->n_loose when there is none.
static size_t next_loose(struct mcap_cursor *c)
{
    const struct mcap_loose *l = c->r->loose;
    size_t i = c->next_loose;

    while (i < c->r->n_loose && !(wants(c, l[i].channel) && in_time(c, l[i].log_ns)))
        i++;
    c->next_loose = i;
    return i;
}

static int next_in_file(struct mcap_cursor *c, struct mcap_message *m,
                        struct mcap_error *err)
{
    while (c->n_heap == 0) {
        size_t loose = next_loose(c);
        const struct mcap_known_chunk *k =
            c->next_chunk < c->n_chunks ? &c->r->chunk[c->chunk[c->next_chunk]] : NULL;
        if (loose < c->r->n_loose &&
            (!k || c->r->loose[loose].offset < k->place.offset)) {
            c->next_loose++;
            return loose_message(c, loose, m, err);
        }
        if (!k)
            return 0;
        c->next_chunk++;
        int rc = open_chunk(c, k, err);
        if (rc != 0)
            return rc;
    }
    return front(c, m, err);
}

static int next_in_time(struct mcap_cursor *c, struct mcap_message *m,
                        struct mcap_error *err)
{
    while (c->next_chunk < c->n_chunks) {
        const struct mcap_known_chunk *k = &c->r->chunk[c->chunk[c->next_chunk]];
        if (c->n_heap > 0 &&
            c->heap[0]->entry[c->heap[0]->next].log_ns < k->place.start_ns)
            break;
        c->next_chunk++;
        int rc = open_chunk(c, k, err);
        if (rc != 0)
            return rc;
    }
    return c->n_heap > 0 ? front(c, m, err) : 0;
}

int mcap_next(struct mcap_cursor *c, struct mcap_message *m, struct mcap_error *err)
{
    close_chunk(c, c->used_up);
    c->used_up = NULL;
    return c->order == MCAP_FILE_ORDER ? next_in_file(c, m, err)
                                       : next_in_time(c, m, err);
}
