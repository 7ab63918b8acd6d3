// ytree_file: from a path to bytes. A configuration decides where an arm may go, so who
// may write it matters as much as what it says.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/ytree.h"

static int no(struct config_error *err, int code, const char *file, const char *what)
{
    snprintf(err->text, sizeof err->text, "%.500s: %s", file, what);
    return -code;
}

// Whom `sudo` runs us for: his own files are as good as root's.
static bool is_sudo_user(uid_t uid)
{
    const char *s = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
    char *end;

    if (!s || *s < '0' || *s > '9')
        return false;
    unsigned long id = strtoul(s, &end, 10);
    return !*end && id == uid;
}

// Root in a checkout or a container's bind mount that belongs to the person who works there:
// whoever owns the directory that root chose to stand in is trusted with the files in it. A
// service stands in /.
static bool owns_here(uid_t uid)
{
    struct stat here;
    return geteuid() == 0 && stat(".", &here) == 0 && here.st_uid == uid;
}

static int check_owner(const struct stat *st, const char *file, struct config_error *err)
{
    if (!S_ISREG(st->st_mode))
        return no(err, EINVAL, file, "not a regular file; name a YAML file");
    if (st->st_mode & S_IWOTH)
        return no(err, EINVAL, file,
                  "everybody may write this file; run chmod o-w on it");
    if (st->st_uid != 0 && st->st_uid != geteuid() && !is_sudo_user(st->st_uid) &&
        !owns_here(st->st_uid))
        return no(err, EINVAL, file,
                  "the file belongs to another user; chown it to root or to the user who "
                  "runs actd");
    return 0;
}

// One byte more than allowed is read, so that ytree_parse sees an oversize file as one.
static int read_all(int fd, char *buf, size_t size, size_t *n)
{
    for (*n = 0; *n < size;) {
        ssize_t got = read(fd, buf + *n, size - *n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            return 0;
        *n += (size_t)got;
    }
    return 0;
}

int ytree_read(char **text, size_t *n, const char *file, struct config_error *err)
{
    size_t size = YTREE_MAX_BYTES + 1;
    struct stat st;
    int rc, fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    *text = NULL;
    *n = 0;
    if (fd < 0) {
        rc = errno;
        return no(err, rc, file, strerror(rc));
    }
    if (fstat(fd, &st) != 0)
        rc = no(err, errno, file, "cannot be examined");
    else
        rc = check_owner(&st, file, err);
    if (rc)
        goto out;
    *text = calloc(1, size + 1);
    rc = *text ? read_all(fd, *text, size, n) : -ENOMEM;
    if (rc)
        no(err, -rc, file, strerror(-rc));
out:
    if (rc) {
        free(*text);
        *text = NULL;
    }
    close(fd);
    return rc;
}

int ytree_load(struct ytree **out, const char *file, struct config_error *err)
{
    char *text;
    size_t n;
    int rc = ytree_read(&text, &n, file, err);

    if (rc)
        return rc;
    rc = ytree_parse(out, file, text, n, err);
    free(text);
    return rc;
}
