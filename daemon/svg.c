// svg: see the header. The drawing is 1000 wide and 10 per pixel high, in whole numbers: what a
// curve takes of the page is 20 bytes a column at most.
#include "daemon/svg.h"

#include <math.h>
#include <string.h>

// ---- text ------------------------------------------------------------------------------------

// Bytes of the UTF-8 character at s, 0 when it is none.
static size_t utf8(const unsigned char *s, size_t n)
{
    size_t more = s[0] < 0x80                     ? 0
                  : (s[0] >= 0xc2 && s[0] < 0xe0) ? 1
                  : (s[0] & 0xf0) == 0xe0         ? 2
                  : (s[0] >= 0xf0 && s[0] < 0xf5) ? 3
                                                  : 9;
    if (more > 3 || more >= n)
        return 0;
    for (size_t i = 1; i <= more; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    // Overlong forms, surrogates, beyond U+10FFFF.
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))
        return 0;
    return more + 1;
}

static void character(FILE *f, const char *s, size_t bytes)
{
    switch (*s) {
    case '&':
        fputs("&amp;", f);
        return;
    case '<':
        fputs("&lt;", f);
        return;
    case '>':
        fputs("&gt;", f);
        return;
    case '"':
        fputs("&quot;", f);
        return;
    case '\'':
        fputs("&#39;", f);
        return;
    default:
        fwrite(s, 1, bytes, f);
    }
}

void svg_text_n(FILE *f, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t bytes = utf8((const unsigned char *)s + i, n - i);
        bool control =
            bytes == 1 && (unsigned char)s[i] < 0x20 && s[i] != '\n' && s[i] != '\t';
        bool odd = bytes == 2 && (unsigned char)s[i] == 0xc2 &&
                   (unsigned char)s[i + 1] < 0xa0; // C1
        if (bytes == 0 || control || odd || s[i] == 0x7f)
            fputs("\xef\xbf\xbd", f);
        else
            character(f, s + i, bytes);
        i += bytes ? bytes : 1;
    }
}

void svg_text(FILE *f, const char *s)
{
    svg_text_n(f, s, strlen(s));
}

void svg_duration(char *out, size_t size, double ns)
{
    static const char *const unit[] = {"ns", "\xc2\xb5s", "ms", "s"};
    int i = 0;
    while (i < 3 && ns >= 999.5) {
        ns /= 1000;
        i++;
    }
    snprintf(out, size,
             ns >= 99.5 || i == 0 ? "%.0f %s"
             : ns >= 9.95         ? "%.1f %s"
                                  : "%.2f %s",
             ns, unit[i]);
}

// ---- curves ----------------------------------------------------------------------------------

int svg_column(double at, double from, double to)
{
    double c = floor((at - from) / (to - from) * SVG_COLUMNS);
    return c >= SVG_COLUMNS ? SVG_COLUMNS - 1 : c > 0 ? (int)c : 0;
}

void svg_add(struct svg_curve *c, int column, double value)
{
    struct svg_bin *b = &c->bin[column];
    float v = (float)value;
    if (!isfinite(v)) {
        c->broken = true;
        return;
    }
    if (!b->any)
        *b = (struct svg_bin){v, v, v, v, true, c->broken};
    c->broken = false;
    b->least = v < b->least ? v : b->least;
    b->most = v > b->most ? v : b->most;
    b->last = v;
    c->least = c->any ? fmin(c->least, value) : value;
    c->most = c->any ? fmax(c->most, value) : value;
    c->any = true;
}

// ---- axes ------------------------------------------------------------------------------------

int svg_ticks(double lo, double hi, int most, double *tick)
{
    most = most > SVG_TICKS ? SVG_TICKS : most;
    if (!(hi > lo) || most < 1 || !isfinite(hi - lo))
        return 0;
    double step = pow(10, floor(log10((hi - lo) / most)));
    static const double round_number[] = {1, 2, 5, 10, 20, 50};
    int n = 0;
    for (size_t i = 0; i < sizeof round_number / sizeof *round_number; i++) {
        double s = step * round_number[i];
        double first = ceil(lo / s - 1e-9);
        n = (int)(floor(hi / s + 1e-9) - first) + 1;
        if (n > most)
            continue;
        for (int k = 0; k < n; k++) {
            double v = (first + k) * s;
            tick[k] = fabs(v) < s * 1e-9 ? 0 : v;
        }
        return n;
    }
    return 0;
}

void svg_range(struct svg_plot *p, double least, double most)
{
    double room = (most - least) * 0.06;
    double size = fmax(fabs(most), fabs(least));
    if (!(room > size * 1e-6))
        room = size > 0 ? size * 0.1 : 1;
    p->y0 = least - room;
    p->y1 = most + room;
}

int svg_y(const struct svg_plot *p, double y)
{
    double part = p->log_y ? log(fmax(y, p->y0) / p->y0) / log(p->y1 / p->y0)
                           : (y - p->y0) / (p->y1 - p->y0);
    part = part > 0 ? part < 1 ? part : 1 : 0; // NaN: 0
    return (int)lround((1 - part) * p->height * 10);
}

static double part_of_x(const struct svg_plot *p, double x)
{
    double part = (x - p->x0) / (p->x1 - p->x0);
    return part > 0 ? part < 1 ? part : 1 : 0;
}

static int y_ticks(const struct svg_plot *p, double *tick)
{
    int n = 0;
    if (!p->log_y)
        return svg_ticks(p->y0, p->y1, p->height / 28 + 1, tick);
    for (double d = pow(10, ceil(log10(p->y0) - 1e-9));
         d <= p->y1 * 1.0001 && n < SVG_TICKS; d *= 10)
        tick[n++] = d;
    return n;
}

// ---- plots -----------------------------------------------------------------------------------

void svg_begin(FILE *f, const struct svg_plot *p)
{
    double tick[SVG_TICKS], x[SVG_TICKS];
    int n = y_ticks(p, tick), nx = svg_ticks(p->x0, p->x1, 8, x);
    fprintf(f, "<div class=\"plot\"><div class=\"yl\" style=\"height:%dpx\">", p->height);
    for (int i = 0; i < n; i++)
        fprintf(f, "<span style=\"top:%.1f%%\">%.6g</span>",
                svg_y(p, tick[i]) * 10.0 / p->height, tick[i]);
    fprintf(f,
            "</div><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" ",
            SVG_COLUMNS, p->height * 10);
    fprintf(f, "style=\"height:%dpx\" aria-label=\"", p->height);
    svg_text(f, p->label);
    fputs("\"><path class=\"grid\" d=\"", f);
    for (int i = 0; i < n; i++)
        fprintf(f, "M0 %dH%d", svg_y(p, tick[i]), SVG_COLUMNS);
    for (int i = 0; i < nx; i++)
        fprintf(f, "M%.1f 0V%d", part_of_x(p, x[i]) * SVG_COLUMNS, p->height * 10);
    fputs("\"/>", f);
}

static void upright(FILE *f, const struct svg_plot *p, float to, int *at)
{
    int y = svg_y(p, to);
    if (y != *at)
        fprintf(f, "V%d", y);
    *at = y;
}

void svg_draw(FILE *f, const struct svg_plot *p, const struct svg_curve *c,
              const char *class)
{
    bool pen = false;
    if (!c->any)
        return;
    fprintf(f, "<path class=\"%s\" d=\"", class);
    for (int i = 0; i < SVG_COLUMNS; i++) {
        const struct svg_bin *b = &c->bin[i];
        if (!b->any)
            continue;
        int y = svg_y(p, b->first);
        fprintf(f, "%c%d %d", pen && !b->gap ? 'L' : 'M', i, y);
        upright(f, p, b->least, &y);
        upright(f, p, b->most, &y);
        upright(f, p, b->last, &y);
        if (!pen || b->gap)
            fputs("h1", f); // so that a single one is seen
        pen = true;
    }
    fputs("\"/>", f);
}

void svg_level(FILE *f, const struct svg_plot *p, double y, const char *class)
{
    if (y >= p->y0 && y <= p->y1)
        fprintf(f, "<path class=\"%s\" d=\"M0 %dH%d\"/>", class, svg_y(p, y),
                SVG_COLUMNS);
}

void svg_rug(FILE *f, const uint8_t *column, const struct svg_plot *p, bool top,
             const char *class)
{
    bool any = false;
    for (int i = 0; i < SVG_COLUMNS; i++) {
        if (!column[i])
            continue;
        if (!any)
            fprintf(f, "<path class=\"%s\" d=\"", class);
        any = true;
        fprintf(f, "M%d %dv60", i, top ? 0 : p->height * 10 - 60);
    }
    if (any)
        fputs("\"/>", f);
}

void svg_band(FILE *f, const struct svg_plot *p, double from, double to,
              const char *class, const char *title)
{
    double a = part_of_x(p, from) * SVG_COLUMNS, b = part_of_x(p, to) * SVG_COLUMNS;
    fprintf(f, "<rect class=\"%s\" x=\"%.2f\" width=\"%.2f\" height=\"%d\">", class, a,
            b - a > 1.5 ? b - a : 1.5, p->height * 10);
    if (title) {
        fputs("<title>", f);
        svg_text(f, title);
        fputs("</title>", f);
    }
    fputs("</rect>", f);
}

// The first and the last one stay inside.
static void x_label(FILE *f, double percent, double x, bool odd)
{
    const char *edge = percent < 3 ? " l" : percent > 97 ? " r" : "";
    fprintf(f, "<span class=\"%s%s\" style=\"left:%.2f%%\">%.10g s</span>",
            odd ? "odd" : "even", edge, percent, x);
}

void svg_end(FILE *f, const struct svg_plot *p, bool x_labels)
{
    double x[SVG_TICKS];
    int n = svg_ticks(p->x0, p->x1, 8, x);
    fputs("</svg>", f);
    fputs("<div class=\"xl\">", f);
    for (int i = 0; i < n && x_labels; i++)
        x_label(f, part_of_x(p, x[i]) * 100, x[i], i % 2);
    fputs("</div>", f);
    if (p->unit) {
        fputs("<div class=\"unit\">", f);
        svg_text(f, p->unit);
        fputs("</div>", f);
    }
    fputs("</div>", f);
}

// ---- bars ------------------------------------------------------------------------------------

// Width of the axis: whole decades around what there is.
static void decades(const struct svg_bars *b, double *lo, double *hi)
{
    double least = b->bar[0].from, most = b->bar[b->n - 1].to;
    if (b->budget > 0) {
        least = fmin(least, b->budget);
        most = fmax(most, b->budget);
    }
    *lo = pow(10, floor(log10(fmax(least, 1)) + 1e-9));
    *hi = pow(10, ceil(log10(fmax(most, 10)) - 1e-9));
    *lo = fmax(*lo, *hi / 1e5); // what is shorter stands at the left edge
    if (!(*hi > *lo))
        *hi = *lo * 10;
}

static double place(double v, double lo, double hi)
{
    return log(fmax(v, lo) / lo) / log(hi / lo) * SVG_COLUMNS;
}

static void decade_labels(FILE *f, double lo, double hi)
{
    char text[40];
    int every = log10(hi / lo) > 4.5 ? 2 : 1;
    fputs("<div class=\"xl\">", f);
    for (int n = 0; n <= (int)lround(log10(hi / lo)); n++) {
        double d = lo * pow(10, n);
        if (n % every)
            continue;
        svg_duration(text, sizeof text, d);
        char *dot = strchr(text, '.'); // "10.0 ms": round numbers
        if (dot)
            memmove(dot, strchr(dot, ' '), strlen(strchr(dot, ' ')) + 1);
        double percent = place(d, lo, hi) / 10;
        fprintf(f, "<span class=\"%s\" style=\"left:%.2f%%\">%s</span>",
                percent < 3    ? "l"
                : percent > 97 ? "r"
                               : "even",
                percent, text);
    }
    fputs("</div>", f);
}

void svg_draw_bars(FILE *f, const struct svg_bars *b, const char *label)
{
    double lo, hi, tallest = 0;
    const int height = 900;
    if (b->n < 1)
        return;
    decades(b, &lo, &hi);
    for (int i = 0; i < b->n; i++)
        tallest = fmax(tallest, (double)b->bar[i].count);
    fprintf(f,
            "<div class=\"bars\"><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
            "role=\"img\" aria-label=\"",
            SVG_COLUMNS, height);
    svg_text(f, label);
    fputs("\"><path class=\"grid\" d=\"", f);
    for (int i = 0; i <= (int)lround(log10(hi / lo)); i++)
        fprintf(f, "M%.1f 0V%d", place(lo * pow(10, i), lo, hi), height);
    fputs("\"/>", f);
    for (int i = 0; i < b->n; i++) {
        double from = place(b->bar[i].from, lo, hi), to = place(b->bar[i].to, lo, hi);
        double h = sqrt((double)b->bar[i].count / tallest) * (height - 20);
        if (b->bar[i].count > 0)
            fprintf(f,
                    "<rect class=\"bar%s\" x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" "
                    "height=\"%.0f\"/>",
                    b->budget > 0 && b->bar[i].from >= b->budget ? " over" : "", from,
                    height - fmax(h, 12), fmax(to - from - 1, 6), fmax(h, 12));
    }
    if (b->budget > 0)
        fprintf(f, "<path class=\"budget\" d=\"M%.1f 0V%d\"/>", place(b->budget, lo, hi),
                height);
    fputs("</svg>", f);
    decade_labels(f, lo, hi);
    fputs("</div>", f);
}
