// table: see the header.
#include "daemon/table.h"

#include <stdarg.h>
#include <string.h>

void table_row(struct table *t, const char *format, ...)
{
    va_list ap;

    if (t->n == TABLE_ROWS)
        return;
    va_start(ap, format);
    vsnprintf(t->line[t->n], TABLE_LINE, format, ap);
    va_end(ap);
    for (char *p = t->line[t->n]; *p; p++)
        if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f)
            *p = '?';
    t->n++;
}

// Characters, not bytes, of the cell that starts at s.
static int cell_width(const char *s, size_t *bytes)
{
    int width = 0;

    *bytes = strcspn(s, "\t");
    for (size_t i = 0; i < *bytes; i++)
        width += ((unsigned char)s[i] & 0xc0) != 0x80;
    return width;
}

static void measure(const char *s, int *width)
{
    size_t n;

    for (int c = 0; c < TABLE_COLUMNS; c++, s += n + 1) {
        int w = cell_width(s, &n);
        if (w > width[c])
            width[c] = w;
        if (!s[n])
            return;
    }
}

static void print_row(const char *s, const int *width, FILE *f)
{
    size_t n;

    for (int c = 0; c < TABLE_COLUMNS; c++, s += n + 1) {
        int w = cell_width(s, &n);
        fprintf(f, "  %.*s", (int)n, s);
        if (!s[n])
            break;
        fprintf(f, "%*s", width[c] - w, "");
    }
    fputc('\n', f);
}

void table_print(struct table *t, FILE *f)
{
    int width[TABLE_COLUMNS] = {0};

    for (int i = 0; i < t->n; i++)
        measure(t->line[i], width);
    for (int i = 0; i < t->n; i++)
        print_row(t->line[i], width, f);
    t->n = 0;
}
