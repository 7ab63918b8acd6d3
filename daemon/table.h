// table: aligned columns for people. Rows are formatted with tabs between the cells; at
// the end each column is as wide as its widest cell. plain.
#ifndef ACTD_TABLE_H
#define ACTD_TABLE_H

#include <stdio.h>

// "1 row", "2 rows": the letter that a number asks for.
#define PLURAL(n) ((n) == 1 ? "" : "s")

#define TABLE_ROWS    80
#define TABLE_COLUMNS 16
#define TABLE_LINE    640 // bytes of one row

struct table {
    int n;
    char line[TABLE_ROWS][TABLE_LINE];
};

// Adds a row; one past the last is dropped. Control characters other than the tab become
// '?'.
void table_row(struct table *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Prints with two blanks before and between the columns, and empties the table.
void table_print(struct table *t, FILE *f);

#endif
