// canvas: see the header.
#include "daemon/actctl/canvas.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "daemon/actctl/text.h"

void canvas_clear(struct canvas *c, int rows, int columns)
{
    c->rows = rows < 1 ? 1 : rows > CANVAS_ROWS ? CANVAS_ROWS : rows;
    c->columns = columns < 1 ? 1 : columns > CANVAS_COLUMNS ? CANVAS_COLUMNS : columns;
    for (int r = 0; r < c->rows; r++)
        for (int k = 0; k < c->columns; k++)
            c->cell[r][k] = ' ';
    memset(c->style, PLAIN, sizeof c->style);
}

static void put(struct canvas *c, int row, int column, enum style s, uint32_t cp)
{
    if (row < 0 || row >= c->rows || column < 0 || column >= c->columns)
        return;
    if (cp == TEXT_BAD || !text_harmless(cp) || (cp > 0x7e && wcwidth((wchar_t)cp) != 1))
        cp = '?';
    c->cell[row][column] = cp;
    c->style[row][column] = (uint8_t)s;
}

static int put_bytes(struct canvas *c, int row, int column, enum style s, const char *p,
                     size_t n)
{
    for (const char *end = p + n; p < end; column++) {
        uint32_t cp;
        p += text_decode(p, &cp);
        put(c, row, column, s, cp);
    }
    return column;
}

int canvas_text(struct canvas *c, int row, int column, enum style s, const char *format,
                ...)
{
    char line[TEXT_LENGTH];
    va_list ap;

    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    return put_bytes(c, row, column, s, line, strlen(line));
}

static int wide(const char *p, size_t n)
{
    int w = 0;

    for (const char *end = p + n; p < end; w++) {
        uint32_t cp;
        p += text_decode(p, &cp);
    }
    return w;
}

int canvas_wrap(struct canvas *c, int row, int rows, enum style s, const char *text)
{
    int used = 0, at = 0;

    for (const char *p = text + strspn(text, " "); *p && used < rows;
         p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        int w = wide(p, n);
        if (at && at + 1 + w > c->columns) {
            at = 0;
            if (++used == rows) {
                put_bytes(c, row + used - 1, c->columns - 3, s, "...", 3);
                return used;
            }
        }
        at = put_bytes(c, row + used, at ? at + 1 : 0, s, p, n);
        p += n;
    }
    return at ? used + 1 : used;
}

static size_t encode(uint32_t cp, char *to)
{
    if (cp < 0x80) {
        to[0] = (char)cp;
        return 1;
    }
    int n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, cp >>= 6)
        to[i] = (char)(0x80 | (cp & 0x3f));
    to[0] = (char)((0xf00u >> n & 0xf0) | cp);
    return (size_t)n;
}

static size_t add(char *to, const char *s)
{
    size_t n = 0;

    for (; s[n]; n++)
        to[n] = s[n];
    return n;
}

static size_t print_row(const struct canvas *c, int r, bool colour, char *out)
{
    size_t used = 0;
    int style = PLAIN, end = c->columns;

    while (end > 0 && c->cell[r][end - 1] == ' ' && c->style[r][end - 1] != INVERSE)
        end--;
    for (int k = 0; k < end; k++) {
        if (colour && c->style[r][k] != style) {
            style = c->style[r][k];
            used += add(out + used, style_code(true, (enum style)style));
        }
        used += encode(c->cell[r][k], out + used);
    }
    if (style != PLAIN)
        used += add(out + used, style_code(true, PLAIN));
    return used;
}

size_t canvas_print(const struct canvas *c, bool ansi, bool colour, char *out,
                    size_t size)
{
    size_t used = 0;

    if (size < CANVAS_BYTES)
        return 0;
    if (ansi)
        used = add(out, "\x1b[H");
    for (int r = 0; r < c->rows; r++) {
        used += print_row(c, r, colour, out + used);
        if (ansi)
            used += add(out + used, "\x1b[K");
        if (!ansi || r < c->rows - 1)
            out[used++] = '\n'; // the terminal's output is not raw: it returns by itself
    }
    return used;
}
