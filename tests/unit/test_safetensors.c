// safetensors: every rule of the header has a row that breaks it and the sentence it must earn.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <fcntl.h>
#include <cmocka.h>

#include "policy/safetensors.h"
#include "tests/unit/st_fixture.h"

static char dir[128], path[160];

#define T(dtype, shape, offsets) \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define TWO "{\"a\":" T("F32", "[2]", "[0,8]") ",\"b\":" T("F32", "[2,1]", "[8,16]") "}"

// header with its length; data bytes behind it; a part of the sentence, NULL = accepted.
struct row {
    const char *what, *header;
    size_t n, data;
    const char *says;
};
#define ROW(what, header, data, says)               \
    {                                               \
        what, header, sizeof header - 1, data, says \
    }

static const struct row rows[] = {
    ROW("two tensors", TWO, 16, NULL),
    ROW("padded with spaces", TWO "       ", 16, NULL),
    ROW("no tensors", "{}", 0, NULL),
    ROW("no tensors, metadata", "{\"__metadata__\":{\"format\":\"pt\"}}", 0, NULL),
    ROW("rank 0", "{\"a\":" T("F32", "[]", "[0,4]") "}", 4, NULL),
    ROW("empty tensor", "{\"a\":" T("F32", "[0,3]", "[0,0]") "}", 0, NULL),
    ROW("any order in the header",
        "{\"b\":" T("U8", "[2]", "[8,10]") ",\"a\":" T("F64", "[1]", "[0,8]") "}", 10,
        NULL),
    ROW("rank 8", "{\"a\":" T("U8", "[1,1,1,1,1,1,1,2]", "[0,2]") "}", 2, NULL),
    ROW("UTF-8 name",
        "{\"\xc3\xa9\xe2\x82\xac\xf0\x9f\xa4\x96\":" T("U8", "[2]", "[0,2]") "}", 2,
        NULL),

    ROW("brackets in a name", "{\"a\\\"[[[[[[{{{{\":" T("U8", "[2]", "[0,2]") "}", 2,
        NULL),
    ROW("backslash ends a name", "{\"a\\\\\":" T("U8", "[2]", "[0,2]") "}", 2, NULL),
    ROW("brackets after a backslash", "{\"a\\\\\":[[[[[]]]]]}", 0, "nests too deeply"),
    ROW("empty header", "", 0, "not one JSON object"),
    ROW("BOM", "\xef\xbb\xbf" TWO, 16, "not one JSON object"),
    ROW("space first", " " TWO, 16, "not one JSON object"),
    ROW("array", "[]", 0, "not one JSON object"),
    ROW("NUL inside", "{\"a\0b\":1}", 0, "NUL"),
    ROW("escaped NUL", "{\"a\\u0000b\":" T("U8", "[2]", "[0,2]") "}", 2,
        "not valid JSON"),
    ROW("NUL padding", TWO "\0\0", 16, "not one JSON object"),
    ROW("tab padding", TWO "\t", 16, "not one JSON object"),
    ROW("newline padding", TWO "\n", 16, "not one JSON object"),
    ROW("second object", TWO "{}", 16, "not valid JSON"),
    ROW("bad UTF-8", "{\"\xff\":" T("U8", "[2]", "[0,2]") "}", 2, "UTF-8"),
    ROW("overlong UTF-8", "{\"\xc0\xaf\":" T("U8", "[2]", "[0,2]") "}", 2, "UTF-8"),
    ROW("overlong 3", "{\"\xe0\x80\xaf\":" T("U8", "[2]", "[0,2]") "}", 2, "UTF-8"),
    ROW("surrogate", "{\"\xed\xa0\x80\":" T("U8", "[2]", "[0,2]") "}", 2, "UTF-8"),
    ROW("beyond Unicode", "{\"\xf4\x90\x80\x80\":" T("U8", "[2]", "[0,2]") "}", 2,
        "UTF-8"),
    ROW("lone continuation", "{\"\x80\":" T("U8", "[2]", "[0,2]") "}", 2, "UTF-8"),
    ROW("cut character", "{\"a\xe2\x82\":1}", 0, "UTF-8"),

    ROW("tensor twice",
        "{\"a\":" T("F32", "[2]", "[0,8]") ",\"a\":" T("F32", "[2]", "[0,8]") "}", 8,
        "duplicate"),
    ROW("metadata twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "duplicate"),
    ROW("metadata key twice", "{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0,
        "duplicate"),
    ROW("dtype twice",
        "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[2],"
        "\"data_offsets\":[0,2]}}",
        2, "duplicate"),
    ROW("escaped twin",
        "{\"a\":" T("U8", "[0]", "[0,0]") ",\"\\u0061\":" T("U8", "[0]", "[0,0]") "}", 0,
        "duplicate"),
    ROW("metadata number", "{\"__metadata__\":{\"a\":1}}", 0, "no string"),
    ROW("metadata nested", "{\"__metadata__\":{\"a\":{}}}", 0, "no string"),
    ROW("metadata null", "{\"__metadata__\":null}", 0, "no object"),
    ROW("metadata list", "{\"__metadata__\":[]}", 0, "no object"),

    ROW("unknown field",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2],\"x\":0}}", 2,
        "field other than"),
    ROW("dtype missing", "{\"a\":{\"shape\":[2],\"data_offsets\":[0,2]}}", 2, "dtype"),
    ROW("shape missing", "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,2]}}", 2, "shape"),
    ROW("offsets missing", "{\"a\":{\"dtype\":\"U8\",\"shape\":[2]}}", 2, "data_offsets"),
    ROW("entry a number", "{\"a\":1}", 0, "no object"),
    ROW("dtype F7", "{\"a\":" T("F7", "[2]", "[0,2]") "}", 2, "dtype"),
    ROW("dtype F4", "{\"a\":" T("F4", "[3]", "[0,2]") "}", 2, "dtype"),
    ROW("dtype lower case", "{\"a\":" T("f32", "[2]", "[0,8]") "}", 8, "dtype"),
    ROW("dtype a number", "{\"a\":{\"dtype\":4,\"shape\":[2],\"data_offsets\":[0,2]}}", 2,
        "dtype"),

    ROW("rank 9", "{\"a\":" T("U8", "[1,1,1,1,1,1,1,1,2]", "[0,2]") "}", 2,
        "too many dimensions"),
    ROW("negative dimension", "{\"a\":" T("U8", "[-2]", "[0,2]") "}", 2,
        "no whole number"),
    ROW("real dimension", "{\"a\":" T("U8", "[2.0]", "[0,2]") "}", 2, "no whole number"),
    ROW("minus zero", "{\"a\":" T("U8", "[-0]", "[0,0]") "}", 0, "-0"),
    ROW("dimension a string", "{\"a\":" T("U8", "[\"2\"]", "[0,2]") "}", 2,
        "no whole number"),
    ROW("shape an object", "{\"a\":" T("U8", "{}", "[0,2]") "}", 2, "no list"),
    ROW("2^63 x 2", "{\"a\":" T("U8", "[9223372036854775808,2]", "[0,0]") "}", 0,
        "not valid JSON"),
    ROW("2^62 x 4", "{\"a\":" T("U8", "[4611686018427387904,4]", "[0,0]") "}", 0,
        "overflows"),
    ROW("2^32 x 2^32", "{\"a\":" T("U8", "[4294967296,4294967296]", "[0,0]") "}", 0,
        "overflows"),
    ROW("2^61 F64", "{\"a\":" T("F64", "[2305843009213693952]", "[0,0]") "}", 0,
        "overflows"),
    ROW("overflow, zero first",
        "{\"a\":" T("U8", "[0,4294967296,4294967296]", "[0,0]") "}", 0, "overflows"),
    ROW("overflow, zero last",
        "{\"a\":" T("U8", "[4294967296,4294967296,0]", "[0,0]") "}", 0, "overflows"),

    ROW("begin > end", "{\"a\":" T("U8", "[2]", "[2,0]") "}", 2, "outside the file"),
    ROW("end outside", "{\"a\":" T("U8", "[3]", "[0,3]") "}", 2, "outside the file"),
    ROW("end 2^63-1",
        "{\"a\":" T("U8", "[9223372036854775807]", "[0,9223372036854775807]") "}", 2,
        "outside the file"),
    ROW("negative offset", "{\"a\":" T("U8", "[2]", "[-1,1]") "}", 2,
        "two whole numbers"),
    ROW("one offset", "{\"a\":" T("U8", "[2]", "[2]") "}", 2, "two whole numbers"),
    ROW("three offsets", "{\"a\":" T("U8", "[2]", "[0,2,2]") "}", 2, "two whole numbers"),
    ROW("one byte less", "{\"a\":" T("F32", "[2]", "[0,7]") "}", 8, "do not match"),
    ROW("one byte more", "{\"a\":" T("F32", "[2]", "[0,9]") "}", 9, "do not match"),
    ROW("overlap by 1",
        "{\"a\":" T("U8", "[4]", "[0,4]") ",\"b\":" T("U8", "[4]", "[3,7]") "}", 7,
        "overlaps"),
    ROW("hole of 1",
        "{\"a\":" T("U8", "[4]", "[0,4]") ",\"b\":" T("U8", "[4]", "[5,9]") "}", 9,
        "leaves a hole"),
    ROW("hole at the start", "{\"a\":" T("U8", "[4]", "[1,5]") "}", 5, "leaves a hole"),
    ROW("alias", "{\"a\":" T("U8", "[4]", "[0,4]") ",\"b\":" T("U8", "[4]", "[0,4]") "}",
        4, "overlaps"),
    ROW("empty inside another",
        "{\"a\":" T("U8", "[4]", "[0,4]") ",\"b\":" T("U8", "[0]", "[2,2]") "}", 4,
        "overlaps"),
    ROW("one byte behind", TWO, 17, "belong to no tensor"),
    ROW("one byte short", TWO, 15, "outside the file"),
    ROW("data without tensors", "{}", 1, "belong to no tensor"),

    ROW("depth 4", "{\"a\":[[[]]]}", 0, "no object"),
    ROW("depth 5", "{\"a\":[[[[]]]]}", 0, "nests too deeply"),
    ROW("empty name", "{\"\":" T("U8", "[2]", "[0,2]") "}", 2, "name"),
    ROW("no JSON", "{,}", 0, "not valid JSON"),
    ROW("control characters in a name", "{\"a\\n\\u001b[31mb\":1}", 0, "'a??[31mb'"),
};

static void expect(const char *what, int r, const char *text, const char *says)
{
    bool ok = says ? r == -EINVAL && strstr(text, says) : r == 0;

    if (!ok)
        fail_msg("%s: %d '%s', expected '%s'", what, r, text, says ? says : "(accepted)");
}

static int open_once(struct policy_error *err)
{
    struct st_file *f = NULL;
    int r = st_open(&f, path, err);

    assert_true(r == 0 ? f != NULL : f == NULL);
    if (r < 0) // one sentence that says which file
        assert_non_null(strstr(err->text, path));
    st_close(f);
    return r;
}

static void test_rows(void **state)
{
    char data[64] = {0};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct policy_error err = {""};

        stf_write_raw(path, rows[i].header, rows[i].n, data, rows[i].data);
        expect(rows[i].what, open_once(&err), err.text, rows[i].says);
    }
}

static void write_bytes(const void *bytes, size_t n)
{
    FILE *o = fopen(path, "wb");

    if (!o || fwrite(bytes, 1, n, o) != n || fclose(o) != 0)
        stf_die(path);
}

static void put_length(unsigned char *p, uint64_t n)
{
    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)(n >> 8 * i);
}

static void test_header_length(void **state)
{
    static const struct {
        uint64_t n;
        const char *says;
    } lengths[] = {{100000001, "limit"},
                   {1ull << 63, "limit"},
                   {UINT64_MAX, "limit"},
                   {UINT64_MAX - 7, "limit"}, // 8 + n wraps to 0
                   {ST_MAX_HEADER + 1, "limit"},
                   {ST_MAX_HEADER, "has only"},
                   {10, "has only"},
                   {3, "has only"}};
    unsigned char file[10] = {0, 0, 0, 0, 0, 0, 0, 0, '{', '}'};

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct policy_error err = {""};

        put_length(file, lengths[i].n);
        write_bytes(file, sizeof file);
        expect("length", open_once(&err), err.text, lengths[i].says);
    }
    put_length(file, 2);
    for (size_t n = 0; n <= sizeof file; n++) { // 0 to 7 bytes, then N past the end
        struct policy_error err = {""};

        write_bytes(file, n);
        expect("short file", open_once(&err), err.text,
               n < 8    ? "bytes"
               : n < 10 ? "has only"
                        : NULL);
    }
}

// A whole file cut at every byte: each time refused, by a rule and not by luck.
static void test_truncated(void **state)
{
    size_t h = sizeof TWO - 1, size = 8 + h + 16;
    unsigned char file[512] = {0};

    (void)state;
    put_length(file, h);
    memcpy(file + 8, TWO, h);
    for (size_t n = 0; n < size; n++) {
        struct policy_error err = {""};

        write_bytes(file, n);
        if (open_once(&err) != -EINVAL)
            fail_msg("cut at %zu: '%s'", n, err.text);
    }
    for (size_t n = 0; n < h; n++) { // the header itself cut, its length being true
        struct policy_error err = {""};

        put_length(file, n);
        write_bytes(file, size);
        if (open_once(&err) != -EINVAL)
            fail_msg("header cut at %zu: '%s'", n, err.text);
    }
}

// Every single byte of a header replaced by every other value: never a crash, and where it is
// accepted the table still tiles the file.
static void test_mutated(void **state)
{
    size_t h = sizeof TWO - 1;
    unsigned char file[512] = {0};

    (void)state;
    put_length(file, h);
    memcpy(file + 8, TWO, h);
    for (size_t at = 0; at < 8 + h; at++)
        for (int v = 0; v < 256; v += at < 8 ? 1 : 7) {
            unsigned char was = file[at];
            struct policy_error err;
            struct st_file *f;
            uint64_t sum = 0;

            file[at] = (unsigned char)v;
            write_bytes(file, 8 + h + 16);
            if (st_open(&f, path, &err) == 0) {
                for (size_t i = 0; i < st_count(f); i++)
                    sum += st_at(f, i)->nbytes;
                assert_int_equal(sum, 16);
                st_close(f);
            }
            file[at] = was;
        }
}

static size_t many_tensors(char *h, size_t size, int n, int name_bytes)
{
    size_t at = (size_t)snprintf(h, size, "{");

    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(h + at, size - at, "%s\"%0*d\":" T("U8", "[0]", "[0,0]"),
                               i ? "," : "", name_bytes, i);
    return at + (size_t)snprintf(h + at, size - at, "}");
}

static void test_counts(void **state)
{
    static char h[ST_MAX_HEADER + 64];
    static const struct {
        int n, name_bytes;
        const char *says;
    } counts[] = {{ST_MAX_TENSORS, 5, NULL},
                  {ST_MAX_TENSORS + 1, 5, "more than 4096"},
                  {1, ST_MAX_NAME, NULL},
                  {1, ST_MAX_NAME + 1, "longer than 256"}};

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct policy_error err = {""};
        size_t n = many_tensors(h, sizeof h, counts[i].n, counts[i].name_bytes);

        stf_write_raw(path, h, n, "", 0);
        expect("counts", open_once(&err), err.text, counts[i].says);
    }
    for (int extra = 0; extra < 2; extra++) { // the cap itself is allowed
        struct policy_error err = {""};

        memset(h, ' ', sizeof h);
        memcpy(h, "{}", 2);
        stf_write_raw(path, h, ST_MAX_HEADER + (size_t)extra, "", 0);
        expect("cap", open_once(&err), err.text, extra ? "limit" : NULL);
    }
    { // a million brackets must not reach the recursive parser
        struct policy_error err = {""};

        memset(h, '[', sizeof h);
        memcpy(h, "{\"a\":", 5);
        h[ST_MAX_HEADER - 1] = '}';
        stf_write_raw(path, h, ST_MAX_HEADER, "", 0);
        expect("brackets", open_once(&err), err.text, "nests too deeply");
    }
}

static void test_kind_of_file(void **state)
{
    struct policy_error err = {""};
    struct st_file *f;
    char other[200];

    (void)state;
    assert_int_equal(st_open(&f, dir, &err), -EINVAL);
    assert_non_null(strstr(err.text, "regular file"));
    snprintf(other, sizeof other, "%s/fifo", dir);
    assert_int_equal(mkfifo(other, 0600), 0);
    assert_int_equal(st_open(&f, other, &err), -EINVAL); // and does not hang
    unlink(other);
    snprintf(other, sizeof other, "%s/none", dir);
    assert_int_equal(st_open(&f, other, &err), -ENOENT);
    assert_int_equal(st_open(&f, other, NULL), -ENOENT);
    snprintf(other, sizeof other, "%s/link", dir);
    stf_write_raw(path, "{}", 2, "", 0);
    assert_int_equal(symlink(path, other), 0);
    assert_int_equal(st_open(&f, other, &err), 0); // model hubs' caches are links
    st_close(f);
    unlink(other);
    st_close(NULL);
}

static void test_lookup_and_alias(void **state)
{
    static const int two[] = {2};
    struct policy_error err = {""};
    const char *removed = NULL;
    struct st_file *file;
    struct stf f;

    (void)state;
    stf_begin(&f);
    stf_add(&f, "zeta", STF_F32, 1, two, NULL);
    stf_add(&f, "alpha", STF_F32, 1, two, NULL);
    stf_meta(&f, "format", "pt");
    stf_meta(&f, "gone", "alpha");
    stf_meta(&f, "zeta", "alpha"); // a tensor's own name is never an alias
    stf_meta(&f, "dangling", "nobody");
    stf_save(&f, path);
    assert_int_equal(st_open(&file, path, &err), 0);
    assert_int_equal(st_count(file), 2);
    assert_string_equal(st_at(file, 0)->name, "zeta"); // order of the data
    assert_ptr_equal(st_find(file, "alpha"), st_at(file, 1));
    assert_ptr_equal(st_find(file, "gone"), st_at(file, 1));
    assert_ptr_equal(st_find(file, "zeta"), st_at(file, 0));
    assert_null(st_find(file, "dangling"));
    assert_null(st_find(file, "alph"));
    assert_null(st_find(file, "format"));
    assert_int_equal(st_alias_count(file), 1);
    assert_ptr_equal(st_alias_at(file, 0, &removed), st_at(file, 1));
    assert_string_equal(removed, "gone");
    assert_string_equal(st_metadata(file, "format"), "pt");
    assert_null(st_metadata(file, "alpha"));
    st_close(file);
}

static int set_up(void **state)
{
    (void)state;
    stf_tempdir(dir);
    snprintf(path, sizeof path, "%s/x.safetensors", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_header_length),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_mutated),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_kind_of_file),
        cmocka_unit_test(test_lookup_and_alias),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
