#include "daemon/process.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

// Full log files are no reason to let go of the arm; a broken pipe neither.
static const int ignored[] = {SIGHUP,  SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF,
                              SIGPIPE, SIGXFSZ, SIGXCPU, SIGPOLL, SIGPWR,    SIGSTKFLT};

static void ignore(void)
{
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        (void)signal(ignored[i], SIG_IGN);
    for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
        (void)signal(s, SIG_IGN);
}

int process_begin(int *signals)
{
    sigset_t set;

    *signals = -1;
    (void)umask(umask(0777) | 0027);
    (void)close_range(STDERR_FILENO + 1, ~0U, 0); // an old kernel leaves them open
    ignore();
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGQUIT);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return -errno;
    *signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return *signals < 0 ? -errno : 0;
}
