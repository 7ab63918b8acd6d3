// log_tool_text: JSON's strings, and bytes that are none.
#include <string.h>

#include "daemon/log_tool_impl.h"

// Length of the UTF-8 sequence at s, 0: it is none.
static size_t sequence(const unsigned char *s, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = *s < 0x80       ? 1
                    : *s >> 5 == 6  ? 2
                    : *s >> 4 == 14 ? 3
                    : *s >> 3 == 30 ? 4
                                    : 0;
    uint32_t code;

    if (length < 2 || length > n)
        return length == 1;
    code = *s & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (s[i] >> 6 != 2)
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    return code < least[length] || code > 0x10ffff || code >> 11 == 0x1b ? 0 : length;
}

void log_print_string(FILE *f, const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;

    fputc('"', f);
    for (size_t i = 0, length; i < n; i += length) {
        length = sequence(s + i, n - i);
        if (length == 0) {
            fputs("\\ufffd", f);
            length = 1;
        } else if (s[i] == '"' || s[i] == '\\') {
            fprintf(f, "\\%c", s[i]);
        } else if (s[i] < 0x20 || s[i] == 0x7f) {
            fprintf(f, "\\u%04x", s[i]);
        } else {
            fwrite(s + i, 1, length, f);
        }
    }
    fputc('"', f);
}

void log_print_base64(FILE *f, const void *data, size_t size)
{
    static const char digit[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = data;

    fputc('"', f);
    for (size_t i = 0; i < size; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16;
        if (i + 1 < size)
            v |= (uint32_t)p[i + 1] << 8;
        if (i + 2 < size)
            v |= p[i + 2];
        fputc(digit[v >> 18], f);
        fputc(digit[v >> 12 & 63], f);
        fputc(i + 1 < size ? digit[v >> 6 & 63] : '=', f);
        fputc(i + 2 < size ? digit[v & 63] : '=', f);
    }
    fputc('"', f);
}
