// A state of the bus: taken in the middle of random streams and put into others that were just
// made, it goes on exactly as the first ones do. Damage is refused, or does no harm.
#include <errno.h>

#include "tests/unit/bus_streams.h"
#include "tests/unit/slow.h"

#define RUNS   REPEATS(150, 40)
#define BEFORE 400 // events, at most
#define AFTER  200

// The bytes of a state that was asked for, from the tape.
static size_t take_state(struct side *s, ns_t now, uint8_t *out, size_t capacity)
{
    const struct tape_entry *e;
    size_t size = 0;

    tape_ask_states(s->tape);
    keyframe_bus(s->intake, s->camera, CAMERAS, s->board.tape, now);
    for (; (e = tape_peek(s->tape, TAPE_BUS)); tape_release(s->tape, TAPE_BUS))
        if (e->kind == TAPE_BUS_STATE) {
            assert_true(e->size <= capacity);
            size = e->size;
            memcpy(out, e + 1, size);
        }
    return size;
}

static uint8_t state_bytes[256 * 1024];

// Some events into one side; returns the state after them.
static size_t lead_in(struct side *a, struct source *s, int events)
{
    static struct event e;
    struct taped t;

    tape_turn(a->tape, true);
    for (int i = 0; i < events; i++) {
        next_event(s, &e);
        take(a, &e);
        (void)last_input(a, &t);
    }
    return take_state(a, s->now, state_bytes, sizeof state_bytes);
}

// Both go on. False: they did not go the same way.
static void go_on(struct side *a, struct side *b, struct source *s)
{
    static struct event e;
    static struct taped t, u;

    for (int i = 0; i < AFTER; i++) {
        next_event(s, &e);
        take(a, &e);
        take(b, &e);
        SAME(last_input(a, &t), last_input(b, &u));
        if (e.kind != EVENT_ARMED)
            same_inputs(&t.in, &u.in);
        same_boards(&a->board, &b->board);
    }
}

static void test_goes_on_the_same_way(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        struct side *a = side_new(true), *b = side_new(true);
        struct source s = source_of(seed);
        size_t size = lead_in(a, &s, (int)(rand32(&s) % BEFORE));
        char why[160] = "";

        assert_true(size > 0);
        assert_int_equal(
            keyframe_bus_restore(b->intake, b->camera, CAMERAS, state_bytes, size, why),
            0);
        SAME(a->tape->inputs, b->tape->inputs);
        atomic_store(&b->board.armed, atomic_load(&a->board.armed)); // the loop's
        tape_turn(b->tape, true);
        same_boards(&a->board, &b->board);
        go_on(a, b, &s);
        side_free(a);
        side_free(b);
    }
}

// The test above could not fail were the state never needed: without it, many go another way.
static void test_it_is_needed(void **state)
{
    static struct event e;
    static struct taped t, u;
    int other_way = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct side *a = side_new(true), *b = side_new(true);
        struct source s = source_of(seed);
        bool differs = false;

        (void)lead_in(a, &s, BEFORE);
        atomic_store(&b->board.armed, atomic_load(&a->board.armed));
        tape_turn(b->tape, true);
        for (int i = 0; i < AFTER; i++) {
            next_event(&s, &e);
            take(a, &e);
            take(b, &e);
            (void)last_input(a, &t);
            (void)last_input(b, &u);
            differs |= t.in.outcome != u.in.outcome || t.in.capture_ns != u.in.capture_ns;
        }
        other_way += differs;
        side_free(a);
        side_free(b);
    }
    print_message("%d of 30 go another way\n", other_way);
    assert_true(other_way >= 20);
}

static void test_only_when_asked(void **state)
{
    struct side *a = side_new(true);

    (void)state;
    tape_turn(a->tape, true);
    assert_true(take_state(a, 7, state_bytes, sizeof state_bytes) > 0);
    keyframe_bus(a->intake, a->camera, CAMERAS, a->board.tape, 8);
    assert_null(tape_peek(a->tape, TAPE_BUS));
    tape_turn(a->tape, false);
    assert_int_equal(take_state(a, 9, state_bytes, sizeof state_bytes), 0);
    keyframe_bus(a->intake, a->camera, CAMERAS, NULL, 9);
    side_free(a);
}

static int restore(struct side *b, size_t size, char why[160])
{
    why[0] = '\0';
    return keyframe_bus_restore(b->intake, b->camera, CAMERAS, state_bytes, size, why);
}

static void test_refuses_another(void **state)
{
    struct side *a = side_new(true), *b = side_new(true);
    struct source s = source_of(5);
    size_t size = lead_in(a, &s, 100);
    struct keyframe_head head, was;
    char why[160];

    (void)state;
    memcpy(&was, state_bytes, sizeof was);
    assert_int_equal(was.number, a->tape->inputs);
    assert_int_equal(was.bytes, size);
#define SPOILED(change, words)                            \
    do {                                                  \
        head = was;                                       \
        change;                                           \
        memcpy(state_bytes, &head, sizeof head);          \
        assert_int_equal(restore(b, size, why), -EINVAL); \
        assert_non_null(strstr(why, words));              \
    } while (0)
    SPOILED(head.magic++, "no state of the bus");
    SPOILED(head.kind = KEYFRAME_LOOP, "no state of the bus");
    SPOILED(head.build++, "another build");
    SPOILED(head.joints--, "other joints or cameras");
    SPOILED(head.cameras++, "other joints or cameras");
    SPOILED(head.bytes--, "size");
    memcpy(state_bytes, &was, sizeof was);
    for (size_t n = 0; n < size; n += n < 100 ? 1 : 997) {
        assert_int_equal(restore(b, n, why), -EINVAL);
        assert_true(why[0] != '\0');
    }
    assert_int_equal(restore(b, size, why), 0);
    side_free(a);
    side_free(b);
}

// Whatever the bytes are: refused, or taken and harmless (run it with the sanitizers).
static void test_damage_does_no_harm(void **state)
{
    static struct event e;
    static uint8_t good[sizeof state_bytes];
    struct side *a = side_new(true);
    struct source s = source_of(9);
    size_t size = lead_in(a, &s, 300);
    int refused = 0;
    char why[160];

    (void)state;
    memcpy(good, state_bytes, size);
    for (int i = 0; i < 400; i++) {
        struct source after = s;
        struct side *b = side_new(false);

        memcpy(state_bytes, good, size);
        for (int k = 0; k < 20; k++)
            state_bytes[sizeof(struct keyframe_head) +
                        rand32(&s) % (size - sizeof(struct keyframe_head))] ^=
                (uint8_t)(1 + rand32(&s) % 255);
        if (restore(b, size, why) != 0)
            refused++;
        for (int k = 0; k < 40; k++) {
            next_event(&after, &e);
            take(b, &e);
        }
        side_free(b);
    }
    assert_true(refused > 50 && refused < 400);
    side_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goes_on_the_same_way),
        cmocka_unit_test(test_it_is_needed),
        cmocka_unit_test(test_only_when_asked),
        cmocka_unit_test(test_refuses_another),
        cmocka_unit_test(test_damage_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
