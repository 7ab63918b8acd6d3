// rt: threads have the class they were given and no other; and the objects that the loop is
// made of reach for nothing that could make it wait.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/rt.h"

struct facts { // of a running thread, as the kernel tells
    int policy, priority, nice, cpus;
    bool signals_blocked;
    char name[16];
    pid_t tid;
};

static void look(struct facts *f)
{
    struct sched_param p = {0};
    sigset_t blocked;
    cpu_set_t cpus;

    f->tid = (pid_t)syscall(SYS_gettid);
    f->policy = sched_getscheduler(f->tid);
    sched_getparam(f->tid, &p);
    f->priority = p.sched_priority;
    f->nice = getpriority(PRIO_PROCESS, (id_t)f->tid);
    sched_getaffinity(f->tid, sizeof cpus, &cpus);
    f->cpus = CPU_COUNT(&cpus);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    f->signals_blocked = sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGUSR1);
    pthread_getname_np(pthread_self(), f->name, sizeof f->name);
}

static void *facts_of_me(void *arg)
{
    look(arg);
    return NULL;
}

static void plain_threads(void **state)
{
    (void)state;
    struct facts f = {0};
    pthread_t t;
    sigset_t now;
    int mine = getpriority(PRIO_PROCESS, 0);

    assert_int_equal(rt_thread_create(&t, "a-name-that-is-too-long", RT_CLASS_PLAIN, 50,
                                      facts_of_me, &f),
                     0);
    pthread_join(t, NULL);
    assert_int_equal(f.policy, SCHED_OTHER); // whatever priority it was given
    assert_int_equal(f.nice, mine > 5 ? mine : 5);
    assert_true(f.signals_blocked);
    assert_string_equal(f.name, "a-name-that-is-");
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    assert_false(sigismember(&now, SIGTERM)); // the maker's own mask is as it was
    assert_int_equal(rt_thread_create(&t, "infer", RT_CLASS_INFER, 0, facts_of_me, &f),
                     0);
    pthread_join(t, NULL);
    assert_int_equal(f.policy, SCHED_OTHER);
    assert_int_equal(f.nice, mine);
}

struct nest {
    struct facts self, child, io;
    int rc;
};

static void *maker(void *arg)
{
    struct nest *n = arg;
    pthread_t t;

    look(&n->self);
    n->rc = rt_thread_create(&t, "child", RT_CLASS_INFER, 0, facts_of_me, &n->child);
    if (n->rc == 0)
        pthread_join(t, NULL);
    n->rc |= rt_thread_create(&t, "io", RT_CLASS_IO, 49, facts_of_me, &n->io);
    if (n->rc == 0)
        pthread_join(t, NULL);
    return NULL;
}

// With SCHED_FIFO granted: the class is real, and a helper made by such a thread has none of it.
static void fifo_is_not_inherited(void **state)
{
    (void)state;
    struct rt_thread_spec spec = {
        .name = "loop", .cls = RT_CLASS_RT, .priority = 50, .cpu = rt_choose_cpu()};
    char granted[RT_GRANTED] = "";
    struct nest n = {0};
    pthread_t t;

    assert_int_equal(rt_thread_start(&t, &spec, maker, &n, granted), 0);
    pthread_join(t, NULL);
    assert_int_equal(n.rc, 0);
    assert_int_equal(n.child.policy, SCHED_OTHER);
    if (n.self.policy == SCHED_OTHER) {
        assert_non_null(strstr(granted, "refused"));
        printf("SCHED_FIFO is not to be had here: %s\n", granted);
        return;
    }
    assert_int_equal(n.self.policy, SCHED_FIFO);
    assert_int_equal(n.self.priority, 50);
    assert_string_equal(granted, "SCHED_FIFO 50");
    assert_int_equal(n.io.policy, SCHED_FIFO);
    assert_int_equal(n.io.priority, 49);
    if (rt_cpu_count() > 1)
        assert_int_equal(n.self.cpus, 1);
}

// Somebody without the right: goes on as SCHED_OTHER and says so, or does not start at all.
static int try_without_rights(void)
{
    struct rlimit none = {0, 0};
    struct rt_thread_spec spec = {
        .name = "loop", .cls = RT_CLASS_RT, .priority = 50, .cpu = -1};
    char granted[RT_GRANTED] = "";
    struct facts f = {0};
    pthread_t t;

    setrlimit(RLIMIT_RTPRIO, &none);
    if (geteuid() == 0 && setuid(65534) != 0)
        return 1;
    if (rt_thread_start(&t, &spec, facts_of_me, &f, granted) != 0)
        return 2;
    pthread_join(t, NULL);
    if (f.policy != SCHED_OTHER ||
        strcmp(granted, "SCHED_OTHER (SCHED_FIFO 50 refused: error 1)"))
        return 3;
    spec.require_rt = true;
    if (rt_thread_start(&t, &spec, facts_of_me, &f, granted) != -EPERM)
        return 4;
    spec.require_rt = false;
    spec.cpu = 1 << 20;
    return rt_thread_start(&t, &spec, facts_of_me, &f, NULL) == -EINVAL ? 0 : 5;
}

static void refusal_is_reported(void **state)
{
    (void)state;
    int status = 0;
    pid_t child = fork();

    if (child == 0)
        _exit(try_without_rights());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static _Atomic int go_on;

static void *wait_and_look(void *arg)
{
    while (!go_on)
        usleep(1000);
    look(arg);
    return NULL;
}

static void cores(void **state)
{
    (void)state;
    struct facts f = {0};
    pthread_t t;

    assert_true(rt_cpu_count() >= 1);
    assert_true(rt_cpu_count() == 1 ? rt_choose_cpu() == -1
                                    : (rt_cpus() >> rt_choose_cpu()) == 1);
    assert_int_equal(rt_thread_create(&t, "w", RT_CLASS_PLAIN, 0, wait_and_look, &f), 0);
    assert_int_equal(rt_keep_off(t, -1), 0);
    assert_int_equal(rt_keep_off(t, rt_choose_cpu()), 0);
    go_on = 1;
    pthread_join(t, NULL);
    assert_int_equal(f.cpus, rt_cpu_count() > 1 ? rt_cpu_count() - 1 : 1);
}

// Each compute thread gets a core of its own, a whole one as long as there are any.
static void cores_for_compute_threads(void **state)
{
    uint8_t own[64], side_by_side[64],
        far[64]; // no siblings; 0 and 1, 2 and 3; 0 and 4, 1 and 5

    (void)state;
    for (int i = 0; i < 64; i++) {
        own[i] = (uint8_t)i;
        side_by_side[i] = (uint8_t)(i & ~1);
        far[i] = (uint8_t)(i < 8 ? i % 4 : i);
    }
    assert_int_equal(rt_mask_among(0xf, own, 3, 1), 0x1);
    assert_int_equal(rt_mask_among(0xf, own, 3, 3), 0x7);
    assert_int_equal(rt_mask_among(0xf, own, 1, 3), 0xd);
    assert_int_equal(rt_mask_among(0xf, own, 3, 0), 0x1);
    assert_int_equal(rt_mask_among(0xe0, own, 7, 2), 0x60);
    assert_int_equal(rt_mask_among(0xff, side_by_side, 7, 3), 0x15);
    assert_int_equal(rt_mask_among(0xff, side_by_side, 7, 4), 0x17);
    assert_int_equal(rt_mask_among(0xff, side_by_side, 7, 7), 0x7f); // 6 at last
    assert_int_equal(rt_mask_among(0xff, side_by_side, 0, 6), 0xfc);
    assert_int_equal(rt_mask_among(0xff, far, 7, 3), 0x07);
    assert_int_equal(rt_mask_among(0xff, far, 7, 4), 0x17);
    assert_int_equal(rt_mask_among(0xff, far, 7, 6), 0x77);
    assert_true(rt_mask_among(UINT64_MAX, own, 63, 63) == UINT64_MAX >> 1);
    assert_int_equal(rt_mask_among(0xf, own, 3, 4), 0); // not enough: anywhere
    assert_int_equal(rt_mask_among(0xf, own, -1, 1), 0);
    assert_int_equal(rt_mask_among(0xf, own, 64, 1), 0);
    for (int n = 1; n < rt_cpu_count() && n < 64; n++) {
        uint64_t mask = rt_mask_without(rt_choose_cpu(), n);
        assert_int_equal(__builtin_popcountll(mask), n);
        assert_true((mask & ~rt_cpus()) == 0 && !(mask >> rt_choose_cpu() & 1));
    }
    assert_int_equal(rt_mask_without(rt_choose_cpu(), rt_cpu_count()), 0);
}

static void on_the_first_core(void **state)
{
    (void)state;
    struct facts f = {0};
    pthread_t t;

    go_on = 0;
    assert_int_equal(rt_thread_create(&t, "w", RT_CLASS_PLAIN, 0, wait_and_look, &f), 0);
    assert_int_equal(rt_keep_on_first(t, 0), 0);
    assert_int_equal(rt_keep_on_first(t, rt_cpus()), 0);
    go_on = 1;
    pthread_join(t, NULL);
    assert_int_equal(f.cpus, 1);
}

// After the stack was touched, using that much of it faults no page in.
__attribute__((noinline)) static void use_stack(size_t n)
{
    volatile unsigned char deep[64 * 1024];

    for (size_t i = 0; i < n && i < sizeof deep; i += 256)
        deep[i] = 1;
}

static void *fault_count(void *arg)
{
    struct rusage a, b;

    getrusage(RUSAGE_THREAD, &a);
    use_stack(64 * 1024);
    getrusage(RUSAGE_THREAD, &b);
    *(long *)arg = b.ru_minflt - a.ru_minflt;
    return NULL;
}

static void stack_is_there(void **state)
{
    (void)state;
    struct rt_thread_spec spec = {.name = "loop", .cls = RT_CLASS_RT, .cpu = -1};
    long faults = -1;
    pthread_t t;

    assert_int_equal(rt_thread_start(&t, &spec, fault_count, &faults, NULL), 0);
    pthread_join(t, NULL);
    assert_true(faults >= 0 && faults <= 1); // getrusage's own first call
}

// What the kernel allows a core to take to wake up, in us; -1 where it does not tell.
static int32_t wake_latency_us(void)
{
    int32_t us = -1;
    int fd = open("/dev/cpu_dma_latency", O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && read(fd, &us, sizeof us) != sizeof us)
        us = -1;
    if (fd >= 0)
        close(fd);
    return us;
}

static void cores_stay_awake(void **state)
{
    (void)state;
    int fd = rt_stay_awake();

    if (fd < 0) { // no such device, or not ours to ask: an answer, not a failure
        assert_true(fd == -ENOENT || fd == -EACCES || fd == -EPERM || fd == -EROFS);
        return;
    }
    assert_int_equal(wake_latency_us(), 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_threads),
        cmocka_unit_test(fifo_is_not_inherited),
        cmocka_unit_test(refusal_is_reported),
        cmocka_unit_test(cores),
        cmocka_unit_test(cores_for_compute_threads),
        cmocka_unit_test(on_the_first_core),
        cmocka_unit_test(stack_is_there),
        cmocka_unit_test(cores_stay_awake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
