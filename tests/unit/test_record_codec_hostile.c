// record_codec_read: whatever may stand in a file, by damage or by intent. Under the sanitizers this
// is where a step beyond the message would show.
#include <errno.h>

#include "tests/unit/count_allocations.h"
#include "tests/unit/record_random.h"

#define FLIPS 40000

enum message { TICK, INPUT, CHUNK, SEAT };

// Reads from memory of just that size, so that the sanitizer sees a step beyond. A message that is
// taken must be one that can be written, and read again.
static int read_any(enum message kind, const void *data, size_t size)
{
    static struct tick_record r;
    static struct tape_seat s;
    struct tape_input in;
    struct tape_chunk c;
    void *copy = malloc(size ? size : 1);
    char *sidecar = NULL;
    float *row = NULL;
    size_t n = 0;
    int rc;

    assert_non_null(copy);
    if (size > 0)
        memcpy(copy, data, size);
    rc = kind == TICK    ? record_tick_read(&r, copy, size)
         : kind == INPUT ? record_input_read(&in, copy, size)
         : kind == CHUNK ? record_chunk_read(&c, &row, copy, size)
                         : record_seat_read(&s, &sidecar, copy, size);
    if (rc == 0) {
        n = kind == TICK    ? record_tick(&r, out, CAPACITY)
            : kind == INPUT ? record_input(&in, out, CAPACITY)
            : kind == CHUNK ? record_chunk(&c, row, out, CAPACITY)
                            : record_seat(&s, sidecar, strlen(sidecar), out, CAPACITY);
        assert_true(n > 0 || kind == TICK || kind == SEAT); // all zero: no bytes
    } else {
        assert_int_equal(rc, -EINVAL);
        assert_null(row);
        assert_null(sidecar);
    }
    free(copy);
    free(row);
    free(sidecar);
    return rc;
}

// A good message with one more field behind it: of a number the last one counts, of an array all.
struct addition {
    enum message kind;
    unsigned field, wire;
    uint64_t value; // wire 0: varint; wire 1, 5: 8, 4 bytes; wire 2: that many zeros
    int rc;
};

static size_t good_message(enum message kind, unsigned char *data)
{
    static const struct {
        const char *data;
        size_t n;
    } good[] = {{BYTES(bytes_tick)},
                {BYTES(bytes_input)},
                {BYTES(bytes_chunk)},
                {BYTES(bytes_seat)}};

    memcpy(data, good[kind].data, good[kind].n);
    return good[kind].n;
}

static size_t put_varint(unsigned char *data, uint64_t v)
{
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        data[n++] = (unsigned char)(v | 0x80);
    data[n++] = (unsigned char)v;
    return n;
}

static int read_with(const struct addition *a)
{
    static unsigned char data[CAPACITY];
    size_t n = good_message(a->kind, data);

    n += put_varint(data + n, a->field << 3 | a->wire);
    if (a->wire == 0 || a->wire == 2)
        n += put_varint(data + n, a->value);
    else
        memcpy(data + n, &a->value, a->wire == 1 ? 8 : 4);
    n += a->wire == 1 ? 8 : a->wire == 5 ? 4 : 0;
    if (a->wire == 2) {
        memset(data + n, 'a', (size_t)a->value);
        n += (size_t)a->value;
    }
    return read_any(a->kind, data, n);
}

#define MINUS(x) (2 * (uint64_t)(x)-1) // zigzag
#define PLUS(x)  (2 * (uint64_t)(x))
#define BAD      (-EINVAL)
#define AGE      (UINT64_C(1) << 62)

static const struct addition additions[] = {
    {TICK, 2, 0, PLUS(AGE), BAD},
    {TICK, 2, 0, PLUS(AGE - 1), 0},
    {TICK, 2, 0, MINUS(AGE), BAD},
    {TICK, 2, 0, MINUS(AGE - 1), 0},
    {TICK, 3, 0, PLUS(AGE), BAD},
    {TICK, 4, 0, PLUS(AGE), BAD},
    {TICK, 5, 0, PLUS(AGE), BAD},
    {TICK, 6, 0, PLUS(AGE), BAD},
    {TICK, 10, 0, PLUS(34), BAD},
    {TICK, 10, 0, PLUS(33), 0},
    {TICK, 10, 0, MINUS(1), BAD},
    {TICK, 11, 0, PLUS(32), BAD},
    {TICK, 11, 0, PLUS(31), 0},
    {TICK, 11, 0, MINUS(2), BAD},
    {TICK, 16, 0, 4097, BAD},
    {TICK, 17, 0, 64, BAD},
    {TICK, 21, 0, PLUS(4), BAD},
    {TICK, 21, 0, MINUS(1), BAD},
    {TICK, 40, 0, 12, BAD},
    {TICK, 40, 0, UINT64_MAX, BAD},
    {TICK, 41, 0, 34, BAD},
    {TICK, 42, 0, PLUS(32), BAD},
    {TICK, 42, 0, MINUS(2), BAD},
    {TICK, 57, 0, 1u << 31, BAD},
    {TICK, 58, 0, PLUS(AGE), BAD},
    {TICK, 60, 2, 8, BAD}, // a third joint, of some
    {TICK, 60, 2, 7, BAD},
    {TICK, 61, 2, 8, BAD},
    {TICK, 62, 2, 8, BAD},
    {TICK, 63, 2, 8, BAD},
    {TICK, 64, 2, 8, BAD},
    {TICK, 65, 2, 8, BAD},
    {TICK, 66, 2, 8, BAD},
    {TICK, 67, 2, 8, BAD},
    {TICK, 68, 2, 1, BAD},
    {TICK, 60, 2, 31 * 8, BAD},
    {TICK, 1, 2, 4, BAD},
    {TICK, 99, 0, 7, 0}, // unknown: of a newer version
    {TICK, 99, 2, 16000, 0},
    {TICK, 99, 2, 16384, BAD},
    {INPUT, 1, 0, 0, BAD},
    {INPUT, 2, 0, PLUS(AGE), BAD},
    {INPUT, 3, 0, 4, 0},
    {INPUT, 3, 0, 5, BAD},
    {INPUT, 4, 0, 17, BAD},
    {INPUT, 4, 0, 16, 0},
    {INPUT, 4, 0, UINT32_MAX, BAD},
    {INPUT, 6, 0, 5, BAD},
    {INPUT, 7, 0, CODEC_VERDICTS, BAD},
    {INPUT, 9, 0, PLUS(AGE), BAD},
    {INPUT, 13, 0, 4, 0},
    {INPUT, 13, 0, 5, BAD},
    {INPUT, 13, 0, UINT64_MAX, BAD},
    {INPUT, 99, 2, 300, BAD},
    {CHUNK, 1, 0, 0, BAD},
    {CHUNK, 4, 0, PLUS(AGE), BAD},
    {CHUNK, 5, 0, PLUS(AGE), BAD},
    {CHUNK, 6, 0, MINUS(AGE), BAD},
    {CHUNK, 7, 0, PLUS(0), BAD},
    {CHUNK, 7, 0, MINUS(5), BAD},
    {CHUNK, 8, 0, 0, BAD},
    {CHUNK, 8, 0, 3, BAD},
    {CHUNK, 8, 0, UINT32_MAX, BAD},
    {CHUNK, 9, 0, 0, BAD},
    {CHUNK, 9, 0, 2, BAD},
    {CHUNK, 9, 0, 33, BAD},
    {CHUNK, 9, 0, 1u << 31, BAD},
    {CHUNK, 10, 2, 4, BAD},
    {CHUNK, 10, 5, 0, BAD},
    {CHUNK, 11, 0, PLUS(AGE), BAD},
    {CHUNK, 13, 2, 1, BAD},
    {CHUNK, 14, 2, 1, BAD},
    {CHUNK, 13, 2, 15, BAD},
    {SEAT, 2, 2, 127, 0},
    {SEAT, 2, 2, 128, BAD},
    {SEAT, 3, 2, 4096, BAD},
    {SEAT, 4, 2, 72, BAD},
    {SEAT, 5, 2, 72, BAD},
    {SEAT, 6, 2, 72, BAD},
    {SEAT, 7, 2, 72, BAD},
    {SEAT, 9, 0, PLUS(AGE), BAD},
    {SEAT, 10, 0, POOL_MAX_THREADS, 0},
    {SEAT, 10, 0, POOL_MAX_THREADS + 1, BAD},
    {SEAT, 10, 0, UINT32_MAX, BAD},
};

static void numbers_are_looked_at(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof additions / sizeof *additions; i++) {
        const struct addition *a = &additions[i];
        int rc = read_with(a);

        if (rc != a->rc)
            print_error("message %d, field %u = %llu: %d\n", (int)a->kind, a->field,
                        (unsigned long long)a->value, rc);
        assert_int_equal(rc, a->rc);
    }
}

// A tick of so many joints and cameras with this limit for each joint.
static int read_tick_of(int joints, int cameras, int limit)
{
    static unsigned char data[CAPACITY];
    size_t n = 0;

    for (unsigned field = 60; field <= 68; field++) {
        size_t bytes = field < 68 ? (size_t)joints * 8 : (size_t)joints;

        n += put_varint(data + n, field << 3 | 2);
        n += put_varint(data + n, bytes);
        memset(data + n, field < 68 ? 0 : limit, bytes);
        n += bytes;
    }
    for (int i = 0; i < cameras; i++) {
        data[n++] = 14 << 3 | 2;
        data[n++] = 0;
    }
    return read_any(TICK, data, n);
}

static void joints_and_cameras_are_counted(void **state)
{
    (void)state;
    assert_int_equal(read_tick_of(32, 16, 4), 0);
    assert_int_equal(read_tick_of(33, 16, 4), BAD);
    assert_int_equal(read_tick_of(100, 0, 4), BAD);
    assert_int_equal(read_tick_of(32, 17, 4), BAD);
    assert_int_equal(read_tick_of(1, 1000, 4), BAD);
    assert_int_equal(read_tick_of(2, 1, 5), BAD);
    assert_int_equal(read_tick_of(2, 1, 127), BAD);
    assert_int_equal(read_tick_of(0, 0, 0), 0);
}

static void cameras_times_are_looked_at(void **state)
{
    (void)state;
    for (unsigned char field = 1; field <= 2; field++)
        for (uint64_t more = 0; more < 2; more++) {
            unsigned char data[16] = {14 << 3 | 2, 0, (unsigned char)(field << 3)};
            size_t n = put_varint(data + 3, PLUS(AGE - 1 + more));

            data[1] = (unsigned char)(1 + n);
            assert_int_equal(read_any(TICK, data, 3 + n), more ? BAD : 0);
        }
}

static void a_message_has_bounds(void **state)
{
    static unsigned char data[2 << 20];
    size_t most = record_chunk_bytes(4096, ACTD_MAX_JOINTS), n;

    (void)state;
    for (size_t size = most; size <= most + 1; size++) { // an unknown field fills it up
        n = good_message(CHUNK, data);
        data[n++] = 15 << 3 | 2;
        n += put_varint(data + n, size - n - 3);
        memset(data + n, 0, size - n);
        assert_int_equal(read_any(CHUNK, data, size), size == most ? 0 : BAD);
    }
    n = good_message(SEAT, data);
    data[n++] = 15 << 3 | 2;
    n += put_varint(data + n, sizeof data - n - 3);
    assert_int_equal(read_any(SEAT, data, sizeof data), BAD);
}

// Unknown fields of two bytes, of which protobuf-c keeps fifty bytes each.
static void bombs_are_small(void **state)
{
    static unsigned char data[CAPACITY];

    (void)state;
    for (size_t i = 0; i + 1 < sizeof data; i += 2) {
        data[i] = 15 << 3;
        data[i + 1] = 1;
    }
    allocations = 0;
    counting = true;
    assert_int_equal(record_tick_read(&(struct tick_record){0}, data, RECORD_TICK_MAX),
                     BAD);
    counting = false;
    assert_int_equal(allocations, 0);
    assert_int_equal(read_any(CHUNK, data, sizeof data), BAD);
    assert_int_equal(read_any(SEAT, data, sizeof data), BAD);
    assert_int_equal(read_any(SEAT, NULL, 0), 0); // all of it zero: a seat without a name
    assert_int_equal(read_any(INPUT, NULL, 0), BAD);
    assert_int_equal(read_any(CHUNK, NULL, 0), BAD);
}

static size_t random_message(enum message kind, unsigned char *data, size_t capacity)
{
    static struct tick_record r;
    static float row[100 * ACTD_MAX_JOINTS];
    struct tape_input in;
    struct tape_chunk c;

    if (kind == TICK) {
        random_tick(&r);
        return record_tick(&r, data, capacity);
    }
    if (kind == INPUT) {
        random_input(&in);
        return record_input(&in, data, capacity);
    }
    if (kind == CHUNK) {
        random_chunk(&c, row);
        return record_chunk(&c, row, data, capacity);
    }
    return good_message(kind, data);
}

static void cut_anywhere(void **state)
{
    static unsigned char data[CAPACITY];
    size_t n;

    (void)state;
    for (enum message kind = TICK; kind <= SEAT; kind++) {
        n = good_message(kind, data);
        for (size_t cut = 0; cut <= n; cut++)
            read_any(kind, data, cut);
        n = random_message(kind, data, sizeof data);
        for (size_t cut = 0; cut <= n; cut += 1 + cut / 64)
            read_any(kind, data, cut);
        assert_int_equal(read_any(kind, data, n), 0);
    }
}

static void changed_anywhere(void **state)
{
    static unsigned char data[CAPACITY];
    int taken = 0;

    (void)state;
    for (int i = 0; i < FLIPS; i++) {
        enum message kind = (enum message)(i % 4);
        size_t n =
            coin() ? good_message(kind, data) : random_message(kind, data, sizeof data);

        for (int k = 1 + below(4); k-- > 0;)
            data[any() % n] = (unsigned char)any();
        taken += read_any(kind, data, n) == 0;
    }
    assert_in_range(taken, FLIPS / 50, FLIPS - FLIPS / 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_looked_at),
        cmocka_unit_test(joints_and_cameras_are_counted),
        cmocka_unit_test(cameras_times_are_looked_at),
        cmocka_unit_test(a_message_has_bounds),
        cmocka_unit_test(bombs_are_small),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(changed_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
