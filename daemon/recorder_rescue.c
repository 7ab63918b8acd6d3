// Files of runs that were killed, or could not be ended: a .part that nobody holds a lock on. What
// is in it becomes a whole file, in a thread of its own that nobody waits for. It owns all that it
// uses, so that it may outlive the recorder while a disk hangs.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/mcap_recover.h"
#include "daemon/recorder_parts.h"
#include "daemon/rt.h"

#define NOTHING_IN_IT 64 // bytes: no room for a header and a chunk

struct recorder_rescue {
    char *directory, *instance;
    pthread_t thread;
    _Atomic int phase;
};

// ---- one file ----------------------------------------------------------------------------------

struct job {
    int dir, fd;
    const char *directory;
    char part[RECORDER_NAME], name[RECORDER_NAME], saved[RECORDER_NAME];
};

static bool is_whole(const char *path)
{
    struct mcap_reader *r = NULL;
    struct mcap_error err;
    const char *why;
    bool whole = mcap_open(&r, path, NULL, &err) == 0 && mcap_whole(r, &why);

    mcap_close(r);
    return whole;
}

// Of recoveries that were killed, as large as what they recovered: NAME-recovered.mcap.XXXXXX. Whoever
// holds the lock on the .part is the only one to recover it.
static void drop_unfinished(const struct job *j)
{
    int fd = openat(j->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    size_t n = strlen(j->saved);
    struct dirent *e;

    while (d != NULL && (e = readdir(d)) != NULL)
        if (strncmp(e->d_name, j->saved, n) == 0 && e->d_name[n] == '.' &&
            strlen(e->d_name + n) == sizeof ".XXXXXX" - 1)
            (void)unlinkat(j->dir, e->d_name, 0);
    if (d != NULL)
        closedir(d);
    else if (fd >= 0)
        close(fd);
}

// By way of another name, which the recovery writes by way of another still.
static int save(const struct job *j, const char *from)
{
    char to[4096];
    struct mcap_recovery done = {0};
    struct mcap_error err = {""};
    int rc;

    snprintf(to, sizeof to, "%s/%s", j->directory, j->saved);
    drop_unfinished(j);
    rc = mcap_recover(from, to, NULL, &done, &err);
    if (rc < 0) {
        log_line(LOG_WARN, "%s is left from an earlier run and can not be recovered: %s",
                 from, err.text);
        return rc;
    }
    if (renameat(j->dir, j->saved, j->dir, j->name) != 0)
        return -errno;
    (void)unlinkat(j->dir, j->part, 0);
    log_line(LOG_INFO,
             "recovered %s/%s, which an earlier run did not finish: %" PRIu64
             " messages; %" PRIu64 " bytes at its end or in damaged places are lost",
             j->directory, j->name, done.messages, done.bytes_lost);
    return 0;
}

static int mend(struct job *j)
{
    char from[4096];
    struct stat st;

    if (fstat(j->fd, &st) != 0)
        return -errno;
    if (st.st_size < NOTHING_IN_IT)
        return unlinkat(j->dir, j->part, 0) == 0 ? 0 : -errno;
    snprintf(from, sizeof from, "%s/%s", j->directory, j->part);
    if (is_whole(from))
        return renameat(j->dir, j->part, j->dir, j->name) == 0 ? 0 : -errno;
    return save(j, from);
}

// True = there is one file more that is whole.
static bool try_one(int dir, const char *directory, const char *part)
{
    struct job j = {.dir = dir, .directory = directory};
    size_t n = strlen(part) - strlen(RECORDER_PART);
    struct stat st;
    bool good = false;

    if (n >= sizeof j.name - 16)
        return false;
    snprintf(j.part, sizeof j.part, "%s", part);
    snprintf(j.name, sizeof j.name, "%.*s", (int)n, part);
    snprintf(j.saved, sizeof j.saved, "%.*s-recovered.mcap", (int)(n - strlen(".mcap")),
             part);
    j.fd = openat(dir, part, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (j.fd < 0)
        return false;
    // Held: somebody writes it. The name there already: not ours to replace.
    if (fstat(j.fd, &st) == 0 && S_ISREG(st.st_mode) &&
        flock(j.fd, LOCK_EX | LOCK_NB) == 0 &&
        fstatat(dir, j.name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        good = mend(&j) == 0;
    close(j.fd);
    return good;
}

// ---- all of them -------------------------------------------------------------------------------

// Names first: what is made meanwhile is not to be walked over.
static int names(DIR *d, const char *instance, char ***out)
{
    struct dirent *e;
    char **list = NULL;
    int n = 0;

    while ((e = readdir(d)) != NULL) {
        char **grown;

        if (recorder_name_kind(e->d_name, instance) != NAME_PART)
            continue;
        grown = realloc(list, (size_t)(n + 1) * sizeof *list);
        if (grown == NULL)
            break;
        list = grown;
        list[n] = strdup(e->d_name);
        if (list[n] == NULL)
            break;
        n++;
    }
    *out = list;
    return n;
}

int recorder_rescue_now(const char *directory, const char *instance)
{
    int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC), saved = 0, n;
    DIR *d = dir >= 0 ? fdopendir(dir) : NULL;
    char **list = NULL;

    if (d == NULL) {
        if (dir >= 0)
            close(dir);
        return 0;
    }
    n = names(d, instance, &list);
    for (int i = 0; i < n; i++) {
        saved += try_one(dir, directory, list[i]);
        free(list[i]);
    }
    free(list);
    closedir(d);
    return saved;
}

// ---- thread ------------------------------------------------------------------------------------

static void free_rescue(struct recorder_rescue *s)
{
    free(s->directory);
    free(s->instance);
    free(s);
}

static void *run(void *arg)
{
    struct recorder_rescue *s = arg;
    int runs = RECORDER_RUNS;

    (void)recorder_rescue_now(s->directory, s->instance);
    if (!atomic_compare_exchange_strong(&s->phase, &runs, RECORDER_DONE))
        free_rescue(s);
    return NULL;
}

struct recorder_rescue *recorder_rescue_start(const char *directory, const char *instance)
{
    struct recorder_rescue *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->directory = strdup(directory);
    s->instance = strdup(instance);
    if (s->directory == NULL || s->instance == NULL ||
        rt_thread_create(&s->thread, "actd-rescue", RT_CLASS_PLAIN, 0, run, s) != 0) {
        free_rescue(s);
        return NULL;
    }
    return s;
}

bool recorder_rescue_done(struct recorder_rescue *s)
{
    return s == NULL || atomic_load(&s->phase) == RECORDER_DONE;
}

void recorder_rescue_stop(struct recorder_rescue *s, ns_t until_ns)
{
    int runs = RECORDER_RUNS;
    pthread_t thread;

    if (s == NULL)
        return;
    while (!recorder_rescue_done(s) && clock_now_ns() < until_ns)
        clock_sleep_until(clock_now_ns() + RECORDER_POLL_NS);
    thread = s->thread;
    if (atomic_compare_exchange_strong(&s->phase, &runs, RECORDER_LEFT)) {
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    free_rescue(s);
}
