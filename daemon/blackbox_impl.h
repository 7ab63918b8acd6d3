// blackbox, between its own files and for its tests. See blackbox.h.
#ifndef ACTD_BLACKBOX_IMPL_H
#define ACTD_BLACKBOX_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/blackbox.h"

struct blackbox {
    size_t words;      // of one record, 64 bits each
    uint64_t capacity; // records
    int joints, cameras;
    struct blackbox_record *staging; // the loop fills it
    _Atomic uint64_t *ring;          // (capacity, words); record n is at n % capacity
    void *memory;                    // the same, as free takes it
    _Alignas(64) _Atomic uint64_t count;
    // A fault that waits for the writer: number of its record << 8 | reason; 0 = none.
    _Alignas(64) _Atomic uint64_t pending;
    _Atomic uint64_t superseded;
};

static inline uint64_t blackbox_fault_number(uint64_t pending)
{
    return pending >> 8;
}

static inline enum ladder_reason blackbox_fault_reason(uint64_t pending)
{
    return (enum ladder_reason)(pending & 0xff);
}

// ---- blackbox_csv.c: pure -------------------------------------------------------------------

#define BLACKBOX_ROW_MAX \
    16384 // bytes; 32 joints, 16 cameras and every name there is: 11 k

struct blackbox_text { // what does not fit is left out
    char *data;
    size_t n, size;
};

struct blackbox_columns {
    int joints, cameras;
    const char *const *joint, *const *camera; // names
};

void blackbox_csv_header(struct blackbox_text *t, const struct blackbox_columns *c);
// zero_ns: when time_s is 0.
void blackbox_csv_row(struct blackbox_text *t, const struct blackbox_columns *c,
                      const struct blackbox_record *r, ns_t zero_ns);
// Of one LADDER_C_ bit, without the prefix; NULL when the ladder has no such bit.
const char *blackbox_condition_name(uint64_t bit);

// ---- blackbox_file.c: plain -----------------------------------------------------------------

#define BLACKBOX_NAME 256

// Opens the directory, made with its parents where it is missing (0750). A descriptor or -errno.
int blackbox_file_directory(const char *path);
// The name for a fault at this time that is not taken yet. 0 or -errno.
int blackbox_file_name(char *out /*(BLACKBOX_NAME)*/, int dir, const char *instance,
                       ns_t wall_ns, enum ladder_reason reason);
// Opens NAME.part to write. A descriptor or -errno.
int blackbox_file_open(int dir, const char *name);
// Closes it; rc is how the writing went, and when it went well the file gets its name, otherwise
// it is removed. rc or -errno.
int blackbox_file_close(int dir, const char *name, int fd, int rc);
// Removes this instance's files beyond keep, oldest first, and parts of files that were left,
// but never `spare`. 0 or -errno.
int blackbox_file_prune(int dir, const char *instance, int keep, const char *spare);
// One sentence with the remedy: "black box: DIRECTORY: cannot WHAT: …".
void blackbox_file_say(char *out, size_t size, const char *directory, const char *what,
                       int rc);

// ---- blackbox_writer.c: plain ---------------------------------------------------------------

struct blackbox_dump {
    enum ladder_reason reason; // of the first fault
    ns_t zero_ns;              // when the fault was, and
    ns_t wall_ns;              // the same for a person
    uint64_t rows;             // copied
};

struct blackbox_writer {
    struct blackbox *ring;
    char *directory, *instance;
    char *joint[ACTD_MAX_JOINTS], *camera[POLICY_MAX_CAMERAS];
    struct blackbox_columns columns;
    int keep;
    ssize_t (*write)(int fd, const void *data, size_t n);
    size_t bytes;        // of one record
    unsigned char *copy; // (ring->capacity, bytes)
    struct blackbox_text text;
    ns_t paid_ns; // files written so far are paid for until then, at one a second
    pthread_t thread;
    _Atomic bool stop, done;
    _Atomic int phase; // enum, in blackbox_writer.c
    pthread_mutex_t lock;
    struct blackbox_counts counts; // under lock
};

// All but the thread, for tests: make, look for a fault, free.
int blackbox_writer_make(struct blackbox_writer **out, struct blackbox *b,
                         const struct blackbox_writer_config *cfg);
// Writes a file when a fault waits and the rate allows it, or `all`. False when
// blackbox_writer_stop gave it up meanwhile: w is then the caller's to free.
bool blackbox_writer_poll(struct blackbox_writer *w, ns_t now_ns, bool all);
void blackbox_writer_free(struct blackbox_writer *w);

#endif
