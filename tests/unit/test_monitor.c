// monitor: the judgement in virtual time, to the look; the thread's own loop under a clock that
// this test owns, which ticks, stops and suspends as a script says; and once with real threads.
// It is included, not linked, so that its clock can be replaced.
#include "daemon/clock.h"
#include "daemon/rt.h"

static ns_t fake_now_ns(void);
static int fake_sleep_until(ns_t when_ns);
static int fake_thread_start(pthread_t *out, const struct rt_thread_spec *spec,
                             void *(*run)(void *), void *arg, char *granted);
#define clock_now_ns      fake_now_ns
#define clock_sleep_until fake_sleep_until
#define rt_thread_start   fake_thread_start
#include "daemon/monitor.c" // NOLINT(bugprone-suspicious-include)
#undef clock_now_ns
#undef clock_sleep_until
#undef rt_thread_start

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
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

// ---- the judgement ---------------------------------------------------------------------------

static void the_limit(void **state)
{
    (void)state;
    assert_int_equal(monitor_limit_ns(500 * NS_PER_US), 80 * MS); // 2 kHz
    assert_int_equal(monitor_limit_ns(10 * MS), 80 * MS);
    assert_int_equal(monitor_limit_ns(clock_period_ns(30)), 80 * MS);
    assert_int_equal(monitor_limit_ns(40 * MS),
                     100 * MS); // three periods, less two looks
    assert_int_equal(monitor_limit_ns(NS_PER_S), 2980 * MS);
}

static void a_loop_that_ticks_is_left_alone(void **state)
{
    (void)state;
    static const double hz[] = {1, 5, 29, 30, 31, 100, 1000, 2000};

    for (size_t i = 0; i < sizeof hz / sizeof *hz; i++) {
        const ns_t period = clock_period_ns(hz[i]), limit = monitor_limit_ns(period);
        struct monitor_state s = {0};
        for (ns_t now = NS_PER_S; now < 20 * NS_PER_S; now += MONITOR_LOOK_NS) {
            // A tick may be late by half a period; no tick is no stall.
            ns_t late = (ns_t)(rnd() % (uint64_t)(period / 2 + 1));
            assert_false(monitor_look(&s, (uint64_t)((now - late) / period), now, limit));
            assert_false(s.stalled);
        }
    }
}

// From the last tick to the cut, for a loop that stops at any moment between two looks.
static ns_t cut_after(double hz, ns_t phase, ns_t look_late)
{
    const ns_t period = clock_period_ns(hz), limit = monitor_limit_ns(period);
    const ns_t stop = 10 * NS_PER_S + phase;
    const uint64_t last = (uint64_t)(stop / period);
    struct monitor_state s = {0};
    ns_t cut = 0;

    for (ns_t at = MONITOR_LOOK_NS; at < 20 * NS_PER_S; at += MONITOR_LOOK_NS) {
        const ns_t now = at + (look_late ? (ns_t)(rnd() % (uint64_t)look_late) : 0);
        const uint64_t ticks = now < stop ? (uint64_t)(now / period) : last;
        if (!monitor_look(&s, ticks, now, limit))
            continue;
        assert_int_equal(cut, 0); // once
        cut = now;
    }
    assert_true(cut > 0);
    assert_true(s.stalled);
    return cut - (ns_t)last * period;
}

static void the_cut_comes_within_100_ms(void **state)
{
    (void)state;
    ns_t least = NS_PER_S, most = 0;

    for (ns_t phase = 0; phase < 20 * MS; phase += 50 * NS_PER_US)
        for (int i = 0; i < 3; i++) {
            const ns_t t = cut_after(i == 0 ? 30 : i == 1 ? 100 : 1000, phase, 0);
            least = t < least ? t : least;
            most = t > most ? t : most;
        }
    assert_in_range(least, 80 * MS, 81 * MS); // and not sooner than it must
    assert_in_range(most, 89 * MS, 90 * MS);
    for (ns_t phase = 0; phase < 20 * MS;
         phase += 50 * NS_PER_US) // looks up to 5 ms late
        assert_in_range(cut_after(100, phase, 5 * MS), 75 * MS, 100 * MS);
}

static void a_slow_loop_has_three_periods(void **state)
{
    (void)state;

    for (ns_t phase = 0; phase < 1000 * MS; phase += 7 * MS) {
        assert_in_range(cut_after(1, phase, 0), 2980 * MS, 3000 * MS);
        assert_in_range(cut_after(20, phase, 0), 130 * MS, 150 * MS);
    }
}

static void once_per_stall(void **state)
{
    (void)state;
    struct monitor_state s = {0};
    ns_t now = NS_PER_S;
    uint64_t ticks = 1;
    int cuts = 0;

    for (int round = 1; round <= 5; round++) {
        for (int i = 0; i < 100; i++, now += MONITOR_LOOK_NS)
            cuts += monitor_look(&s, ticks, now, 80 * MS);
        assert_int_equal(cuts, round);
        assert_true(s.stalled);
        ticks += 3;
        assert_false(monitor_look(&s, ticks, now, 80 * MS)); // it is back
        assert_false(s.stalled);
    }
}

static void exactly_at_the_limit(void **state)
{
    (void)state;
    struct monitor_state s = {0};

    assert_false(monitor_look(&s, 1, 1000, 80));
    for (ns_t now = 1010; now < 1080; now += 10)
        assert_false(monitor_look(&s, 1, now, 80));
    assert_false(monitor_look(&s, 1, 1079, 80));
    assert_true(monitor_look(&s, 1, 1080, 80));
}

static void a_loop_that_has_not_begun(void **state)
{
    (void)state;
    struct monitor_state s = {0};
    ns_t now = NS_PER_S;

    for (int i = 0; i < 1000; i++, now += MONITOR_LOOK_NS) {
        assert_false(monitor_look(&s, 0, now, 80 * MS)); // there is nothing to cut
        assert_int_equal(s.stalled, i >= 8);             // but nobody calls it fine
    }
    assert_false(monitor_look(&s, 1, now, 80 * MS));
    assert_false(s.stalled);
    for (int i = 1; i < 8; i++)
        assert_false(monitor_look(&s, 1, now + i * MONITOR_LOOK_NS, 80 * MS));
    assert_true(monitor_look(&s, 1, now + 8 * MONITOR_LOOK_NS, 80 * MS));
}

// Both were away, for any length, at any moment of the loop's period; the monitor is the first to
// wake and the loop ticks within `wakes_ns`. That is no stall: the loop judges its own gap.
static bool cut_by_suspension(ns_t period, ns_t phase, ns_t away, ns_t wakes_ns)
{
    const ns_t limit = monitor_limit_ns(period), from = NS_PER_S + phase;
    const uint64_t before = (uint64_t)(from / period);
    struct monitor_state s = {0};
    ns_t now = 10 * MS;
    bool cut = false;

    for (; now < from; now += MONITOR_LOOK_NS)
        cut |= monitor_look(&s, (uint64_t)(now / period), now, limit);
    for (now = from + away; now < from + away + NS_PER_S; now += MONITOR_LOOK_NS) {
        const bool woke = now - from - away >= wakes_ns;
        cut |= monitor_look(&s, woke ? (uint64_t)(now / period) : before, now, limit);
    }
    return cut;
}

static void suspended_together_is_no_stall(void **state)
{
    (void)state;
    static const ns_t away[] = {15 * MS,  35 * MS,      45 * MS,        79 * MS,
                                100 * MS, 5 * NS_PER_S, 3600 * NS_PER_S};
    static const double hz[] = {1, 10, 30, 100, 1000};

    for (size_t h = 0; h < sizeof hz / sizeof *hz; h++)
        for (size_t a = 0; a < sizeof away / sizeof *away; a++)
            for (ns_t phase = 0; phase < 100 * MS; phase += 333 * NS_PER_US)
                assert_false(
                    cut_by_suspension(clock_period_ns(hz[h]), phase, away[a], 5 * MS));
    // The loop has longer at a rate at which a period is little of the limit.
    for (ns_t phase = 0; phase < 100 * MS; phase += 333 * NS_PER_US)
        assert_false(cut_by_suspension(10 * MS, phase, 5 * NS_PER_S, 20 * MS));
    // A loop that does not come back with the monitor is stuck.
    assert_true(cut_by_suspension(10 * MS, 0, 5 * NS_PER_S, 90 * MS));
}

// A monitor that is kept away again and again still finds it, in no more than three looks.
static void stuck_before_and_after_the_suspension(void **state)
{
    (void)state;
    struct monitor_state s = {0};
    ns_t now = NS_PER_S;

    assert_false(monitor_look(&s, 5, now, 80 * MS));
    assert_false(monitor_look(&s, 5, now += 60 * NS_PER_S, 80 * MS)); // half
    assert_true(monitor_look(&s, 5, now += 60 * NS_PER_S, 80 * MS));
    memset(&s, 0, sizeof s);
    assert_false(monitor_look(&s, 5, now, 80 * MS));
    for (int i = 0; i < 6; i++) // 60 ms stuck, then the machine sleeps
        assert_false(monitor_look(&s, 5, now += MONITOR_LOOK_NS, 80 * MS));
    assert_true(monitor_look(&s, 5, now += 60 * NS_PER_S, 80 * MS));
}

// ---- the thread's loop, in virtual time ------------------------------------------------------

static struct {
    bool on;
    ns_t now;
    ns_t period, stuck_from, stuck_to; // of the loop that is watched
    ns_t away_at, away;                // a sleep that starts then lasts longer by that
    ns_t overslept, end;
    struct monitor *m;
    ns_t last_tick, cut_at, last_look;
    int looks, fine;
} w;

static ns_t fake_now_ns(void)
{
    return w.on ? w.now : clock_now_ns();
}

static void ticks_up_to(ns_t now)
{
    ns_t t = now >= w.stuck_from && now < w.stuck_to ? w.stuck_from : now;

    atomic_store(&w.m->board->ticks, (uint64_t)(t / w.period));
    w.last_tick = t - t % w.period;
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
    memset(board, 0, sizeof *board);
    *m = (struct monitor){.board = board, .limit_ns = monitor_limit_ns(w.period)};
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
        cmocka_unit_test(the_limit),
        cmocka_unit_test(a_loop_that_ticks_is_left_alone),
        cmocka_unit_test(the_cut_comes_within_100_ms),
        cmocka_unit_test(a_slow_loop_has_three_periods),
        cmocka_unit_test(once_per_stall),
        cmocka_unit_test(exactly_at_the_limit),
        cmocka_unit_test(a_loop_that_has_not_begun),
        cmocka_unit_test(suspended_together_is_no_stall),
        cmocka_unit_test(stuck_before_and_after_the_suspension),
        cmocka_unit_test(the_thread_cuts_once_and_is_not_fine),
        cmocka_unit_test(the_thread_that_oversleeps),
        cmocka_unit_test(the_thread_after_a_suspension),
        cmocka_unit_test(a_monitor_that_is_gone_is_not_fine),
        cmocka_unit_test(for_real),
        cmocka_unit_test(the_priority),
        cmocka_unit_test(a_process_stopped_and_continued),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
