// A disk that is full, broken or slow, for whatever lies in a directory called record:
//
//   LD_PRELOAD=record-disk.so RECORD_DISK=FILE actd …
//
// FILE holds struct disk_orders, and can be changed while it runs.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tests/record/disk.h"

static const struct disk_orders *orders;

__attribute__((constructor)) static void begin(void)
{
    const char *file = getenv("RECORD_DISK");
    int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
    void *p =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *orders, PROT_READ, MAP_SHARED, fd, 0);

    orders = p == MAP_FAILED ? NULL : p;
    if (fd >= 0)
        close(fd);
}

static int is_recording(int fd)
{
    char link[64], path[4096];
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return strstr(path, "/record/") != NULL;
}

// 0, or the error that there is now.
static int suffer(int fd)
{
    int ms, rc;

    if (!orders || !is_recording(fd))
        return 0;
    ms = __atomic_load_n(&orders->sleep_ms, __ATOMIC_RELAXED);
    rc = __atomic_load_n(&orders->error, __ATOMIC_RELAXED);
    if (ms > 0)
        nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
    return rc;
}

static ssize_t write_to_full(ssize_t (*next)(int, const struct iovec *, int),
                             const struct iovec *v, int n)
{
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    ssize_t done = next(full, v, n);
    int rc = errno;

    if (full >= 0)
        close(full);
    errno = rc;
    return done;
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
    static ssize_t (*next)(int, const struct iovec *, int);
    int rc = suffer(fd);

    if (!next)
        next = (ssize_t(*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev");
    if (rc == 0)
        return next(fd, v, n);
    if (rc == ENOSPC) // by the kernel's own full disk
        return write_to_full(next, v, n);
    errno = rc;
    return -1;
}

int fdatasync(int fd)
{
    static int (*next)(int);
    int rc = suffer(fd);

    if (!next)
        next = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    if (rc == 0 || rc == ENOSPC) // what is written is written
        return next(fd);
    errno = rc;
    return -1;
}
