// Packets in and out of one session. One request in a turn, so that nobody's turn is
// long.
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/control_impl.h"

#define DRAIN 16 // packets read before closing

const struct bucket_rate control_rate = {NS_PER_S / 50, 100};

void control_close(struct control_session *s)
{
    if (s->fd >= 0)
        close(s->fd);
    *s = (struct control_session){.fd = -1};
}

// ---- out -----------------------------------------------------------------------------

// Field 4 as it is: whoever made it has packed it already.
static size_t append_status(uint8_t *out, const uint8_t *status, size_t n)
{
    size_t at = 0, left = n;

    out[at++] = 4 << 3 | 2;
    for (; left > 0x7f; left >>= 7)
        out[at++] = (uint8_t)(left | 0x80);
    out[at++] = (uint8_t)left;
    memcpy(out + at, status, n);
    return at + n;
}

void control_reply(Actd__V1__ControlReply *m, uint64_t id, Actd__V1__Result result)
{
    actd__v1__control_reply__init(m);
    m->id = id;
    m->result = result;
}

void control_send(struct control *c, struct control_session *s,
                  const Actd__V1__ControlReply *m, const uint8_t *status, size_t n)
{
    size_t size = actd__v1__control_reply__get_packed_size(m);
    Actd__V1__ControlReply instead;

    if (size + n + 8 > sizeof c->reply) {
        static char long_text[] = "the reply would be longer than 256 KiB";
        control_reply(&instead, m->id, ACTD__V1__RESULT__RESULT_FAILED);
        instead.text = long_text;
        m = &instead;
        status = NULL;
    }
    size = actd__v1__control_reply__pack(m, c->reply);
    if (status)
        size += append_status(c->reply + size, status, n);
    if (send(s->fd, c->reply, size, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)size)
        control_close(s);
}

void control_answer(struct control *c, struct control_session *s, uint64_t id,
                    Actd__V1__Result result, const char *text)
{
    Actd__V1__ControlReply m;

    control_reply(&m, id, result);
    m.text = (char *)(uintptr_t)text; // protobuf-c takes char * but only reads it
    control_send(c, s, &m, NULL, 0);
}

// Closing a socket in which something is unread resets the peer, which may then not see
// the answer. So: nothing more comes in, what is there is read, and the answer bears its
// id.
void control_dismiss(struct control *c, struct control_session *s, uint64_t id,
                     Actd__V1__Result result, const char *text)
{
    struct control_request r;
    const char *why;

    (void)shutdown(s->fd, SHUT_RD);
    for (int i = 0; i < DRAIN; i++) {
        ssize_t n = recv(s->fd, c->packet, sizeof c->packet, MSG_DONTWAIT);

        if (n <= 0)
            break;
        if (id == 0 && control_request_parse(&r, c->packet, (size_t)n, &why) == 0)
            id = r.id;
    }
    control_answer(c, s, id, result, text);
    control_close(s);
}

// ---- in ------------------------------------------------------------------------------

// Requests cost what they make us do: findings look at some fifty files, a list of
// policies at every directory.
static int price(Actd__V1__Verb verb)
{
    return verb == ACTD__V1__VERB__VERB_DOCTOR     ? 20
           : verb == ACTD__V1__VERB__VERB_POLICIES ? 10
           : verb == ACTD__V1__VERB__VERB_METRICS  ? 2
                                                   : 1;
}

// Not listened to until it may ask again: a flood is answered 50 times a second, not
// more. Who may act is never deaf for longer than that: the next may be a stop.
static void too_often(struct control *c, struct control_session *s, int tokens, ns_t now)
{
    struct bucket *b = buckets_of(&c->users, s->peer.uid, now);
    ns_t wait = bucket_wait(b, &control_rate, tokens, now);

    if (wait < control_rate.per_token_ns || s->right == ACCESS_ACT)
        wait = control_rate.per_token_ns;
    s->deaf_ns = now + wait;
    control_answer(c, s, s->asked.id, ACTD__V1__RESULT__RESULT_RATE_LIMITED,
                   "more than 50 requests in a second: not done; ask less often");
}

// Who has hung up since has been told nothing, and does not expect the arm to move; a stop is
// done for anybody who may.
static bool left(const struct control_session *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLRDHUP};

    return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static void handle(struct control *c, struct control_session *s, ns_t now)
{
    Actd__V1__Verb verb = s->asked.verb;
    bool may = s->right == ACCESS_ACT || !control_acts(verb);
    bool granted = bucket_take(buckets_of(&c->users, s->peer.uid, now), &control_rate,
                               price(verb), now);

    // To come to rest is never asked too often, by those who may.
    if (control_acts(verb) && !control_stops(verb) && left(s)) {
        control_close(s);
    } else if (!granted && !(may && control_stops(verb))) {
        too_often(c, s, price(verb), now);
    } else if (may) {
        control_do(c, s, now);
    } else {
        control_say(&c->denied, now, LOG_WARN, "user %u (process %d) was denied %s",
                    s->peer.uid, (int)s->peer.pid, control_verb_name(verb));
        control_answer(c, s, s->asked.id, ACTD__V1__RESULT__RESULT_DENIED,
                       "this user may look, but not act: name the user or one of their "
                       "groups in operators.act, and start actd again");
    }
}

static void receive(struct control *c, struct control_session *s, ns_t now)
{
    const char *why;
    ssize_t n = recv(s->fd, c->packet, sizeof c->packet, MSG_DONTWAIT | MSG_TRUNC);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <=
        0) { // gone; an empty packet looks the same, and nobody has reason to send one
        control_close(s);
        return;
    }
    s->heard_ns = now;
    if (control_request_parse(&s->asked, c->packet,
                              (size_t)n < sizeof c->packet ? (size_t)n : sizeof c->packet,
                              &why) == 0 &&
        (size_t)n <= sizeof c->packet) {
        handle(c, s, now);
        return;
    }
    why = (size_t)n > sizeof c->packet ? "a request has at most 4096 bytes" : why;
    control_dismiss(c, s, s->asked.id, ACTD__V1__RESULT__RESULT_INVALID, why);
}

void control_session_turn(struct control *c, struct control_session *s, ns_t now)
{
    if (s->waits == CONTROL_WAITS_LOOP)
        control_act_look(c, s, now);
    else if (s->waits == CONTROL_WAITS_SWAP)
        control_swap_look(c, s, now);
    else if (s->waits == CONTROL_WAITS_MARK)
        control_mark_look(c, s, now);
    else if (now - s->heard_ns >= CONTROL_IDLE_NS)
        control_close(s);
    else if (now >= s->deaf_ns)
        receive(c, s, now);
}
