// process: in a child, since it is for a whole process.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/process.h"

// Runs `body` in a child; what it returns is the exit status.
static int in_child(int (*body)(void))
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(body());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static int survives(void)
{
    static const int all[] = {SIGHUP,  SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM,
                              SIGPROF, SIGPIPE, SIGPOLL, SIGPWR};
    int fd;

    if (process_begin(&fd) != 0)
        return 1;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        raise(all[i]);
    raise(SIGRTMIN);
    raise(SIGRTMAX);
    return 0;
}

static void what_is_no_end_is_ignored(void **state)
{
    (void)state;
    assert_int_equal(in_child(survives), 0);
}

static int reads(void)
{
    static const int all[] = {SIGTERM, SIGINT, SIGQUIT};
    struct signalfd_siginfo info;
    int fd;

    if (process_begin(&fd) != 0)
        return 1;
    for (int i = 0; i < 3; i++) {
        raise(all[i]);
        if (read(fd, &info, sizeof info) != sizeof info || (int)info.ssi_signo != all[i])
            return 2 + i;
    }
    return 0;
}

static void what_ends_it_is_read(void **state)
{
    (void)state;
    assert_int_equal(in_child(reads), 0);
}

static int keeps_crashes(void)
{
    int fd;

    if (process_begin(&fd) != 0)
        return 1;
    signal(SIGSEGV, SIG_DFL); // a sanitizer has its own
    raise(SIGSEGV);
    return 0;
}

static void a_crash_is_one(void **state)
{
    (void)state;
    assert_int_equal(in_child(keeps_crashes), 100 + SIGSEGV);
}

static int closes(void)
{
    int left = open("/dev/null", O_RDONLY), fd;

    if (left < 3 || process_begin(&fd) != 0)
        return 1;
    if (fd != left && fcntl(left, F_GETFD) != -1)
        return 2;
    return fcntl(0, F_GETFD) == -1 ? 3 : 0;
}

static void what_was_left_open_is_closed(void **state)
{
    (void)state;
    assert_int_equal(in_child(closes), 0);
}

static int mode_of(mode_t before)
{
    mode_t after;
    int fd;

    umask(before);
    if (process_begin(&fd) != 0)
        return -1;
    after = umask(0);
    return (int)after;
}

static int loose(void)
{
    return mode_of(0) == 0027 ? 0 : 1;
}

static int strict(void)
{
    return mode_of(0077) == 0077 ? 0 : 1;
}

static void files_are_for_us(void **state)
{
    (void)state;
    assert_int_equal(in_child(loose), 0);
    assert_int_equal(in_child(strict), 0); // a service manager may ask for more
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_end_is_ignored),
        cmocka_unit_test(what_ends_it_is_read),
        cmocka_unit_test(a_crash_is_one),
        cmocka_unit_test(what_was_left_open_is_closed),
        cmocka_unit_test(files_are_for_us),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
