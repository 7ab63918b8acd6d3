#include "policy/kernels/split.h"

#include <limits.h>

#include "policy/pool.h"

struct grid {
    int rows, cols;
};

static struct grid best_grid(int rows, int cols, int workers)
{
    struct grid best = {workers, 1};
    long least = LONG_MAX;
    for (int g = workers; g >= 1; g--) {
        long cost = (long)(workers / g) * rows + (long)g * cols;
        if (workers % g == 0 && cost < least) {
            least = cost;
            best = (struct grid){g, workers / g};
        }
    }
    return best;
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
    struct grid g = best_grid(rows, cols, workers);
    share(rows, 4, worker / g.cols, g.rows, &b.row0, &b.row1);
    share(cols, 16, worker % g.cols, g.cols, &b.col0, &b.col1);
    return b;
}
