// The compute pool: every worker does its share of every job exactly once, whether it was
// spinning or asleep, and its threads are what their header promises.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "policy/pool.h"

#define WORKERS 4

struct tally {
    int calls[WORKERS]; // plain ints: pool_run's barrier must order them
    int workers_seen;
    long input, sum[WORKERS];
};

static void count(void *arg, int worker, int workers)
{
    struct tally *t = arg;
    t->calls[worker]++;
    t->sum[worker] += t->input;
    if (worker == 0)
        t->workers_seen = workers;
}

static void pause_ms(long ms)
{
    struct timespec t = {.tv_sec = 0, .tv_nsec = ms * 1000000};
    nanosleep(&t, NULL);
}

// runs back to back (workers spin) and with pauses (workers sleep in the futex)
static void test_every_worker_once(void **unused)
{
    (void)unused;
    for (int threads = 1; threads <= WORKERS; threads++) {
        struct pool *p;
        struct tally t = {.input = 0};
        long expected = 0;
        assert_int_equal(pool_start(&p, threads, 0), 0);
        assert_int_equal(pool_threads(p), threads);
        for (int run = 1; run <= 2000; run++) {
            t.input = run;
            expected += run;
            pool_run(p, count, &t);
            if (run % 100 == 0)
                pause_ms(1);
            for (int w = 0; w < WORKERS; w++) {
                assert_int_equal(t.calls[w], w < threads ? run : 0);
                assert_int_equal(t.sum[w], w < threads ? expected : 0);
            }
        }
        assert_int_equal(t.workers_seen, threads);
        pool_stop(p);
    }
    pool_stop(NULL);
}

struct facts {
    char name[16];
    int policy, cpus, first; // core
    bool cpu0, usr1_blocked, term_blocked;
};

static void look(void *arg, int worker, int workers)
{
    struct facts *f = &((struct facts *)arg)[worker];
    struct sched_param param;
    sigset_t mask;
    cpu_set_t cpus;
    (void)workers;
    prctl(PR_GET_NAME, f->name, 0, 0, 0);
    pthread_getschedparam(pthread_self(), &f->policy, &param);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    f->usr1_blocked = sigismember(&mask, SIGUSR1) == 1;
    f->term_blocked = sigismember(&mask, SIGTERM) == 1;
    sched_getaffinity(0, sizeof cpus, &cpus);
    f->cpus = CPU_COUNT(&cpus);
    f->cpu0 = CPU_ISSET(0, &cpus);
    for (f->first = 0; f->first < 64 && !CPU_ISSET((size_t)f->first, &cpus);)
        f->first++;
}

static void test_threads_as_promised(void **unused)
{
    (void)unused;
    struct pool *p;
    struct facts f[3] = {{{0}, 0, 0, -1, false, false, false}};
    struct sched_param fifo = {.sched_priority = 1}, other = {.sched_priority = 0};
    // from a FIFO creator where that is allowed: the class must not be inherited
    bool is_fifo = pthread_setschedparam(pthread_self(), SCHED_FIFO, &fifo) == 0;
    int rc = pool_start(&p, 3, 1);
    if (is_fifo)
        assert_int_equal(pthread_setschedparam(pthread_self(), SCHED_OTHER, &other), 0);
    else
        print_message("SCHED_FIFO is not permitted here: inheritance is not tried\n");
    assert_int_equal(rc, 0);
    pool_run(p, look, f);
    for (int i = 1; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "actd-pool-%d", i);
        assert_string_equal(f[i].name, name);
        assert_int_equal(f[i].policy, SCHED_OTHER);
        assert_true(f[i].usr1_blocked && f[i].term_blocked);
        assert_int_equal(f[i].cpus, 1);
        assert_true(f[i].cpu0);
    }
    assert_false(f[0].usr1_blocked); // the caller's own mask is as it was
    pool_stop(p);
}

// A core for each, the first is the caller's; one core too few, and they share what there is.
static void test_pinned(void **unused)
{
    (void)unused;
    cpu_set_t all;
    int cores = 0, number[64], n;
    uint64_t mask = 0;
    struct pool *p;
    struct facts f[POOL_MAX_THREADS] = {{{0}, 0, 0, -1, false, false, false}};

    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (int i = 0; i < 64; i++)
        if (CPU_ISSET((size_t)i, &all)) {
            number[cores++] = i;
            mask |= UINT64_C(1) << i;
        }
    for (n = cores > 1 ? cores - 1 : 1; n <= cores + 1 && n <= POOL_MAX_THREADS; n++) {
        // cores that there are not are no cores
        assert_int_equal(pool_start(&p, n, n > cores ? UINT64_MAX : mask), 0);
        pool_run(p, look, f);
        for (int i = 1; i < n; i++) {
            assert_int_equal(f[i].cpus, n <= cores ? 1 : cores);
            if (n <= cores)
                assert_int_equal(f[i].first, number[i]);
        }
        assert_int_equal(f[0].cpus, CPU_COUNT(&all)); // its owner's
        pool_stop(p);
    }
}

static void test_bad_arguments(void **unused)
{
    (void)unused;
    struct pool *p = (void *)1;
    assert_int_equal(pool_start(&p, 0, 0), -EINVAL);
    assert_null(p);
    assert_int_equal(pool_start(&p, POOL_MAX_THREADS + 1, 0), -EINVAL);
    if (sysconf(_SC_NPROCESSORS_CONF) < 64)
        assert_int_equal(pool_start(&p, 2, 1ull << 63), -EINVAL);
    assert_null(p);
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Spinning is bounded: an idle pool costs nothing.
static void test_idle(void **unused)
{
    (void)unused;
    struct pool *p;
    struct tally t = {.input = 1};
    assert_int_equal(pool_start(&p, WORKERS, 0), 0);
    pool_run(p, count, &t);
    pause_ms(20);
    double before = cpu_seconds();
    pause_ms(200);
    assert_true(cpu_seconds() - before < 0.01);
    pool_stop(p);
}

static void test_share(void **unused)
{
    (void)unused;
    for (size_t n = 0; n < 40; n++)
        for (int workers = 1; workers <= 9; workers++) {
            size_t next = 0, begin, end;
            for (int w = 0; w < workers; w++) {
                pool_share(n, w, workers, &begin, &end);
                assert_int_equal(begin, next);
                assert_true(end - begin <= n / (size_t)workers + 1);
                assert_true(end - begin >= n / (size_t)workers);
                next = end;
            }
            assert_int_equal(next, n);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_worker_once),
        cmocka_unit_test(test_threads_as_promised),
        cmocka_unit_test(test_pinned),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
