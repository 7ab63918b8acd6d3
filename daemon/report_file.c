// report_file: a page comes into being whole, or not at all. What is no ordinary file (a terminal, a
// pipe) is written to as it is: it must not be replaced by a file.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/out_path.h"
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

static int write_device(const char *path, void (*write_page)(FILE *f, void *arg),
                        void *arg)
{
    FILE *f = fopen(path, "we");
    return f ? write_and_close(f, write_page, arg) : -errno;
}

// A signal that comes now ends the program when the page has its name, and leaves no half of it.
static void hold_signals(sigset_t *before)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, before);
}

int report_to_file(const char *path, void (*write_page)(FILE *f, void *arg), void *arg)
{
    char *real, *part = NULL;
    int rc = out_path_real(path, &real);
    if (rc == -EINVAL)
        return write_device(path, write_page, arg);
    sigset_t before;
    hold_signals(&before);
    int fd = rc ? rc : out_path_temporary(real, 0666, &part);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (f)
        rc = write_and_close(f, write_page, arg);
    else if (fd >= 0) {
        rc = -errno;
        close(fd);
    } else
        rc = fd;
    if (rc == 0 && rename(part, real) != 0)
        rc = -errno;
    if (rc && part)
        unlink(part);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(part);
    free(real);
    return rc;
}
