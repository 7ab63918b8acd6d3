// text: see the header.
#include "daemon/actctl/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static char buffers[TEXT_COUNT][TEXT_LENGTH];

static char *next_buffer(void)
{
    static unsigned at;

    return buffers[at++ % TEXT_COUNT];
}

__attribute__((format(printf, 1, 2))) static const char *say(const char *format, ...)
{
    char *to = next_buffer();
    va_list ap;

    va_start(ap, format);
    vsnprintf(to, TEXT_LENGTH, format, ap);
    va_end(ap);
    return to;
}

size_t text_decode(const char *s, uint32_t *cp)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *u = (const unsigned char *)s;
    size_t n = u[0] < 0x80 ? 1 : u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
    uint32_t v = n == 1 ? u[0] : u[0] & (0x7fu >> n);

    *cp = TEXT_BAD;
    for (size_t i = 1; i < n; i++) {
        if ((u[i] & 0xc0) != 0x80) // also the 0 at the end
            return 1;
        v = v << 6 | (u[i] & 0x3f);
    }
    if (n == 0 || u[0] > 0xf4 || v < least[n] || v > 0x10ffff ||
        (v >= 0xd800 && v < 0xe000))
        return 1;
    *cp = v;
    return n;
}

bool text_harmless(uint32_t cp)
{
    if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0xad || cp > 0x10ffff)
        return false;
    if (cp == 0x61c || (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e))
        return false; // zero width, direction, line and paragraph ends
    if ((cp >= 0x2060 && cp <= 0x206f) || cp == 0xfeff || (cp >= 0xfff9 && cp <= 0xfffb))
        return false;
    return cp < 0xe0000 || cp > 0xe0fff; // tags
}

// One character made safe: its own bytes or its number. Bytes of s that it stands for.
static size_t one(const char *s, char out[16])
{
    uint32_t cp;
    size_t n = text_decode(s, &cp);

    if (cp == TEXT_BAD || (cp < 0x80 && !text_harmless(cp)))
        snprintf(out, 16, "\\x%02x", (unsigned)(unsigned char)*s);
    else if (!text_harmless(cp))
        snprintf(out, 16, cp < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)cp);
    else
        snprintf(out, 16, "%.*s", (int)n, s);
    return n;
}

const char *text_safe(const char *s)
{
    char *to = next_buffer(), piece[16];
    size_t used = 0;

    for (; s && *s;) {
        s += one(s, piece);
        size_t n = strlen(piece);
        if (used + n + 4 > TEXT_LENGTH) {
            memcpy(to + used, "...", 3);
            used += 3;
            break;
        }
        memcpy(to + used, piece, n);
        used += n;
    }
    to[used] = 0;
    return to;
}

void text_print(FILE *f, const char *s)
{
    char piece[16];

    while (s && *s) {
        if (*s == '\n') {
            fputc(*s++, f);
            continue;
        }
        s += one(s, piece);
        fputs(piece, f);
    }
}

static int count_columns(const char *s, size_t bytes)
{
    int n = 0;

    for (size_t i = 0; i < bytes; i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

void text_wrap(FILE *f, int indent, int width, const char *s)
{
    const char *p = text_safe(s);
    int at = 0;

    for (p += strspn(p, " "); *p; p += strspn(p, " ")) {
        size_t bytes = strcspn(p, " ");
        int wide = count_columns(p, bytes);
        if (at > 0 && at + 1 + wide > width) {
            fputc('\n', f);
            at = 0;
        }
        at += fprintf(f, "%*s", at ? 1 : indent, "") + wide;
        fprintf(f, "%.*s", (int)bytes, p);
        p += bytes;
    }
    if (at)
        fputc('\n', f);
}

char *text_valid(const char *s)
{
    char *to = malloc(3 * strlen(s) + 1), *p = to;

    while (to && *s) {
        uint32_t cp;
        size_t n = text_decode(s, &cp);
        memcpy(p, cp == TEXT_BAD ? "\xef\xbf\xbd" : s, cp == TEXT_BAD ? 3 : n);
        p += cp == TEXT_BAD ? 3 : n;
        s += n;
    }
    if (to)
        *p = 0;
    return to;
}

const char *text_ns(uint64_t ns)
{
    uint64_t s = ns / 1000000000u;
    double ms = (double)ns / 1e6;

    if (ns < 1000000000u)
        return say(ms < 9.995 ? "%.2f ms" : ms < 99.95 ? "%.1f ms" : "%.0f ms", ms);
    if (s < 60)
        return say("%.2f s", ms / 1e3);
    if (s < 3600)
        return say("%d min %02d s", (int)(s / 60), (int)(s % 60));
    if (s < 86400)
        return say("%d h %02d min", (int)(s / 3600), (int)(s / 60 % 60));
    return say("%llu d %02d h", (unsigned long long)(s / 86400), (int)(s / 3600 % 24));
}

const char *text_bytes(uint64_t bytes)
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double v = (double)bytes;
    int u = 0;

    for (; v >= 999.95 && u < 6; u++)
        v /= 1000;
    return u ? say("%.1f %s", v, unit[u]) : say("%.0f B", v);
}
