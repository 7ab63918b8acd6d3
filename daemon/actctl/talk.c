// talk: see the header.
#include "daemon/actctl/talk.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/actctl/exits.h"
#include "daemon/actctl/text.h"
#include "daemon/clock.h"

int talk_open(struct talk *t, const char *path, bool given, char *why)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    // connect() of a full backlog waits as long as sending may.
    const struct timeval limit = {.tv_sec = TALK_TIMEOUT_MS / 1000};

    *t = (struct talk){.fd = -1};
    snprintf(t->path, sizeof t->path, "%s", path);
    if (strlen(path) >= sizeof a.sun_path)
        return find_explain(path, given, ENAMETOOLONG, why, TALK_WHY);
    memcpy(a.sun_path, path, strlen(path) + 1);
    t->reply = malloc(TALK_REPLY + 1);
    t->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (!t->reply || t->fd < 0 ||
        setsockopt(t->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0 ||
        connect(t->fd, (struct sockaddr *)&a, sizeof a) < 0) {
        int error = errno;
        talk_close(t);
        return find_explain(path, given, error, why, TALK_WHY);
    }
    return 0;
}

void talk_close(struct talk *t)
{
    if (t->fd >= 0)
        close(t->fd);
    free(t->reply);
    t->fd = -1;
    t->reply = NULL;
}

static int fails(const struct talk *t, int status, const char *what, char *why)
{
    snprintf(why, TALK_WHY, "actd at %s %s", text_safe(t->path), what);
    return status;
}

// 0 when a packet, or the end, is there.
static int wait_for(const struct talk *t, ns_t until, char *why)
{
    for (;;) {
        struct pollfd p = {.fd = t->fd, .events = POLLIN};
        ns_t left = until - clock_now_ns();
        int n = poll(&p, 1, left > 0 ? (int)(left / NS_PER_MS + 1) : 0);
        if (n > 0)
            return 0;
        if (n == 0)
            return fails(t, CTL_NO_DAEMON,
                         "does not answer in time, and whether it did what was asked is "
                         "not known: see `systemctl status 'actd@*'`",
                         why);
        if (errno != EINTR)
            return fails(t, CTL_NO_DAEMON, strerror(errno), why);
    }
}

static int take(struct talk *t, Actd__V1__ControlReply **r, char *why)
{
    ssize_t n = recv(t->fd, t->reply, TALK_REPLY + 1, MSG_TRUNC);

    // Who hangs up with our question unread leaves this error before what was said.
    if (n < 0 && errno == ECONNRESET)
        n = recv(t->fd, t->reply, TALK_REPLY + 1, MSG_TRUNC);
    if (n <= 0) // the daemon was ended, or ends a session that asked nothing for 10 s
        return fails(t, CTL_NO_DAEMON,
                     "closed the conversation; it may just have been restarted", why);
    if (n > TALK_REPLY)
        return fails(t, CTL_PROTOCOL,
                     "sent an answer of more than 256 KiB: not actd's protocol", why);
    *r = actd__v1__control_reply__unpack(NULL, (size_t)n, t->reply);
    if (!*r)
        return fails(t, CTL_PROTOCOL, "sent an answer that is not of actd's protocol",
                     why);
    return 0;
}

// Whether this answers our question. Refusals before the question was read have no id.
static bool ours(const struct talk *t, const Actd__V1__ControlReply *r)
{
    return r->id == t->id ||
           (r->id == 0 && r->result > ACTD__V1__RESULT__RESULT_PROGRESS);
}

int talk_more(struct talk *t, int timeout_ms, Actd__V1__ControlReply **r, char *why)
{
    ns_t until = clock_now_ns() + timeout_ms * NS_PER_MS;
    int status;

    *r = NULL;
    for (;;) {
        status = wait_for(t, until, why);
        if (!status)
            status = take(t, r, why);
        if (status || ours(t, *r))
            return status;
        actd__v1__control_reply__free_unpacked(*r,
                                               NULL); // a late one to an older question
        *r = NULL;
    }
}

int talk_ask(struct talk *t, Actd__V1__ControlRequest *q, int timeout_ms,
             Actd__V1__ControlReply **r, char *why)
{
    uint8_t packet[TALK_REQUEST];
    size_t size;

    *r = NULL;
    q->id = ++t->id;
    size = actd__v1__control_request__get_packed_size(q);
    if (size > sizeof packet) {
        snprintf(why, TALK_WHY,
                 "this is too long: a request has at most %d bytes, not %zu",
                 TALK_REQUEST, size);
        return CTL_USAGE;
    }
    actd__v1__control_request__pack(q, packet);
    // Sent to somebody who has hung up: what it said before may still lie there.
    if (send(t->fd, packet, size, MSG_NOSIGNAL) < 0 && errno != EPIPE &&
        errno != ECONNRESET)
        return errno == EAGAIN
                   ? fails(t, CTL_NO_DAEMON,
                           "takes no question: see `systemctl status 'actd@*'`", why)
                   : fails(t, CTL_NO_DAEMON, strerror(errno), why);
    return talk_more(t, timeout_ms, r, why);
}
