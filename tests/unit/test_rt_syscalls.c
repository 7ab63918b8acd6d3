// The real loop thread under the kernel's eyes: a seccomp filter on that thread alone
// lets through clock_nanosleep and 8-byte writes to the board's eventfd and traps
// everything else; the page faults of the thread are read from /proc by another one;
// allocations are counted by thread. The filter is put on inside the thread, in front of
// loop_run.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/loop_impl.h"
#include "daemon/rt.h"
#include "tests/hygiene/full_loop.h"
#include "tests/hygiene/watched_thread.h"

#define WALL_NS (20 * NS_PER_S) // at most; needed is a little over 1 s

// ---- the filter, inside the thread ----------------------------------------------------

static void *(*watched)(void *); // what the thread is to run
static _Atomic pid_t watched_tid;
static int allowed_fd;

// What rt_thread_start runs, instead of the thread's own function, around it.
static void *filtered(void *arg)
{
    void *(*run_it)(void *) = watched;

    watched_tid = (pid_t)syscall(SYS_gettid);
    if (watch_this_thread(allowed_fd, NULL) != 0) {
        first_violation = -2;
        return NULL;
    }
    counting = true;
    (void)run_it(arg);
    counting = false;
    syscall(SYS_exit,
            0); // the C library's own end of a thread would call the kernel more
    return NULL;
}

static void begin(int fd)
{
    violations = allocations = 0;
    first_violation = -1;
    watched_tid = 0;
    allowed_fd = fd;
}

static const char *syscall_name(int nr)
{
    static const struct {
        int nr;
        const char *name;
    } known[] = {
        {SYS_read, "read"},           {SYS_write, "write (not 8 bytes to the eventfd)"},
        {SYS_mmap, "mmap"},           {SYS_munmap, "munmap"},
        {SYS_mprotect, "mprotect"},   {SYS_brk, "brk"},
        {SYS_madvise, "madvise"},     {SYS_futex, "futex"},
        {SYS_getrusage, "getrusage"}, {SYS_clock_gettime, "clock_gettime"},
        {SYS_openat, "openat"},       {SYS_close, "close"},
        {SYS_getpid, "getpid"},       {SYS_sched_yield, "sched_yield"},
        {SYS_nanosleep, "nanosleep"}, {SYS_sendto, "sendto"},
        {SYS_poll, "poll"},           {SYS_epoll_wait, "epoll_wait"},
    };
    static char number[32];

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].nr == nr)
            return known[i].name;
    snprintf(number, sizeof number, "number %d", nr);
    return number;
}

static void assert_no_violation(void)
{
    assert_int_not_equal(first_violation, -2); // the filter itself was refused
    if (violations > 0)
        fail_msg("%ld system calls that a loop may not make, the first: %s", violations,
                 syscall_name(first_violation));
}

// ---- the loop -------------------------------------------------------------------------

struct played {
    uint64_t seen; // bit per ladder state
    long faults;   // of the thread, once it had run a while
};

static struct loop_report newest(struct loop_world *w)
{
    struct loop_report r;

    memset(&r, 0, sizeof r);
    if (slot_read(&w->board.report, &r) == 0)
        r.ticks_run = 0;
    return r;
}

// To RUNNING and 600 ticks on; then the joint states stop: HOLD, STOPPING, STOPPED;
// 200 more.
static void play(struct loop_world *w, struct played *p)
{
    ns_t until = clock_now_ns() + WALL_NS;
    uint64_t running = 0, stopped = 0;
    bool silent = false;
    long before = -1;

    while (clock_now_ns() < until) {
        struct loop_report r = newest(w);

        if (r.ticks_run > 100 && before < 0)
            before = faults_of(watched_tid);
        p->seen |= r.ticks_run ? UINT64_C(1) << r.mode : 0;
        if (r.mode == LADDER_RUNNING && running == 0)
            running = r.ticks_run;
        silent = silent || (running && r.ticks_run > running + 600);
        if (silent && r.mode == LADDER_STOPPED && stopped == 0)
            stopped = r.ticks_run;
        if (stopped && r.ticks_run > stopped + 200)
            break;
        (void)world_obey(w, NULL, NULL);
        if (!silent) {
            world_feed(w, clock_now_ns());
            world_arm(w, r.mode, clock_now_ns());
        }
        clock_sleep_until(clock_now_ns() + NS_PER_MS);
    }
    p->faults = before < 0 ? -1 : faults_of(watched_tid) - before;
}

static void the_loop_thread(void **state)
{
    (void)state;
    if (CANNOT_WATCH)
        skip();
    struct world_spec spec = {.control_hz = 1000,
                              .joints = 14,
                              .mode = "crossfade",
                              .jerk = 2000,
                              .lively = 0.05};
    struct rt_thread_spec as = {
        .name = "actd-loop", .cls = RT_CLASS_RT, .priority = 50, .cpu = -1};
    struct loop_world *w = malloc(sizeof *w);
    struct loop_thread t = {.stop = false};
    struct played p = {0};
    char granted[RT_GRANTED];

    assert_non_null(w);
    if (world_open(w, &spec) != 0)
        fail_msg("%s", w->err.text);
    bool locked = rt_lock_memory() == 0;
    begin(w->board.command_fd);
    t.loop = w->loop;
    watched = loop_run;
    assert_int_equal(rt_thread_start(&t.thread, &as, filtered, &t, granted), 0);
    play(w, &p);
    atomic_store(&t.stop, true);
    assert_int_equal(pthread_join(t.thread, NULL), 0);
    assert_no_violation();
    assert_int_equal(allocations, 0);
    for (int s = LADDER_RUNNING; s <= LADDER_STOPPED; s++)
        if (!(p.seen & (UINT64_C(1) << s)) && s != LADDER_STOPPING)
            fail_msg("%s was not reached; the end is %s (%s)",
                     ladder_state_name((enum ladder_state)s),
                     ladder_state_name(loop_last(w->loop)->mode),
                     ladder_reason_name(loop_last(w->loop)->reason));
    if (locked)
        assert_int_equal(p.faults, 0);
    world_close(w);
    free(w);
    munlockall();
}

// ---- the detectors themselves ---------------------------------------------------------

static volatile unsigned char *fresh_pages;
static _Atomic int stage;
static void *volatile heap;

static void *misbehaves(void *arg)
{
    (void)arg;
    (void)clock_now_ns(); // no system call: the kernel's page does it
    while (stage == 0)
        clock_sleep_until(clock_now_ns() + NS_PER_MS);
    for (int i = 0; i < 3; i++)
        fresh_pages[4096 * i] = 1;
    syscall(SYS_getpid);
    heap = malloc(1); // which may ask the kernel itself
    free(heap);
    (void)!write(allowed_fd, "too short", 4);
    stage = 2;
    while (stage == 2)
        clock_sleep_until(clock_now_ns() + NS_PER_MS);
    return NULL;
}

static void what_is_forbidden_is_seen(void **state)
{
    (void)state;
    if (CANNOT_WATCH)
        skip();
    struct rt_thread_spec spec = {.name = "bad", .cls = RT_CLASS_RT, .cpu = -1};
    int fd[2];
    pthread_t thread;
    long before;

    assert_int_equal(pipe(fd), 0);
    begin(fd[1]);
    fresh_pages =
        mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(fresh_pages, MAP_FAILED);
    madvise((void *)(uintptr_t)fresh_pages, 4 * 4096, MADV_NOHUGEPAGE);
    stage = 0;
    watched = misbehaves;
    assert_int_equal(rt_thread_start(&thread, &spec, filtered, NULL, NULL), 0);
    while (watched_tid == 0)
        clock_sleep_until(clock_now_ns() + NS_PER_MS);
    before = faults_of(watched_tid);
    stage = 1;
    while (stage != 2)
        clock_sleep_until(clock_now_ns() + NS_PER_MS);
    assert_true(before >= 0 && faults_of(watched_tid) >= before + 3);
    stage = 3;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(first_violation, SYS_getpid);
    assert_true(violations >= 2);
    assert_int_equal(allocations, 2); // one malloc, one free
    munmap((void *)(uintptr_t)fresh_pages, 4 * 4096);
    close(fd[0]);
    close(fd[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_forbidden_is_seen),
        cmocka_unit_test(the_loop_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
