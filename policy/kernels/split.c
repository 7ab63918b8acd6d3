#include "policy/kernels/split.h"

#include <limits.h>

// A band's first worker, or first row of tiles: `of` things for `bands` bands.
static int band_start(int band, int bands, int of)
{
    return (int)((long)band * of / bands);
}

// Rows of tiles before the first `ahead` workers: one row for each band, which must not be empty,
// the rest in proportion.
static int rows_ahead(int tiles, int bands, int band, int ahead, int workers)
{
    return band + (int)((long)(tiles - bands) * ahead / workers);
}

// What the slowest worker takes, about, in tiles: those that it computes, and what it has to bring
// to its core first, where a row of tiles costs half a tile and a panel one and a quarter.
static long band_cost(int tiles, int cols, int bands, int in_band, int workers)
{
    long rows = 1 + ((long)(tiles - bands) * in_band + workers - 1) / workers;
    long columns = (cols + in_band - 1) / in_band;

    return 4 * rows * columns + 2 * rows + 5 * columns;
}

static int best_bands(int tiles, int cols, int workers)
{
    long least = LONG_MAX;
    int best = 1;

    for (int bands = 1; bands <= tiles && bands <= workers; bands++) {
        int few = workers / bands, many = (workers + bands - 1) / bands;
        long a = band_cost(tiles, cols, bands, few, workers);
        long b = band_cost(tiles, cols, bands, many, workers), cost = a > b ? a : b;
        if (many <= cols && cost < least) {
            least = cost;
            best = bands;
        }
    }
    return best;
}

static int no_more(int n, int most)
{
    return n < most ? n : most;
}

struct split_block split_tiles(int rows, int row_unit, int cols, int worker, int workers)
{
    int tiles = (rows + row_unit - 1) / row_unit, bands, band = 0, from, to;
    struct split_block b = {0, 0, 0, 0};

    if ((long)tiles * cols <= workers) { // one each, as long as there are any
        if (worker >= tiles * cols)
            return b;
        b.row0 = worker / cols * row_unit;
        b.row1 = no_more(b.row0 + row_unit, rows);
        b.col0 = worker % cols;
        b.col1 = b.col0 + 1;
        return b;
    }
    bands = best_bands(tiles, cols, workers);
    while (band_start(band + 1, bands, workers) <= worker)
        band++;
    from = band_start(band, bands, workers);
    to = band_start(band + 1, bands, workers);
    b.row0 = row_unit * rows_ahead(tiles, bands, band, from, workers);
    b.row1 = no_more(row_unit * rows_ahead(tiles, bands, band + 1, to, workers), rows);
    b.col0 = band_start(worker - from, to - from, cols);
    b.col1 = band_start(worker - from + 1, to - from, cols);
    return b;
}
