// actd-demo: the whole thing at once. Starts the daemon and the simulated robot as two
// processes that know each other only through the wire, listens to what both publish, prints
// one line a second, and judges the run at its end.
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>
#include <fcntl.h>
#include <zmq.h>

#include "actd/v1/sim_status.pb-c.h"
#include "actd/v1/status.pb-c.h"
#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/endpoint.h"
#include "daemon/ladder.h"

#define MESSAGE_MAX (64 * 1024)

struct options {
    const char *config, *output;
    int episodes;
    unsigned seed;
    double need; // share of episodes that must succeed
};

struct demo {
    struct options opt;
    struct config cfg;
    char bin[PATH_MAX];
    pid_t daemon, sim;
    bool daemon_ended;
    int sim_status;
    void *context, *daemon_sub, *sim_sub;
    Actd__V1__Status *status;               // newest
    Actd__V1__SimStatus *truth;             // newest
    uint64_t first_commands, last_commands; // published as of first_ns, last_ns
    ns_t first_ns, last_ns;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int s)
{
    interrupted = s;
}

static const char help[] =
    "usage: actd-demo [options]\n"
    "\n"
    "Runs the daemon and the simulated robot against each other until all episodes of "
    "the task\n"
    "(bring the tip to the red cube) are over, prints a line a second and a summary.\n"
    "\n"
    "  -c, --config FILE    robot configuration            (config/reach.yaml)\n"
    "  -n, --episodes N     episodes to run                (10)\n"
    "  -s, --seed S         where the cubes lie            (1000: never used in "
    "training)\n"
    "  -o, --output DIR     logs and episode.png           (build/demo)\n"
    "      --need SHARE     share that must succeed        (0.9)\n"
    "  -h, --help           this text\n"
    "\n"
    "exit status: 0 enough episodes succeeded, 1 too few, 69 something did not start,\n"
    "130 interrupted\n";

static int parse(struct options *o, int argc, char **argv)
{
    static const struct option longs[] = {{"config", 1, NULL, 'c'},
                                          {"episodes", 1, NULL, 'n'},
                                          {"seed", 1, NULL, 's'},
                                          {"output", 1, NULL, 'o'},
                                          {"need", 1, NULL, 'N'},
                                          {"help", 0, NULL, 'h'},
                                          {0}};
    *o = (struct options){"config/reach.yaml", "build/demo", 10, 1000, 0.9};
    for (int c; (c = getopt_long(argc, argv, "c:n:s:o:h", longs, NULL)) != -1;) {
        switch (c) {
        case 'c':
            o->config = optarg;
            break;
        case 'n':
            o->episodes = atoi(optarg);
            break;
        case 's':
            o->seed = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'o':
            o->output = optarg;
            break;
        case 'N':
            o->need = atof(optarg);
            break;
        case 'h':
            fputs(help, stdout);
            exit(0);
        default:
            fputs(help, stderr);
            return -EINVAL;
        }
    }
    if (optind != argc || o->episodes < 1 || o->need < 0 || o->need > 1) {
        fputs(help, stderr);
        return -EINVAL;
    }
    return 0;
}

// Starts bin/argv[0] with its output in DIR/log. The child dies with us.
static pid_t start(const struct demo *d, char *const argv[], const char *log)
{
    char path[PATH_MAX + 32], file[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", d->bin, argv[0]);
    snprintf(file, sizeof file, "%s/%s", d->opt.output, log);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd >= 0) {
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0); // Ctrl-C reaches us; we end them in order
    execv(path, argv);
    fprintf(stderr, "cannot run %s: %s\n", path, strerror(errno));
    _exit(127);
}

static int start_both(struct demo *d)
{
    char episodes[16], seed[16], sheet[PATH_MAX];
    snprintf(episodes, sizeof episodes, "%d", d->opt.episodes);
    snprintf(seed, sizeof seed, "%u", d->opt.seed);
    snprintf(sheet, sizeof sheet, "%s/episode.png", d->opt.output);
    char config[PATH_MAX], rate[32];
    snprintf(config, sizeof config, "%s", d->opt.config);
    snprintf(rate, sizeof rate, "%g", d->cfg.control.rate_hz);
    char full[PATH_MAX];
    if (realpath(d->opt.output, full)) // black boxes belong to the rest of the output
        setenv("XDG_STATE_HOME", full, 1);
    char *daemon[] = {"actd", "run", "-c", config, "--arm", NULL};
    char *sim[] = {"actd-sim", "--runtime",    d->cfg.runtime, "--episodes",
                   episodes,   "--seed",       seed,           "--sheet",
                   sheet,      "--control-hz", rate,           NULL};
    d->daemon = start(d, daemon, "actd.log");
    if (d->daemon < 0)
        return -errno;
    d->sim = start(d, sim, "sim.log");
    return d->sim < 0 ? -errno : 0;
}

static void *subscribe(struct demo *d, const char *endpoint)
{
    void *s = zmq_socket(d->context, ZMQ_SUB);
    int linger = 0, hwm = 64;
    int64_t max = MESSAGE_MAX;
    if (!s)
        return NULL;
    zmq_setsockopt(s, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(s, ZMQ_RCVHWM, &hwm, sizeof hwm);
    zmq_setsockopt(s, ZMQ_MAXMSGSIZE, &max, sizeof max);
    zmq_setsockopt(s, ZMQ_SUBSCRIBE, "", 0);
    zmq_connect(s, endpoint); // the peer may come later
    return s;
}

static int connect_both(struct demo *d)
{
    char endpoint[CONFIG_PATH + 32];
    snprintf(endpoint, sizeof endpoint, "ipc://%s/sim.status", d->cfg.runtime);
    d->context = zmq_ctx_new();
    if (!d->context)
        return -ENOMEM;
    d->daemon_sub = subscribe(d, d->cfg.status.endpoint);
    d->sim_sub = subscribe(d, endpoint);
    return d->daemon_sub && d->sim_sub ? 0 : -ENOMEM;
}

static void take_status(struct demo *d)
{
    static uint8_t buf[MESSAGE_MAX];
    int n;
    while ((n = zmq_recv(d->daemon_sub, buf, sizeof buf, ZMQ_DONTWAIT)) >= 0) {
        Actd__V1__Status *s =
            n <= (int)sizeof buf ? actd__v1__status__unpack(NULL, (size_t)n, buf) : NULL;
        if (!s)
            continue;
        if (d->status)
            actd__v1__status__free_unpacked(d->status, NULL);
        d->status = s;
        d->last_ns = clock_now_ns();
        d->last_commands = s->commands;
        if (!d->first_ns && s->commands > 0) { // none before the robot has spoken
            d->first_ns = d->last_ns;
            d->first_commands = s->commands;
        }
    }
}

static void take_truth(struct demo *d)
{
    static uint8_t buf[MESSAGE_MAX];
    int n;
    while ((n = zmq_recv(d->sim_sub, buf, sizeof buf, ZMQ_DONTWAIT)) >= 0) {
        Actd__V1__SimStatus *s = n <= (int)sizeof buf
                                     ? actd__v1__sim_status__unpack(NULL, (size_t)n, buf)
                                     : NULL;
        if (!s)
            continue;
        if (d->truth)
            actd__v1__sim_status__free_unpacked(d->truth, NULL);
        d->truth = s;
    }
}

// "RUNNING", "STOPPED (JOINTS_STALE)".
static const char *mode_text(const Actd__V1__Status *s)
{
    static char text[64];
    const char *mode = ladder_state_name((enum ladder_state)s->mode);
    const char *reason = ladder_reason_name((enum ladder_reason)s->reason);
    if (s->reason == 0)
        return mode;
    snprintf(text, sizeof text, "%s (%s)", mode, reason);
    return text;
}

static bool latched(const struct demo *d)
{
    return d->status && (d->status->mode == ACTD__V1__MODE__MODE_STOPPED ||
                         d->status->mode == ACTD__V1__MODE__MODE_ESTOP);
}

static void print_line(const struct demo *d)
{
    const Actd__V1__Status *s = d->status;
    const Actd__V1__SimStatus *t = d->truth;
    if (!s || !t) {
        printf("waiting for %s%s%s\n", s ? "" : "the daemon", s || t ? "" : " and ",
               t ? "" : "the simulator");
        fflush(stdout);
        return;
    }
    unsigned now = t->episode < t->episodes_total ? t->episode + 1 : t->episodes_total;
    printf("episode %2u/%u  %2u reached  goal %5.1f cm | %-8s %6.1f Hz  chunks %4.1f/s, "
           "latency p50 %5.1f p99 %5.1f ms | late p99 %5.2f max %5.2f ms\n",
           now, t->episodes_total, t->succeeded, 100 * t->goal_distance_m, mode_text(s),
           s->achieved_hz, s->inference_hz,
           s->chunk_latency ? (double)s->chunk_latency->p50_ns / 1e6 : 0,
           s->chunk_latency ? (double)s->chunk_latency->p99_ns / 1e6 : 0,
           s->second_lateness ? (double)s->second_lateness->p99_ns / 1e6 : 0,
           s->second_lateness ? (double)s->second_lateness->max_ns / 1e6 : 0);
    fflush(stdout);
}

// The last lines of a log, for somebody who should not have to look for it.
static void print_tail(const struct demo *d, const char *log)
{
    char file[PATH_MAX], line[1024], last[5][1024] = {""};
    int n = 0;
    snprintf(file, sizeof file, "%s/%s", d->opt.output, log);
    FILE *f = fopen(file, "re");
    if (!f)
        return;
    for (; fgets(line, sizeof line, f); n++)
        snprintf(last[n % 5], sizeof last[0], "%s", line);
    for (int i = n > 5 ? n - 5 : 0; i < n; i++)
        fprintf(stderr, "  %s", last[i % 5]);
    fclose(f);
}

// True while the run goes on.
static bool alive(struct demo *d)
{
    int st;
    if (waitpid(d->daemon, &st, WNOHANG) == d->daemon) {
        d->daemon_ended = true;
        fprintf(stderr, "the daemon ended early (status %d): see %s/actd.log\n",
                WIFEXITED(st) ? WEXITSTATUS(st) : -WTERMSIG(st), d->opt.output);
        print_tail(d, "actd.log");
        return false;
    }
    if (waitpid(d->sim, &d->sim_status, WNOHANG) == d->sim) {
        d->sim = 0;
        if (WIFEXITED(d->sim_status) && WEXITSTATUS(d->sim_status) == 0)
            return false;
        fprintf(stderr, "the simulator ended early: see %s/sim.log\n", d->opt.output);
        print_tail(d, "sim.log");
        return false;
    }
    return true;
}

static void watch(struct demo *d)
{
    ns_t begin = clock_now_ns(), next = begin + NS_PER_S;
    ns_t limit = begin + (ns_t)(60 + 10 * d->opt.episodes) * NS_PER_S;
    while (!interrupted && alive(d)) {
        zmq_pollitem_t items[] = {{.socket = d->daemon_sub, .events = ZMQ_POLLIN},
                                  {.socket = d->sim_sub, .events = ZMQ_POLLIN}};
        zmq_poll(items, 2, 50);
        take_status(d);
        take_truth(d);
        if (clock_now_ns() >= next) {
            print_line(d);
            next += NS_PER_S;
        }
        if (latched(d)) {
            fprintf(stderr, "the arm is %s and stays so: see %s/actd.log\n",
                    mode_text(d->status), d->opt.output);
            break;
        }
        if (clock_now_ns() > limit) {
            fprintf(stderr, "gave up: the episodes are not over after %lld s\n",
                    (long long)((limit - begin) / NS_PER_S));
            break;
        }
    }
}

static void end(pid_t pid)
{
    if (pid <= 0)
        return;
    kill(pid, SIGTERM);
    for (int i = 0; i < 500; i++) { // the daemon ramps to rest first
        if (waitpid(pid, NULL, WNOHANG) == pid)
            return;
        usleep(10000);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_distances(const Actd__V1__SimStatus *t)
{
    size_t n = t->n_final_distance_m;
    if (n == 0)
        return;
    qsort(t->final_distance_m, n, sizeof(double), compare);
    printf("  distance to goal    median %.1f mm, worst %.1f mm\n",
           1e3 * t->final_distance_m[n / 2], 1e3 * t->final_distance_m[n - 1]);
}

static void print_counters(const char *label, Actd__V1__Counter **c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        printf("  %-19s %s: %llu\n", label, c[i]->name, (unsigned long long)c[i]->value);
        label = "";
    }
}

static int summary(struct demo *d)
{
    const Actd__V1__Status *s = d->status;
    const Actd__V1__SimStatus *t = d->truth;
    if (!s || !t) {
        fprintf(stderr, "nothing was received: see %s/actd.log and sim.log\n",
                d->opt.output);
        return EX_UNAVAILABLE;
    }
    double seconds = (double)(d->last_ns - d->first_ns) / 1e9;
    unsigned over = t->succeeded + t->failed;
    bool good = over == t->episodes_total && t->episodes_total > 0 &&
                t->succeeded >= d->opt.need * t->episodes_total;
    printf("\nsummary\n  episodes            %u of %u succeeded%s\n", t->succeeded,
           t->episodes_total, good ? "" : "  -- NOT ENOUGH");
    print_distances(t);
    printf("  control rate        %.2f Hz achieved of %.0f asked, %llu ticks skipped\n",
           seconds > 0 ? (double)(d->last_commands - d->first_commands) / seconds : 0,
           s->control_hz, (unsigned long long)s->skipped_ticks);
    printf("  lateness            p50 %.0f us, p99 %.0f us, worst %.2f ms (%s)\n",
           (double)s->lateness->p50_ns / 1e3, (double)s->lateness->p99_ns / 1e3,
           (double)s->lateness->max_ns / 1e6, s->scheduling);
    printf("  chunks used         %llu, latency p50 %.1f ms, p99 %.1f ms\n",
           (unsigned long long)s->chunks_used, (double)s->chunk_latency->p50_ns / 1e6,
           (double)s->chunk_latency->p99_ns / 1e6);
    printf("  largest seam        %.4f rad (jump of the target when a chunk comes into "
           "view)\n",
           s->seam_max_rad);
    if (s->n_limited == 0)
        printf("  commands limited    none\n");
    print_counters("commands limited", s->limited, s->n_limited);
    print_counters("dropped", s->drops, s->n_drops);
    if (t->ttl_stops)
        printf("  stops by time to live  %llu\n", (unsigned long long)t->ttl_stops);
    printf("  first episode       %s/episode.png\n  logs                %s/actd.log, "
           "%s/sim.log\n",
           d->opt.output, d->opt.output, d->opt.output);
    return good ? 0 : 1;
}

static int prepare(struct demo *d)
{
    struct config_error err;
    char self[PATH_MAX], dir[PATH_MAX];
    int lock;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return EX_OSERR;
    self[n] = '\0';
    snprintf(d->bin, sizeof d->bin, "%s", dirname(self));
    snprintf(dir, sizeof dir, "%s", d->opt.output);
    for (char *p = dir + 1; *p; p++) { // mkdir -p
        if (*p != '/')
            continue;
        *p = '\0';
        mkdir(dir, 0755);
        *p = '/';
    }
    if (mkdir(dir, 0755) && errno != EEXIST) {
        fprintf(stderr, "cannot make %s: %s\n", dir, strerror(errno));
        return EX_CANTCREAT;
    }
    if (config_load(&d->cfg, d->opt.config, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return EX_CONFIG;
    }
    // A simulator of ours must not feed somebody else's daemon: is there one?
    if (endpoint_lock(d->cfg.runtime, &lock, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return EX_UNAVAILABLE;
    }
    close(lock);
    return 0;
}

int main(int argc, char **argv)
{
    static struct demo d;
    if (parse(&d.opt, argc, argv))
        return EX_USAGE;
    int r = prepare(&d);
    if (r)
        return r;
    struct sigaction sa = {.sa_handler = on_signal};
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    if (connect_both(&d) || start_both(&d)) {
        fprintf(stderr, "cannot start: %s\n", strerror(errno));
        r = EX_UNAVAILABLE;
    } else {
        watch(&d);
    }
    if (!d.daemon_ended)
        end(d.daemon); // first, while the arm is there to be brought to rest
    end(d.sim);
    take_status(&d);
    take_truth(&d);
    if (r == 0 && interrupted)
        fprintf(stderr, "interrupted\n");
    if (d.daemon_ended) // what came in by then may be another daemon's
        r = EX_UNAVAILABLE;
    if (r == 0)
        r = summary(&d);
    if (d.status)
        actd__v1__status__free_unpacked(d.status, NULL);
    if (d.truth)
        actd__v1__sim_status__free_unpacked(d.truth, NULL);
    zmq_close(d.daemon_sub);
    zmq_close(d.sim_sub);
    zmq_ctx_destroy(d.context);
    return interrupted ? 130 : r;
}
