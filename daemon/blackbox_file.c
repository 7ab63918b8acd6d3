// Where a black box goes: blackbox-INSTANCE-20261129T201500.123Z-REASON.csv, and .part behind it
// until it is whole. Times in names are UTC, so that names sort by age. Only names of exactly
// this form and this instance are ever removed, and never what is not a plain file.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/blackbox_impl.h"

#define MODE_DIRECTORY 0750
#define MODE_FILE      0640
#define PART           ".part"
#define NAMES_TRIED    1000 // one more millisecond each

// ---- directory ---------------------------------------------------------------------------------

static int make_parents(char *path)
{
    for (char *p = path + 1; *p != 0; p++) {
        if (*p != '/')
            continue;
        *p = 0;
        if (mkdir(path, MODE_DIRECTORY) != 0 && errno != EEXIST)
            return -errno;
        *p = '/';
    }
    return 0;
}

int blackbox_file_directory(const char *path)
{
    char copy[PATH_MAX];
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

    if (fd >= 0 || errno != ENOENT)
        return fd >= 0 ? fd : -errno;
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy)
        return -ENAMETOOLONG;
    rc = make_parents(copy);
    if (rc == 0 && mkdir(path, MODE_DIRECTORY) != 0 && errno != EEXIST)
        rc = -errno;
    if (rc != 0)
        return rc;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : -errno;
}

// ---- names -------------------------------------------------------------------------------------

static void prefix(char *out, size_t size, const char *instance)
{
    snprintf(out, size, "blackbox-%.*s-", 100, instance);
    for (char *p = out; *p != 0; p++)
        if (*p == '/')
            *p = '_';
}

static bool taken(int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int blackbox_file_name(char *out, int dir, const char *instance, ns_t wall_ns,
                       enum ladder_reason reason)
{
    char head[128], stamp[32];

    prefix(head, sizeof head, instance);
    for (int i = 0; i < NAMES_TRIED; i++) {
        ns_t at = (wall_ns > 0 ? wall_ns : 0) + i * NS_PER_MS;
        time_t seconds = (time_t)(at / NS_PER_S);
        struct tm tm;

        if (gmtime_r(&seconds, &tm) == NULL ||
            strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%S", &tm) == 0)
            return -EOVERFLOW;
        snprintf(out, BLACKBOX_NAME, "%s%s.%03dZ-%s.csv", head, stamp,
                 (int)(at % NS_PER_S / NS_PER_MS), ladder_reason_name(reason));
        if (!taken(dir, out))
            return 0;
    }
    return -EEXIST;
}

// d stands for a digit.
static const char *skip_form(const char *s, const char *form)
{
    for (; *form != 0; form++, s++)
        if (*form == 'd' ? *s < '0' || *s > '9' : *s != *form)
            return NULL;
    return s;
}

// 1: a file of this instance, 2: a part of one, 0: neither.
static int is_ours(const char *name, const char *head)
{
    size_t n = strlen(head);
    const char *s;

    if (strncmp(name, head, n) != 0)
        return 0;
    s = skip_form(name + n, "ddddddddTdddddd.dddZ-");
    if (s == NULL)
        return 0;
    s += strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    return strcmp(s, ".csv") == 0 ? 1 : strcmp(s, ".csv" PART) == 0 ? 2 : 0;
}

// ---- one file ----------------------------------------------------------------------------------

static void part_name(char *out, size_t size, const char *name)
{
    snprintf(out, size, "%s" PART, name);
}

int blackbox_file_open(int dir, const char *name)
{
    char part[BLACKBOX_NAME + sizeof PART];
    int fd;

    part_name(part, sizeof part, name);
    fd = openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                MODE_FILE);
    return fd >= 0 ? fd : -errno;
}

int blackbox_file_close(int dir, const char *name, int fd, int rc)
{
    char part[BLACKBOX_NAME + sizeof PART];

    part_name(part, sizeof part, name);
    if (close(fd) != 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && renameat(dir, part, dir, name) != 0)
        rc = -errno;
    if (rc != 0)
        unlinkat(dir, part, 0);
    return rc;
}

// ---- the old ones ------------------------------------------------------------------------------

struct names {
    char **name;
    size_t n, room;
};

static int add(struct names *l, const char *name)
{
    if (l->n == l->room) {
        size_t room = l->room > 0 ? 2 * l->room : 64;
        char **grown = realloc(l->name, room * sizeof *grown);

        if (grown == NULL)
            return -ENOMEM;
        l->name = grown;
        l->room = room;
    }
    l->name[l->n] = strdup(name);
    return l->name[l->n] != NULL ? (l->n++, 0) : -ENOMEM;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool plain_file(int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

// Collects finished files other than spare, and removes parts at once: nobody writes one now.
static int look(int dir, DIR *d, const char *head, const char *spare, struct names *l)
{
    struct dirent *e;
    int rc = 0;

    while (rc == 0 && (e = readdir(d)) != NULL) {
        int kind = is_ours(e->d_name, head);

        if (kind == 0 || strcmp(e->d_name, spare) == 0 || !plain_file(dir, e->d_name))
            continue;
        if (kind == 1)
            rc = add(l, e->d_name);
        else if (unlinkat(dir, e->d_name, 0) != 0 && errno != ENOENT)
            rc = -errno;
    }
    return rc;
}

int blackbox_file_prune(int dir, const char *instance, int keep, const char *spare)
{
    char head[128];
    struct names l = {0};
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

    if (d == NULL) {
        rc = -errno;
        if (fd >= 0)
            close(fd);
        return rc;
    }
    prefix(head, sizeof head, instance);
    rc = look(dir, d, head, spare, &l);
    if (l.n > 0)
        qsort(l.name, l.n, sizeof *l.name, by_name);
    for (size_t i = 0; i < l.n; i++) {
        bool old = l.n - i + 1 > (size_t)keep; // 1: the spare

        if (rc == 0 && old && unlinkat(dir, l.name[i], 0) != 0 && errno != ENOENT)
            rc = -errno;
        free(l.name[i]);
    }
    free(l.name);
    closedir(d);
    return rc;
}

// ---- what went wrong -----------------------------------------------------------------------------

static const char *remedy(int rc)
{
    switch (-rc) {
    case ENOSPC:
    case EDQUOT:
        return "free some space there or name another place in black_box.directory";
    case EFBIG:
        return "raise the limit on file sizes (ulimit -f, LimitFSIZE=)";
    case EROFS:
        return "mount it writable or name another place in black_box.directory";
    case EACCES:
    case EPERM:
        return "give it to the user that actd runs as or name another place in "
               "black_box.directory";
    case ENOTDIR:
    case EEXIST:
    case EISDIR:
        return "move away what lies there or name another place in black_box.directory";
    case EIO:
        return "the disk fails: see `dmesg`, and name another one in black_box.directory";
    default:
        return "name a place in black_box.directory that actd can write to";
    }
}

void blackbox_file_say(char *out, size_t size, const char *directory, const char *what,
                       int rc)
{
    snprintf(out, size, "black box: %.*s: cannot %s: %s; %s", 200, directory, what,
             strerror(-rc), remedy(rc));
}
