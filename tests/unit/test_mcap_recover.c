// mcap_recover: what is saved of every cut and every flipped byte is what whole chunks had, in its
// order; what is reported as lost is; input and output may be one; a failure leaves what was there.
// With the mistakes that other tools made (named where they are).
#include <dirent.h>

#include "daemon/mcap_recover_impl.h"
#include "tests/unit/mcap_files.h"

static struct files_log f;

// The library's fsync, with the disk behind it: from the byte `bad_at` on, one is another. -1 = none.
static off_t bad_at = -1;
int fsync(int fd)
{
    struct stat st;

    if (bad_at >= 0 && fstat(fd, &st) == 0 && bad_at < st.st_size)
        assert_int_equal(pwrite(fd, "?", 1, bad_at), 1);
    return 0;
}

static void build(uint32_t seed, int chunks, int each, enum mcap_compression c)
{
    mcap_bytes_free(&f.bytes);
    files_log(&f, seed, chunks, each, 50, c, 0);
}

// Which messages a file has, by their place in what was recorded; it must be whole and in order.
static int saved(const char *path, bool got[2000])
{
    struct mcap_error err = {""};
    struct mcap_reader *r;
    struct mcap_cursor *c;
    struct mcap_message m;
    int rc, n = 0, last = -1;

    memset(got, 0, 2000 * sizeof *got);
    if (mcap_open(&r, path, NULL, &err) != 0)
        fail_msg("%s", err.text);
    assert_true(mcap_whole(r, NULL) && r->by_summary);
    assert_int_equal(mcap_cursor_new(&c, r, NULL, 0, MCAP_FILE_ORDER, 0, 0), 0);
    while ((rc = mcap_next(c, &m, &err)) == 1) {
        assert_true(m.sequence < (uint32_t)f.n && (int)m.sequence > last);
        assert_true(files_same(&f.message[m.sequence], &m));
        last = (int)m.sequence;
        got[m.sequence] = true;
        n++;
    }
    assert_int_equal(rc, 0);
    mcap_cursor_free(c);
    mcap_close(r);
    return n;
}

static int files_in_directory(void)
{
    DIR *d = opendir(files_dir);
    int n = 0;

    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void whole_files(void **state)
{
    static bool got[2000];
    struct mcap_recovery r;
    struct mcap_error err;

    (void)state;
    for (int c = MCAP_NONE; c <= MCAP_ZSTD; c++) {
        build(3, 5, 20, (enum mcap_compression)c);
        const char *from = files_write("whole.mcap", f.bytes.data, f.bytes.n);
        const char *to = files_path("out.mcap");
        assert_int_equal(mcap_recover(from, to, NULL, &r, &err), 0);
        assert_true(r.was_whole && r.bytes_lost == 0 && r.damaged == 0 && r.loose == 0);
        assert_true(r.messages == 100 && r.chunks == 5 && r.bytes_in == f.bytes.n);
        assert_int_equal(saved(to, got), 100);
        // Once more there is nothing to be mended: it comes out as it went in, to the byte.
        struct mcap_bytes same = files_read(to);
        assert_int_equal(same.n, r.bytes_out);
        assert_int_equal(mcap_recover(to, to, NULL, &r, &err), 0);
        struct mcap_bytes again = files_read(to);
        assert_int_equal(same.n, again.n);
        assert_memory_equal(same.data, again.data, same.n);
        mcap_bytes_free(&again);
        mcap_bytes_free(&same);
    }
}

// kill -9 at any moment (data_tamer#46: no footer; mcap#697, #535: a cut that nobody mentions).
static void every_cut(void **state)
{
    static bool got[2000];
    struct mcap_error err;
    struct mcap_recovery r;

    (void)state;
    build(4, 4, 8, MCAP_ZSTD);
    for (size_t n = 0; n < f.bytes.n; n++) {
        const char *from = files_write("x.mcap.part", f.bytes.data, n);
        const char *to = files_path("x.mcap");
        int whole = 0, rc = mcap_recover(from, to, NULL, &r, &err);
        size_t end = MCAP_MAGIC_BYTES;

        for (int i = 0; i < f.chunks; i++)
            whole += n >= f.chunk[i];
        if (rc < 0) { // nothing but a Header, or not even that
            assert_true(whole == 0 && n < f.chunk[0]);
            assert_true(access(to, F_OK) != 0 && strlen(err.text) > 20);
            continue;
        }
        int k = saved(to, got);
        assert_int_equal(k, r.messages);
        assert_true(k == 8 * whole || k == 8 * (whole + 1));
        for (int i = 0; i < k; i++)
            assert_true(got[i]);
        for (int i = 0; i < f.chunks; i++)
            end = n >= f.chunk[i] ? f.chunk[i] : end;
        if (n == end && whole > 0) // the last record is whole: nothing is torn
            assert_true(rc == 0 && r.bytes_lost == 0);
        assert_int_equal(rc, r.damaged > 0);
        assert_true(r.bytes_lost <= n - end && !r.was_whole);
        unlink(to);
    }
    assert_int_equal(files_in_directory() <= 4, 1); // no half file stays behind
}

static int chunk_of(size_t at)
{
    for (int i = 0; i < f.chunks; i++)
        if (at < f.chunk[i])
            return i;
    return f.chunks;
}

// One flipped byte costs at most the chunk that it is in (mcap#1390 stopped there), and is said
// (mcap#1474 and #535: damage in the end of a file).
static void every_flip(void **state)
{
    static bool got[2000];
    struct mcap_error err;
    struct mcap_recovery r;

    (void)state;
    build(5, 4, 8, MCAP_ZSTD);
    for (size_t i = MCAP_MAGIC_BYTES; i < f.bytes.n; i++) {
        f.bytes.data[i] ^= (unsigned char)(1u << i % 8);
        const char *from = files_write("flip.mcap", f.bytes.data, f.bytes.n);
        const char *to = files_path("mended.mcap");
        int rc = mcap_recover(from, to, NULL, &r, &err), hit = chunk_of(i);
        if (rc < 0)
            fail_msg("byte %zu: %s", i, err.text);
        assert_int_equal(rc, 1);
        assert_false(r.was_whole);
        assert_true(r.damaged > 0 && r.bytes_lost < f.bytes.n);
        saved(to, got);
        for (int k = 0; k < f.n; k++)
            if (k / 8 != hit && !got[k])
                fail_msg("byte %zu in chunk %d: message %d is gone", i, hit, k);
        if (hit == f.chunks)
            assert_true(got[f.n - 1]);
        f.bytes.data[i] ^= (unsigned char)(1u << i % 8);
    }
}

// Much is gone at once: a hole, over the boundaries of chunks, filled with something else.
static void holes(void **state)
{
    static bool got[2000];
    struct mcap_error err;
    struct mcap_recovery r;
    uint32_t seed = 9;

    (void)state;
    for (int round = 0; round < 60; round++) {
        build((uint32_t)round + 1, 8, 10, (enum mcap_compression)(round % 3));
        size_t from = MCAP_MAGIC_BYTES + files_random(&seed) % (f.chunk[7] - 2000);
        size_t n = 20 + files_random(&seed) % 1500;
        for (size_t i = from; i < from + n; i++)
            f.bytes.data[i] = round % 2 ? (unsigned char)files_random(&seed) : 0;
        const char *path = files_write("hole.mcap", f.bytes.data, f.bytes.n);
        int rc = mcap_recover(path, path, NULL, &r, &err);
        if (rc != 1)
            fail_msg("round %d: %d %s", round, rc, err.text);
        saved(path, got);
        int first = chunk_of(from), last = chunk_of(from + n - 1);
        for (int k = 0; k < f.n; k++)
            if ((k / 10 < first || k / 10 > last) && !got[k])
                fail_msg("round %d: message %d is gone", round, k);
    }
}

// Channels are declared in the first chunk; when that is gone they are in the summary still.
static void channels_from_the_summary(void **state)
{
    static bool got[2000];
    struct mcap_error err;
    struct mcap_recovery r;

    (void)state;
    build(6, 4, 10, MCAP_ZSTD);
    f.bytes.data[f.chunk[0] / 2 + 60] ^= 1;
    const char *from = files_write("first.mcap", f.bytes.data, f.bytes.n);
    const char *to = files_path("out.mcap");
    assert_int_equal(mcap_recover(from, to, NULL, &r, &err), 1);
    assert_int_equal(saved(to, got), 30);
    // Without the summary nobody knows what they were: lost, and counted.
    from = files_write("first.mcap.part", f.bytes.data, f.chunk[3]);
    assert_int_equal(mcap_recover(from, to, NULL, &r, &err), 1);
    assert_true(r.messages == 0 && r.bytes_lost > f.chunk[0] / 4 && r.damaged >= 2);
}

// A length that leads over everything behind it.
static void a_length_too_long(void **state)
{
    static bool got[2000];
    struct mcap_error err;
    struct mcap_recovery r;

    (void)state;
    for (int i = 0; i < 8; i++) {
        build(8, 6, 10, MCAP_LZ4);
        f.bytes.data[f.chunk[1] + 1 + (size_t)i] ^= 0x40; // chunk 2's length
        const char *path = files_write("length.mcap", f.bytes.data, f.bytes.n);
        assert_int_equal(mcap_recover(path, files_path("out.mcap"), NULL, &r, &err), 1);
        // What is left over behind a chunk's contents is no reason to refuse it.
        int n = saved(files_path("out.mcap"), got);
        assert_int_equal(n, got[20] ? 60 : 50);
        assert_true(i == 0 || !got[20]);
    }
}

// Messages outside of chunks, the last of them torn.
static void loose_messages(void **state)
{
    struct mcap_bytes b = {0};
    struct mcap_writer_options opt = {
        .profile = "p", .library = "l", .write = files_append, .arg = &b};
    struct mcap_channel c = {7, 0, "t", "json", NULL, 0};
    struct mcap_error err;
    struct mcap_recovery r;
    struct mcap_reader *in;
    struct mcap_writer *w;

    (void)state;
    assert_int_equal(mcap_writer_new(&w, &opt), 0);
    assert_int_equal(mcap_writer_channel(w, &c, true), 0);
    for (uint32_t i = 0; i < 500; i++) {
        struct mcap_message m = {7, i, 1000 - i, i, "0123456789", 10};
        assert_int_equal(mcap_writer_message(w, &m), 0);
    }
    mcap_writer_free(w);
    const char *from = files_write("loose.mcap", b.data, b.n - 5);
    const char *to = files_path("out.mcap");
    assert_int_equal(mcap_recover(from, to, NULL, &r, &err), 1);
    assert_true(r.loose == 499 && r.messages == 499 && r.damaged == 1);
    assert_int_equal(r.bytes_lost, MCAP_HEAD + MCAP_MESSAGE_FIXED + 5);
    assert_int_equal(mcap_open(&in, to, NULL, &err), 0);
    assert_string_equal(mcap_profile(in), "p");
    assert_string_equal(mcap_library(in), "l");
    assert_int_equal(mcap_channel_count_of(in, 7), 499);
    mcap_close(in);
    mcap_bytes_free(&b);
}

// In place, and through .part; the output of a failure is as it was.
static void names(void **state)
{
    static bool got[2000];
    struct mcap_error err;
    struct mcap_recovery r;
    struct stat st;

    (void)state;
    build(12, 3, 10, MCAP_ZSTD);
    const char *path = files_write("here.mcap", f.bytes.data, f.chunk[1]);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(mcap_recover(path, path, NULL, &r, &err), 0);
    assert_int_equal(saved(path, got), 20);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
    // X.mcap.part into X.mcap, which is there already.
    const char *part = files_write("here.mcap.part", f.bytes.data, f.chunk[2] + 7);
    assert_int_equal(mcap_recover(part, path, NULL, &r, &err), 1);
    assert_int_equal(r.bytes_lost, 7);
    assert_int_equal(saved(path, got), 30);
    assert_int_equal(access(part, F_OK), 0);
    int n = files_in_directory();
    const char *text = files_write("none.mcap", "hello, this is no MCAP file", 27);
    assert_int_equal(mcap_recover(text, path, NULL, &r, &err), -EINVAL);
    assert_int_equal(saved(path, got), 30);
    text = files_write("none.mcap", f.bytes.data, 30);
    assert_int_equal(mcap_recover(text, path, NULL, &r, &err), -ENODATA);
    assert_non_null(strstr(err.text, "nothing in it can be saved"));
    assert_int_equal(mcap_recover(part, "/nowhere/x.mcap", NULL, &r, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nowhere/x.mcap"));
    assert_int_equal(mcap_recover("/nowhere/x", path, NULL, &r, &err), -ENOENT);
    mcap_out_stop = 1; // as Ctrl-C does
    assert_int_equal(mcap_recover(part, path, NULL, &r, &err), -EINTR);
    mcap_out_stop = 0;
    assert_int_equal(saved(path, got), 30);
    assert_int_equal(files_in_directory(), n + 1);
}

// What does not read back is no success, and takes no name, wherever it is wrong.
static void a_disk_that_lies(void **state)
{
    const char *to = files_path("lies.mcap");
    struct mcap_error err;
    struct mcap_recovery r;
    static bool got[2000];
    struct stat st;
    int n;

    (void)state;
    build(13, 3, 10, MCAP_ZSTD);
    const char *from = files_write("truth.mcap.part", f.bytes.data, f.chunk[2]);
    assert_int_equal(mcap_recover(from, to, NULL, &r, &err), 0);
    assert_int_equal(saved(to, got), 30);
    assert_int_equal(stat(to, &st), 0);
    assert_int_equal(unlink(to), 0);
    n = files_in_directory();
    for (bad_at = 0; bad_at < st.st_size; bad_at += 37) {
        int rc = mcap_recover(from, to, NULL, &r, &err);

        assert_true(rc < 0);
        assert_int_equal(access(to, F_OK), -1);
        assert_int_equal(files_in_directory(), n);
    }
    bad_at = -1;
    assert_int_equal(mcap_recover(from, to, NULL, &r, &err), 0);
}

// A file that is nothing but beginnings of chunks, each of which would take 64 MiB to refuse.
static void beginnings_only(void **state)
{
    const struct mcap_limits l = {.chunk_bytes = 1 << 20, .record_bytes = 1 << 20};
    struct mcap_bytes b = {0};
    struct mcap_error err;
    struct mcap_recovery r;

    (void)state;
    mcap_put(&b, mcap_magic, MCAP_MAGIC_BYTES);
    mcap_put_header(&b, "", "", false);
    while (b.n < 1 << 20) {
        mcap_put_u8(&b, MCAP_CHUNK);
        mcap_put_u64(&b, 1 << 19);
        mcap_put_u64(&b, 0);
        mcap_put_u64(&b, 0);
        mcap_put_u64(&b, 1 << 19);
        mcap_put_u32(&b, 1);
        mcap_put_u32(&b, 0);
        mcap_put_u64(&b, (1 << 19) - 40);
    }
    const char *from = files_write("many.mcap", b.data, b.n);
    assert_true(mcap_recover(from, files_path("out2.mcap"), &l, &r, &err) < 0);
    mcap_bytes_free(&b);
}

static int clean(void **state)
{
    mcap_bytes_free(&f.bytes);
    return files_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_files),
        cmocka_unit_test(every_cut),
        cmocka_unit_test(every_flip),
        cmocka_unit_test(holes),
        cmocka_unit_test(channels_from_the_summary),
        cmocka_unit_test(a_length_too_long),
        cmocka_unit_test(loose_messages),
        cmocka_unit_test(names),
        cmocka_unit_test(a_disk_that_lies),
        cmocka_unit_test(beginnings_only),
    };
    return cmocka_run_group_tests_name("mcap_recover", tests, NULL, clean);
}
