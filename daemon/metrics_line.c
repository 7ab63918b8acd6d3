// metrics_line: one line of the text format. A byte that is not UTF-8 or a quote left as it is
// makes a scraper refuse everything, so that labels are written with care.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/metrics_impl.h"

static void put(struct metrics_text *t, const char *s, size_t n)
{
    if (t->full || n >= t->size - t->n) { // the NUL too
        t->full = true;
        return;
    }
    memcpy(t->out + t->n, s, n);
    t->n += n;
}

static void put_text(struct metrics_text *t, const char *s)
{
    put(t, s, strlen(s));
}

// Bytes of the UTF-8 character at s (overlong forms and surrogates are none); 0 = not one.
static size_t character(const unsigned char *s)
{
    size_t n = s[0] < 0x80                    ? 1
               : s[0] >= 0xc2 && s[0] <= 0xdf ? 2
               : (s[0] & 0xf0) == 0xe0        ? 3
               : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
                                              : 0;

    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

static void put_escaped(struct metrics_text *t, const char *value)
{
    const unsigned char *s = (const unsigned char *)(value ? value : "");

    for (size_t n; *s; s += n) {
        n = character(s);
        if (*s == '\\')
            put_text(t, "\\\\");
        else if (*s == '"')
            put_text(t, "\\\"");
        else if (*s == '\n')
            put_text(t, "\\n");
        else if (n == 0 || *s < 0x20 || *s == 0x7f)
            put_text(t, "?");
        else
            put(t, (const char *)s, n);
        n = n ? n : 1;
    }
}

static void put_label(struct metrics_text *t, const char *name, const char *value)
{
    put_text(t, name);
    put_text(t, "=\"");
    put_escaped(t, value);
    put_text(t, "\"");
}

// Twelve digits: a nanosecond in a quarter of an hour, and counts to 10^12 that read as such.
static void put_number(struct metrics_text *t, double value)
{
    char text[40];

    if (isnan(value))
        put_text(t, "NaN");
    else if (isinf(value))
        put_text(t, value > 0 ? "+Inf" : "-Inf");
    else {
        snprintf(text, sizeof text,
                 fabs(value) < 9e15 && trunc(value) == value ? "%.0f" : "%.12g", value);
        put_text(t, text);
    }
}

void metrics_family(struct metrics_text *t, const char *name, const char *type,
                    const char *help)
{
    t->family = name;
    put_text(t, "# HELP ");
    put_text(t, name);
    put_text(t, " ");
    put_text(t, help);
    put_text(t, "\n# TYPE ");
    put_text(t, name);
    put_text(t, " ");
    put_text(t, type);
    put_text(t, "\n");
}

void metrics_sample(struct metrics_text *t, const char *ending,
                    const struct metrics_label *labels, double value)
{
    put_text(t, t->family);
    put_text(t, ending);
    put_text(t, "{");
    put_label(t, "instance", t->instance);
    for (int i = 0; labels && i < METRICS_LABELS && labels[i].name; i++) {
        put_text(t, ",");
        put_label(t, labels[i].name, labels[i].value);
    }
    put_text(t, "} ");
    put_number(t, value);
    put_text(t, "\n");
}

void metrics_value(struct metrics_text *t, const char *label, const char *of,
                   double value)
{
    const struct metrics_label labels[2] = {{label, of}, {NULL, NULL}};

    metrics_sample(t, "", labels, value);
}

void metrics_one(struct metrics_text *t, const char *name, const char *type,
                 const char *help, double value)
{
    metrics_family(t, name, type, help);
    metrics_sample(t, "", NULL, value);
}

const char *metrics_word(const ProtobufCEnumDescriptor *d, int value)
{
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(d, value);
    const char *after =
        v ? strchr(v->name, '_') : NULL; // behind "MODE", "REASON", "LIMIT"

    return after ? after + 1 : "unknown";
}

double metrics_seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}
