// The daemon under test: its configuration, its process, its memory and descriptors.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/soak/soak.h"

// Streams are declared slower than they come (500 and 50 Hz), so that on a busy machine it is
// the robot that decides whether the arm holds or stops, not the scheduler.
static const char head[] =
    "instance: soak\n"
    "runtime: %s\n"
    "policy: {directory: %s}\n"
    "control: {rate_hz: 500}\n"
    "inference: {trigger: rows, every_rows: 6, max_skew_ms: 200}\n"
    "chunks: {mode: crossfade, fade_ms: 200, interpolation: cubic}\n"
    "joint_state: {rate_hz: 4}\n"
    "deadlines: {wakeup_ms: 500, tick_ms: 500, chunk_latency_ms: 5000}\n"
    "safety: {hold_ms: 2000, tick_gap_ms: 1000, max_stats_z: 1000, following_ticks: 500}\n"
    "black_box: {directory: %s/black_box}\n"
    "cameras:\n"
    "  front: {key: observation.images.front, rate_hz: 5}\n"
    "  wrist: {key: observation.images.wrist, rate_hz: 5}\n"
    "joints:\n";

static int write_config(const struct soak_daemon *d, const char *output)
{
    char policy[PATH_MAX];
    FILE *f = fopen(d->config, "w");

    if (f == NULL || realpath("config/policies/reach", policy) == NULL) {
        fprintf(stderr, "soak: %s: %s; run it in the top directory\n", d->config,
                strerror(errno));
        return -EIO;
    }
    fprintf(f, head, d->runtime, policy, output);
    for (int j = 0; j < SOAK_JOINTS; j++)
        fprintf(
            f,
            "  %s: {state: %s.pos, action: %s.pos, position: [-2.8, 2.8], velocity: 3, "
            "acceleration: 40, following_error: 0.5}\n",
            soak_joint[j], soak_joint[j], soak_joint[j]);
    return fclose(f) == 0 && chmod(d->config, 0600) == 0 ? 0 : -errno;
}

int soak_daemon_prepare(struct soak_daemon *d, const char *output)
{
    char absolute[PATH_MAX];

    if (realpath(output, absolute) == NULL)
        return -errno;
    snprintf(d->runtime, sizeof d->runtime, "/tmp/actd-soak-run-XXXXXX");
    if (mkdtemp(d->runtime) == NULL)
        return -errno;
    snprintf(d->config, sizeof d->config, "%.4000s/soak.yaml", absolute);
    snprintf(d->log, sizeof d->log, "%.4000s/actd.log", absolute);
    (void)unlink(d->log);
    return write_config(d, absolute);
}

void soak_daemon_clean(struct soak_daemon *d)
{
    char command[PATH_MAX + 16];

    snprintf(command, sizeof command, "rm -rf '%s'", d->runtime);
    if (strncmp(d->runtime, "/tmp/actd-soak-run-", 19) == 0 && system(command) != 0)
        fprintf(stderr, "soak: %s is left over\n", d->runtime);
}

int soak_daemon_start(struct soak_daemon *d)
{
    extern char **environ;
    char program[PATH_MAX];
    char *argv[] = {"actd", "run", "-c", d->config, "--arm", NULL};
    posix_spawn_file_actions_t files;
    int rc;

    snprintf(program, sizeof program, "%s/actd", d->build);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, d->log,
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    rc = posix_spawn(&d->pid, program, &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (rc) {
        fprintf(stderr, "soak: %s: %s\n", program, strerror(rc));
        d->pid = 0;
    }
    return -rc;
}

bool soak_daemon_lives(struct soak_daemon *d)
{
    int status;

    if (d->pid == 0 || waitpid(d->pid, &status, WNOHANG) != d->pid)
        return d->pid != 0;
    if (WIFSIGNALED(status))
        fprintf(stderr, "soak: the daemon died of signal %d; see %s\n", WTERMSIG(status),
                d->log);
    else
        fprintf(stderr, "soak: the daemon ended by itself with %d; see %s\n",
                WEXITSTATUS(status), d->log);
    d->pid = 0;
    return false;
}

int soak_daemon_stop(struct soak_daemon *d)
{
    int status = 0;
    pid_t pid = d->pid;

    if (pid == 0)
        return 0; // that it ended has been said
    kill(pid, SIGTERM);
    for (int i = 0; i < 1000 && waitpid(pid, &status, WNOHANG) == 0; i++) {
        clock_sleep_until(clock_now_ns() + 10 * NS_PER_MS);
        if (i == 999) {
            fprintf(stderr, "soak: the daemon did not end within 10 s of SIGTERM\n");
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
        }
    }
    d->pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    fprintf(stderr, "soak: the daemon ended with status %#x; see %s\n", (unsigned)status,
            d->log);
    return -EPROTO;
}

int soak_daemon_sample(const struct soak_daemon *d, long *rss_kib, int *descriptors)
{
    char path[64];
    long pages, resident;
    FILE *f;
    DIR *dir;
    int got;

    snprintf(path, sizeof path, "/proc/%d/statm", (int)d->pid);
    f = fopen(path, "r");
    if (f == NULL)
        return -errno;
    got = fscanf(f, "%ld %ld", &pages, &resident);
    fclose(f);
    snprintf(path, sizeof path, "/proc/%d/fd", (int)d->pid);
    dir = opendir(path);
    if (got != 2 || dir == NULL)
        return -EIO;
    for (*descriptors = -2; readdir(dir) != NULL;) // "." and ".."
        ++*descriptors;
    closedir(dir);
    *rss_kib = resident * (sysconf(_SC_PAGESIZE) / 1024);
    return 0;
}
