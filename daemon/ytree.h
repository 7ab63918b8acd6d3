// ytree: a small, plain subset of YAML as a tree in which every value knows its line and
// column. Mappings, lists and one-line scalars are all a robot needs; what YAML adds to
// them is what makes a file mean something else than it seems to say, and is refused:
// anchors, aliases, merge keys, tags, directives, several documents, block scalars,
// duplicate keys, a byte order mark, anything but UTF-8, more than 16 levels, more than
// 64 KiB. Scalars stay text: what `010` or `yes` means is decided by the table of keys.
// (libyaml owns the prefix yaml_.)
//
// All functions are plain.
#ifndef ACTD_YTREE_H
#define ACTD_YTREE_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config.h"

#define YTREE_MAX_BYTES (64 * 1024)
#define YTREE_MAX_DEPTH 16
#define YTREE_MAX_ENTRIES \
    256 // of one mapping or list: the search for duplicates is quadratic

enum ynode_kind { YNODE_SCALAR, YNODE_MAP, YNODE_LIST };

struct ynode { // owned by its tree
    enum ynode_kind kind;
    int line, column;         // of the value, from 1; columns count characters
    char *text;               // of a scalar, else NULL
    bool plain;               // a scalar written without quotes
    char *key;                // in a mapping, else NULL
    int key_line, key_column; // of the key
    int n;                    // children
    struct ynode *child, *last, *next;
};

struct ytree;

// Reads `file` whole; it must be a regular file that belongs to root or to the user who
// runs this and that not everybody may write. *out is the caller's to ytree_free. 0 or
// -errno with err filled; -EINVAL is "file:line:column: what is wrong; what to do".
int ytree_load(struct ytree **out, const char *file, struct config_error *err);
// Its text, under the same rules: n bytes and a 0, one byte more than allowed where it is larger
// than ytree_parse takes. *text is the caller's to free. 0 or -errno with err filled.
int ytree_read(char **text, size_t *n, const char *file, struct config_error *err);

// A tree from n bytes of memory; `file` is only what errors call it.
int ytree_parse(struct ytree **out, const char *file, const char *text, size_t n,
                struct config_error *err);
void ytree_free(struct ytree *t);

const struct ynode *ytree_root(const struct ytree *t); // never NULL
const char *ytree_file(const struct ytree *t);

// The value of `key` in a mapping, or NULL.
const struct ynode *ynode_get(const struct ynode *map, const char *key);

// "a mapping", "a list", "'0x10'": what stands there, for the end of a sentence.
const char *ynode_shown(const struct ynode *n, char *buf, size_t size);

// Fills err with "file:line:column: " and the sentence; control characters become '?'.
// Returns -EINVAL.
int ytree_refuse(const char *file, int line, int column, struct config_error *err,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
