// mcap_write: files of random contents agree with themselves (mcap_naive.h), and a sink that fails
// at any call, or memory that ends at any call, costs what was being written and nothing else.
#include <errno.h>

#include "daemon/mcap_write.h"
#include "tests/unit/mcap_naive.h"
#include "tests/unit/memory_ends.h"

static uint64_t seed = 88172645463325252u;
static struct naive file;

static uint64_t any(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

// ---- a sink that fails -----------------------------------------------------------------------

struct sink {
    unsigned char data[4 << 20];
    size_t n;
    int calls, fail_at; // of that call half of the bytes get in; < 0 = none fails
};

static int sink_write(void *arg, const struct iovec *v, int n)
{
    struct sink *s = arg;
    bool fails = s->calls++ == s->fail_at;

    for (int i = 0; i < n; i++) {
        size_t bytes = fails ? v[i].iov_len / 2 : v[i].iov_len;

        assert_true(bytes <= sizeof s->data - s->n);
        if (bytes > 0)
            memcpy(s->data + s->n, v[i].iov_base, bytes);
        s->n += bytes;
    }
    return fails ? -ENOSPC : 0;
}

static const struct mcap_writer_options plain = {
    .profile = "", .library = "test", .write = sink_write};

// ---- a file as it goes -----------------------------------------------------------------------

#define CHANNELS 5
#define STEPS    24

static const struct mcap_pair pairs[] = {{"a", "1"}, {"b", ""}};
static struct mcap_chunk *chunk[STEPS];

static struct mcap_schema schema_number(int i)
{
    static const char *const name[] = {"one", "two"};

    return (struct mcap_schema){(uint16_t)(7 + i), name[i], "protobuf", "\1\2\3", 3};
}

static struct mcap_channel channel_number(int i)
{
    static const char *const topic[CHANNELS] = {"/a", "/b", "/c", "/d", "/e"};
    uint16_t schema = (uint16_t)(i < 4 ? 7 + i % 2 : 0);

    return (struct mcap_channel){(uint16_t)(i * 1000), schema, topic[i],
                                 "protobuf",           pairs,  i % 3};
}

static void random_message(struct mcap_message *m, unsigned char *data, size_t most)
{
    size_t n = any() % (most + 1);

    for (size_t i = 0; i < n; i++)
        data[i] = (unsigned char)(any() % 5);
    *m = (struct mcap_message){(uint16_t)(any() % CHANNELS * 1000),
                               (uint32_t)any(),
                               any() % 1000,
                               any() % 1000,
                               data,
                               n};
}

static struct mcap_chunk *random_chunk(enum mcap_compression compression)
{
    const struct mcap_build_options opt = {.compression = compression};
    unsigned char data[200];
    struct mcap_build *b;
    struct mcap_chunk *c;
    struct mcap_message m;

    assert_int_equal(mcap_build_new(&b, &opt), 0);
    for (int i = 0; i < 2; i++) {
        const struct mcap_schema s = schema_number(i);

        assert_int_equal(mcap_build_schema(b, &s), 0);
    }
    for (int i = 0; i < CHANNELS; i++) {
        const struct mcap_channel ch = channel_number(i);

        assert_int_equal(mcap_build_channel(b, &ch), 0);
    }
    for (int i = 100 + (int)(any() % 100); i-- > 0;) { // some of each channel
        random_message(&m, data, sizeof data);
        assert_int_equal(mcap_build_message(b, &m), 0);
    }
    assert_int_equal(mcap_build_finish(b, &c), 0);
    mcap_build_free(b);
    return c;
}

static int make_chunks(void **state)
{
    (void)state;
    for (int i = 0; i < STEPS; i++)
        chunk[i] = random_chunk((enum mcap_compression)(i % 3));
    return 0;
}

static int free_chunks(void **state)
{
    (void)state;
    for (int i = 0; i < STEPS; i++)
        mcap_chunk_free(chunk[i]);
    return 0;
}

// What is written in step i, the same whenever it is asked for. Schemas and channels come first.
static int step(struct mcap_writer *w, int i)
{
    const struct mcap_schema s = schema_number(i % 2);
    const struct mcap_channel ch = channel_number(i % CHANNELS);
    const struct mcap_message m = {
        (uint16_t)(i % CHANNELS * 1000), (uint32_t)i, (uint64_t)i * 77, 1, "abc", 3};

    if (i < 2)
        return mcap_writer_schema(w, &s, true);
    if (i < 2 + CHANNELS)
        return mcap_writer_channel(w, &ch, true);
    if (i % 7 == 0)
        return mcap_writer_metadata(w, "facts", pairs, 2);
    if (i % 7 == 1)
        return mcap_writer_attachment(w, 5, 6, "name", "text/plain", "hello",
                                      i % 2 ? 5 : 0);
    if (i % 7 == 2)
        return mcap_writer_message(w, &m);
    return mcap_writer_chunk(w, chunk[i]);
}

// As a recorder does it: what failed is cut off, then written again (or not: skip). Returns whether
// the file was finished.
static bool write_file(struct sink *s, bool again)
{
    struct mcap_writer_options opt = plain;
    struct mcap_writer *w;
    int rc;

    s->n = 0;
    s->calls = 0;
    opt.arg = s;
    rc = mcap_writer_new(&w, &opt);
    if (rc < 0) {
        assert_null(w);
        return false;
    }
    for (int i = 0; i <= STEPS; i++) {
        uint64_t messages = mcap_writer_messages(w), bytes = s->n;

        assert_int_equal(bytes, mcap_writer_bytes(w));
        rc = i < STEPS ? step(w, i) : mcap_writer_finish(w);
        if (rc == 0)
            continue;
        assert_true(rc == -ENOSPC || rc == -ENOMEM || (!again && rc == -EINVAL));
        assert_int_equal(bytes, mcap_writer_bytes(w));
        assert_int_equal(messages, mcap_writer_messages(w));
        s->n = bytes;
        i -= again || i == STEPS;
    }
    assert_int_equal(mcap_writer_bytes(w), s->n);
    mcap_writer_free(w);
    return true;
}

static void a_file_agrees_with_itself(void **state)
{
    static struct sink s = {.fail_at = -1};

    (void)state;
    assert_true(write_file(&s, true));
    naive_check(&file, s.data, s.n);
    assert_int_equal(file.schemas, 2);
    assert_int_equal(file.channels, CHANNELS);
    assert_true(file.chunks >= 8 && file.loose >= 2 && file.metadata >= 2 &&
                file.attachments >= 2 && file.messages > 500);
}

static void a_failed_write_costs_nothing_else(void **state)
{
    static struct sink whole = {.fail_at = -1}, s;
    int calls;

    (void)state;
    assert_true(write_file(&whole, true));
    calls = whole.calls;
    assert_true(calls > STEPS - CHANNELS);
    s.fail_at = 0;
    assert_false(write_file(&s, true));
    for (s.fail_at = 1; s.fail_at < calls; s.fail_at++) {
        assert_true(write_file(&s, true));
        assert_int_equal(s.n, whole.n); // as if nothing had happened
        assert_memory_equal(s.data, whole.data, s.n);
        assert_true(
            write_file(&s, false)); // without it: a schema's channels are refused then
        naive_check(&file, s.data, s.n);
    }
}

// For good: what was written by then can be ended as soon as there is some again.
static void memory_may_end_at_any_time(void **state)
{
    static struct sink s = {.fail_at = -1};
    int finished = 0;

    (void)state;
    if (!MEMORY_ENDS)
        skip();
    for (long left = 0; finished < 2; left++) {
        struct mcap_writer_options opt = plain;
        struct mcap_writer *w;
        int rc, failures = 0;

        s.n = 0;
        opt.arg = &s;
        allocations_left = left;
        rc = mcap_writer_new(&w, &opt);
        for (int i = 0; rc == 0 && i < STEPS; i++)
            failures += step(w, i) != 0;
        if (rc == 0 && mcap_writer_finish(w) != 0) {
            failures++;
            allocations_left = -1;
            assert_int_equal(mcap_writer_finish(w), 0);
        }
        allocations_left = -1;
        if (rc == 0)
            naive_check(&file, s.data, s.n);
        else
            assert_int_equal(rc, -ENOMEM);
        mcap_writer_free(w);
        finished += rc == 0 && failures == 0;
        assert_true(left < 1000);
    }
}

static void memory_may_end_for_a_moment(void **state)
{
    static struct sink whole = {.fail_at = -1}, s = {.fail_at = -1};
    bool failed = true;

    (void)state;
    if (!MEMORY_ENDS)
        skip();
    assert_true(write_file(&whole, true));
    allocations_fail_once = true;
    for (long left = 0; failed; left++) {
        allocations_left = left;
        if (write_file(&s, true)) { // what failed is written again
            assert_int_equal(s.n, whole.n);
            assert_memory_equal(s.data, whole.data, s.n);
        }
        failed = allocations_left < 0;
        allocations_left = failed ? left : -1;
        if (failed && write_file(&s, false)) // or is not
            naive_check(&file, s.data, s.n);
        assert_true(left < 1000);
    }
    allocations_left = -1;
    allocations_fail_once = false;
}

static void a_crc_that_is_not_wanted_is_0(void **state)
{
    static struct sink s = {.fail_at = -1};
    struct mcap_writer_options opt = plain;
    struct mcap_writer *w;
    size_t end;

    (void)state;
    s.n = 0;
    opt.arg = &s;
    opt.no_data_crc = true;
    assert_int_equal(mcap_writer_new(&w, &opt), 0);
    assert_int_equal(step(w, 0), 0);
    end = s.n;
    assert_int_equal(mcap_writer_finish(w), 0);
    assert_memory_equal(s.data + end, "\x0f\4\0\0\0\0\0\0\0\0\0\0\0", 13);
    mcap_writer_free(w);
}

static void what_no_reader_could_use_is_refused(void **state)
{
    static struct sink s = {.fail_at = -1};
    struct mcap_writer_options opt = plain;
    struct mcap_schema schema = schema_number(0);
    struct mcap_channel channel = channel_number(0);
    const struct mcap_message m = {.channel = 0};
    struct mcap_writer *w;
    size_t n;

    (void)state;
    s.n = 0;
    opt.arg = &s;
    assert_int_equal(mcap_writer_new(&w, &opt), 0);
    n = s.n;
    schema.id = 0;
    assert_int_equal(mcap_writer_schema(w, &schema, true), -EINVAL);
    schema.id = 7;
    assert_int_equal(mcap_writer_channel(w, &channel, true), -EINVAL); // no schema 7 yet
    assert_int_equal(mcap_writer_message(w, &m), -EINVAL);
    assert_int_equal(mcap_writer_chunk(w, chunk[0]), -EINVAL);
    assert_int_equal(s.n, n);
    assert_int_equal(mcap_writer_schema(w, &schema, false), 0);
    assert_int_equal(mcap_writer_schema(w, &schema, false), 0); // said again: fine
    assert_int_equal(s.n, n);
    assert_int_equal(mcap_writer_schema(w, &schema, true), 0);
    assert_true(s.n > n);
    schema.data = "\1\2\4";
    assert_int_equal(mcap_writer_schema(w, &schema, true), -EINVAL);
    assert_int_equal(mcap_writer_channel(w, &channel, true), 0);
    channel.topic = "/other";
    assert_int_equal(mcap_writer_channel(w, &channel, true), -EINVAL);
    assert_int_equal(mcap_writer_finish(w), 0);
    naive_check(&file, s.data, s.n);
    assert_int_equal(file.schemas, 1);
    assert_int_equal(file.channels, 1);
    assert_int_equal(mcap_writer_finish(w), -EINVAL);
    assert_int_equal(mcap_writer_message(w, &m), -EINVAL);
    assert_int_equal(mcap_writer_metadata(w, "x", NULL, 0), -EINVAL);
    mcap_writer_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_agrees_with_itself),
        cmocka_unit_test(a_failed_write_costs_nothing_else),
        cmocka_unit_test(memory_may_end_at_any_time),
        cmocka_unit_test(memory_may_end_for_a_moment),
        cmocka_unit_test(a_crc_that_is_not_wanted_is_0),
        cmocka_unit_test(what_no_reader_could_use_is_refused),
    };

    return cmocka_run_group_tests(tests, make_chunks, free_chunks);
}
