// replay_publish: the command. See replay_publish_run.c for how it is done.
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/replay.h"
#include "daemon/replay_publish_impl.h"

static volatile sig_atomic_t end_asked;

struct arguments {
    const char *config, *runtime;
    struct publish_options opt;
};

static int usage(FILE *f, int status)
{
    fputs(
        "usage: actd replay publish LOG... [options]\n"
        "\n"
        "Sends the joint states and frames of a recording once more over ZeroMQ, at their\n"
        "times and byte for byte but for their stamps, which are moved on to now, to whoever\n"
        "listens on the endpoints of the configuration: a live daemon (start it first, without\n"
        "--arm) or anything else. What that daemon commands goes nowhere unless a robot's\n"
        "driver listens to it.\n"
        "\n"
        "  -c, --config FILE   endpoints of this robot.yaml; default: the recorded one's\n"
        "      --runtime DIR   ipc sockets in this directory instead\n"
        "      --speed X       X times as fast (0.01 ... 100)\n"
        "      --loop          again and again, until Ctrl-C\n"
        "      --keep-stamps   leave the messages' stamps as they were; a live daemon then\n"
        "                      takes them for old. Default: moved on to now\n"
        "      --wait SECONDS  for listeners on every endpoint, before it begins (5)\n"
        "  -h, --help          this text\n"
        "\n"
        "exit status: 0 all was sent, or Ctrl-C, 64 usage, 65 LOG is no recording or has\n"
        "nothing to send, 66 LOG cannot be read, 69 an endpoint cannot be used, 78 there is\n"
        "no configuration, or it was refused\n",
        f);
    return status;
}

static bool number(const char *text, double least, double most, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return *text && !*end && *out >= least && *out <= most;
}

// 0, or 1 + exit status.
static int parse(int argc, char **argv, struct arguments *a)
{
    static const struct option longs[] = {
        {"config", 1, NULL, 'c'},      {"runtime", 1, NULL, 'r'},
        {"speed", 1, NULL, 's'},       {"loop", 0, NULL, 'l'},
        {"keep-stamps", 0, NULL, 'k'}, {"wait", 1, NULL, 'w'},
        {"help", 0, NULL, 'h'},        {0}};
    *a = (struct arguments){.opt = {.speed = 1, .wait_s = 5, .ended = &end_asked}};
    optind = 0;
    for (int c; (c = getopt_long(argc, argv, "c:h", longs, NULL)) != -1;) {
        if (c == 'h')
            return 1 + usage(stdout, EX_OK);
        if (c == 'c')
            a->config = optarg;
        else if (c == 'r')
            a->runtime = optarg;
        else if (c == 'l')
            a->opt.loop = true;
        else if (c == 'k')
            a->opt.keep_stamps = true;
        else if (c == 's' && !number(optarg, 0.01, 100, &a->opt.speed))
            return 1 + (fprintf(stderr, "replay publish: --speed wants 0.01 ... 100\n"),
                        EX_USAGE);
        else if (c == 'w' && !number(optarg, 0, 3600, &a->opt.wait_s))
            return 1 +
                   (fprintf(stderr, "replay publish: --wait wants 0 ... 3600 seconds\n"),
                    EX_USAGE);
        else if (c != 's' && c != 'w')
            return 1 + usage(stderr, EX_USAGE);
    }
    return optind < argc ? 0 : 1 + usage(stderr, EX_USAGE);
}

// ---- endpoints -------------------------------------------------------------------------------

// ipc://RUNTIME/x becomes ipc://DIR/x. False: too long.
static bool move_endpoint(char endpoint[CONFIG_PATH], const char *from, const char *to)
{
    char made[CONFIG_PATH];
    size_t n = strlen(from);
    if (strncmp(endpoint, "ipc://", 6) != 0 || strncmp(endpoint + 6, from, n) != 0 ||
        endpoint[6 + n] != '/')
        return true;
    if (snprintf(made, sizeof made, "ipc://%s%s", to, endpoint + 6 + n) >= CONFIG_PATH)
        return false;
    memcpy(endpoint, made, sizeof made);
    return true;
}

static int move_endpoints(struct config *cfg, const char *runtime,
                          struct config_error *err)
{
    bool fits = move_endpoint(cfg->joint_state.endpoint, cfg->runtime, runtime);
    for (int i = 0; i < cfg->n_cameras; i++)
        fits = fits && move_endpoint(cfg->camera[i].endpoint, cfg->runtime, runtime);
    if (!fits)
        snprintf(err->text, sizeof err->text,
                 "--runtime %.200s: too long; use a shorter one", runtime);
    return fits ? 0 : -EINVAL;
}

static int find_config(struct logbook *book, const struct arguments *a,
                       struct config *cfg, struct config_error *err)
{
    const char *text = logbook_fact(book, "config"),
               *file = logbook_fact(book, "config_file");
    int rc;
    if (a->config) {
        rc = config_load(cfg, a->config, err);
    } else if (text) {
        rc = config_parse(cfg, file ? file : "robot.yaml", text, strlen(text), err);
    } else {
        snprintf(err->text, sizeof err->text,
                 "%.400s holds no configuration: give the robot's with -c robot.yaml",
                 logbook_path(book, 0));
        rc = -EINVAL;
    }
    return rc == 0 && a->runtime ? move_endpoints(cfg, a->runtime, err) : rc;
}

// ---- the command -----------------------------------------------------------------------------

static void on_signal(int signal_number)
{
    (void)signal_number;
    end_asked = 1;
}

static void say_result(const struct publish_result *r)
{
    struct histogram_summary s = hist_summary(&r->lateness);
    printf(
        "%llu joint states, %llu frames, %.1f MB sent; %llu later than %d ms; half within "
        "%.3f ms of their time, 99 %% within %.3f ms, worst %.3f ms\n",
        (unsigned long long)r->joints, (unsigned long long)r->frames,
        (double)r->bytes / 1e6, (unsigned long long)r->late,
        (int)(PUBLISH_LATE_NS / NS_PER_MS), (double)s.p50_ns / 1e6,
        (double)s.p99_ns / 1e6, (double)s.max_ns / 1e6);
    if (s.p99_ns > 5 * PUBLISH_LATE_NS) // a daemon calls the streams stale
        printf(
            "this PC is busy: as root `chrt -f 10 actd replay publish ...` keeps time\n");
    if (r->listening < r->streams)
        printf(
            "only %d of %d endpoints had a listener when it began: is the daemon running "
            "with this configuration?\n",
            r->listening, r->streams);
    if (r->damaged > 0)
        printf("%llu damaged places of the recording were passed over\n",
               (unsigned long long)r->damaged);
}

static int publish(struct logbook *book, const struct arguments *a)
{
    struct config *cfg = malloc(sizeof *cfg);
    struct publish_result *result = malloc(sizeof *result);
    struct config_error err = {""};
    const struct sigaction act = {.sa_handler = on_signal};
    int status = EX_OSERR, rc = cfg && result ? find_config(book, a, cfg, &err) : -ENOMEM;
    if (rc == 0) {
        sigaction(SIGINT, &act, NULL);
        sigaction(SIGTERM, &act, NULL);
        rc = publish_run(book, cfg, &a->opt, result, &err);
        status = rc == 0 ? EX_OK : rc == -ENODATA ? EX_DATAERR : EX_UNAVAILABLE;
    } else if (rc != -ENOMEM) {
        status = EX_CONFIG;
    }
    if (rc == 0)
        say_result(result);
    else
        fprintf(stderr, "actd replay publish: %s\n",
                *err.text ? err.text : strerror(-rc));
    free(cfg);
    free(result);
    return status;
}

int replay_publish_main(int argc, char **argv)
{
    struct arguments a;
    struct mcap_error err = {""};
    struct logbook *book = NULL;
    int rc = parse(argc, argv, &a);
    if (rc)
        return rc - 1;
    rc = logbook_open(&book, (const char *const *)argv + optind, argc - optind, &err);
    if (rc) {
        fprintf(stderr, "actd replay publish: %s\n", err.text);
        return rc == -EINVAL || rc == -EFBIG ? EX_DATAERR : EX_NOINPUT;
    }
    int status = publish(book, &a);
    logbook_close(book);
    return status;
}
