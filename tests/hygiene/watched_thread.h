// A thread under the kernel's eyes: a seccomp filter on that thread alone lets through
// what a loop may ask for and traps everything else, and its page faults are read from
// /proc by another thread. One file of a program includes it once.
#ifndef TEST_WATCHED_THREAD_H
#define TEST_WATCHED_THREAD_H

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/unit/count_allocations.h"

// A sanitizer owns malloc and calls the kernel itself; the registers are x86-64's.
#if COUNTS_ALLOCATIONS && defined(__x86_64__)
#define CANNOT_WATCH 0
#else
#define CANNOT_WATCH 1
#endif

// ---- system calls ---------------------------------------------------------------------

static _Atomic long violations;
static _Atomic int first_violation = -1; // number of the call; -2: the filter was refused

// The kernel has not made the call; the thread goes on as if it were not there.
static void on_sigsys(int sig, siginfo_t *info, void *context)
{
    int none = -1;

    (void)sig, (void)context;
    violations++;
    atomic_compare_exchange_strong(&first_violation, &none, info->si_syscall);
#if defined(__x86_64__)
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
#endif
}

#define LOAD(field) \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_LOW(n) \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (n))
#define LOAD_HIGH(n) \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (n) + 4)
#define PASS           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define TRAP           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)
#define PASS_IF(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, 1), PASS
#define TRAP_UNLESS(value) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 1, 0), TRAP

// On the calling thread, for good. It may sleep by clock_nanosleep and write 8 bytes to
// `fd`; exit ends it, rt_sigreturn ends on_sigsys. word: a futex for the test's own sake,
// on that word alone; NULL = none. 0 or -errno.
static int watch_this_thread(int fd, const void *word)
{
    const uint64_t at =
        word != NULL ? (uint64_t)(uintptr_t)word : UINT64_MAX; // is no word
    struct sock_filter code[] = {
        LOAD(arch),
        TRAP_UNLESS(AUDIT_ARCH_X86_64),
        LOAD(nr),
        PASS_IF(SYS_clock_nanosleep),
        PASS_IF(SYS_exit),
        PASS_IF(SYS_rt_sigreturn),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 7), // to the write
        LOAD_LOW(0),
        TRAP_UNLESS(at & UINT32_MAX),
        LOAD_HIGH(0),
        TRAP_UNLESS(at >> 32),
        PASS,
        TRAP_UNLESS(SYS_write),
        LOAD_LOW(0),
        TRAP_UNLESS(fd),
        LOAD_LOW(2),
        TRAP_UNLESS(8),
        PASS,
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    struct sigaction action = {.sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO};
    sigset_t only;

    // A trap on a thread that blocks SIGSYS would kill the process.
    sigemptyset(&only);
    sigaddset(&only, SIGSYS);
    if (sigaction(SIGSYS, &action, NULL) || pthread_sigmask(SIG_UNBLOCK, &only, NULL) ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -errno;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 ? 0 : -errno;
}

// ---- page faults ----------------------------------------------------------------------

// Minor and major, or -1. By another thread: getrusage is a call of the thread itself.
static long faults_of(pid_t tid)
{
    char path[64], text[1024], *p;
    long minor, major;
    int fd;
    ssize_t n;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return -1;
    text[n] = 0;
    // After the name, which may hold anything but a ')' behind it: state and 6 numbers.
    p = strrchr(text, ')');
    if (!p ||
        sscanf(p + 2, "%*c %*d %*d %*d %*d %*d %*u %ld %*u %ld", &minor, &major) != 2)
        return -1;
    return minor + major;
}

#endif
