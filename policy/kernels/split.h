// split: how a matrix product is divided among the pool's workers. Fixed by the shape and
// the number of workers alone, never by timing: the same thread count gives the same
// bits.
#ifndef ACTD_KERNELS_SPLIT_H
#define ACTD_KERNELS_SPLIT_H

// Rows [row0, row1) and columns [col0, col1) of the result; may be empty.
struct split_block {
    int row0, row1, col0, col1;
};

// The block of (rows, cols) that `worker` of `workers` computes. The grid of blocks is
// the one that packs least twice: g_rows * g_cols = workers, each row block reads all
// weights and each column block all inputs, so g_cols * rows + g_rows * cols is made
// smallest. Edges fall on multiples of 4 rows and 16 columns, the register tile of
// OpenBLAS's AVX2 and AVX-512 sgemm.
struct split_block split_block(int rows, int cols, int worker, int workers);

#endif
