// One round of each side of the comparison: cyclictest as a process, and the daemon's own loop
// thread with its board, a robot that follows and chunks four deep. Both run at the same priority
// on the same core, and both give every single lateness in nanoseconds.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/rt.h"
#include "tests/bench/bench_loop.h"
#include "tests/hygiene/full_loop.h"

// ---- cyclictest ------------------------------------------------------------------------------

// Lines "thread: cycle: lateness".
static void read_samples(FILE *f, struct samples *out)
{
    char line[256];
    long thread, cycle;
    long long late;

    while (fgets(line, sizeof line, f))
        if (sscanf(line, "%ld: %ld: %lld", &thread, &cycle, &late) == 3)
            samples_add(out, late);
}

static int spawn(char *const argv[], int fd, pid_t *pid)
{
    extern char **environ;
    posix_spawn_file_actions_t files;
    int rc = posix_spawn_file_actions_init(&files);

    if (rc)
        return -rc;
    posix_spawn_file_actions_adddup2(&files, fd, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    rc = posix_spawnp(pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return -rc;
}

static int run_cyclictest(char *const argv[], struct samples *out)
{
    FILE *f = tmpfile();
    pid_t pid;
    int status, rc;

    if (f == NULL)
        return -errno;
    rc = spawn(argv, fileno(f), &pid);
    if (rc == 0) {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        rewind(f);
        read_samples(f, out);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            rc = WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -ENOENT : -EIO;
    }
    fclose(f);
    return rc;
}

int late_cyclictest(const struct bench_place *at, double hz, double seconds,
                    struct samples *out)
{
    char cpu[16], priority[16], interval[16], loops[16];
    char *argv[] = {"cyclictest", "-v",
                    "-N",         "-m",
                    "-t1",        "-a",
                    cpu,          "-p",
                    priority,     "-i",
                    interval,     "-l",
                    loops,        at->asleep ? "--laptop" : "--latency=0",
                    NULL};

    snprintf(cpu, sizeof cpu, "%d", at->cpu < 0 ? 0 : at->cpu);
    snprintf(priority, sizeof priority, "%d", at->priority);
    snprintf(interval, sizeof interval, "%.0f", 1e6 / hz);
    snprintf(loops, sizeof loops, "%.0f", hz * seconds);
    return run_cyclictest(argv, out);
}

// ---- our loop --------------------------------------------------------------------------------

struct robot {
    struct loop_world world;
    struct samples *out;
    ns_t from_ns; // what is made earlier is not counted
    _Atomic bool stop;
};

static void note(const struct command *c, void *arg)
{
    struct robot *r = arg;

    if (c->made_ns >= r->from_ns)
        samples_add(r->out, c->lateness_ns);
}

// io: in the place of the bus, woken by each command as it is.
static void *follow(void *arg)
{
    struct robot *r = arg;
    struct loop_world *w = &r->world;
    struct pollfd wake = {w->board.command_fd, POLLIN, 0};

    while (!atomic_load(&r->stop)) {
        struct loop_report report;
        uint64_t n;

        if (poll(&wake, 1, 20) > 0 && read(wake.fd, &n, sizeof n) < 0)
            break;
        world_obey(w, note, r);
        world_feed(w, clock_now_ns());
        if (slot_read(&w->board.report, &report) != 0)
            world_arm(w, report.mode, clock_now_ns());
    }
    return NULL;
}

static int drive(struct robot *r, const struct bench_place *at, double seconds,
                 char granted[64])
{
    const struct loop_thread_config cfg = {.priority = at->priority, .cpu = at->cpu};
    struct loop_thread *thread;
    pthread_t robot;
    int rc = rt_thread_create(&robot, "robot", RT_CLASS_IO, at->priority - 1, follow, r);

    if (rc)
        return rc;
    rc = loop_thread_start(&thread, r->world.loop, &cfg, granted);
    if (rc == 0) {
        clock_sleep_until(r->from_ns + (ns_t)(seconds * (double)NS_PER_S));
        loop_thread_stop(thread);
    }
    atomic_store(&r->stop, true);
    pthread_join(robot, NULL);
    return rc;
}

int late_loop(const struct bench_place *at, double hz, double seconds,
              struct samples *out, char granted[64])
{
    struct world_spec spec = {
        .control_hz = hz, .joints = 14, .mode = "ensemble", .lively = 0.02};
    struct robot *r = calloc(1, sizeof *r);
    int rc;

    if (r == NULL)
        return -ENOMEM;
    r->out = out;
    r->from_ns = clock_now_ns() + 200 * NS_PER_MS;
    rc = world_open(&r->world, &spec);
    if (rc)
        fprintf(stderr, "bench_loop: %s\n", r->world.err.text);
    else
        rc = drive(r, at, seconds, granted);
    if (rc == 0 && loop_last(r->world.loop)->mode != LADDER_RUNNING && seconds >= 2)
        fprintf(stderr, "bench_loop: the loop ended in %s (%s), not in RUNNING\n",
                ladder_state_name(loop_last(r->world.loop)->mode),
                ladder_reason_name(loop_last(r->world.loop)->reason));
    world_close(&r->world);
    free(r);
    return rc;
}
