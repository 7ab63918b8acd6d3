#include "daemon/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/blind.h"

int endpoint_refuse(struct config_error *err, int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return -code;
}

const char *endpoint_path(const char *endpoint)
{
    return strncmp(endpoint, "ipc://", 6) == 0 ? endpoint + 6 : NULL;
}

// ---- runtime directory ----------------------------------------------------------------

// mkdir -p; what is there already is left alone.
static int make_directories(const char *path, struct config_error *err)
{
    char part[CONFIG_PATH];
    int n = snprintf(part, sizeof part, "%s", path);

    if (n < 0 || (size_t)n >= sizeof part || part[0] != '/')
        return endpoint_refuse(err, EINVAL,
                               "runtime directory '%s': give an absolute path of "
                               "at most %d characters",
                               path, CONFIG_PATH - 1);
    for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        if (mkdir(part, 0750) != 0 && errno != EEXIST)
            return endpoint_refuse(err, errno,
                                   "runtime directory %s cannot be created: %s; "
                                   "set runtime: to a directory this user may create",
                                   part, strerror(errno));
        if (!slash)
            return 0;
        *slash = '/';
    }
}

// Whoever can write here can take our sockets' names.
static int check_directory(const char *path, struct config_error *err)
{
    struct stat st;

    if (lstat(path, &st) != 0)
        return endpoint_refuse(err, errno,
                               "runtime directory %s: %s; set runtime: to another "
                               "directory",
                               path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return endpoint_refuse(err, ENOTDIR,
                               "runtime directory %s is not a directory: remove "
                               "it or set runtime: to another path",
                               path);
    if (st.st_uid != geteuid())
        return endpoint_refuse(err, EPERM,
                               "runtime directory %s belongs to user %u, not to "
                               "user %u who runs actd: set runtime: to another directory",
                               path, st.st_uid, geteuid());
    if (st.st_mode & S_IWOTH)
        return endpoint_refuse(err, EPERM,
                               "runtime directory %s is writable for everybody: "
                               "chmod it to 0750",
                               path);
    return 0;
}

// The owner's pid, for the sentence only.
static int held(int fd, const char *path, struct config_error *err)
{
    char pid[16] = "";
    ssize_t n = pread(fd, pid, sizeof pid - 1, 0);

    pid[n > 0 ? n : 0] = '\0';
    pid[strcspn(pid, "\n")] = '\0';
    return endpoint_refuse(err, EBUSY,
                           "%s is held by another actd (process %s): stop it, or "
                           "give this one another instance: or runtime:",
                           path, pid[0] ? pid : "unknown");
}

static int take_lock(int fd, const char *path, struct config_error *err)
{
    char pid[16];
    int n;

    if (!BLIND(BLIND_LOCK) && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            return held(fd, path, err);
        return endpoint_refuse(err, errno,
                               "%s cannot be locked: %s; set runtime: to a local "
                               "directory",
                               path, strerror(errno));
    }
    n = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)n, 0) != n)
        return endpoint_refuse(err, EIO, "%s cannot be written: free some space there",
                               path);
    return 0;
}

int endpoint_lock(const char *runtime, int *lock_fd, struct config_error *err)
{
    char path[CONFIG_PATH + 8];
    int fd, r = make_directories(runtime, err);

    *lock_fd = -1;
    if (r == 0)
        r = check_directory(runtime, err);
    if (r != 0)
        return r;
    snprintf(path, sizeof path, "%s/lock", runtime);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0)
        return endpoint_refuse(err, errno, "%s cannot be opened: %s; check who owns it",
                               path, strerror(errno));
    r = take_lock(fd, path, err);
    if (r != 0) {
        close(fd);
        return r;
    }
    *lock_fd = fd;
    return 0;
}

// ---- addresses ------------------------------------------------------------------------

// 0: nobody answers; else the errno of a connect that was not simply refused, 0 replaced.
static int answers(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd, r;

    memcpy(a.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    r = connect(fd, (const struct sockaddr *)&a, sizeof a) == 0 ? EADDRINUSE : errno;
    close(fd);
    return r == ECONNREFUSED ? 0 : r == EAGAIN ? EADDRINUSE : r;
}

static int check_free(const char *path, struct config_error *err)
{
    struct stat st;
    int r;

    if (lstat(path, &st) != 0) {
        if (errno == ENOENT)
            return 0;
        return endpoint_refuse(err, errno, "endpoint ipc://%s: %s; check its directory",
                               path, strerror(errno));
    }
    if (!S_ISSOCK(st.st_mode))
        return endpoint_refuse(err, EEXIST,
                               "endpoint ipc://%s: there is something that is not "
                               "a socket; move it away or choose another endpoint",
                               path);
    r = answers(path);
    if (r == EADDRINUSE)
        return endpoint_refuse(err, r,
                               "endpoint ipc://%s is in use: another process answers "
                               "there; stop it or choose another endpoint",
                               path);
    if (r != 0)
        return endpoint_refuse(err, r,
                               "endpoint ipc://%s: %s; remove the socket if nobody "
                               "uses it, or choose another endpoint",
                               path, strerror(r));
    if (unlink(path) != 0 && errno != ENOENT)
        return endpoint_refuse(err, errno,
                               "endpoint ipc://%s: a left-over socket cannot be "
                               "removed: %s; remove it",
                               path, strerror(errno));
    return 0;
}

// Digits and dots only behind 127., so that no name can resolve to somewhere else.
static bool is_loopback(const char *address)
{
    const char *colon = strchr(address, ':');

    return colon && strncmp(address, "127.", 4) == 0 &&
           strspn(address, "0123456789.") == (size_t)(colon - address) &&
           colon[1] != '\0' && strspn(colon + 1, "0123456789") == strlen(colon + 1);
}

int endpoint_check(const char *endpoint, bool bind, struct config_error *err)
{
    const char *path = endpoint_path(endpoint);
    size_t room = sizeof((struct sockaddr_un *)0)->sun_path - 1;

    if (strncmp(endpoint, "tcp://", 6) == 0) {
        if (is_loopback(endpoint + 6))
            return 0;
        return endpoint_refuse(
            err, EINVAL,
            "endpoint %s: only tcp://127.0.0.1:PORT is "
            "allowed, since the wire has no authentication; use ipc:// or "
            "bring the stream here through a tunnel",
            endpoint);
    }
    if (!path || path[0] != '/')
        return endpoint_refuse(err, EINVAL,
                               "endpoint '%s': give ipc:// and an absolute path, "
                               "or tcp://127.0.0.1:PORT",
                               endpoint);
    if (strlen(path) > room)
        return endpoint_refuse(
            err, ENAMETOOLONG,
            "endpoint %s: the path has %zu characters "
            "and a socket's may have %zu; set runtime: to a shorter one",
            endpoint, strlen(path), room);
    return bind ? check_free(path, err) : 0;
}
