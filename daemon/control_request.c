#include "daemon/control_request.h"

#include <errno.h>
#include <string.h>

const char *const control_allow[] = {"joints", "units", "cameras", "rate", "chunk", NULL};

enum field { F_ID = 1, F_VERB, F_NAME, F_ALLOW, F_FORCE, F_TEXT, F_END };
enum wire { VARINT = 0, BYTES = 2 };

struct verb {
    Actd__V1__Verb verb;
    const char *name;
    bool acts, stops;
    unsigned may, must; // bits of enum field, besides id and verb
};

#define BIT(f) (1u << F_##f)
static const struct verb verbs[] = {
    {ACTD__V1__VERB__VERB_STATUS, "STATUS", false, false, 0, 0},
    {ACTD__V1__VERB__VERB_POLICIES, "POLICIES", false, false, 0, 0},
    {ACTD__V1__VERB__VERB_METRICS, "METRICS", false, false, 0, 0},
    {ACTD__V1__VERB__VERB_DOCTOR, "DOCTOR", false, false, 0, 0},
    {ACTD__V1__VERB__VERB_ARM, "ARM", true, false, 0, 0},
    {ACTD__V1__VERB__VERB_DISARM, "DISARM", true, true, 0, 0},
    {ACTD__V1__VERB__VERB_STOP, "STOP", true, true, 0, 0},
    {ACTD__V1__VERB__VERB_ESTOP, "ESTOP", true, true, 0, 0},
    {ACTD__V1__VERB__VERB_RESET, "RESET", true, false, 0, 0},
    {ACTD__V1__VERB__VERB_HOME, "HOME", true, false, 0, 0},
    {ACTD__V1__VERB__VERB_SWAP, "SWAP", true, false, BIT(NAME) | BIT(ALLOW) | BIT(FORCE),
     BIT(NAME)},
    {ACTD__V1__VERB__VERB_SWAP_BACK, "SWAP_BACK", true, false, BIT(ALLOW) | BIT(FORCE),
     0},
    {ACTD__V1__VERB__VERB_INSTRUCT, "INSTRUCT", true, false, BIT(TEXT), BIT(TEXT)},
    {ACTD__V1__VERB__VERB_RECORD_START, "RECORD_START", true, false, 0, 0},
    {ACTD__V1__VERB__VERB_RECORD_STOP, "RECORD_STOP", true, false, 0, 0},
    {ACTD__V1__VERB__VERB_RECORD_MARK, "RECORD_MARK", true, false, BIT(TEXT), BIT(TEXT)},
};

static const struct verb *find(Actd__V1__Verb verb)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (verbs[i].verb == verb)
            return &verbs[i];
    return NULL;
}

bool control_acts(Actd__V1__Verb verb)
{
    const struct verb *v = find(verb);
    return !v || v->acts;
}

bool control_stops(Actd__V1__Verb verb)
{
    const struct verb *v = find(verb);
    return v && v->stops;
}

const char *control_verb_name(Actd__V1__Verb verb)
{
    const struct verb *v = find(verb);
    return v ? v->name : "?";
}

// ---- bytes ---------------------------------------------------------------------------

struct cursor {
    const uint8_t *at, *end;
};

// At most ten bytes, the last of which holds one bit.
static bool varint(struct cursor *c, uint64_t *out)
{
    uint64_t v = 0;

    for (int shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        uint8_t byte = *c->at++;

        if (shift == 63 && byte > 1)
            return false;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = v;
            return true;
        }
    }
    return false;
}

static bool bytes(struct cursor *c, struct cursor *out)
{
    uint64_t n;

    if (!varint(c, &n) || n > (uint64_t)(c->end - c->at))
        return false;
    *out = (struct cursor){c->at, c->at + n};
    c->at += n;
    return true;
}

// One character of UTF-8: shortest form, no surrogates, at most U+10FFFF.
static bool character(struct cursor *c, uint32_t *out)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint8_t first = *c->at++;
    int n = first < 0x80   ? 1
            : first < 0xc0 ? 0
            : first < 0xe0 ? 2
            : first < 0xf0 ? 3
            : first < 0xf8 ? 4
                           : 0;
    uint32_t v = n == 1 ? first : first & (0x7fu >> n);

    for (int i = 1; i < n; i++, c->at++) {
        if (c->at == c->end || (*c->at & 0xc0) != 0x80)
            return false;
        v = v << 6 | (*c->at & 0x3fu);
    }
    *out = v;
    return n > 0 && v >= least[n] && v <= 0x10ffff && (v < 0xd800 || v > 0xdfff);
}

// ---- values --------------------------------------------------------------------------

static const char *take_text(struct cursor s, char out[CONTROL_TEXT])
{
    size_t n = (size_t)(s.end - s.at);
    uint32_t u;

    if (n >= CONTROL_TEXT)
        return "text: at most 1023 bytes";
    if (n > 0) // an empty field has no place in memory
        memcpy(out, s.at, n);
    while (s.at < s.end)
        if (!character(&s, &u) || u < 0x20 || (u >= 0x7f && u < 0xa0))
            return "text: expected UTF-8 without control characters";
    return NULL;
}

// A directory's name, not a path. ASCII, since it is written into logs and onto
// terminals.
static const char *take_name(struct cursor s, char out[CONFIG_NAME])
{
    size_t n = (size_t)(s.end - s.at);

    if (n == 0 || n >= CONFIG_NAME)
        return "name: expected 1 to 63 bytes";
    memcpy(out, s.at, n);
    for (size_t i = 0; i < n; i++)
        if (s.at[i] < 0x20 || s.at[i] > 0x7e || s.at[i] == '/')
            return "name: expected printable ASCII without '/': the name of a directory "
                   "inside swap.directory, not a path";
    if (strcmp(out, ".") == 0 || strcmp(out, "..") == 0)
        return "name: '.' and '..' are not the name of a policy";
    return NULL;
}

bool control_name_fits(const char *name)
{
    const uint8_t *at = (const uint8_t *)name;
    char copy[CONFIG_NAME] = "";

    return !take_name((struct cursor){at, at + strnlen(name, CONFIG_NAME)}, copy);
}

static const char *take_allow(struct cursor s, unsigned *out)
{
    size_t n = (size_t)(s.end - s.at);

    for (int i = 0; control_allow[i]; i++)
        if (strlen(control_allow[i]) == n && memcmp(control_allow[i], s.at, n) == 0) {
            if (*out & 1u << i)
                return "allow: one of them twice";
            *out |= 1u << i;
            return NULL;
        }
    return "allow: expected joints, units, cameras, rate or chunk";
}

static const char *take_number(struct control_request *r, enum field f, uint64_t v)
{
    if (f == F_ID) {
        r->id = v;
    } else if (f == F_FORCE) {
        r->force = v != 0;
    } else {
        r->verb = v <= INT32_MAX ? (Actd__V1__Verb)v : 0;
        if (!find(r->verb))
            return "verb: this version of actd does not know it";
    }
    return NULL;
}

// ---- the message ---------------------------------------------------------------------

static const char not_one[] = "not an actd.v1.ControlRequest";

// One field. *seen: bits of those before.
static const char *take(struct control_request *r, struct cursor *c, unsigned *seen)
{
    static const enum wire wire_of[F_END] = {
        [F_NAME] = BYTES, [F_ALLOW] = BYTES, [F_TEXT] = BYTES};
    struct cursor s;
    uint64_t tag, v;

    if (!varint(c, &tag))
        return not_one;
    if (tag >> 3 == 0 || tag >> 3 >= F_END)
        return "it has a field that this version of actd does not know";
    enum field f = (enum field)(tag >> 3);
    if ((tag & 7) != wire_of[f])
        return not_one;
    if (f != F_ALLOW && *seen & 1u << f)
        return "it has a field twice";
    *seen |= 1u << f;
    if (wire_of[f] == VARINT)
        return varint(c, &v) ? take_number(r, f, v) : not_one;
    if (!bytes(c, &s))
        return not_one;
    return f == F_NAME    ? take_name(s, r->name)
           : f == F_ALLOW ? take_allow(s, &r->allow)
                          : take_text(s, r->text);
}

int control_request_parse(struct control_request *out, const uint8_t *data, size_t size,
                          const char **why)
{
    struct cursor c = {data, data + size};
    unsigned seen = 0, given;
    const struct verb *verb;

    memset(out, 0, sizeof *out);
    *why = size > CONTROL_REQUEST_MAX ? "longer than 4096 bytes" : NULL;
    while (!*why && c.at < c.end)
        *why = take(out, &c, &seen);
    verb = find(out->verb);
    // proto3 does not send a false, a zero or an empty text, but may.
    given = (seen & ~(1u << F_ID | 1u << F_VERB)) & (out->force ? ~0u : ~BIT(FORCE)) &
            (*out->text ? ~0u : ~BIT(TEXT));
    if (!*why && !verb)
        *why = "verb: missing";
    if (!*why && given & ~verb->may)
        *why = "it has a field that does not belong to its verb";
    if (!*why && verb->must & ~given)
        *why = verb->must & BIT(NAME) ? "name: missing; which policy?"
               : verb->verb == ACTD__V1__VERB__VERB_RECORD_MARK
                   ? "text: missing; what is to be found again?"
                   : "text: missing; which instruction?";
    return *why ? -EINVAL : 0;
}
