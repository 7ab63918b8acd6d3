// mcap_read: all files of the public suite, streamed and by their index; orders and filters against
// a naive twin; every cut and every flipped byte of a file. What is hostile is in
// test_mcap_hostile.c.
#include "daemon/mcap_read_impl.h"
#include "tests/unit/mcap_conformance.h"
#include "tests/unit/mcap_files.h"

// ---- the public suite --------------------------------------------------------------------------

struct seen {
    int messages, schemas, channels, attachments, metadata, headers, footers, chunks,
        indexes;
    uint32_t sequence[16];
    uint64_t log_ns[16], publish_ns[16];
    bool three; // every message was 1 2 3
};

static int see(void *arg, const struct mcap_record *r)
{
    struct seen *s = arg;
    struct mcap_message m;

    switch (r->op) {
    case MCAP_MESSAGE:
        m = mcap_message_parse(r);
        assert_true(s->messages < 16);
        s->sequence[s->messages] = m.sequence;
        s->log_ns[s->messages] = m.log_ns;
        s->publish_ns[s->messages++] = m.publish_ns;
        s->three = m.size == 3 && memcmp(m.data, "\1\2\3", 3) == 0;
        break;
    case MCAP_HEADER:
        s->headers++;
        break;
    case MCAP_FOOTER:
        s->footers++;
        assert_int_equal(r->length, 20);
        break;
    case MCAP_CHUNK:
        s->chunks++;
        break;
    case MCAP_MESSAGE_INDEX:
        s->indexes++;
        break;
    case MCAP_SCHEMA:
        s->schemas++;
        assert_memory_equal(r->content, "\1\0\7\0\0\0Example\1\0\0\0c\3\0\0\0\4\5\6", 23);
        break;
    case MCAP_CHANNEL:
        s->channels++;
        break;
    case MCAP_ATTACHMENT:
        s->attachments++;
        break;
    case MCAP_METADATA:
        s->metadata++;
        break;
    }
    return 0;
}

static int messages_of(const char *variant)
{
    return strncmp(variant, "Ten", 3) == 0                                            ? 10
           : strncmp(variant, "OneMessage", 10) == 0 || strstr(variant, "Schemaless") ? 1
                                                                                      : 0;
}

static void expect_messages(const char *variant, const struct seen *s)
{
    static const uint64_t times[] = {0, 2, 1, 3, 3, 5, 4, 7, 8, 9};

    assert_int_equal(s->messages, messages_of(variant));
    if (s->messages > 0)
        assert_true(s->three);
    for (int i = 0; i < s->messages; i++) {
        assert_int_equal(s->sequence[i], s->messages == 1 ? 10 : i);
        assert_int_equal(s->log_ns[i], s->messages == 1 ? 2 : times[i]);
        assert_int_equal(s->publish_ns[i], s->messages == 1 ? 1 : times[i]);
    }
}

static const char *write_variant(const struct conformance *v)
{
    struct mcap_bytes b = {0};
    char hex[65];

    conformance_make(v, &b);
    conformance_sha256(b.data, b.n, hex);
    assert_string_equal(hex, v->sha256);
    const char *path = files_write("variant.mcap", b.data, b.n);
    mcap_bytes_free(&b);
    return path;
}

static void suite_streamed(void **state)
{
    (void)state;
    assert_int_equal(conformance_read(), CONFORMANCE_FILES);
    for (int i = 0; i < CONFORMANCE_FILES; i++) {
        const char *name = conformance[i].name, *path = write_variant(&conformance[i]);
        bool chunked = conformance_has(name, "ch"), any = messages_of(name) > 0;
        bool schema = any && !strstr(name, "Schemaless");
        struct seen s = {0};
        struct mcap_error err = {""};
        int rc = mcap_walk(path, NULL, see, &s, &err);

        if (rc != 0)
            fail_msg("%s: %s", name, err.text);
        expect_messages(name, &s);
        assert_int_equal(s.headers, 1);
        assert_int_equal(s.footers, 1);
        assert_int_equal(s.chunks, chunked && any);
        assert_int_equal(s.indexes, any && chunked && conformance_has(name, "mx"));
        assert_int_equal(s.schemas, schema + (schema && conformance_has(name, "rsh")));
        assert_int_equal(s.channels, any + (any && conformance_has(name, "rch")));
        assert_int_equal(s.attachments, strncmp(name, "OneAtt", 6) == 0);
        assert_int_equal(s.metadata, strncmp(name, "OneMeta", 7) == 0);
    }
}

static void collect(struct mcap_reader *r, enum mcap_order order, struct seen *s)
{
    struct mcap_cursor *c;
    struct mcap_message m;
    struct mcap_error err;
    uint64_t last = 0;
    int rc;

    *s = (struct seen){0};
    assert_int_equal(mcap_cursor_new(&c, r, NULL, 0, order, 0, 0), 0);
    while ((rc = mcap_next(c, &m, &err)) == 1) {
        assert_int_equal(m.channel, 1);
        s->sequence[s->messages] = m.sequence;
        s->log_ns[s->messages] = m.log_ns;
        s->publish_ns[s->messages++] = m.publish_ns;
        s->three = m.size == 3 && memcmp(m.data, "\1\2\3", 3) == 0;
        if (order == MCAP_LOG_ORDER)
            assert_true(m.log_ns >= last);
        last = m.log_ns;
    }
    assert_int_equal(rc, 0);
    mcap_cursor_free(c);
}

static void expect_aside(struct mcap_reader *r, const char *variant)
{
    bool one_metadata = strncmp(variant, "OneMeta", 7) == 0;
    bool one_attachment = strncmp(variant, "OneAtt", 6) == 0;
    struct mcap_attachment a;
    const struct mcap_pair *pair;
    const char *name;
    void *own;
    int n;

    assert_int_equal(mcap_metadata(r), one_metadata);
    assert_int_equal(mcap_attachments(r), one_attachment);
    for (int twice = 0; one_metadata && twice < 2; twice++) {
        assert_int_equal(mcap_metadata_at(r, 0, &name, &pair, &n, NULL), 0);
        assert_string_equal(name, "myMetadata");
        assert_int_equal(n, 1);
        assert_string_equal(pair->key, "foo");
        assert_string_equal(pair->value, "bar");
    }
    if (!one_attachment)
        return;
    assert_int_equal(mcap_attachment_at(r, 0, &a, &own, NULL), 0);
    assert_string_equal(a.name, "myFile");
    assert_string_equal(a.media_type, "application/octet-stream");
    assert_true(a.log_ns == 2 && a.create_ns == 1 && a.size == 3);
    assert_memory_equal(a.data, "\1\2\3", 3);
    free(own);
}

static void expect_declared(struct mcap_reader *r, const char *variant)
{
    const struct mcap_channel *c = mcap_channel_named(r, "example");
    bool any = messages_of(variant) > 0, schemaless = strstr(variant, "Schemaless");

    assert_int_equal(mcap_channels(r), any);
    assert_int_equal(mcap_schemas(r), any && !schemaless);
    assert_ptr_equal(mcap_channel_at(r, 0), c);
    assert_ptr_equal(mcap_channel_of(r, 1), c);
    if (!any)
        return;
    assert_string_equal(c->encoding, schemaless ? "text" : "a");
    assert_int_equal(c->schema, !schemaless);
    assert_int_equal(c->n_metadata, !schemaless);
    if (schemaless)
        return;
    assert_string_equal(c->metadata[0].key, "foo");
    assert_string_equal(mcap_schema_of(r, 1)->name, "Example");
    assert_string_equal(mcap_schema_of(r, 1)->encoding, "c");
    assert_memory_equal(mcap_schema_at(r, 0)->data, "\4\5\6", 3);
}

// By the summary when it says everything; by a walk otherwise. The answers are the same.
static void suite_indexed(void **state)
{
    int by_summary = 0;

    (void)state;
    assert_int_equal(conformance_read(), CONFORMANCE_FILES);
    for (int i = 0; i < CONFORMANCE_FILES; i++) {
        const char *name = conformance[i].name, *path = write_variant(&conformance[i]);
        struct mcap_error err = {""};
        struct mcap_reader *r;
        const char *why = NULL;
        struct seen s;

        if (mcap_open(&r, path, NULL, &err) != 0)
            fail_msg("%s: %s", name, err.text);
        if (!mcap_whole(r, &why))
            fail_msg("%s: %s", name, why);
        by_summary += r->by_summary;
        assert_string_equal(mcap_library(r), "");
        collect(r, MCAP_FILE_ORDER, &s);
        expect_messages(name, &s);
        collect(r, MCAP_LOG_ORDER, &s);
        assert_int_equal(s.messages, messages_of(name));
        assert_int_equal(mcap_message_count(r), messages_of(name));
        assert_int_equal(mcap_channel_count_of(r, 1), messages_of(name));
        assert_int_equal(mcap_start_ns(r), messages_of(name) == 1 ? 2 : 0);
        assert_int_equal(mcap_end_ns(r), messages_of(name) == 10 ? 9
                                         : s.messages            ? 2
                                                                 : 0);
        expect_aside(r, name);
        expect_declared(r, name);
        mcap_close(r);
    }
    assert_true(by_summary >= 30 && by_summary < CONFORMANCE_FILES / 2);
}

// ---- orders and filters -----------------------------------------------------------------------

static int by_log(const void *a, const void *b)
{
    const struct files_message *x = a, *y = b;

    if (x->log_ns != y->log_ns)
        return x->log_ns < y->log_ns ? -1 : 1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

struct filter {
    uint16_t channel[2];
    int n;
    uint64_t from, to;
};

static void expect_cursor(struct mcap_reader *r, const struct files_message *want, int n,
                          enum mcap_order order, const struct filter *f)
{
    struct mcap_cursor *c;
    struct mcap_message m;
    int i = 0;

    assert_int_equal(mcap_cursor_new(&c, r, f->channel, f->n, order, f->from, f->to), 0);
    for (;; i++) {
        while (i < n && ((f->n > 0 && want[i].channel != f->channel[0] &&
                          (f->n == 1 || want[i].channel != f->channel[1])) ||
                         want[i].log_ns < f->from || (f->to && want[i].log_ns >= f->to)))
            i++;
        int rc = mcap_next(c, &m, NULL);
        assert_int_equal(rc, i < n);
        if (rc == 0)
            break;
        assert_true(files_same(&want[i], &m));
    }
    assert_int_equal(mcap_next(c, &m, NULL), 0);
    mcap_cursor_free(c);
}

static void orders_and_filters(void **state)
{
    static const struct filter filter[] = {
        {{0}, 0, 0, 0},    {{2}, 1, 0, 0},     {{1, 4}, 2, 0, 0},
        {{0}, 0, 1500, 0}, {{0}, 0, 0, 1500},  {{3}, 1, 1200, 1700},
        {{9}, 1, 0, 0},    {{0}, 0, 99999, 0}, {{2, 3}, 2, 1333, 1334}};
    static struct files_log f;
    static struct files_message sorted[2000];

    (void)state;
    for (uint32_t seed = 1; seed <= 12; seed++) {
        files_log(&f, seed, 10, 20, seed % 4 * 300, (enum mcap_compression)(seed % 3), 0);
        const char *path = files_write("order.mcap", f.bytes.data, f.bytes.n);
        memcpy(sorted, f.message, sizeof sorted);
        qsort(sorted, (size_t)f.n, sizeof *sorted, by_log);
        // With its summary, and without: cut before DataEnd.
        for (int cut = 0; cut < 2; cut++) {
            struct mcap_reader *r;
            if (cut)
                assert_int_equal(truncate(path, (off_t)f.chunk[9]), 0);
            assert_int_equal(mcap_open(&r, path, NULL, NULL), 0);
            assert_int_equal(r->by_summary, !cut);
            assert_int_equal(mcap_whole(r, NULL), !cut);
            assert_int_equal(mcap_message_count(r), f.n);
            assert_int_equal(mcap_start_ns(r), sorted[0].log_ns);
            assert_int_equal(mcap_end_ns(r), sorted[f.n - 1].log_ns);
            for (size_t i = 0; i < sizeof filter / sizeof *filter; i++) {
                expect_cursor(r, f.message, f.n, MCAP_FILE_ORDER, &filter[i]);
                expect_cursor(r, sorted, f.n, MCAP_LOG_ORDER, &filter[i]);
            }
            mcap_close(r);
        }
        mcap_bytes_free(&f.bytes);
    }
}

// A chunk without the channel is not even read: were it, its damage would show.
static void unwanted_chunks_are_not_read(void **state)
{
    static struct files_log f;
    struct mcap_message m;
    struct mcap_cursor *c;
    struct mcap_reader *r;
    int rc, errors = 0, n = 0;

    (void)state;
    files_log(&f, 3, 5, 20, 0, MCAP_NONE, 0);
    f.bytes.data[f.chunk[0] + 200] ^= 1;
    const char *path = files_write("unwanted.mcap", f.bytes.data, f.bytes.n);
    assert_int_equal(mcap_open(&r, path, NULL, NULL), 0);
    assert_int_equal(mcap_cursor_new(&c, r, NULL, 0, MCAP_FILE_ORDER, 0, 1150), 0);
    while ((rc = mcap_next(c, &m, NULL)) != 0)
        assert_int_equal(rc, 1);
    mcap_cursor_free(c);
    assert_int_equal(mcap_cursor_new(&c, r, NULL, 0, MCAP_FILE_ORDER, 0, 0), 0);
    while ((rc = mcap_next(c, &m, NULL)) != 0) {
        errors += rc < 0;
        n += rc == 1;
    }
    assert_int_equal(errors, 1); // said once, passed over
    assert_int_equal(n, 80);
    mcap_cursor_free(c);
    mcap_close(r);
    mcap_bytes_free(&f.bytes);
}

// ---- every cut, every flipped byte ------------------------------------------------------------

static int ignore(void *arg, const struct mcap_record *r)
{
    (void)arg;
    (void)r;
    return 0;
}

// What is delivered is what was recorded, in its order, and no error is passed over in silence.
static int deliver(struct mcap_reader *r, const struct files_log *f)
{
    struct mcap_cursor *c;
    struct mcap_message m;
    int rc, n = 0, i = 0;

    assert_int_equal(mcap_cursor_new(&c, r, NULL, 0, MCAP_FILE_ORDER, 0, 0), 0);
    while ((rc = mcap_next(c, &m, NULL)) != 0) {
        if (rc < 0)
            continue;
        while (i < f->n && !files_same(&f->message[i], &m))
            i++;
        assert_true(i < f->n);
        n++;
    }
    mcap_cursor_free(c);
    return n;
}

static void every_cut(void **state)
{
    static struct files_log f;
    struct mcap_error err;

    (void)state;
    files_log(&f, 5, 3, 8, 50, MCAP_ZSTD, 0);
    for (size_t n = 0; n < f.bytes.n; n++) {
        const char *path = files_write("cut.mcap", f.bytes.data, n);
        struct mcap_reader *r = NULL;
        int whole = 0, rc;
        const char *why;

        err.text[0] = 0;
        assert_true(mcap_walk(path, NULL, ignore, NULL, &err) < 0);
        assert_true(strlen(err.text) > 20);
        rc = mcap_open(&r, path, NULL, &err);
        if (n < MCAP_MAGIC_BYTES) {
            assert_int_equal(rc, -EINVAL);
            continue;
        }
        assert_int_equal(rc, 0);
        assert_false(mcap_whole(r, &why));
        assert_true(strlen(why) > 20);
        // MessageIndexes at its end may be missing: the messages are there all the same.
        for (int i = 0; i < f.chunks; i++)
            whole += n >= f.chunk[i];
        rc = deliver(r, &f);
        assert_true(rc == 8 * whole || rc == 8 * (whole + 1));
        assert_int_equal(mcap_message_count(r), rc);
        mcap_close(r);
    }
    mcap_bytes_free(&f.bytes);
}

static void every_flip(void **state)
{
    static struct files_log f;

    (void)state;
    files_log(&f, 6, 3, 8, 50, MCAP_LZ4, 0);
    for (size_t i = 0; i < f.bytes.n; i++) {
        struct mcap_reader *r = NULL;
        f.bytes.data[i] ^= (unsigned char)(1u << i % 8);
        const char *path = files_write("flip.mcap", f.bytes.data, f.bytes.n);
        // There is a CRC over every byte.
        assert_true(mcap_walk(path, NULL, ignore, NULL, NULL) < 0);
        if (mcap_open(&r, path, NULL, NULL) == 0) {
            deliver(r, &f);
            mcap_close(r);
        }
        f.bytes.data[i] ^= (unsigned char)(1u << i % 8);
    }
    mcap_bytes_free(&f.bytes);
}

// ---- a file that changes while it is read -------------------------------------------------------

static void grows_and_shrinks(void **state)
{
    static struct files_log f;
    struct mcap_reader *r;
    struct mcap_cursor *c;
    struct mcap_message m;
    struct mcap_error err = {""};
    int rc, n = 0, bad = 0;

    (void)state;
    files_log(&f, 7, 4, 20, 0, MCAP_NONE, 0);
    const char *path = files_write("grow.mcap", f.bytes.data, f.chunk[1]);
    assert_int_equal(mcap_open(&r, path, NULL, NULL), 0);
    files_write("grow.mcap", f.bytes.data, f.chunk[2]);
    assert_int_equal(deliver(r, &f), 40);
    assert_int_equal(truncate(path, (off_t)f.chunk[0]), 0);
    assert_int_equal(mcap_cursor_new(&c, r, NULL, 0, MCAP_LOG_ORDER, 0, 0), 0);
    while ((rc = mcap_next(c, &m, &err)) != 0) {
        n += rc == 1;
        bad += rc < 0;
    }
    assert_int_equal(n, 0); // one window holds both chunks
    assert_int_equal(bad, 2);
    assert_non_null(strstr(err.text, "cut while it was read"));
    mcap_cursor_free(c);
    mcap_close(r);
    mcap_bytes_free(&f.bytes);
}

static void what_is_no_file(void **state)
{
    struct mcap_error err;
    struct mcap_reader *r;

    (void)state;
    assert_int_equal(mcap_open(&r, "/nowhere/x.mcap", NULL, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nowhere/x.mcap"));
    assert_int_equal(mcap_open(&r, "/tmp", NULL, &err), -EINVAL);
    assert_int_equal(mcap_open(&r, "/dev/zero", NULL, &err), -EINVAL);
    assert_int_equal(mcap_open(&r, files_write("empty", "", 0), NULL, &err), -EINVAL);
    assert_non_null(strstr(err.text, "is empty"));
    assert_int_equal(mcap_open(&r, files_write("text", "hello, world", 12), NULL, &err),
                     -EINVAL);
    assert_null(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suite_streamed),
        cmocka_unit_test(suite_indexed),
        cmocka_unit_test(orders_and_filters),
        cmocka_unit_test(unwanted_chunks_are_not_read),
        cmocka_unit_test(every_cut),
        cmocka_unit_test(every_flip),
        cmocka_unit_test(grows_and_shrinks),
        cmocka_unit_test(what_is_no_file),
    };
    return cmocka_run_group_tests_name("mcap_read", tests, NULL, files_remove);
}
