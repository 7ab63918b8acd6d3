// config_value: what the text of a scalar means. Strict on purpose: YAML 1.1 reads 010 as
// 8, 1:30 as 90, `no` as false and .nan as a number; here each of them is an error.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config_keys.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Moves over [+-]digits; true when there was at least one digit and no leading zero.
static bool skip_digits(const char **s)
{
    const char *start = *s;

    while (is_digit(**s))
        (*s)++;
    return *s > start && (*s == start + 1 || *start != '0');
}

// [+-] digits [. digits] [e [+-] digits]
bool config_real(const char *text, double *out)
{
    const char *s = text + (*text == '+' || *text == '-');
    char *end;

    if (!skip_digits(&s))
        return false;
    if (*s == '.') {
        s++;
        if (!is_digit(*s))
            return false;
        while (is_digit(*s))
            s++;
    }
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '+' || *s == '-';
        if (!is_digit(*s))
            return false;
        while (is_digit(*s))
            s++;
    }
    if (*s)
        return false;
    *out = strtod(text, &end);
    return !*end && isfinite(*out);
}

bool config_int(const char *text, int *out)
{
    const char *s = text + (*text == '+' || *text == '-');
    char *end;
    long v;

    if (!skip_digits(&s) || *s)
        return false;
    errno = 0;
    v = strtol(text, &end, 10);
    if (errno || *end || v < -1000000000 || v > 1000000000)
        return false;
    *out = (int)v;
    return true;
}

bool config_is_edit(const char *text)
{
    return strncmp(text, "EDIT", 4) == 0 && !(text[4] >= 'A' && text[4] <= 'Z') &&
           !(text[4] >= 'a' && text[4] <= 'z');
}

// ---- what a key takes -----------------------------------------------------------------

static void expected_words(const struct config_key *k, char *out, size_t size)
{
    size_t at = 0;

    for (int i = 0; k->words[i] && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s",
                               i == 0            ? ""
                               : k->words[i + 1] ? ", "
                                                 : " or ",
                               k->words[i]);
}

void config_key_expected(const struct config_key *k, char *out, size_t size)
{
    const char *comma = *k->unit ? ", " : "";

    switch (k->type) {
    case KEY_REAL:
        snprintf(out, size, "a number%s%s, %g to %g", comma, k->unit, k->lo, k->hi);
        return;
    case KEY_INT:
        snprintf(out, size, "a whole number%s%s, %.0f to %.0f", comma, k->unit, k->lo,
                 k->hi);
        return;
    case KEY_BOOL:
        snprintf(out, size, "true or false");
        return;
    case KEY_WORD:
        expected_words(k, out, size);
        return;
    case KEY_NAME:
        snprintf(out, size, "a name of 1 to %zu bytes", k->size - 1);
        return;
    case KEY_PLACE:
        snprintf(out, size, "a name of letters, digits, '-', '_' and '.', 1 to %zu bytes",
                 k->size - 1);
        return;
    case KEY_PATH:
        snprintf(out, size, "a path of 1 to %zu bytes", k->size - 1);
        return;
    case KEY_ENDPOINT:
        snprintf(out, size, "ipc:///path of at most 107 bytes, or tcp://127.0.0.1:port");
        return;
    case KEY_RANGE:
        snprintf(out, size, "[min, max], %s, both %g to %g, min below max", k->unit,
                 k->lo, k->hi);
        return;
    case KEY_NAMES:
        snprintf(out, size, "a user, a \"@group\", an id, or a list of them");
        return;
    case KEY_LISTEN:
        snprintf(out, size, "127.x.x.x:PORT or [::1]:PORT");
        return;
    }
}

// ---- storing --------------------------------------------------------------------------

static bool number_of(const struct ynode *v, double *out)
{
    return v->kind == YNODE_SCALAR && v->plain && config_real(v->text, out);
}

static bool in_bounds(const struct config_key *k, double v)
{
    return v >= k->lo && v <= k->hi;
}

static bool set_word(const struct config_key *k, int *at, const char *text)
{
    for (int i = 0; k->words[i]; i++)
        if (strcmp(k->words[i], text) == 0) {
            *at = i;
            return true;
        }
    return false;
}

static bool set_range(const struct config_key *k, double *at, const struct ynode *v)
{
    return v->kind == YNODE_LIST && v->n == 2 && number_of(v->child, &at[0]) &&
           number_of(v->child->next, &at[1]) && in_bounds(k, at[0]) &&
           in_bounds(k, at[1]) && at[0] < at[1];
}

static bool is_place(const char *text)
{
    static const char ok[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

    return *text && *text != '.' && text[strspn(text, ok)] == '\0';
}

// Longer ipc paths do not fit into the kernel's sockaddr_un; tcp beyond this machine
// would need encryption and authentication, which these sockets do not have.
static bool is_endpoint(const char *text)
{
    static const char *const host[] = {
        "tcp://127.0.0.1:", "tcp://localhost:", "tcp://[::1]:"};
    int port;

    if (strncmp(text, "ipc://", 6) == 0)
        return text[6] == '/' && text[7] && strlen(text + 6) <= 107;
    for (int i = 0; i < 3; i++)
        if (strncmp(text, host[i], strlen(host[i])) == 0)
            return config_int(text + strlen(host[i]), &port) && port > 0 && port < 65536;
    return false;
}

static bool set_text(const struct config_key *k, char *at, const struct ynode *v)
{
    bool nothing =
        v->plain && (strcmp(v->text, "~") == 0 || strcmp(v->text, "null") == 0);

    if (!*v->text || nothing || strlen(v->text) >= k->size)
        return false;
    if ((k->type == KEY_PLACE && !is_place(v->text)) ||
        (k->type == KEY_ENDPOINT && !is_endpoint(v->text)) ||
        (k->type == KEY_LISTEN && !config_listen(v->text)))
        return false;
    memset(at, 0, k->size);
    memcpy(at, v->text, strlen(v->text));
    return true;
}

static bool set_number(const struct config_key *k, char *at, const struct ynode *v)
{
    double d;
    int i;

    if (k->type == KEY_REAL) {
        if (!number_of(v, &d) || !in_bounds(k, d))
            return false;
        memcpy(at, &d, sizeof d);
        return true;
    }
    if (!v->plain || !config_int(v->text, &i) || !in_bounds(k, i))
        return false;
    memcpy(at, &i, sizeof i);
    return true;
}

static bool set_bool(char *at, const struct ynode *v)
{
    bool on = v->plain && strcmp(v->text, "true") == 0;

    if (!on && (!v->plain || strcmp(v->text, "false") != 0))
        return false;
    memcpy(at, &on, sizeof on);
    return true;
}

static bool store(const struct config_key *k, char *at, const struct ynode *v)
{
    double range[2];
    int word;

    if (k->type == KEY_RANGE) {
        if (!set_range(k, range, v))
            return false;
        memcpy(at, range, sizeof range);
        return true;
    }
    if (k->type == KEY_NAMES)
        return config_names(v, at, k->size);
    if (v->kind != YNODE_SCALAR)
        return false;
    if (k->type == KEY_REAL || k->type == KEY_INT)
        return set_number(k, at, v);
    if (k->type == KEY_BOOL)
        return set_bool(at, v);
    if (k->type != KEY_WORD)
        return set_text(k, at, v);
    if (!set_word(k, &word, v->text))
        return false;
    memcpy(at, &word, sizeof word);
    return true;
}

static bool wants_editing(const struct ynode *v)
{
    bool found = v->kind == YNODE_SCALAR && config_is_edit(v->text);

    for (const struct ynode *c = v->child; c && !found; c = c->next)
        found = c->kind == YNODE_SCALAR && config_is_edit(c->text);
    return found;
}

// Two good numbers in the wrong order.
static bool is_swapped(const struct config_key *k, const struct ynode *v, double at[2])
{
    return k->type == KEY_RANGE && v->kind == YNODE_LIST && v->n == 2 &&
           number_of(v->child, &at[0]) && number_of(v->child->next, &at[1]) &&
           in_bounds(k, at[0]) && in_bounds(k, at[1]) && at[0] >= at[1];
}

// The nearest word, when one is meant and misspelt.
static const char *near_word(const struct config_key *k, const struct ynode *v)
{
    if (k->type == KEY_WORD && v->kind == YNODE_SCALAR)
        for (int i = 0; k->words[i]; i++)
            if (config_distance(v->text, k->words[i]) <= 2)
                return k->words[i];
    return NULL;
}

const char *config_key_set(const struct config_key *k, void *scope,
                           const struct ynode *value, char *why, size_t size)
{
    char expected[200], shown[80];
    const char *near;
    double range[2];

    if (!wants_editing(value) && store(k, (char *)scope + k->offset, value))
        return NULL;
    config_key_expected(k, expected, sizeof expected);
    near = near_word(k, value);
    if (wants_editing(value))
        snprintf(why, size, "fill in this value: expected %s", expected);
    else if (is_swapped(k, value, range))
        snprintf(why, size, "min is not below max: [%g, %g]; expected %s", range[0],
                 range[1], expected);
    else
        snprintf(why, size, "expected %s, found %s%s%s%s", expected,
                 ynode_shown(value, shown, sizeof shown), near ? "; did you mean '" : "",
                 near ? near : "", near ? "'?" : "");
    return why;
}

void config_key_preset(const struct config_key *k, void *scope)
{
    char text[64];
    struct ynode v = {.kind = YNODE_SCALAR, .plain = true, .text = text};

    if (!k->preset)
        return;
    snprintf(text, sizeof text, "%s", k->preset);
    (void)store(k, (char *)scope + k->offset,
                &v); // a test stores every preset of the table
}
