// mcap_read_chunk: what is in a chunk. The buffer has the size that the chunk says, which was held
// against the limit before; a decompressor that has more to give is stopped there.
#include "daemon/mcap_read_impl.h"

#include <errno.h>
#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

static int room(struct mcap_unpacked *u, size_t n)
{
    unsigned char *p;

    if (n <= u->capacity)
        return 0;
    p = realloc(u->data, n);
    if (!p)
        return -ENOMEM;
    u->data = p;
    u->capacity = n;
    return 0;
}

// Is the size that the frame itself names another one? Then nothing is allocated for it.
static bool frame_differs(const struct mcap_chunk_head *h)
{
    unsigned long long n;

    if (h->compression != MCAP_ZSTD)
        return h->compression == MCAP_NONE && h->n != h->uncompressed;
    n = ZSTD_getFrameContentSize(h->records, (size_t)h->n);
    if (n == ZSTD_CONTENTSIZE_ERROR)
        return h->n > 0 || h->uncompressed > 0;
    return n != ZSTD_CONTENTSIZE_UNKNOWN && n > h->uncompressed;
}

static bool lz4(unsigned char *to, size_t size, const unsigned char *from, size_t n)
{
    LZ4F_dctx *d = NULL;
    size_t at = 0, done = 0, more = 0;

    if (LZ4F_isError(LZ4F_createDecompressionContext(&d, LZ4F_VERSION)))
        return false;
    while (at < n) {
        size_t in = n - at, out = size - done;
        more = LZ4F_decompress(d, to + done, &out, from + at, &in, NULL);
        if (LZ4F_isError(more) || (in == 0 && out == 0))
            break;
        at += in;
        done += out;
    }
    LZ4F_freeDecompressionContext(d);
    return at == n && done == size && more == 0;
}

static bool inflate_into(unsigned char *to, const struct mcap_chunk_head *h)
{
    size_t size = (size_t)h->uncompressed, n = (size_t)h->n;

    if (h->compression == MCAP_ZSTD)
        return ZSTD_decompress(to, size, h->records, n) == size;
    if (h->compression == MCAP_LZ4)
        return lz4(to, size, h->records, n);
    memcpy(to, h->records, n);
    return true;
}

int mcap_unpack(struct mcap_unpacked *u, const struct mcap_chunk_head *h,
                struct mcap_error *err)
{
    u->n = 0;
    if (frame_differs(h))
        return mcap_fail(err, -EBADMSG, "a chunk does not hold the %llu bytes it says",
                         (unsigned long long)h->uncompressed);
    if (h->uncompressed == 0 && h->n == 0)
        return 0;
    if (room(u, h->uncompressed ? (size_t)h->uncompressed : 1) != 0)
        return mcap_fail(err, -ENOMEM, "no memory for a chunk of %llu bytes",
                         (unsigned long long)h->uncompressed);
    if (!inflate_into(u->data, h))
        return mcap_fail(err, -EBADMSG,
                         "a chunk cannot be decompressed to the %llu bytes "
                         "it says",
                         (unsigned long long)h->uncompressed);
    if (h->crc && h->crc != mcap_crc(0, u->data, (size_t)h->uncompressed))
        return mcap_fail(err, -EBADMSG, "a chunk's contents do not have its CRC");
    u->n = (size_t)h->uncompressed;
    return 0;
}

void mcap_unpacked_free(struct mcap_unpacked *u)
{
    free(u->data);
    *u = (struct mcap_unpacked){0};
}

static bool belongs_in_chunk(uint8_t op)
{
    return (op >= MCAP_SCHEMA && op <= MCAP_MESSAGE) || op > MCAP_DATA_END;
}

int mcap_inner_next(const struct mcap_unpacked *u, size_t *at, struct mcap_record *r,
                    struct mcap_error *err)
{
    struct mcap_in in;

    if (*at == u->n)
        return 0;
    in = (struct mcap_in){u->data + *at, u->n - *at, false};
    *r = (struct mcap_record){.in_chunk = true, .offset = *at};
    r->op = (uint8_t)mcap_take(&in, 1);
    r->length = mcap_take(&in, 8);
    r->content = in.p;
    if (in.bad || r->length > in.left)
        return mcap_fail(err, -EBADMSG, "a record in a chunk is longer than the chunk");
    if (!belongs_in_chunk(r->op))
        return mcap_fail(err, -EBADMSG, "a %s lies in a chunk, where none may be",
                         mcap_op_name(r->op));
    if (mcap_record_check(r, err) != 0)
        return -EBADMSG;
    *at += MCAP_HEAD + (size_t)r->length;
    return 1;
}

bool mcap_ids_has(const struct mcap_ids *s, uint16_t id)
{
    return s->bits[id / 8] >> id % 8 & 1;
}

void mcap_ids_add(struct mcap_ids *s, uint16_t id)
{
    s->bits[id / 8] = (unsigned char)(s->bits[id / 8] | 1 << id % 8);
}
