// log_tool: see the header.
#include "daemon/log_tool.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/log_tool_impl.h"
#include "daemon/mcap_recover_impl.h"

static const char help[] =
    "usage: actd log COMMAND LOG [options]\n"
    "\n"
    "LOG is a recording: a .mcap file, a .mcap.part that was never finished, several files of\n"
    "one run, or the directory that they are in (of which the newest run counts). `actctl\n"
    "status` and `actd check` say where they are.\n"
    "\n"
    "  info LOG                     how long, what is in it, of which run, what is damaged\n"
    "  recover FILE                 save what can be saved of a damaged or unfinished file\n"
    "  cut LOG --from S --to S -o F one part of it as a file that can be replayed\n"
    "  cat LOG                      its messages, one line of JSON each\n"
    "\n"
    "`actd log COMMAND --help` says more.\n";

int log_main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*main)(int argc, char **argv);
    } commands[] = {
        {"info", log_info}, {"recover", log_recover}, {"cut", log_cut}, {"cat", log_cat}};

    if (argc < 2)
        return log_usage(help);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        fputs(help, stdout);
        return 0;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].main(argc - 1, argv + 1);
    fprintf(stderr, "actd log: no command '%s'\n\n", argv[1]);
    return log_usage(help);
}

int log_usage(const char *text)
{
    fputs(text, stderr);
    return EX_USAGE;
}

int log_status(int rc, const struct mcap_error *err)
{
    fprintf(stderr, "%s\n", err->text[0] ? err->text : strerror(-rc));
    switch (rc) {
    case -EINTR:
        return 130;
    case -ENOMEM:
        return EX_OSERR;
    case -EINVAL:
    case -EFBIG:
    case -EBADMSG:
    case -ENODATA:
        return EX_DATAERR;
    case -ENOENT:
    case -EACCES:
    case -ENOTDIR:
    case -ELOOP:
    case -ENAMETOOLONG:
    case -ENXIO: // a socket
        return EX_NOINPUT;
    default:
        return EX_IOERR;
    }
}

bool log_seconds(const char *text, double *out)
{
    char *end;

    errno = 0;
    *out = strtod(text, &end);
    return end != text && *end == 0 && errno == 0 && isfinite(*out) && fabs(*out) < 1e9;
}

// While a file is being written it is removed first: the writer looks.
static void on_signal(int signal)
{
    mcap_out_stop = 1;
    if (!mcap_out_active)
        _exit(128 + signal);
}

void log_catch_signals(void)
{
    struct sigaction a = {.sa_handler = on_signal};

    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGHUP, &a, NULL);
}

uint64_t log_book_start_ns(const struct logbook *b)
{
    // Files are in the order of their first messages.
    const struct mcap_reader *r = logbook_reader(b, 0);

    return r ? mcap_start_ns(r) : 0;
}

uint64_t log_book_end_ns(const struct logbook *b)
{
    uint64_t end = 0;

    for (int i = 0; i < logbook_files(b); i++)
        if (mcap_end_ns(logbook_reader(b, i)) > end)
            end = mcap_end_ns(logbook_reader(b, i));
    return end;
}

uint64_t log_at_ns(const struct logbook *b, double seconds)
{
    uint64_t start = log_book_start_ns(b);
    double ns = seconds * (double)NS_PER_S;

    if (ns <= 0)
        return start;
    return ns >= (double)(UINT64_MAX - start) / 2 ? UINT64_MAX : start + (uint64_t)ns;
}

void log_utc(uint64_t ns, char out[40])
{
    time_t s = (time_t)(ns / (uint64_t)NS_PER_S);
    struct tm tm;
    char text[24];

    if (!gmtime_r(&s, &tm) || strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        text[0] = 0;
    snprintf(out, 40, "%s.%03u", text, (unsigned)(ns / (uint64_t)NS_PER_MS % 1000));
}

void log_size(uint64_t n, char out[24])
{
    if (n >= 10 * 1000 * 1000)
        snprintf(out, 24, "%.1f MB", (double)n / 1e6);
    else if (n >= 10000)
        snprintf(out, 24, "%.1f kB", (double)n / 1e3);
    else
        snprintf(out, 24, "%llu B", (unsigned long long)n);
}
