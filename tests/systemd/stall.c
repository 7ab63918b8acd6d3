// stall PID THREAD SECONDS: stops the one thread of a process that has this name, as if it were
// stuck, and lets it go after SECONDS; prints "stopped TID" once it has. A SIGSTOP would stop the
// process as a whole, and a hook in the product would be a way to hang it.
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

static bool has_name(const char *pid, const char *tid, const char *name)
{
    char path[64], comm[32] = "";
    FILE *f;

    snprintf(path, sizeof path, "/proc/%.10s/task/%.10s/comm", pid, tid);
    f = fopen(path, "re");
    if (!f)
        return false;
    if (!fgets(comm, sizeof comm, f))
        comm[0] = '\0';
    fclose(f);
    comm[strcspn(comm, "\n")] = '\0';
    return strcmp(comm, name) == 0;
}

static pid_t find(const char *pid, const char *name)
{
    char path[64];
    pid_t tid = -1;
    DIR *d;

    snprintf(path, sizeof path, "/proc/%.10s/task", pid);
    d = opendir(path);
    if (!d)
        return -1;
    for (struct dirent *e; tid < 0 && (e = readdir(d));)
        if (e->d_name[0] != '.' && has_name(pid, e->d_name, name))
            tid = (pid_t)strtol(e->d_name, NULL, 10);
    closedir(d);
    return tid;
}

static int stop(pid_t tid)
{
    int status;

    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0 ||
        ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0 ||
        waitpid(tid, &status, __WALL) != tid)
        return -errno;
    return WIFSTOPPED(status) ? 0 : -ESRCH;
}

int main(int argc, char **argv)
{
    const struct timespec look = {.tv_nsec = 10000000};
    int status, looks, r;
    pid_t tid;

    if (argc != 4)
        return 64;
    tid = find(argv[1], argv[2]);
    r = tid > 0 ? stop(tid) : -ESRCH;
    if (r) {
        fprintf(stderr, "stall: thread %s of %s: %s\n", argv[2], argv[1], strerror(-r));
        return 1;
    }
    printf("stopped %d\n", (int)tid);
    fflush(stdout);
    looks = (int)(100 * strtod(argv[3], NULL));
    while (looks-- > 0 && waitpid(tid, &status, __WALL | WNOHANG) == 0)
        nanosleep(&look, NULL);
    (void)ptrace(PTRACE_DETACH, tid, NULL, NULL); // is gone already if it was killed
    return 0;
}
