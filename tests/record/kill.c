// The daemon is killed at random moments while it records. Each time `actd log recover` must make a
// whole file of what is left, and less than half a second may be missing at its end. Of ten, one is
// left to the next daemon in the same place, which must do the same by itself.
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/rt.h"
#include "tests/record/rig.h"

#define LOSS_NS (500 * NS_PER_MS)
#define START_S 60

struct kills {
    const char *build, *keep; // directory for the logs
    char policy[PATH_MAX];
    int n;
    uint64_t seed;
    _Atomic int next, bad, done;
    pthread_mutex_t lock; // of what follows
    FILE *list;           // path, ticks, messages, last tick: for the second reader
    ns_t worst_ns, sum_ns;
};

static uint64_t random_of(uint64_t seed)
{
    uint64_t z = seed * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// The one file in there that ends so; false = there is none.
static bool find(const char *directory, const char *end, char out[PATH_MAX])
{
    DIR *d = opendir(directory);
    struct dirent *e;
    bool found = false;

    while (d != NULL && !found && (e = readdir(d)) != NULL) {
        size_t n = strlen(e->d_name), m = strlen(end);

        found = n > m && strcmp(e->d_name + n - m, end) == 0;
        if (found)
            snprintf(out, PATH_MAX, "%.3000s/%s", directory, e->d_name);
    }
    if (d != NULL)
        closedir(d);
    return found;
}

static bool wait_for(const char *directory, const char *end, char out[PATH_MAX])
{
    for (int i = 0; i < START_S * 50; i++) {
        if (find(directory, end, out))
            return true;
        clock_sleep_until(clock_now_ns() + 20 * NS_PER_MS);
    }
    return false;
}

static int recover_by_tool(struct kills *k, const char *part, const char *to)
{
    char command[3 * PATH_MAX];
    int rc;

    snprintf(command, sizeof command,
             "'%s/actd' log recover '%s' -o '%s' >/dev/null 2>&1", k->build, part, to);
    rc = system(command);
    // 1: a torn record at the end.
    return WIFEXITED(rc) && WEXITSTATUS(rc) <= 1 ? 0 : -1;
}

static int recover_by_daemon(struct rig_daemon *d, const char *part, const char *to)
{
    char whole[PATH_MAX];
    struct stat st;
    int rc = -1;

    snprintf(whole, sizeof whole, "%.*s", (int)(strlen(part) - strlen(".part")), part);
    if (rig_daemon_start(d) != 0)
        return -1;
    for (int i = 0; i < START_S * 50 && rc != 0; i++) {
        clock_sleep_until(clock_now_ns() + 20 * NS_PER_MS);
        rc = stat(whole, &st);
    }
    (void)rig_daemon_end(d);
    return rc ? rc : rename(whole, to);
}

static void judge(struct kills *k, int number, const char *path, ns_t killed_ns)
{
    struct rig_log log = {0};
    int rc = rig_read_file(&log, path);
    ns_t loss = killed_ns - log.last_tick_ns;
    bool good = rc == 0 && log.ticks > 0 && loss <= LOSS_NS && log.joints > 0;

    pthread_mutex_lock(&k->lock);
    if (loss > k->worst_ns)
        k->worst_ns = loss;
    k->sum_ns += loss;
    fprintf(k->list, "%s %llu %llu %lld\n", path, (unsigned long long)log.ticks,
            (unsigned long long)log.messages, (long long)log.last_tick_ns);
    pthread_mutex_unlock(&k->lock);
    if (good)
        return;
    atomic_fetch_add(&k->bad, 1);
    printf("kill %d: %s: %llu ticks, %llu joint states, %.3f s lost\n", number, path,
           (unsigned long long)log.ticks, (unsigned long long)log.joints,
           (double)loss * 1e-9);
}

static int one_kill(struct kills *k, int number, struct rig_daemon *d,
                    struct rig_robot *robot)
{
    char part[PATH_MAX], to[PATH_MAX];
    ns_t killed_ns;
    int rc;

    snprintf(robot->runtime, sizeof robot->runtime, "%s/run", d->work);
    robot->joint_hz = 200;
    robot->frame_hz = 30;
    robot->cameras = d->cameras = 1;
    rc = rig_robot_start(robot);
    rc = rc ? rc : rig_daemon_start(d);
    if (rc != 0 || !wait_for(d->record, ".part", part))
        return -1;
    clock_sleep_until(clock_now_ns() + 500 * NS_PER_MS +
                      (ns_t)(random_of(k->seed + (uint64_t)number) % (2000 * 1000000u)));
    if (!find(d->record, ".part", part)) // with a fault in it it has another name
        return -1;
    killed_ns = clock_now_ns();
    kill(d->pid, SIGKILL);
    waitpid(d->pid, NULL, 0);
    d->pid = 0;
    snprintf(to, sizeof to, "%.3000s/kill-%03d.mcap", k->keep, number);
    rc = number % 10 == 9 ? recover_by_daemon(d, part, to) : recover_by_tool(k, part, to);
    if (rc != 0)
        printf("kill %d: %s can not be recovered\n", number, part);
    else
        judge(k, number, to, killed_ns);
    return rc;
}

static void *worker(void *arg)
{
    struct kills *k = arg;
    int number;

    while ((number = atomic_fetch_add(&k->next, 1)) < k->n) {
        struct rig_daemon d;
        struct rig_robot robot = {0};
        int rc = rig_daemon_new(&d, k->build, k->policy);

        rc = rc ? rc : one_kill(k, number, &d, &robot);
        if (rc != 0) {
            atomic_fetch_add(&k->bad, 1);
            printf("kill %d went wrong:\n", number);
            rig_show_log(&d);
        }
        rig_robot_stop(&robot);
        rig_daemon_free(&d);
        atomic_fetch_add(&k->done, 1);
    }
    return NULL;
}

// Arguments: how many, how many at a time, directory for the logs, seed.
int rig_kill(const char *build, int argc, char **argv)
{
    static struct kills k = {.lock = PTHREAD_MUTEX_INITIALIZER};
    int at_a_time = argc > 1 ? atoi(argv[1]) : 3;
    pthread_t thread[16];
    char path[PATH_MAX];

    k.build = build;
    k.n = argc > 0 ? atoi(argv[0]) : 100;
    k.keep = argc > 2 ? argv[2] : "/tmp";
    k.seed = argc > 3 ? strtoull(argv[3], NULL, 10) : (uint64_t)clock_wall_ns();
    snprintf(path, sizeof path, "%.3000s/list", k.keep);
    k.list = fopen(path, "w");
    if (k.list == NULL || rig_policy(k.policy, 1) != 0) {
        fprintf(stderr, "record-kill: cannot write to %s\n", k.keep);
        return 1;
    }
    at_a_time = at_a_time < 1 ? 1 : at_a_time > 16 ? 16 : at_a_time;
    for (int i = 0; i < at_a_time; i++)
        if (rt_thread_create(&thread[i], "kills", RT_CLASS_PLAIN, 0, worker, &k) != 0)
            return 1;
    for (int i = 0; i < at_a_time; i++)
        pthread_join(thread[i], NULL);
    rig_policy_remove(k.policy);
    fclose(k.list);
    printf("%d kills (seed %llu): %d bad; lost at the end: mean %.3f s, worst %.3f s\n",
           k.n, (unsigned long long)k.seed, k.bad, (double)k.sum_ns * 1e-9 / k.n,
           (double)k.worst_ns * 1e-9);
    return k.bad != 0;
}
