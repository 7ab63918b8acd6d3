#include "daemon/out_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int out_path_real(const char *path, char **real)
{
    struct stat st;

    *real = NULL;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return -EINVAL;
    *real = realpath(path, NULL);
    if (!*real) // not there yet, or a link to nothing
        *real = strdup(path);
    return *real ? 0 : -ENOMEM;
}

int out_path_temporary(const char *real, mode_t mode, char **name)
{
    mode_t mask = umask(0);
    int fd, rc;

    umask(mask);
    if (asprintf(name, "%s.XXXXXX", real) < 0) {
        *name = NULL;
        return -ENOMEM;
    }
    fd = mkostemp(*name, O_CLOEXEC);
    if (fd >= 0) {
        (void)fchmod(fd, mode & ~mask);
        return fd;
    }
    rc = -errno;
    free(*name);
    *name = NULL;
    return rc;
}

int out_path_spares(const char *path, const struct logbook *book, struct mcap_error *err)
{
    struct stat out, in;

    if (!path || stat(path, &out) != 0)
        return 0;
    for (int i = 0; i < logbook_files(book); i++) {
        if (stat(logbook_path(book, i), &in) != 0 || in.st_dev != out.st_dev ||
            in.st_ino != out.st_ino)
            continue;
        snprintf(err->text, sizeof err->text,
                 "%.180s is the recording itself, which would be lost: name another file",
                 path);
        return -EEXIST;
    }
    return 0;
}
