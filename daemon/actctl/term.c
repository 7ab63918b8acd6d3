// term: see the header.
#include "daemon/actctl/term.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

// The other screen, no cursor, lines do not wrap at the edge; and back.
#define ENTER "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
#define LEAVE "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"

static struct termios before, raw;
static volatile sig_atomic_t lent, resumed;

static void say(const char *s)
{
    // Nothing can be done about a terminal that does not take it.
    if (write(STDOUT_FILENO, s, strlen(s)) < 0)
        return;
}

// Both are made of calls that a signal's handler may make.
static void give_back(void)
{
    int error = errno;

    if (lent) {
        lent = 0;
        say(LEAVE);
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    }
    errno = error;
}

static void lend(void)
{
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    say(ENTER);
    lent = 1;
}

// SA_RESETHAND: raised again, the signal does what it does to a program without a
// handler, and whoever waits for this process sees the signal as the cause.
static void on_deadly(int signal_number)
{
    give_back();
    raise(signal_number);
}

static void on_suspend(int signal_number)
{
    (void)signal_number;
    give_back();
    raise(SIGSTOP);
    lend(); // continued
    resumed = 1;
}

static void on_size(int signal_number)
{
    (void)signal_number; // it has interrupted poll, that is all it is for
}

static void handle(int signal_number, void (*handler)(int), int flags)
{
    struct sigaction a = {.sa_handler = handler, .sa_flags = flags};

    sigemptyset(&a.sa_mask);
    sigaction(signal_number, &a, NULL);
}

int term_start(void)
{
    static const int deadly[] = {SIGINT,  SIGTERM, SIGHUP, SIGQUIT, SIGSEGV,
                                 SIGABRT, SIGBUS,  SIGFPE, SIGILL,  SIGPIPE};

    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return -errno;
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); // ISIG stays: Ctrl-C is a signal
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++)
        handle(deadly[i], on_deadly, (int)SA_RESETHAND);
    handle(SIGTSTP, on_suspend, 0);
    handle(SIGWINCH, on_size, 0);
    lend();
    return 0;
}

void term_end(void)
{
    give_back();
    handle(SIGTSTP, SIG_DFL, 0);
}

static int env_size(const char *name, int otherwise)
{
    const char *s = getenv(name);
    long v = s ? strtol(s, NULL, 10) : 0;

    return v > 0 && v < 10000 ? (int)v : otherwise;
}

void term_size(int *rows, int *columns)
{
    struct winsize w = {0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0)
        w = (struct winsize){0};
    *rows = w.ws_row ? w.ws_row : env_size("LINES", 24);
    *columns = w.ws_col ? w.ws_col : env_size("COLUMNS", 80);
}

int term_key(int ms)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    unsigned char key;
    int n = poll(&p, 1, ms);

    if (resumed) {
        resumed = 0;
        return 0;
    }
    if (n <= 0)
        return 0;
    if (!(p.revents & POLLIN))
        return -1;
    return read(STDIN_FILENO, &key, 1) == 1 ? key : -1;
}

int term_write(const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(STDOUT_FILENO, data, size);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
    }
    return 0;
}
