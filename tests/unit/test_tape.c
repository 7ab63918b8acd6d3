// tape: what each writer puts on it is what the recorder finds, in its class; off it costs nothing
// but numbers go on; what does not fit is counted where it belongs.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/tape.h"

static struct tape *small_tape(bool on)
{
    struct tape_sizes sizes = {{65536, 65536, 65536, 65536, 65536}};
    struct tape *t;

    assert_int_equal(tape_new(&t, &sizes), 0);
    if (on)
        tape_turn(t, true);
    return t;
}

static void assert_empty(struct tape *t)
{
    for (int c = 0; c < TAPE_CLASSES; c++)
        assert_null(tape_peek(t, (enum tape_class)c));
}

// The next of a class, which must be of this kind, time and size; the caller releases it.
static const void *next(struct tape *t, enum tape_class c, enum tape_kind kind,
                        ns_t at_ns, size_t size)
{
    const struct tape_entry *e = tape_peek(t, c);

    assert_non_null(e);
    assert_int_equal(e->kind, kind);
    assert_int_equal(e->at_ns, at_ns);
    assert_int_equal(e->size, size);
    return e + 1;
}

static struct tape_input input(int stream)
{
    struct tape_input in;

    memset(&in, 0, sizeof in);
    in.at_ns = 1234;
    in.stream = stream;
    in.form = stream == 0 ? TAPE_JOINTS : TAPE_COMPRESSED;
    in.stamp_wall_ns = 99;
    return in;
}

// ---- off -------------------------------------------------------------------------------------

static void without_a_tape(void **state)
{
    (void)state;
    static struct tick_record r;
    struct tape_input in = input(0);
    struct tape_chunk c = {.rows = 1, .joints = 1};

    assert_false(tape_on(NULL));
    assert_false(tape_tick(NULL, &r));
    assert_null(tape_reserve(NULL, TAPE_TICKS, TAPE_TICK, 0, 8));
    tape_input(NULL, &in, "abc", 3);
    assert_false(in.kept);
    assert_int_equal(in.bytes, 3);
    assert_false(tape_command(NULL, 0, "abc", 3));
    assert_false(tape_chunk(NULL, &c, &(float){0}));
    assert_false(tape_event(NULL, 0, TAPE_LEVEL_INFO, "actd", "x"));
    assert_false(tape_loop_state_due(NULL, 0));
    assert_false(tape_bus_state_due(NULL));
    tape_free(NULL);
}

// Nothing is written, nothing lost, and no page touched; inputs and chunks are counted.
static void off(void **state)
{
    (void)state;
    static struct tick_record r;
    struct tape *t = small_tape(false);
    struct tape_chunk c = {.rows = 1, .joints = 1};

    tape_ask_states(t);
    for (uint64_t i = 1; i <= 3; i++) {
        struct tape_input in = input((int)i - 1);

        assert_false(tape_tick(t, &r));
        tape_input(t, &in, "abc", 3);
        assert_int_equal(in.number, i);
        assert_false(in.kept);
        assert_false(tape_chunk(t, &c, &(float){0}));
        assert_int_equal(c.number, i);
        assert_false(tape_command(t, 0, "abc", 3));
        assert_false(tape_event(t, 0, TAPE_LEVEL_INFO, "actd", "x"));
        assert_false(tape_loop_state_due(t, 0) || tape_bus_state_due(t));
    }
    assert_empty(t);
    for (int k = 0; k < TAPE_CLASSES; k++)
        assert_true(tape_lost(t, (enum tape_class)k) == 0 && !t->touched);
    tape_turn(t, true);
    struct tape_input in = input(0);
    tape_input(t, &in, "abc", 3);
    assert_int_equal(in.number, 4); // numbers went on
    tape_turn(t, false);
    tape_free(t);
}

// ---- each kind -------------------------------------------------------------------------------

static void ticks(void **state)
{
    (void)state;
    static struct tick_record r;
    struct tape *t = small_tape(true);
    const struct tick_record *back;

    memset(&r, 0x5a, sizeof r);
    r.in.now_ns = 77;
    r.joints = 3;
    assert_true(tape_tick(t, &r));
    back = next(t, TAPE_TICKS, TAPE_TICK, 77, tick_record_bytes(3));
    assert_memory_equal(back, &r, tick_record_bytes(3)); // and no joint more
    assert_int_equal((uintptr_t)back % _Alignof(struct tick_record), 0);
    tape_release(t, TAPE_TICKS);
    assert_empty(t);
    tape_free(t);
}

static void joint_states(void **state)
{
    (void)state;
    struct tape *t = small_tape(true);
    struct tape_input in = input(0);
    const struct tape_input *back;

    tape_input(t, &in, "0123456789", 10);
    assert_true(in.kept && in.number == 1 && in.bytes == 10);
    back = next(t, TAPE_BUS, TAPE_INPUT, 1234, sizeof in + 10);
    assert_memory_equal(back, &in, sizeof in);
    assert_memory_equal(back + 1, "0123456789", 10);
    tape_release(t, TAPE_BUS);

    in = input(0); // refused unread: there are no bytes
    in.kind = TAPE_SEVERAL_PARTS;
    tape_input(t, &in, NULL, 12);
    assert_true(!in.kept && in.number == 2 && in.bytes == 12);
    assert_memory_equal(next(t, TAPE_BUS, TAPE_INPUT, 1234, sizeof in), &in, sizeof in);
    tape_release(t, TAPE_BUS);

    in = input(0); // an empty message is one
    tape_input(t, &in, "", 0);
    assert_true(in.kept);
    assert_memory_equal(next(t, TAPE_BUS, TAPE_INPUT, 1234, sizeof in), &in, sizeof in);
    tape_release(t, TAPE_BUS);
    assert_empty(t);
    tape_free(t);
}

static void frames(void **state)
{
    (void)state;
    struct tape *t = small_tape(true);
    struct tape_input in = input(2);
    const struct tape_frame *f;

    tape_input(t, &in, "picture", 7);
    assert_true(in.kept);
    f = next(t, TAPE_FRAMES, TAPE_FRAME, 1234, sizeof *f + 7);
    assert_int_equal(f->camera, 1);
    assert_int_equal(f->form, TAPE_COMPRESSED);
    assert_int_equal(f->stamp_wall_ns, 99);
    assert_memory_equal(f + 1, "picture", 7);
    assert_memory_equal(next(t, TAPE_BUS, TAPE_INPUT, 1234, sizeof in), &in, sizeof in);
    tape_free(t);
}

static void commands_chunks_words(void **state)
{
    (void)state;
    struct tape *t = small_tape(true);
    struct tape_chunk c;
    const float row[6] = {1, 2, 3, 4, 5, 6};
    const struct tape_chunk *back;
    const struct tape_event *e;

    assert_true(tape_command(t, 5, "bytes", 5));
    assert_memory_equal(next(t, TAPE_BUS, TAPE_COMMAND, 5, 5), "bytes", 5);

    memset(&c, 0, sizeof c);
    c.rows = 3;
    c.joints = 2;
    c.ready_ns = 6;
    assert_true(tape_chunk(t, &c, row));
    back = next(t, TAPE_CHUNKS, TAPE_CHUNK, 6, sizeof c + sizeof row);
    assert_int_equal(back->number, 1);
    assert_memory_equal(back, &c, sizeof c);
    assert_memory_equal(back + 1, row, sizeof row);

    assert_true(tape_event(t, 7, TAPE_LEVEL_ERROR, "a name that is too long", "words"));
    e = next(t, TAPE_EVENTS, TAPE_EVENT, 7, sizeof *e + 5);
    assert_int_equal(e->level, TAPE_LEVEL_ERROR);
    assert_string_equal(e->name, "a name that is ");
    assert_memory_equal(e + 1, "words", 5);
    tape_release(t, TAPE_EVENTS);
    tape_free(t);
}

// ---- no room ---------------------------------------------------------------------------------

// Frames are given up, and their inputs say so; of a joint state that does not fit what became of
// it is kept.
static void what_does_not_fit(void **state)
{
    (void)state;
    static unsigned char much[20000];
    static char words[4096];
    struct tape *t = small_tape(true);
    struct tape_input in = input(1);

    tape_input(t, &in, much, sizeof much); // more than a quarter
    assert_true(!in.kept && in.bytes == sizeof much);
    assert_null(tape_peek(t, TAPE_FRAMES));
    assert_int_equal(tape_lost(t, TAPE_FRAMES), 1);
    assert_true(t->lost_bytes[TAPE_FRAMES] >= sizeof much);
    assert_memory_equal(next(t, TAPE_BUS, TAPE_INPUT, 1234, sizeof in), &in, sizeof in);
    tape_release(t, TAPE_BUS);

    in = input(0);
    tape_input(t, &in, much, sizeof much);
    assert_false(in.kept);
    assert_int_equal(tape_lost(t, TAPE_BUS), 1);
    assert_memory_equal(next(t, TAPE_BUS, TAPE_INPUT, 1234, sizeof in), &in, sizeof in);

    memset(words, 'x', sizeof words - 1);
    for (int i = 0; i < 30; i++)
        (void)tape_event(t, 0, TAPE_LEVEL_INFO, "actd", words);
    assert_true(tape_lost(t, TAPE_EVENTS) > 10 && tape_lost(t, TAPE_EVENTS) < 20);
    assert_int_equal(tape_lost(t, TAPE_TICKS), 0);
    tape_free(t);
}

// However much room there is for them: as soon as half of that for ticks, or for the bus, is taken.
static void frames_go_first(void **state)
{
    (void)state;
    static struct tick_record r;
    static unsigned char much[1000];
    struct tape *t = small_tape(true);
    struct tape_input in = input(1);
    uint64_t half;

    r.joints = 6;
    for (int c = 0; c < 2; c++) {
        enum tape_class other = c == 0 ? TAPE_TICKS : TAPE_BUS;

        half = t->spool[other].capacity / 2;
        while (spool_waiting(&t->spool[other]) <= half) {
            tape_input(t, &in, "x", 1);
            assert_true(in.kept);
            tape_release(t, TAPE_FRAMES);
            tape_release(t, TAPE_BUS);
            assert_true(other == TAPE_TICKS ? tape_tick(t, &r)
                                            : tape_command(t, 0, much, sizeof much));
        }
        tape_input(t, &in, "x", 1);
        assert_false(in.kept);
        assert_int_equal(tape_lost(t, TAPE_FRAMES), c + 1);
        assert_int_equal(tape_lost(t, other), 0);
        assert_null(tape_peek(t, TAPE_FRAMES));
        while (tape_peek(t, other))
            tape_release(t, other);
        while (tape_peek(t, TAPE_BUS))
            tape_release(t, TAPE_BUS);
        tape_input(t, &in, "x", 1);
        assert_true(in.kept);
        tape_release(t, TAPE_FRAMES);
        tape_release(t, TAPE_BUS);
    }
    tape_free(t);
}

// ---- threads ---------------------------------------------------------------------------------

#define LINES 5000
static void *say(void *arg)
{
    struct tape *t = arg;
    char text[64];

    for (int i = 0; i < LINES; i++) {
        (void)snprintf(text, sizeof text, "line %d", i);
        (void)tape_event(t, i, TAPE_LEVEL_INFO, "actd", text);
    }
    return NULL;
}

// Any plain thread may speak; each line comes whole, or is counted.
static void many_speak(void **state)
{
    (void)state;
    struct tape *t = small_tape(true);
    pthread_t who[3];
    uint64_t got = 0;

    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&who[i], NULL, say, t), 0);
    while (got + tape_lost(t, TAPE_EVENTS) < 3 * LINES || tape_peek(t, TAPE_EVENTS)) {
        const struct tape_entry *e = tape_peek(t, TAPE_EVENTS);
        char text[64];

        if (e == NULL)
            continue;
        int n = snprintf(text, sizeof text, "line %d", (int)e->at_ns);
        assert_int_equal(e->size, sizeof(struct tape_event) + (size_t)n);
        assert_memory_equal((const struct tape_event *)(e + 1) + 1, text, (size_t)n);
        tape_release(t, TAPE_EVENTS);
        got++;
    }
    for (int i = 0; i < 3; i++)
        pthread_join(who[i], NULL);
    assert_int_equal(got + tape_lost(t, TAPE_EVENTS), 3 * LINES);
    assert_true(got > 0);
    tape_free(t);
}

// ---- states ----------------------------------------------------------------------------------

static void states_when_asked_for(void **state)
{
    (void)state;
    struct tape *t = small_tape(true); // turning it on asks for both
    const ns_t ms = NS_PER_MS;

    assert_false(tape_loop_state_due(t, 1 * ms)); // the bus' is first
    assert_true(tape_bus_state_due(t));
    assert_false(tape_bus_state_due(t));
    assert_true(tape_loop_state_due(t, 2 * ms));
    assert_false(tape_loop_state_due(t, 3 * ms));

    tape_ask_states(t); // the bus is silent
    assert_false(tape_loop_state_due(t, 1000 * ms));
    assert_false(tape_loop_state_due(t, 1099 * ms));
    assert_true(tape_loop_state_due(t, 1100 * ms));
    assert_false(tape_loop_state_due(t, 1200 * ms));
    assert_true(tape_bus_state_due(t)); // later, and for this asking

    tape_ask_states(t);
    tape_ask_states(t); // twice before anybody looked is once
    assert_true(tape_bus_state_due(t) && !tape_bus_state_due(t));
    assert_true(tape_loop_state_due(t, 0) && !tape_loop_state_due(t, 0));

    tape_turn(t, false);
    tape_ask_states(t);
    assert_false(tape_bus_state_due(t) || tape_loop_state_due(t, 0));
    tape_turn(t, true);
    assert_true(tape_bus_state_due(t) && tape_loop_state_due(t, 0));
    tape_turn(t, true); // it is on: nothing new
    assert_false(tape_bus_state_due(t) || tape_loop_state_due(t, 0));
    tape_free(t);
}

static void default_sizes(void **state)
{
    (void)state;
    struct tape_sizes sizes = {{[TAPE_BUS] = 4096}};
    struct tape *t;

    assert_int_equal(tape_new(&t, NULL), 0);
    assert_int_equal(t->spool[TAPE_FRAMES].capacity, TAPE_DEFAULT_FRAMES);
    assert_int_equal(t->spool[TAPE_TICKS].capacity, TAPE_DEFAULT_TICKS);
    tape_free(t);
    assert_int_equal(tape_new(&t, &sizes), 0);
    assert_int_equal(t->spool[TAPE_BUS].capacity, 4096);
    assert_int_equal(t->spool[TAPE_CHUNKS].capacity, TAPE_DEFAULT_CHUNKS);
    tape_free(t);
    sizes.bytes[TAPE_CHUNKS] = SIZE_MAX;
    assert_true(tape_new(&t, &sizes) < 0);
    assert_null(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_tape),
        cmocka_unit_test(off),
        cmocka_unit_test(ticks),
        cmocka_unit_test(joint_states),
        cmocka_unit_test(frames),
        cmocka_unit_test(commands_chunks_words),
        cmocka_unit_test(what_does_not_fit),
        cmocka_unit_test(frames_go_first),
        cmocka_unit_test(many_speak),
        cmocka_unit_test(states_when_asked_for),
        cmocka_unit_test(default_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
