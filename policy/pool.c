#include "policy/pool.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// A pause instruction takes 15 to 45 ns on current x86 cores: 2000 of them are about 50
// us.
#define SPINS 2000
// The deepest of our kernels is Winograd's product with AVX-512: 29 KiB, 16 of them a part of the
// weights that is kept in 16 bits (winograd.c), 12 sums (gemm_body.h). Before OpenBLAS lie 32 KiB of
// copied rows (gemm_blas.c), and it needs a few itself. mlockall pays for what is touched.
#define STACK_BYTES ((size_t)1 << 20)

struct worker {
    struct pool *pool;
    pthread_t thread;
    int number;
};

// The atomics sit on cache lines of their own: workers hammer them while they spin.
struct pool {
    _Alignas(64) atomic_uint generation; // number of the current job
    atomic_int sleepers;                 // workers in, or on their way into, futex_wait
    _Alignas(64) atomic_uint pending;    // workers that have not finished the current job
    atomic_int caller_sleeps;
    _Alignas(64) pool_task task;
    void *arg;
    bool stop;
    int threads, started;
    bool serial;
    atomic_int owners;
    struct worker worker[POOL_MAX_THREADS];
};

static void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void futex_wait(atomic_uint *word, unsigned seen)
{
    // EAGAIN (already changed) and EINTR both mean: look again
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

// Waits until *word is no longer `seen`. `asleep` counts the waiters that need a wake: it
// is raised before the kernel compares the word, and whoever changes the word reads it
// after (both sequentially consistent), so one of the two always notices the other.
static void wait_change(atomic_uint *word, unsigned seen, atomic_int *asleep)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != seen)
            return;
        cpu_relax();
    }
    atomic_fetch_add(asleep, 1);
    while (atomic_load(word) == seen)
        futex_wait(word, seen);
    atomic_fetch_sub(asleep, 1);
}

static void finish(struct pool *p)
{
    if (atomic_fetch_sub(&p->pending, 1) == 1 && atomic_load(&p->caller_sleeps))
        futex_wake(&p->pending);
}

static void *worker_main(void *arg)
{
    const struct worker *w = arg;
    struct pool *p = w->pool;
    char name[16];
    snprintf(name, sizeof name, "actd-pool-%d", w->number);
    (void)prctl(PR_SET_NAME, name, 0, 0,
                0); // a name is for people; nothing depends on it
    for (unsigned seen = 0;; seen++) {
        wait_change(&p->generation, seen, &p->sleepers);
        if (p->stop)
            return NULL;
        p->task(p->arg, w->number, p->threads);
        finish(p);
    }
}

static void publish(struct pool *p)
{
    atomic_store(&p->pending, (unsigned)(p->started));
    atomic_fetch_add(&p->generation, 1);
    if (atomic_load(&p->sleepers))
        futex_wake(&p->generation);
}

void pool_run(struct pool *p, pool_task task, void *arg)
{
    unsigned left;
    p->task = task;
    p->arg = arg;
    if (p->started)
        publish(p);
    task(arg, 0, p->threads);
    for (int i = 1; p->serial && i < p->threads; i++)
        task(arg, i, p->threads);
    while ((left = atomic_load_explicit(&p->pending, memory_order_acquire)) != 0)
        wait_change(&p->pending, left, &p->caller_sleeps);
}

int pool_threads(const struct pool *p)
{
    return p->threads;
}

// SCHED_OTHER explicitly: the default is to inherit the creator's class. 0 or an errno
// value.
static int set_attributes(pthread_attr_t *attr)
{
    struct sched_param param = {.sched_priority = 0};
    int rc = pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);
    if (rc == 0)
        rc = pthread_attr_setschedpolicy(attr, SCHED_OTHER);
    if (rc == 0)
        rc = pthread_attr_setschedparam(attr, &param);
    if (rc == 0)
        rc = pthread_attr_setstacksize(attr, STACK_BYTES);
    return rc;
}

// The cores of the mask that this process may use.
static uint64_t usable_cores(uint64_t cpu_mask)
{
    cpu_set_t set;
    uint64_t usable = 0;

    if (cpu_mask == 0 || sched_getaffinity(0, sizeof set, &set) != 0)
        return cpu_mask;
    for (size_t i = 0; i < 64; i++)
        if (cpu_mask >> i & 1 && CPU_ISSET(i, &set))
            usable |= UINT64_C(1) << i;
    return usable;
}

// A core for each, or, where there are fewer, all of them for each. 0 or an errno value.
static int set_cores(pthread_attr_t *attr, const struct pool *p, int worker,
                     uint64_t cores)
{
    const bool one_each = __builtin_popcountll(cores) >= p->threads;
    cpu_set_t set;

    CPU_ZERO(&set);
    for (size_t i = 0; i < 64; i++)
        if (cores >> i & 1 && (!one_each || worker-- == 0))
            CPU_SET(i, &set);
    return pthread_attr_setaffinity_np(attr, sizeof set, &set);
}

// Starts the workers with every signal blocked: they belong to whoever handles them,
// never to a thread in the middle of a matrix. 0 or an errno value.
static int start_workers(struct pool *p, pthread_attr_t *attr, uint64_t cpu_mask)
{
    const uint64_t cores = usable_cores(cpu_mask);
    sigset_t all, before;
    sigfillset(&all);
    int rc = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (rc)
        return rc;
    for (int i = 1; i < p->threads && rc == 0; i++) {
        struct worker *w = &p->worker[i];
        *w = (struct worker){.pool = p, .number = i};
        if (cpu_mask)
            rc = set_cores(attr, p, i, cores);
        if (rc == 0)
            rc = pthread_create(&w->thread, attr, worker_main, w);
        p->started += rc == 0;
    }
    int restored = pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc ? rc : restored;
}

static int allocate(struct pool **out, int threads)
{
    *out = NULL;
    if (threads < 1 || threads > POOL_MAX_THREADS)
        return -EINVAL;
    struct pool *p = aligned_alloc(64, (sizeof *p + 63) / 64 * 64);
    if (!p)
        return -ENOMEM;
    *p = (struct pool){.threads = threads, .owners = 1};
    *out = p;
    return 0;
}

int pool_start(struct pool **out, int threads, uint64_t cpu_mask)
{
    pthread_attr_t attr;
    int rc = allocate(out, threads);
    if (rc)
        return rc;
    rc = pthread_attr_init(&attr);
    if (rc == 0) {
        rc = set_attributes(&attr);
        if (rc == 0)
            rc = start_workers(*out, &attr, cpu_mask);
        pthread_attr_destroy(&attr);
    }
    if (rc) {
        pool_stop(*out);
        *out = NULL;
    }
    return -rc;
}

int pool_start_serial(struct pool **out, int threads)
{
    int rc = allocate(out, threads);
    if (rc == 0)
        (*out)->serial = true;
    return rc;
}

struct pool *pool_hold(struct pool *p)
{
    atomic_fetch_add(&p->owners, 1);
    return p;
}

void pool_stop(struct pool *p)
{
    if (!p || atomic_fetch_sub(&p->owners, 1) > 1)
        return;
    p->stop = true;
    if (p->started)
        publish(p);
    for (int i = 1; i <= p->started; i++)
        pthread_join(p->worker[i].thread, NULL);
    free(p);
}

void pool_share(size_t n, int worker, int workers, size_t *begin, size_t *end)
{
    size_t w = (size_t)worker, per = n / (size_t)workers, rest = n % (size_t)workers;
    *begin = w * per + (w < rest ? w : rest);
    *end = *begin + per + (w < rest);
}
