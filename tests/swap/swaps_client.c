// A client of the control socket that knows nothing but proto/actd/v1/control.proto.
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/swap/swaps.h"

#define REPLY_MAX   (256 * 1024)
#define PATIENCE_MS 60000

int swaps_connect(struct swaps_client *c, const char *socket_path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    c->id = 0;
    c->buffer = malloc(REPLY_MAX);
    c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", socket_path);
    if (c->buffer && c->fd >= 0 && connect(c->fd, (struct sockaddr *)&a, sizeof a) == 0)
        return 0;
    swaps_disconnect(c);
    return -ECONNREFUSED;
}

void swaps_disconnect(struct swaps_client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    free(c->buffer);
    c->buffer = NULL;
}

// protobuf-c reads them only.
static char *unconst(const char *text)
{
    return (char *)(uintptr_t)text;
}

int swaps_send(struct swaps_client *c, const struct swaps_ask *ask)
{
    Actd__V1__ControlRequest m;
    char *allow[1];
    uint8_t bytes[8192];

    actd__v1__control_request__init(&m);
    m.id = ++c->id;
    m.verb = ask->verb;
    m.force = ask->force;
    allow[0] = unconst(ask->allow);
    m.allow = allow;
    m.n_allow = ask->allow != NULL;
    if (ask->name)
        m.name = unconst(ask->name);
    if (actd__v1__control_request__get_packed_size(&m) > sizeof bytes)
        return -EMSGSIZE;
    if (send(c->fd, bytes, actd__v1__control_request__pack(&m, bytes), MSG_NOSIGNAL) < 0)
        return -errno;
    return 0;
}

Actd__V1__ControlReply *swaps_receive(struct swaps_client *c, int timeout_ms)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    ssize_t n;

    if (c->fd < 0 || poll(&p, 1, timeout_ms) <= 0)
        return NULL;
    n = recv(c->fd, c->buffer, REPLY_MAX, 0);
    return n <= 0 ? NULL : actd__v1__control_reply__unpack(NULL, (size_t)n, c->buffer);
}

void swaps_free_reply(Actd__V1__ControlReply *m)
{
    if (m)
        actd__v1__control_reply__free_unpacked(m, NULL);
}

Actd__V1__ControlReply *swaps_do(struct swaps_client *c, const struct swaps_ask *ask)
{
    for (int again = 0; again < 100; again++) {
        Actd__V1__ControlReply *m;

        if (swaps_send(c, ask) != 0)
            return NULL;
        while ((m = swaps_receive(c, PATIENCE_MS)) &&
               m->result == ACTD__V1__RESULT__RESULT_PROGRESS)
            swaps_free_reply(m);
        if (!m || m->result != ACTD__V1__RESULT__RESULT_RATE_LIMITED)
            return m;
        swaps_free_reply(m);
        clock_sleep_until(clock_now_ns() + 50 * NS_PER_MS);
    }
    return NULL;
}
