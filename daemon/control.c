// Why AF_UNIX SEQPACKET, and not one more ZeroMQ socket.
//
// The streams of a robot are ZeroMQ: many publishers that come and go, newest wins,
// nobody is asked who he is. A control socket wants the opposite of all that, and a
// ROUTER gives it badly:
//
//   who asks  The kernel answers for a unix socket, groups included (SO_PEERCRED,
//             SO_PEERGROUPS). libzmq passes on user, group and process as a string, not
//             the groups a user is in; its filters (ZMQ_IPC_FILTER_*) refuse without a
//             word, while we can say which key of the configuration to change.
//   memory    A ROUTER reads whatever comes into queues of its own, up to a high-water
//             mark of messages, whatever their size, before we see any of it. Here a
//             packet stays in the kernel, charged to its sender, until we ask for it;
//             what is longer than 4096 bytes is cut by recv and never copied.
//   pressure  Whoever asks too often is not read for a while; its packets fill its own
//             socket buffer, and then its send waits. With libzmq the io thread, which
//             runs at real-time priority next to the loop, would read on and throw away.
//   life      One descriptor is one peer: closed is closed, and sessions can be counted.
//             In libzmq a peer is an identity that may have gone.
//   safety    libzmq asserts: what a client sends can end the process (libzmq#3937,
//             #4187). It binds over a living socket and over a regular file. It needs a
//             handshake, which half-open connections never finish.
//
// SEQPACKET instead of STREAM: packets have ends, so there is no half of a request to
// keep and no length to believe. The kernel never delivers a part of one.
//
//        listen ──> control_admit ──> 16 sessions ──> control_session ──> control_do
//          │ who? caps                     ^               │ size, bucket, may he?  │
//          │                               │               v                        │
//          └── DENIED, BUSY <── one reply buffer <─────────┴── reply <──────────────┘
//                                                     loop: request bits, report.answer
//                                                     swap: swap_begin, swap_look
//
// One thread serves everybody. It never waits for a client: every call is non-blocking,
// and a reply that the client's buffer does not take ends the session (a client that
// waits for each reply, as the protocol says, always has room). So there is no queue of
// replies, and memory is what `struct control` has, plus what the kernel holds: at most
// 16 send buffers of 416 KiB. It never waits for the loop either: a session that asked
// the loop something is looked after every millisecond until the answer is there or 200
// ms have gone; then whatever could start a motion is taken back, so that nothing moves
// after its user was told that it failed.
//
// What a flood costs. A user has 50 requests a second, 100 at once (bucket.h); more are
// answered RATE_LIMITED, one in 20 ms and session, and in between that session is not
// read. Connections are let in 512 at a time and every 20 ms; those without any right
// share one bucket of their own and beyond it are closed unanswered. So the thread's work
// is bounded whatever is sent, and a client that behaves is answered within a turn or
// two. The thread is SCHED_OTHER with nice 5: the loop (SCHED_FIFO) and the policy's
// threads come first.
//
// To stop is always allowed to those who may act: DISARM, STOP and ESTOP are done even
// when the user's bucket is empty, and when all sessions are taken the one idle longest
// gives way.
#include "daemon/control.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/control_impl.h"
#include "daemon/endpoint.h"
#include "daemon/rt.h"

static const struct bucket_rate say_rate = {NS_PER_S / 5, 20};

void control_say(struct control_say *s, ns_t now, enum log_level level,
                 const char *format, ...)
{
    char text[900];
    va_list args;

    if (!bucket_take(&s->bucket, &say_rate, 1, now)) {
        s->hidden++;
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (s->hidden > 0)
        log_line(level, "control: %s (%llu lines like it were not written)", text,
                 (unsigned long long)s->hidden);
    else
        log_line(level, "control: %s", text);
    s->hidden = 0;
}

// ---- the thread ----------------------------------------------------------------------

void control_turn(struct control *c, ns_t now)
{
    for (int i = 0; i < CONTROL_SESSIONS; i++)
        if (c->session[i].fd >= 0)
            control_session_turn(c, &c->session[i], now);
    if (now >= c->accept_ns)
        control_admit(c, now);
}

ns_t control_next_ns(const struct control *c, ns_t now)
{
    ns_t next = now + 3600 * NS_PER_S;

    if (c->accept_ns > now && c->accept_ns < next)
        next = c->accept_ns;
    for (int i = 0; i < CONTROL_SESSIONS; i++) {
        const struct control_session *s = &c->session[i];
        ns_t at = s->waits           ? s->look_ns
                  : s->deaf_ns > now ? s->deaf_ns
                                     : s->heard_ns + CONTROL_IDLE_NS;

        if (s->fd >= 0 && at < next)
            next = at;
    }
    return next;
}

// Those that are not listened to are not waited for: what they send, and that they are
// gone, can wait.
static void rest(struct control *c, ns_t now)
{
    struct pollfd p[2 + CONTROL_SESSIONS];
    ns_t wait = control_next_ns(c, now) - now;
    struct timespec t = {.tv_sec = wait > 0 ? wait / NS_PER_S : 0,
                         .tv_nsec = wait > 0 ? wait % NS_PER_S : 0};

    p[0] = (struct pollfd){.fd = c->wake, .events = POLLIN};
    p[1] =
        (struct pollfd){.fd = now < c->accept_ns ? -1 : c->endpoint.fd, .events = POLLIN};
    for (int i = 0; i < CONTROL_SESSIONS; i++) {
        const struct control_session *s = &c->session[i];
        bool heard = s->waits == CONTROL_READY && s->deaf_ns <= now;
        p[2 + i] = (struct pollfd){.fd = heard ? s->fd : -1, .events = POLLIN};
    }
    (void)ppoll(p, 2 + CONTROL_SESSIONS, &t, NULL); // a signal is as good as a packet
}

static void *run(void *arg)
{
    struct control *c = arg;

    while (!atomic_load(&c->stop)) {
        control_turn(c, clock_now_ns());
        rest(c, clock_now_ns());
    }
    return NULL;
}

// ---- start and stop ------------------------------------------------------------------

int control_open(struct control **out, const struct control_source *src,
                 struct config_error *err)
{
    struct control *c = calloc(1, sizeof *c);
    int r;

    *out = NULL;
    if (!c)
        return endpoint_refuse(err, ENOMEM,
                               "no memory for the control socket: free some");
    c->src = *src;
    c->explain = *src->explain;
    c->endpoint.fd = -1;
    for (int i = 0; i < CONTROL_SESSIONS; i++)
        c->session[i].fd = -1;
    c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r = c->wake >= 0
            ? access_resolve(&c->access, src->cfg, geteuid(), err)
            : endpoint_refuse(err, errno, "control: no eventfd: %s", strerror(errno));
    if (r == 0)
        r = control_endpoint_open(&c->endpoint, src->cfg->operators.socket,
                                  !c->access.only_presets, err);
    if (r == 0)
        *out = c;
    else
        control_stop(c);
    return r;
}

int control_start(struct control **out, const struct control_source *src,
                  struct config_error *err)
{
    struct control *c;
    int r = control_open(&c, src, err);

    *out = NULL;
    if (!c) // and only then is r not 0
        return r;
    r = rt_thread_create(&c->thread, "actd-control", RT_CLASS_PLAIN, 0, run, c);
    if (r != 0) {
        control_stop(c);
        return endpoint_refuse(err, -r,
                               "the control thread cannot start: %s; raise TasksMax= or "
                               "`ulimit -u`",
                               strerror(-r));
    }
    c->running = true;
    *out = c;
    return 0;
}

void control_stop(struct control *c)
{
    if (!c)
        return;
    atomic_store(&c->stop, true);
    if (c->running && eventfd_write(c->wake, 1) == 0)
        pthread_join(c->thread, NULL);
    for (int i = 0; i < CONTROL_SESSIONS; i++)
        control_close(&c->session[i]);
    control_endpoint_close(&c->endpoint);
    if (c->wake >= 0)
        close(c->wake);
    free(c);
}
