// policy_infer and policy_see ask the kernel for nothing. In a process of its own a policy is loaded,
// then a filter falls over all its threads that lets nothing through but its end; with more than one
// thread also the futex by which the pool's threads wait for each other once they have spun for 50
// us. Refusals are inferred as well. (That nothing is allocated: test_policy_noalloc.c.)
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policy/policy.h"
#include "tests/unit/act_fixture.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif
#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0
#endif

#define RUNS 150

static enum precision precision = PRECISION_FLOAT32;

// How the process ended; above 0: the number of the first system call that was not let through.
enum { FINE = 0, NO_FILTER = -1, WRONG = -2, UNLOADED = -3, IN_POOL = -4, FAULTS = -5 };

static volatile int *verdict; // shared with the process that is watched
static char message[300];

static void on_sigsys(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    *verdict = info->si_syscall;
    syscall(SYS_exit_group, 0);
}

#define LOAD(field) \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define PASS           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define TRAP           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)
#define PASS_IF(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1), PASS
#define TRAP_UNLESS(value) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 1, 0), TRAP

// Over all threads of this process, for good.
static int watch(bool futex)
{
    struct sock_filter code[] = {
        LOAD(arch),
        TRAP_UNLESS(ARCH),
        LOAD(nr),
        PASS_IF(SYS_exit_group),
        TRAP_UNLESS(futex ? SYS_futex : SYS_exit_group),
        LOAD(args[1]), // the low half, of a little-endian machine
        PASS_IF(FUTEX_WAIT_PRIVATE),
        PASS_IF(FUTEX_WAKE_PRIVATE),
        TRAP,
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    struct sigaction action = {.sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO};

    // The pool's threads block all signals: they die of this one, and so does the process.
    if (sigaction(SIGSYS, &action, NULL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -errno;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                        &program);
}

// Every fifth with a NaN, every seventh with a wrong size, every third seen before.
static bool infer(struct policy *p, int i)
{
    static uint8_t rgb[32 * 32 * 3];
    static float actions[64], raw[64];
    bool nan = i % 5 == 4, wrong = policy_describe(p)->n_cameras && i % 7 == 6;
    float state[8] = {0.25f, -0.5f, 0, nan ? (float)NAN : 0.125f * (float)(i % 16)};
    struct policy_image image = {.rgb = rgb,
                                 .width = wrong ? 30 : 32,
                                 .height = 32,
                                 .stride = 96,
                                 .number = (uint64_t)(i / 2)};
    struct policy_observation obs = {state, state, &image};

    rgb[i] = (uint8_t)i;
    if (policy_describe(p)->n_cameras && i % 3 == 0 &&
        policy_see(p, 0, &image) != (wrong ? -EINVAL : 0))
        return false;
    return policy_infer(p, &obs, actions, i & 1 ? raw : NULL) == (nan     ? -EDOM
                                                                  : wrong ? -EINVAL
                                                                          : 0);
}

// Minor ones, too: a page that comes when it is first touched costs as much as a system call.
static long page_faults(void)
{
    struct rusage r;

    getrusage(RUSAGE_SELF, &r);
    return r.ru_minflt + r.ru_majflt;
}

static int be_watched(struct policy *p, int threads, void (*also)(void))
{
    long before = page_faults();

    for (int i = 0; i < RUNS; i++)
        if (!infer(p, i))
            return WRONG;
    if (page_faults() - before > RUNS / 10) // not one each; the kernel has its own ideas
        return FAULTS;
    if (watch(threads > 1) != 0)
        return NO_FILTER;
    if (also)
        also();
    for (int i = 0; i < RUNS; i++)
        if (!infer(p, i))
            return WRONG;
    return FINE;
}

static int verdict_of(const struct act_fixture *f, int threads, void (*also)(void))
{
    struct policy_options opt = {.threads = threads, .precision = precision};
    struct policy_error err = {{0}};
    struct policy *p;
    char dir[256];
    int status;

    verdict = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(verdict, MAP_FAILED);
    assert_int_equal(act_fixture_mkdir(dir), 0);
    assert_int_equal(act_fixture_write(dir, f), 0);
    *verdict = IN_POOL;
    pid_t child = fork();
    if (child == 0) {
        *verdict = policy_load(&p, dir, &opt, &err) ? UNLOADED : IN_POOL;
        if (*verdict != UNLOADED)
            *verdict = be_watched(p, threads, also);
        syscall(SYS_exit_group, 0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    act_fixture_remove(dir);
    snprintf(message, sizeof message, "%s, %d threads: %d%s", precision_name(precision),
             threads, *verdict,
             *verdict == IN_POOL && WIFSIGNALED(status) ? ", killed" : "");
    int v = *verdict;
    munmap((void *)(uintptr_t)verdict, 4096);
    return v;
}

static bool skipped(void)
{
    if (SANITIZED || !ARCH)
        print_message("skipped: a sanitizer calls the kernel itself\n");
    return SANITIZED || !ARCH;
}

static void check(const struct act_fixture *f, int threads)
{
    int v = verdict_of(f, threads, NULL);

    if (v == NO_FILTER) {
        print_message("skipped: this kernel takes no filter\n");
        skip();
    }
    if (v != FINE)
        fail_msg(
            "%s (above 0: that system call was made; -2: a wrong answer; -4: a call by one "
            "of the pool's threads; -5: page faults)",
            message);
}

static void test_with_a_camera(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    if (skipped())
        skip();
    for (int threads = 1; threads <= 3; threads++)
        check(&f, threads);
}

static void test_without(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    if (skipped())
        skip();
    f.n_cameras = 0;
    f.env_dim = 3;
    f.pre_norm = f.gelu = true;
    f.n_decoder_layers = 2;
    for (int threads = 1; threads <= 3; threads++)
        check(&f, threads);
}

// Whose weights are made floats on the way, in room on a thread's stack, or whose rows become bytes.
static void test_other_precisions(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    if (skipped())
        skip();
    f.n_encoder_layers = 2;
    for (int p = PRECISION_FLOAT32 + 1; p < PRECISIONS; p++) {
        precision = (enum precision)p;
        check(&f, 2);
    }
    precision = PRECISION_FLOAT32;
}

static void ask(void)
{
    (void)syscall(SYS_getppid);
}

static void wait_on_a_word(void)
{
    static uint32_t word = 1;
    (void)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static void wait_for_others(void)
{
    static uint32_t word = 1;
    (void)syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

// What is forbidden is seen.
static void test_the_filter(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    if (skipped())
        skip();
    f.n_cameras = 0;
    f.env_dim = 3;
    int v = verdict_of(&f, 1, ask);
    if (v == NO_FILTER)
        skip();
    assert_int_equal(v, SYS_getppid);
    assert_int_equal(verdict_of(&f, 2, ask), SYS_getppid);
    assert_int_equal(verdict_of(&f, 1, wait_on_a_word), SYS_futex);
    assert_int_equal(verdict_of(&f, 2, wait_on_a_word), FINE);
    assert_int_equal(verdict_of(&f, 2, wait_for_others), SYS_futex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_filter),
        cmocka_unit_test(test_with_a_camera),
        cmocka_unit_test(test_without),
        cmocka_unit_test(test_other_precisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
