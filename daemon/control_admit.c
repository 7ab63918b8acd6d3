// Who is let in. In order: what the configuration gives him, how often he came, whether
// there is room. Each refusal is a reply that says what to do, as long as that costs
// little.
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/control_impl.h"

#define ACCEPTS CONTROL_BACKLOG   // in one turn, some 3 ms,
#define REST_NS (20 * NS_PER_MS)  // after that, nobody is let in for so long
#define POOR_NS (100 * NS_PER_MS) // the same when descriptors or memory are short
// A reply of 256 KiB must fit in one packet. The kernel doubles it, and allows at least
// this much everywhere (net.core.wmem_max is 212992 unless somebody lowered it).
#define SEND_BUFFER 212992

// ---- room ----------------------------------------------------------------------------

struct census {
    int used, of_user;
    struct control_session *free,
        *idlest; // idlest: of the least right, heard longest ago
};

static bool is_idler(const struct control_session *s, const struct control_session *than)
{
    return !than || s->right < than->right ||
           (s->right == than->right && s->heard_ns < than->heard_ns);
}

// own: only sessions of this user may give way.
static struct census count(struct control *c, uid_t uid, bool own)
{
    struct census n = {0};

    for (int i = 0; i < CONTROL_SESSIONS; i++) {
        struct control_session *s = &c->session[i];

        if (s->fd < 0) {
            n.free = n.free ? n.free : s;
            continue;
        }
        n.used++;
        n.of_user += s->peer.uid == uid;
        if (s->waits == CONTROL_READY && (!own || s->peer.uid == uid) &&
            is_idler(s, n.idlest))
            n.idlest = s;
    }
    return n;
}

// A free session, or NULL. Those who may act get in as long as any session waits for
// nothing.
static struct control_session *find_room(struct control *c, uid_t uid,
                                         enum access_right right)
{
    struct census n = count(c, uid, false);
    bool own = n.of_user >= CONTROL_PER_USER;

    if (right < ACCESS_ACT)
        return own || n.used >= CONTROL_SESSIONS - 1 ? NULL : n.free;
    if (!own && n.free)
        return n.free;
    n = count(c, uid, own);
    if (!n.idlest)
        return NULL;
    control_dismiss(c, n.idlest, 0, ACTD__V1__RESULT__RESULT_BUSY,
                    "this session gave way to a newer one: at most 4 of one user, 16 in "
                    "all");
    return n.idlest;
}

// ---- refusals ------------------------------------------------------------------------

static void turn_away(struct control *c, int fd, Actd__V1__Result result,
                      const char *text)
{
    struct control_session guest = {.fd = fd};

    control_dismiss(c, &guest, 0, result, text);
}

static void deny(struct control *c, int fd, const struct access_peer *peer, ns_t now)
{
    if (!bucket_take(&c->strangers, &control_rate, 1, now)) {
        close(fd); // a flood: no word, no line
        return;
    }
    control_say(&c->denied, now, LOG_WARN,
                "user %u (process %d) was denied: neither operators.read nor "
                "operators.act names that user or a group of theirs",
                peer->uid, (int)peer->pid);
    snprintf(c->text, sizeof c->text,
             "user %u may not talk to this actd: name the user or one of their groups in "
             "operators.read (to look) or operators.act (to act), and start it again",
             peer->uid);
    turn_away(c, fd, ACTD__V1__RESULT__RESULT_DENIED, c->text);
}

// ---- one who knocks ------------------------------------------------------------------

static void let_in(struct control *c, int fd, ns_t now)
{
    struct access_peer peer;
    enum access_right right;
    struct control_session *s;
    const int size = SEND_BUFFER;

    if (access_look(&c->access, fd, &peer, &right) != 0) {
        close(fd);
        return;
    }
    if (right == ACCESS_NONE) {
        deny(c, fd, &peer, now);
        return;
    }
    // Who comes to stop the arm must not be told that he comes too often.
    if (right < ACCESS_ACT &&
        !bucket_take(buckets_of(&c->users, peer.uid, now), &control_rate, 1, now)) {
        turn_away(c, fd, ACTD__V1__RESULT__RESULT_RATE_LIMITED,
                  "more than 50 connections and requests in a second: ask less often");
        return;
    }
    s = find_room(c, peer.uid, right);
    if (!s) {
        turn_away(c, fd, ACTD__V1__RESULT__RESULT_BUSY,
                  "every session is taken (4 of one user, 16 in all): close one, or ask "
                  "again later");
        return;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    *s =
        (struct control_session){.fd = fd, .peer = peer, .right = right, .heard_ns = now};
}

void control_admit(struct control *c, ns_t now)
{
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept4(c->endpoint.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            let_in(c, fd, now);
        } else {
            bool poor = errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
            c->accept_ns = poor ? now + POOR_NS : 0;
            return;
        }
    }
    c->accept_ns = now + REST_NS;
}
