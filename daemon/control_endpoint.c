#include "daemon/control_endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/endpoint.h"

// ---- the directory -------------------------------------------------------------------

// The directory part, "/" included for one in the root.
static void directory_of(const char *path, char out[108])
{
    size_t n = (size_t)(strrchr(path, '/') - path);

    snprintf(out, 108, "%.*s", n ? (int)n : 1, path);
}

// Whoever can write there can put another socket in our place.
static int check_directory(int fd, const char *directory, struct config_error *err)
{
    struct stat st;

    if (fd < 0 || fstat(fd, &st) != 0)
        return endpoint_refuse(err, errno,
                               "operators.socket: directory %s: %s; create it, or choose "
                               "another one",
                               directory, strerror(errno));
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return endpoint_refuse(
            err, EPERM,
            "operators.socket: directory %s belongs to user %u; use one "
            "that belongs to root or to user %u, who runs actd",
            directory, st.st_uid, geteuid());
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX))
        return endpoint_refuse(err, EPERM,
                               "operators.socket: directory %s is writable for others; "
                               "chmod go-w %s",
                               directory, directory);
    return 0;
}

// ---- what is there -------------------------------------------------------------------

// 0: nobody answers there.
static int answers(const struct sockaddr_un *a)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), r;

    if (fd < 0)
        return errno;
    r = connect(fd, (const struct sockaddr *)a, sizeof *a) == 0 ? EADDRINUSE : errno;
    close(fd);
    // EAGAIN: alive, and its queue is full. EPROTOTYPE: alive, and of another type.
    return r == ECONNREFUSED || r == ENOENT ? 0 : r;
}

// The name must be free, or a socket of ours that nobody answers.
static int make_room(const struct sockaddr_un *a, struct config_error *err)
{
    struct stat st;
    int r;

    if (lstat(a->sun_path, &st) != 0 && errno == ENOENT)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return endpoint_refuse(err, EEXIST,
                               "operators.socket: %s is there and is not a socket; move "
                               "it away, or choose another path",
                               a->sun_path);
    r = answers(a);
    if (r != 0)
        return endpoint_refuse(
            err, EADDRINUSE,
            "operators.socket: %s is in use (%s); stop who uses it, or "
            "choose another path",
            a->sun_path, strerror(r));
    if (st.st_uid != geteuid() || (unlink(a->sun_path) != 0 && errno != ENOENT))
        return endpoint_refuse(err, EPERM,
                               "operators.socket: %s was left over by user %u and cannot "
                               "be removed; remove it",
                               a->sun_path, st.st_uid);
    return 0;
}

// ---- who may reach it ----------------------------------------------------------------

// The group's number, or -1 when this machine has no such group.
static gid_t client_group(void)
{
    struct group gr, *found = NULL;
    gid_t id = (gid_t)-1;
    char *buf = malloc(65536);

    if (buf && getgrnam_r(CONTROL_GROUP, &gr, buf, 65536, &found) == 0 && found)
        id = found->gr_gid;
    free(buf);
    return id;
}

// The service runs in the group already, and may not call chown then.
static bool give(int fd, gid_t now, gid_t group)
{
    return group != (gid_t)-1 && (now == group || fchown(fd, (uid_t)-1, group) == 0);
}

// Through the directory, if it is ours: one of root's is left as root made it.
static int open_directory(int directory, bool everybody, gid_t group)
{
    mode_t through = everybody ? S_IXGRP | S_IXOTH : S_IXGRP;
    struct stat st;

    if (fstat(directory, &st) != 0)
        return -1;
    if (st.st_uid != geteuid() || (st.st_mode & S_ISVTX))
        return 0;
    if (!give(directory, st.st_gid, group))
        through &= S_IXOTH; // the directory's own group stays as it was
    return (st.st_mode & through) == through
               ? 0
               : fchmod(directory, (st.st_mode & 07777) | through);
}

// A socket that cannot be given to the group stays ours, which lets nobody in.
static int open_door(int directory, const char *name, bool everybody,
                     struct config_error *err)
{
    gid_t group = client_group();
    struct stat st;

    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        group = (gid_t)-1;
    else if (group != (gid_t)-1 && st.st_gid != group &&
             fchownat(directory, name, (uid_t)-1, group, AT_SYMLINK_NOFOLLOW) != 0)
        group = (gid_t)-1;
    if (fchmodat(directory, name, everybody ? 0666 : 0660, 0) == 0 &&
        open_directory(directory, everybody, group) == 0)
        return 0;
    return endpoint_refuse(err, errno,
                           "operators.socket: the mode of %s or its directory cannot be "
                           "set: %s; choose another path",
                           name, strerror(errno));
}

// ---- the socket ----------------------------------------------------------------------

static int listen_at(struct control_endpoint *e, const struct sockaddr_un *a,
                     struct config_error *err)
{
    struct stat st;

    e->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    // The mode that the name gets: nobody else connects before open_door says so.
    if (e->fd < 0 || fchmod(e->fd, 0600) != 0 ||
        bind(e->fd, (const struct sockaddr *)a, sizeof *a) != 0 ||
        lstat(a->sun_path, &st) != 0 || listen(e->fd, CONTROL_BACKLOG) != 0)
        return endpoint_refuse(err, errno,
                               "operators.socket: %s cannot be made: %s; check its "
                               "directory, or choose another path",
                               a->sun_path, strerror(errno));
    e->device = st.st_dev;
    e->inode = st.st_ino;
    snprintf(e->path, sizeof e->path, "%s", a->sun_path);
    return 0;
}

int control_endpoint_open(struct control_endpoint *out, const char *path, bool everybody,
                          struct config_error *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char directory[108];
    int fd, r;

    *out = (struct control_endpoint){.fd = -1};
    if (*path != '/' || strlen(path) >= sizeof a.sun_path)
        return endpoint_refuse(err, EINVAL,
                               "operators.socket: '%.120s': expected an absolute path of "
                               "at most 107 bytes",
                               path);
    memcpy(a.sun_path, path, strlen(path));
    directory_of(path, directory);
    fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    r = check_directory(fd, directory, err);
    if (r == 0)
        r = make_room(&a, err);
    if (r == 0)
        r = listen_at(out, &a, err);
    if (r == 0)
        r = open_door(fd, strrchr(path, '/') + 1, everybody, err);
    if (r != 0)
        control_endpoint_close(out);
    if (fd >= 0)
        close(fd);
    return r;
}

void control_endpoint_close(struct control_endpoint *e)
{
    struct stat st;

    if (e->path[0] && lstat(e->path, &st) == 0 && st.st_dev == e->device &&
        st.st_ino == e->inode)
        unlink(e->path);
    if (e->fd >= 0)
        close(e->fd);
    *e = (struct control_endpoint){.fd = -1};
}
