// The bridge at the control socket: asks for the status again and again, and never waits for it.
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/bridge.h"

static void hang_up(struct bridge_ask *a)
{
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
    a->asked = false;
}

static bool dial(struct bridge_ask *a, const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof to.sun_path)
        return false;
    memcpy(to.sun_path, path, strlen(path) + 1);
    a->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (a->fd >= 0 && connect(a->fd, (struct sockaddr *)&to, sizeof to) == 0)
        return true;
    a->denied = errno == EACCES || errno == EPERM;
    hang_up(a);
    return false;
}

void bridge_ask(struct bridge_ask *a, const char *path)
{
    // ControlRequest{id: 1, verb: VERB_STATUS}
    static const unsigned char question[] = {0x08, 1, 0x10, 1};

    if (a->denied || (a->fd < 0 && !dial(a, path)) || a->asked)
        return;
    a->asked = send(a->fd, question, sizeof question, MSG_NOSIGNAL) == sizeof question;
    if (!a->asked)
        hang_up(a);
}

// ---- the answer ------------------------------------------------------------------------------

static bool varint(const unsigned char **at, const unsigned char *end, uint64_t *out)
{
    uint64_t v = 0;

    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        unsigned char byte = *(*at)++;

        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = v;
            return true;
        }
    }
    return false;
}

// ControlReply.status is field 4 and bytes; what stands before it is passed over.
const void *bridge_status_of(const void *packet, size_t n, size_t *size)
{
    const unsigned char *at = packet, *end = at + n;
    uint64_t tag, v;

    while (at < end) {
        if (!varint(&at, end, &tag) || !varint(&at, end, &v))
            return NULL;
        if ((tag & 7) == 0)
            continue;
        if ((tag & 7) != 2 || v > (uint64_t)(end - at))
            return NULL;
        if (tag >> 3 == 4) {
            *size = (size_t)v;
            return at;
        }
        at += v;
    }
    return NULL;
}

bool bridge_stamp(const void *data, size_t size, int64_t *wall_ns)
{
    const unsigned char *at = data, *end = at + size;
    uint64_t n, tag, v, seconds = 0, nanos = 0;

    if (size < 2 || *at++ != 0x0a || !varint(&at, end, &n) || n > (uint64_t)(end - at))
        return false;
    for (end = at + n; at < end;) {
        if (!varint(&at, end, &tag) || !varint(&at, end, &v))
            return false;
        if (tag == 0x08)
            seconds = v;
        else if (tag == 0x10)
            nanos = v;
        else
            return false;
    }
    if (seconds == 0 || seconds > INT64_MAX / 1000000000 || nanos > 999999999)
        return false;
    *wall_ns = (int64_t)(seconds * 1000000000 + nanos);
    return true;
}

const void *bridge_answer(struct bridge_ask *a, size_t *size)
{
    const void *status;
    ssize_t n;

    if (a->fd < 0)
        return NULL;
    n = recv(a->fd, a->reply, sizeof a->reply, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return NULL;
    a->asked = false;
    if (n <= 0) {
        hang_up(a);
        return NULL;
    }
    status = bridge_status_of(a->reply, (size_t)n, size);
    // Field 2, the result: 4 is DENIED, and asking again would change nothing.
    for (ssize_t i = 0; !status && i + 1 < n && i < 4; i++)
        a->denied |= a->reply[i] == 0x10 && a->reply[i + 1] == 4;
    return status;
}
