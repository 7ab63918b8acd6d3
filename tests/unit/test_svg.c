// svg: text that may stand in a page, curves that hide nothing, axes with round numbers.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/svg.h"

static char *memory;
static size_t bytes;

static FILE *begin(void)
{
    FILE *f = open_memstream(&memory, &bytes);
    assert_non_null(f);
    return f;
}

static void escaped(const char *in, size_t n, const char *want)
{
    FILE *f = begin();
    svg_text_n(f, in, n);
    fclose(f);
    assert_string_equal(memory, want);
    free(memory);
}

static void text_is_escaped(void **state)
{
    (void)state;
    escaped("a<b>&\"'", 7, "a&lt;b&gt;&amp;&quot;&#39;");
    escaped("µ…", 5, "µ…");
    escaped("a\x01"
            "b\x7f",
            4,
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd");
    escaped("\xff\xfe", 2, "\xef\xbf\xbd\xef\xbf\xbd");
    escaped("\xc0\xaf", 2, "\xef\xbf\xbd\xef\xbf\xbd");                 // overlong '/'
    escaped("\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); // a surrogate
    escaped("\xe2\x82", 2, "\xef\xbf\xbd\xef\xbf\xbd");                 // cut short
    escaped("\xc2\x85", 2, "\xef\xbf\xbd");                             // C1
    escaped("\xf4\x90\x80\x80", 4, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    escaped("", 0, "");
}

// Whatever bytes come: no '<', and valid UTF-8.
static void no_bytes_break_out(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 2000; round++) {
        char in[40];
        for (size_t i = 0; i < sizeof in; i++) {
            seed = seed * 1664525 + 1013904223;
            in[i] = (char)(seed >> 24);
        }
        FILE *f = begin();
        svg_text_n(f, in, sizeof in);
        fclose(f);
        for (size_t i = 0; i < bytes; i++) {
            unsigned char c = (unsigned char)memory[i];
            assert_true(c != '<' && c != '>' && c != '"' && c != '\'');
            assert_true(c >= 0x20 || c == '\n' || c == '\t');
            if (c >= 0xc0) { // a lead byte and as many as it says
                size_t more = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
                for (size_t k = 0; k < more; k++)
                    assert_true(++i < bytes && ((unsigned char)memory[i] & 0xc0) == 0x80);
            } else {
                assert_true(c < 0x80);
            }
        }
        free(memory);
    }
}

static void durations_are_for_people(void **state)
{
    (void)state;
    const struct {
        double ns;
        const char *text;
    } row[] = {{0, "0 ns"},        {999, "999 ns"},     {1000, "1.00 µs"},
               {12345, "12.3 µs"}, {999999, "1.00 ms"}, {123456789, "123 ms"},
               {1.5e9, "1.50 s"},  {3600e9, "3600 s"}};
    char out[40];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        svg_duration(out, sizeof out, row[i].ns);
        assert_string_equal(out, row[i].text);
    }
}

static void ticks_are_round_and_inside(void **state)
{
    (void)state;
    const double range[][2] = {{0, 1},         {-3.2, 7.9},      {1e-6, 3e-6}, {0, 3600},
                               {-1.9, -1.899}, {100000, 100001}, {0, 1e12}};
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        for (int most = 1; most <= SVG_TICKS; most++) {
            double tick[SVG_TICKS];
            double lo = range[i][0], hi = range[i][1];
            int n = svg_ticks(lo, hi, most, tick);
            assert_in_range(n, 0, most);
            assert_true(most < 3 || n >= 1);
            for (int k = 0; k < n; k++)
                assert_true(tick[k] >= lo - (hi - lo) * 1e-6 &&
                            tick[k] <= hi + (hi - lo) * 1e-6);
            for (int k = 2; k < n; k++)
                assert_true(fabs((tick[k] - tick[k - 1]) - (tick[1] - tick[0])) <
                            (hi - lo) * 1e-6);
        }
    double tick[SVG_TICKS];
    assert_int_equal(svg_ticks(1, 1, 5, tick), 0);
    assert_int_equal(svg_ticks(0, NAN, 5, tick), 0);
    assert_int_equal(svg_ticks(0, INFINITY, 5, tick), 0);
    assert_int_equal(svg_ticks(0, 10, 5, tick), 3); // 0 5 10
    assert_true(tick[1] == 5);
}

static void ranges_are_never_empty(void **state)
{
    (void)state;
    const double at[] = {0, 1, -1, 1e-30, 1e30};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        struct svg_plot p = {.height = 100};
        svg_range(&p, at[i], at[i]);
        assert_true(p.y1 > p.y0);
        assert_true(p.y0 <= at[i] && at[i] <= p.y1);
    }
}

// One value among 100 000 that sticks out is in the drawing, at its column.
static void a_spike_is_seen(void **state)
{
    (void)state;
    struct svg_curve *c = calloc(1, sizeof *c);
    const int n = 100000, spike = 67891;
    for (int i = 0; i < n; i++)
        svg_add(c, svg_column(i, 0, n), i == spike ? 5.0 : 0.0);
    struct svg_plot p = {.x1 = n, .y0 = -1, .y1 = 6, .height = 70, .label = "x"};
    int col = svg_column(spike, 0, n);
    assert_true(c->bin[col].most > 4.9f && c->bin[col].least < 0.1f);
    assert_true(c->bin[col - 1].most < 0.1f && c->bin[col + 1].most < 0.1f);
    FILE *f = begin();
    svg_draw(f, &p, c, "a");
    fclose(f);
    char want[40];
    snprintf(want, sizeof want, "L%d %dV%dV%d", col, svg_y(&p, 0), svg_y(&p, 5),
             svg_y(&p, 0));
    assert_non_null(strstr(memory, want));
    assert_true(bytes < 20 * SVG_COLUMNS);
    free(memory);
    free(c);
}

// 32 joints of four curves each, all noise, for ever: 3.3 MB.
static void noise_has_its_bound(void **state)
{
    (void)state;
    struct svg_curve *c = calloc(1, sizeof *c);
    uint32_t seed = 9;
    for (int i = 0; i < 500000; i++) {
        seed = seed * 1664525 + 1013904223;
        svg_add(c, svg_column(i, 0, 500000), (double)(seed >> 8) / (1 << 24));
    }
    struct svg_plot p = {.x1 = 1, .y1 = 1, .height = 150, .label = "x"};
    FILE *f = begin();
    svg_draw(f, &p, c, "a");
    fclose(f);
    print_message("%zu bytes\n", bytes);
    assert_true(bytes < 26 * SVG_COLUMNS);
    free(memory);
    free(c);
}

static void a_break_is_not_bridged(void **state)
{
    (void)state;
    struct svg_curve *c = calloc(1, sizeof *c);
    struct svg_plot p = {.y1 = 1, .height = 10, .label = "x"};
    svg_add(c, 10, 0.5);
    svg_add(c, 11, 0.5);
    svg_add(c, 12, (double)NAN);
    svg_add(c, 500, 0.5);
    svg_add(c, 501, INFINITY);
    svg_add(c, 900, 0.5);
    FILE *f = begin();
    svg_draw(f, &p, c, "a");
    fclose(f);
    assert_string_equal(memory,
                        "<path class=\"a\" d=\"M10 50h1L11 50M500 50h1M900 50h1\"/>");
    free(memory);
    free(c);
}

static void nothing_draws_outside(void **state)
{
    (void)state;
    struct svg_plot p = {.x1 = 10, .y0 = 0, .y1 = 1, .height = 50, .label = "x"};
    assert_int_equal(svg_y(&p, 7), 0);
    assert_int_equal(svg_y(&p, -7), 500);
    assert_int_equal(svg_y(&p, (double)NAN), 500);
    assert_int_equal(svg_column(-1, 0, 10), 0);
    assert_int_equal(svg_column(11, 0, 10), SVG_COLUMNS - 1);
    assert_int_equal(svg_column((double)NAN, 0, 10), 0);
    FILE *f = begin();
    svg_level(f, &p, 2, "limit"); // not in view: not drawn
    fclose(f);
    assert_int_equal(bytes, 0);
    free(memory);
}

static void bars_keep_the_one_in_a_million(void **state)
{
    (void)state;
    struct svg_bars b = {.n = 2, .budget = 1e6};
    b.bar[0] = (struct svg_bar){1e4, 1.2e4, 1000000};
    b.bar[1] = (struct svg_bar){2e6, 2.5e6, 1};
    FILE *f = begin();
    svg_draw_bars(f, &b, "late <ticks>");
    fclose(f);
    assert_non_null(strstr(memory, "class=\"bar over\""));
    assert_non_null(strstr(memory, "height=\"12\"")); // 1.2 pixels at least
    assert_non_null(strstr(memory, "late &lt;ticks&gt;"));
    assert_non_null(strstr(memory, ">10 µs<"));
    assert_non_null(strstr(memory, ">1 ms<"));
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(no_bytes_break_out),
        cmocka_unit_test(durations_are_for_people),
        cmocka_unit_test(ticks_are_round_and_inside),
        cmocka_unit_test(ranges_are_never_empty),
        cmocka_unit_test(a_spike_is_seen),
        cmocka_unit_test(noise_has_its_bound),
        cmocka_unit_test(a_break_is_not_bridged),
        cmocka_unit_test(nothing_draws_outside),
        cmocka_unit_test(bars_keep_the_one_in_a_million),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
