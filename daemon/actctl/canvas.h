// canvas: a screen of cells. What is drawn outside of it is not there, so that one
// drawing fits every size; what is drawn has no control characters, whoever it came from.
// plain.
#ifndef ACTD_ACTCTL_CANVAS_H
#define ACTD_ACTCTL_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/actctl/style.h"

#define CANVAS_ROWS    100
#define CANVAS_COLUMNS 300

struct canvas {
    int rows, columns;
    uint32_t cell[CANVAS_ROWS][CANVAS_COLUMNS]; // code points of one column each
    uint8_t style[CANVAS_ROWS][CANVAS_COLUMNS];
};

// Blank, at most CANVAS_ROWS × CANVAS_COLUMNS, at least 1 × 1.
void canvas_clear(struct canvas *c, int rows, int columns);
// Draws from a column on; returns the column after it. Characters that are not one column
// wide, or not harmless, become '?'.
int canvas_text(struct canvas *c, int row, int column, enum style s, const char *format,
                ...) __attribute__((format(printf, 5, 6)));
// The same, but words go on in the next of `rows` rows; returns how many rows were used.
int canvas_wrap(struct canvas *c, int row, int rows, enum style s, const char *text);

#define CANVAS_BYTES ((size_t)CANVAS_ROWS * CANVAS_COLUMNS * 16)
// The whole as bytes for a terminal (ansi: cursor home first, each line cleared, none
// after the last) or for a file (lines without blanks at their ends). Returns how many;
// size >= CANVAS_BYTES.
size_t canvas_print(const struct canvas *c, bool ansi, bool colour, char *out,
                    size_t size);

#endif
