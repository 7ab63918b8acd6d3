// style: colours, where somebody sees them: on a terminal that has any, and where
// NO_COLOR (no-color.org) is not set. plain.
#ifndef ACTD_ACTCTL_STYLE_H
#define ACTD_ACTCTL_STYLE_H

#include <stdbool.h>

enum style { PLAIN, BOLD, DIM, GOOD, WARN, BAD, INVERSE, STYLES };

// Whether fd is such a terminal.
bool style_wanted(int fd);
// The escape sequence that begins the style, whatever came before it; "" when !on.
const char *style_code(bool on, enum style s);

#endif
