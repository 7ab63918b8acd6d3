// jscan: see the header.
#include "policy/jscan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/digest.h"
#include "policy/refuse.h"

// Bytes of the UTF-8 character at p, 0 if it is not one (overlong, surrogate, > U+10FFFF, cut).
static size_t utf8_length(const unsigned char *p, size_t n)
{
    static const unsigned least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = p[0] < 0x80   ? 1
                 : p[0] < 0xc2 ? 0
                 : p[0] < 0xe0 ? 2
                 : p[0] < 0xf0 ? 3
                 : p[0] < 0xf5 ? 4
                               : 0;
    unsigned code = 0;

    if (len <= 1)
        return len;
    if (len > n)
        return 0;
    code = p[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3fu);
    }
    if (code < least[len] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    return len;
}

// "-0" is an integer to jansson and a real number to others: two readers, two meanings.
static bool is_minus_zero(const char *p, size_t n)
{
    return n >= 2 && p[0] == '-' && p[1] == '0' &&
           (n == 2 || !strchr("0123456789.eE", p[2]));
}

const char *jscan_check(const char *text, size_t n, int max_depth)
{
    bool in_string = false;
    int depth = 0;
    size_t len;

    for (size_t i = 0; i < n; i += len) {
        char c = text[i];

        len = utf8_length((const unsigned char *)text + i, n - i);
        if (c == 0)
            return "it contains a NUL byte";
        if (len == 0)
            return "it is not valid UTF-8";
        if (in_string) {
            if (c == '\\' && i + 1 < n && (text[i + 1] == '"' || text[i + 1] == '\\'))
                len = 2;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if ((c == '{' || c == '[') && ++depth > max_depth) {
            return "it nests too deeply";
        } else if (c == '}' || c == ']') {
            depth--;
        } else if (is_minus_zero(text + i, n - i)) {
            return "it has the number -0";
        }
    }
    return NULL;
}

json_t *jscan_parse(const char *text, size_t n, int max_depth, const char *what,
                    struct policy_error *err)
{
    const char *wrong = jscan_check(text, n, max_depth);
    json_error_t why;
    json_t *root;

    if (wrong) {
        refuse(err, EINVAL, "%.200s is refused: %s", what, wrong);
        return NULL;
    }
    root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    if (!root) {
        refuse(err, EINVAL, "%.200s is not valid JSON: %s at line %d, column %d", what,
               why.text, why.line, why.column);
        return NULL;
    }
    if (!json_is_object(root)) {
        refuse(err, EINVAL, "%.200s is not a JSON object", what);
        json_decref(root);
        return NULL;
    }
    return root;
}

// Reads up to cap bytes. Returns the count, or -errno.
static ssize_t read_up_to(int fd, char *buf, size_t cap)
{
    size_t have = 0;

    while (have < cap) {
        ssize_t got = read(fd, buf + have, cap - have);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

static int load(json_t **out, const struct place_file *f, char *sha256,
                struct policy_error *err)
{
    const size_t cap = JSCAN_CONFIG_MAX + 1; // one more, to see that there is more
    char *buf = malloc(cap);
    ssize_t n;
    int r = -EINVAL;

    if (!buf)
        return refuse(err, ENOMEM, "no memory to read %.200s", f->shown);
    n = read_up_to(f->fd, buf, cap);
    if (n < 0)
        r = refuse(err, (int)-n, "cannot read %.200s: %s", f->shown, strerror((int)-n));
    else if (n > JSCAN_CONFIG_MAX)
        r = refuse(err, EINVAL,
                   "%.200s is larger than %d bytes: that is no LeRobot config", f->shown,
                   JSCAN_CONFIG_MAX);
    else if ((*out = jscan_parse(buf, (size_t)n, JSCAN_CONFIG_DEPTH, f->shown, err)))
        r = sha256 ? digest_of(buf, (size_t)n, sha256, err) : 0;
    free(buf);
    return r;
}

// Of a file that place_open tried to open with the result r.
static int load_opened(json_t **out, const struct place_file *f, int r, char *sha256,
                       struct policy_error *err)
{
    *out = NULL;
    if (r == 0) {
        r = load(out, f, sha256, err);
        close(f->fd);
    }
    if (r < 0) {
        json_decref(*out);
        *out = NULL;
    }
    return r;
}

int jscan_load(json_t **out, const char *path, struct policy_error *err)
{
    struct place_file f;
    int r = place_open_path(&f, path, err);

    return load_opened(out, &f, r, NULL, err);
}

int jscan_load_at(json_t **out, const struct place *place, const char *file, char *sha256,
                  struct policy_error *err)
{
    struct place_file f;
    int r = place_open(&f, place, file, err);

    return load_opened(out, &f, r, sha256, err);
}
