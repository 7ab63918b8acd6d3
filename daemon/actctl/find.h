// find: which daemon's control socket is meant. In this order: what --socket names, what
// -i names, what $ACTD_SOCKET names, the only one there is. plain.
#ifndef ACTD_ACTCTL_FIND_H
#define ACTD_ACTCTL_FIND_H

#include <stdbool.h>
#include <stddef.h>

#define FIND_PATH      512
#define FIND_WHY       1024
#define FIND_INSTANCES 32
#define FIND_ROOTS     2

struct find {
    const char *socket, *instance; // as asked, NULL = not
    const char *env;               // $ACTD_SOCKET, NULL = not set
    const char
        *root[FIND_ROOTS]; // directories with a directory per instance; NULL = none
};

// From the command line's words and the environment; runtime must have FIND_PATH bytes,
// is written and used by *f.
void find_defaults(struct find *f, const char *socket, const char *instance,
                   char *runtime);

// Whether a path was named, rather than an instance or nothing.
bool find_given(const struct find *f);
// 0 and the path, or an enum ctl_exit and a sentence in why.
int find_socket(const struct find *f, char path[FIND_PATH], char why[FIND_WHY]);

// Why connecting to path failed with this error: an enum ctl_exit and a sentence with the
// remedy. given: somebody named this very path, so that no instance and no unit behind it
// is known.
int find_explain(const char *path, bool given, int error, char *why, size_t size);

#endif
