// place: where a checkpoint lies, and how its files are opened. plain.
//
// A checkpoint that an operator names while an arm moves is opened through a directory that
// was resolved once, /proc/self/fd/N, which tells nobody anything: sentences call it `shown`.
// Its files are then held to stricter rules, asked of the open descriptor, not of the path.
#ifndef ACTD_PLACE_H
#define ACTD_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "policy/policy.h"

#define PLACE_NAME 200 // bytes of a file's name in a sentence

struct place {
    const char *dir;   // where the files are
    const char *shown; // what sentences call it; NULL = dir
    bool strict;       // no symbolic link; root's or ours; written by no group, no others
};

struct place_file {
    int fd; // -1 = none
    struct stat stat;
    char shown[PLACE_NAME]; // "NAME/model.safetensors"
};

// Opens the regular file `file` of that directory. out->fd is the caller's to close; shown is
// filled whatever happens. 0 or -errno with err filled: -ENOENT, -EINVAL (refused), -ELOOP (a
// symbolic link where none is allowed), or what else open says.
int place_open(struct place_file *out, const struct place *p, const char *file,
               struct policy_error *err);

// The same for a path as it stands, with the lenient rules.
int place_open_path(struct place_file *out, const char *path, struct policy_error *err);

#endif
