#include "policy/kernels/split.h"

#include <limits.h>

#include "policy/pool.h"

static int grid_rows(int rows, int cols, int workers)
{
    long best = LONG_MAX;
    int best_rows = workers;
    for (int g = workers; g >= 1; g--) {
        if (workers % g)
            continue;
        long cost = (long)(workers / g) * rows + (long)g * cols;
        if (cost < best) {
            best = cost;
            best_rows = g;
        }
    }
    return best_rows;
}

static void share(int n, int unit, int index, int parts, int *from, int *to)
{
    size_t begin, end;
    pool_share(((size_t)n + (size_t)unit - 1) / (size_t)unit, index, parts, &begin, &end);
    *from = (int)begin * unit < n ? (int)begin * unit : n;
    *to = (int)end * unit < n ? (int)end * unit : n;
}

struct split_block split_block(int rows, int cols, int worker, int workers)
{
    struct split_block b;
    int g_rows = grid_rows(rows, cols, workers), g_cols = workers / g_rows;
    share(rows, 4, worker / g_cols, g_rows, &b.row0, &b.row1);
    share(cols, 16, worker % g_cols, g_cols, &b.col0, &b.col1);
    return b;
}
