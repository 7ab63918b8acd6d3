// doctor_read: small files below /proc and /sys.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/doctor_impl.h"

static int slurp(int fd, char *out)
{
    size_t n = 0;
    ssize_t got;

    do {
        got = read(fd, out + n, DOCTOR_FILE - 1 - n);
        if (got < 0 && errno != EINTR)
            return -errno;
        n += got > 0 ? (size_t)got : 0;
    } while (got != 0 && n < DOCTOR_FILE - 1);
    while (n > 0 && strchr(" \t\r\n", out[n - 1]))
        n--;
    out[n] = '\0';
    return (int)n;
}

// Non-blocking: in a made-up tree a name could be a pipe.
int doctor_read(const struct doctor *d, char *out, const char *format, ...)
{
    char path[CONFIG_PATH * 2];
    int n = snprintf(path, sizeof path, "%s", d->m->root), fd, rc;
    va_list ap;

    out[0] = '\0';
    va_start(ap, format);
    n += vsnprintf(path + n, sizeof path - (size_t)n, format, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof path)
        return -ENAMETOOLONG;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    rc = slurp(fd, out);
    close(fd);
    return rc;
}

bool doctor_is_there(const struct doctor *d, const char *path)
{
    char whole[CONFIG_PATH * 2];

    snprintf(whole, sizeof whole, "%s%s", d->m->root, path);
    return access(whole, F_OK) == 0;
}

bool doctor_number(const struct doctor *d, const char *path, long long *out)
{
    char text[DOCTOR_FILE], *end;

    if (doctor_read(d, text, "%s", path) <= 0)
        return false;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0;
}

bool doctor_listed(const char *list, int cpu)
{
    while (*list >= '0' && *list <= '9') {
        char *end;
        long first = strtol(list, &end, 10), last = first;

        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (cpu >= first && cpu <= last)
            return true;
        list = *end == ',' ? end + 1 : end;
    }
    return false;
}
