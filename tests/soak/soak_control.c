// The hand at the control socket: one request at a time, and never a wait, since the robot has to
// go on meanwhile. A session of its own for each, so that none is there when samples are taken.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "actd/v1/control.pb-c.h"
#include "tests/soak/soak.h"

#define ANSWER_NS (5 * NS_PER_S)

static void hang_up(struct soak_control *c)
{
    if (c->asking)
        close(c->fd);
    c->asking = false;
}

int soak_control_ask(struct soak_control *c, const char *runtime, int verb, ns_t now)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    Actd__V1__ControlRequest m;
    uint8_t bytes[64];

    hang_up(c);
    c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0)
        return -errno;
    c->asking = true;
    c->asked_ns = now;
    snprintf(a.sun_path, sizeof a.sun_path, "%.90s/control", runtime);
    actd__v1__control_request__init(&m);
    m.id = 1;
    m.verb = (Actd__V1__Verb)verb;
    if (connect(c->fd, (struct sockaddr *)&a, sizeof a) == 0 &&
        send(c->fd, bytes, actd__v1__control_request__pack(&m, bytes), MSG_NOSIGNAL) > 0)
        return 0;
    hang_up(c);
    return -ECONNREFUSED;
}

enum soak_answer soak_control_look(struct soak_control *c, ns_t now)
{
    uint8_t bytes[4096];
    Actd__V1__ControlReply *m;
    enum soak_answer answer;
    ssize_t n;

    if (!c->asking)
        return SOAK_SILENT;
    n = recv(c->fd, bytes, sizeof bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR) && now - c->asked_ns < ANSWER_NS)
        return SOAK_SILENT;
    hang_up(c);
    m = n > 0 ? actd__v1__control_reply__unpack(NULL, (size_t)n, bytes) : NULL;
    answer = m && m->result == ACTD__V1__RESULT__RESULT_OK ? SOAK_DONE : SOAK_REFUSED;
    snprintf(c->text, sizeof c->text, "%s", m ? m->text : "no answer");
    if (m)
        actd__v1__control_reply__free_unpacked(m, NULL);
    return answer;
}
