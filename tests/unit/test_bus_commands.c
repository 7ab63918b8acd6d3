// The bus over real ipc sockets, commands out: which of them go, and that nothing a peer does
// keeps one from going.
#include <pthread.h>

#include "tests/unit/bus_fixture.h"

// One at a time all arrive; of what waits together only the newest, and all are accounted
// for.
static void test_commands_in_order(void **state)
{
    struct fixture *f = *state;
    struct bus_counts before, c;
    uint64_t last = 1, got, first;

    assert_int_equal(start(f), 0);
    connect_all(f);
    connect_commands(f);
    first = bus_counts(f->bus).sent;
    for (uint64_t i = 2; i < 200; i++) {
        assert_true(push_command(f, i));
        assert_int_equal(next_command(f->commands, 5000), i);
        last = i;
    }
    // A command is counted right after it was sent.
    EVENTUALLY((before = bus_counts(f->bus), before.sent - first == 198));
    assert_int_equal(before.superseded + before.expired + before.cut, 0);
    for (int burst = 0; burst < 20; burst++) {
        uint64_t newest = last + 30;

        for (uint64_t i = last + 1; i <= newest; i++)
            assert_true(push_command(f, i));
        while ((got = next_command(f->commands, 5000)) != newest) {
            assert_true(got > last);
            last = got;
        }
        last = newest;
    }
    EVENTUALLY((c = bus_counts(f->bus), c.sent - before.sent + c.superseded == 20 * 30));
    assert_int_equal(c.send_failed + c.expired + c.cut, 0);
}

static double ttl_of_next(void *socket)
{
    uint8_t buf[CODEC_COMMAND_MAX];
    int n = zmq_recv(socket, buf, sizeof buf, 0);
    Actd__V1__JointCommand *m =
        n < 0 ? NULL : actd__v1__joint_command__unpack(NULL, (size_t)n, buf);
    double ttl;

    assert_non_null(m);
    ttl = (double)m->time_to_live_ns;
    actd__v1__joint_command__free_unpacked(m, NULL);
    return ttl;
}

static void push_made(struct fixture *f, ns_t ago, ns_t ttl, uint32_t stalls)
{
    const struct command c = {.sequence = 9,
                              .n = JOINTS,
                              .made_ns = clock_now_ns() - ago,
                              .ttl_ns = ttl,
                              .stalls = stalls,
                              .first_joint = -1};

    assert_true(ring_push(&f->board.commands, &c));
    assert_int_equal(write(f->board.command_fd, &(uint64_t){1}, 8), 8);
}

// What is too old, or made before the output was cut, stays here; what goes says how long
// it still lives.
static void test_old_commands_stay(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(start(f), 0);
    connect_all(f);
    connect_commands(f);
    push_made(f, NS_PER_S, NS_PER_S - 1, 0);
    EVENTUALLY(bus_counts(f->bus).expired == 1);
    atomic_store(&f->board.stalls, 1);
    push_made(f, 0, NS_PER_S, 0);
    EVENTUALLY(bus_counts(f->bus).cut == 1);
    push_made(f, NS_PER_S, NS_PER_S + SOON, 1);
    assert_in_range(ttl_of_next(f->commands), 0, SOON);
    assert_int_equal(next_command(f->commands, 50), 0);
}

// Nobody there, or somebody who never reads: neither takes time.
static void test_slow_subscriber_never_blocks(void **state)
{
    struct fixture *f = *state;
    const int one = 1;
    void *deaf = NULL;

    assert_int_equal(start(f), 0);
    for (int round = 0; round < 2; round++) {
        uint64_t sent = bus_counts(f->bus).sent + bus_counts(f->bus).superseded;
        ns_t begin = clock_now_ns();

        for (uint64_t i = 1; i <= 5000; i++)
            EVENTUALLY(push_command(f, i));
        EVENTUALLY(bus_counts(f->bus).sent + bus_counts(f->bus).superseded ==
                   sent + 5000);
        assert_true(clock_now_ns() - begin < SOON);
        if (round == 1)
            break;
        deaf = driver_sub(f, f->cfg.joint_command.endpoint);
        zmq_setsockopt(deaf, ZMQ_RCVHWM, &one, sizeof one);
        f->commands = driver_sub(f, f->cfg.joint_command.endpoint);
        connect_commands(f);
        close_driver(&f->commands);
    }
    assert_int_equal(bus_counts(f->bus).send_failed, 0);
    zmq_close(deaf);
}

// A publisher in a tight loop on each stream.
static _Atomic bool flood_stop;
static void *flood(void *socket)
{
    uint8_t bytes[2000] = {0xff};

    while (!flood_stop)
        zmq_send(socket, bytes, sizeof bytes, ZMQ_DONTWAIT);
    return NULL;
}

static void test_flood_does_not_stop_commands(void **state)
{
    struct fixture *f = *state;
    const int mark = 1000;
    pthread_t thread[2];
    void *floods[2];
    ns_t worst = 0;

    assert_int_equal(start(f), 0);
    connect_all(f);
    connect_commands(f);
    flood_stop = false;
    for (int i = 0; i < 2; i++) {
        floods[i] = zmq_socket(f->context, ZMQ_PUB);
        zmq_setsockopt(floods[i], ZMQ_SNDHWM, &mark, sizeof mark);
        zmq_setsockopt(floods[i], ZMQ_LINGER, &(int){0}, sizeof(int));
        zmq_connect(floods[i],
                    i == 0 ? f->cfg.joint_state.endpoint : f->cfg.camera[0].endpoint);
        pthread_create(&thread[i], NULL, flood, floods[i]);
    }
    EVENTUALLY(f->board.joint_mark.refused > 1000);
    EVENTUALLY(f->board.camera[0].refused > 100);
    for (uint64_t i = 2; i < 102; i++) {
        ns_t begin = clock_now_ns();

        assert_true(push_command(f, i));
        assert_int_equal(next_command(f->commands, 5000), i);
        worst = clock_now_ns() - begin > worst ? clock_now_ns() - begin : worst;
    }
    send_joints(f, 3); // and a good sample gets through as well
    EVENTUALLY(newest_position(f) == 3);
    flood_stop = true;
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        zmq_close(floods[i]);
    }
    print_message("worst command round trip in the flood: %.1f ms\n",
                  (double)worst / 1e6);
    assert_true(worst < SOON / 2);
}

// What is in the ring when the bus is stopped still goes out: the newest of it.
static void test_stop_sends_the_last(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(start(f), 0);
    connect_all(f);
    connect_commands(f);
    for (uint64_t i = 2; i < 50; i++) {
        struct command c = {.sequence = i,
                            .n = JOINTS,
                            .made_ns = clock_now_ns(),
                            .ttl_ns = SOON,
                            .first_joint = -1};

        assert_true(ring_push(&f->board.commands, &c)); // nobody is told
    }
    bus_stop(f->bus);
    f->bus = NULL;
    assert_int_equal(next_command(f->commands, 5000), 49);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_commands_in_order),
        TEST(test_slow_subscriber_never_blocks),
        TEST(test_flood_does_not_stop_commands),
        TEST(test_old_commands_stay),
        TEST(test_stop_sends_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
