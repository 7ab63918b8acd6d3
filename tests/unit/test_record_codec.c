// record_codec: against what Python's protobuf makes of the same values (record_bytes.h), and there
// and back over random structs, to the bit.
#include "tests/unit/count_allocations.h"
#include "tests/unit/record_random.h"

#define STRUCTS 4000

// ---- there -----------------------------------------------------------------------------------

static void assert_bytes(size_t n, const char *expected, size_t expected_n)
{
    assert_int_equal(n, expected_n);
    assert_memory_equal(out, expected, n);
}

static void bytes_are_protobufs(void **state)
{
    struct tick_record r, back;
    struct tape_input in;

    (void)state;
    tick_known(&r);
    assert_bytes(record_tick(&r, out, CAPACITY), BYTES(bytes_tick));
    assert_int_equal(record_tick_read(&back, BYTES(bytes_tick)), 0);
    assert_memory_equal(&r, &back, sizeof r);
    assert_bytes(record_input(&input_known, out, CAPACITY), BYTES(bytes_input));
    assert_int_equal(record_input_read(&in, BYTES(bytes_input)), 0);
    assert_memory_equal(&in, &input_known, sizeof in);
    assert_bytes(record_chunk(&chunk_known, chunk_row_known, out, CAPACITY),
                 BYTES(bytes_chunk));
    assert_bytes(
        record_event(&event_known, 1700000000000000005, "hot!", 3, out, CAPACITY),
        BYTES(bytes_event));
}

// policy.yaml's text comes last, where Python has it in the order of the numbers.
static void a_seat_is_protobufs(void **state)
{
    struct tape_seat s;
    char *sidecar;

    (void)state;
    assert_int_equal(record_seat(&seat_known, "x: 1\n#", 5, out, CAPACITY),
                     sizeof bytes_seat - 1);
    assert_memory_equal(out, bytes_seat, 21);
    assert_memory_equal(out + 21, bytes_seat + 28, 4);
    assert_memory_equal(out + 25, bytes_seat + 21, 7);
    assert_int_equal(record_seat_read(&s, &sidecar, BYTES(bytes_seat)), 0);
    assert_memory_equal(&s, &seat_known, sizeof s);
    assert_string_equal(sidecar, "x: 1\n");
    free(sidecar);
}

static void before_1970_nanos_count_up(void **state)
{
    static const char expected[] =
        "\x0a\x11\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10"
        "\xff\x93\xeb\xdc\x03\x10\x03\x22\x05"
        "fault";

    (void)state;
    assert_bytes(record_event(&event_known, -1, NULL, 0, out, CAPACITY), BYTES(expected));
}

// The message of an event as it came out: the last bytes.
static void assert_text(const char *text, size_t n, const char *expected)
{
    size_t size = record_event(&event_known, 0, text, n, out, CAPACITY);

    assert_true(size > n);
    assert_memory_equal(out + size - n, expected, n);
}

static void text_becomes_utf8(void **state)
{
    (void)state;
    assert_text("z\xc3\xbc \xe2\x82\xac \xf0\x9f\xa6\xbe", 12,
                "z\xc3\xbc \xe2\x82\xac \xf0\x9f\xa6\xbe");
    assert_text("\xff"
                "a\x80",
                3, "?a?");
    assert_text("\xc3", 1, "?");
    assert_text("\xe2\x82", 2, "??");
    assert_text("\xf0\x9f\xa6", 3, "???");
    assert_text("\xc3(", 2, "?(");
    assert_text("\xc0\xaf\xc1\x81", 4, "????"); // two bytes for one
    assert_text("\xe0\x80\xaf\xe0\xa0\x80", 6,
                "???\xe0\xa0\x80"); // three for one; a good one
    assert_text("\xed\xa0\x80\xed\x9f\xbf", 6,
                "???\xed\x9f\xbf"); // a surrogate; a good one
    assert_text("\xf0\x8f\xbf\xbf\xf0\x90\x80\x80", 8, "????\xf0\x90\x80\x80");
    assert_text("\xf4\x90\x80\x80\xf4\x8f\xbf\xbf", 8, "????\xf4\x8f\xbf\xbf");
    assert_text("\xf5\x80\x80\x80", 4, "????");
}

static void a_seats_text_is_utf8_too(void **state)
{
    struct tape_seat s = seat_known, back;
    char *sidecar;
    size_t n;

    (void)state;
    strcpy(s.directory, "/h\xf6lle");
    n = record_seat(&s, "\xff", 1, out, CAPACITY);
    assert_int_equal(record_seat_read(&back, &sidecar, out, n), 0);
    assert_string_equal(back.directory, "/h?lle");
    assert_string_equal(sidecar, "?");
    free(sidecar);
}

// ---- there and back --------------------------------------------------------------------------

// Packed twice it is the same bytes; with one byte less of room it is none.
#define ASSERT_ENCODES(n, call, call_small) \
    do {                                    \
        unsigned char first[CAPACITY];      \
        n = call;                           \
        assert_int_not_equal(n, 0);         \
        memcpy(first, out, n);              \
        memset(out, 0xee, n);               \
        assert_int_equal(call, n);          \
        assert_memory_equal(first, out, n); \
        assert_int_equal(call_small, 0);    \
    } while (0)

static void ticks_come_back(void **state)
{
    static struct tick_record r, back;
    size_t n, largest = 0;

    (void)state;
    for (int i = 0; i < STRUCTS; i++) {
        random_tick(&r);
        ASSERT_ENCODES(n, record_tick(&r, out, RECORD_TICK_MAX),
                       record_tick(&r, out, n - 1));
        assert_int_equal(record_tick_read(&back, out, n), 0);
        assert_memory_equal(&r, &back, sizeof r);
        largest = n > largest ? n : largest;
    }
    assert_in_range(largest, 2500, 4096); // as record_codec.h says
}

static void inputs_come_back(void **state)
{
    struct tape_input in, back;
    size_t n;

    (void)state;
    for (int i = 0; i < STRUCTS; i++) {
        random_input(&in);
        ASSERT_ENCODES(n, record_input(&in, out, RECORD_INPUT_MAX),
                       record_input(&in, out, n - 1));
        assert_int_equal(record_input_read(&back, out, n), 0);
        assert_memory_equal(&in, &back, sizeof in);
    }
}

static void chunks_come_back(void **state)
{
    static float row[100 * ACTD_MAX_JOINTS];
    struct tape_chunk c, back;
    float *rows;
    size_t n;

    (void)state;
    for (int i = 0; i < STRUCTS; i++) {
        random_chunk(&c, row);
        ASSERT_ENCODES(n,
                       record_chunk(&c, row, out, record_chunk_bytes(c.rows, c.joints)),
                       record_chunk(&c, row, out, n - 1));
        assert_int_equal(record_chunk_read(&back, &rows, out, n), 0);
        assert_memory_equal(&c, &back, sizeof c);
        assert_memory_equal(row, rows, (size_t)c.rows * (size_t)c.joints * sizeof(float));
        free(rows);
    }
}

static void seats_come_back(void **state)
{
    static char text[20000];
    static struct tape_seat s, back;
    char *sidecar;
    size_t n;

    (void)state;
    for (int i = 0; i < STRUCTS / 8; i++) {
        random_seat(&s);
        random_word(text, sizeof text);
        ASSERT_ENCODES(n, record_seat(&s, text, strlen(text), out, CAPACITY),
                       record_seat(&s, text, strlen(text), out, n - 1));
        assert_int_equal(record_seat_read(&back, &sidecar, out, n), 0);
        assert_memory_equal(&s, &back, sizeof s);
        assert_string_equal(text, sidecar);
        free(sidecar);
    }
}

static void no_target_is_no_array(void **state)
{
    struct tick_record r;
    size_t with, without;

    (void)state;
    tick_known(&r);
    with = record_tick(&r, out, CAPACITY);
    r.joint[0].target = r.joint[1].target = (double)NAN;
    without = record_tick(&r, out, CAPACITY);
    assert_int_equal(with - without, 2 + 1 + 2 * 8);
    r.joint[0].target = -(double)NAN; // another NaN: kept
    assert_int_equal(record_tick(&r, out, CAPACITY), with);
}

static void writing_allocates_nothing(void **state)
{
    static struct tick_record r;
    size_t n = 0;

    (void)state;
    random_tick(&r);
    allocations = 0;
    counting = true;
    n += record_tick(&r, out, CAPACITY);
    n += record_input(&input_known, out, CAPACITY);
    n += record_chunk(&chunk_known, chunk_row_known, out, CAPACITY);
    n += record_event(&event_known, 0, "text", 4, out, CAPACITY);
    n += record_seat(&seat_known, "x", 1, out, CAPACITY);
    counting = false;
    assert_true(n > 200);
    assert_int_equal(allocations, 0);
}

static void what_can_not_be_is_not_written(void **state)
{
    static struct tick_record r;
    static struct tape_seat s;
    struct tape_chunk c = chunk_known;
    struct tape_input in = input_known;

    (void)state;
    tick_known(&r);
    r.joints = ACTD_MAX_JOINTS + 1;
    assert_int_equal(record_tick(&r, out, CAPACITY), 0);
    r.joints = -1;
    assert_int_equal(record_tick(&r, out, CAPACITY), 0);
    r.joints = 2;
    r.cameras = POLICY_MAX_CAMERAS + 1;
    assert_int_equal(record_tick(&r, out, CAPACITY), 0);
    c.rows = 0;
    assert_int_equal(record_chunk(&c, chunk_row_known, out, CAPACITY), 0);
    c.rows = 1;
    c.joints = ACTD_MAX_JOINTS + 1;
    assert_int_equal(record_chunk(&c, chunk_row_known, out, CAPACITY), 0);
    in.stream = -1;
    assert_int_equal(record_input(&in, out, CAPACITY), 0);
    memset(&s, 'a', sizeof s); // no text ends
    assert_int_equal(record_seat(&s, "x", 1, out, CAPACITY), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_protobufs),
        cmocka_unit_test(a_seat_is_protobufs),
        cmocka_unit_test(before_1970_nanos_count_up),
        cmocka_unit_test(text_becomes_utf8),
        cmocka_unit_test(a_seats_text_is_utf8_too),
        cmocka_unit_test(ticks_come_back),
        cmocka_unit_test(inputs_come_back),
        cmocka_unit_test(chunks_come_back),
        cmocka_unit_test(seats_come_back),
        cmocka_unit_test(no_target_is_no_array),
        cmocka_unit_test(writing_allocates_nothing),
        cmocka_unit_test(what_can_not_be_is_not_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
