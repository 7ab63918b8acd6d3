// schema: each descriptor set, read by the few lines of wire format below, says what its message
// looks like all the way down: no type that it does not hold, no file before those it imports,
// none twice, and no source text.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/schema.h"

#define MOST 256
#define NAME 160

struct names {
    char name[MOST][NAME];
    int n;
};

struct set { // of one schema
    struct names files, types, used;
    int imports_unknown, sources;
};

struct view {
    const unsigned char *data;
    size_t n;
};

static uint64_t varint(struct view *v)
{
    uint64_t x = 0;
    unsigned shift = 0;

    for (;;) {
        unsigned char b;

        assert_true(v->n > 0 && shift < 64);
        b = *v->data++;
        v->n--;
        x |= (uint64_t)(b & 0x7f) << shift;
        shift += 7;
        if (b < 0x80)
            return x;
    }
}

// The next field of a message; false at its end. Of wire type 2: its bytes.
static bool field(struct view *v, unsigned *number, struct view *bytes)
{
    uint64_t tag;

    if (v->n == 0)
        return false;
    tag = varint(v);
    *number = (unsigned)(tag >> 3);
    *bytes = (struct view){NULL, 0};
    if ((tag & 7) == 0) {
        varint(v);
        return true;
    }
    assert_int_equal(tag & 7, 2); // a descriptor has nothing else
    bytes->n = (size_t)varint(v);
    bytes->data = v->data;
    assert_true(bytes->n <= v->n);
    v->data += bytes->n;
    v->n -= bytes->n;
    return true;
}

static void add(struct names *l, const char *scope, struct view name)
{
    assert_true(l->n < MOST);
    assert_in_range(snprintf(l->name[l->n], NAME, "%s%.*s", scope, (int)name.n,
                             (const char *)name.data),
                    1, NAME - 1);
    l->n++;
}

static bool among(const struct names *l, const char *name)
{
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->name[i], name) == 0)
            return true;
    return false;
}

static struct view text_of(struct view message, unsigned wanted)
{
    unsigned number;
    struct view bytes;

    while (field(&message, &number, &bytes))
        if (number == wanted)
            return bytes;
    return (struct view){(const unsigned char *)"", 0};
}

// DescriptorProto: name 1, field 2 (FieldDescriptorProto: type_name 6), nested 3, enum 4.
static void message_type(struct set *s, struct view m, const char *scope)
{
    char inner[NAME];
    unsigned number;
    struct view bytes;

    add(&s->types, scope, text_of(m, 1));
    assert_in_range(snprintf(inner, sizeof inner, "%s.", s->types.name[s->types.n - 1]),
                    1, NAME - 1);
    while (field(&m, &number, &bytes)) {
        if (number == 2 && text_of(bytes, 6).n > 0)
            add(&s->used, "", text_of(bytes, 6));
        else if (number == 3)
            message_type(s, bytes, inner);
        else if (number == 4)
            add(&s->types, inner, text_of(bytes, 1));
    }
}

// FileDescriptorProto: name 1, package 2, dependency 3, message 4, enum 5, source_code_info 9.
static void file(struct set *s, struct view f)
{
    struct view package = text_of(f, 2), bytes;
    char scope[NAME], import[NAME];
    unsigned number;

    snprintf(scope, sizeof scope, ".%.*s.", (int)package.n, (const char *)package.data);
    while (field(&f, &number, &bytes)) {
        if (number == 1) {
            int n = s->files.n;

            add(&s->files, "", bytes);
            s->files.n = n;
            assert_false(among(&s->files, s->files.name[n])); // once
            s->files.n = n + 1;
        } else if (number == 3) {
            snprintf(import, sizeof import, "%.*s", (int)bytes.n,
                     (const char *)bytes.data);
            s->imports_unknown += !among(&s->files, import);
        } else if (number == 4) {
            message_type(s, bytes, scope);
        } else if (number == 5) {
            add(&s->types, scope, text_of(bytes, 1));
        }
        s->sources += number == 9;
    }
}

static void read_set(struct set *s, const struct mcap_schema *schema)
{
    struct view v = {schema->data, schema->size}, bytes;
    unsigned number;

    memset(s, 0, sizeof *s);
    while (field(&v, &number, &bytes)) {
        assert_int_equal(number, 1);
        file(s, bytes);
    }
}

static void every_type_resolves(void **state)
{
    static struct set s;
    char dotted[NAME];
    int n = 0;

    (void)state;
    for (const struct mcap_schema *m; (m = schema_at(n)) != NULL; n++) {
        read_set(&s, m);
        snprintf(dotted, sizeof dotted, ".%s", m->name);
        assert_true(among(&s.types, dotted));
        assert_int_equal(s.imports_unknown, 0);
        assert_int_equal(s.sources, 0);
        for (int i = 0; i < s.used.n; i++)
            if (!among(&s.types, s.used.name[i]))
                fail_msg("%s: no %s in it", m->name, s.used.name[i]);
        assert_int_equal(m->id, 0);
        assert_string_equal(m->encoding, "protobuf");
        assert_ptr_equal(schema_of(m->name), m);
    }
    assert_int_equal(n, 9);
    assert_null(schema_at(-1));
}

static void all_that_a_recording_has_is_there(void **state)
{
    static const char *const names[] = {
        "foxglove.JointStates", "foxglove.CompressedImage",
        "foxglove.RawImage",    "foxglove.Log",
        "actd.v1.JointCommand", "actd.v1.Tick",
        "actd.v1.Input",        "actd.v1.Chunk",
        "actd.v1.Seat",
    };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_non_null(schema_of(names[i]));
    assert_null(schema_of("foxglove.Nothing"));
    assert_null(schema_of(".foxglove.Log"));
    assert_null(schema_of(""));
}

// The reader above sees what it should see: a set of the expected files, types and uses.
static void the_tick_has_what_it_imports(void **state)
{
    static struct set s;

    (void)state;
    read_set(&s, schema_of("actd.v1.Tick"));
    assert_int_equal(s.files.n, 3);
    assert_string_equal(s.files.name[0], "google/protobuf/timestamp.proto");
    assert_string_equal(s.files.name[1], "actd/v1/joint_command.proto");
    assert_string_equal(s.files.name[2], "actd/v1/record.proto");
    assert_true(among(&s.types, ".actd.v1.Mode"));
    assert_true(among(&s.types, ".actd.v1.Input.Outcome"));
    assert_true(among(&s.used, ".actd.v1.CameraMark"));
    assert_true(among(&s.used, ".google.protobuf.Timestamp"));
    read_set(&s, schema_of("foxglove.JointStates"));
    assert_int_equal(s.files.n, 2);
    assert_true(among(&s.used, ".foxglove.JointState"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_resolves),
        cmocka_unit_test(all_that_a_recording_has_is_there),
        cmocka_unit_test(the_tick_has_what_it_imports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
