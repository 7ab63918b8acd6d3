// decimal: the digits of printf, which is the twin here; it shares nothing with the code but the
// slow path's own calls.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/decimal.h"

#define VALUES 300000

static uint64_t seed = 88172645463325252u;

static uint64_t any(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static double unit(void) // [-1, 1)
{
    return (double)(int64_t)any() / 9223372036854775808.0;
}

static void strip(char *text)
{
    size_t n = strlen(text);

    if (strchr(text, '.') != NULL) {
        while (text[n - 1] == '0')
            n--;
        n -= text[n - 1] == '.';
        text[n] = 0;
    }
    if (strcmp(text, "-0") == 0)
        strcpy(text, "0");
}

// Writes where one byte too many or too few shows.
static void is(double v, const char *want)
{
    char got[DECIMAL_MAX + 8];
    size_t n;

    memset(got, '#', sizeof got);
    n = decimal_real(got, v);
    assert_true(n <= DECIMAL_MAX);
    for (size_t i = DECIMAL_MAX; i < sizeof got; i++)
        assert_int_equal(got[i], '#');
    got[n] = 0;
    assert_string_equal(got, want);
}

static void as_printf(double v)
{
    char want[400];

    snprintf(want, sizeof want, fabs(v) >= 1e9 ? "%.9g" : "%.9f", v);
    if (fabs(v) < 1e9)
        strip(want);
    is(v, want);
}

static void random_values(void **state)
{
    (void)state;
    for (int i = 0; i < VALUES; i++) {
        as_printf(unit() * pow(10, (double)(any() % 9)));
        as_printf(unit() * pow(10, -(double)(any() % 13)));
        as_printf((double)(int64_t)(any() % 2000000001) / 1e9 - 1); // 9 decimals typed in
    }
}

// Any bits that are finite: most are huge or tiny.
static void random_bits(void **state)
{
    (void)state;
    for (int i = 0; i < VALUES / 10; i++) {
        uint64_t bits = any();
        double v;

        memcpy(&v, &bits, sizeof v);
        if (isfinite(v))
            as_printf(v);
    }
}

// Exactly between two: 2^-10 has its last digit, a 5, in the tenth place. Half to even.
static void ties(void **state)
{
    (void)state;
    is(0.0009765625, "0.000976562");
    is(-0.0009765625, "-0.000976562");
    is(3 * 0.0009765625, "0.002929688");
    for (int k = 1; k < 100000; k += 2)
        as_printf(k / 1024.0);
    for (int k = 0; k < 10000; k++) { // and all around them
        double v = (k * 2 + 1) / 2e9;

        as_printf(v);
        as_printf(nextafter(v, 1));
        as_printf(nextafter(v, -1));
        as_printf(1234 + v);
    }
}

static void edges(void **state)
{
    (void)state;
    is(0, "0");
    is(-0.0, "0");
    is(-1e-12, "0");
    is(-4.9e-10, "0");
    is(-5.1e-10, "-0.000000001");
    is(1, "1");
    is(-1.5, "-1.5");
    is(10, "10");
    is(0.1, "0.1");
    is(0.9999999996, "1");
    is(-99.9999999997, "-100");
    is(999999999.9999999, "999999999.999999881");
    is(1e9, "1e+09");
    is(-1.25e300, "-1.25e+300");
    is(5e-324, "0");
    is(NAN, "nan");
    is(-NAN, "nan");
    is(INFINITY, "inf");
    is(-INFINITY, "-inf");
}

static void fixed_is(int64_t v, int decimals, const char *want)
{
    char got[DECIMAL_MAX + 1];

    got[decimal_fixed(got, v, decimals)] = 0;
    assert_string_equal(got, want);
}

static void fixed(void **state)
{
    (void)state;
    fixed_is(0, 3, "0");
    fixed_is(-1500, 3, "-1.5");
    fixed_is(-1, 9, "-0.000000001");
    fixed_is(1000000000, 9, "1");
    fixed_is(-17, 0, "-17");
    fixed_is(INT64_MIN, 9, "-9223372036.854775808");
    fixed_is(INT64_MAX, 0, "9223372036854775807");
    for (int i = 0; i < VALUES / 3; i++) {
        int64_t v = (int64_t)any() >> (any() % 60);
        uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
        char want[64];

        snprintf(want, sizeof want, "%s%llu.%06llu", v < 0 ? "-" : "",
                 (unsigned long long)(u / 1000000), (unsigned long long)(u % 1000000));
        strip(want);
        fixed_is(v, 6, want);
    }
}

static void unsigned_numbers(void **state)
{
    (void)state;
    for (int i = 0; i < VALUES / 3; i++) {
        uint64_t v = i == 0 ? 0 : i == 1 ? UINT64_MAX : any() >> (any() % 64);
        char want[32], got[DECIMAL_MAX + 1];

        snprintf(want, sizeof want, "%llu", (unsigned long long)v);
        got[decimal_u64(got, v)] = 0;
        assert_string_equal(got, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_values), cmocka_unit_test(random_bits),
        cmocka_unit_test(ties),          cmocka_unit_test(edges),
        cmocka_unit_test(fixed),         cmocka_unit_test(unsigned_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
