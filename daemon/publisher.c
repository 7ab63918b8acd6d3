// A STREAM socket gives and takes pairs: who (a routing id of 5 bytes), and bytes. An empty
// one comes when a connection is made and when it ends, and ends one when sent.
#include "daemon/publisher.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "daemon/zmtp.h"

#define DRAIN_MAX \
    8 // reads in a turn, of 8 KiB at most each: 0.2 ms when all are tiny frames
#define HANDSHAKE_NS (2 * NS_PER_S)
#define TALK_FREE    (16 * 1024) // bytes
#define TALK_PER_S   1024        // bytes
#define ID_SIZE      5
#define NOT_READ     1024 // bytes: nobody sends to a PUB socket

struct peer {
    uint8_t id[ID_SIZE];
    bool used;
    ns_t since_ns;
    struct zmtp zmtp;
};

struct publisher {
    void *socket;
    bool stream; // else a PUB
    _Atomic uint64_t missed, closed;
    _Atomic int peers, open;
    struct peer peer[PUBLISHER_PEERS];
};

// ---- one peer -------------------------------------------------------------------------

static struct peer *find(struct publisher *p, const uint8_t *id)
{
    for (int i = 0; i < PUBLISHER_PEERS; i++)
        if (p->peer[i].used && memcmp(p->peer[i].id, id, ID_SIZE) == 0)
            return &p->peer[i];
    return NULL;
}

static void forget(struct publisher *p, struct peer *e)
{
    if (e->zmtp.stage == ZMTP_OPEN)
        atomic_fetch_sub(&p->open, 1);
    atomic_fetch_sub(&p->peers, 1);
    e->used = false;
}

static int say(struct publisher *p, const uint8_t *id, const void *bytes, size_t n)
{
    if (zmq_send(p->socket, id, ID_SIZE, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0 ||
        zmq_send(p->socket, bytes, n, ZMQ_DONTWAIT) < 0)
        return -errno;
    return 0;
}

// One at its mark cannot be told to go: it stays, and what it says is dropped like the rest.
static void dismiss(struct publisher *p, struct peer *e)
{
    if (say(p, e->id, "", 0) == -EAGAIN)
        return;
    atomic_fetch_add_explicit(&p->closed, 1, memory_order_relaxed);
    forget(p, e);
}

static bool talks_too_much(const struct peer *e, ns_t now_ns)
{
    double seconds = 1e-9 * (double)(now_ns - e->since_ns);

    return (double)e->zmtp.said > TALK_FREE + TALK_PER_S * seconds;
}

static void hear(struct publisher *p, struct peer *e, const uint8_t *bytes, size_t n,
                 ns_t now_ns)
{
    bool was_open = e->zmtp.stage == ZMTP_OPEN;
    uint8_t pong[ZMTP_COMMAND];
    size_t size;
    int rc;

    rc = talks_too_much(e, now_ns) ? -EPROTO : zmtp_hear(&e->zmtp, bytes, n);
    if (!was_open && e->zmtp.stage == ZMTP_OPEN)
        atomic_fetch_add(&p->open, 1);
    if (rc != 0)
        dismiss(p, e);
    else if ((size = zmtp_pong(&e->zmtp, pong)) > 0)
        (void)say(p, e->id, pong, size); // at its mark: it has messages instead
}

// ---- all of them ----------------------------------------------------------------------

static struct peer *room(struct publisher *p)
{
    struct peer *oldest = NULL;

    for (int i = 0; i < PUBLISHER_PEERS; i++) {
        struct peer *e = &p->peer[i];

        if (!e->used)
            return e;
        if (e->zmtp.stage != ZMTP_OPEN && (!oldest || e->since_ns < oldest->since_ns))
            oldest = e;
    }
    if (oldest)
        dismiss(p, oldest);
    return oldest && !oldest->used ? oldest : NULL;
}

static void welcome(struct publisher *p, const uint8_t *id, ns_t now_ns)
{
    struct peer *e = room(p);

    if (!e) {
        atomic_fetch_add_explicit(&p->closed, 1, memory_order_relaxed);
        (void)say(p, id, "", 0);
        return;
    }
    memset(e, 0, sizeof *e);
    memcpy(e->id, id, ID_SIZE);
    e->since_ns = now_ns;
    e->used = true;
    atomic_fetch_add(&p->peers, 1);
    if (say(p, id, zmtp_hello, sizeof zmtp_hello) != 0)
        forget(p, e); // gone already
}

static void handle(struct publisher *p, zmq_msg_t *who, zmq_msg_t *what, ns_t now_ns)
{
    const uint8_t *id = zmq_msg_data(who);
    struct peer *e;

    if (zmq_msg_size(who) != ID_SIZE)
        return;
    e = find(p, id);
    if (zmq_msg_size(what) > 0 && e)
        hear(p, e, zmq_msg_data(what), zmq_msg_size(what), now_ns);
    else if (zmq_msg_size(what) == 0 && e)
        forget(p, e);
    else if (zmq_msg_size(what) == 0)
        welcome(p, id, now_ns);
}

void publisher_listen(struct publisher *p, ns_t now_ns)
{
    zmq_msg_t who, what;

    if (!p->stream)
        return;
    zmq_msg_init(&who);
    zmq_msg_init(&what);
    for (int i = 0; i < DRAIN_MAX; i++) {
        if (zmq_msg_recv(&who, p->socket, ZMQ_DONTWAIT) < 0 ||
            zmq_msg_recv(&what, p->socket, ZMQ_DONTWAIT) < 0)
            break;
        handle(p, &who, &what, now_ns);
    }
    zmq_msg_close(&what);
    zmq_msg_close(&who);
}

// ---- messages out ---------------------------------------------------------------------

static void send_to(struct publisher *p, struct peer *e, zmq_msg_t *frame)
{
    zmq_msg_t copy; // of a reference: the bytes are shared by all peers

    if (zmq_send(p->socket, e->id, ID_SIZE, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
        if (errno == EAGAIN)
            atomic_fetch_add_explicit(&p->missed, 1, memory_order_relaxed);
        else
            forget(p, e);
        return;
    }
    zmq_msg_init(&copy);
    if (zmq_msg_copy(&copy, frame) != 0 ||
        zmq_msg_send(&copy, p->socket, ZMQ_DONTWAIT) < 0)
        zmq_msg_close(&copy);
}

static void send_to_all(struct publisher *p, zmq_msg_t *frame, ns_t now_ns)
{
    for (int i = 0; i < PUBLISHER_PEERS; i++) {
        struct peer *e = &p->peer[i];

        if (!e->used)
            continue;
        if (e->zmtp.stage == ZMTP_OPEN)
            send_to(p, e, frame);
        else if (now_ns - e->since_ns > HANDSHAKE_NS)
            dismiss(p, e);
    }
}

int publisher_send(struct publisher *p, const void *bytes, size_t size, ns_t now_ns)
{
    uint8_t header[ZMTP_HEADER];
    size_t n = zmtp_header(header, size), events_size = sizeof(int);
    zmq_msg_t frame;
    int events;

    // zmq_send looks at what peers have read at most once in 3 million cycles, and a socket
    // that believes a mark reached drops: without this question two bursts of 32 within a
    // millisecond lost commands to a subscriber that had read them all.
    zmq_getsockopt(p->socket, ZMQ_EVENTS, &events, &events_size);
    // A PUB socket never waits: at a subscriber's mark it drops that subscriber's copy.
    if (!p->stream)
        return zmq_send(p->socket, bytes, size, ZMQ_DONTWAIT) < 0 ? -errno : 0;
    if (zmq_msg_init_size(&frame, n + size) != 0)
        return -ENOMEM;
    memcpy(zmq_msg_data(&frame), header, n);
    memcpy((uint8_t *)zmq_msg_data(&frame) + n, bytes, size);
    send_to_all(p, &frame, now_ns);
    zmq_msg_close(&frame);
    return 0;
}

// ---- plain ----------------------------------------------------------------------------

int publisher_open(struct publisher **out, struct sockets *s, const char *endpoint,
                   bool bind, int high_water, struct config_error *err)
{
    const struct socket_spec spec = {bind ? ZMQ_STREAM : ZMQ_PUB, endpoint, bind,
                                     high_water, NOT_READ};
    struct publisher *p = calloc(1, sizeof *p);
    int rc;

    *out = NULL;
    if (!p) {
        snprintf(err->text, sizeof err->text, "no memory for %.400s: free some",
                 endpoint);
        return -ENOMEM;
    }
    p->stream = bind;
    rc = sockets_open(s, &spec, &p->socket, err);
    if (rc != 0) {
        free(p);
        return rc;
    }
    *out = p;
    return 0;
}

void publisher_close(struct publisher *p, int linger_ms)
{
    if (!p)
        return;
    zmq_setsockopt(p->socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    zmq_close(p->socket);
    free(p);
}

void *publisher_waits_on(const struct publisher *p)
{
    return p->stream ? p->socket : NULL;
}

struct publisher_counts publisher_counts(const struct publisher *p)
{
    return (struct publisher_counts){
        .missed = atomic_load_explicit(&p->missed, memory_order_relaxed),
        .closed = atomic_load_explicit(&p->closed, memory_order_relaxed),
        .peers = atomic_load(&p->peers),
        .open = atomic_load(&p->open),
    };
}
