// Old recordings make room for new ones: the oldest first, those with a fault in them only when no
// others are left, and of these the newest eight never. What no longer fits then is not recorded,
// which is said, and mends itself when somebody makes room.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/recorder_parts.h"

#define FAULTS_KEPT 8

struct old {
    char name[RECORDER_NAME];
    uint64_t bytes; // on the disk
    bool fault;
};

struct list {
    struct old *old;
    size_t n, capacity, faults;
};

// ---- what there is -----------------------------------------------------------------------------

static int add(struct list *l, const char *name, uint64_t bytes, bool fault)
{
    if (l->n == l->capacity) {
        size_t capacity = l->capacity > 0 ? 2 * l->capacity : 64;
        struct old *grown = realloc(l->old, capacity * sizeof *grown);

        if (grown == NULL)
            return -ENOMEM;
        l->old = grown;
        l->capacity = capacity;
    }
    l->old[l->n] = (struct old){.bytes = bytes, .fault = fault};
    memcpy(l->old[l->n].name, name, strlen(name) + 1); // look() saw that it fits
    l->n++;
    l->faults += fault;
    return 0;
}

static int look(int dir, DIR *d, const char *instance, struct list *l)
{
    struct dirent *e;
    struct stat st;
    int rc = 0;

    while (rc == 0 && (e = readdir(d)) != NULL) {
        enum recorder_name_kind kind = recorder_name_kind(e->d_name, instance);

        if ((kind != NAME_WHOLE && kind != NAME_FAULT) ||
            strlen(e->d_name) >= RECORDER_NAME ||
            fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode))
            continue;
        rc = add(l, e->d_name, (uint64_t)st.st_blocks * 512, kind == NAME_FAULT);
    }
    return rc;
}

static int by_age(const void *a, const void *b)
{
    return strcmp(((const struct old *)a)->name, ((const struct old *)b)->name);
}

static int list(struct list *l, int dir, const char *instance)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

    if (d == NULL) {
        rc = -errno;
        if (fd >= 0)
            close(fd);
        return rc;
    }
    rc = look(dir, d, instance, l);
    closedir(d);
    if (l->n > 0)
        qsort(l->old, l->n, sizeof *l->old, by_age);
    return rc;
}

// ---- what goes ---------------------------------------------------------------------------------

static struct old *next_to_go(struct list *l)
{
    struct old *fault = NULL;

    for (size_t i = 0; i < l->n; i++) {
        if (l->old[i].name[0] == 0)
            continue;
        if (!l->old[i].fault)
            return &l->old[i];
        if (fault == NULL)
            fault = &l->old[i];
    }
    return l->faults > FAULTS_KEPT ? fault : NULL;
}

static bool short_of_room(const struct recorder_room *q, const struct recorder_disk *disk,
                          int dir)
{
    int64_t there = disk->free_bytes(disk->arg, dir);

    return (there >= 0 && (uint64_t)there < q->keep_free) ||
           (q->most > 0 && q->kept + q->written > q->most);
}

// A slip of the pen: all would go, and nothing be recorded for it.
static bool more_than_the_disk(const struct recorder_room *q, int dir)
{
    struct statvfs s;

    return fstatvfs(dir, &s) == 0 && s.f_blocks > 0 && s.f_frsize > 0 &&
           q->keep_free / s.f_frsize >= s.f_blocks;
}

static int remove_old(struct recorder_room *q, const struct recorder_disk *disk, int dir,
                      struct list *l)
{
    while (short_of_room(q, disk, dir)) {
        struct old *old = next_to_go(l);

        if (old == NULL)
            return -ENOSPC;
        if (unlinkat(dir, old->name, 0) != 0 && errno != ENOENT)
            return -errno;
        q->kept -= old->bytes < q->kept ? old->bytes : q->kept;
        q->removed++;
        l->faults -= old->fault;
        old->name[0] = 0;
    }
    return 0;
}

int recorder_room_make(struct recorder_room *q, const struct recorder_disk *disk, int dir,
                       const char *instance)
{
    struct list l = {0};
    int rc = list(&l, dir, instance);

    q->kept = q->removed = 0;
    for (size_t i = 0; i < l.n; i++)
        q->kept += l.old[i].bytes;
    if (rc == 0 && more_than_the_disk(q, dir))
        rc = -ENOSPC;
    if (rc == 0)
        rc = remove_old(q, disk, dir, &l);
    free(l.old);
    return rc;
}
