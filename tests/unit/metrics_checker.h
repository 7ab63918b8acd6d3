// metrics_checker: a strict reader of Prometheus' text format 0.0.4, written from the format's
// description and not from what metrics.c does. Fails the test at the first line that a scraper
// could stumble over, or that breaks the conventions for names.
#ifndef ACTD_TESTS_METRICS_CHECKER_H
#define ACTD_TESTS_METRICS_CHECKER_H

#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define CHECK_SAMPLES  8192
#define CHECK_FAMILIES 256

struct checked_sample {
    char series[640]; // name and labels as written, without le
    char name[96];
    double le, value; // le NAN = none
};

static struct checked_sample sample[CHECK_SAMPLES];
static int n_samples;
static char family[CHECK_FAMILIES][96], family_type[CHECK_FAMILIES][16];
static int n_families;

#define CHECK(condition, line)                            \
    do {                                                  \
        if (!(condition))                                 \
            fail_msg("%s in '%.300s'", #condition, line); \
    } while (0)

static inline size_t name_length(const char *s, bool colon)
{
    size_t n = 0;

    while (isalnum((unsigned char)s[n]) || s[n] == '_' || (colon && s[n] == ':'))
        n++;
    return n && !isdigit((unsigned char)s[0]) ? n : 0;
}

static inline double number(const char *s, const char *line)
{
    char *end;
    double v;

    if (strcmp(s, "NaN") == 0)
        return NAN;
    CHECK(isdigit((unsigned char)*s) || strchr("+-", *s), line); // no "nan", no "inf"
    v = strtod(s, &end);
    CHECK(*end == '\0', line);
    CHECK(!isinf(v) || strcmp(s + 1, "Inf") == 0, line);
    return v;
}

// Length of a UTF-8 character, by the table of RFC 3629.
static inline int utf8(const unsigned char *s)
{
    int n = *s < 0x80   ? 1
            : *s < 0xc2 ? 0
            : *s < 0xe0 ? 2
            : *s < 0xf0 ? 3
            : *s < 0xf5 ? 4
                        : 0;
    uint32_t c = n < 2 ? *s : *s & (0xffu >> (n + 1));

    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3fu);
    }
    if ((n == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) ||
        (n == 4 && (c < 0x10000 || c > 0x10ffff)))
        return 0;
    return n;
}

// A label at s: reads it, adds it to the series unless it is le. Returns what is behind it.
static inline const char *label(const char *s, struct checked_sample *out,
                                const char *line)
{
    size_t n = name_length(s, false);
    const char *value = s + n + 2;
    const char *p = value;

    CHECK(n > 0 && s[n] == '=' && s[n + 1] == '"', line);
    while (*p != '"') {
        int wide = utf8((const unsigned char *)p);
        CHECK(wide > 0 && (unsigned char)*p >= 0x20, line);
        if (*p == '\\') {
            p++;
            CHECK(*p && strchr("\\\"n", *p), line);
            wide = 1;
        }
        p += wide;
    }
    if (n == 2 && strncmp(s, "le", 2) == 0) {
        char le[64];
        snprintf(le, sizeof le, "%.*s", (int)(p - value), value);
        out->le = number(le, line);
    } else {
        size_t used = strlen(out->series);
        CHECK(used + (size_t)(p - s) + 2 < sizeof out->series, line);
        snprintf(out->series + used, sizeof out->series - used, "%.*s,", (int)(p + 1 - s),
                 s);
    }
    return p + 1;
}

// Does a sample's name belong to the family that was begun last?
static inline bool belongs(const char *name)
{
    const char *f = family[n_families - 1], *end = name + strlen(f);

    if (strncmp(name, f, strlen(f)) != 0)
        return false;
    if (strcmp(family_type[n_families - 1], "histogram") != 0)
        return *end == '\0';
    return strcmp(end, "_bucket") == 0 || strcmp(end, "_sum") == 0 ||
           strcmp(end, "_count") == 0;
}

static inline void check_sample(const char *line)
{
    struct checked_sample *s = &sample[n_samples];
    size_t n = name_length(line, true);
    const char *p = line + n;

    CHECK(n_families > 0 && n > 0 && n < sizeof s->name && n_samples < CHECK_SAMPLES,
          line);
    memset(s, 0, sizeof *s);
    s->le = NAN;
    snprintf(s->name, sizeof s->name, "%.*s", (int)n, line);
    snprintf(s->series, sizeof s->series, "%.*s{", (int)n, line);
    CHECK(belongs(s->name), line);
    if (*p == '{')
        do
            p = label(p + 1, s, line);
        while (*p == ',');
    CHECK(*p == '}' && p[1] == ' ' && p[2] != ' ', line);
    s->value = number(p + 2, line);
    for (int i = 0; i < n_samples; i++) // one value per series
        CHECK(strcmp(sample[i].series, s->series) != 0 ||
                  (!isnan(s->le) && sample[i].le < s->le),
              line);
    n_samples++;
}

static inline void check_comment(const char *line)
{
    bool help = strncmp(line, "# HELP ", 7) == 0;
    const char *name = line + 7, *rest;
    size_t n = name_length(name, true);

    CHECK(help || strncmp(line, "# TYPE ", 7) == 0, line);
    CHECK(n > 0 && n < 96 && name[n] == ' ', line);
    rest = name + n + 1;
    if (help) {
        CHECK(*rest && !strchr(rest, '\\'), line);
        for (int i = 0; i < n_families; i++)
            CHECK(strlen(family[i]) != n || strncmp(family[i], name, n) != 0, line);
        CHECK(n_families < CHECK_FAMILIES, line);
        CHECK(n_families == 0 || family_type[n_families - 1][0], line);
        snprintf(family[n_families], 96, "%.*s", (int)n, name);
        family_type[n_families++][0] = '\0';
        return;
    }
    CHECK(n_families > 0 && !family_type[n_families - 1][0],
          line); // directly after its HELP
    CHECK(strlen(family[n_families - 1]) == n &&
              strncmp(family[n_families - 1], name, n) == 0,
          line);
    CHECK(strcmp(rest, "counter") == 0 || strcmp(rest, "gauge") == 0 ||
              strcmp(rest, "histogram") == 0,
          line);
    // Counters end in _total, and nothing else does.
    CHECK((strcmp(rest, "counter") == 0) ==
              (n > 6 && strncmp(name + n - 6, "_total", 6) == 0),
          line);
    CHECK(strncmp(name, "actd_", 5) == 0, line);
    snprintf(family_type[n_families - 1], 16, "%s", rest);
}

// "NAME{labels," of a _bucket as that of another ending.
static inline double sibling(const struct checked_sample *s, const char *ending)
{
    char wanted[640];
    size_t n = strlen(s->name) - strlen("_bucket");

    snprintf(wanted, sizeof wanted, "%.*s%s%s", (int)n, s->name, ending,
             s->series + strlen(s->name));
    for (int i = 0; i < n_samples; i++)
        if (strcmp(sample[i].series, wanted) == 0)
            return sample[i].value;
    fail_msg("no %s", wanted);
    return NAN;
}

static inline void check_histograms(void)
{
    for (int i = 0; i < n_samples; i++) {
        const struct checked_sample *s = &sample[i];
        bool next = i + 1 < n_samples && strcmp(sample[i + 1].series, s->series) == 0;

        CHECK(!signbit(s->value) || !strstr(s->name, "_total"), s->series);
        if (isnan(s->le))
            continue;
        if (next) {
            CHECK(sample[i + 1].le > s->le, s->series);
            CHECK(sample[i + 1].value >= s->value, s->series);
        } else {
            CHECK(isinf(s->le), s->series);
            CHECK(sibling(s, "_count") == s->value, s->series);
            CHECK(sibling(s, "_sum") >= 0, s->series);
        }
    }
}

// Reads all of it.
static inline void check_text(const char *text)
{
    static char line[2048];

    n_samples = n_families = 0;
    CHECK(text[0] && text[strlen(text) - 1] == '\n', text);
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");

        CHECK(n > 0 && n < sizeof line, p);
        snprintf(line, sizeof line, "%.*s", (int)n, p);
        if (line[0] == '#')
            check_comment(line);
        else
            check_sample(line);
        p += n + 1;
    }
    check_histograms();
}

// The value of a series, labels in the order written, without le: "x{instance=\"a\"," .
static inline double value_of(const char *series)
{
    for (int i = 0; i < n_samples; i++)
        if (strcmp(sample[i].series, series) == 0 && isnan(sample[i].le))
            return sample[i].value;
    fail_msg("no series %s", series);
    return NAN;
}

#endif
