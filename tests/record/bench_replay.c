#include "tests/record/bench_replay.h"

#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/clock.h"

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

// Its exit status and what it took; -1 = it did not run. The read end of a pipe is the caller's.
static int run(const char *build, const char *log, int out, struct bench_replay *r)
{
    extern char **environ;
    char program[PATH_MAX];
    const char *words[] = {program,   "replay", "verify", "--no-policy",
                           "--quiet", "--json", log,      NULL};
    posix_spawn_file_actions_t files;
    struct rusage used = {0};
    int status = 0, rc;
    ns_t began = clock_now_ns();
    pid_t pid;

    snprintf(program, sizeof program, "%.4000s/actd", build);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    rc = posix_spawn(&pid, program, &files, NULL, (char **)(uintptr_t)words, environ);
    posix_spawn_file_actions_destroy(&files);
    if (rc != 0 || wait4(pid, &status, 0, &used) != pid)
        return -1;
    r->wall_s = (double)(clock_now_ns() - began) * 1e-9;
    r->cpu_s = seconds(used.ru_utime) + seconds(used.ru_stime);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int bench_replay(const char *build, const char *log, struct bench_replay *out)
{
    FILE *f = tmpfile();
    json_t *said = NULL, *v;
    int rc = f == NULL ? -1 : run(build, log, fileno(f), out);

    if (f != NULL) {
        rewind(f);
        said = json_loadf(f, 0, NULL);
        fclose(f);
    }
    out->covered_s = json_number_value(json_object_get(said, "covered_s"));
    out->ticks = (uint64_t)json_integer_value(
        json_object_get(json_object_get(said, "ticks"), "compared"));
    out->times = out->covered_s / fmax(fmin(out->wall_s, out->cpu_s), 1e-9);
    v = json_object_get(json_object_get(said, "first_difference"), "text");
    if (rc != 0 || out->ticks == 0)
        printf("actd replay verify: status %d, %s\n", rc,
               json_is_string(v) ? json_string_value(v) : "nothing compared");
    json_decref(said);
    return rc == 0 && out->ticks > 0 ? 0 : -1;
}
