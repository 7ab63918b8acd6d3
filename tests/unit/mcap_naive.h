// Looks at an MCAP file as its specification tells it, byte by byte, and asserts that all of it
// agrees: sizes, CRCs, each index entry, each offset, each count. Shares nothing with the code under
// test. For files of our writer with everything in them (no option that leaves something out).
#ifndef TEST_MCAP_NAIVE_H
#define TEST_MCAP_NAIVE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <lz4frame.h>
#include <zlib.h>
#include <zstd.h>

#define NAIVE_MOST 4096 // records of a kind

struct naive_record {
    uint8_t op;
    size_t at, n; // of the opcode; of the content
    const unsigned char *content;
};

struct naive {
    const unsigned char *data;
    size_t n;
    struct naive_record chunk[NAIVE_MOST], index[NAIVE_MOST];
    int chunks, indexes, loose; // loose messages
    int schemas, channels;      // distinct
    int metadata, attachments;
    bool schema[65536], channel[65536];
    uint64_t of_channel[65536];
    uint64_t messages, start, end;
    uint32_t digest; // of all messages, in their order
};

static uint64_t naive_number(const unsigned char *p, size_t n)
{
    uint64_t v = 0;

    while (n-- > 0)
        v = v << 8 | p[n];
    return v;
}

static bool naive_next(const unsigned char *data, size_t n, size_t *at,
                       struct naive_record *r)
{
    if (*at >= n)
        return false;
    assert_true(n - *at >= 9);
    r->op = data[*at];
    r->at = *at;
    r->n = naive_number(data + *at + 1, 8);
    assert_true(r->n <= n - *at - 9);
    r->content = data + *at + 9;
    *at += 9 + r->n;
    return true;
}

static void naive_see(struct naive *f, const struct naive_record *r)
{
    uint16_t id = (uint16_t)naive_number(r->content, 2);
    uint64_t log;

    if (r->op == 3) {
        assert_int_not_equal(id, 0);
        f->schemas += !f->schema[id];
        f->schema[id] = true;
    } else if (r->op == 4) {
        uint16_t schema = (uint16_t)naive_number(r->content + 2, 2);

        assert_true(schema == 0 || f->schema[schema]);
        f->channels += !f->channel[id];
        f->channel[id] = true;
    } else {
        assert_int_equal(r->op, 5);
        assert_true(f->channel[id]); // said before
        log = naive_number(r->content + 6, 8);
        f->start = f->messages == 0 || log < f->start ? log : f->start;
        f->end = f->messages == 0 || log > f->end ? log : f->end;
        f->messages++;
        f->of_channel[id]++;
        f->digest = (uint32_t)crc32_z(f->digest, r->content, r->n);
    }
}

// What is in a Chunk, *n bytes, the caller's.
static unsigned char *naive_unpack(const struct naive_record *r, size_t *n)
{
    uint32_t crc = (uint32_t)naive_number(r->content + 24, 4);
    size_t name = naive_number(r->content + 28, 4), packed;
    const unsigned char *in = r->content + 32 + name + 8;
    unsigned char *out;

    *n = naive_number(r->content + 16, 8);
    packed = naive_number(in - 8, 8);
    assert_int_equal(r->n, 32 + name + 8 + packed);
    out = malloc(*n + 1);
    if (name == 0) {
        assert_int_equal(packed, *n);
        memcpy(out, in, *n);
    } else if (name == 4 && memcmp(r->content + 32, "zstd", 4) == 0) {
        assert_int_equal(ZSTD_getFrameContentSize(in, packed), *n);
        assert_int_equal(ZSTD_decompress(out, *n, in, packed), *n);
    } else {
        LZ4F_dctx *d;
        size_t got = *n, used = packed;

        assert_true(name == 3 && memcmp(r->content + 32, "lz4", 3) == 0);
        assert_int_equal(LZ4F_createDecompressionContext(&d, LZ4F_VERSION), 0);
        assert_int_equal(LZ4F_decompress(d, out, &got, in, &used, NULL), 0);
        assert_true(got == *n && used == packed);
        LZ4F_freeDecompressionContext(d);
    }
    assert_int_equal(crc32_z(0, out, *n), crc);
    return out;
}

// The MessageIndex records behind a chunk: one for each of its channels, each with all of its
// messages in their order. Returns how many records there are.
static int naive_indexes(const struct naive_record *index, int most,
                         const unsigned char *in, size_t n)
{
    static bool has[65536];
    struct naive_record r;
    int channels = 0, indexes = 0;

    memset(has, 0, sizeof has);
    for (size_t at = 0; naive_next(in, n, &at, &r);) {
        uint16_t id = (uint16_t)naive_number(r.content, 2);

        if (r.op == 5 && !has[id]) {
            has[id] = true;
            channels++;
        }
    }
    for (; indexes < most && indexes < channels; indexes++) {
        const unsigned char *p = index[indexes].content;
        uint16_t id = (uint16_t)naive_number(p, 2);
        size_t entries = naive_number(p + 2, 4), e = 0;

        assert_int_equal(index[indexes].n, 6 + entries);
        assert_true(has[id]);
        has[id] = false;
        for (size_t at = 0; naive_next(in, n, &at, &r);) {
            if (r.op != 5 || naive_number(r.content, 2) != id)
                continue;
            assert_true(e < entries);
            assert_int_equal(naive_number(p + 6 + e, 8), naive_number(r.content + 6, 8));
            assert_int_equal(naive_number(p + 14 + e, 8), r.at);
            e += 16;
        }
        assert_int_equal(e, entries);
    }
    assert_int_equal(indexes, channels);
    return indexes;
}

static void naive_chunk(struct naive *f, int chunk, const struct naive_record *index,
                        int most)
{
    const struct naive_record *c = &f->chunk[chunk];
    uint64_t start = naive_number(c->content, 8), end = naive_number(c->content + 8, 8);
    uint64_t least = 0, largest = 0, messages = 0;
    size_t n;
    unsigned char *in = naive_unpack(c, &n);
    struct naive_record r;

    for (size_t at = 0; naive_next(in, n, &at, &r);) {
        naive_see(f, &r);
        if (r.op == 5) {
            uint64_t log = naive_number(r.content + 6, 8);

            least = messages == 0 || log < least ? log : least;
            largest = messages == 0 || log > largest ? log : largest;
            messages++;
        }
    }
    assert_true(start == least && end == largest);
    assert_int_equal(naive_indexes(index, most, in, n), most);
    free(in);
}

// Everything up to DataEnd. Returns where that ends.
static size_t naive_data(struct naive *f)
{
    struct naive_record r = {0};
    size_t at = 8;

    assert_true(naive_next(f->data, f->n, &at, &r) && r.op == 1);
    while (naive_next(f->data, f->n, &at, &r) && r.op != 15) {
        if (r.op == 6) {
            f->chunk[f->chunks++] = r;
        } else if (r.op == 7) {
            assert_true(f->chunks > 0);
            f->index[f->indexes++] = r;
        } else if (r.op == 12) {
            f->metadata++;
        } else if (r.op == 9) {
            assert_int_equal(crc32_z(0, r.content, r.n - 4),
                             naive_number(r.content + r.n - 4, 4));
            f->attachments++;
        } else {
            f->loose += r.op == 5;
            naive_see(f, &r);
        }
        assert_true(f->chunks < NAIVE_MOST && f->indexes < NAIVE_MOST);
    }
    assert_int_equal(r.op, 15);
    assert_int_equal(naive_number(r.content, 4), crc32_z(0, f->data, r.at));
    for (int c = 0, i = 0; c < f->chunks; c++) {
        int first = i;

        while (i < f->indexes &&
               (c + 1 == f->chunks || f->index[i].at < f->chunk[c + 1].at))
            i++;
        naive_chunk(f, c, &f->index[first], i - first);
    }
    return at;
}

static void naive_chunk_index(const struct naive *f, int chunk,
                              const struct naive_record *r)
{
    const struct naive_record *c = &f->chunk[chunk];
    const unsigned char *p = r->content;
    size_t map, name, index_bytes = 0;

    assert_memory_equal(p, c->content, 16); // start, end
    assert_int_equal(naive_number(p + 16, 8), c->at);
    assert_int_equal(naive_number(p + 24, 8), 9 + c->n);
    map = naive_number(p + 32, 4);
    for (size_t e = 0; e < map; e += 10) {
        const unsigned char *m = f->data + naive_number(p + 36 + e + 2, 8);

        assert_int_equal(*m, 7);
        assert_memory_equal(m + 9, p + 36 + e, 2);
        index_bytes += 9 + naive_number(m + 1, 8);
    }
    p += 36 + map;
    assert_int_equal(naive_number(p, 8), index_bytes);
    name = naive_number(p + 8, 4);
    assert_memory_equal(p + 8, c->content + 28, 4 + name);
    assert_memory_equal(p + 12 + name, c->content + 32 + name, 8);
    assert_memory_equal(p + 20 + name, c->content + 16, 8);
    assert_int_equal(r->n, 36 + map + 28 + name);
}

static void naive_statistics(const struct naive *f, const unsigned char *p)
{
    size_t map = naive_number(p + 42, 4);
    uint64_t counted = 0;

    assert_int_equal(naive_number(p, 8), f->messages);
    assert_int_equal(naive_number(p + 8, 2), f->schemas);
    assert_int_equal(naive_number(p + 10, 4), f->channels);
    assert_int_equal(naive_number(p + 14, 4), f->attachments);
    assert_int_equal(naive_number(p + 18, 4), f->metadata);
    assert_int_equal(naive_number(p + 22, 4), f->chunks);
    assert_int_equal(naive_number(p + 26, 8), f->start);
    assert_int_equal(naive_number(p + 34, 8), f->end);
    for (size_t e = 0; e < map; e += 10) {
        uint16_t id = (uint16_t)naive_number(p + 46 + e, 2);

        assert_int_equal(naive_number(p + 48 + e, 8), f->of_channel[id]);
        counted += f->of_channel[id];
    }
    assert_int_equal(counted, f->messages);
}

// A record of Metadata or Attachment that an index tells of.
static void naive_place(const struct naive *f, const unsigned char *p, uint8_t op)
{
    size_t at = naive_number(p, 8);

    assert_int_equal(f->data[at], op);
    assert_int_equal(naive_number(p + 8, 8), 9 + naive_number(f->data + at + 1, 8));
}

static void naive_summary(struct naive *f, size_t at, size_t footer)
{
    const unsigned char *foot = f->data + footer + 9;
    size_t start = naive_number(foot, 8), offsets = naive_number(foot + 8, 8), group = at;
    int of_op[256] = {0}, groups = 0, told = 0;
    struct naive_record r;
    uint8_t op = 0;

    assert_int_equal(start, at < footer ? at : 0);
    assert_int_equal(naive_number(foot + 16, 4),
                     crc32_z(0, f->data + at, footer + 25 - at));
    while (naive_next(f->data, footer, &at, &r)) {
        groups += r.op != op && r.op != 14;
        op = r.op;
        if (r.op == 8)
            naive_chunk_index(f, of_op[8], &r);
        else if (r.op == 11)
            naive_statistics(f, r.content);
        else if (r.op == 13)
            naive_place(f, r.content, 12);
        else if (r.op == 10)
            naive_place(f, r.content, 9);
        else if (r.op == 14) {
            assert_true(told > 0 || r.at == offsets);
            assert_int_equal(naive_number(r.content + 1, 8), group);
            assert_int_equal(f->data[group], r.content[0]);
            group += naive_number(r.content + 9, 8);
            told++;
        }
        of_op[r.op]++;
    }
    assert_int_equal(group, offsets);
    assert_int_equal(told, groups);
    assert_int_equal(of_op[3], f->schemas);
    assert_int_equal(of_op[4], f->channels);
    assert_int_equal(of_op[8], f->chunks);
    assert_int_equal(of_op[10], f->attachments);
    assert_int_equal(of_op[13], f->metadata);
    assert_int_equal(of_op[11], 1);
}

// *f is large: static.
__attribute__((unused)) static void naive_check(struct naive *f, const void *data,
                                                size_t n)
{
    static const unsigned char magic[] = "\x89MCAP0\r\n";
    size_t end, footer = n - 8 - 29;

    memset(f, 0, sizeof *f);
    assert_true(n > 16 + 29);
    assert_memory_equal(data, magic, 8);
    f->data = data;
    f->n = n - 8;
    assert_memory_equal(f->data + n - 8, magic, 8);
    assert_true(f->data[footer] == 2 && naive_number(f->data + footer + 1, 8) == 20);
    end = naive_data(f);
    naive_summary(f, end, footer);
}

#endif
