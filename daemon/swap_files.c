// swap_files: from a name that somebody says over a socket to a directory. It is one
// component inside swap.directory, reached without any symbolic link, and nobody but root
// and we may write the way to it: whoever could put another directory in its place could
// drive the arm. What is opened is a descriptor; policy_load goes through /proc/self/fd,
// so what was looked at is what is loaded.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/swap_impl.h"

#define INNER "pretrained_model" // where LeRobot's training leaves a checkpoint

bool swap_name_fits(const char *name, char *why, size_t size)
{
    size_t n = strnlen(name, CONFIG_NAME);
    bool fits = n > 0 && n < CONFIG_NAME && name[0] != '.';
    for (size_t i = 0; i < n && fits; i++)
        fits = (unsigned char)name[i] > 0x20 && name[i] != 0x7f && name[i] != '/';
    if (!fits)
        snprintf(why, size,
                 "that is no name of a policy: say the name of a directory in "
                 "swap.directory, without '/', blanks or a '.' in front, of at most %d "
                 "bytes",
                 CONFIG_NAME - 1);
    return fits;
}

// ---- opening ---------------------------------------------------------------------------------

static int open_beneath(int dir, const char *name, int flags)
{
    struct open_how how = {
        .flags = (unsigned)(flags | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = syscall(SYS_openat2, dir, name, &how, sizeof how);
    if (fd < 0 && errno == ENOSYS) // one component: O_NOFOLLOW says as much
        fd = openat(dir, name, flags | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : (int)fd;
}

static const char *whose(const struct stat *st)
{
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return "belongs to another user: chown it to root or to the user who runs actd";
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return "can be written by others than its owner: chmod go-w";
    return NULL;
}

// fd as it is, or closed and -EACCES when others may write there.
static int checked(int fd, const char *shown, struct config_error *err)
{
    struct stat st;
    const char *wrong = fstat(fd, &st) ? strerror(errno) : whose(&st);
    if (!wrong)
        return fd;
    snprintf(err->text, sizeof err->text, "the directory %s %s", shown, wrong);
    close(fd);
    return -EACCES;
}

static int open_directory(const struct config *cfg, struct config_error *err)
{
    const char *path = cfg->swap.directory;
    int fd;
    if (!path[0]) {
        snprintf(err->text, sizeof err->text,
                 "there is no directory of policies: set swap.directory in %s",
                 cfg->file);
        return -EINVAL;
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        return checked(fd, path, err);
    fd = -errno;
    snprintf(err->text, sizeof err->text, "swap.directory %s cannot be opened: %s", path,
             strerror(-fd));
    return fd;
}

static int open_named(int dir, const char *name, struct config_error *err)
{
    int fd = open_beneath(dir, name, O_RDONLY | O_DIRECTORY);
    if (fd >= 0)
        return checked(fd, name, err);
    if (fd == -ELOOP || fd == -ENOTDIR)
        snprintf(err->text, sizeof err->text,
                 "%s is a symbolic link or no directory: put the checkpoint's directory "
                 "itself there",
                 name);
    else
        snprintf(err->text, sizeof err->text,
                 "there is no policy %s in swap.directory (%s); `actctl policies` shows "
                 "what there is",
                 name, strerror(-fd));
    return fd;
}

// The checkpoint may lie one directory further down.
static int inside(int fd, char *path, struct config_error *err)
{
    size_t n = strlen(path);
    struct stat st;
    int inner;
    if (fstatat(fd, "config.json", &st, AT_SYMLINK_NOFOLLOW) == 0)
        return fd;
    inner = open_beneath(fd, INNER, O_RDONLY | O_DIRECTORY);
    if (inner < 0)
        return fd; // policy_load says what is missing
    close(fd);
    snprintf(path + n, CONFIG_PATH - n, "/" INNER);
    return checked(inner, path, err);
}

int swap_open(const struct config *cfg, const char *name, char path[CONFIG_PATH],
              struct config_error *err)
{
    int dir, fd;
    if (!swap_name_fits(name, err->text, sizeof err->text))
        return -EINVAL;
    dir = open_directory(cfg, err);
    if (dir < 0)
        return dir;
    fd = open_named(dir, name, err);
    close(dir);
    if (fd < 0)
        return fd;
    if (snprintf(path, CONFIG_PATH, "%s/%s", cfg->swap.directory, name) >=
        CONFIG_PATH - (int)sizeof INNER) {
        snprintf(err->text, sizeof err->text, "%s: its path is too long", name);
        close(fd);
        return -ENAMETOOLONG;
    }
    return inside(fd, path, err);
}

// ---- list ------------------------------------------------------------------------------------

// One file that a policy needs; the note says what is wrong with it.
static bool usable_file(int dir, const char *file, struct swap_entry *e)
{
    struct stat st;
    const char *wrong = NULL;
    if (fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW))
        wrong = errno == ENOENT ? "is missing" : strerror(errno);
    else if (!S_ISREG(st.st_mode))
        wrong = "is not a regular file";
    else
        wrong = whose(&st);
    if (wrong) {
        snprintf(e->note, sizeof e->note, "%s %s", file, wrong);
        return false;
    }
    if (strcmp(file, "model.safetensors") == 0) {
        e->bytes = (uint64_t)st.st_size;
        e->modified_s = st.st_mtime;
    }
    return true;
}

static void look_at(const struct config *cfg, struct swap_entry *e)
{
    struct config_error err = {{0}};
    char path[CONFIG_PATH];
    int fd = swap_open(cfg, e->name, path, &err);
    if (fd < 0) {
        snprintf(e->note, sizeof e->note, "%.255s", err.text);
        return;
    }
    e->usable = usable_file(fd, "config.json", e) && usable_file(fd, "policy.yaml", e) &&
                usable_file(fd, "model.safetensors", e);
    close(fd);
}

static int by_name(const void *a, const void *b)
{
    const struct swap_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int read_names(DIR *d, int dir, struct swap_entry *out, int n, int max)
{
    char why[256];
    struct stat st;
    for (struct dirent *e; n < max && (e = readdir(d));) {
        if (!swap_name_fits(e->d_name, why, sizeof why) ||
            fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
            !(S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode)))
            continue;
        out[n] = (struct swap_entry){.usable = false};
        memcpy(out[n++].name, e->d_name, strlen(e->d_name)); // it fits, and so does the 0
    }
    return n;
}

int swap_files_list(const struct config *cfg, struct swap_entry *out, int n, int max)
{
    struct config_error err = {{0}};
    int fd = open_directory(cfg, &err), first = n;
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd < 0)
        return fd;
    if (!d) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    n = read_names(d, fd, out, n, max);
    closedir(d);
    qsort(out + first, (size_t)(n - first), sizeof *out, by_name);
    for (int i = first; i < n; i++)
        look_at(cfg, &out[i]);
    return n;
}

// ---- stamp -----------------------------------------------------------------------------------

// splitmix64's finisher: a bit of the input changes half of those of the output.
static uint64_t mix(uint64_t h)
{
    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
    return h ^ (h >> 31);
}

// In whatever order the directory has them.
uint64_t swap_files_stamp(const struct config *cfg, const char *name)
{
    struct config_error err = {{0}};
    char path[CONFIG_PATH];
    int fd = swap_open(cfg, name, path, &err), left = 64; // a checkpoint has a dozen
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    uint64_t sum = 1;
    struct stat st;

    if (!d) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    for (struct dirent *e; left-- > 0 && (e = readdir(d));) {
        if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
            continue;
        sum += mix(mix(mix(st.st_ino) + (uint64_t)st.st_size) +
                   (uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec);
    }
    closedir(d);
    return sum ? sum : 1;
}
