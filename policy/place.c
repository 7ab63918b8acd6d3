// place: see the header.
#include "policy/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "policy/refuse.h"

static int check_owner(const struct place_file *f, struct policy_error *err)
{
    if (f->stat.st_uid != 0 && f->stat.st_uid != geteuid())
        return refuse(
            err, EINVAL,
            "%s belongs to user %u: give it to root or to user %u, who runs this "
            "(chown)",
            f->shown, f->stat.st_uid, geteuid());
    if (f->stat.st_mode & (S_IWGRP | S_IWOTH))
        return refuse(err, EINVAL,
                      "%s can be written by others than its owner: take that away "
                      "(chmod go-w)",
                      f->shown);
    return 0;
}

static int check(struct place_file *f, bool strict, struct policy_error *err)
{
    if (fstat(f->fd, &f->stat) < 0)
        return refuse(err, errno, "cannot stat %s: %s", f->shown, strerror(errno));
    if (!S_ISREG(f->stat.st_mode))
        return refuse(err, EINVAL, "%s is not a regular file", f->shown);
    return strict ? check_owner(f, err) : 0;
}

// out->shown is in place.
static int open_at(struct place_file *out, const char *path, bool strict,
                   struct policy_error *err)
{
    // O_NONBLOCK: opening a FIFO that somebody put there must not hang the start.
    int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (strict ? O_NOFOLLOW : 0);
    int rc;
    out->fd = open(path, flags);
    if (out->fd < 0 && errno == ELOOP && strict)
        return refuse(err, ELOOP,
                      "%s is a symbolic link, which is not followed here: put the file "
                      "itself in its place",
                      out->shown);
    if (out->fd < 0)
        return refuse(err, errno, "cannot open %s: %s", out->shown, strerror(errno));
    rc = check(out, strict, err);
    if (rc) {
        close(out->fd);
        out->fd = -1;
    }
    return rc;
}

int place_open(struct place_file *out, const struct place *p, const char *file,
               struct policy_error *err)
{
    char path[768];
    *out = (struct place_file){.fd = -1};
    snprintf(out->shown, sizeof out->shown, "%s/%s", p->shown ? p->shown : p->dir, file);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", p->dir, file) >= sizeof path)
        return refuse(err, ENAMETOOLONG, "the path of %s is longer than %zu bytes", file,
                      sizeof path - 1);
    return open_at(out, path, p->strict, err);
}

int place_open_path(struct place_file *out, const char *path, struct policy_error *err)
{
    *out = (struct place_file){.fd = -1};
    snprintf(out->shown, sizeof out->shown, "%s", path);
    return open_at(out, path, false, err);
}
