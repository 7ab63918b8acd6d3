// mcap_read_bytes: see mcap_read_impl.h.
#include "daemon/mcap_read_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW ((size_t)256 << 10) // one pread for some thousand small records

int mcap_fail(struct mcap_error *err, int rc, const char *format, ...)
{
    va_list a;

    if (!err)
        return rc;
    va_start(a, format);
    vsnprintf(err->text, sizeof err->text, format, a);
    va_end(a);
    return rc;
}

struct mcap_limits mcap_limits_of(const struct mcap_limits *given)
{
    struct mcap_limits l = given ? *given : (struct mcap_limits){0};

    if (l.chunk_bytes == 0)
        l.chunk_bytes = (size_t)256 << 20;
    if (l.record_bytes == 0)
        l.record_bytes = (size_t)64 << 20;
    if (l.index_bytes == 0)
        l.index_bytes = (size_t)256 << 20;
    return l;
}

uint64_t mcap_take(struct mcap_in *in, size_t bytes)
{
    const unsigned char *p = mcap_take_bytes(in, bytes);
    uint64_t v = 0;

    for (size_t i = 0; p && i < bytes; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

const unsigned char *mcap_take_bytes(struct mcap_in *in, uint64_t n)
{
    const unsigned char *p = in->p;

    if (in->bad || n > in->left) {
        in->bad = true;
        in->left = 0;
        return NULL;
    }
    in->p = n > 0 ? p + n : p; // an empty record may be at no address at all
    in->left -= n;
    return p;
}

struct mcap_text mcap_take_text(struct mcap_in *in)
{
    uint64_t n = mcap_take(in, 4);
    const char *s = (const char *)mcap_take_bytes(in, n);

    if (s && memchr(s, 0, n))
        in->bad = true;
    return in->bad ? (struct mcap_text){"", 0} : (struct mcap_text){s, n};
}

struct mcap_in mcap_take_array(struct mcap_in *in)
{
    uint64_t n = mcap_take(in, 4);
    const unsigned char *p = mcap_take_bytes(in, n);

    return (struct mcap_in){p, p ? n : 0, p == NULL};
}

int mcap_file_open(struct mcap_file *f, const char *path, struct mcap_error *err)
{
    struct stat st;

    // Who opens a FIFO waits for its writer, without this.
    *f = (struct mcap_file){.fd =
                                open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
    if (f->fd < 0) {
        int rc = -errno;
        return mcap_fail(err, rc, "%s: %s", path, strerror(-rc));
    }
    if (fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        mcap_file_close(f);
        return mcap_fail(err, -EINVAL, "%s is no regular file; name a .mcap file", path);
    }
    f->size = (uint64_t)st.st_size;
    return 0;
}

void mcap_file_close(struct mcap_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->window);
    *f = (struct mcap_file){.fd = -1};
}

static int fill(struct mcap_file *f, uint64_t at, size_t n, struct mcap_error *err)
{
    f->at = at;
    f->have = 0;
    while (f->have < n) {
        uint64_t where = at + f->have;
        ssize_t got = pread(f->fd, f->window + f->have, n - f->have, (off_t)where);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int rc = -errno;
            return mcap_fail(err, rc, "byte %llu cannot be read: %s",
                             (unsigned long long)where, strerror(-rc));
        }
        if (got == 0)
            return mcap_fail(
                err, -EIO,
                "byte %llu is gone: the file was cut while it was read; open "
                "it again",
                (unsigned long long)where);
        f->have += (size_t)got;
    }
    return 0;
}

int mcap_file_get(struct mcap_file *f, uint64_t at, size_t n, const unsigned char **out,
                  struct mcap_error *err)
{
    if (at > f->size || n > f->size - at)
        return mcap_fail(err, -EBADMSG, "byte %llu lies beyond the end of the file",
                         (unsigned long long)at);
    if (at < f->at || at - f->at > f->have || n > f->have - (at - f->at)) {
        size_t want = n > WINDOW ? n : WINDOW;
        if (want > f->size - at)
            want = (size_t)(f->size - at);
        if (want > f->capacity) {
            unsigned char *p = realloc(f->window, want);
            if (!p)
                return mcap_fail(err, -ENOMEM, "no memory for %zu bytes", want);
            f->window = p;
            f->capacity = want;
        }
        int rc = fill(f, at, want, err);
        if (rc != 0)
            return rc;
    }
    *out = n ? f->window + (at - f->at) : (const unsigned char *)"";
    return 0;
}

int mcap_file_crc(struct mcap_file *f, uint64_t from, uint64_t to, uint32_t *crc,
                  struct mcap_error *err)
{
    for (uint64_t n; from < to; from += n) {
        const unsigned char *p = NULL;
        n = to - from < WINDOW ? to - from : WINDOW;
        int rc = mcap_file_get(f, from, (size_t)n, &p, err);
        if (rc != 0)
            return rc;
        *crc = mcap_crc(*crc, p, (size_t)n);
    }
    return 0;
}
