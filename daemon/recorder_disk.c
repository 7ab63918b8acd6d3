// The real disk.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/recorder_parts.h"

#define MODE_FILE 0640
#define PIECES    64 // of one writev here; the writer uses fewer

static int open_new(void *arg, int dir, const char *name)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    MODE_FILE);

    (void)arg;
    return fd >= 0 ? fd : -errno;
}

// Forgets the first `done` bytes. Returns how many pieces are whole behind it.
static int advance(struct iovec *v, int n, size_t done)
{
    int i = 0;

    while (i < n && done >= v[i].iov_len)
        done -= v[i++].iov_len;
    if (i < n) {
        v[i].iov_base = (char *)v[i].iov_base + done;
        v[i].iov_len -= done;
    }
    memmove(v, v + i, (size_t)(n - i) * sizeof *v);
    return n - i;
}

// One writev, but for what the kernel cuts short: a full disk does, and says so at the next.
static int write_all(void *arg, int fd, const struct iovec *given, int n)
{
    struct iovec v[PIECES];
    off_t from = lseek(fd, 0, SEEK_CUR);

    (void)arg;
    if (n > PIECES)
        return -EINVAL;
    memcpy(v, given, (size_t)n * sizeof *v);
    n = advance(v, n, 0);
    while (n > 0) {
        ssize_t done = writev(fd, v, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -EIO;
        n = advance(v, n, (size_t)done);
    }
    // The disk may begin: the fdatasync of this second then has less to wait for.
    if (from >= 0)
        (void)sync_file_range(fd, from, 0, SYNC_FILE_RANGE_WRITE);
    return 0;
}

static int sync_it(void *arg, int fd)
{
    (void)arg;
    // EINVAL, EROFS: a file that can not be synced (/dev/full is no disk).
    return fdatasync(fd) == 0 || errno == EINVAL ? 0 : -errno;
}

static int64_t free_bytes(void *arg, int dir)
{
    struct statvfs s;

    (void)arg;
    if (fstatvfs(dir, &s) != 0 ||
        s.f_bavail > INT64_MAX / (s.f_frsize > 0 ? s.f_frsize : 1))
        return -1;
    return (int64_t)(s.f_bavail * s.f_frsize);
}

const struct recorder_disk recorder_real_disk = {
    .open = open_new, .write = write_all, .sync = sync_it, .free_bytes = free_bytes};
