// The thread that moves messages. What matters in it is order and bounds: commands go
// first and again after every message that came in, and a wake-up takes at most DRAIN_MAX
// messages from one socket, so that a publisher that floods one stream delays neither a
// command nor another stream by more than one message.
#include "daemon/bus_impl.h"

#include <errno.h>
#include <unistd.h>
#include <zmq.h>

#include "daemon/keyframe.h"

#define DRAIN_MAX 64

// ---- commands out ---------------------------------------------------------------------

static void send_command(struct bus *b, const struct command *cmd, ns_t taken_ns)
{
    int64_t made_wall_ns = clock_wall_ns() - (clock_now_ns() - cmd->made_ns);
    size_t size = codec_command(intake_codec(b->intake), cmd, made_wall_ns, b->buffer,
                                sizeof b->buffer);

    if (size == 0 || publisher_send(b->commands, b->buffer, size, clock_now_ns()) != 0) {
        atomic_fetch_add_explicit(&b->send_failed, 1, memory_order_relaxed);
        return;
    }
    atomic_fetch_add_explicit(&b->sent, 1, memory_order_relaxed);
    tape_command(b->board->tape, taken_ns, b->buffer, size);
}

static void send_newest(struct bus *b)
{
    struct command cmd;
    ns_t now = clock_now_ns();

    if (outbox_next(&b->outbox, b->board, now, &cmd))
        send_command(b, &cmd, now);
}

// The newest that another thread wants published.
static void pass_on(const struct relay *r)
{
    zmq_msg_t msg, newest; // a recv that finds nothing leaves an empty one

    zmq_msg_init(&msg);
    zmq_msg_init(&newest);
    while (zmq_msg_recv(&msg, r->end, ZMQ_DONTWAIT) >= 0)
        zmq_msg_move(&newest, &msg);
    if (zmq_msg_size(&newest) > 0)
        (void)publisher_send(r->out, zmq_msg_data(&newest), zmq_msg_size(&newest),
                             clock_now_ns());
    zmq_msg_close(&newest);
    zmq_msg_close(&msg);
}

// ---- messages in ----------------------------------------------------------------------

// The time of a message just received. No two of a stream have the same: in a recording they are
// told apart by it.
static ns_t stamp(struct stream *s)
{
    ns_t now = clock_now_ns();

    s->last_ns = now > s->last_ns ? now : s->last_ns + 1;
    return s->last_ns;
}

// One part. 1: it is a whole message, in msg, received at *at_ns; 0: it was one of several, which
// are told and dropped; -1: nothing there.
static int receive(struct bus *b, struct stream *s, zmq_msg_t *msg, ns_t *at_ns)
{
    bool first = !s->inside;
    struct codec_part part;

    if (zmq_msg_recv(msg, s->socket, ZMQ_DONTWAIT) < 0)
        return -1;
    s->inside = zmq_msg_more(msg);
    *at_ns = stamp(s);
    if (first && !s->inside)
        return 1;
    part = (struct codec_part){zmq_msg_data(msg), zmq_msg_size(msg), first, s->inside};
    if (s->camera)
        camera_part(s->camera, &part, *at_ns);
    else
        intake_part(b->intake, &part, *at_ns);
    return 0;
}

static void drain_joints(struct bus *b, struct stream *s)
{
    zmq_msg_t msg;
    ns_t at_ns;
    int r;

    zmq_msg_init(&msg);
    for (int i = 0; i < DRAIN_MAX && (r = receive(b, s, &msg, &at_ns)) >= 0; i++) {
        if (r == 1)
            intake_joints(b->intake, zmq_msg_data(&msg), zmq_msg_size(&msg), at_ns);
        send_newest(b);
    }
    zmq_msg_close(&msg);
    intake_publish(b->intake);
}

struct held { // a whole message and when it was received; 0 = none
    zmq_msg_t msg;
    ns_t at_ns;
};

static bool park(struct bus *b, struct stream *s, struct held *h)
{
    return camera_park(s->camera, intake_codec(b->intake), zmq_msg_data(&h->msg),
                       zmq_msg_size(&h->msg), h->at_ns);
}

static void supersede(struct stream *s, struct held *h)
{
    if (h->at_ns != 0)
        camera_supersede(s->camera, zmq_msg_data(&h->msg), zmq_msg_size(&h->msg),
                         h->at_ns);
}

static void move(struct held *to, struct held *from)
{
    zmq_msg_move(&to->msg, &from->msg);
    to->at_ns = from->at_ns;
}

// Only the newest is looked at: a frame may have 8 MiB to copy, and what it supersedes
// nobody wants, unless the newest is refused. Then the one before it is tried.
static void drain_frames(struct bus *b, struct stream *s)
{
    struct held msg = {.at_ns = 0}, newest = {.at_ns = 0}, before = {.at_ns = 0};
    int r;

    zmq_msg_init(&msg.msg);
    zmq_msg_init(&newest.msg);
    zmq_msg_init(&before.msg);
    for (int i = 0; i < DRAIN_MAX && (r = receive(b, s, &msg.msg, &msg.at_ns)) >= 0;
         i++) {
        if (r == 1) {
            supersede(s, &before);
            move(&before, &newest);
            move(&newest, &msg);
        }
        send_newest(b);
    }
    if (newest.at_ns != 0 && !park(b, s, &newest) && before.at_ns != 0)
        park(b, s, &before);
    else
        supersede(s, &before);
    zmq_msg_close(&before.msg);
    zmq_msg_close(&newest.msg);
    zmq_msg_close(&msg.msg);
}

// Before any message is read: one that was stamped after the clock was set comes after
// this.
static void look_at_wall(struct bus *b)
{
    ns_t before_ns = 0, wall_ns = 0, now = 0;
    int64_t by_ns;

    for (int i = 0; i < 3; i++) {
        before_ns = clock_now_ns();
        wall_ns = clock_wall_ns();
        now = clock_now_ns();
        if (now - before_ns <= WALL_SURE_NS)
            break;
    }
    by_ns = wall_moved(&b->wall, before_ns, wall_ns, now);
    if (by_ns == 0)
        return;
    atomic_fetch_add_explicit(&b->wall_sets, 1, memory_order_relaxed);
    // First, since it tells the tape for all.
    intake_wall_set(b->intake, by_ns, now);
    for (int i = 0; i < b->n_streams; i++)
        if (b->stream[i].camera)
            camera_wall_set(b->stream[i].camera, by_ns, now);
}

// Everything to wait on: streams first, in their order. Returns how many.
static int watched(struct bus *b, zmq_pollitem_t *item)
{
    int n = 0, relays = atomic_load(&b->n_relays);
    void *peers = publisher_waits_on(b->commands);

    for (; n < b->n_streams; n++)
        item[n] = (zmq_pollitem_t){b->stream[n].socket, 0, ZMQ_POLLIN, 0};
    item[n++] = (zmq_pollitem_t){NULL, b->board->command_fd, ZMQ_POLLIN, 0};
    if (peers)
        item[n++] = (zmq_pollitem_t){peers, 0, ZMQ_POLLIN, 0};
    for (int i = 0; i < relays; i++) {
        item[n++] = (zmq_pollitem_t){b->relay[i].end, 0, ZMQ_POLLIN, 0};
        if ((peers = publisher_waits_on(b->relay[i].out)))
            item[n++] = (zmq_pollitem_t){peers, 0, ZMQ_POLLIN, 0};
    }
    return n;
}

// Subscribers, and what else is published.
static void mind_peers(struct bus *b)
{
    int relays = atomic_load(&b->n_relays);

    publisher_listen(b->commands, clock_now_ns());
    for (int i = 0; i < relays; i++) {
        send_newest(b);
        publisher_listen(b->relay[i].out, clock_now_ns());
        pass_on(&b->relay[i]);
    }
}

static void drain_all(struct bus *b, const zmq_pollitem_t *item)
{
    for (int i = 0; i < b->n_streams; i++) {
        if (!(item[i].revents & ZMQ_POLLIN))
            continue;
        if (b->stream[i].camera)
            drain_frames(b, &b->stream[i]);
        else
            drain_joints(b, &b->stream[i]);
        send_newest(b);
    }
}

void *bus_loop(void *arg)
{
    struct bus *b = arg;
    zmq_pollitem_t item[3 + POLICY_MAX_CAMERAS + 2 * BUS_RELAYS];

    while (!atomic_load(&b->stop)) {
        uint64_t wakes;

        if (zmq_poll(item, watched(b, item), -1) < 0 && errno != EINTR)
            break;
        // Emptied before the ring is: a command that comes in between wakes us once more.
        if ((item[b->n_streams].revents & ZMQ_POLLIN) &&
            read(b->board->command_fd, &wakes, sizeof wakes) < 0 && errno != EAGAIN)
            break;
        send_newest(b);
        look_at_wall(b);
        // Between two inputs, when all that was accepted is on the board.
        keyframe_bus(b->intake, b->camera, b->n_streams - 1, b->board->tape,
                     clock_now_ns());
        drain_all(b, item);
        mind_peers(b);
        send_newest(b);
    }
    send_newest(b);
    return NULL;
}
