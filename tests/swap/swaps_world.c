// The daemon and the arm as processes, in a directory of their own.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/swap/swaps.h"

#define START_S 60
#define END_S   10

// Streams are declared slower than they come and budgets are wide, so that on a busy machine it
// is the swap that decides what happens to the arm, not the scheduler. The worker infers
// without a pause.
static const char head[] =
    "instance: swaps\n"
    "runtime: %s/run\n"
    "policy: {directory: %s/%s, threads: %d}\n"
    "control: {rate_hz: 200}\n"
    "inference: {trigger: continuous, max_skew_ms: 500}\n"
    "chunks: {mode: crossfade, fade_ms: 200, interpolation: cubic}\n"
    "joint_state: {rate_hz: 5}\n"
    "deadlines: {wakeup_ms: 900, tick_ms: 900, chunk_latency_ms: %d, sensor_age_ms: 5000}\n"
    "safety: {hold_ms: 5000, tick_gap_ms: 1000, max_stats_z: 1000, following_ticks: 500, "
    "max_jump: 3}\n"
    "black_box: {directory: %s/black_box}\n"
    "swap: {directory: %s, max_difference: %g}\n"
    "cameras:\n"
    "  front: {key: observation.images.front, rate_hz: 10, primary: true}\n"
    "%s"
    "joints:\n";
static const char wrist[] = "  wrist: {key: observation.images.wrist, rate_hz: 10}\n";

static int write_config(const struct swaps_world *w, const char *name)
{
    bool full = w->picture > 0;
    FILE *f = fopen(w->config, "w");

    if (!f)
        return -errno;
    fprintf(f, head, w->work, w->policies, name, full ? 2 : 1, full ? 20000 : 5000,
            w->work, w->policies, full ? 10.0 : 0.3, full ? "" : wrist);
    for (int j = 0; j < SWAPS_JOINTS; j++)
        fprintf(f,
                "  %s: {state: %s.pos, action: %s.pos, position: [%g, %g], velocity: %g, "
                "acceleration: %g, following_error: 1.5}\n",
                swaps_joint[j], swaps_joint[j], swaps_joint[j], swaps_min[j],
                swaps_max[j], SWAPS_VELOCITY, SWAPS_ACCELERATION);
    return fclose(f) == 0 && chmod(w->config, 0600) == 0 ? 0 : -errno;
}

int swaps_world_new(struct swaps_world *w, const char *build, const char *output)
{
    char absolute[PATH_MAX], run[PATH_MAX];

    memset(w, 0, sizeof *w);
    w->build = w->sim_build = build;
    (void)mkdir(output, 0755);
    if (!realpath(output, absolute))
        return -errno;
    snprintf(w->work, sizeof w->work, "/tmp/actd-swaps-XXXXXX");
    if (!mkdtemp(w->work))
        return -errno;
    snprintf(w->policies, sizeof w->policies, "%.100s/policies", w->work);
    snprintf(w->socket, sizeof w->socket, "%.100s/run/control", w->work);
    snprintf(w->config, sizeof w->config, "%.100s/swaps.yaml", w->work);
    snprintf(w->count, sizeof w->count, "%.100s/count", w->work);
    snprintf(w->log, sizeof w->log, "%.4000s/actd.log", absolute);
    snprintf(run, sizeof run, "%.100s/run", w->work);
    (void)unlink(w->log);
    return mkdir(w->policies, 0755) == 0 && mkdir(run, 0750) == 0 ? 0 : -errno;
}

void swaps_world_free(struct swaps_world *w)
{
    char command[PATH_MAX + 16];

    (void)swaps_world_stop(w);
    snprintf(command, sizeof command, "rm -rf '%s'", w->work);
    if (strncmp(w->work, "/tmp/actd-swaps-", 16) == 0 && system(command) != 0)
        fprintf(stderr, "swaps: %s is left over\n", w->work);
}

// ---- processes -------------------------------------------------------------------------------

static int spawn(const char *build, pid_t *pid, char **argv, char **environment,
                 const char *log)
{
    posix_spawn_file_actions_t files;
    char program[PATH_MAX];
    int rc;

    snprintf(program, sizeof program, "%.4000s/%s", build, argv[0]);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log,
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    rc = -posix_spawn(pid, program, &files, NULL, argv, environment);
    posix_spawn_file_actions_destroy(&files);
    return rc;
}

// Ours, with the counting library in front.
static int start_daemon(struct swaps_world *w)
{
    extern char **environ;
    char preload[PATH_MAX + 32], count[PATH_MAX + 32], *environment[256];
    char *argv[] = {"actd", "run", "-c", w->config, NULL};
    int n = 0;

    snprintf(preload, sizeof preload, "LD_PRELOAD=%s/swaps-count.so", w->build);
    snprintf(count, sizeof count, "SWAPS_COUNT=%s", w->count);
    for (int i = 0; environ[i] && n < 250; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
            environment[n++] = environ[i];
    if (access(preload + 11, R_OK) == 0) { // not with sanitizers, which own malloc
        environment[n++] = preload;
        environment[n++] = count;
    }
    environment[n] = NULL;
    (void)unlink(w->count);
    return spawn(w->build, &w->daemon, argv, environment, w->log);
}

static int start_arm(struct swaps_world *w)
{
    extern char **environ;
    char run[PATH_MAX], size[32], log[PATH_MAX];
    char *argv[] = {"actd-sim",     "--runtime", run,        "--episodes", "0",
                    "--control-hz", "200",       "--camera", size,         NULL};

    snprintf(run, sizeof run, "%.100s/run", w->work);
    snprintf(log, sizeof log, "%.100s/sim.log", w->work);
    snprintf(size, sizeof size, "front=%dx%d", w->picture ? w->picture : 96,
             w->picture ? w->picture : 96);
    return spawn(w->sim_build, &w->sim, argv, environ, log);
}

static void look_at_counts(struct swaps_world *w)
{
    int fd = open(w->count, O_RDONLY | O_CLOEXEC);
    void *p = fd < 0 ? MAP_FAILED
                     : mmap(NULL, sizeof *w->counted, PROT_READ, MAP_SHARED, fd, 0);

    w->counted = p == MAP_FAILED ? NULL : p;
    if (fd >= 0)
        close(fd);
}

// ---- arming ----------------------------------------------------------------------------------

static int mode_now(struct swaps_client *c)
{
    Actd__V1__ControlReply *m =
        swaps_do(c, &(struct swaps_ask){.verb = ACTD__V1__VERB__VERB_STATUS});
    int mode = m && m->status ? (int)m->status->mode : -1;

    swaps_free_reply(m);
    return mode;
}

int swaps_world_arm(struct swaps_client *c)
{
    ns_t until = clock_now_ns() + START_S * NS_PER_S;
    int mode = 0;

    for (; clock_now_ns() < until; clock_sleep_until(clock_now_ns() + 50 * NS_PER_MS)) {
        mode = mode_now(c);
        if (mode == ACTD__V1__MODE__MODE_RUNNING)
            return 0;
        if (mode == ACTD__V1__MODE__MODE_READY)
            swaps_free_reply(
                swaps_do(c, &(struct swaps_ask){.verb = ACTD__V1__VERB__VERB_ARM}));
        if (mode == ACTD__V1__MODE__MODE_STOPPED || mode == ACTD__V1__MODE__MODE_ESTOP)
            swaps_free_reply(
                swaps_do(c, &(struct swaps_ask){.verb = ACTD__V1__VERB__VERB_RESET}));
    }
    fprintf(stderr, "swaps: it does not get to RUNNING, it is in mode %d\n", mode);
    return -ETIMEDOUT;
}

int swaps_world_start(struct swaps_world *w, const char *name)
{
    struct swaps_client c = {.fd = -1};
    ns_t until = clock_now_ns() + START_S * NS_PER_S;
    int rc = write_config(w, name);

    rc = rc ? rc : start_daemon(w);
    rc = rc ? rc : start_arm(w);
    if (rc != 0)
        return rc;
    while (swaps_connect(&c, w->socket) != 0) {
        if (clock_now_ns() > until || waitpid(w->daemon, NULL, WNOHANG) == w->daemon) {
            fprintf(stderr, "swaps: nobody answers at %s; see %s\n", w->socket, w->log);
            return -ECONNREFUSED;
        }
        clock_sleep_until(clock_now_ns() + 50 * NS_PER_MS);
    }
    rc = swaps_world_arm(&c);
    swaps_disconnect(&c);
    look_at_counts(w);
    return rc;
}

int swaps_world_wait(struct swaps_world *w, int seconds)
{
    ns_t until = clock_now_ns() + seconds * NS_PER_S;
    int status = 0;

    while (waitpid(w->daemon, &status, WNOHANG) == 0) {
        if (clock_now_ns() > until) {
            fprintf(stderr, "swaps: the daemon does not end\n");
            kill(w->daemon, SIGKILL);
            waitpid(w->daemon, &status, 0);
            w->daemon = 0;
            return -ETIMEDOUT;
        }
        clock_sleep_until(clock_now_ns() + 10 * NS_PER_MS);
    }
    w->daemon = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int swaps_world_stop(struct swaps_world *w)
{
    int rc = 0;

    if (w->daemon > 0) {
        kill(w->daemon, SIGTERM);
        rc = swaps_world_wait(w, END_S);
    }
    if (w->sim > 0) {
        kill(w->sim, SIGTERM);
        waitpid(w->sim, NULL, 0);
        w->sim = 0;
    }
    if (w->counted)
        munmap((void *)(uintptr_t)w->counted, sizeof *w->counted);
    w->counted = NULL;
    return rc;
}

// ---- what it holds ---------------------------------------------------------------------------

int swaps_world_sample(const struct swaps_world *w, long *rss_kib, int *descriptors)
{
    char path[64];
    long size, resident = 0;
    FILE *f;
    DIR *d;

    snprintf(path, sizeof path, "/proc/%d/statm", (int)w->daemon);
    f = fopen(path, "re");
    if (!f || fscanf(f, "%ld %ld", &size, &resident) != 2)
        resident = -1;
    if (f)
        fclose(f);
    *rss_kib = resident * (sysconf(_SC_PAGESIZE) / 1024);
    snprintf(path, sizeof path, "/proc/%d/fd", (int)w->daemon);
    d = opendir(path);
    *descriptors = -2; // . and ..
    while (d && readdir(d))
        ++*descriptors;
    if (d)
        closedir(d);
    return d && resident > 0 ? 0 : -ESRCH;
}

uint64_t swaps_world_counted(const struct swaps_world *w, const char *name)
{
    uint64_t n = 0;

    for (int i = 0; w->counted && i < COUNT_THREADS; i++)
        if (w->counted->row[i].state == 2 &&
            strncmp(w->counted->row[i].name, name, strlen(name)) == 0)
            for (int k = 0; k < COUNT_KINDS; k++)
                n += w->counted->row[i].count[k];
    return n;
}
