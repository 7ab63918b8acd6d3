// The daemon as a process in a directory of its own, with a policy of random weights.
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

#include "tests/record/rig.h"
#include "tests/unit/act_fixture.h"

#define END_S 20

// ---- policy --------------------------------------------------------------------------------------

static int write_sidecar(const char *dir, int cameras)
{
    char path[PATH_MAX];
    FILE *f;

    snprintf(path, sizeof path, "%.4000s/policy.yaml", dir);
    f = fopen(path, "w");
    if (f == NULL)
        return -errno;
    fprintf(f, "rate_hz: 25\nunits: rad\n");
    for (int k = 0; k < 2; k++) {
        fprintf(f, "%s: [", k == 0 ? "state_names" : "action_names");
        for (int j = 0; j < RIG_JOINTS; j++)
            fprintf(f, "%s%s.pos", j > 0 ? ", " : "", rig_joint[j]);
        fprintf(f, "]\n");
    }
    fprintf(f, "cameras: [");
    for (int c = 0; c < cameras; c++)
        fprintf(f, "%sobservation.images.%s", c > 0 ? ", " : "", rig_camera[c]);
    fprintf(f, "]\n");
    return fclose(f) == 0 && chmod(path, 0644) == 0 ? 0 : -errno;
}

int rig_policy(char dir[PATH_MAX], int cameras)
{
    struct act_fixture f = act_fixture_tiny();
    static char key[RIG_CAMERAS][64];
    int rc;

    f.chunk_size = f.n_action_steps = 50;
    f.action_scale = 0.0078125f; // a few milliradians: the arm stays where it is
    f.n_cameras = cameras;
    for (int c = 0; c < cameras; c++) {
        snprintf(key[c], sizeof key[c], "observation.images.%s", rig_camera[c]);
        f.camera[c] = (struct act_fixture_camera){key[c], 64, 64};
    }
    rc = act_fixture_mkdir(dir);
    rc = rc ? rc : act_fixture_write(dir, &f);
    return rc ? rc : write_sidecar(dir, cameras);
}

void rig_policy_remove(const char *dir)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%.4000s/policy.yaml", dir);
    (void)unlink(path);
    act_fixture_remove(dir);
}

// ---- configuration -------------------------------------------------------------------------------

// Budgets are wide: on a busy machine it is the recording that is looked at, not the scheduler.
static int write_config(const struct rig_daemon *d)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/rig.yaml", d->work);
    f = fopen(path, "w");
    if (f == NULL)
        return -errno;
    fprintf(f,
            "instance: rig\nruntime: %s/run\n"
            "policy: {directory: %s, threads: 1, resize: stretch}\n"
            "control: {rate_hz: %g}\n"
            "inference: {trigger: rows, every_rows: 25, max_skew_ms: 500}\n"
            "joint_state: {rate_hz: %g}\n"
            "deadlines: {wakeup_ms: 500, tick_ms: 500, chunk_latency_ms: 5000, "
            "sensor_age_ms: 5000}\n"
            "safety: {hold_ms: 5000, tick_gap_ms: 1000, max_stats_z: 1000, "
            "following_ticks: 500, max_jump: 3}\n"
            "black_box: {directory: %s/black_box}\n"
            "record:\n  mode: %s\n  directory: %s\n  keep_free_mb: 0\n%scameras:\n",
            d->work, d->policy, d->control_hz, d->joint_hz / 5, d->work, d->mode,
            d->record, d->more != NULL ? d->more : "");
    for (int c = 0; c < d->cameras; c++)
        fprintf(f, "  %s: {key: observation.images.%s, rate_hz: 6%s}\n", rig_camera[c],
                rig_camera[c], c == 0 ? ", primary: true" : "");
    fprintf(f, "joints:\n");
    for (int j = 0; j < RIG_JOINTS; j++)
        fprintf(f,
                "  %s: {state: %s.pos, action: %s.pos, position: [-3, 3], velocity: 3, "
                "acceleration: 40, following_error: 1.5}\n",
                rig_joint[j], rig_joint[j], rig_joint[j]);
    return fclose(f) == 0 && chmod(path, 0600) == 0 ? 0 : -errno;
}

// d's rates, mode and the like are the caller's to set afterwards.
int rig_daemon_new(struct rig_daemon *d, const char *build, const char *policy)
{
    char path[128];

    memset(d, 0, sizeof *d);
    d->build = build;
    d->control_hz = d->joint_hz = 200;
    d->cameras = 1;
    d->mode = "always";
    snprintf(d->policy, sizeof d->policy, "%s", policy);
    snprintf(d->work, sizeof d->work, "/tmp/actd-record-XXXXXX");
    if (mkdtemp(d->work) == NULL)
        return -errno;
    snprintf(d->record, sizeof d->record, "%s/record", d->work);
    snprintf(path, sizeof path, "%s/run", d->work);
    return mkdir(path, 0750) == 0 ? 0 : -errno;
}

void rig_daemon_free(struct rig_daemon *d)
{
    char command[128];

    if (d->pid > 0) {
        kill(d->pid, SIGKILL);
        waitpid(d->pid, NULL, 0);
    }
    snprintf(command, sizeof command, "rm -rf '%s'", d->work);
    if (strncmp(d->work, "/tmp/actd-record-", 17) == 0 && system(command) != 0)
        fprintf(stderr, "rig: %s is left over\n", d->work);
}

// ---- process -------------------------------------------------------------------------------------

int rig_daemon_start(struct rig_daemon *d)
{
    extern char **environ;
    char program[PATH_MAX], config[128], log[128], preload[PATH_MAX + 16];
    char *argv[] = {"actd", "run", "-c", config, "--arm", NULL}, *environment[300];
    posix_spawn_file_actions_t files;
    int n = 0, rc = write_config(d);

    if (rc != 0)
        return rc;
    snprintf(program, sizeof program, "%.4000s/actd", d->build);
    snprintf(config, sizeof config, "%s/rig.yaml", d->work);
    snprintf(log, sizeof log, "%s/actd.log", d->work);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", d->preload ? d->preload : "");
    for (; environ[n] != NULL && n < 290; n++)
        environment[n] = environ[n];
    if (d->preload != NULL)
        environment[n++] = preload;
    for (int i = 0; i < 4 && d->environment[i] != NULL; i++)
        environment[n++] = (char *)(uintptr_t)d->environment[i];
    environment[n] = NULL;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log,
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    rc = posix_spawn(&d->pid, program, &files, NULL, argv, environment);
    posix_spawn_file_actions_destroy(&files);
    return -rc;
}

int rig_daemon_end(struct rig_daemon *d)
{
    int status = 0;
    pid_t pid = d->pid;

    if (pid <= 0)
        return -ESRCH;
    d->pid = 0;
    kill(pid, SIGTERM);
    for (int i = 0; i < END_S * 100; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : -EPROTO;
        clock_sleep_until(clock_now_ns() + 10 * NS_PER_MS);
    }
    fprintf(stderr, "rig: the daemon does not end\n");
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return -ETIMEDOUT;
}

int rig_ctl(const struct rig_daemon *d, const char *arguments)
{
    char command[PATH_MAX + 256];
    int rc;

    snprintf(command, sizeof command,
             "ACTD_SOCKET='%s/run/control' '%.3000s/actctl' %s >>'%s/actctl.log' 2>&1",
             d->work, d->build, arguments, d->work);
    rc = system(command);
    return WIFEXITED(rc) ? WEXITSTATUS(rc) : -1;
}

static FILE *open_log(const struct rig_daemon *d, long from)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/actd.log", d->work);
    f = fopen(path, "r");
    if (f != NULL)
        (void)fseek(f, from, SEEK_SET);
    return f;
}

int rig_log_lines(const struct rig_daemon *d, const char *text,
                  void (*line)(void *arg, const char *from_text), void *arg)
{
    FILE *f = open_log(d, d->log_from);
    char whole[2048], *at;
    int n = 0;

    while (f != NULL && fgets(whole, sizeof whole, f) != NULL) {
        at = strstr(whole, text);
        n += at != NULL;
        if (at != NULL && line != NULL)
            line(arg, at);
    }
    if (f != NULL)
        fclose(f);
    return n;
}

void rig_log_forget(struct rig_daemon *d)
{
    FILE *f = open_log(d, 0);

    if (f == NULL)
        return;
    (void)fseek(f, 0, SEEK_END);
    d->log_from = ftell(f);
    fclose(f);
}

void rig_show_log(const struct rig_daemon *d)
{
    FILE *f = open_log(d, 0);
    char line[2048];

    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        fprintf(stderr, "    %s", line);
    if (f != NULL)
        fclose(f);
}

static ns_t cpu_of(const char *path)
{
    char line[1024], *at;
    unsigned long user, system;
    FILE *f = fopen(path, "r");
    ns_t out = -1;

    if (f != NULL && fgets(line, sizeof line, f) != NULL &&
        (at = strrchr(line, ')')) != NULL &&
        sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
               &system) == 2)
        out = (ns_t)(user + system) * (NS_PER_S / sysconf(_SC_CLK_TCK));
    if (f != NULL)
        fclose(f);
    return out;
}

static bool is_called(const char *task, const char *name)
{
    char path[PATH_MAX], line[64] = "";
    FILE *f;

    snprintf(path, sizeof path, "%.4000s/comm", task);
    f = fopen(path, "r");
    if (f != NULL && fgets(line, sizeof line, f) != NULL)
        line[strcspn(line, "\n")] = 0;
    if (f != NULL)
        fclose(f);
    return strcmp(line, name) == 0;
}

ns_t rig_thread_cpu(const struct rig_daemon *d, const char *name)
{
    char tasks[64], task[400];
    struct dirent *e;
    ns_t out = -1;
    DIR *dir;

    snprintf(tasks, sizeof tasks, "/proc/%d/task", (int)d->pid);
    dir = opendir(tasks);
    while (dir != NULL && out < 0 && (e = readdir(dir)) != NULL) {
        snprintf(task, sizeof task, "%s/%s", tasks, e->d_name);
        if (e->d_name[0] == '.' || !is_called(task, name))
            continue;
        snprintf(task, sizeof task, "%s/%s/stat", tasks, e->d_name);
        out = cpu_of(task);
    }
    if (dir != NULL)
        closedir(dir);
    return out;
}
