#include "daemon/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int under_journal;
static _Atomic unsigned lost; // lines since the last one that got out
static void (*_Atomic also)(void *arg, enum log_level level, const char *text);
static void *_Atomic also_arg;

// The variable is inherited by everything a desktop starts: only if it names our very stderr
// (device:inode) is the journal on the other side.
void log_init(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    unsigned long long device, inode;
    under_journal = stream && fstat(STDERR_FILENO, &st) == 0 &&
                    sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
                    device == (unsigned long long)st.st_dev &&
                    inode == (unsigned long long)st.st_ino;
}

// One write of less than PIPE_BUF, and only where it can not wait: a pipe that nobody empties or
// a terminal stopped with Ctrl-S must not keep the thread that answers SIGTERM.
static bool put(const char *line)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

    return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) &&
           write(STDERR_FILENO, line, strlen(line)) > 0;
}

static void stamp(char *out, size_t size, enum log_level level)
{
    const char *word = level == LOG_ERROR  ? "error: "
                       : level == LOG_WARN ? "warning: "
                                           : "";
    char clock[16] = "";
    time_t now = time(NULL);
    struct tm tm;

    if (under_journal) {
        snprintf(out, size, "<%d>", (int)level);
        return;
    }
    if (localtime_r(&now, &tm))
        strftime(clock, sizeof clock, "%H:%M:%S ", &tm);
    snprintf(out, size, "%s%s", clock, word);
}

void log_line(enum log_level level, const char *format, ...)
{
    char text[1024], before[32], line[1200];
    void (*fn)(void *arg, enum log_level level, const char *text);
    unsigned missing;
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    if ((fn = atomic_load(&also)) != NULL)
        fn(atomic_load(&also_arg), level, text);
    stamp(before, sizeof before, level);
    missing = atomic_exchange(&lost, 0);
    if (missing > 0)
        snprintf(line, sizeof line, "%s%s (%u lines before this one were lost)\n", before,
                 text, missing);
    else
        snprintf(line, sizeof line, "%s%s\n", before, text);
    if (!put(line))
        atomic_fetch_add(&lost, missing + 1);
}

void log_also(void (*fn)(void *arg, enum log_level level, const char *text), void *arg)
{
    atomic_store(&also_arg, arg);
    atomic_store(&also, fn);
}
