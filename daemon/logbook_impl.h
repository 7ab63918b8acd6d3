// What logbook.c and logbook_cursor.c share.
#ifndef ACTD_LOGBOOK_IMPL_H
#define ACTD_LOGBOOK_IMPL_H

#include "daemon/logbook.h"

struct logbook_file {
    char *path;
    struct mcap_reader *reader;
    const struct mcap_pair *fact; // of the metadata "actd"; the reader's
    int n_facts;
};

struct logbook {
    struct logbook_file *file; // in the order of their first messages
    int n;
    const struct logbook_file
        *facts; // whose facts are answered; NULL: the log is not ours
    struct mcap_error damage;
};

// The first damage is kept.
void logbook_note(struct logbook *b, const char *path, const char *what);

#endif
