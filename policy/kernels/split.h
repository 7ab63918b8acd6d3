// split: how a matrix product is divided among the pool's workers. Fixed by the shape and
// the number of workers alone, never by timing: the same thread count gives the same
// bits.
#ifndef ACTD_KERNELS_SPLIT_H
#define ACTD_KERNELS_SPLIT_H

// Rows [row0, row1) and columns [col0, col1) of the result; may be empty.
struct split_block {
    int row0, row1, col0, col1;
};

// The block of (rows, cols) that `worker` of `workers` computes, in tiles of row_unit rows by one
// column (a panel of weights): edges fall on multiples of row_unit rows. Workers stand in bands of
// rows, as many as make the whole fastest; a band has rows in proportion to its workers and is
// shared out among them by columns, so a prime number of workers is as good as any. Nobody is idle
// when there are at least as many tiles as workers.
struct split_block split_tiles(int rows, int row_unit, int cols, int worker, int workers);

#endif
