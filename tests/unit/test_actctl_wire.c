// What a daemon sends, or something that is none: whatever parses is drawn at every size
// and written as JSON without a byte outside of the screen or a character that is not
// harmless.
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/actctl/bar.c"
#include "daemon/actctl/canvas.c"
#include "daemon/actctl/json.c"
#include "daemon/actctl/style.c"
#include "daemon/actctl/text.c"
#include "daemon/actctl/top_draw.c"
#include "daemon/actctl/words.c"

#define MUTANTS 400

static uint64_t seed = 88172645463325252u;
static struct canvas canvas;
static char bytes[CANVAS_BYTES];

static uint64_t any(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static int below(int n)
{
    return (int)(any() % (uint64_t)n);
}

static double number(void)
{
    static const double odd[] = {0, -0.0, 1e308, -1e308, 5e-324, 1e9, 0.5, -1.5};

    switch (below(6)) {
    case 0:
        return NAN;
    case 1:
        return INFINITY;
    default:
        return odd[below(8)];
    }
}

// A message filled by its description: every field, at random.
static void fill(ProtobufCMessage *m, int depth);

static void fill_one(const ProtobufCFieldDescriptor *f, void *at, int depth)
{
    static const char *const texts[] = {
        "",
        "reach",
        "a\x1b[2J\xff\xc2\x9b",
        "\xe4\xb8\xad\xe6\x96\x87",
        "joint with a very long name that fits no column at all",
        "%s%n",
        "observation.images.front"};

    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
        *(char **)at = strdup(texts[below(7)]);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)at = number();
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = below(2);
        break;
    case PROTOBUF_C_TYPE_ENUM:
        *(int *)at = below(5) ? below(40) : (int)any();
        break;
    case PROTOBUF_C_TYPE_UINT32:
        *(uint32_t *)at = below(3) ? (uint32_t)below(200) : (uint32_t)any();
        break;
    case PROTOBUF_C_TYPE_INT32:
        *(int32_t *)at = (int32_t)any();
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(void **)at = NULL;
        if (depth > 0 && below(8)) {
            const ProtobufCMessageDescriptor *d = f->descriptor;
            ProtobufCMessage *m = calloc(1, d->sizeof_message);
            d->message_init(m);
            fill(m, depth - 1);
            *(void **)at = m;
        }
        break;
    default:
        *(uint64_t *)at = below(3) ? (uint64_t)below(1000000000) : any();
    }
}

static void fill(ProtobufCMessage *m, int depth)
{
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        char *base = (char *)m;
        if (f->label != PROTOBUF_C_LABEL_REPEATED) {
            fill_one(f, base + f->offset, depth);
            continue;
        }
        size_t n = (size_t)below(20), k = 0;
        char *list = calloc(n + 1, 8);
        for (size_t j = 0; j < n; j++) {
            fill_one(f, list + k * width(f->type), depth);
            k += f->type != PROTOBUF_C_TYPE_MESSAGE || ((void **)(void *)list)[k] != NULL;
        }
        *(size_t *)(void *)(base + f->quantifier_offset) = k;
        *(void **)(void *)(base + f->offset) = list;
    }
}

static void screen_is_sound(size_t n)
{
    int row = 0, column = 0;

    bytes[n] = 0;
    for (const char *p = bytes; *p;) {
        uint32_t cp;
        p += text_decode(p, &cp);
        if (cp == '\n') {
            row++;
            column = 0;
            continue;
        }
        assert_true(cp != TEXT_BAD && text_harmless(cp));
        assert_true(++column <= canvas.columns);
    }
    assert_int_equal(row, canvas.rows);
}

static void draw_all(const Actd__V1__Status *s)
{
    static const int sizes[][2] = {{24, 80},   {1, 1},   {5, 200},
                                   {100, 300}, {40, 20}, {24, 79}};
    struct top_view v = {.s = s, .socket = "x", .message = "", .lost = "", .keys = true};

    v.first_joint = below(30);
    v.help = v.first_joint % 4 == 0;
    v.lost = below(2) ? "" : "no answer \x1b[2J for 3 s: a long sentence about it";
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        canvas_clear(&canvas, sizes[i][0], sizes[i][1]);
        top_draw(&canvas, &v);
        screen_is_sound(canvas_print(&canvas, false, false, bytes, sizeof bytes));
        assert_true(canvas_print(&canvas, true, true, bytes, sizeof bytes) <
                    sizeof bytes);
    }
}

static void json_is_sound(const Actd__V1__ControlReply *r)
{
    json_error_t error;
    json_t *again;
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    json_put(f, json_message(&r->base));
    fclose(f);
    for (size_t i = 0; i + 1 < size; i++)
        assert_true(text[i] >= 0x20 && text[i] < 0x7f);
    again = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    assert_non_null(again);
    json_decref(again);
    free(text);
}

static void test_any_reply(void **state)
{
    int drawn = 0;

    (void)state;
    assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
    for (int i = 0; i < MUTANTS; i++) {
        Actd__V1__ControlReply *r = calloc(1, sizeof *r);
        actd__v1__control_reply__init(r);
        fill(&r->base, 4);
        json_is_sound(r);
        if (r->status) {
            draw_all(r->status);
            drawn++;
        }
        actd__v1__control_reply__free_unpacked(r, NULL);
    }
    assert_true(drawn > MUTANTS / 2);
}

// Bytes of real replies, some changed: what still parses is shown.
static void test_mutants(void **state)
{
    static uint8_t packed[1 << 20];
    int parsed = 0;

    (void)state;
    for (int i = 0; i < MUTANTS; i++) {
        Actd__V1__ControlReply *r = calloc(1, sizeof *r), *m;
        actd__v1__control_reply__init(r);
        fill(&r->base, 4);
        size_t n = actd__v1__control_reply__pack(r, packed);
        actd__v1__control_reply__free_unpacked(r, NULL);
        for (int k = 0; k < 4; k++) {
            for (int c = below(3) + 1; c > 0; c--)
                packed[any() % n] = (uint8_t)any();
            m = actd__v1__control_reply__unpack(NULL, n - any() % 3 % n, packed);
            if (!m)
                continue;
            parsed++;
            json_is_sound(m);
            if (m->status)
                draw_all(m->status);
            actd__v1__control_reply__free_unpacked(m, NULL);
        }
    }
    assert_true(parsed > 20);
}

// The frame is the size it is given, whatever that is.
static void test_every_size(void **state)
{
    Actd__V1__Status s;

    (void)state;
    actd__v1__status__init(&s);
    for (int rows = 1; rows <= CANVAS_ROWS; rows += 9)
        for (int columns = 1; columns <= CANVAS_COLUMNS; columns += 23) {
            struct top_view v = {
                .s = rows % 2 ? &s : NULL, .socket = "", .message = "", .lost = ""};
            canvas_clear(&canvas, rows, columns);
            top_draw(&canvas, &v);
            assert_true(canvas.rows == rows && canvas.columns == columns);
            screen_is_sound(canvas_print(&canvas, false, false, bytes, sizeof bytes));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_reply),
        cmocka_unit_test(test_mutants),
        cmocka_unit_test(test_every_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
