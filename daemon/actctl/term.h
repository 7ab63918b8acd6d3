// term: the terminal lent to a live view and given back as it was, however the view ends:
// a key, Ctrl-C, Ctrl-Z and back, a crash. One per process: a signal finds it in
// file-level state. plain.
#ifndef ACTD_ACTCTL_TERM_H
#define ACTD_ACTCTL_TERM_H

#include <stdbool.h>
#include <stddef.h>

int term_start(void); // 0 or -errno; standard input and output are one terminal
void term_end(void);  // may be called again
void term_size(int *rows, int *columns); // 24 × 80 where nobody knows; $LINES, $COLUMNS
// Waits for a key, a new size or `ms`; the key, 0 without one, -1 when the terminal is
// gone.
int term_key(int ms);
// Whole, through signals and partial writes. 0 or -errno.
int term_write(const char *data, size_t size);

#endif
