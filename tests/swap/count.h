// The table that preload/count.c fills: one row for each name that a thread has.
#ifndef SWAPS_COUNT_H
#define SWAPS_COUNT_H

#include <stdint.h>

#define COUNT_THREADS 64

enum count_kind { COUNT_MALLOC, COUNT_FREE, COUNT_MMAP, COUNT_KINDS };

struct count_row {
    int state; // 0 free, 1 being taken, 2 taken
    char name[16];
    uint64_t count[COUNT_KINDS];
    uint64_t from; // where the newest was asked for, for a debugger
};

struct count_table {
    struct count_row row[COUNT_THREADS];
};

#endif
