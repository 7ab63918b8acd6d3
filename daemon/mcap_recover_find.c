// mcap_recover_find: after damage, the next place that can be believed. First the one that the bad
// record's own length leads to, if a record lies there that is one; then, byte by byte, a chunk
// whose CRC is right (or, having none, whose records all are); then the summary, for its schemas
// and channels.
//
// A hostile file can be all beginnings of chunks, each of which has to be unpacked to be refused:
// what may be tried in vain has a budget, r->budget bytes.
#include "daemon/mcap_recover_impl.h"

#include <errno.h>
#include <string.h>

#define WINDOW ((size_t)64 << 10)
// From the opcode to the end of the compression's length: enough to refuse nearly all.
#define LOOK (MCAP_HEAD + 32)

static bool spend(struct mcap_reader *r, uint64_t bytes)
{
    if (bytes > r->budget) {
        r->budget = 0;
        return false;
    }
    r->budget -= bytes;
    return true;
}

// A record of a known kind, whole and well formed, lies there.
static bool plausible(struct mcap_reader *r, uint64_t at)
{
    struct mcap_record rec = {.offset = at};
    const unsigned char *p;

    if (at > r->file.size || r->file.size - at < MCAP_HEAD ||
        mcap_file_get(&r->file, at, MCAP_HEAD, &p, NULL) != 0)
        return false;
    struct mcap_in in = {p, MCAP_HEAD, false};
    rec.op = (uint8_t)mcap_take(&in, 1);
    rec.length = mcap_take(&in, 8);
    if (rec.op <= MCAP_HEADER || rec.op > MCAP_DATA_END ||
        rec.length > r->file.size - at - MCAP_HEAD ||
        rec.length > mcap_record_limit(rec.op, &r->limits) || !spend(r, rec.length) ||
        mcap_file_get(&r->file, at + MCAP_HEAD, (size_t)rec.length, &rec.content, NULL) !=
            0)
        return false;
    return mcap_record_check(&rec, NULL) == 0;
}

// The bytes of a chunk's head, LOOK of them: can they be one, with so much file left?
static bool looks_like_chunk(const struct mcap_reader *r, const unsigned char *p,
                             uint64_t left)
{
    struct mcap_in in = {p, LOOK, false};

    mcap_take(&in, 1);
    uint64_t length = mcap_take(&in, 8), start_ns = mcap_take(&in, 8);
    uint64_t end_ns = mcap_take(&in, 8), uncompressed = mcap_take(&in, 8);
    mcap_take(&in, 4);
    uint64_t name = mcap_take(&in, 4);
    return length >= MCAP_CHUNK_FIXED && length <= left - MCAP_HEAD &&
           length <= mcap_record_limit(MCAP_CHUNK, &r->limits) && start_ns <= end_ns &&
           uncompressed <= r->limits.chunk_bytes && (name == 0 || name == 3 || name == 4);
}

static bool is_chunk(struct mcap_reader *r, struct mcap_scan *s, uint64_t at)
{
    const unsigned char *p;
    struct mcap_chunk_head h;
    struct mcap_record rec;
    int rc;

    if (mcap_file_get(&r->file, at, MCAP_HEAD, &p, NULL) != 0)
        return false;
    struct mcap_in in = {p + 1, 8, false};
    uint64_t n = mcap_take(&in, 8);
    if (mcap_file_get(&r->file, at, MCAP_HEAD + (size_t)n, &p, NULL) != 0 ||
        mcap_chunk_parse(p + MCAP_HEAD, n, &r->limits, &h, NULL) != 0 ||
        !spend(r, n + h.uncompressed) || mcap_unpack(&s->chunk, &h, NULL) != 0)
        return false;
    for (size_t i = 0; (rc = mcap_inner_next(&s->chunk, &i, &rec, NULL)) == 1;)
        ;
    return rc == 0 && s->chunk.n > 0;
}

// 1 and *at, 0: there is none behind it.
static int search(struct mcap_reader *r, struct mcap_scan *s, uint64_t *at,
                  struct mcap_error *err)
{
    while (r->file.size - *at >= LOOK && r->budget > 0) {
        const unsigned char *p, *q;
        uint64_t left = r->file.size - *at;
        size_t n = left < WINDOW ? (size_t)left : WINDOW;
        int rc = mcap_file_get(&r->file, *at, n, &p, err);
        if (rc != 0)
            return rc;
        q = memchr(p, MCAP_CHUNK, n - LOOK + 1);
        if (!q) {
            *at += n - LOOK + 1;
            continue;
        }
        *at += (uint64_t)(q - p);
        if (looks_like_chunk(r, q, r->file.size - *at) && is_chunk(r, s, *at))
            return 1;
        ++*at;
    }
    return 0;
}

// Of a file whose end is as it should be.
static uint64_t summary(struct mcap_reader *r)
{
    uint64_t tail = MCAP_HEAD + MCAP_FOOTER_BYTES + MCAP_MAGIC_BYTES;
    const unsigned char *p;

    if (r->file.size < tail ||
        mcap_file_get(&r->file, r->file.size - tail, (size_t)tail, &p, NULL) != 0 ||
        p[0] != MCAP_FOOTER || memcmp(p + tail - MCAP_MAGIC_BYTES, mcap_magic, 8) != 0)
        return 0;
    struct mcap_in in = {p + MCAP_HEAD, 8, false};
    return mcap_take(&in, 8);
}

static bool holds_data(uint8_t op)
{
    return (op >= MCAP_SCHEMA && op <= MCAP_CHUNK) || op == MCAP_ATTACHMENT ||
           op == MCAP_METADATA || op > MCAP_DATA_END || op == 0;
}

// Where the bad record's own length leads to, if that can be believed; else bad.
static uint64_t behind(struct mcap_reader *r, uint64_t bad, bool *data)
{
    const unsigned char *p;

    if (r->file.size - bad < MCAP_HEAD ||
        mcap_file_get(&r->file, bad, MCAP_HEAD, &p, NULL) != 0)
        return bad;
    struct mcap_in in = {p, MCAP_HEAD, false};
    uint8_t op = (uint8_t)mcap_take(&in, 1);
    uint64_t n = mcap_take(&in, 8);
    if (op == 0 || n >= r->file.size - bad || !plausible(r, bad + MCAP_HEAD + n))
        return bad;
    *data = holds_data(op);
    return bad + MCAP_HEAD + n;
}

int mcap_resync(struct mcap_reader *r, struct mcap_scan *s, uint64_t bad, uint64_t back,
                struct mcap_error *err)
{
    uint64_t to = bad;
    bool data = true;
    int rc;

    s->crc_unknown = true;
    s->chunk_at = UINT64_MAX;
    if (bad < r->file.size)
        to = behind(r, bad, &data);
    data &= !s->data_ended;
    if (to == bad) {
        to = back < bad ? back : bad + (bad < r->file.size);
        rc = search(r, s, &to, err);
        if (rc < 0)
            return rc;
        if (rc == 1)
            s->data_ended = false;
        else if ((to = summary(r)) > bad && to < r->file.size)
            s->data_ended = true;
        else
            to = r->file.size;
    }
    if (to == bad) // it ends where a record does: nothing is torn
        return 1;
    r->damaged++;
    r->lost_bytes += data && to > bad ? to - bad : 0;
    s->at = to;
    return to >= r->file.size;
}

// ---- declarations that another reader has -------------------------------------------------------

static int learn(struct mcap_reader *r, struct mcap_bytes *b,
                 int (*how)(struct mcap_reader *, const struct mcap_record *,
                            struct mcap_error *))
{
    struct mcap_record rec = {.length = b->n - MCAP_HEAD};
    int rc = -ENOMEM;

    if (!b->failed) {
        rec.content = b->data + MCAP_HEAD;
        rc = how(r, &rec, NULL);
    }
    mcap_bytes_free(b);
    return rc;
}

int mcap_learn_again_schema(struct mcap_reader *r, const struct mcap_schema *s)
{
    struct mcap_bytes b = {0};

    mcap_put_schema(&b, s, false);
    return learn(r, &b, mcap_learn_schema);
}

int mcap_learn_again_channel(struct mcap_reader *r, const struct mcap_channel *c)
{
    struct mcap_bytes b = {0};

    mcap_put_channel(&b, c, false);
    return learn(r, &b, mcap_learn_channel);
}
