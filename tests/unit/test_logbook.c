// logbook: the files of a recording as one: their order, their run, one topic over all of them, one
// message by its time, damage.
#include "daemon/logbook.h"
#include "tests/unit/mcap_files.h"

#define SEGMENTS 3
#define SECOND   UINT64_C(1000000000)

static struct files_log segment[SEGMENTS];

// Names do not follow the times: b, c, a.
static const char *const name[SEGMENTS] = {"run/b.mcap", "run/c.mcap", "run/a.mcap"};

static void make(void)
{
    assert_true(mkdir(files_path("run"), 0700) == 0 || errno == EEXIST);
    for (int i = 0; i < SEGMENTS; i++) {
        mcap_bytes_free(&segment[i].bytes);
        files_log(&segment[i], (uint32_t)i + 3, 5, 20, 100,
                  (enum mcap_compression)((MCAP_ZSTD + i) % 3),
                  SECOND * (uint64_t)(i + 1));
        files_write(name[i], segment[i].bytes.data, segment[i].bytes.n);
    }
}

static struct logbook *open_run(void)
{
    const char *path = files_path("run");
    struct mcap_error err = {""};
    struct logbook *b;

    if (logbook_open(&b, &path, 1, &err) != 0)
        fail_msg("%s", err.text);
    return b;
}

static void facts(void **state)
{
    struct logbook *b;

    (void)state;
    make();
    b = open_run();
    assert_int_equal(logbook_files(b), SEGMENTS);
    for (int i = 0; i < SEGMENTS; i++) {
        const char *path = logbook_path(b, i);
        assert_string_equal(path + strlen(path) - strlen(name[i]), name[i]);
        assert_int_equal(mcap_message_count(logbook_reader(b, i)), 100);
    }
    assert_true(logbook_ours(b));
    assert_string_equal(logbook_fact(b, "version"), "v");
    assert_null(logbook_fact(b, "no such"));
    assert_int_equal(logbook_base_ns(b), -77);
    assert_string_equal(logbook_damage(b), "");
    assert_null(logbook_path(b, SEGMENTS));
    logbook_close(b);
}

// A topic's messages, over all files, in the order in which they were recorded.
static void one_topic(void **state)
{
    static const char *const topic[] = {"/tick", "/input", "/camera/a", "/x"};
    static const uint64_t to[] = {0, 2 * SECOND + 1500, 3 * SECOND};

    (void)state;
    make();
    struct logbook *b = open_run();
    for (uint16_t t = 0; t < 4; t++)
        for (int w = 0; w < 3; w++) {
            uint64_t from = w == 1 ? SECOND + 1200 : 0;
            struct logbook_cursor *c;
            struct mcap_message m;
            int n = 0;
            assert_int_equal(logbook_cursor_new(&c, b, topic[t], from, to[w]), 0);
            for (int s = 0; s < SEGMENTS; s++)
                for (int i = 0; i < segment[s].n; i++) {
                    const struct files_message *want = &segment[s].message[i];
                    if (want->channel != t + 1 || want->log_ns < from ||
                        (to[w] && want->log_ns >= to[w]))
                        continue;
                    assert_int_equal(logbook_next(c, &m, NULL), 1);
                    assert_true(files_same(want, &m));
                    n++;
                }
            assert_int_equal(logbook_next(c, &m, NULL), 0);
            assert_int_equal(logbook_next(c, &m, NULL), 0);
            assert_true(n > 10);
            logbook_cursor_free(c);
        }
    struct logbook_cursor *c;
    struct mcap_message m;
    assert_int_equal(logbook_cursor_new(&c, b, "/nobody", 0, 0), 0);
    assert_int_equal(logbook_next(c, &m, NULL), 0);
    logbook_cursor_free(c);
    logbook_close(b);
}

static void one_message(void **state)
{
    struct mcap_error err;
    void *own;
    size_t n;

    (void)state;
    make();
    struct logbook *b = open_run();
    for (int s = 0; s < SEGMENTS; s++)
        for (int i = 0; i < segment[s].n; i++) {
            const struct files_message *want = &segment[s].message[i];
            bool first = want->channel == 1;
            for (int k = 0; k < i; k++)
                first &= segment[s].message[k].channel != 1 ||
                         segment[s].message[k].log_ns != want->log_ns;
            if (!first)
                continue;
            assert_int_equal(logbook_find(b, "/tick", want->log_ns, &own, &n, &err), 0);
            assert_int_equal(n, want->size);
            for (size_t k = 0; k < n; k++)
                assert_int_equal(((unsigned char *)own)[k], want->byte);
            free(own);
        }
    assert_int_equal(logbook_find(b, "/tick", 5, &own, &n, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/tick has no message at 5 ns"));
    assert_null(own);
    logbook_close(b);
}

// ---- what can be amiss ------------------------------------------------------------------------

static void a_part_and_its_recovery(void **state)
{
    (void)state;
    make();
    files_write("run/z.mcap.part", segment[2].bytes.data, segment[2].chunk[1]);
    files_write("run/b.mcap.part", "", 0); // beside b.mcap: does not count
    files_write("run/empty.mcap.part", "", 0);
    files_write("run/notes.txt", "x", 1);
    struct logbook *b = open_run();
    assert_int_equal(logbook_files(b), SEGMENTS + 1);
    assert_non_null(strstr(logbook_damage(b), "empty"));
    logbook_close(b);
    unlink(files_path("run/z.mcap.part"));
    unlink(files_path("run/b.mcap.part"));
    unlink(files_path("run/empty.mcap.part"));
}

static void damage_is_passed_over(void **state)
{
    struct mcap_error err = {""};
    struct logbook_cursor *c;
    struct mcap_message m;
    int rc, n = 0, bad = 0;

    (void)state;
    make();
    segment[1].bytes.data[segment[1].chunk[1] + 300] ^= 1;
    files_write(name[1], segment[1].bytes.data, segment[1].bytes.n);
    struct logbook *b = open_run();
    assert_string_equal(logbook_damage(b), ""); // the summary is right
    assert_int_equal(logbook_cursor_new(&c, b, "/tick", 0, 0), 0);
    while ((rc = logbook_next(c, &m, &err)) != 0) {
        n += rc == 1;
        bad += rc < 0;
    }
    assert_int_equal(bad, 1);
    assert_non_null(strstr(err.text, "c.mcap"));
    assert_non_null(strstr(logbook_damage(b), "c.mcap"));
    int want = 0;
    for (int s = 0; s < SEGMENTS; s++)
        for (int i = 0; i < segment[s].n; i++)
            want += segment[s].message[i].channel == 1 && !(s == 1 && i / 20 == 2);
    assert_int_equal(n, want);
    logbook_cursor_free(c);
    logbook_close(b);
}

static void refusals(void **state)
{
    struct mcap_error err = {""};
    const char *path[3];
    struct logbook *b;

    (void)state;
    make();
    assert_int_equal(logbook_open(&b, path, 0, &err), -EINVAL);
    path[0] = "/nowhere";
    assert_int_equal(logbook_open(&b, path, 1, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nowhere"));
    mkdir(files_path("bare"), 0700);
    path[0] = files_path("bare");
    assert_int_equal(logbook_open(&b, path, 1, &err), -ENOENT);
    assert_non_null(strstr(err.text, "holds no recording"));
    path[0] = files_write("text.mcap", "not an MCAP file", 16);
    assert_int_equal(logbook_open(&b, path, 1, &err), -EINVAL);
    // Of another run: "r1" in the metadata becomes "r2".
    unsigned char *at =
        memmem(segment[0].bytes.data, segment[0].bytes.n, "run_id\2\0\0\0r1", 12);
    assert_non_null(at);
    at[11] = '2';
    path[0] = files_path("run");
    path[1] = files_write("other.mcap", segment[0].bytes.data, segment[0].chunk[0]);
    assert_int_equal(logbook_open(&b, path, 2, &err), -EINVAL);
    assert_non_null(strstr(err.text, "are of two runs"));
    assert_null(b);
    // Of a directory with both the newest counts, and what is wrong with the other does not.
    path[0] = files_path("run");
    files_write("run/0.mcap", segment[0].bytes.data, segment[0].chunk[0]);
    assert_int_equal(logbook_open(&b, path, 1, &err), 0);
    assert_int_equal(logbook_files(b), SEGMENTS);
    assert_string_equal(logbook_fact(b, "run_id"), "r1");
    logbook_close(b);
}

static int clean(void **state)
{
    for (int i = 0; i < SEGMENTS; i++)
        mcap_bytes_free(&segment[i].bytes);
    return files_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts),
        cmocka_unit_test(one_topic),
        cmocka_unit_test(one_message),
        cmocka_unit_test(a_part_and_its_recovery),
        cmocka_unit_test(damage_is_passed_over),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("logbook", tests, NULL, clean);
}
