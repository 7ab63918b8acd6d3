// watchdog against a service manager that is a socket of this test, in virtual time; together
// with the monitor's judgement of a loop that stops.
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/monitor.h"
#include "daemon/watchdog.h"

#define MS   NS_PER_MS
#define LOOK (50 * MS) // of watch

static char directory[] = "/tmp/actd-watchdog.XXXXXX";
static char path[sizeof directory + 8];

// A manager's socket: bound to `name`, which goes to NOTIFY_SOCKET as it is.
static int manager(const char *name, const char *usec)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const size_t n = strlen(name);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    memcpy(a.sun_path, name, n);
    if (name[0] == '@')
        a.sun_path[0] = '\0';
    assert_true(fd >= 0);
    assert_int_equal(
        bind(fd, (struct sockaddr *)&a,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (name[0] == '/'))),
        0);
    setenv("NOTIFY_SOCKET", name, 1);
    if (usec)
        setenv("WATCHDOG_USEC", usec, 1);
    return fd;
}

static int heard(int fd, const char *what)
{
    char text[64];
    int n = 0;

    for (;;) {
        const ssize_t got = recv(fd, text, sizeof text - 1, 0);
        if (got < 0)
            return n;
        text[got] = '\0';
        assert_string_equal(text, what);
        n++;
    }
}

static int clean(void **state)
{
    (void)state;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    unlink(path);
    return 0;
}

static int group_setup(void **state)
{
    if (mkdtemp(directory) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/notify", directory);
    return clean(state);
}

static int group_teardown(void **state)
{
    clean(state);
    return rmdir(directory);
}

static void pings_in_time_and_no_more(void **state)
{
    (void)state;
    const int fd = manager(path, "1000000");
    struct watchdog w;
    ns_t last = 0;
    int pings = 0;

    watchdog_init(&w);
    for (ns_t now = NS_PER_S; now < 101 * NS_PER_S; now += LOOK) {
        const bool pinged = watchdog_ping(&w, now, true);
        assert_int_equal(heard(fd, "WATCHDOG=1"), pinged);
        if (!pinged)
            continue;
        if (pings++ == 0)
            assert_int_equal(now, NS_PER_S); // at once
        else
            assert_int_equal(now - last, 250 * MS);
        last = now;
    }
    assert_int_equal(pings, 400);
    watchdog_end(&w);
    close(fd);
}

// A thread that looks every 50 … 70 ms: never later than half the period.
static void gaps_stay_below_half_the_period(void **state)
{
    (void)state;
    static const char *const usec[] = {"200000", "500000", "1000000", "30000000"};

    for (size_t i = 0; i < sizeof usec / sizeof *usec; i++) {
        const int fd = manager(path, usec[i]);
        const ns_t period = strtol(usec[i], NULL, 10) * NS_PER_US;
        struct watchdog w;
        ns_t last = NS_PER_S;
        unsigned seed = 1;

        watchdog_init(&w);
        for (ns_t now = NS_PER_S; now < 200 * NS_PER_S;) {
            if (watchdog_ping(&w, now, true)) {
                assert_true(now - last <= period / 2);
                last = now;
            }
            seed = seed * 1103515245u + 12345u;
            now += LOOK + (ns_t)(seed >> 16) % (period > 200 * MS ? 20 * MS : 1);
            heard(fd, "WATCHDOG=1");
        }
        assert_true(200 * NS_PER_S - last <= period / 2);
        watchdog_end(&w);
        close(fd);
        unlink(path);
    }
}

// A loop of 100 Hz that stops at any moment and comes back 2 s later, the monitor and the watch
// as they are in the daemon.
static void silent_from_the_first_look_after_a_stall(void **state)
{
    (void)state;
    const int fd = manager(path, "1000000");

    for (ns_t phase = 0; phase < 500 * MS; phase += 1300 * NS_PER_US) {
        const ns_t stop = 10 * NS_PER_S + phase, back = stop + 2 * NS_PER_S;
        struct monitor_state m = {0};
        struct watchdog w;
        ns_t cut = 0, last = 0, silence = 0;
        watchdog_init(&w);
        for (ns_t now = 9 * NS_PER_S; now < 14 * NS_PER_S; now += MONITOR_LOOK_NS) {
            const ns_t ticked = now >= stop && now < back ? stop : now;
            if (monitor_look(&m, (uint64_t)(ticked / (10 * MS)), now,
                             monitor_limit_ns(10 * MS)))
                cut = now;
            if (now % LOOK != 0 || !watchdog_ping(&w, now, !m.stalled))
                continue;
            assert_int_equal(heard(fd, "WATCHDOG=1"), 1);
            assert_true(cut == 0 || now >= back);
            silence = last > 0 && now - last > silence ? now - last : silence;
            last = now;
        }
        assert_in_range(cut - stop, 60 * MS, 100 * MS);
        assert_in_range(silence, 1900 * MS, 2400 * MS); // a manager would have ended it
        assert_true(14 * NS_PER_S - last <= 500 * MS);  // it is heard again
        watchdog_end(&w);
    }
    close(fd);
}

static void fine_again_pings_at_once(void **state)
{
    (void)state;
    const int fd = manager(path, "1000000");
    struct watchdog w;

    watchdog_init(&w);
    assert_false(watchdog_ping(&w, 1, false));
    assert_true(watchdog_ping(&w, 2, true));
    for (int i = 1; i < 100; i++)
        assert_false(watchdog_ping(&w, i * LOOK, false));
    assert_true(watchdog_ping(&w, 100 * LOOK, true));
    assert_false(watchdog_ping(&w, 101 * LOOK, true)); // too soon after that one
    assert_int_equal(heard(fd, "WATCHDOG=1"), 2);
    const int was = w.fd;
    assert_int_equal(fcntl(was, F_GETFD), FD_CLOEXEC); // no child inherits it
    watchdog_end(&w);
    assert_int_equal(fcntl(was, F_GETFD), -1); // closed, and
    assert_int_equal(w.fd, -1);                // forgotten: the number may be somebody's
    assert_false(watchdog_ping(&w, NS_PER_S * 100, true));
    watchdog_end(&w); // twice is fine
    close(fd);
}

static void an_abstract_socket(void **state)
{
    (void)state;
    char name[64];
    struct watchdog w;
    snprintf(name, sizeof name, "@actd-watchdog-%d", (int)getpid());
    const int fd = manager(name, "1000000");

    watchdog_init(&w);
    assert_true(watchdog_ping(&w, NS_PER_S, true));
    assert_int_equal(heard(fd, "WATCHDOG=1"), 1);
    assert_true(watchdog_say(&w, "STOPPING=1"));
    assert_int_equal(heard(fd, "STOPPING=1"), 1);
    watchdog_end(&w);
    close(fd);
}

static void the_longest_path_there_may_be(void **state)
{
    (void)state;
    struct sockaddr_un a;
    char name[sizeof a.sun_path + 1];
    struct watchdog w;
    const size_t room = sizeof a.sun_path - 1;

    memset(name, 'x', sizeof name);
    memcpy(name, "@actd", 5);
    snprintf(name + 5, 12, "%d", (int)getpid());
    name[strlen(name)] = 'x';
    name[room] = '\0';
    const int fd = manager(name, NULL);
    watchdog_init(&w);
    assert_true(watchdog_say(&w, "READY=1"));
    assert_int_equal(heard(fd, "READY=1"), 1);
    watchdog_end(&w);
    close(fd);
    name[room] = 'x';
    name[room + 1] = '\0';
    setenv("NOTIFY_SOCKET", name, 1);
    watchdog_init(&w);
    assert_int_equal(w.fd, -1);
    assert_false(watchdog_say(&w, "READY=1"));
}

static void no_socket_or_a_bad_one(void **state)
{
    (void)state;
    static const char *const bad[] = {NULL,        "",
                                      "/",         "@",
                                      "notify",    "vsock:2:1",
                                      "./x",       "/nonexistent/notify",
                                      "/dev/null", "@nobody-listens"};

    setenv("WATCHDOG_USEC", "1000000", 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct watchdog w;
        if (bad[i])
            setenv("NOTIFY_SOCKET", bad[i], 1);
        watchdog_init(&w);
        assert_int_equal(w.every_ns, 250 * MS);
        for (ns_t now = NS_PER_S; now < 3 * NS_PER_S; now += LOOK)
            assert_false(watchdog_ping(&w, now, true));
        assert_int_equal(w.pinged_ns, 0);
        assert_false(watchdog_say(&w, "READY=1"));
        watchdog_end(&w);
    }
}

static void no_watchdog_asked_or_not_understood(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "0",
                                      "-1",
                                      "soon",
                                      "1e6",
                                      "99999999999999999999999",
                                      "18446744073709551614",
                                      "9223372036854775807"};
    const int fd = manager(path, NULL);
    struct watchdog w;
    char pid[32];

    watchdog_init(&w);
    assert_false(watchdog_ping(&w, NS_PER_S, true));
    assert_true(watchdog_say(&w, "READY=1")); // the rest works
    assert_int_equal(heard(fd, "READY=1"), 1);
    watchdog_end(&w);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("WATCHDOG_USEC", bad[i], 1);
        watchdog_init(&w);
        assert_int_equal(w.every_ns, 0);
        assert_false(watchdog_ping(&w, NS_PER_S, true));
        watchdog_end(&w);
    }
    setenv("WATCHDOG_USEC", "1000000", 1);
    setenv("WATCHDOG_PID", "1", 1); // somebody else's
    watchdog_init(&w);
    assert_false(watchdog_ping(&w, NS_PER_S, true));
    watchdog_end(&w);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("WATCHDOG_PID", pid, 1);
    watchdog_init(&w);
    assert_true(watchdog_ping(&w, NS_PER_S, true));
    watchdog_end(&w);
    assert_int_equal(heard(fd, "WATCHDOG=1"), 1);
    close(fd);
}

// A manager that does not read: its queue fills up, nobody waits, and once it reads again the
// next look is heard.
static void a_manager_that_does_not_read(void **state)
{
    (void)state;
    const int fd = manager(path, "1000000");
    struct watchdog w;
    int sent = 0;
    ns_t now = NS_PER_S;

    watchdog_init(&w);
    alarm(20); // a send that blocks ends the test
    while (watchdog_say(&w, "WATCHDOG=1") && sent < 100000)
        sent++;
    assert_in_range(sent, 1, 99999);
    for (int i = 0; i < 100; i++)
        assert_false(watchdog_ping(&w, now += LOOK, true));
    alarm(0);
    assert_int_equal(heard(fd, "WATCHDOG=1"), sent);
    assert_true(watchdog_ping(&w, now += LOOK, true));
    assert_int_equal(heard(fd, "WATCHDOG=1"), 1);
    watchdog_end(&w);
    close(fd);
}

// The manager starts anew: its socket is another one at the same path.
static void a_manager_that_comes_back(void **state)
{
    (void)state;
    int fd = manager(path, "1000000");
    struct watchdog w;

    watchdog_init(&w);
    assert_true(watchdog_ping(&w, NS_PER_S, true));
    close(fd);
    assert_false(watchdog_ping(&w, 2 * NS_PER_S, true)); // refused: it is gone
    unlink(path);
    assert_false(watchdog_ping(&w, 3 * NS_PER_S, true));
    fd = manager(path, NULL);
    assert_true(watchdog_ping(&w, 3 * NS_PER_S + LOOK, true)); // tried at every look
    assert_int_equal(heard(fd, "WATCHDOG=1"), 1);
    watchdog_end(&w);
    close(fd);
}

#define TEST(name) cmocka_unit_test_teardown(name, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pings_in_time_and_no_more),
        TEST(gaps_stay_below_half_the_period),
        TEST(silent_from_the_first_look_after_a_stall),
        TEST(fine_again_pings_at_once),
        TEST(an_abstract_socket),
        TEST(the_longest_path_there_may_be),
        TEST(no_socket_or_a_bad_one),
        TEST(no_watchdog_asked_or_not_understood),
        TEST(a_manager_that_does_not_read),
        TEST(a_manager_that_comes_back),
    };

    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
