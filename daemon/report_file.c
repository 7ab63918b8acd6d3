// report_file: a page comes into being whole, or not at all. What is no ordinary file (a terminal, a
// pipe) is written to as it is: it must not be replaced by a file.
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/report_impl.h"

static int write_and_close(FILE *f, void (*write_page)(FILE *f, void *arg), void *arg)
{
    int rc = 0;
    write_page(f, arg);
    if (fflush(f) != 0 || ferror(f))
        rc = errno ? -errno : -EIO;
    if (fclose(f) != 0 && rc == 0)
        rc = -errno;
    return rc;
}

int report_to_file(const char *path, void (*write_page)(FILE *f, void *arg), void *arg)
{
    struct stat st;
    char part[4200];
    bool device = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    if (snprintf(part, sizeof part, "%s%s", path, device ? "" : ".part") >=
        (int)sizeof part)
        return -ENAMETOOLONG;
    FILE *f = fopen(part, "we");
    if (!f)
        return -errno;
    int rc = write_and_close(f, write_page, arg);
    if (device)
        return rc;
    if (rc == 0 && rename(part, path) != 0)
        rc = -errno;
    if (rc)
        unlink(part);
    return rc;
}
