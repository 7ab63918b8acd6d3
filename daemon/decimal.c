#include "daemon/decimal.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PLACES   9
#define PLACES_E 1e9

static const uint32_t power[PLACES + 1] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};

size_t decimal_u64(char *to, uint64_t v)
{
    char digit[20];
    size_t n = 0;

    do {
        digit[n++] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    for (size_t i = 0; i < n; i++)
        to[i] = digit[n - 1 - i];
    return n;
}

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

// part: of 10^9. Nine digits, two at a time, then without the zeros at the end.
static size_t join(char *to, bool negative, uint64_t whole, uint32_t part)
{
    size_t n = 0;

    if (negative && (whole | part) != 0)
        to[n++] = '-';
    n += decimal_u64(to + n, whole);
    if (part == 0)
        return n;
    to[n++] = '.';
    for (int i = PLACES - 2; i > 0; i -= 2) {
        memcpy(to + n + i, pairs + 2 * (part % 100), 2);
        part /= 100;
    }
    to[n] = (char)('0' + part);
    n += PLACES;
    while (to[n - 1] == '0')
        n--;
    return n;
}

size_t decimal_fixed(char *to, int64_t v, int decimals)
{
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v, one = power[decimals];

    return join(to, v < 0, u / one, (uint32_t)(u % one) * power[PLACES - decimals]);
}

// printf, which knows all digits of a double, where they are needed.
static size_t slow(char *to, double v)
{
    char text[DECIMAL_MAX];
    int n;

    if (isnan(v))
        n = snprintf(text, sizeof text, "nan"); // whatever its sign
    else if (fabs(v) >= PLACES_E)
        n = snprintf(text, sizeof text, "%.9g", v);
    else {
        n = snprintf(text, sizeof text, "%.9f", v);
        while (text[n - 1] == '0')
            n--;
        if (text[n - 1] == '.')
            n--;
        if (n == 2 && memcmp(text, "-0", 2) == 0)
            n = snprintf(text, sizeof text, "0");
    }
    memcpy(to, text, (size_t)n);
    return (size_t)n;
}

// The fraction of a double is exact; times 1e9 it is wrong by less than 1e-7. Only what is
// closer than that to a half may round the other way: one number in 500 000, and every exact tie.
size_t decimal_real(char *to, double v)
{
    double a = fabs(v), scaled, rest;
    uint64_t whole;
    uint32_t part;

    if (!(a < PLACES_E))
        return slow(to, v);
    whole = (uint64_t)a;
    scaled = (a - (double)whole) * PLACES_E;
    part = (uint32_t)scaled;
    rest = scaled - part;
    if (fabs(rest - 0.5) < 1e-6)
        return slow(to, v);
    part += rest > 0.5;
    if (part == power[PLACES]) {
        part = 0;
        whole++;
    }
    return join(to, v < 0, whole, part);
}
