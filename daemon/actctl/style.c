// style: see the header.
#include "daemon/actctl/style.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool style_wanted(int fd)
{
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(fd) && !(none && *none) && term && *term && strcmp(term, "dumb") != 0;
}

const char *style_code(bool on, enum style s)
{
    static const char *const code[STYLES] = {
        [PLAIN] = "\x1b[0m",     [BOLD] = "\x1b[0;1m",  [DIM] = "\x1b[0;2m",
        [GOOD] = "\x1b[0;32m",   [WARN] = "\x1b[0;33m", [BAD] = "\x1b[0;1;31m",
        [INVERSE] = "\x1b[0;7m",
    };

    return on ? code[s] : "";
}
