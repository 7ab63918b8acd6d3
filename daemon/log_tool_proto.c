// log_tool_proto: a message as JSON, by the FileDescriptorSet that came with it. Only what printing
// needs of descriptor.proto is read, by field number: names, numbers, types. Schema and message come
// from a file: every length is held against what is left, nesting against DEEPEST.
#include "daemon/log_tool_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST   32
#define MOST      4096 // types and fields together
#define NAME_MAX_ 512

enum kind { // descriptor.proto's FieldDescriptorProto.Type
    DOUBLE = 1,
    FLOAT,
    INT64,
    UINT64,
    INT32,
    FIXED64,
    FIXED32,
    BOOL,
    STRING,
    GROUP,
    MESSAGE,
    BYTES,
    UINT32,
    ENUM,
    SFIXED32,
    SFIXED64,
    SINT32,
    SINT64
};

struct in {
    const unsigned char *p, *end;
};

struct wire { // one field as it lies in a message
    uint32_t number, type;
    uint64_t value; // types 0, 1, 5
    struct in data; // type 2
};

struct field {
    char *name, *type_name; // type_name with its leading dot
    uint32_t number, kind;
    bool repeated;
    int type; // of MESSAGE and ENUM: which; -1 not there
};

struct type {   // of a message or an enum; an enum's fields are its values
    char *name; // ".foxglove.Log"
    struct field *field;
    int n;
};

struct log_types {
    struct type *type;
    int n, root, used;
};

// ---- the wire --------------------------------------------------------------------------------

static bool varint(struct in *in, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; in->p < in->end && shift < 64; shift += 7) {
        unsigned char c = *in->p++;
        *out |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80))
            return true;
    }
    return false;
}

static bool fixed(struct in *in, size_t n, uint64_t *out)
{
    *out = 0;
    if ((size_t)(in->end - in->p) < n)
        return false;
    for (size_t i = 0; i < n; i++)
        *out |= (uint64_t)*in->p++ << 8 * i;
    return true;
}

// 1, 0 at the end, -1 damaged.
static int next(struct in *in, struct wire *w)
{
    uint64_t tag, n;

    if (in->p == in->end)
        return 0;
    if (!varint(in, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return -1;
    *w = (struct wire){.number = (uint32_t)(tag >> 3), .type = tag & 7};
    switch (w->type) {
    case 0:
        return varint(in, &w->value) ? 1 : -1;
    case 1:
        return fixed(in, 8, &w->value) ? 1 : -1;
    case 5:
        return fixed(in, 4, &w->value) ? 1 : -1;
    case 2:
        if (!varint(in, &n) || n > (uint64_t)(in->end - in->p))
            return -1;
        w->data = (struct in){in->p, in->p + n};
        in->p += n;
        return 1;
    default: // groups are not of proto3
        return -1;
    }
}

static char *copy(struct in data)
{
    return strndup((const char *)data.p, (size_t)(data.end - data.p));
}

// ---- the schema --------------------------------------------------------------------------------

static bool room(struct log_types *t, void *array, int n, size_t size)
{
    void *p, *q;

    if (++t->used > MOST)
        return false;
    memcpy(&p, array, sizeof p);
    if (n % 16 != 0)
        return true;
    q = realloc(p, ((size_t)n + 16) * size);
    if (q)
        memcpy(array, &q, sizeof q);
    // cppcheck-suppress memleak ; it is in *array
    return q != NULL;
}

static bool has_number(const struct type *t, uint32_t number)
{
    for (int i = 0; i < t->n; i++)
        if (t->field[i].number == number)
            return true;
    return false;
}

// name 1, number 3, label 4, type 5, type_name 6; of an enum's value name 1, number 2.
static bool add_field(struct log_types *t, int type, struct in in, bool value)
{
    struct field f = {.type = -1};
    struct wire w;
    int more;

    while ((more = next(&in, &w)) == 1) {
        if (w.number == 1 && w.type == 2 && !f.name)
            f.name = copy(w.data);
        else if (w.number == 6 && w.type == 2 && !value && !f.type_name)
            f.type_name = copy(w.data);
        else if (w.number == (value ? 2u : 3u))
            f.number = (uint32_t)w.value;
        else if (w.number == 4)
            f.repeated = w.value == 3;
        else if (w.number == 5)
            f.kind = (uint32_t)w.value;
    }
    // A number twice in one type would print what is nested there twice, at every level.
    bool twice = !value && has_number(&t->type[type], f.number);
    if (more == 0 && f.name && !twice &&
        room(t, &t->type[type].field, t->type[type].n, sizeof f)) {
        t->type[type].field[t->type[type].n++] = f;
        return true;
    }
    free(f.name);
    free(f.type_name);
    return twice;
}

// A DescriptorProto: name 1, field 2, nested_type 3, enum_type 4; an EnumDescriptorProto: name 1,
// value 2.
static bool add_type(struct log_types *t, const char *scope, struct in in, bool is_enum,
                     int deep)
{
    char name[NAME_MAX_];
    struct in again = in;
    struct wire w;
    int more, id = t->n;

    name[0] = 0;
    while ((more = next(&in, &w)) == 1)
        if (w.number == 1 && w.type == 2)
            snprintf(name, sizeof name, "%s.%.*s", scope,
                     (int)((w.data.end - w.data.p) & 255), (const char *)w.data.p);
    if (more < 0 || deep > DEEPEST || !room(t, &t->type, t->n, sizeof *t->type))
        return false;
    t->type[t->n++] = (struct type){.name = strdup(name)};
    if (!t->type[id].name)
        return false;
    while (next(&again, &w) == 1) {
        if (w.type != 2)
            continue;
        if (w.number == 2 && !add_field(t, id, w.data, is_enum))
            return false;
        if (!is_enum && (w.number == 3 || w.number == 4) &&
            !add_type(t, name, w.data, w.number == 4, deep + 1))
            return false;
    }
    return true;
}

// A FileDescriptorProto: package 2, message_type 4, enum_type 5.
static bool add_file(struct log_types *t, struct in in)
{
    char package[NAME_MAX_] = "";
    struct in again = in;
    struct wire w;
    int more;

    while ((more = next(&in, &w)) == 1)
        if (w.number == 2 && w.type == 2 && w.data.p < w.data.end)
            snprintf(package, sizeof package, ".%.*s",
                     (int)((w.data.end - w.data.p) & 255), (const char *)w.data.p);
    while (more == 0 && next(&again, &w) == 1)
        if ((w.number == 4 || w.number == 5) && w.type == 2 &&
            !add_type(t, package, w.data, w.number == 5, 0))
            return false;
    return more == 0;
}

static int find(const struct log_types *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->type[i].name, name) == 0)
            return i;
    return -1;
}

struct log_types *log_types_new(const struct mcap_schema *s)
{
    struct log_types *t = calloc(1, sizeof *t);
    struct in in = {s->data, (const unsigned char *)s->data + s->size};
    char name[NAME_MAX_];
    struct wire w;
    int more;

    if (!t || strcmp(s->encoding, "protobuf") != 0)
        goto fail;
    while ((more = next(&in, &w)) == 1)
        if (w.number == 1 && w.type == 2 && !add_file(t, w.data))
            goto fail;
    snprintf(name, sizeof name, ".%s", s->name);
    t->root = find(t, name);
    if (more != 0 || t->root < 0)
        goto fail;
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < t->type[i].n; k++)
            if (t->type[i].field[k].type_name)
                t->type[i].field[k].type = find(t, t->type[i].field[k].type_name);
    return t;
fail:
    log_types_free(t);
    return NULL;
}

void log_types_free(struct log_types *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->n; i++) {
        for (int k = 0; k < t->type[i].n; k++) {
            free(t->type[i].field[k].name);
            free(t->type[i].field[k].type_name);
        }
        free(t->type[i].field);
        free(t->type[i].name);
    }
    free(t->type);
    free(t);
}

// ---- a message -------------------------------------------------------------------------------

static bool print_message(const struct log_types *t, int type, struct in in, FILE *f,
                          int deep);

// JSON has no NaN; as protobuf's own JSON has it.
static void print_double(FILE *f, double v, int digits)
{
    if (isfinite(v))
        fprintf(f, "%.*g", digits, v);
    else
        fputs(isnan(v) ? "\"NaN\"" : v > 0 ? "\"Infinity\"" : "\"-Infinity\"", f);
}

static void print_enum(const struct log_types *t, const struct field *d, int32_t v,
                       FILE *f)
{
    for (int i = 0; d->type >= 0 && i < t->type[d->type].n; i++) {
        const struct field *value = &t->type[d->type].field[i];
        if ((int32_t)value->number == v) {
            log_print_string(f, value->name, strlen(value->name));
            return;
        }
    }
    fprintf(f, "%" PRId32, v);
}

static void print_number(const struct log_types *t, const struct field *d, uint64_t v,
                         FILE *f)
{
    uint32_t low = (uint32_t)v;
    double wide;
    float narrow;

    memcpy(&wide, &v, sizeof wide);
    memcpy(&narrow, &low, sizeof narrow);
    switch (d->kind) {
    case DOUBLE:
        print_double(f, wide, 17);
        break;
    case FLOAT:
        print_double(f, (double)narrow, 9);
        break;
    case BOOL:
        fputs(v ? "true" : "false", f);
        break;
    case ENUM:
        print_enum(t, d, (int32_t)low, f);
        break;
    case INT32:
    case SFIXED32:
        fprintf(f, "%" PRId32, (int32_t)low);
        break;
    case INT64:
    case SFIXED64:
        fprintf(f, "%" PRId64, (int64_t)v);
        break;
    case SINT32:
    case SINT64:
        fprintf(f, "%" PRId64, (int64_t)(v >> 1 ^ -(v & 1)));
        break;
    default:
        fprintf(f, "%" PRIu64, v);
        break;
    }
}

static uint32_t wire_of(uint32_t kind)
{
    switch (kind) {
    case DOUBLE:
    case FIXED64:
    case SFIXED64:
        return 1;
    case FLOAT:
    case FIXED32:
    case SFIXED32:
        return 5;
    case STRING:
    case BYTES:
    case MESSAGE:
        return 2;
    default:
        return 0;
    }
}

// Many numbers in one field.
static bool print_packed(const struct log_types *t, const struct field *d, struct in in,
                         FILE *f)
{
    uint32_t type = wire_of(d->kind);
    uint64_t v;

    for (bool first = true; in.p < in.end; first = false) {
        if (type == 0 ? !varint(&in, &v) : !fixed(&in, type == 1 ? 8 : 4, &v))
            return false;
        if (!first)
            fputc(',', f);
        print_number(t, d, v, f);
    }
    return true;
}

static bool print_value(const struct log_types *t, const struct field *d,
                        const struct wire *w, FILE *f, int deep)
{
    size_t n = (size_t)(w->data.end - w->data.p);

    if (w->type == 2 && wire_of(d->kind) != 2)
        return d->repeated && print_packed(t, d, w->data, f);
    if (w->type != wire_of(d->kind))
        return false;
    if (d->kind == STRING)
        log_print_string(f, (const char *)w->data.p, n);
    else if (d->kind == BYTES && n > 32)
        fprintf(f, "\"%zu bytes\"", n);
    else if (d->kind == BYTES)
        log_print_base64(f, w->data.p, n);
    else if (d->kind == MESSAGE)
        return d->type >= 0 && print_message(t, d->type, w->data, f, deep + 1);
    else
        print_number(t, d, w->value, f);
    return true;
}

// All of one field; of one that is not repeated the last counts. *any: one was there.
static bool print_field(const struct log_types *t, const struct field *d, struct in in,
                        FILE *f, int deep, bool *any)
{
    struct wire w, last = {0};
    bool open = false;

    while (next(&in, &w) == 1) {
        if (w.number != d->number)
            continue;
        last = w;
        if (!d->repeated ||
            (w.type == 2 && wire_of(d->kind) != 2 && w.data.p == w.data.end))
            continue;
        fprintf(f, open ? "," : "%s\"%s\":[", *any ? "," : "", d->name);
        open = *any = true;
        if (!print_value(t, d, &w, f, deep))
            return false;
    }
    if (open)
        fputc(']', f);
    if (d->repeated || last.number == 0)
        return true;
    fprintf(f, "%s\"%s\":", *any ? "," : "", d->name);
    *any = true;
    return print_value(t, d, &last, f, deep);
}

static bool print_message(const struct log_types *t, int type, struct in in, FILE *f,
                          int deep)
{
    struct in all = in;
    struct wire w;
    bool any = false;
    int more;

    while ((more = next(&all, &w)) == 1)
        ;
    if (more < 0 || deep > DEEPEST)
        return false;
    fputc('{', f);
    for (int i = 0; i < t->type[type].n; i++)
        if (!print_field(t, &t->type[type].field[i], in, f, deep, &any))
            return false;
    fputc('}', f);
    return true;
}

bool log_types_print(const struct log_types *t, const void *data, size_t size, FILE *f)
{
    const unsigned char *p = data;

    return print_message(t, t->root, (struct in){p, p + size}, f, 0);
}
