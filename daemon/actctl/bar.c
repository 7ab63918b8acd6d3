// bar: see the header.
#include "daemon/actctl/bar.h"

#include <math.h>
#include <string.h>

static int begin(char *to, int width, char fill)
{
    if (width > BAR_MAX)
        width = BAR_MAX;
    if (width < 3)
        width = 3;
    memset(to, fill, (size_t)width);
    to[0] = '[';
    to[width - 1] = ']';
    to[width] = 0;
    return width - 2;
}

static void mark(char *to, int inner, double min, double max, double v, char sign)
{
    double at = (v - min) / (max - min);

    if (!isfinite(at))
        return;
    if (at < 0)
        to[1] = '<';
    else if (at > 1)
        to[inner] = '>';
    else
        to[1 + (int)(at * (inner - 1) + 0.5)] = sign;
}

void bar_place(char *to, int width, double min, double max, double measured,
               double wanted, double commanded)
{
    int known = max > min;
    int inner = begin(to, width, known ? '.' : ' ');

    if (!known)
        return;
    mark(to, inner, min, max, measured, 'o');
    mark(to, inner, min, max, wanted, 'w');
    mark(to, inner, min, max, commanded, '#');
}

void bar_chunk(char *to, int width, double row, double rows)
{
    int inner = begin(to, width, '-'), at;

    if (!(rows > 0) || !isfinite(row))
        return;
    row = row < 0 ? 0 : row > rows ? rows : row;
    at = (int)(row / rows * (inner - 1) + 0.5);
    memset(to + 1, '=', (size_t)at);
    to[1 + at] = '>';
}

int bar_log(int width, unsigned long long count, unsigned long long largest)
{
    int n;

    if (count == 0 || width <= 0)
        return 0;
    n = (int)(width * log1p((double)count) / log1p((double)largest) + 0.5);
    return n < 1 ? 1 : n > width ? width : n;
}
