// What preload/disk.c is told.
#ifndef ACTD_TEST_RECORD_DISK_H
#define ACTD_TEST_RECORD_DISK_H

struct disk_orders {
    int sleep_ms; // of every write and sync
    int error;    // errno of them; 0 = none
};

#endif
