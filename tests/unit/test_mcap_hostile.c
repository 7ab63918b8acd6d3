// What a hostile or broken file can say of itself: each lie is refused with a sentence, and costs no
// more memory than the limits allow. Every file here is right but for the one thing.
#include <lz4frame.h>
#include <sys/resource.h>
#include <zstd.h>

#include "daemon/mcap_read_impl.h"
#include "tests/unit/mcap_files.h"

static struct mcap_bytes file;

static void record(struct mcap_bytes *b, uint8_t op, const void *content, size_t n)
{
    mcap_put_u8(b, op);
    mcap_put_u64(b, n);
    mcap_put(b, content, n);
}

static void begin(void)
{
    mcap_bytes_free(&file);
    mcap_put(&file, mcap_magic, MCAP_MAGIC_BYTES);
    mcap_put_header(&file, "", "", false);
}

static void end(void)
{
    static const unsigned char zero[24];

    record(&file, MCAP_DATA_END, zero, 4);
    record(&file, MCAP_FOOTER, zero, 20);
    mcap_put(&file, mcap_magic, MCAP_MAGIC_BYTES);
}

static void channel(struct mcap_bytes *b, const char *topic)
{
    struct mcap_channel c = {1, 0, topic, "x", NULL, 0};

    mcap_put_channel(b, &c, false);
}

static void message(struct mcap_bytes *b, uint16_t id, uint64_t log_ns)
{
    struct mcap_message m = {id, 0, log_ns, log_ns, "hello", 5};

    mcap_put_message(b, &m);
}

struct head {
    uint64_t start, end, uncompressed;
    uint32_t crc;
    const char *compression;
    uint64_t n;
};

static void chunk_as(const struct head *h, const void *records, size_t n)
{
    struct mcap_bytes c = {0};

    mcap_put_u64(&c, h->start);
    mcap_put_u64(&c, h->end);
    mcap_put_u64(&c, h->uncompressed);
    mcap_put_u32(&c, h->crc);
    mcap_put_string(&c, h->compression);
    mcap_put_u64(&c, h->n);
    mcap_put(&c, records, n);
    record(&file, MCAP_CHUNK, c.data, c.n);
    mcap_bytes_free(&c);
}

static void chunk(const struct mcap_bytes *records)
{
    struct head h = {0, 9, records->n, 0, "", records->n};

    chunk_as(&h, records->data, records->n);
}

// ---- what becomes of it ------------------------------------------------------------------------

static int count(void *arg, const struct mcap_record *r)
{
    *(int *)arg += r->op == MCAP_MESSAGE;
    return 0;
}

// The walk stops at it; opened, there is the same reason, and what lies before it. Returns the
// number of messages.
static int refused(int want, const char *says, const struct mcap_limits *l)
{
    const char *path = files_write("hostile.mcap", file.data, file.n), *why = "";
    struct mcap_error err = {""};
    struct mcap_reader *r;
    int n = 0, rc = mcap_walk(path, l, count, &n, &err);

    if (rc != want || !strstr(err.text, says))
        fail_msg("%d, not %d: '%s', not '%s'", rc, want, err.text, says);
    rc = mcap_open(&r, path, l, &err);
    assert_int_equal(rc, 0);
    if (mcap_whole(r, &why) || !strstr(why, says))
        fail_msg("'%s', not '%s'", why, says);
    mcap_close(r);
    return n;
}

static void good(int messages)
{
    const char *path = files_write("good.mcap", file.data, file.n), *why;
    struct mcap_error err = {""};
    struct mcap_reader *r;
    int n = 0;

    if (mcap_walk(path, NULL, count, &n, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(n, messages);
    assert_int_equal(mcap_open(&r, path, NULL, &err), 0);
    assert_true(mcap_whole(r, &why));
    assert_int_equal(mcap_message_count(r), messages);
    mcap_close(r);
}

static long peak_kib(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

// ---- lengths -----------------------------------------------------------------------------------

static void lengths_of_records(void **state)
{
    static const uint64_t length[] = {6,         1000,       UINT32_MAX,
                                      INT64_MAX, UINT64_MAX, UINT64_MAX - 8};

    (void)state;
    begin();
    channel(&file, "t");
    message(&file, 1, 1);
    size_t at = file.n;
    end();
    good(1);
    for (size_t i = 0; i < sizeof length / sizeof *length; i++)
        for (unsigned op = 1; op < 0x90; op += 7) {
            begin();
            channel(&file, "t");
            message(&file, 1, 1);
            mcap_put_u8(&file, (uint8_t)op);
            mcap_put_u64(&file, length[i]);
            mcap_put(&file, "abcde", 5);
            assert_int_equal(refused(-EBADMSG, "only 5 are left", NULL), 1);
        }
    assert_true(at > 0);
    begin();
    mcap_put(&file, "\0\0\0\0\0\0\0\0\0\0", 10);
    refused(-EBADMSG, "there is no record", NULL);
}

static void larger_than_the_limits(void **state)
{
    const struct mcap_limits l = {.record_bytes = 1000, .chunk_bytes = 1000};
    static unsigned char big[200000];
    struct mcap_bytes in = {0};
    struct head h = {0, 0, sizeof big, 0, "", sizeof big};

    (void)state;
    begin();
    channel(&file, "t");
    record(&file, MCAP_METADATA, big, sizeof big);
    end();
    refused(-EFBIG, "1000 are allowed", &l);
    begin();
    chunk_as(&h, big, sizeof big);
    refused(-EFBIG, "are allowed", &l);
    h = (struct head){0, 0, 1001, 0, "", 5};
    begin();
    chunk_as(&h, big, 5);
    refused(-EFBIG, "1000 are allowed", &l);
    h.uncompressed = INT64_MAX;
    begin();
    chunk_as(&h, big, 5);
    refused(-EFBIG, "are allowed", NULL);
    mcap_bytes_free(&in);
}

// What must be known of a file has a limit of its own.
static void too_many_channels(void **state)
{
    const struct mcap_limits l = {.index_bytes = 1 << 20};
    struct mcap_error err = {""};
    struct mcap_reader *r;

    (void)state;
    begin();
    for (uint16_t i = 0; i < 20000; i++) {
        struct mcap_channel c = {i, 0, "a topic of some length", "x", NULL, 0};
        mcap_put_channel(&file, &c, false);
    }
    end();
    const char *path = files_write("many.mcap", file.data, file.n);
    assert_int_equal(mcap_open(&r, path, &l, &err), -EFBIG);
    assert_non_null(strstr(err.text, "larger than the limit"));
    assert_int_equal(mcap_open(&r, path, NULL, NULL), 0);
    assert_int_equal(mcap_channels(r), 20000);
    assert_int_equal(mcap_channel_of(r, 777)->id, 777);
    mcap_close(r);
}

// Chunks that all begin at the same time have all to be open at once.
static void too_many_overlap(void **state)
{
    const struct mcap_limits l = {.chunk_bytes = 2000};
    struct mcap_bytes in = {0};
    struct mcap_cursor *c;
    struct mcap_reader *r;
    struct mcap_message m;
    struct mcap_error err = {""};
    int rc, n = 0, bad = 0;

    (void)state;
    begin();
    channel(&file, "t");
    for (int i = 0; i < 40; i++)
        message(&in, 1, (uint64_t)i);
    for (int i = 0; i < 10; i++)
        chunk(&in);
    end();
    const char *path = files_write("overlap.mcap", file.data, file.n);
    assert_int_equal(mcap_open(&r, path, &l, &err), 0);
    assert_int_equal(mcap_message_count(r), 400);
    assert_int_equal(mcap_cursor_new(&c, r, NULL, 0, MCAP_LOG_ORDER, 0, 0), 0);
    while ((rc = mcap_next(c, &m, &err)) != 0) {
        n += rc == 1;
        bad += rc == -EFBIG;
    }
    assert_int_equal(n + 40 * bad, 400);
    assert_true(bad > 0 && n >= 40);
    mcap_cursor_free(c);
    mcap_close(r);
    mcap_bytes_free(&in);
}

// ---- compressed lies -----------------------------------------------------------------------------

// 256 MiB of zeros, as a chunk that says it has 1 MiB: no more than that may be touched.
static void bombs(void **state)
{
    enum { BOMB = 256 << 20, SAYS = 1 << 20 };
    static unsigned char packed[2 << 20];
    unsigned char *zeros = calloc(1, BOMB);
    struct head h = {0, 0, SAYS, 0, "zstd", 0};
    ZSTD_CCtx *z = ZSTD_createCCtx();

    (void)state;
    assert_non_null(zeros);
    for (int size_in_frame = 0; size_in_frame < 2; size_in_frame++) {
        ZSTD_CCtx_setParameter(z, ZSTD_c_contentSizeFlag, size_in_frame);
        h.n = ZSTD_compress2(z, packed, sizeof packed, zeros, BOMB);
        assert_false(ZSTD_isError(h.n));
        begin();
        chunk_as(&h, packed, h.n);
        end();
        long before = peak_kib();
        refused(-EBADMSG, size_in_frame ? "does not hold" : "cannot be decompressed",
                NULL);
        assert_true(peak_kib() - before < 32 << 10);
    }
    ZSTD_freeCCtx(z);
    h.compression = "lz4";
    size_t room = LZ4F_compressFrameBound(BOMB / 8, NULL);
    unsigned char *frame = malloc(room);
    assert_non_null(frame);
    h.n = LZ4F_compressFrame(frame, room, zeros, BOMB / 8, NULL);
    assert_false(LZ4F_isError(h.n));
    begin();
    chunk_as(&h, frame, h.n);
    end();
    refused(-EBADMSG, "cannot be decompressed", NULL);
    free(frame);
    free(zeros);
}

static void compression(void **state)
{
    static const char *const name[] = {"lz4", "zstd"};
    unsigned char packed[400];
    struct mcap_bytes in = {0};
    struct head h = {0, 0, 0, 0, "", 0};

    (void)state;
    channel(&in, "t");
    message(&in, 1, 3);
    for (int i = 0; i < 2; i++) {
        size_t n = i ? ZSTD_compress(packed, sizeof packed, in.data, in.n, 1)
                     : LZ4F_compressFrame(packed, sizeof packed, in.data, in.n, NULL);
        for (int lie = 0; lie < 6; lie++) {
            h = (struct head){0, 9, in.n, 0, name[i], n};
            h.uncompressed -= lie == 1;
            h.uncompressed += lie == 2;
            h.n -= lie == 3 ? 4 : 0;
            h.compression = lie == 4 ? name[!i] : lie == 5 ? "" : h.compression;
            begin();
            chunk_as(&h, packed, h.n);
            end();
            if (lie == 0)
                good(1);
            else
                refused(-EBADMSG, "chunk", NULL);
        }
        begin(); // two frames: both count
        memcpy(packed + n, packed, n);
        h = (struct head){0, 9, 2 * in.n, 0, name[i], 2 * n};
        chunk_as(&h, packed, h.n);
        end();
        good(2);
    }
    begin();
    h = (struct head){0, 9, in.n, 0, "bzip2", in.n};
    chunk_as(&h, in.data, in.n);
    end();
    refused(-EBADMSG, "neither zstd nor lz4", NULL);
    mcap_bytes_free(&in);
}

static void heads_of_chunks(void **state)
{
    struct mcap_bytes in = {0};

    (void)state;
    channel(&in, "t");
    message(&in, 1, 3);
    for (int lie = 0; lie < 7; lie++) {
        struct head h = {lie == 1 ? 10 : 0, 9, in.n, 0, "", in.n};
        h.crc = mcap_crc(0, in.data, in.n) + (lie == 2);
        h.uncompressed += lie == 3;
        h.n = lie == 4 ? in.n + 1 : lie == 5 ? UINT64_MAX : lie == 6 ? in.n - 1 : in.n;
        begin();
        chunk_as(&h, in.data, in.n);
        end();
        if (lie == 0)
            good(1);
        else
            refused(-EBADMSG, "hunk", NULL);
    }
    mcap_bytes_free(&in);
}

// ---- where what may be ---------------------------------------------------------------------------

static void inside_a_chunk(void **state)
{
    struct mcap_bytes deep = {0}, in = {0};
    struct head h;

    (void)state;
    for (uint8_t op = 0; op <= 0x10; op++) {
        bool allowed = op == MCAP_MESSAGE || op > MCAP_DATA_END;
        if (op == MCAP_SCHEMA || op == MCAP_CHANNEL)
            continue;
        in.n = 0;
        channel(&in, "t");
        record(&in, op, "\1\0aaaabbbbbbbbccccccccddddddddddddddd", 36);
        begin();
        chunk(&in);
        end();
        if (allowed)
            good(op == MCAP_MESSAGE);
        else
            refused(-EBADMSG, "chunk, where none may be", NULL);
    }
    // A chunk in a chunk in …, each of which holds the next.
    for (int i = 0; i < 100; i++) {
        h = (struct head){0, 0, deep.n, 0, "", deep.n};
        begin();
        chunk_as(&h, deep.data, deep.n);
        deep.n = 0;
        mcap_put(&deep, file.data + MCAP_MAGIC_BYTES + MCAP_HEAD + 8,
                 file.n - (MCAP_MAGIC_BYTES + MCAP_HEAD + 8));
    }
    end();
    refused(-EBADMSG, "a Chunk lies in a chunk", NULL);
    in.n = 0; // a record longer than the chunk
    mcap_put_u8(&in, MCAP_MESSAGE);
    mcap_put_u64(&in, 1000);
    begin();
    chunk(&in);
    end();
    refused(-EBADMSG, "longer than the chunk", NULL);
    mcap_bytes_free(&in);
    mcap_bytes_free(&deep);
}

static void order_of_records(void **state)
{
    (void)state;
    mcap_bytes_free(&file);
    mcap_put(&file, mcap_magic, MCAP_MAGIC_BYTES);
    channel(&file, "t"); // no Header
    end();
    refused(-EBADMSG, "no Channel can be there", NULL);
    begin();
    mcap_put_header(&file, "", "", false);
    end();
    refused(-EBADMSG, "no Header can be there", NULL);
    begin();
    message(&file, 1, 1);
    end();
    refused(-EBADMSG, "channel 1, which is not declared", NULL);
    begin();
    end();
    size_t n = file.n;
    mcap_put(&file, "x", 1);
    refused(-EBADMSG, "after the Footer there are 9 bytes", NULL);
    file.n = n;
    file.data[n - 1] = 'x';
    refused(-EBADMSG, "does not end like an MCAP file", NULL);
    begin(); // without DataEnd
    end();
    memmove(file.data + 25, file.data + 38, file.n - 38);
    file.n -= 13;
    refused(-EBADMSG, "comes without a DataEnd", NULL);
}

static void declared_twice(void **state)
{
    struct mcap_bytes in = {0};
    struct mcap_error err = {""};
    struct mcap_reader *r;
    const char *why;

    (void)state;
    begin();
    channel(&file, "t");
    channel(&file, "t"); // repeated is fine
    message(&file, 1, 1);
    end();
    good(1);
    begin();
    channel(&file, "t");
    message(&file, 1, 1);
    channel(&in, "another");
    chunk(&in);
    end();
    const char *path = files_write("twice.mcap", file.data, file.n);
    assert_int_equal(mcap_open(&r, path, NULL, &err), 0);
    assert_false(mcap_whole(r, &why));
    assert_non_null(strstr(why, "declared twice, and differently"));
    assert_string_equal(mcap_channel_of(r, 1)->topic, "t");
    mcap_close(r);
    mcap_bytes_free(&in);
}

// ---- strings and arrays ---------------------------------------------------------------------------

// A content, and how many of its first bytes are a record of that kind; cut or with one of its
// lengths wrong it is none.
static void contents(void **state)
{
    static const struct {
        uint8_t op;
        size_t n, length_at;
        const char *bytes;
    } content[] = {
        {MCAP_SCHEMA, 17, 2, "\1\0\1\0\0\0n\1\0\0\0e\1\0\0\0d"},
        {MCAP_SCHEMA, 17, 7, "\1\0\1\0\0\0n\1\0\0\0e\1\0\0\0d"},
        {MCAP_SCHEMA, 17, 12, "\1\0\1\0\0\0n\1\0\0\0e\1\0\0\0d"},
        {MCAP_CHANNEL, 18, 4, "\1\0\0\0\1\0\0\0t\1\0\0\0e\0\0\0\0"},
        {MCAP_CHANNEL, 18, 9, "\1\0\0\0\1\0\0\0t\1\0\0\0e\0\0\0\0"},
        {MCAP_CHANNEL, 28, 14, "\1\0\0\0\1\0\0\0t\1\0\0\0e\n\0\0\0\1\0\0\0k\1\0\0\0v"},
        {MCAP_CHANNEL, 28, 18, "\1\0\0\0\1\0\0\0t\1\0\0\0e\n\0\0\0\1\0\0\0k\1\0\0\0v"},
        {MCAP_CHANNEL, 28, 23, "\1\0\0\0\1\0\0\0t\1\0\0\0e\n\0\0\0\1\0\0\0k\1\0\0\0v"},
        {MCAP_METADATA, 19, 0, "\1\0\0\0n\n\0\0\0\1\0\0\0k\1\0\0\0v"},
        {MCAP_METADATA, 19, 5, "\1\0\0\0n\n\0\0\0\1\0\0\0k\1\0\0\0v"},
        {MCAP_ATTACHMENT, 39, 16,
         "llllllllcccccccc\1\0\0\0n\1\0\0\0t\1\0\0\0\0\0\0\0d\0\0\0\0"},
        {MCAP_ATTACHMENT, 39, 26,
         "llllllllcccccccc\1\0\0\0n\1\0\0\0t\1\0\0\0\0\0\0\0d\0\0\0\0"},
        {MCAP_STATISTICS, 56, 42,
         "mmmmmmmmsscccc\0\0\0\0\0\0\0\0\0\0\0\0ssssssseeeeeeeee\n\0\0\0\1\0\1\0\0\0\0\0\0\0"},
        {MCAP_MESSAGE, 22, 99, "\1\0ssssllllllllpppppppp"},
        {MCAP_DATA_END, 4, 99, "\0\0\0\0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof content / sizeof *content; i++) {
        unsigned char c[64];
        struct mcap_record r = {content[i].op, false, 8, content[i].n, c};
        memcpy(c, content[i].bytes, content[i].n);
        if (mcap_record_check(&r, NULL) != 0)
            fail_msg("content %zu", i);
        for (r.length = 0; r.length < content[i].n; r.length++)
            assert_int_equal(mcap_record_check(&r, NULL), -EBADMSG);
        if (content[i].length_at == 99)
            continue;
        for (unsigned v = 0x40; v <= 0xff; v += 0xbf)
            for (int byte = 0; byte < 4; byte++) {
                memcpy(c, content[i].bytes, content[i].n);
                c[content[i].length_at + (size_t)byte] = (unsigned char)v;
                assert_int_equal(mcap_record_check(&r, NULL), -EBADMSG);
            }
    }
    begin(); // a name with a zero byte in it ends nowhere
    record(&file, MCAP_CHANNEL, "\1\0\0\0\3\0\0\0t\0u\1\0\0\0e\0\0\0\0", 20);
    end();
    refused(-EBADMSG, "the Channel at byte 25 is damaged", NULL);
    begin(); // schema 0 is none
    record(&file, MCAP_SCHEMA, "\0\0\1\0\0\0n\1\0\0\0e\1\0\0\0d", 17);
    end();
    refused(-EBADMSG, "the Schema at byte 25 is damaged", NULL);
    begin(); // an attachment with the CRC of something else
    record(&file, MCAP_ATTACHMENT,
           "llllllllcccccccc\1\0\0\0n\1\0\0\0t\1\0\0\0\0\0\0\0d\1\2\3\4", 39);
    end();
    refused(-EBADMSG, "the Attachment at byte 25 is damaged", NULL);
}

static void message_indexes(void **state)
{
    struct mcap_bytes in = {0}, index = {0};

    (void)state;
    channel(&in, "t");
    size_t at = in.n;
    message(&in, 1, 3);
    for (int lie = 0; lie < 10; lie++) {
        static const uint64_t by[] = {0, 1, 1000, UINT64_MAX - 3, UINT64_MAX / 2};
        index.n = 0;
        mcap_put_u16(&index, lie == 5 ? 2 : 1);
        mcap_put_u32(&index, lie == 6 ? 17 : 16);
        mcap_put_u64(&index, lie == 7 ? 4 : 3);
        mcap_put_u64(&index, lie < 5 ? at + by[lie] : lie == 8 ? 0 : at);
        if (lie == 6)
            mcap_put_u8(&index, 0);
        begin();
        if (lie != 9)
            chunk(&in);
        record(&file, MCAP_MESSAGE_INDEX, index.data, index.n);
        end();
        if (lie == 0)
            good(1);
        else
            refused(-EBADMSG, "MessageIndex", NULL);
    }
    mcap_bytes_free(&in);
    mcap_bytes_free(&index);
}

// ---- a summary that lies ----------------------------------------------------------------------

// With its own CRC taken away it can say anything: then the records themselves are asked.
static void summaries(void **state)
{
    static struct files_log f;
    struct mcap_reader *r;
    int trusted = 0, n;

    (void)state;
    files_log(&f, 11, 3, 10, 100, MCAP_ZSTD, 0);
    size_t footer = f.bytes.n - MCAP_MAGIC_BYTES - MCAP_FOOTER_BYTES - MCAP_HEAD;
    memset(f.bytes.data + footer + MCAP_HEAD + 16, 0, 4);
    struct mcap_in in = {f.bytes.data + footer + MCAP_HEAD, 16, false};
    size_t from = (size_t)mcap_take(&in, 8);
    assert_true(from > f.chunk[2] && from < footer);
    for (size_t i = from; i < footer + MCAP_HEAD + 16; i++)
        for (unsigned bit = 0; bit < 8; bit += 3) {
            f.bytes.data[i] ^= (unsigned char)(1u << bit);
            const char *path = files_write("summary.mcap", f.bytes.data, f.bytes.n);
            struct mcap_cursor *c;
            struct mcap_message m;
            assert_int_equal(mcap_open(&r, path, NULL, NULL), 0);
            assert_int_equal(mcap_cursor_new(&c, r, NULL, 0, MCAP_FILE_ORDER, 0, 0), 0);
            for (n = 0; mcap_next(c, &m, NULL) == 1; n++)
                assert_int_equal(m.sequence, n);
            assert_int_equal(n, 30);
            trusted += r->by_summary;
            mcap_cursor_free(c);
            mcap_close(r);
            f.bytes.data[i] ^= (unsigned char)(1u << bit);
        }
    assert_true(trusted > 100); // names, sizes: nothing that it could be caught at
    mcap_bytes_free(&f.bytes);
}

static int clean(void **state)
{
    mcap_bytes_free(&file);
    return files_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bombs),
        cmocka_unit_test(lengths_of_records),
        cmocka_unit_test(larger_than_the_limits),
        cmocka_unit_test(too_many_channels),
        cmocka_unit_test(too_many_overlap),
        cmocka_unit_test(compression),
        cmocka_unit_test(heads_of_chunks),
        cmocka_unit_test(inside_a_chunk),
        cmocka_unit_test(order_of_records),
        cmocka_unit_test(declared_twice),
        cmocka_unit_test(contents),
        cmocka_unit_test(message_indexes),
        cmocka_unit_test(summaries),
    };
    return cmocka_run_group_tests_name("mcap_hostile", tests, NULL, clean);
}
