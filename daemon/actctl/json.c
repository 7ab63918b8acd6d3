// json: see the header.
#include "daemon/actctl/json.h"

#include <google/protobuf/timestamp.pb-c.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "actd/v1/status.pb-c.h"
#include "daemon/actctl/text.h"
#include "daemon/actctl/words.h"

json_t *json_number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

json_t *json_text(const char *s)
{
    char *valid = text_valid(s ? s : "");
    json_t *j = valid ? json_string(valid) : NULL;

    free(valid);
    return j;
}

static json_t *whole(uint64_t v)
{
    return v <= INT64_MAX ? json_integer((json_int_t)v) : json_real((double)v);
}

static json_t *seconds(const Google__Protobuf__Timestamp *t)
{
    return json_number((double)t->seconds + t->nanos / 1e9);
}

// Names whose unit is in the protocol's comments only. m for sliding joints, as
// everywhere.
static const char *key_of(const ProtobufCMessageDescriptor *d,
                          const ProtobufCFieldDescriptor *f)
{
    static const struct {
        const char *field, *key;
    } units[] = {
        {"measured", "measured_rad"}, {"commanded", "commanded_rad"},
        {"wanted", "wanted_rad"},     {"velocity", "velocity_rad_s"},
        {"min", "min_rad"},           {"max", "max_rad"},
        {"row", "row_rows"},          {"remaining", "remaining_rows"},
    };

    if (f->descriptor == &google__protobuf__timestamp__descriptor)
        return "timestamp_s";
    if (d != &actd__v1__joint_status__descriptor &&
        d != &actd__v1__chunk_status__descriptor)
        return f->name;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(f->name, units[i].field) == 0)
            return units[i].key;
    return f->name;
}

// *at is a value of the field's type.
static json_t *value(const ProtobufCFieldDescriptor *f, const void *at)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return json_boolean(*(const protobuf_c_boolean *)at);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return whole(*(const uint32_t *)at);
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return json_integer(*(const int32_t *)at);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return whole(*(const uint64_t *)at);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return json_integer(*(const int64_t *)at);
    case PROTOBUF_C_TYPE_DOUBLE:
        return json_number(*(const double *)at);
    case PROTOBUF_C_TYPE_FLOAT:
        return json_number((double)*(const float *)at);
    case PROTOBUF_C_TYPE_ENUM:
        return json_string(words_enum(f->descriptor, *(const int *)at));
    case PROTOBUF_C_TYPE_STRING:
        return json_text(*(char *const *)at);
    case PROTOBUF_C_TYPE_MESSAGE:
        if (!*(const ProtobufCMessage *const *)at)
            return json_null();
        if (f->descriptor == &google__protobuf__timestamp__descriptor)
            return seconds(*(const Google__Protobuf__Timestamp *const *)at);
        return json_message(*(const ProtobufCMessage *const *)at);
    default: // bytes: there are none
        return json_null();
    }
}

static size_t width(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return 4;
    default:
        return 8;
    }
}

static json_t *field(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    const char *base = (const char *)m;

    if (f->label != PROTOBUF_C_LABEL_REPEATED)
        return value(f, base + f->offset);
    size_t n = *(const size_t *)(const void *)(base + f->quantifier_offset);
    const char *const *items = (const void *)(base + f->offset);
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++)
        json_array_append_new(list, value(f, *items + i * width(f->type)));
    return list;
}

json_t *json_message(const ProtobufCMessage *m)
{
    json_t *j = json_object();

    for (unsigned i = 0; j && i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        json_object_set_new(j, key_of(m->descriptor, f), field(m, f));
    }
    return j;
}

void json_put(FILE *f, json_t *j)
{
    char *text =
        j ? json_dumps(j, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15))
          : NULL;

    for (const char *p = text ? text : "null"; *p; p++)
        if (*p == 0x7f) // jansson leaves this one as it is; in a string it always is
            fputs("\\u007f", f);
        else
            fputc(*p, f);
    fputc('\n', f);
    free(text);
    json_decref(j);
}
