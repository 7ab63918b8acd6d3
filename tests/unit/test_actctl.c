// actctl's parts that need no daemon: text against glibc's own decoder, bars, words.
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

#include "daemon/actctl/bar.c"
#include "daemon/actctl/text.c"
#include "daemon/actctl/words.c"
#include "daemon/ladder.h"

static uint64_t seed = 88172645463325252u;

static uint64_t any(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

// mbrtowc knows nothing of this code; it takes surrogates for wrong, as it should.
static void decode_as_glibc(const char *s)
{
    mbstate_t state = {0};
    wchar_t wide = 0;
    uint32_t cp;
    size_t n = text_decode(s, &cp), want = mbrtowc(&wide, s, strlen(s), &state);

    if (want == (size_t)-1 || want == (size_t)-2 ||
        wide > 0x10ffff) { // glibc goes on there
        assert_int_equal(cp, TEXT_BAD);
        assert_int_equal(n, 1);
    } else {
        assert_int_equal(cp, wide);
        assert_int_equal(n, want);
    }
}

static void test_decode(void **state)
{
    char s[6] = "";

    (void)state;
    assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
    for (int a = 1; a < 256; a++)
        for (int b = 0; b < 256; b++) {
            memcpy(s, (char[]){(char)a, (char)b, (char)0xbf, (char)0x80, 'x'}, 5);
            decode_as_glibc(s);
            s[2] = 'z';
            decode_as_glibc(s);
        }
    for (int i = 0; i < 300000; i++) { // lead bytes often
        for (int k = 0; k < 5; k++)
            s[k] = (char)(k ? 0x80 | (any() & (any() % 8 ? 0x3f : 0x7f))
                            : 0xc0 | (any() & 0x3f));
        decode_as_glibc(s);
    }
}

static bool
harmful(uint32_t cp) // by Unicode's categories Cc, Cf, Zl, Zp, in the parts we show
{
    static const uint32_t some[] = {
        0,      7,      9,      0x1b,   0x7f,   0x80,   0x9b,  0xad,    0x200b,  0x200e,
        0x202a, 0x202e, 0x2028, 0x2066, 0x2069, 0xfeff, 0x61c, 0xe0001, 0x110000};

    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        if (some[i] == cp)
            return true;
    return false;
}

static void test_safe(void **state)
{
    char long_one[3 * TEXT_LENGTH], bytes[64];
    const char *s;

    (void)state;
    for (uint32_t cp = 0; cp < 0x110001; cp++)
        if (harmful(cp))
            assert_false(text_harmless(cp));
    for (const char *p = " ~azAZ09\\"; *p; p++)
        assert_true(text_harmless((uint32_t)*p));
    assert_true(text_harmless(0xe9) && text_harmless(0x20ac) && text_harmless(0x4e2d));
    assert_string_equal(text_safe("a\x1b[2Jb\n\x7f"), "a\\x1b[2Jb\\x0a\\x7f");
    assert_string_equal(text_safe("\xc2\x9b\xe2\x80\xae\xf3\xa0\x80\x81"),
                        "\\u009b\\u202e\\U000e0001");
    assert_string_equal(text_safe("caf\xc3\xa9 \xff\xc3"), "caf\xc3\xa9 \\xff\\xc3");
    assert_string_equal(text_safe(NULL), "");
    memset(long_one, 0x1b, sizeof long_one - 1);
    long_one[sizeof long_one - 1] = 0;
    s = text_safe(long_one);
    assert_true(strlen(s) < TEXT_LENGTH && strlen(s) > TEXT_LENGTH - 16);
    assert_string_equal(s + strlen(s) - 3, "...");
    for (int i = 0; i < 100000; i++) {
        for (size_t k = 0; k < sizeof bytes - 1; k++)
            bytes[k] = (char)(any() | 1);
        bytes[sizeof bytes - 1] = 0;
        for (s = text_safe(bytes); *s;) {
            uint32_t cp;
            s += text_decode(s, &cp);
            assert_true(cp != TEXT_BAD && text_harmless(cp));
        }
    }
}

static void test_valid(void **state)
{
    char *s = text_valid("a\xff\x62\xe2\x82");

    (void)state;
    assert_string_equal(s, "a\xef\xbf\xbd\x62\xef\xbf\xbd\xef\xbf\xbd");
    free(s);
    s = text_valid("caf\xc3\xa9\n");
    assert_string_equal(s, "caf\xc3\xa9\n");
    free(s);
}

static void test_quantities(void **state)
{
    static const struct {
        uint64_t ns;
        const char *want;
    } times[] = {{0, "0.00 ms"},
                 {54321, "0.05 ms"},
                 {9990000, "9.99 ms"},
                 {9995001, "10.0 ms"},
                 {23100000, "23.1 ms"},
                 {999999999, "1000 ms"},
                 {1000000000, "1.00 s"},
                 {59999000000, "60.00 s"},
                 {185000000000, "3 min 05 s"},
                 {7500000000000, "2 h 05 min"},
                 {273600000000000, "3 d 04 h"},
                 {UINT64_MAX, "213503 d 23 h"}};

    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        assert_string_equal(text_ns(times[i].ns), times[i].want);
    assert_string_equal(text_bytes(0), "0 B");
    assert_string_equal(text_bytes(999), "999 B");
    assert_string_equal(text_bytes(999949), "999.9 kB");
    assert_string_equal(text_bytes(999950), "1.0 MB");
    assert_string_equal(text_bytes(UINT64_MAX), "18.4 EB");
}

static char *wrapped(int indent, int width, const char *s)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    text_wrap(f, indent, width, s);
    fclose(f);
    return text;
}

static void test_wrap(void **state)
{
    char *s = wrapped(2, 12, "  one two  three four a-word-too-long x");

    (void)state;
    assert_string_equal(s, "  one two\n  three four\n  a-word-too-long\n  x\n");
    free(s);
    s = wrapped(2, 10, "");
    assert_string_equal(s, "");
    free(s);
    s = wrapped(
        1, 8, "\xc3\xa9\xc3\xa9\xc3\xa9 \xc3\xa9\xc3\xa9\xc3\xa9"); // 3 columns, 6 bytes
    assert_string_equal(s, " \xc3\xa9\xc3\xa9\xc3\xa9 \xc3\xa9\xc3\xa9\xc3\xa9\n");
    free(s);
}

static void place_is(int width, double min, double max, double m, double w, double c,
                     const char *want)
{
    char bar[BAR_MAX + 1];

    bar_place(bar, width, min, max, m, w, c);
    assert_string_equal(bar, want);
}

static void test_bars(void **state)
{
    char bar[BAR_MAX + 1];

    (void)state;
    place_is(13, 0, 10, 0, 5, 10, "[o....w....#]");
    place_is(13, 0, 10, -1, NAN, 5, "[<....#.....]");
    place_is(13, 0, 10, NAN, 99, INFINITY, "[..........>]");
    place_is(13, 0, 10, 5, 5, 5, "[.....#.....]");
    place_is(5, 1, 1, 1, 1, 1, "[   ]");
    place_is(5, NAN, 1, 1, 1, 1, "[   ]");
    place_is(-7, 0, 1, 0, NAN, NAN, "[o]");
    place_is(6, 0, 1, 1e308, NAN, -1e308, "[<..>]");
    bar_chunk(bar, 13, 0, 100);
    assert_string_equal(bar, "[>----------]");
    bar_chunk(bar, 13, 50, 100);
    assert_string_equal(bar, "[=====>-----]");
    bar_chunk(bar, 13, 1e300, 100);
    assert_string_equal(bar, "[==========>]");
    bar_chunk(bar, 13, NAN, 100);
    assert_string_equal(bar, "[-----------]");
    bar_chunk(bar, 100000, 50, 100);
    assert_int_equal(strlen(bar), BAR_MAX);
    for (unsigned long long n = 0, before = 0; n < 1000000; n = n * 2 + 1) {
        int got = bar_log(20, n, 1000000);
        assert_true(got >= (int)before && got <= 20 && (got > 0) == (n > 0));
        before = (unsigned long long)got;
    }
    assert_int_equal(bar_log(20, 1000000, 1000000), 20);
    assert_int_equal(bar_log(20, 1, UINT64_MAX), 1);
    assert_int_equal(bar_log(0, 5, 5), 0);
}

// The daemon's own names are the twin; every value of the protocol has a sentence.
static void test_words(void **state)
{
    (void)state;
    for (unsigned i = 0; i < actd__v1__reason__descriptor.n_values; i++) {
        int v = actd__v1__reason__descriptor.values[i].value;
        assert_string_equal(words_reason(v), ladder_reason_name((enum ladder_reason)v));
        assert_true((*words_reason_means((Actd__V1__Reason)v) != 0) == (v != 0));
        assert_true(*words_reason_mend((Actd__V1__Reason)v) || v == 0 ||
                    v == REASON_OPERATOR);
    }
    for (unsigned i = 0; i < actd__v1__mode__descriptor.n_values; i++) {
        int v = actd__v1__mode__descriptor.values[i].value;
        if (v == 0)
            continue;
        assert_string_equal(words_mode(v), ladder_state_name((enum ladder_state)v));
        assert_true(*words_mode_means((Actd__V1__Mode)v));
        assert_true(words_follows((Actd__V1__Mode)v) ==
                    (v == LADDER_RUNNING || v == LADDER_HOLD));
    }
    assert_string_equal(words_limit(ACTD__V1__LIMIT__LIMIT_JERK), "JERK");
    assert_string_equal(words_enum(&actd__v1__swap_stage__descriptor, 3), "COMMITTING");
    assert_string_equal(words_enum(&actd__v1__finding__severity__descriptor, 2), "HURTS");
    assert_string_equal(words_enum(&actd__v1__result__descriptor, 6), "RATE_LIMITED");
    assert_string_equal(words_mode(-5), "UNKNOWN -5");
    assert_string_equal(words_mode_means((Actd__V1__Mode)99), "");
    assert_false(words_follows((Actd__V1__Mode)99));
    assert_string_equal(words_reason_mend((Actd__V1__Reason)-1), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode), cmocka_unit_test(test_safe),
        cmocka_unit_test(test_valid),  cmocka_unit_test(test_quantities),
        cmocka_unit_test(test_wrap),   cmocka_unit_test(test_bars),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
