// The bus over real ipc sockets with a tape: every message that came is on it, once, each at a time
// of its own, and the commands as they left.
#include "tests/unit/bus_fixture.h"

#include "daemon/keyframe.h"

static int setup_taped(void **state)
{
    const struct tape_sizes sizes = {{1 << 22, 1 << 12, 1 << 12, 1 << 22, 1 << 12}};
    int rc = setup(state);
    struct fixture *f = *state;

    if (rc != 0 || tape_new(&f->board.tape, &sizes) != 0)
        return -1;
    tape_turn(f->board.tape, true);
    return start(f);
}

static int teardown_taped(void **state)
{
    struct fixture *f = *state;
    struct tape *t = f->board.tape;
    int rc = teardown(state);

    tape_free(t);
    return rc;
}

static uint64_t came(const struct fixture *f)
{
    const struct camera_mark *m = &f->board.camera[0];

    return m->received + m->refused + m->duplicate + camera_superseded(f->camera[0]);
}

static void test_every_frame(void **state)
{
    struct fixture *f = *state;
    struct tape *t = f->board.tape;
    const struct tape_entry *e;
    uint64_t sent = 0, taped = 0, inputs = 0, superseded = 0;
    ns_t last = 0, times[4096];

    connect_all(f);
    for (int burst = 1; burst <= 100; burst++) {
        for (int i = 0; i <= burst % 7; i++, sent++)
            send_frame(f, (uint8_t)sent); // the next one's content says which it is
        EVENTUALLY(came(f) == sent);
    }
    bus_stop(f->bus);
    f->bus = NULL;
    for (; (e = tape_peek(t, TAPE_FRAMES)); tape_release(t, TAPE_FRAMES))
        times[taped++] = e->at_ns;
    assert_int_equal(taped, sent);
    for (uint64_t i = 0; i < taped; i++)
        for (uint64_t k = 0; k < i; k++)
            assert_true(times[i] != times[k]);
    for (; (e = tape_peek(t, TAPE_BUS)); tape_release(t, TAPE_BUS)) {
        const struct tape_input *in = (const void *)(e + 1);

        if (e->kind != TAPE_INPUT || in->stream != 1)
            continue;
        inputs++;
        superseded += in->kind == TAPE_SUPERSEDED;
        assert_int_equal(in->form, TAPE_RAW);
        assert_true(in->kept);
        last =
            in->kind == TAPE_MESSAGE && in->outcome == TAPE_ACCEPTED ? in->at_ns : last;
    }
    assert_int_equal(inputs, sent);
    assert_int_equal(superseded, camera_superseded(f->camera[0]));
    assert_true(superseded > 0);
    assert_true(last == f->board.camera[0].received_ns);
}

#define PARTS 3
static const char *const parts[PARTS] = {"one part", "", "and the last one"};

// Each part of a message of several is there, byte for byte.
static void is_part(const struct tape_entry *e, int i)
{
    const struct tape_input *in = (const void *)(e + 1);

    assert_int_equal(in->kind, i == 0 ? TAPE_SEVERAL_PARTS : TAPE_PART);
    assert_int_equal(in->outcome, i == 0 ? TAPE_REFUSED : TAPE_NONE);
    assert_int_equal(in->form, TAPE_PARTS);
    assert_int_equal(in->more, i + 1 < PARTS);
    assert_true(in->kept);
    assert_int_equal(e->size, sizeof *in + strlen(parts[i]));
    assert_memory_equal(in + 1, parts[i], strlen(parts[i]));
}

static void test_joint_states(void **state)
{
    struct fixture *f = *state;
    struct tape *t = f->board.tape;
    const struct tape_entry *e;
    uint64_t taped = 0, sample = 0;
    ns_t last = 0;

    connect_all(f);
    for (int i = 0; i < 500; i++)
        send_joints(f, i);
    for (int i = 0; i < PARTS; i++)
        zmq_send(f->joints, parts[i], strlen(parts[i]), i + 1 < PARTS ? ZMQ_SNDMORE : 0);
    send_joints(f, 500);
    EVENTUALLY(f->board.joint_mark.received == 501);
    assert_int_equal(f->board.joint_mark.refused, 1);
    bus_stop(f->bus);
    f->bus = NULL;
    for (; (e = tape_peek(t, TAPE_BUS)); tape_release(t, TAPE_BUS)) {
        const struct tape_input *in = (const void *)(e + 1);
        uint8_t buf[256];

        if (e->kind != TAPE_INPUT || in->kind == TAPE_WALL_SET)
            continue;
        taped++;
        assert_int_equal(in->number, taped);
        assert_true(in->at_ns > last && e->at_ns == in->at_ns);
        last = in->at_ns;
        if (taped > 500 && taped <= 500 + PARTS) {
            is_part(e, (int)taped - 501);
            continue;
        }
        assert_int_equal(in->kind, TAPE_MESSAGE);
        sample++;
        assert_int_equal(in->joint_sample, sample);
        assert_int_equal(e->size,
                         sizeof *in + joints_message(f, (double)sample - 1, buf));
    }
    assert_int_equal(taped, 501 + PARTS);
}

// The bytes that the driver got, under the time at which the outbox let them go.
static void test_commands(void **state)
{
    struct fixture *f = *state;
    struct tape *t = f->board.tape;
    const struct tape_entry *e;
    uint8_t heard[50][512];
    int size[50], n = 0;
    const int ms = 5000;
    ns_t from, to, last = 0;

    connect_all(f);
    connect_commands(f);
    bus_counts(f->bus);
    from = clock_now_ns();
    zmq_setsockopt(f->commands, ZMQ_RCVTIMEO, &ms, sizeof ms);
    for (int i = 0; i < 50; i++) {
        assert_true(push_command(f, (uint64_t)i + 100));
        size[i] = zmq_recv(f->commands, heard[i], sizeof heard[i], 0);
        assert_true(size[i] > 0);
    }
    to = clock_now_ns();
    bus_stop(f->bus);
    f->bus = NULL;
    for (; (e = tape_peek(t, TAPE_BUS)); tape_release(t, TAPE_BUS)) {
        if (e->kind != TAPE_COMMAND || e->at_ns < from)
            continue;
        assert_true(n < 50 && e->at_ns > last && e->at_ns < to);
        last = e->at_ns;
        assert_int_equal(e->size, size[n]);
        assert_memory_equal(e + 1, heard[n], e->size);
        n++;
    }
    assert_int_equal(n, 50);
}

// Asked for, the bus gives its state with the next thing that wakes it.
static void test_state(void **state)
{
    struct fixture *f = *state;
    struct tape *t = f->board.tape;
    const struct tape_entry *e;
    struct keyframe_head h;
    uint64_t states = 0;

    connect_all(f);
    connect_commands(f);
    for (int i = 0; i < 5; i++) {
        send_joints(f, i);
        EVENTUALLY(f->board.joint_mark.received == (uint64_t)i + 1);
        tape_ask_states(t);
        push_command(f, 2);
        EVENTUALLY(atomic_load(&t->bus_state_given) == atomic_load(&t->bus_state_asked));
    }
    bus_stop(f->bus);
    f->bus = NULL;
    for (; (e = tape_peek(t, TAPE_BUS)); tape_release(t, TAPE_BUS)) {
        if (e->kind != TAPE_BUS_STATE)
            continue;
        memcpy(&h, e + 1, sizeof h);
        assert_int_equal(h.number,
                         states); // the first was asked for when it was turned on
        assert_int_equal(h.kind, KEYFRAME_BUS);
        states++;
    }
    assert_int_equal(states, 6);
}

#define TAPED(name) cmocka_unit_test_setup_teardown(name, setup_taped, teardown_taped)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TAPED(test_every_frame),
        TAPED(test_joint_states),
        TAPED(test_commands),
        TAPED(test_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
