// The thread that moves messages. What matters in it is order and bounds: commands go
// first and again after every message that came in, and a wake-up takes at most DRAIN_MAX
// messages from one socket, so that a publisher that floods one stream delays neither a
// command nor another stream by more than one message.
#include "daemon/bus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "daemon/endpoint.h"
#include "daemon/intake.h"
#include "daemon/outbox.h"
#include "daemon/rt.h"
#include "daemon/sockets.h"
#include "daemon/wall.h"

#define DRAIN_MAX  64
#define SMALL_MARK 64 // a PUB socket starves of read credits below about 16
#define FRAME_MARK 4
#define STATUS_MAX (64 * 1024) // nobody sends to a PUB socket; bytes
#define LAST_MS    50          // that the last commands get on their way out

struct stream {
    void *socket;
    struct camera *camera; // NULL = joint states
    bool inside;           // the last part received has another one behind it
};

struct bus {
    struct board *board;
    struct sockets *sockets;
    struct intake *intake;
    struct outbox outbox;
    struct wall wall;
    _Atomic uint64_t wall_sets;
    int lock_fd;
    void *commands; // PUB
    int n_streams;
    struct stream stream[1 + POLICY_MAX_CAMERAS]; // 0 = joint states
    _Atomic uint64_t sent, send_failed;
    _Atomic bool stop;
    bool running;
    pthread_t thread;
    unsigned char buffer[CODEC_COMMAND_MAX];
};

// ---- commands out ---------------------------------------------------------------------

static void send_command(struct bus *b, const struct command *cmd)
{
    size_t size =
        codec_command(intake_codec(b->intake), cmd, b->buffer, sizeof b->buffer);
    int events;
    size_t events_size = sizeof events;

    // zmq_send looks at what subscribers have read at most once in 3 million cycles, and
    // a PUB socket that believes its mark reached drops: without this question two bursts
    // of 32 within a millisecond lost commands to a subscriber that had read them all.
    zmq_getsockopt(b->commands, ZMQ_EVENTS, &events, &events_size);
    // A PUB socket never waits: at a subscriber's mark it drops that subscriber's copy.
    if (size == 0 || zmq_send(b->commands, b->buffer, size, ZMQ_DONTWAIT) < 0)
        atomic_fetch_add_explicit(&b->send_failed, 1, memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&b->sent, 1, memory_order_relaxed);
}

static void send_newest(struct bus *b)
{
    struct command cmd;

    if (outbox_next(&b->outbox, b->board, clock_now_ns(), &cmd))
        send_command(b, &cmd);
}

// ---- messages in ----------------------------------------------------------------------

static const char several_parts[] = "it has several parts: send each message in one";

// One part; several parts are one message, of which only the first is counted. 1: a whole
// message is in msg; 0: dropped; -1: nothing there.
static int receive(struct bus *b, struct stream *s, zmq_msg_t *msg)
{
    bool first = !s->inside;

    if (zmq_msg_recv(msg, s->socket, ZMQ_DONTWAIT) < 0)
        return -1;
    s->inside = zmq_msg_more(msg);
    if (first && !s->inside)
        return 1;
    if (!first)
        return 0;
    if (s->camera)
        camera_refuse(s->camera, CODEC_UNPARSABLE, several_parts);
    else
        intake_refuse(b->intake, CODEC_UNPARSABLE, several_parts);
    return 0;
}

static void drain_joints(struct bus *b, struct stream *s)
{
    zmq_msg_t msg;
    int r;

    zmq_msg_init(&msg);
    for (int i = 0; i < DRAIN_MAX && (r = receive(b, s, &msg)) >= 0; i++) {
        if (r == 1)
            intake_joints(b->intake, zmq_msg_data(&msg), zmq_msg_size(&msg),
                          clock_now_ns());
        send_newest(b);
    }
    zmq_msg_close(&msg);
    intake_publish(b->intake);
}

static bool park(struct bus *b, struct stream *s, zmq_msg_t *msg)
{
    return camera_park(s->camera, intake_codec(b->intake), zmq_msg_data(msg),
                       zmq_msg_size(msg), clock_now_ns());
}

// Only the newest is looked at: a frame may have 8 MiB to copy, and what it supersedes
// nobody wants, unless the newest is refused. Then the one before it is tried.
static void drain_frames(struct bus *b, struct stream *s)
{
    zmq_msg_t msg, newest, before;
    uint64_t whole = 0;
    int r;

    zmq_msg_init(&msg);
    zmq_msg_init(&newest);
    zmq_msg_init(&before);
    for (int i = 0; i < DRAIN_MAX && (r = receive(b, s, &msg)) >= 0; i++) {
        if (r == 1) {
            zmq_msg_move(&before, &newest);
            zmq_msg_move(&newest, &msg);
            whole++;
        }
        send_newest(b);
    }
    if (whole > 2)
        camera_supersede(s->camera, whole - 2);
    if (whole > 0 && !park(b, s, &newest) && whole > 1)
        park(b, s, &before);
    else if (whole > 1)
        camera_supersede(s->camera, 1);
    zmq_msg_close(&before);
    zmq_msg_close(&newest);
    zmq_msg_close(&msg);
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
    intake_wall_set(b->intake, by_ns, now);
    for (int i = 0; i < b->n_streams; i++)
        if (b->stream[i].camera)
            camera_wall_set(b->stream[i].camera, by_ns, now);
}

static void *bus_loop(void *arg)
{
    struct bus *b = arg;
    zmq_pollitem_t item[2 + POLICY_MAX_CAMERAS] = {{0}};
    int n = b->n_streams;

    for (int i = 0; i < n; i++)
        item[i] = (zmq_pollitem_t){b->stream[i].socket, 0, ZMQ_POLLIN, 0};
    item[n] = (zmq_pollitem_t){NULL, b->board->command_fd, ZMQ_POLLIN, 0};
    while (!atomic_load(&b->stop)) {
        uint64_t wakes;

        if (zmq_poll(item, n + 1, -1) < 0 && errno != EINTR)
            break;
        // Emptied before the ring is: a command that comes in between wakes us once more.
        if ((item[n].revents & ZMQ_POLLIN) &&
            read(b->board->command_fd, &wakes, sizeof wakes) < 0 && errno != EAGAIN)
            break;
        send_newest(b);
        look_at_wall(b);
        for (int i = 0; i < n; i++) {
            if (!(item[i].revents & ZMQ_POLLIN))
                continue;
            if (b->stream[i].camera)
                drain_frames(b, &b->stream[i]);
            else
                drain_joints(b, &b->stream[i]);
            send_newest(b);
        }
    }
    send_newest(b);
    return NULL;
}

// ---- plain ----------------------------------------------------------------------------

static int open_stream(struct bus *b, const struct socket_spec *spec,
                       struct camera *camera, struct config_error *err)
{
    struct stream *s = &b->stream[b->n_streams];
    int r = sockets_open(b->sockets, spec, &s->socket, err);

    if (r == 0) {
        s->camera = camera;
        b->n_streams++;
    }
    return r;
}

static int open_all(struct bus *b, const struct config *cfg,
                    struct camera *const *cameras, struct config_error *err)
{
    const struct socket_spec joints = {ZMQ_SUB, cfg->joint_state.endpoint,
                                       cfg->joint_state.bind, SMALL_MARK,
                                       CODEC_JOINTS_MAX};
    const struct socket_spec commands = {ZMQ_PUB, cfg->joint_command.endpoint,
                                         cfg->joint_command.bind, SMALL_MARK, STATUS_MAX};
    int r = sockets_open(b->sockets, &commands, &b->commands, err);

    if (r == 0)
        r = open_stream(b, &joints, NULL, err);
    for (int i = 0; i < cfg->n_cameras && r == 0; i++) {
        const struct config_camera *c = &cfg->camera[i];
        const struct socket_spec frames = {ZMQ_SUB, c->endpoint, c->bind, FRAME_MARK,
                                           CODEC_FRAME_MAX};

        camera_declare(cameras[i], c->rate_hz, &b->board->armed);
        r = open_stream(b, &frames, cameras[i], err);
    }
    return r;
}

static int make_intake(struct bus *b, const struct config *cfg, struct config_error *err)
{
    struct intake_config in = {.joints = cfg->n_joints,
                               .max_jump = cfg->safety.max_jump,
                               .rate_hz = cfg->joint_state.rate_hz};
    const char *name[ACTD_MAX_JOINTS];

    for (int i = 0; i < cfg->n_joints; i++) {
        name[i] = cfg->joint[i].name;
        in.velocity[i] = cfg->joint[i].velocity;
    }
    if (intake_new(&b->intake, &in, name, b->board) != 0)
        return endpoint_refuse(err, ENOMEM, "no memory for the bus: free some");
    return 0;
}

static int start_thread(struct bus *b, int priority, struct config_error *err)
{
    int r = rt_thread_create(&b->thread, "actd-bus", RT_CLASS_IO, priority, bus_loop, b);

    b->running = r == 0;
    return r == 0 ? 0
                  : endpoint_refuse(err, -r,
                                    "the bus thread cannot start: %s; raise "
                                    "TasksMax= or `ulimit -u`",
                                    strerror(-r));
}

int bus_start(struct bus **out, const struct config *cfg, struct board *board,
              struct camera *const *cameras, int priority, struct config_error *err)
{
    struct bus *b = calloc(1, sizeof *b);
    int r;

    *out = NULL;
    if (!b)
        return endpoint_refuse(err, ENOMEM, "no memory for the bus: free some");
    b->board = board;
    r = endpoint_lock(cfg->runtime, &b->lock_fd, err);
    if (r == 0)
        r = make_intake(b, cfg, err);
    if (r == 0)
        r = sockets_new(&b->sockets, priority, err);
    if (r == 0)
        r = open_all(b, cfg, cameras, err);
    if (r == 0)
        r = start_thread(b, priority, err);
    if (r != 0) {
        bus_stop(b);
        return r;
    }
    *out = b;
    return 0;
}

static void stop_thread(struct bus *b)
{
    const uint64_t one = 1;

    atomic_store(&b->stop, true);
    // Full is fine too: the thread is awake then.
    if (write(b->board->command_fd, &one, sizeof one) < 0 && errno != EAGAIN)
        return;
    pthread_join(b->thread, NULL);
}

void bus_stop(struct bus *b)
{
    const int last_ms = LAST_MS;

    if (!b)
        return;
    if (b->running)
        stop_thread(b);
    for (int i = 0; i < b->n_streams; i++)
        zmq_close(b->stream[i].socket);
    if (b->commands) {
        // The one exception to LINGER 0: the last commands are the ramp to rest.
        zmq_setsockopt(b->commands, ZMQ_LINGER, &last_ms, sizeof last_ms);
        zmq_close(b->commands);
    }
    sockets_free(b->sockets);
    intake_free(b->intake);
    if (b->lock_fd >= 0)
        close(b->lock_fd);
    free(b);
}

void *bus_publisher(struct bus *b, const char *endpoint, bool bind,
                    struct config_error *err)
{
    const struct socket_spec spec = {ZMQ_PUB, endpoint, bind, SMALL_MARK, STATUS_MAX};
    void *socket;

    return sockets_open(b->sockets, &spec, &socket, err) == 0 ? socket : NULL;
}

void bus_close(void *socket)
{
    if (socket)
        zmq_close(socket);
}

static uint64_t counted(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

struct bus_counts bus_counts(const struct bus *b)
{
    struct bus_counts counts = {
        .sent = counted(&b->sent),
        .send_failed = counted(&b->send_failed),
        .superseded = counted(&b->outbox.superseded),
        .expired = counted(&b->outbox.expired),
        .cut = counted(&b->outbox.cut),
        .wall_sets = counted(&b->wall_sets),
    };

    counts.joints_refusal = intake_last_refusal(b->intake, counts.joints_refusal_text);
    return counts;
}
