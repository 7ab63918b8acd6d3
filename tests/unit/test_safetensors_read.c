// safetensors_read: every dtype to float32, values that are not finite, files that change.
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

static void expect(const char *what, int r, const char *text, const char *says)
{
    bool ok = says ? r == -EINVAL && strstr(text, says) : r == 0;

    if (!ok)
        fail_msg("%s: %d '%s', expected '%s'", what, r, text, says ? says : "(accepted)");
}

// Every dtype read back against values written by hand.
static void test_dtypes(void **state)
{
    static const unsigned char data[] = {
        0x00, 0x3c, 0x01, 0x00, 0xff, 0xfb, 0x01, 0x84, // F16 1, 2^-24, -65504, small normal
        0x80, 0x3f, 0x00, 0xc0, 0x01, 0x00, 0x7f, 0x7f, // BF16 1, -2, 2^-133, largest
        0,    0,    0,    0,    0,    0,    0xf8, 0x3f, 0,
        0,    0,    0,    0,    0,    0,    0xc0,       // F64 1.5, -2
        0xff, 0x7f,                                     // U8 255 127
        0xff, 0x80,                                     // I8 -1 -128
        0xff, 0xff, 0x00, 0x80,                         // U16 65535 32768
        0xff, 0xff, 0x00, 0x80,                         // I16 -1 -32768
        0xff, 0xff, 0xff, 0xff,                         // U32
        0xfe, 0xff, 0xff, 0xff,                         // I32 -2
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, // U64
        0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, // I64 -3
    };
    static const char header[] =
        "{\"a\":" T("F16", "[4]", "[0,8]") ",\"b\":" T("BF16", "[4]", "[8,16]") ",\"c\":" T("F64", "[2]", "[16,32]") ",\"d\":" T("U8", "[2]", "[32,34]") ",\"e\":" T(
            "I8", "[2]",
            "[34,36]") ",\"f\":" T("U16", "[2]",
                                   "[36,40]") ",\"g\":" T("I16", "[2]",
                                                          "[40,44]") ",\"h\":" T("U32",
                                                                                 "[1]",
                                                                                 "[44,"
                                                                                 "48]") ",\"i\":" T("I32",
                                                                                                    "[1]",
                                                                                                    "[48,52]") ",\"j\":" T("U64",
                                                                                                                           "[1]",
                                                                                                                           "[52,60]") ",\"k\":" T("I64",
                                                                                                                                                  "[1]",
                                                                                                                                                  "[60,68]") "}";
    static const float want[11][4] = {
        {1.0f, 0x1p-24f, -65504.0f, -0x1.004p-14f},
        {1.0f, -2.0f, 0x1p-133f, 0x1.fep127f},
        {1.5f, -2.0f},
        {255, 127},
        {-1, -128},
        {65535, 32768},
        {-1, -32768},
        {4294967296.0f},
        {-2},
        {18446744073709551616.0f},
        {-3},
    };
    struct policy_error err = {""};
    struct st_file *f;

    (void)state;
    stf_write_raw(path, header, sizeof header - 1, data, sizeof data);
    assert_int_equal(st_open(&f, path, &err), 0);
    for (size_t i = 0; i < 11; i++) {
        const struct st_tensor *t = st_at(f, i);
        float got[4];
        size_t n = (size_t)st_elements(t);

        assert_int_equal(st_read_f32(f, t, got, n, &err), 0);
        for (size_t k = 0; k < n; k++)
            if (got[k] != want[i][k])
                fail_msg("%s[%zu] = %a, expected %a", st_dtype_name(t->dtype), k,
                         (double)got[k], (double)want[i][k]);
    }
    st_close(f);
}

// All 65536 halves against the value their bits spell.
static void test_every_half(void **state)
{
    static uint16_t data[65536];
    static float got[65536];
    static const char header[] = "{\"a\":" T("F16", "[65536]", "[0,131072]") "}";
    struct policy_error err = {""};
    struct st_file *f;

    (void)state;
    for (unsigned i = 0; i < 65536; i++)
        data[i] = (uint16_t)i;
    stf_write_raw(path, header, sizeof header - 1, data, sizeof data);
    assert_int_equal(st_open(&f, path, &err), 0);
    assert_int_equal(st_read_f32_raw(f, st_at(f, 0), got, 65536, &err), 0);
    for (unsigned i = 0; i < 65536; i++) {
        unsigned e = i >> 10 & 31, m = i & 1023;
        double sign = i & 0x8000 ? -1.0 : 1.0;
        double v = e == 31 ? INFINITY
                   : e     ? (1 + m / 1024.0) * pow(2, (int)e - 15)
                           : m / 1024.0 * pow(2, -14);

        if (e == 31 && m)
            assert_true(isnan(got[i]));
        else
            assert_true((double)got[i] == sign * v);
    }
    st_close(f);
}

static void test_not_read(void **state)
{
    static const char header[] = "{\"a\":" T("BOOL", "[2]", "[0,2]") ",\"b\":" T(
        "F8_E4M3", "[1]", "[2,3]") ",\"c\":" T("F8_E5M2", "[1]",
                                               "[3,4]") ",\"d\":" T("F32", "[0]",
                                                                    "[4,4]") "}";
    struct policy_error err = {""};
    struct st_file *f;
    float got[2];

    (void)state;
    stf_write_raw(path, header, sizeof header - 1, "\1\0\1\1", 4);
    assert_int_equal(st_open(&f, path, &err), 0);
    expect("BOOL", st_read_f32(f, st_find(f, "a"), got, 2, &err), err.text,
           "save it as F32");
    expect("F8", st_read_f32(f, st_find(f, "b"), got, 1, &err), err.text,
           "save it as F32");
    expect("F8", st_read_f32(f, st_find(f, "c"), got, 1, &err), err.text,
           "save it as F32");
    assert_int_equal(st_read_f32(f, st_find(f, "d"), got, 0, &err), 0);
    expect("count", st_read_f32(f, st_find(f, "a"), got, 1, &err), err.text,
           "has 2 values");
    st_close(f);
}

static void test_not_finite(void **state)
{
    static const int four[] = {4};
    static const float bad[] = {NAN, INFINITY, -INFINITY};

    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (int at = 0; at < 4; at++) {
            float v[4] = {1, 2, 3, 4}, got[4];
            struct policy_error err = {""};
            struct st_file *file;
            struct stf f;

            v[at] = bad[i];
            stf_begin(&f);
            stf_add(&f, "model.w", STF_F32, 1, four, v);
            stf_save(&f, path);
            assert_int_equal(st_open(&file, path, &err), 0);
            expect("finite", st_read_f32(file, st_at(file, 0), got, 4, &err), err.text,
                   "'model.w'");
            assert_non_null(strstr(err.text, "not finite"));
            assert_int_equal(st_read_f32_raw(file, st_at(file, 0), got, 4, &err), 0);
            assert_true(i == 0 ? isnan(got[at]) : got[at] == bad[i]);
            st_close(file);
        }
}

enum change { CUT, GROWN, SECOND, NANOSECOND, GROWN_AND_DATED_BACK, REPLACED, N_CHANGES };

// What may happen to a file between st_open and a read. Replaced by another under its name, the
// open file is still the one that was checked.
static void change(enum change how)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    if (how == CUT)
        assert_int_equal(truncate(path, 1000), 0);
    if (how == GROWN || how == GROWN_AND_DATED_BACK)
        assert_int_equal(truncate(path, 300000), 0);
    if (how == SECOND)
        st.st_mtim.tv_sec--;
    if (how == NANOSECOND)
        st.st_mtim.tv_nsec ^= 1;
    if (how == SECOND || how == NANOSECOND || how == GROWN_AND_DATED_BACK)
        assert_int_equal(
            utimensat(AT_FDCWD, path, (struct timespec[2]){st.st_mtim, st.st_mtim}, 0),
            0);
    if (how == REPLACED)
        assert_int_equal(unlink(path), 0);
}

static void test_changed(void **state)
{
    static const int many[] = {50000}; // several blocks
    static float got[50000];

    (void)state;
    for (int how = CUT; how < N_CHANGES; how++)
        for (int store = STF_F32; store <= STF_F16; store++) {
            struct policy_error err = {""};
            struct st_file *file;
            struct stf f;

            stf_begin(&f);
            stf_add(&f, "w", (enum stf_store)store, 1, many, NULL);
            stf_save(&f, path);
            assert_int_equal(st_open(&file, path, &err), 0);
            assert_int_equal(st_read_f32(file, st_at(file, 0), got, 50000, &err), 0);
            assert_true(fabsf(got[49999] - stf_value("w", 49999)) < 1e-3f);
            change((enum change)how);
            assert_int_equal(st_read_f32(file, st_at(file, 0), got, 50000, &err),
                             how == REPLACED ? 0 : -ESTALE);
            if (how != REPLACED && !strstr(err.text, path))
                fail_msg("'%s'", err.text);
            st_close(file);
        }
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
        cmocka_unit_test(test_dtypes),   cmocka_unit_test(test_every_half),
        cmocka_unit_test(test_not_read), cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_changed),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
