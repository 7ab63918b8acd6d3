// monitor: the thread's own loop under a clock that this test owns, which ticks, stops and
// suspends as a script says; its class; and with real threads. It is included, not linked, so
// that its clock can be replaced.
#include "daemon/clock.h"
#include "daemon/rt.h"
#include "daemon/watchdog.h"

static bool fake_ping(struct watchdog *dog, ns_t now, bool fine);
static ns_t fake_now_ns(void);
static int fake_sleep_until(ns_t when_ns);
static int fake_thread_start(pthread_t *out, const struct rt_thread_spec *spec,
                             void *(*run)(void *), void *arg, char *granted);
#define clock_now_ns      fake_now_ns
#define clock_sleep_until fake_sleep_until
#define rt_thread_start   fake_thread_start
#define watchdog_ping     fake_ping
#include "daemon/monitor.c" // NOLINT(bugprone-suspicious-include)
#undef clock_now_ns
#undef clock_sleep_until
#undef rt_thread_start
#undef watchdog_ping

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MS NS_PER_MS

static uint64_t seed = 7;
static uint64_t rnd(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33;
}

// ---- the thread's loop, in virtual time ------------------------------------------------------

static struct {
    bool on;
    ns_t now;
    ns_t period, stuck_from, stuck_to; // of the loop that is watched
    ns_t away_at, away;                // a sleep that starts then lasts longer by that
    ns_t overslept, end;
    struct monitor *m;
    ns_t cut_at, last_look;
    int looks, fine;
    int pings, pinged_while_stuck, pinged_while_alone;
    _Atomic int64_t alive_ns;
} w;

static bool fake_ping(struct watchdog *dog, ns_t now, bool fine)
{
    (void)dog;
    w.pings += fine;
    w.pinged_while_stuck += fine && w.cut_at != 0 && now < w.stuck_to;
    w.pinged_while_alone += fine && now - w.alive_ns > 5 * NS_PER_S;
    return fine;
}

static ns_t fake_now_ns(void)
{
    return w.on ? w.now : clock_now_ns();
}

static void ticks_up_to(ns_t now)
{
    ns_t t = now >= w.stuck_from && now < w.stuck_to ? w.stuck_from : now;

    atomic_store(&w.m->board->ticks, (uint64_t)(t / w.period));
}

// Called between two looks: what the look before did is judged here.
static int fake_sleep_until(ns_t when_ns)
{
    if (!w.on)
        return clock_sleep_until(when_ns);
    w.looks++;
    w.fine += monitor_fine(w.m);
    if (w.cut_at == 0 && atomic_load(&w.m->board->stalls) > 0)
        w.cut_at = w.now;
    assert_true(when_ns > w.now);
    assert_true(when_ns - w.now <= MONITOR_LOOK_NS);
    assert_true(w.last_look == 0 || (when_ns - w.last_look) % MONITOR_LOOK_NS == 0);
    w.last_look = when_ns; // phase is kept
    w.now = when_ns + (w.overslept ? (ns_t)(rnd() % (uint64_t)w.overslept) : 0);
    if (w.away && w.now >= w.away_at) {
        w.now += w.away;
        w.away = 0;
    } else {
        ticks_up_to(w.now); // the loop was not away
    }
    if (w.now >= w.end)
        atomic_store(&w.m->stop, true);
    return 0;
}

static void play(struct board *board, struct monitor *m)
{
    static struct watchdog dog;

    memset(board, 0, sizeof *board);
    *m = (struct monitor){.board = board, .limit_ns = monitor_limit_ns(w.period)};
    monitor_ping(m, &dog, &w.alive_ns);
    w.on = true;
    w.m = m;
    w.now = 100 * NS_PER_S;
    ticks_up_to(w.now);
    run(m);
    w.on = false;
}

static struct board board;

static void the_thread_cuts_once_and_is_not_fine(void **state)
{
    (void)state;
    struct monitor m;

    for (ns_t phase = 0; phase < 10 * MS; phase += 100 * NS_PER_US) {
        memset(&w, 0, sizeof w);
        w.period = 5 * MS;
        w.stuck_from = 101 * NS_PER_S + phase;
        w.stuck_to = 103 * NS_PER_S;
        w.end = 104 * NS_PER_S;
        play(&board, &m);
        assert_int_equal(atomic_load(&board.stalls), 1);
        const ns_t last = w.stuck_from - w.stuck_from % w.period;
        assert_in_range(w.cut_at - last, 80 * MS, 90 * MS);
        assert_int_equal(w.looks, 400);
        // Not from the cut until the look that sees it back.
        const int bad = (int)((w.stuck_to - w.cut_at) / MONITOR_LOOK_NS);
        assert_in_range(w.looks - w.fine, bad, bad + 1);
        assert_false(atomic_load(&m.stalled));
    }
}

// Not of a loop that is stuck, nor for a process whose other threads have not come by for long.
static void the_thread_pings(void **state)
{
    (void)state;
    struct monitor m;

    memset(&w, 0, sizeof w);
    w.period = 5 * MS;
    w.stuck_from = 103 * NS_PER_S;
    w.stuck_to = 104 * NS_PER_S;
    w.alive_ns = 101 * NS_PER_S; // and then no more
    w.end = 110 * NS_PER_S;
    play(&board, &m);
    assert_int_equal(w.looks, 1000);
    assert_int_equal(w.pinged_while_stuck, 0);
    assert_int_equal(w.pinged_while_alone, 0);
    assert_in_range(w.pings, 505, 515); // of 600 up to the fifth second, 92 of them stuck
}

static void the_thread_that_oversleeps(void **state)
{
    (void)state;
    struct monitor m;

    for (int i = 0; i < 200; i++) {
        memset(&w, 0, sizeof w);
        w.period = 10 * MS;
        w.overslept = 25 * MS; // misses looks, keeps its phase, catches up on none
        w.stuck_from = 101 * NS_PER_S + (ns_t)(rnd() % NS_PER_S);
        w.stuck_to = w.stuck_from + NS_PER_S;
        w.end = 104 * NS_PER_S;
        play(&board, &m);
        assert_int_equal(atomic_load(&board.stalls), 1);
        assert_in_range(w.cut_at - w.stuck_from, 70 * MS, 150 * MS);
    }
}

static void the_thread_after_a_suspension(void **state)
{
    (void)state;
    struct monitor m;

    memset(&w, 0, sizeof w);
    w.period = 10 * MS;
    w.away_at = 101 * NS_PER_S;
    w.away = 30 * NS_PER_S;
    w.end = 135 * NS_PER_S;
    play(&board, &m);
    assert_int_equal(atomic_load(&board.stalls), 0);
    assert_int_equal(w.looks, w.fine);
    assert_in_range(w.looks, 498, 502); // those that it missed are not made up for
}

// Nobody looks any more: nobody says that all is fine.
static void a_monitor_that_is_gone_is_not_fine(void **state)
{
    (void)state;
    struct monitor m;

    memset(&w, 0, sizeof w);
    w.period = 10 * MS;
    w.end = 101 * NS_PER_S;
    play(&board, &m);
    w.on = true;
    w.now = atomic_load(&m.looked_ns);
    assert_true(monitor_fine(&m));
    w.now += MONITOR_AWAY_NS;
    assert_true(monitor_fine(&m));
    w.now += 1;
    assert_false(monitor_fine(&m));
    w.on = false;
    atomic_store(&m.looked_ns, 0); // has never looked
    assert_false(monitor_fine(&m));
}

// ---- real threads ----------------------------------------------------------------------------

static bool eventually(uint32_t stalls)
{
    const ns_t until = clock_now_ns() + 10 * NS_PER_S;

    while (atomic_load(&board.stalls) != stalls && clock_now_ns() < until)
        clock_sleep_until(clock_now_ns() + MS);
    return atomic_load(&board.stalls) == stalls;
}

// A busy machine may keep a thread without priority away for 80 ms: true at one of three times.
static bool left_alone_while_it_ticks(void)
{
    atomic_store(&board.stalls, 0);
    for (int i = 0; i < 40; i++) {
        atomic_fetch_add(&board.ticks, 1);
        clock_sleep_until(clock_now_ns() + 5 * MS);
    }
    return atomic_load(&board.stalls) == 0;
}

static void for_real(void **state)
{
    (void)state;
    struct monitor *m = NULL;
    bool alone = false;

    memset(&board, 0, sizeof board);
    assert_int_equal(monitor_start(&m, &board, 5 * MS, 0), 0);
    for (int i = 0; i < 3 && !alone; i++)
        alone = left_alone_while_it_ticks() && monitor_fine(m);
    assert_true(alone);
    const ns_t stopped = clock_now_ns();
    assert_true(eventually(1));
    assert_true(clock_now_ns() - stopped >= 60 * MS); // exact in virtual time
    clock_sleep_until(clock_now_ns() + 15 * MS);
    assert_false(monitor_fine(m));
    atomic_fetch_add(&board.ticks, 1);
    assert_true(eventually(2)); // the same again
    monitor_stop(m);
    monitor_stop(NULL);
}

// ---- its class -------------------------------------------------------------------------------

static struct {
    bool on;
    int granted_up_to; // as RLIMIT_RTPRIO is; -1: no thread at all
    int asked[8], n;
} k; // the kernel

static int fake_thread_start(pthread_t *out, const struct rt_thread_spec *spec,
                             void *(*run_it)(void *), void *arg, char *granted)
{
    struct rt_thread_spec gets = *spec;

    if (k.on) {
        assert_int_equal(spec->cls, RT_CLASS_IO);
        assert_int_equal(spec->cpu, -1);
        assert_string_equal(spec->name, "actd-monitor");
        k.asked[k.n++] = spec->priority;
        if (k.granted_up_to < 0)
            return -EAGAIN;
        if (spec->require_rt && spec->priority > k.granted_up_to)
            return -EPERM;
        gets.require_rt = false; // whatever the real one grants
    }
    return rt_thread_start(out, &gets, run_it, arg, granted);
}

static void asks(int priority, int granted_up_to, int n, const int *asked)
{
    struct monitor *m = NULL;

    memset(&board, 0, sizeof board);
    memset(&k, 0, sizeof k);
    k.on = true;
    k.granted_up_to = granted_up_to;
    assert_int_equal(monitor_start(&m, &board, 5 * MS, priority),
                     granted_up_to < 0 ? -EAGAIN : 0);
    assert_int_equal(m == NULL, granted_up_to < 0);
    monitor_stop(m);
    k.on = false;
    assert_int_equal(k.n, n);
    assert_memory_equal(k.asked, asked, (size_t)n * sizeof *asked);
}

// Above the loop; as high as the loop; or without.
static void the_priority(void **state)
{
    (void)state;
    struct monitor *m = NULL;

    asks(0, 99, 1, (int[]){0});
    asks(0, -1, 1, (int[]){0});
    asks(50, 99, 1, (int[]){51});
    asks(50, 51, 1, (int[]){51});
    asks(50, 50, 2, (int[]){51, 50});
    asks(50, 0, 3, (int[]){51, 50, 0});
    asks(1, 0, 3, (int[]){2, 1, 0});
    asks(50, -1, 3, (int[]){51, 50, 0});
    for (int priority = 0; priority <= 99;
         priority += 33) { // the real kernel; it has no 100
        int policy;
        struct sched_param p;
        memset(&board, 0, sizeof board);
        assert_int_equal(monitor_start(&m, &board, 5 * MS, priority), 0);
        assert_int_equal(pthread_getschedparam(m->thread, &policy, &p), 0);
        if (priority == 0)
            assert_int_equal(policy, SCHED_OTHER);
        if (policy == SCHED_FIFO) // where it was granted
            assert_in_range(p.sched_priority, priority,
                            priority < 99 ? priority + 1 : 99);
        monitor_stop(m);
    }
}

// A process that ticks and is watched, stopped as a whole and continued, many times.
static void ticking_child(_Atomic uint32_t *stalls)
{
    struct monitor *m = NULL;

    prctl(PR_SET_PDEATHSIG, SIGKILL); // no test, no child
    memset(&board, 0, sizeof board);
    if (monitor_start(&m, &board, 5 * MS, 0) != 0)
        _exit(1);
    for (;;) {
        atomic_fetch_add(&board.ticks, 1);
        atomic_store(stalls, 1 + atomic_load(&board.stalls)); // 0: has not begun
        clock_sleep_until(clock_now_ns() + 5 * MS);
    }
}

static bool survives_stops(_Atomic uint32_t *stalls)
{
    const ns_t give_up = clock_now_ns() + 10 * NS_PER_S;
    const pid_t child = fork();

    if (child == 0)
        ticking_child(stalls);
    assert_true(child > 0);
    while (atomic_load(stalls) == 0 && clock_now_ns() < give_up)
        clock_sleep_until(clock_now_ns() + MS);
    for (int i = 0; i < 5; i++) {
        clock_sleep_until(clock_now_ns() + 40 * MS);
        kill(child, SIGSTOP);
        clock_sleep_until(clock_now_ns() + 150 * MS);
        kill(child, SIGCONT);
    }
    clock_sleep_until(clock_now_ns() + 40 * MS);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return atomic_exchange(stalls, 0) == 1;
}

static void a_process_stopped_and_continued(void **state)
{
    (void)state;
    void *shared = mmap(NULL, sizeof(_Atomic uint32_t), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool survived = false;

    assert_true(shared != MAP_FAILED);
    for (int i = 0; i < 3 && !survived; i++)
        survived = survives_stops(shared);
    assert_true(survived);
    munmap(shared, sizeof(_Atomic uint32_t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_thread_cuts_once_and_is_not_fine),
        cmocka_unit_test(the_thread_pings),
        cmocka_unit_test(the_thread_that_oversleeps),
        cmocka_unit_test(the_thread_after_a_suspension),
        cmocka_unit_test(a_monitor_that_is_gone_is_not_fine),
        cmocka_unit_test(for_real),
        cmocka_unit_test(the_priority),
        cmocka_unit_test(a_process_stopped_and_continued),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
