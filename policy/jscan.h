// jscan: JSON from a file that nobody vouches for, parsed by jansson. jansson recurses once per
// level of nesting and accepts what other parsers do not, so the bytes are looked at first.
// All functions are plain.
#ifndef ACTD_JSCAN_H
#define ACTD_JSCAN_H

#include <jansson.h>
#include <stddef.h>

#include "policy/place.h"

#define JSCAN_CONFIG_MAX \
    (1024 * 1024)             // bytes of a config.json; real ones have 2 to 10 KiB
#define JSCAN_CONFIG_DEPTH 32 // levels; real ones have 5

// NULL when the n bytes are UTF-8 without NUL, their objects and arrays nest at most max_depth
// deep and no integer is "-0"; else what is wrong, for the end of a sentence. Static text.
const char *jscan_check(const char *text, size_t n, int max_depth);

// Parses n bytes that must be one JSON object. Duplicate keys are refused at every level.
// The object is the caller's to json_decref. NULL with err filled; `what` names the source.
json_t *jscan_parse(const char *text, size_t n, int max_depth, const char *what,
                    struct policy_error *err);

// Reads and parses a regular file of at most JSCAN_CONFIG_MAX bytes. *out is the caller's to
// json_decref. 0, -ENOENT (err filled too), or another -errno.
int jscan_load(json_t **out, const char *path, struct policy_error *err);

// The same of a file of a checkpoint. sha256 (POLICY_DIGEST_HEX bytes, or NULL) is what its
// bytes hash to.
int jscan_load_at(json_t **out, const struct place *place, const char *file, char *sha256,
                  struct policy_error *err);

#endif
