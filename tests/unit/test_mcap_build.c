// mcap_build: what comes out is what went in, however it is packed; its memory is kept; and memory
// that ends costs the message that found none, or the chunk.
#include <errno.h>

#include "daemon/mcap_write.h"
#include "tests/unit/mcap_naive.h"
#include "tests/unit/memory_ends.h"

static uint64_t seed = 88172645463325252u;

static uint64_t any(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static struct mcap_build *builder(enum mcap_compression compression, size_t least)
{
    const struct mcap_build_options opt = {.compression = compression, .least = least};
    struct mcap_build *b;

    assert_int_equal(mcap_build_new(&b, &opt), 0);
    return b;
}

static struct mcap_chunk *finished(struct mcap_build *b)
{
    struct mcap_chunk *c;

    assert_int_equal(mcap_build_finish(b, &c), 0);
    assert_non_null(c);
    assert_int_equal(mcap_build_bytes(b), 0);
    assert_int_equal(mcap_build_messages(b), 0);
    return c;
}

// n messages of `size` bytes on channels 3 and 9; letters: of how many values a byte is one.
static void fill(struct mcap_build *b, int n, size_t size, unsigned letters)
{
    static unsigned char data[4096];

    assert_true(size <= sizeof data);
    for (int i = 0; i < n; i++) {
        const struct mcap_message m = {i % 3 ? 3 : 9, (uint32_t)i, 1000 - (uint64_t)i, 5,
                                       data,          size};

        for (size_t k = 0; k < size; k++)
            data[k] = (unsigned char)(any() % letters);
        assert_int_equal(mcap_build_message(b, &m), 0);
    }
}

// The chunk's record, then its indexes; asserts that the facts are so.
static struct naive_record record_of(const struct mcap_chunk *c, int *indexes,
                                     struct naive_record *index)
{
    struct naive_record chunk, r;
    size_t at = 0;

    assert_true(naive_next(c->bytes, c->n, &at, &chunk) && chunk.op == 6);
    assert_int_equal(at, c->facts.chunk_bytes);
    *indexes = 0;
    while (naive_next(c->bytes, c->n, &at, &r)) {
        const struct mcap_chunk_channel *ch = &c->facts.channel[*indexes];

        assert_int_equal(r.op, 7);
        assert_int_equal(r.at, ch->index_offset);
        assert_int_equal(naive_number(r.content, 2), ch->id);
        assert_int_equal(naive_number(r.content + 2, 4), 16 * ch->messages);
        index[(*indexes)++] = r;
    }
    assert_int_equal(at, c->facts.chunk_bytes + c->facts.index_bytes);
    assert_int_equal(naive_number(chunk.content, 8), c->facts.start_ns);
    assert_int_equal(naive_number(chunk.content + 8, 8), c->facts.end_ns);
    assert_int_equal(naive_number(chunk.content + 16, 8), c->facts.uncompressed);
    return chunk;
}

static void packed_is_what_went_in(void **state)
{
    unsigned char *before = NULL;
    size_t bytes = 0;

    (void)state;
    for (enum mcap_compression as = MCAP_NONE; as <= MCAP_ZSTD; as++) {
        struct mcap_build *b = builder(as, 0);
        struct naive_record index[4], chunk;
        struct mcap_chunk *c;
        unsigned char *in;
        int indexes;
        size_t n;

        seed = 5;
        fill(b, 500, 40, 3);
        n = mcap_build_bytes(b);
        assert_int_equal(n, 500 * (31 + 40));
        assert_int_equal(mcap_build_messages(b), 500);
        c = finished(b);
        chunk = record_of(c, &indexes, index);
        in = naive_unpack(&chunk, &n);
        assert_int_equal(naive_indexes(index, indexes, in, n), 2);
        assert_true(before == NULL || (n == bytes && memcmp(in, before, n) == 0));
        assert_int_equal(c->facts.compression, as);
        assert_int_equal(c->facts.messages, 500);
        assert_int_equal(c->facts.start_ns, 501);
        assert_int_equal(c->facts.end_ns, 1000);
        assert_true(as == MCAP_NONE ? c->facts.compressed == n
                                    : c->facts.compressed < n * 3 / 4);
        free(before);
        before = in;
        bytes = n;
        mcap_chunk_free(c);
        mcap_build_free(b);
    }
    free(before);
}

static enum mcap_compression came_out_as(enum mcap_compression as, size_t least, int n,
                                         size_t size, unsigned letters)
{
    struct mcap_build *b = builder(as, least);
    struct mcap_chunk *c;
    enum mcap_compression is;

    fill(b, n, size, letters);
    c = finished(b);
    is = c->facts.compression;
    mcap_chunk_free(c);
    mcap_build_free(b);
    return is;
}

static void what_is_not_worth_it_stays(void **state)
{
    (void)state;
    for (enum mcap_compression as = MCAP_LZ4; as <= MCAP_ZSTD; as++) {
        assert_int_equal(came_out_as(as, 0, 1, 1023 - 31, 1), MCAP_NONE); // 1023 bytes
        assert_int_equal(came_out_as(as, 0, 1, 1024 - 31, 1), as);
        assert_int_equal(came_out_as(as, 1, 1, 600, 1), as);
        assert_int_equal(came_out_as(as, 0, 50, 4000, 256),
                         MCAP_NONE); // does not get smaller
    }
    assert_int_equal(came_out_as(MCAP_NONE, 1, 50, 400, 1), MCAP_NONE);
}

// 2 %: a chunk of n bytes of noise behind ever more zeros changes over where it should.
static void two_percent(void **state)
{
    static unsigned char data[50000];
    int none = 0, zstd = 0;

    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)any();
    for (size_t zeros = 0; zeros < 2500; zeros += 25) {
        const struct mcap_message m = {.data = data, .size = sizeof data};
        struct mcap_build *b = builder(MCAP_ZSTD, 0);
        struct mcap_chunk *c;
        size_t packed;

        memset(data, 0, zeros);
        assert_int_equal(mcap_build_message(b, &m), 0);
        c = finished(b);
        packed = ZSTD_compressBound(c->facts.uncompressed);
        if (c->facts.compression == MCAP_ZSTD) {
            assert_true(c->facts.compressed <= c->facts.uncompressed * 98 / 100 + 1);
            zstd++;
        } else {
            unsigned char *out = malloc(packed);
            const struct naive_record r = {.content = c->bytes + 9};

            packed = ZSTD_compress(out, packed, r.content + 40, c->facts.uncompressed, 1);
            assert_true(packed > c->facts.uncompressed * 98 / 100);
            free(out);
            none++;
        }
        mcap_chunk_free(c);
        mcap_build_free(b);
    }
    assert_true(none > 10 && zstd > 10);
}

static void without_crc_and_index(void **state)
{
    const struct mcap_build_options opt = {.no_crc = true, .no_message_index = true};
    struct naive_record index[4], chunk;
    struct mcap_build *b;
    struct mcap_chunk *c;
    int indexes;

    (void)state;
    assert_int_equal(mcap_build_new(&b, &opt), 0);
    fill(b, 10, 10, 3);
    c = finished(b);
    chunk = record_of(c, &indexes, index);
    assert_int_equal(indexes, 0);
    assert_int_equal(naive_number(chunk.content + 24, 4), 0);
    assert_int_equal(c->facts.index_bytes, 0);
    assert_int_equal(c->facts.n_channels, 2); // counted all the same
    assert_int_equal(c->facts.channel[0].messages + c->facts.channel[1].messages, 10);
    mcap_chunk_free(c);
    mcap_build_free(b);
}

static void nothing_is_no_chunk(void **state)
{
    const struct mcap_schema s = {1, "a", "b", "", 0};
    struct naive_record index[4];
    struct mcap_build *b = builder(MCAP_ZSTD, 0);
    struct mcap_chunk *c = (struct mcap_chunk *)b;
    int indexes;

    (void)state;
    assert_int_equal(mcap_build_finish(b, &c), 0);
    assert_null(c);
    mcap_chunk_free(c);
    assert_int_equal(mcap_build_schema(b, &s), 0); // a schema alone is one
    c = finished(b);
    record_of(c, &indexes, index);
    assert_int_equal(indexes, 0);
    assert_true(c->facts.start_ns == 0 && c->facts.end_ns == 0 && c->facts.messages == 0);
    mcap_chunk_free(c);
    mcap_build_free(b);
    mcap_build_free(NULL);
}

// Every channel that there can be, and in the next chunk others in their place.
static void all_channels(void **state)
{
    static struct naive_record index[65536];
    struct mcap_build *b = builder(MCAP_NONE, 0);

    (void)state;
    for (int round = 0; round < 2; round++) {
        struct naive_record chunk;
        struct mcap_chunk *c;
        unsigned char *in;
        int indexes;
        size_t n;

        for (int id = 65535; id >= 0; id -= 1 + 1000 * round) {
            const struct mcap_message m = {.channel = (uint16_t)id,
                                           .log_ns = (uint64_t)id};

            assert_int_equal(mcap_build_message(b, &m), 0);
        }
        c = finished(b);
        chunk = record_of(c, &indexes, index);
        assert_int_equal(indexes, round == 0 ? 65536 : 66);
        in = naive_unpack(&chunk, &n);
        assert_int_equal(n, (size_t)indexes * 31);
        assert_int_equal(index[0].content[0] + 256 * index[0].content[1], 65535);
        free(in);
        mcap_chunk_free(c);
    }
    mcap_build_free(b);
}

// Two pieces a chunk, which are the chunk; whatever else there is was there before.
static void memory_is_kept(void **state)
{
    (void)state;
    if (!MEMORY_ENDS)
        skip();
    for (enum mcap_compression as = MCAP_NONE; as <= MCAP_ZSTD; as++) {
        struct mcap_build *b = builder(as, 0);

        for (int i = 0; i < 10; i++) {
            struct mcap_chunk *c;

            allocations_made = 0;
            fill(b, 2000, 400, 3);
            c = finished(b);
            if (i > 0)
                assert_in_range(allocations_made, 2,
                                as == MCAP_LZ4 ? 4 : 2); // LZ4F's own
            mcap_chunk_free(c);
        }
        mcap_build_free(b);
    }
}

// Asserts that c holds so many messages and agrees with itself.
static void assert_good(struct mcap_chunk *c, uint64_t messages)
{
    static struct naive_record index[64];
    struct naive_record chunk;
    unsigned char *in;
    int indexes;
    size_t n;

    chunk = record_of(c, &indexes, index);
    in = naive_unpack(&chunk, &n);
    assert_int_equal(naive_indexes(index, indexes, in, n), indexes);
    assert_int_equal(c->facts.messages, messages);
    free(in);
}

// Puts a schema, a channel, 400 messages of 40 channels; what fails is left out. Returns how many
// messages got in; *all: everything did.
static uint64_t put_what_fits(struct mcap_build *b, bool *all)
{
    const struct mcap_schema s = {1, "a", "b", "", 0};
    const struct mcap_channel ch = {0, 1, "c", "d", NULL, 0};
    uint64_t taken = 0;

    *all = mcap_build_schema(b, &s) == 0;
    assert_int_equal(mcap_build_bytes(b), *all ? 9 + 2 + 5 + 5 + 4 : 0);
    if (mcap_build_channel(b, &ch) != 0)
        *all = false;
    for (int i = 0; i < 400; i++) {
        struct mcap_message m = {.channel = (uint16_t)(i % 40), .data = "abc", .size = 3};
        size_t bytes = mcap_build_bytes(b);
        bool got = mcap_build_message(b, &m) == 0;

        taken += got;
        *all = *all && got;
        assert_int_equal(mcap_build_messages(b), taken);
        assert_int_equal(mcap_build_bytes(b), bytes + (got ? 34 : 0));
    }
    return taken;
}

// For good, and for a moment: then the chunk after it is as it should be.
static void memory_may_end_at_any_time(void **state)
{
    (void)state;
    if (!MEMORY_ENDS)
        skip();
    for (long left = 0, all_at = -2; all_at < 0; left++) {
        const struct mcap_build_options opt = {.compression = MCAP_ZSTD};
        struct mcap_chunk *c = NULL;
        struct mcap_build *b;
        uint64_t taken = 0;
        bool all = false;
        int rc;

        allocations_fail_once = left % 2;
        allocations_left = left / 2;
        rc = mcap_build_new(&b, &opt);
        if (rc == 0) {
            taken = put_what_fits(b, &all);
            rc = mcap_build_finish(b, &c);
        }
        allocations_left = -1;
        assert_true(rc == 0 || rc == -ENOMEM);
        if (c)
            assert_good(c, taken);
        all_at += c && all; // once each way
        mcap_chunk_free(c);
        if (b) {
            assert_int_equal(put_what_fits(b, &all), 400);
            c = finished(b);
            assert_good(c, 400);
            mcap_chunk_free(c);
        }
        mcap_build_free(b);
        assert_true(left < 1000);
    }
}

// A message that is too large for what is left goes, what was there before stays.
static void a_record_gets_in_or_does_not(void **state)
{
    static unsigned char data[2000];
    const struct mcap_schema large = {1, "a", "b", data, sizeof data};
    const struct mcap_pair pair = {"key", (const char *)data};
    const struct mcap_channel wide = {1, 0, "c", "d", &pair, 1};
    struct mcap_build *b = builder(MCAP_NONE, 0);
    struct mcap_chunk *c;

    (void)state;
    if (!MEMORY_ENDS) {
        mcap_build_free(b);
        skip();
    }
    memset(data, 'x', sizeof data - 1);
    fill(b, 5, 10, 3);
    allocations_fail_once = false;
    allocations_left = 0;
    assert_int_equal(mcap_build_schema(b, &large), -ENOMEM);
    assert_int_equal(mcap_build_channel(b, &wide), -ENOMEM);
    assert_int_equal(mcap_build_bytes(b), 5 * 41);
    allocations_left = -1;
    assert_int_equal(mcap_build_channel(b, &wide), 0);
    fill(b, 5, 10, 3);
    c = finished(b);
    assert_good(c, 10);
    mcap_chunk_free(c);
    mcap_build_free(b);
}

static void names_of_compressions(void **state)
{
    (void)state;
    assert_string_equal(mcap_compression_name(MCAP_NONE), "");
    assert_string_equal(mcap_compression_name(MCAP_LZ4), "lz4");
    assert_string_equal(mcap_compression_name(MCAP_ZSTD), "zstd");
    assert_null(mcap_compression_name((enum mcap_compression)3));
    for (int i = MCAP_NONE; i <= MCAP_ZSTD; i++) {
        const char *name = mcap_compression_name((enum mcap_compression)i);

        assert_int_equal(mcap_compression_of(name, strlen(name)), i);
    }
    assert_int_equal(mcap_compression_of("zstd", 3), -1);
    assert_int_equal(mcap_compression_of("zstd1", 5), -1);
    assert_int_equal(mcap_compression_of("bz2", 3), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_is_what_went_in),
        cmocka_unit_test(what_is_not_worth_it_stays),
        cmocka_unit_test(two_percent),
        cmocka_unit_test(without_crc_and_index),
        cmocka_unit_test(nothing_is_no_chunk),
        cmocka_unit_test(all_channels),
        cmocka_unit_test(memory_is_kept),
        cmocka_unit_test(memory_may_end_at_any_time),
        cmocka_unit_test(a_record_gets_in_or_does_not),
        cmocka_unit_test(names_of_compressions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
