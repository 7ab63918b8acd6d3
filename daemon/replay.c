// The command: which of its uses, and what the shell is told.
#include "daemon/replay.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/out_path.h"
#include "daemon/replay_print.h"
#include "daemon/replay_whatif.h"
#include "daemon/report.h"

#define EXIT_DIFFERS     1
#define EXIT_INTERRUPTED 130

static const char replay_help[] =
    "usage: actd replay USE ...\n"
    "\n"
    "A recording once more, with the log as source and its times as clock.\n"
    "\n"
    "  verify LOG...    the same inputs must give the same chunks and commands, byte for byte\n"
    "  what-if LOG...   the same observations through another policy or configuration\n"
    "  eval LOG...      a policy's actions against recorded ones, by joint and horizon\n"
    "  publish LOG...   the sensor streams over ZeroMQ again, at their times\n"
    "  report LOG...    the run on one page of HTML\n"
    "\n"
    "`actd replay USE --help` says more.\n";

static const char verify_help[] =
    "usage: actd replay verify LOG... [options]\n"
    "\n"
    "Runs what was recorded through the same code: every message through intake, every\n"
    "observation through its policy, every tick through the loop, every command through the\n"
    "outbox. What comes out is held against what was recorded, and the first difference shown.\n"
    "LOG is a file, several of one run, or a directory: then its newest run.\n"
    "\n"
    "      --no-policy        take the chunks as recorded; needs no checkpoint and no frames\n"
    "      --policy-root DIR  look for policies in DIR, by name, not where they were then\n"
    "      --strict           chunks of a policy that is not there, or is another one, differ\n"
    "      --tolerance RAD    compare within RAD; 0: bit by bit. Default: bit by bit with the\n"
    "                         program and kernels that recorded it, else 1e-5\n"
    "  -o, --output FILE      write what came out as a log of its own\n"
    "      --report FILE      write a page of HTML about the run and this verdict\n"
    "      --json             say it in JSON\n"
    "  -q, --quiet            no progress\n"
    "  -h, --help             this text\n"
    "\n"
    "exit status: 0 equal, 1 something differs, 64 usage, 65 LOG is no recording of actd, is\n"
    "damaged, or has nothing to compare, 66 LOG is not there, 73 FILE cannot be written, 78 the\n"
    "configuration was refused, 130 interrupted\n";

static const char whatif_help[] =
    "usage: actd replay what-if LOG... --policy DIR | --config FILE [options]\n"
    "\n"
    "What another checkpoint, or other limits and another blending, would have made of the same\n"
    "observations: by joint, how far targets and commands differ, how often limits acted, how\n"
    "large the seams were. Open loop: the measured pose stays as it was recorded.\n"
    "\n"
    "      --policy DIR    this checkpoint in place of those that were recorded\n"
    "  -c, --config FILE   this robot.yaml in place of the recorded one; joints and cameras must\n"
    "                      be the same\n"
    "      --no-policy     with --config: take the chunks as recorded\n"
    "      --policy-root DIR, -o, --output FILE, --json, -q, --quiet: as `actd replay verify`\n"
    "  -h, --help          this text\n"
    "\n"
    "exit status: 0 done, 64 usage, 65 LOG is no recording of actd or has nothing to compare,\n"
    "66 LOG is not there, 73 FILE cannot be written, 78 configuration or policy was refused,\n"
    "130 interrupted\n";

// ---- going on --------------------------------------------------------------------------------

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
    (void)sig;
    interrupted = 1;
}

static void take_signals(void)
{
    struct sigaction a = {.sa_handler = on_signal};

    sigemptyset(&a.sa_mask);
    a.sa_flags = (int)SA_RESETHAND; // a second one ends it at once
    (void)sigaction(SIGINT, &a, NULL);
    (void)sigaction(SIGTERM, &a, NULL);
}

struct telling { // replay_options.arg
    struct whatif *whatif;
    bool shows;
    ns_t began_ns, shown_ns;
};

static bool going(void *arg, ns_t covered_ns)
{
    struct telling *t = arg;
    ns_t now = clock_now_ns();

    if (t->shows && now - t->shown_ns > 200 * NS_PER_MS) {
        double took_s = (double)(now - t->began_ns) / 1e9,
               covered_s = (double)covered_ns / 1e9;

        fprintf(stderr, "\r%.1f s, %.0f times as fast as it was \033[K", covered_s,
                covered_s / took_s);
        t->shown_ns = now;
    }
    return !interrupted;
}

static void on_tick(void *arg, const struct tick_record *then,
                    const struct tick_record *now)
{
    struct telling *t = arg;

    if (t->whatif)
        whatif_tick(t->whatif, then, now);
}

// ---- arguments -------------------------------------------------------------------------------

struct arguments {
    struct replay_options opt;
    const char *report;
    bool json, what_if;
    const char *const *path;
    int n;
};

enum { NO_POLICY = 256, ROOT, STRICT, TOLERANCE, REPORT, JSON, POLICY };

static const struct option longs[] = {{"no-policy", 0, NULL, NO_POLICY},
                                      {"policy-root", 1, NULL, ROOT},
                                      {"strict", 0, NULL, STRICT},
                                      {"tolerance", 1, NULL, TOLERANCE},
                                      {"output", 1, NULL, 'o'},
                                      {"report", 1, NULL, REPORT},
                                      {"json", 0, NULL, JSON},
                                      {"policy", 1, NULL, POLICY},
                                      {"config", 1, NULL, 'c'},
                                      {"quiet", 0, NULL, 'q'},
                                      {"help", 0, NULL, 'h'},
                                      {0}};

static int usage(const char *text)
{
    fputs(text, stderr);
    return EX_USAGE;
}

static bool read_tolerance(const char *text, double *out)
{
    char *end;
    double v = strtod(text, &end);

    if (*end || end == text || !(v >= 0 && v < 10))
        return false;
    *out = v > 0 ? v : -1;
    return true;
}

// 0, or what the shell is told: < 0 for success.
static int take(struct arguments *a, int c)
{
    bool verify_only = c == STRICT || c == TOLERANCE || c == REPORT;
    bool what_if_only = c == POLICY || c == 'c';

    if ((verify_only && a->what_if) || (what_if_only && !a->what_if))
        return usage(a->what_if ? whatif_help : verify_help);
    switch (c) {
    case NO_POLICY:
        a->opt.no_policy = true;
        return 0;
    case ROOT:
        a->opt.policy_root = optarg;
        return 0;
    case STRICT:
        a->opt.strict = true;
        return 0;
    case TOLERANCE:
        if (read_tolerance(optarg, &a->opt.tolerance_rad))
            return 0;
        return usage("replay verify: --tolerance wants a number of rad, 0 for bits\n");
    case 'o':
        a->opt.output = optarg;
        return 0;
    case REPORT:
        a->report = optarg;
        return 0;
    case JSON:
        a->json = true;
        return 0;
    case POLICY:
        a->opt.policy_directory = optarg;
        return 0;
    case 'c':
        a->opt.config_file = optarg;
        return 0;
    case 'q':
        a->opt.quiet = true;
        return 0;
    case 'h':
        fputs(a->what_if ? whatif_help : verify_help, stdout);
        return -1;
    default:
        return usage(a->what_if ? whatif_help : verify_help);
    }
}

static int parse(struct arguments *a, int argc, char **argv)
{
    int status;

    for (int c; (c = getopt_long(argc, argv, "o:c:qh", longs, NULL)) != -1;)
        if ((status = take(a, c)) != 0)
            return status;
    if (optind == argc)
        return usage(a->what_if ? whatif_help : verify_help);
    if (a->what_if && !a->opt.policy_directory && !a->opt.config_file)
        return usage("replay what-if: give --policy DIR or --config FILE, or both\n");
    if (a->opt.policy_directory && a->opt.no_policy)
        return usage("replay what-if: --policy and --no-policy exclude each other\n");
    a->path = (const char *const *)&argv[optind];
    a->n = argc - optind;
    return 0;
}

// ---- saying it -------------------------------------------------------------------------------

static int names_of(struct logbook *book, char *buf, size_t size,
                    const char *out[ACTD_MAX_JOINTS])
{
    const char *list = logbook_fact(book, "joints");
    int n = 0;

    snprintf(buf, size, "%s", list ? list : "");
    for (char *p = strtok(buf, "\n"); p && n < ACTD_MAX_JOINTS; p = strtok(NULL, "\n"))
        out[n++] = p;
    for (int i = n; i < ACTD_MAX_JOINTS; i++)
        out[i] = "?";
    return n;
}

static int print_json(json_t *j)
{
    int rc = j ? json_dumpf(j, stdout, JSON_INDENT(2)) : -1;

    putchar('\n');
    json_decref(j);
    return rc == 0 ? 0 : EX_OSERR;
}

static int tell(struct logbook *book, const struct arguments *a,
                const struct replay_result *r, const struct whatif *w)
{
    char buf[ACTD_MAX_JOINTS * (CONFIG_NAME + 1)];
    const char *name[ACTD_MAX_JOINTS];
    json_t *j;

    names_of(book, buf, sizeof buf, name);
    if (!a->json) {
        replay_print(book, &a->opt, r, stdout);
        if (a->what_if)
            whatif_print(w, name, stdout);
        return 0;
    }
    j = replay_json(book, r);
    if (j && a->what_if)
        (void)json_object_set_new(j, "what_if", whatif_json(w, name));
    return print_json(j);
}

static int tell_report(struct logbook *book, const char *path,
                       const struct replay_result *r)
{
    struct mcap_error e;

    if (report_write(book, path, r, &e) == 0)
        return 0;
    fprintf(stderr, "actd replay: %s\n", e.text);
    return EX_CANTCREAT;
}

// ---- one run ---------------------------------------------------------------------------------

static int status_of(struct logbook *book, const struct arguments *a, int rc)
{
    if (rc == -ECANCELED)
        return EXIT_INTERRUPTED;
    if (rc == -ENOMEM)
        return EX_OSERR;
    if (!logbook_ours(book))
        return EX_DATAERR;
    if (a->opt.output && (rc == -ENOSPC || rc == -EACCES || rc == -ENOENT || rc == -EIO ||
                          rc == -EROFS || rc == -EISDIR || rc == -ENOTDIR))
        return EX_CANTCREAT;
    return EX_CONFIG;
}

static int verdict(const struct arguments *a, const struct replay_result *r)
{
    if (r->ticks == 0)
        return EX_DATAERR;
    if (a->what_if)
        return 0;
    if (r->first.any)
        return EXIT_DIFFERS;
    return r->unreadable > 0 ? EX_DATAERR : 0;
}

static int replay_book(struct logbook *book, struct arguments *a, struct whatif *w)
{
    struct telling t = {.whatif = a->what_if ? w : NULL,
                        .shows = !a->opt.quiet && isatty(STDERR_FILENO),
                        .began_ns = clock_now_ns()};
    struct replay_result r;
    struct config_error err;
    int rc, status;

    a->opt.arg = &t;
    a->opt.going = going;
    a->opt.tick = on_tick;
    take_signals();
    rc = replay_run(book, &a->opt, &r, &err);
    if (t.shows && t.shown_ns > 0)
        fputs("\r\033[K", stderr);
    if (rc && rc != -ECANCELED) {
        fprintf(stderr, "actd replay: %s\n", err.text);
        return status_of(book, a, rc);
    }
    if (rc == -ECANCELED)
        fputs("actd replay: interrupted: this is of the beginning alone\n", stderr);
    status = tell(book, a, &r, w);
    if (status == 0 && a->report && rc == 0)
        status = tell_report(book, a->report, &r);
    if (status)
        return status;
    return rc ? status_of(book, a, rc) : verdict(a, &r);
}

static int check_outputs(const struct logbook *book, const struct arguments *a)
{
    struct mcap_error e;
    struct stat st;

    if (a->opt.output && a->report && strcmp(a->opt.output, a->report) == 0)
        return usage("replay verify: --output and --report want two files\n");
    if (a->opt.output && stat(a->opt.output, &st) == 0 && !S_ISREG(st.st_mode)) {
        fprintf(stderr, "actd replay: %s is no regular file: name another with -o\n",
                a->opt.output);
        return EX_CANTCREAT;
    }
    if (!out_path_spares(a->opt.output, book, &e) &&
        !out_path_spares(a->report, book, &e))
        return 0;
    fprintf(stderr, "actd replay: %s\n", e.text);
    return EX_CANTCREAT;
}

static int run_main(int argc, char **argv, bool what_if)
{
    struct arguments a = {.what_if = what_if};
    struct logbook *book = NULL;
    struct mcap_error e;
    struct whatif *w;
    int status = parse(&a, argc, argv), rc;

    if (status)
        return status < 0 ? 0 : status;
    rc = logbook_open(&book, a.path, a.n, &e);
    if (rc) {
        fprintf(stderr, "actd replay: %s\n", e.text);
        return rc == -ENOENT || rc == -EACCES || rc == -ENOTDIR ? EX_NOINPUT : EX_DATAERR;
    }
    w = calloc(1, sizeof *w);
    status = w ? check_outputs(book, &a) : EX_OSERR;
    status = status ? status : replay_book(book, &a, w);
    free(w);
    logbook_close(book);
    return status;
}

static int verify_main(int argc, char **argv)
{
    return run_main(argc, argv, false);
}

static int whatif_main(int argc, char **argv)
{
    return run_main(argc, argv, true);
}

static const struct {
    const char *name;
    int (*main)(int argc, char **argv);
} uses[] = {{"verify", verify_main},
            {"what-if", whatif_main},
            {"eval", replay_eval_main},
            {"publish", replay_publish_main},
            {"report", replay_report_main}};

int replay_main(int argc, char **argv)
{
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(replay_help, stdout);
        return 0;
    }
    for (size_t i = 0; argc >= 2 && i < sizeof uses / sizeof *uses; i++)
        if (strcmp(argv[1], uses[i].name) == 0)
            return uses[i].main(argc - 1, argv + 1);
    if (argc >= 2)
        fprintf(stderr, "actd replay: no use '%s'\n\n", argv[1]);
    return usage(replay_help);
}
