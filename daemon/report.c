// report: see the header. First the recording is walked through once and what is to be shown is
// kept by pixel column (report_scan.c), then the page is written from top to bottom.
#include "daemon/report.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/out_path.h"
#include "daemon/report_impl.h"

static int say(struct mcap_error *err, int rc, const char *path, const char *what)
{
    snprintf(err->text, sizeof err->text, "%.150s: %s: %s", path, what, strerror(-rc));
    return rc;
}

// ---- what there is ---------------------------------------------------------------------------

static int find_range(struct report *r, struct mcap_error *err)
{
    for (int i = 0; i < logbook_files(r->book); i++) {
        struct mcap_reader *m = logbook_reader(r->book, i);
        uint64_t from = mcap_start_ns(m), to = mcap_end_ns(m);
        if (mcap_message_count(m) == 0 || to < from)
            continue;
        r->start_ns = r->start_ns == 0 || from < r->start_ns ? from : r->start_ns;
        r->end_ns = to > r->end_ns ? to : r->end_ns;
    }
    if (r->end_ns == 0) {
        snprintf(err->text, sizeof err->text,
                 "%.150s: no message in it: nothing to report; was the recording cut "
                 "short? `actd log info` says more",
                 logbook_path(r->book, 0));
        return -ENODATA;
    }
    r->seconds = fmax((double)(r->end_ns - r->start_ns) / 1e9, 1e-3) * (1 + 1e-9);
    return 0;
}

// The robot as it was configured. A recording of somebody else's has none; then limits are not
// drawn.
static void find_config(struct report *r)
{
    const char *text = logbook_fact(r->book, "config");
    const char *file = logbook_fact(r->book, "config_file");
    const char *hz = logbook_fact(r->book, "control_hz");
    if (text)
        r->configured = config_parse(&r->cfg, file ? file : "robot.yaml", text,
                                     strlen(text), &r->config_error) == 0;
    double rate = hz ? strtod(hz, NULL) : 0;
    if (!(rate > 0) && r->configured)
        rate = r->cfg.control.rate_hz;
    r->period_ns = rate > 0 && rate < 1e6 ? clock_period_ns(rate) : 0;
}

// Line i of a list, as a name; "" past its end.
static void line_of(const char *list, int i, char name[CONFIG_NAME])
{
    while (list && i-- > 0) {
        list = strchr(list, '\n');
        list = list ? list + 1 : NULL;
    }
    size_t n = list ? strcspn(list, "\n") : 0;
    snprintf(name, CONFIG_NAME, "%.*s", (int)(n < CONFIG_NAME ? n : CONFIG_NAME - 1),
             list ? list : "");
}

static int count_lines(const char *list, int most)
{
    char name[CONFIG_NAME];
    int n = 0;
    for (; n < most; n++) {
        line_of(list, n, name);
        if (!*name)
            break;
    }
    return n;
}

static int find_joints(struct report *r)
{
    const char *list = logbook_fact(r->book, "joints");
    r->joints = r->configured ? r->cfg.n_joints : count_lines(list, ACTD_MAX_JOINTS);
    r->joint = calloc((size_t)r->joints + 1, sizeof *r->joint);
    for (int i = 0; i < r->joints && r->joint; i++) {
        struct report_joint *j = &r->joint[i];
        line_of(list, i, j->name);
        j->last_commanded = NAN;
        j->known = r->configured;
        if (!r->configured)
            continue;
        memcpy(j->name, r->cfg.joint[i].name, sizeof j->name);
        j->min = r->cfg.joint[i].min;
        j->max = r->cfg.joint[i].max;
        j->velocity = r->cfg.joint[i].velocity;
    }
    return r->joint ? 0 : -ENOMEM;
}

static void find_streams(struct report *r)
{
    const char *list = logbook_fact(r->book, "cameras");
    int cameras =
        r->configured ? r->cfg.n_cameras : count_lines(list, POLICY_MAX_CAMERAS);
    r->streams = 1 + cameras;
    snprintf(r->stream[0].name, sizeof r->stream[0].name, "joint states");
    for (int i = 0; i < cameras; i++) {
        if (r->configured)
            memcpy(r->stream[i + 1].name, r->cfg.camera[i].name, CONFIG_NAME);
        else
            line_of(list, i, r->stream[i + 1].name);
    }
}

static int gather(struct report *r, struct mcap_error *err)
{
    int rc = find_range(r, err);
    if (rc)
        return rc;
    find_config(r);
    rc = find_joints(r);
    if (rc)
        return say(err, rc, logbook_path(r->book, 0), "report");
    find_streams(r);
    rc = report_scan_seats(r, err);
    rc = rc ? rc : report_scan(r, err);
    return rc || r->ticks > 0 ? rc : report_scan_plain(r, err);
}

// ---- the page --------------------------------------------------------------------------------

struct page {
    struct report *report;
    const struct replay_result *verdict;
};

static void write_page(FILE *f, void *arg)
{
    const struct page *p = arg;
    struct report *r = p->report;
    char title[200];
    const char *instance = logbook_fact(r->book, "instance");
    snprintf(title, sizeof title, "%.100s: report of a run",
             instance ? instance : "actd");
    report_head(f, title, r->seconds);
    report_top(f, r, p->verdict);
    report_story(f, r);
    report_pictures(f, r);
    report_joints(f, r);
    report_timing(f, r);
    report_losses(f, r);
    report_events(f, r); // the longest, and what the rest makes curious about
    report_facts(f, r);
    report_foot(f);
}

int report_write(struct logbook *book, const char *path,
                 const struct replay_result *verdict, struct mcap_error *err)
{
    struct report *r = calloc(1, sizeof *r);
    if (!r)
        return say(err, -ENOMEM, path, "report");
    r->book = book;
    int rc = gather(r, err);
    if (rc == 0) {
        struct page p = {r, verdict};
        rc = report_to_file(path, write_page, &p);
        if (rc)
            say(err, rc, path, "the report cannot be written");
    }
    free(r->joint);
    free(r);
    return rc;
}

// ---- the command -----------------------------------------------------------------------------

static int usage(FILE *f, int status)
{
    fputs(
        "usage: actd replay report LOG... -o FILE.html\n"
        "\n"
        "One page of a recorded run, for a colleague who was not there: what the ladder\n"
        "did and why, every joint with its limits, timing, losses, events, pictures of the\n"
        "cameras. One file that needs nothing else: send it.\n"
        "\n"
        "LOG is a recording: files of one run, or a directory: then its newest run.\n"
        "\n"
        "  -o, --output FILE   where to write it\n"
        "  -h, --help          this text\n"
        "\n"
        "`actd replay verify LOG --report FILE` writes the same with the replay's verdict.\n"
        "\n"
        "exit status: 0 written, 64 usage, 65 LOG is no recording or has nothing in it,\n"
        "66 LOG cannot be read, 73 the page cannot be written\n",
        f);
    return status;
}

static int report_status(int rc, bool opened)
{
    if (rc == 0)
        return EX_OK;
    if (opened)
        return rc == -ENODATA ? EX_DATAERR : rc == -ENOMEM ? EX_OSERR : EX_CANTCREAT;
    return rc == -EINVAL || rc == -EFBIG || rc == -ENODATA ? EX_DATAERR : EX_NOINPUT;
}

int replay_report_main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"output", 1, NULL, 'o'}, {"help", 0, NULL, 'h'}, {0}};
    const char *output = NULL;
    struct mcap_error err = {""};
    struct logbook *book = NULL;
    optind = 0;
    for (int c; (c = getopt_long(argc, argv, "o:h", longs, NULL)) != -1;) {
        if (c == 'h')
            return usage(stdout, EX_OK);
        if (c != 'o')
            return usage(stderr, EX_USAGE);
        output = optarg;
    }
    if (optind == argc || !output)
        return usage(stderr, EX_USAGE);
    int rc = logbook_open(&book, (const char *const *)argv + optind, argc - optind, &err);
    if (rc == 0)
        rc = out_path_spares(output, book, &err);
    if (rc == 0)
        rc = report_write(book, output, NULL, &err);
    if (rc)
        fprintf(stderr, "actd replay report: %s\n", err.text);
    else
        printf("%s written\n", output);
    int status = report_status(rc, book != NULL);
    logbook_close(book);
    return status;
}
