// svg: plots as text, inline in a page. A plot's drawing stretches to whatever width it is given
// (its lines keep their thickness), so its labels are HTML around it and stay legible on a small
// screen. Curves are kept as first, least, greatest and last value of each pixel column: whatever
// is drawn of an hour was there, and nothing that stuck out is missing. All plain.
#ifndef ACTD_SVG_H
#define ACTD_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SVG_COLUMNS 1000 // of a plot over time
#define SVG_TICKS   12

// Text as it may stand in a page, in an element or in quotes. What is not UTF-8, and control
// characters, become U+FFFD.
void svg_text(FILE *f, const char *s);
void svg_text_n(FILE *f, const char *s, size_t n);

// ---- curves ----------------------------------------------------------------------------------
struct svg_bin {
    float first, least, most, last;
    bool any;
    bool gap; // nothing connects it to the column before
};
struct svg_curve {
    struct svg_bin bin[SVG_COLUMNS];
    double least, most; // of all
    bool any, broken;   // broken: the next value begins a new piece
};
// Column of a moment, cut to 0 … SVG_COLUMNS - 1. from < to.
int svg_column(double at, double from, double to);
// Columns are visited in order. A value that is not finite breaks the curve.
void svg_add(struct svg_curve *c, int column, double value);

// ---- plots -----------------------------------------------------------------------------------
struct svg_plot {
    double x0, x1; // what is shown: seconds
    double y0, y1;
    bool log_y;        // y0 > 0
    int height;        // pixels
    const char *label; // what the plot is, for who can not see it
    const char *unit;  // of y
};
// Round numbers in lo … hi, at most SVG_TICKS; returns how many.
int svg_ticks(double lo, double hi, int most, double *tick);
// A little room around what is to be seen; never empty.
void svg_range(struct svg_plot *p, double least, double most);
// Where y is in the drawing, in tenths of a pixel from the top, cut to its edges.
int svg_y(const struct svg_plot *p, double y);

void svg_begin(FILE *f, const struct svg_plot *p); // frame, grid, labels of y
void svg_draw(FILE *f, const struct svg_plot *p, const struct svg_curve *c,
              const char *class);
// A horizontal line, with a name at its end unless that is NULL.
void svg_level(FILE *f, const struct svg_plot *p, double y, const char *class);
// Columns in which something happened, as ticks at the top or at the bottom.
void svg_rug(FILE *f, const uint8_t *column /*(SVG_COLUMNS)*/, const struct svg_plot *p,
             bool top, const char *class);
// From x to x, over the whole height; title is shown when pointed at.
void svg_band(FILE *f, const struct svg_plot *p, double from, double to,
              const char *class, const char *title);
void svg_end(FILE *f, const struct svg_plot *p, bool x_labels);

// ---- bars ------------------------------------------------------------------------------------
struct svg_bars {
    int n;
    struct svg_bar {
        double from, to; // > 0: the axis is logarithmic
        uint64_t count;
    } bar[160];
    double budget; // a mark; <= 0 = none
};
// Durations in nanoseconds; label as in svg_plot. The root of the count is drawn, so that one of a
// million is still seen.
void svg_draw_bars(FILE *f, const struct svg_bars *b, const char *label);
// "12.3 µs", for people; ns >= 0.
void svg_duration(char *out, size_t size, double ns);

#endif
