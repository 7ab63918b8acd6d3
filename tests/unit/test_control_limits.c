// control: what it takes from those who ask too much, send nonsense, or may not ask at
// all; and that others are answered meanwhile.
#include "tests/unit/control_fixture.h"

#include <sys/resource.h>

static const char readers[] = "41001\n", operators[] = "41002\n";

// ---- packets -------------------------------------------------------------------------

static void nonsense_is_answered_and_ends_the_session(void **state)
{
    static const uint8_t bad[] = {8, 42, 16, 5};
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fd = client();
    assert_int_equal(send(fd, bad, sizeof bad, 0), sizeof bad);
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    expect(fd, 42, R(INVALID)); // with the id that it had
    assert_true(closed(fd));
    close(fd);
    srand(3);
    for (int i = 0; i < 3000; i++) {
        uint8_t junk[300];
        size_t n = 1 + (size_t)rand() % sizeof junk;
        for (size_t k = 0; k < n; k++)
            junk[k] = (uint8_t)rand();
        fd = client();
        assert_true(send(fd, junk, n, MSG_NOSIGNAL) >= 0);
        turn(100 * NS_PER_MS); // not more often than one may
        turn(NS_PER_MS);
        close(fd);
        turn(NS_PER_MS);
    }
    assert_int_equal(atomic_load(&w.board.requests), 0);
    asked(V(STATUS), "", R(OK));
}

static void a_long_packet_is_refused_unread(void **state)
{
    static uint8_t large[200000] = {8, 42, 16, 1};
    static const size_t sizes[] = {4097, 65536, 65537, 200000};
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fd = client();
        if (send(fd, large, sizes[i], MSG_NOSIGNAL) != (ssize_t)sizes[i])
            fail_msg("%zu bytes: %s", sizes[i], strerror(errno));
        turn(NS_PER_MS);
        turn(NS_PER_MS);
        assert_non_null(
            strstr(expect(fd, 42, R(INVALID))->text, "has at most 4096 bytes"));
        assert_true(closed(fd));
        close(fd);
    }
    fd = client();
    assert_int_equal(send(fd, large, 0, 0), 0); // an empty one
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    assert_true(closed(fd));
    close(fd);
}

// It claims a text of 1 GB: no byte is allocated for it, nothing waits for it.
static void a_claim_of_a_gigabyte_costs_nothing(void **state)
{
    static const uint8_t claim[] = {8, 1, 16, 24, 50, 128, 128, 128, 128, 4, 'a'};
    struct rusage before, after;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < 1000; i++) {
        int fd = client();
        assert_int_equal(send(fd, claim, sizeof claim, MSG_NOSIGNAL), sizeof claim);
        turn(100 * NS_PER_MS);
        turn(NS_PER_MS);
        expect(fd, 1, R(INVALID));
        close(fd);
        turn(NS_PER_MS);
    }
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 16 * 1024); // kB
}

static void who_closes_in_the_middle_is_forgotten(void **state)
{
    (void)state;
    assert_int_equal(world_open("", ""), 0);
    for (int i = 0; i < 200; i++) {
        int fd = client();
        ask_for(fd, 1, i % 2 ? V(STATUS) : V(ARM), "");
        if (i % 3 == 0)
            shutdown(fd, SHUT_RD); // its answer meets a closed door
        turn(50 * NS_PER_MS);
        close(fd);
        turn(50 * NS_PER_MS);
        loop_does(LADDER_READY, REASON_NONE);
        turn(50 * NS_PER_MS);
        turn(50 * NS_PER_MS);
    }
    for (int i = 0; i < CONTROL_SESSIONS; i++)
        assert_int_equal(w.control->session[i].fd, -1);
    asked(V(STATUS), "", R(OK));
}

// ---- how often -----------------------------------------------------------------------

static int replies(int fd, Actd__V1__Result result)
{
    Actd__V1__ControlReply *m;
    int n = 0;

    while ((m = reply_on(fd, NULL)))
        n += m->result == result;
    return n;
}

static void who_asks_too_often_is_told_50_times_a_second(void **state)
{
    int fd, done = 0, limited = 0;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fd = client();
    turn(0);
    for (int ms = 0; ms < 2000; ms++) { // ten requests in each
        for (int i = 0; i < 10; i++) {
            uint8_t status[] = {8, 1, 16, 1};
            (void)!send(fd, status, sizeof status, MSG_NOSIGNAL | MSG_DONTWAIT);
            turn(NS_PER_MS / 10);
        }
        Actd__V1__ControlReply *m;
        while ((m = reply_on(fd, NULL))) {
            done += m->result == R(OK);
            limited += m->result == R(RATE_LIMITED);
        }
    }
    print_message("20000 requests in 2 s: %d done, %d told, the others not read\n", done,
                  limited);
    assert_in_range(done, 190, 200); // 100 at once and 50 a second
    assert_in_range(limited, 90, 101);
    // And the thread sleeps until it listens again.
    assert_true(control_next_ns(w.control, w.now) > w.now);
    close(fd);
}

static void to_stop_is_never_asked_too_often(void **state)
{
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fd = client();
    turn(0);
    for (int i = 0; i < 100; i++) {
        ask_for(fd, 2, V(STATUS), "");
        turn(0);
        expect(fd, 2, R(OK));
    }
    close(fd);
    asked(V(STATUS), "", R(RATE_LIMITED));
    asked(V(ARM), "", R(RATE_LIMITED));
    fd = client();
    ask_for(fd, 1, V(ESTOP), "");
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    assert_int_equal(loop_does(LADDER_ESTOP, REASON_ESTOP), BOARD_ESTOP);
    turn(NS_PER_MS);
    expect(fd, 1, R(OK));
    close(fd);
}

static void a_client_that_never_reads_is_closed(void **state)
{
    int fd, other;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fake.status = 60000;
    fd = client();
    for (int i = 0; i < 100 && w.control->session[0].fd >= 0; i++) {
        uint8_t status[] = {8, 1, 16, 1};
        (void)!send(fd, status, sizeof status, MSG_NOSIGNAL | MSG_DONTWAIT);
        turn(100 * NS_PER_MS);
        turn(NS_PER_MS);
        if (i == 0)
            assert_true(w.control->session[0].fd >= 0);
    }
    assert_int_equal(w.control->session[0].fd, -1);
    fake.status = 0;
    other = client();
    ask_for(other, 3, V(STATUS), "");
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    expect(other, 3, R(OK));
    close(other);
    close(fd);
}

// ---- sessions ------------------------------------------------------------------------

static int sessions(void)
{
    int n = 0;

    for (int i = 0; i < CONTROL_SESSIONS; i++)
        n += w.control->session[i].fd >= 0;
    return n;
}

static void idle_sessions_end_after_10_s(void **state)
{
    int fd, waiting;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fake.look.stage = SWAP_LOADING;
    waiting = client();
    ask_for(waiting, 1, V(SWAP), "x");
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    fd = client();
    turn(NS_PER_MS);
    turn(CONTROL_IDLE_NS - 1);
    assert_int_equal(sessions(), 2);
    ask_for(fd, 1, V(STATUS), "");
    turn(0);
    expect(fd, 1, R(OK));
    turn(CONTROL_IDLE_NS - 1);
    assert_int_equal(sessions(), 2);
    assert_true(control_next_ns(w.control, w.now) <= w.now + 1);
    turn(1);
    assert_int_equal(sessions(), 1); // who waits for a swap is not idle
    assert_true(closed(fd));
    close(fd);
    close(waiting);
}

static void a_user_has_four_sessions(void **state)
{
    int fd[5], other;

    NEEDS_ROOT();
    (void)state;
    assert_int_equal(world_open(operators, readers), 0);
    for (int i = 0; i < 5; i++) {
        fd[i] = client_as(READER);
        assert_true(fd[i] >= 0);
        if (i == 4)
            ask_for(fd[4], 77, V(STATUS), "");
        turn(NS_PER_MS);
    }
    assert_int_equal(sessions(), 4);
    assert_non_null(strstr(expect(fd[4], 77, R(BUSY))->text, "4 of one user"));
    assert_true(closed(fd[4]));
    other = client_as(OPERATOR);
    turn(NS_PER_MS);
    assert_int_equal(sessions(), 5);
    for (int i = 0; i < 5; i++)
        close(fd[i]);
    close(other);
}

// Four users who may look take fifteen; those who may act get in all the same.
static void who_may_act_gets_in_when_all_is_taken(void **state)
{
    static const char many[] = "42000\n42001\n42002\n42003\n42004\n";
    int fd[20], n = 0, operator_fd[6];

    NEEDS_ROOT();
    (void)state;
    assert_int_equal(world_open(operators, many), 0);
    for (uid_t u = 42000; u < 42005; u++)
        for (int i = 0; i < 4; i++) {
            fd[n++] = client_as(u);
            turn(10 * NS_PER_MS);
        }
    assert_int_equal(sessions(), CONTROL_SESSIONS - 1);
    assert_int_equal(replies(fd[15], R(BUSY)), 1);
    for (int i = 0; i < 6; i++) {
        operator_fd[i] = client_as(OPERATOR);
        ask_for(operator_fd[i], (uint64_t)i, V(STATUS), "");
        turn(NS_PER_MS);
        turn(NS_PER_MS);
        expect(operator_fd[i], (uint64_t)i, R(OK));
    }
    assert_int_equal(sessions(), CONTROL_SESSIONS);
    // The first took the place that was kept, three the readers' that were idle longest,
    // the fifth and sixth those of the operator's own first two.
    for (int i = 0; i < 4; i++)
        assert_int_equal(replies(fd[i], R(BUSY)), i < 3);
    for (int i = 0; i < 6; i++)
        assert_int_equal(replies(operator_fd[i], R(BUSY)), i < 2);
    for (int i = 0; i < 20; i++)
        close(fd[i]);
    for (int i = 0; i < 6; i++)
        close(operator_fd[i]);
}

// ---- who may not ---------------------------------------------------------------------

static void a_stranger_is_told_which_key_to_change(void **state)
{
    Actd__V1__ControlReply *m;
    int fd;

    NEEDS_ROOT();
    (void)state;
    assert_int_equal(world_open(operators, readers), 0);
    fd = client_as(STRANGER);
    ask_for(fd, 5, V(STATUS), "");
    turn(NS_PER_MS);
    m = expect(fd, 5, R(DENIED));
    assert_non_null(strstr(m->text, "user 41003"));
    assert_non_null(strstr(m->text, "operators.read"));
    assert_non_null(strstr(m->text, "operators.act"));
    assert_true(closed(fd));
    close(fd);
    fd = client_as(ACCESS_NOBODY);
    turn(NS_PER_MS);
    expect(fd, 0, R(DENIED)); // it had not asked anything yet
    assert_true(closed(fd));
    close(fd);
    assert_int_equal(sessions(), 0);
    assert_int_equal(log_lines("user 41003 (process"), 1);
}

static void a_reader_may_look_but_not_act(void **state)
{
    static const Actd__V1__Verb acting[] = {
        V(ARM),      V(DISARM),       V(STOP),        V(ESTOP),
        V(RESET),    V(HOME),         V(SWAP),        V(SWAP_BACK),
        V(INSTRUCT), V(RECORD_START), V(RECORD_STOP), V(RECORD_MARK)};
    static const Actd__V1__Verb looking[] = {V(STATUS), V(METRICS), V(POLICIES),
                                             V(DOCTOR)};
    int fd;

    NEEDS_ROOT();
    (void)state;
    assert_int_equal(world_open(operators, readers), 0);
    fd = client_as(READER);
    turn(NS_PER_MS);
    for (size_t i = 0; i < sizeof acting / sizeof *acting; i++) {
        bool named = acting[i] == V(SWAP) || acting[i] == V(INSTRUCT) ||
                     acting[i] == V(RECORD_MARK);
        ask_for(fd, i, acting[i], named ? "x" : "");
        turn(NS_PER_MS);
        assert_non_null(strstr(expect(fd, i, R(DENIED))->text, "operators.act"));
    }
    assert_int_equal(atomic_load(&w.board.requests), 0);
    assert_int_equal(fake.asked.uid, 0);
    assert_int_equal(fake.cancelled, 0);
    for (size_t i = 0; i < sizeof looking / sizeof *looking; i++) {
        ask_for(fd, i, looking[i], "");
        turn(NS_PER_MS);
        expect(fd, i, R(OK));
    }
    close(fd);
    fd = client_as(OPERATOR);
    turn(NS_PER_MS);
    ask_for(fd, 1, V(ARM), "");
    turn(NS_PER_MS);
    assert_int_equal(atomic_load(&w.board.requests), BOARD_ARM);
    close(fd);
}

// A reader whose bucket is empty must not get through by asking to stop.
static void a_readers_flood_of_stops_is_a_flood(void **state)
{
    int fd, denied = 0, limited = 0;

    NEEDS_ROOT();
    (void)state;
    assert_int_equal(world_open(operators, readers), 0);
    fd = client_as(READER);
    turn(NS_PER_MS);
    for (int i = 0; i < 10000; i++) {
        uint8_t stop[] = {8, 1, 16, 19};
        Actd__V1__ControlReply *m;
        (void)!send(fd, stop, sizeof stop, MSG_NOSIGNAL | MSG_DONTWAIT);
        turn(NS_PER_MS / 10);
        while ((m = reply_on(fd, NULL))) {
            denied += m->result == R(DENIED);
            limited += m->result == R(RATE_LIMITED);
        }
    }
    assert_in_range(denied, 140, 150);
    assert_in_range(limited, 40, 51);
    assert_int_equal(atomic_load(&w.board.requests), 0);
    assert_in_range(log_lines("was denied ESTOP"), 20, 26);
    close(fd);
}

// A thousand connections at once: bounded in each turn, and the log as well.
static void a_thousand_strangers_cost_little(void **state)
{
    static int fd[1000];
    int denied = 0, gone = 0, good, turns = 0;

    NEEDS_ROOT();
    (void)state;
    assert_int_equal(world_open(operators, readers), 0);
    for (int i = 0; i < 1000; i++) {
        while ((fd[i] = client_as(STRANGER)) < 0) { // the queue is full: 256
            assert_int_equal(errno, EAGAIN);
            turn(5 * NS_PER_MS);
            assert_true(++turns < 100);
        }
    }
    good = client_as(READER);
    for (; good < 0; good = client_as(READER))
        turn(5 * NS_PER_MS);
    ask_for(good, 9, V(STATUS), "");
    turns = 0;
    for (Actd__V1__ControlReply *m = NULL; !m; turns++) {
        turn(5 * NS_PER_MS);
        m = reply_on(good, NULL);
        assert_true(turns < 40); // 200 ms
    }
    for (int i = 0; i < 1000; i++) {
        bool over;
        Actd__V1__ControlReply *m = reply_on(fd[i], &over);
        denied += m && m->result == R(DENIED);
        gone += !m && over;
        close(fd[i]);
    }
    assert_int_equal(denied + gone, 1000);
    assert_in_range(denied, 100, 110);
    assert_int_equal(sessions(), 1);
    assert_in_range(log_lines("was denied"), 20, 25);
    close(good);
}

// A reader's connections are requests: nobody goes round the bucket by coming anew.
static void connections_are_counted(void **state)
{
    int done = 0, limited = 0;

    NEEDS_ROOT();
    (void)state;
    assert_int_equal(world_open(operators, readers), 0);
    for (int i = 0; i < 1000; i++) {
        int fd = client_as(READER);
        ask_for(fd, 1, V(STATUS), "");
        turn(NS_PER_MS / 2);
        turn(NS_PER_MS / 2);
        Actd__V1__ControlReply *m = reply_on(fd, NULL);
        done += m && m->result == R(OK);
        limited += m && m->result == R(RATE_LIMITED);
        close(fd);
        turn(0);
    }
    // Two tokens each, of 100 and 50 more in the second, some of them for a connection
    // only.
    assert_in_range(done, 48, 76);
    assert_true(limited > 800);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_up, world_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nonsense_is_answered_and_ends_the_session),
        TEST(a_long_packet_is_refused_unread),
        TEST(a_claim_of_a_gigabyte_costs_nothing),
        TEST(who_closes_in_the_middle_is_forgotten),
        TEST(who_asks_too_often_is_told_50_times_a_second),
        TEST(to_stop_is_never_asked_too_often),
        TEST(a_client_that_never_reads_is_closed),
        TEST(idle_sessions_end_after_10_s),
        TEST(a_user_has_four_sessions),
        TEST(who_may_act_gets_in_when_all_is_taken),
        TEST(a_stranger_is_told_which_key_to_change),
        TEST(a_reader_may_look_but_not_act),
        TEST(a_readers_flood_of_stops_is_a_flood),
        TEST(a_thousand_strangers_cost_little),
        TEST(connections_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
