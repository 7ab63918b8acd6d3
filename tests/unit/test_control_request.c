// control_request: what protobuf-c packs is read, what is not a request is refused, and
// whatever is accepted protobuf-c reads the same.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/control_request.h"
#include "daemon/swap.h"

#define V(verb) ACTD__V1__VERB__VERB_##verb

static struct control_request r;
static const char *why;
static uint8_t bytes[CONTROL_REQUEST_MAX + 64];

static size_t pack(uint64_t id, Actd__V1__Verb verb, const char *name, const char *text,
                   bool force, const char **allow, size_t n_allow)
{
    Actd__V1__ControlRequest m;

    actd__v1__control_request__init(&m);
    m.id = id;
    m.verb = verb;
    m.name = (char *)(uintptr_t)name;
    m.text = (char *)(uintptr_t)text;
    m.force = force;
    m.allow = (char **)(uintptr_t)allow;
    m.n_allow = n_allow;
    return actd__v1__control_request__pack(&m, bytes);
}

static int parse(size_t n)
{
    int rc = control_request_parse(&r, bytes, n, &why);
    assert_int_equal(rc, why ? -EINVAL : 0);
    return rc;
}

// protobuf-c on the same bytes.
static void same_as_protobuf(const uint8_t *data, size_t n)
{
    Actd__V1__ControlRequest *m = actd__v1__control_request__unpack(NULL, n, data);
    unsigned allow = 0;

    assert_non_null(m);
    assert_true(m->id == r.id && m->verb == r.verb && (m->force != 0) == r.force);
    assert_string_equal(m->name, r.name);
    assert_string_equal(m->text, r.text);
    for (size_t i = 0; i < m->n_allow; i++)
        for (int a = 0; control_allow[a]; a++)
            allow |= strcmp(control_allow[a], m->allow[i]) == 0 ? 1u << a : 0;
    assert_int_equal(allow, r.allow);
    assert_int_equal(m->base.n_unknown_fields, 0);
    actd__v1__control_request__free_unpacked(m, NULL);
}

// ---- what is one ---------------------------------------------------------------------

static void every_verb_is_read(void **state)
{
    static const Actd__V1__Verb plain[] = {
        V(STATUS),    V(POLICIES),     V(METRICS),    V(DOCTOR), V(ARM),
        V(DISARM),    V(STOP),         V(ESTOP),      V(RESET),  V(HOME),
        V(SWAP_BACK), V(RECORD_START), V(RECORD_STOP)};
    const char *allow[] = {"chunk", "joints"};

    (void)state;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        size_t n = pack(UINT64_MAX - i, plain[i], "", "", false, NULL, 0);
        assert_int_equal(parse(n), 0);
        assert_true(r.id == UINT64_MAX - i && r.verb == plain[i]);
        assert_int_equal(control_acts(plain[i]), plain[i] >= V(ARM));
        same_as_protobuf(bytes, n);
    }
    size_t n = pack(3, V(SWAP), "act v2.1", "", true, allow, 2);
    assert_int_equal(parse(n), 0);
    assert_true(r.force && r.allow == (SWAP_ALLOW_CHUNK | SWAP_ALLOW_JOINTS));
    assert_string_equal(r.name, "act v2.1");
    same_as_protobuf(bytes, n);
    n = pack(5, V(RECORD_MARK), "", "here", false, NULL, 0);
    assert_int_equal(parse(n), 0);
    assert_true(control_acts(r.verb) && !control_stops(r.verb));
    assert_string_equal(r.text, "here");
    same_as_protobuf(bytes, n);
    n = pack(4, V(INSTRUCT), "", "pick up the \xc3\xb6l \xf0\x9f\x9b\xa2", false, NULL,
             0);
    assert_int_equal(parse(n), 0);
    same_as_protobuf(bytes, n);
}

static void the_bits_are_those_of_the_swap(void **state)
{
    (void)state;
    for (int i = 0; control_allow[i]; i++)
        assert_int_equal(swap_allow_bit(control_allow[i]), 1u << i);
    assert_null(control_allow[5]);
}

static void to_stop_is_always_allowed(void **state)
{
    (void)state;
    for (int v = 0; v < 64; v++)
        assert_int_equal(control_stops((Actd__V1__Verb)v),
                         v == V(DISARM) || v == V(STOP) || v == V(ESTOP));
    assert_true(control_acts((Actd__V1__Verb)5)); // unknown: as dangerous as can be
}

// ---- what is none --------------------------------------------------------------------

#define RAW(...)                            \
    sizeof((const uint8_t[]){__VA_ARGS__}), \
    {                                       \
        __VA_ARGS__                         \
    }

static void not_one_is_refused(void **state)
{
    static const struct {
        const char *what, *why;
        size_t n;
        uint8_t data[24];
    } cases[] = {
        {"nothing", "verb: missing", RAW(8, 1)},
        {"verb 0", "verb: this version", RAW(16, 0)},
        {"verb 5", "verb: this version", RAW(16, 5)},
        {"verb 28", "verb: this version", RAW(16, 28)},
        {"verb -1", "verb: this version",
         RAW(16, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1)},
        {"verb 2^32 + 1", "verb: this version", RAW(16, 129, 128, 128, 128, 16)},
        {"unknown field 7", "a field that this version", RAW(16, 1, 56, 1)},
        {"field 0", "a field that this version", RAW(0, 1)},
        {"field 2^29", "a field that this version", RAW(128, 128, 128, 128, 16, 1)},
        {"verb as bytes", "not an actd", RAW(18, 1, 1)},
        {"name as varint", "not an actd", RAW(24, 1)},
        {"group", "not an actd", RAW(16, 1, 11, 12)},
        {"fixed 32", "not an actd", RAW(13, 1, 0, 0, 0)},
        {"verb twice", "a field twice", RAW(16, 1, 16, 19)},
        {"id twice", "a field twice", RAW(8, 1, 16, 1, 8, 2)},
        {"name twice", "a field twice", RAW(16, 22, 26, 1, 'a', 26, 1, 'b')},
        {"varint without end", "not an actd", RAW(16, 128)},
        {"varint of eleven bytes", "not an actd",
         RAW(8, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0, 16, 1)},
        {"varint of 65 bits", "not an actd",
         RAW(8, 128, 128, 128, 128, 128, 128, 128, 128, 128, 2, 16, 1)},
        {"a name beyond the end", "not an actd", RAW(16, 22, 26, 2, 'a')},
        {"a name of 2^63 bytes", "not an actd",
         RAW(16, 22, 26, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1)},
        {"a text of 1 GB", "not an actd", RAW(16, 24, 50, 128, 128, 128, 128, 4, 'a')},
        {"swap without name", "name: missing", RAW(16, 22)},
        {"empty name", "name: expected 1", RAW(16, 22, 26, 0)},
        {"NUL in the name", "name: expected printable", RAW(16, 22, 26, 3, 'a', 0, 'b')},
        {"a path", "name: expected printable", RAW(16, 22, 26, 3, 'a', '/', 'b')},
        {"escape", "name: expected printable", RAW(16, 22, 26, 2, 27, 'b')},
        {"new line", "name: expected printable", RAW(16, 22, 26, 2, 'a', '\n')},
        {"beyond ASCII", "name: expected printable", RAW(16, 22, 26, 2, 0xc3, 0xb6)},
        {"here", "name: '.'", RAW(16, 22, 26, 1, '.')},
        {"above", "name: '.'", RAW(16, 22, 26, 2, '.', '.')},
        {"status of a name", "does not belong", RAW(16, 1, 26, 1, 'a')},
        {"arm by force", "does not belong", RAW(16, 16, 40, 1)},
        {"swap back to a name", "does not belong", RAW(16, 23, 26, 1, 'a')},
        {"swap with a text", "does not belong", RAW(16, 22, 26, 1, 'a', 50, 1, 'x')},
        {"estop allowing", "does not belong", RAW(16, 19, 34, 4, 'r', 'a', 't', 'e')},
        {"allow what", "allow: expected", RAW(16, 22, 26, 1, 'a', 34, 2, 'a', 'l')},
        {"allow nothing", "allow: expected", RAW(16, 22, 26, 1, 'a', 34, 0)},
        {"allow twice", "allow: one",
         RAW(16, 22, 26, 1, 'a', 34, 4, 'r', 'a', 't', 'e', 34, 4, 'r', 'a', 't', 'e')},
        {"instruct nothing", "text: missing", RAW(16, 24)},
        {"instruct an empty text", "text: missing", RAW(16, 24, 50, 0)},
        {"overlong", "text: expected UTF-8", RAW(16, 24, 50, 2, 0xc0, 0x80)},
        {"surrogate", "text: expected UTF-8", RAW(16, 24, 50, 3, 0xed, 0xa0, 0x80)},
        {"beyond U+10FFFF", "text: expected UTF-8",
         RAW(16, 24, 50, 4, 0xf4, 0x90, 0x80, 0x80)},
        {"half a character", "text: expected UTF-8", RAW(16, 24, 50, 2, 0xe2, 0x82)},
        {"no first byte", "text: expected UTF-8", RAW(16, 24, 50, 1, 0x80)},
        {"0xff", "text: expected UTF-8", RAW(16, 24, 50, 1, 0xff)},
        {"a control character of Latin-1", "text: expected UTF-8",
         RAW(16, 24, 50, 2, 0xc2, 0x9b)},
        {"NUL in the text", "text: expected UTF-8", RAW(16, 24, 50, 2, 'a', 0)},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(bytes, cases[i].data, cases[i].n);
        if (parse(cases[i].n) == 0)
            fail_msg("%s: accepted", cases[i].what);
        if (!strstr(why, cases[i].why))
            fail_msg("%s: '%s'", cases[i].what, why);
    }
}

static void what_proto3_may_send_though_it_need_not_is_read(void **state)
{
    (void)state;
    memcpy(bytes, "\x08\x00\x10\x10\x28\x00\x32\x00", 8); // id 0, ARM, force 0, text ""
    assert_int_equal(parse(8), 0);
    same_as_protobuf(bytes, 8);
    memcpy(bytes, "\x10\x90\x80\x00\x88\x00\x07", 7); // ARM and id with idle bytes
    assert_int_equal(parse(7), 0);
    assert_true(r.verb == V(ARM) && r.id == 7);
    same_as_protobuf(bytes, 7);
}

static void the_id_is_known_also_of_what_is_refused(void **state)
{
    (void)state;
    memcpy(bytes, "\x08\x2a\x10\x05", 4);
    assert_int_equal(parse(4), -EINVAL);
    assert_int_equal(r.id, 42);
    memset(bytes, 'x', sizeof bytes);
    memcpy(bytes, "\x08\x2a\x10\x01", 4);
    assert_int_equal(parse(CONTROL_REQUEST_MAX + 1), -EINVAL);
    assert_string_equal(why, "longer than 4096 bytes");
}

static void lengths_are_bounded(void **state)
{
    static char name[80], text[CONTROL_REQUEST_MAX];

    (void)state;
    for (size_t n = CONFIG_NAME - 1; n <= CONFIG_NAME; n++) {
        memset(name, 'n', n);
        name[n] = '\0';
        assert_int_equal(parse(pack(1, V(SWAP), name, "", false, NULL, 0)),
                         n < CONFIG_NAME ? 0 : -EINVAL);
    }
    for (size_t n = CONTROL_TEXT - 1; n <= CONTROL_TEXT; n++) {
        memset(text, 't', n);
        text[n] = '\0';
        assert_int_equal(parse(pack(1, V(INSTRUCT), "", text, false, NULL, 0)),
                         n < CONTROL_TEXT ? 0 : -EINVAL);
    }
}

// Every byte of good requests changed, cut and doubled: accepted only with protobuf-c's
// reading.
static void a_changed_request_is_refused_or_read_as_protobuf_reads_it(void **state)
{
    const char *allow[] = {"rate", "units"};
    int accepted = 0;

    (void)state;
    srand(2);
    for (int round = 0; round < 400000; round++) {
        size_t n = round % 2 ? pack((uint64_t)rand(), V(SWAP), "reach", "", round & 2,
                                    allow, (size_t)(rand() % 3))
                             : pack(300, V(INSTRUCT), "", "gr\xc3\xbcn", false, NULL, 0);
        for (int k = rand() % 3; k >= 0; k--)
            bytes[(size_t)rand() % n] = (uint8_t)rand();
        if (rand() % 4 == 0)
            n = (size_t)rand() % n;
        if (parse(n) != 0)
            continue;
        same_as_protobuf(bytes, n);
        accepted++;
    }
    print_message("%d changed requests accepted\n", accepted);
    assert_true(accepted > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_verb_is_read),
        cmocka_unit_test(the_bits_are_those_of_the_swap),
        cmocka_unit_test(to_stop_is_always_allowed),
        cmocka_unit_test(not_one_is_refused),
        cmocka_unit_test(what_proto3_may_send_though_it_need_not_is_read),
        cmocka_unit_test(the_id_is_known_also_of_what_is_refused),
        cmocka_unit_test(lengths_are_bounded),
        cmocka_unit_test(a_changed_request_is_refused_or_read_as_protobuf_reads_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
