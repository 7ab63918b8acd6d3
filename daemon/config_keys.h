// config_keys: the one table of keys of robot.yaml. For each: its section, type, unit,
// bounds, default, meaning, and where in struct config its value goes. The loader, the
// error messages, `actd init`, the example file and the man page follow this table; tests
// hold them together.
//
// All functions are plain.
#ifndef ACTD_CONFIG_KEYS_H
#define ACTD_CONFIG_KEYS_H

#include <stddef.h>

#include "daemon/config.h"
#include "daemon/ytree.h"

enum key_type {
    KEY_REAL,     // double
    KEY_INT,      // int
    KEY_BOOL,     // bool: true or false, nothing else
    KEY_WORD,     // an enum: index into words
    KEY_NAME,     // char[]: one line of text
    KEY_PLACE,    // char[]: letters, digits, '-', '_', '.': becomes part of a path
    KEY_PATH,     // char[]: file name
    KEY_ENDPOINT, // char[]: ipc:///path or tcp://127.0.0.1:port
    KEY_RANGE,    // double[2]: [min, max]
    KEY_NAMES,    // char[]: users, "@groups", ids; one per line
    KEY_LISTEN,   // char[]: 127.x.x.x:PORT or [::1]:PORT
};

enum config_scope { // what `offset` counts from
    SCOPE_CONFIG,   // struct config
    SCOPE_CAMERA,   // struct config_camera: the mapping cameras: NAME:
    SCOPE_JOINT,    // struct config_joint: the mapping joints: NAME:
};

struct config_key {
    const char *section; // "" for the top level, "control", "cameras", "joints"
    const char *name;
    enum key_type type;
    bool required;
    size_t offset, size;   // of the value in its scope's struct
    double lo, hi;         // bounds of numbers, inclusive
    const char *unit;      // "" = none
    const char *preset;    // default, as one would write it; NULL = none
    const char *otherwise; // what counts instead when there is neither value nor preset
    const char *const *words; // of KEY_WORD, NULL-terminated
    const char *doc;          // one sentence
};

struct config_section {
    const char *name; // "" first
    enum config_scope scope;
    const char *doc;
};

extern const struct config_key config_key[];
extern const int config_keys;
extern const struct config_section config_section[];
extern const int config_sections;

// Row of the table, or NULL.
const struct config_key *config_key_find(const char *section, const char *name);

// "control.rate_hz", "joints.NAME.velocity".
void config_key_path(const struct config_key *k, const char *name, char *out,
                     size_t size);

// "a number, Hz, 1 to 2000": what the key takes.
void config_key_expected(const struct config_key *k, char *out, size_t size);

// Parses and stores a value in its scope's struct. NULL, or what is wrong as the rest of
// the sentence that starts with the key's path, written into why.
const char *config_key_set(const struct config_key *k, void *scope,
                           const struct ynode *value, char *why, size_t size);
// Stores the preset; keys without one are left alone.
void config_key_preset(const struct config_key *k, void *scope);

// Strict scalars. Decimal only, no leading zeros, finite; the whole text must be the
// number.
bool config_real(const char *text, double *out);
bool config_int(const char *text, int *out);

// The word EDIT, alone or at the start ("EDIT_joint_1"): a value a person must fill in.
bool config_is_edit(const char *text);

// One name or a list of them (at most CONFIG_NAMES, none twice) into `out`, one per line;
// an empty list is "". false when one can be neither a login name, nor "@" and a group's,
// nor a number, or they do not fit. Whether they exist is for access to find out.
#define CONFIG_NAMES 32
bool config_names(const struct ynode *v, char *out, size_t size);

// Numeric address and port of this machine only: no name that could resolve to another.
bool config_listen(const char *text);

// After a refusal because of the word EDIT (": fill in"): appends every other value that
// still is one, by name; nothing to anything else.
void config_list_edits(const struct ytree *t, struct config_error *err);

// Letters inserted, deleted, changed or swapped with their neighbour to turn a into b.
int config_distance(const char *a, const char *b);

// For an unknown key: " did you mean 'control.rate_hz'?" or the keys there are. Static or
// buf.
const char *config_suggest(const char *section, const char *key, char *buf, size_t size);

// The same for names that lie stride bytes apart: "; did you mean 'x'?" or "".
const char *config_suggest_name(const char *first, size_t stride, int n, const char *name,
                                char *buf, size_t size);

#endif
