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
#include "daemon/rt.h"
#include "daemon/sockets.h"

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
    struct codec *codec;
    int lock_fd;
    void *commands; // PUB
    int n_streams;
    struct stream stream[1 + POLICY_MAX_CAMERAS]; // 0 = joint states
    struct codec_stamp joint_stamp;
    struct joint_history history;
    _Atomic uint64_t sent, send_failed;
    _Atomic int joints_refusal; // enum codec_verdict
    struct slot joints_why;     // its sentence, char[CODEC_WHY_MAX]
    _Atomic bool stop;
    bool running;
    pthread_t thread;
    unsigned char buffer[CODEC_COMMAND_MAX];
};

// ---- commands out ---------------------------------------------------------------------

static void send_command(struct bus *b, const struct command *cmd)
{
    size_t size = codec_command(b->codec, cmd, b->buffer, sizeof b->buffer);
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

static void send_commands(struct bus *b)
{
    struct command cmd;

    for (int i = 0; i < BOARD_COMMANDS && ring_pop(&b->board->commands, &cmd); i++)
        send_command(b, &cmd);
}

// ---- messages in ----------------------------------------------------------------------

static void refuse_joints(struct bus *b, enum codec_verdict why, const char *text)
{
    char sentence[CODEC_WHY_MAX] = "";

    memcpy(sentence, text, strnlen(text, sizeof sentence - 1));
    slot_write(&b->joints_why, sentence);
    atomic_store_explicit(&b->joints_refusal, (int)why, memory_order_relaxed);
    atomic_fetch_add_explicit(&b->board->joints_refused, 1, memory_order_relaxed);
}

static void take_joints(struct bus *b, const void *data, size_t size, ns_t now)
{
    struct joint_sample in = {.received_ns = now};
    int64_t stamp_wall_ns = 0;
    enum codec_verdict v = codec_joints(b->codec, data, size, &in, &stamp_wall_ns);
    int mapped;

    if (v != CODEC_OK) {
        refuse_joints(b, v, codec_why(b->codec));
        return;
    }
    mapped = codec_stamp_map(&b->joint_stamp, stamp_wall_ns, now, &in.capture_ns);
    if (mapped == -EALREADY) {
        atomic_fetch_add_explicit(&b->board->joints_duplicate, 1, memory_order_relaxed);
        return;
    }
    if (mapped != 0) {
        v = codec_refuse_stamp(b->codec, &b->joint_stamp, stamp_wall_ns, now);
        refuse_joints(b, v, codec_why(b->codec));
        return;
    }
    in.number = b->history.count + 1;
    b->history.sample[b->history.count % BOARD_HISTORY] = in;
    b->history.count++;
}

// What a drain accepted, to the other threads: the newest sample, and the history, in
// order.
static void publish_joints(struct bus *b, uint64_t before)
{
    uint64_t n = b->history.count;

    if (n == before)
        return;
    slot_write(&b->board->joints, &b->history.sample[(n - 1) % BOARD_HISTORY]);
    slot_write(&b->board->history, &b->history);
    atomic_store_explicit(&b->board->joints_received, n, memory_order_release);
}

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
        refuse_joints(b, CODEC_UNPARSABLE, several_parts);
    return 0;
}

static void drain_joints(struct bus *b, struct stream *s)
{
    uint64_t before = b->history.count;
    zmq_msg_t msg;
    int r;

    zmq_msg_init(&msg);
    for (int i = 0; i < DRAIN_MAX && (r = receive(b, s, &msg)) >= 0; i++) {
        if (r == 1)
            take_joints(b, zmq_msg_data(&msg), zmq_msg_size(&msg), clock_now_ns());
        send_commands(b);
    }
    zmq_msg_close(&msg);
    publish_joints(b, before);
}

// Only the newest is looked at: a frame may have 8 MiB to copy, and what it supersedes
// nobody wants. Should the newest be refused, a good one before it is lost as well, and
// counted as superseded.
static void drain_frames(struct bus *b, struct stream *s)
{
    zmq_msg_t msg, newest;
    uint64_t whole = 0;
    int r;

    zmq_msg_init(&msg);
    zmq_msg_init(&newest);
    for (int i = 0; i < DRAIN_MAX && (r = receive(b, s, &msg)) >= 0; i++) {
        if (r == 1) {
            zmq_msg_move(&newest, &msg);
            whole++;
        }
        send_commands(b);
    }
    if (whole > 1)
        camera_supersede(s->camera, whole - 1);
    if (whole > 0)
        camera_park(s->camera, b->codec, zmq_msg_data(&newest), zmq_msg_size(&newest),
                    clock_now_ns());
    zmq_msg_close(&newest);
    zmq_msg_close(&msg);
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
        send_commands(b);
        for (int i = 0; i < n; i++) {
            if (!(item[i].revents & ZMQ_POLLIN))
                continue;
            if (b->stream[i].camera)
                drain_frames(b, &b->stream[i]);
            else
                drain_joints(b, &b->stream[i]);
            send_commands(b);
        }
    }
    send_commands(b);
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

        r = open_stream(b, &frames, cameras[i], err);
    }
    return r;
}

static int make_codec(struct bus *b, const struct config *cfg, struct config_error *err)
{
    const char *name[ACTD_MAX_JOINTS];

    for (int i = 0; i < cfg->n_joints; i++)
        name[i] = cfg->joint[i].name;
    if (codec_new(&b->codec, name, cfg->n_joints) != 0)
        return endpoint_refuse(err, ENOMEM, "no memory for the codec: free some");
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
    if (r == 0 && slot_init(&b->joints_why, CODEC_WHY_MAX) != 0)
        r = endpoint_refuse(err, ENOMEM, "no memory for the bus: free some");
    if (r == 0)
        r = make_codec(b, cfg, err);
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
    codec_free(b->codec);
    slot_free(&b->joints_why);
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

struct bus_counts bus_counts(const struct bus *b)
{
    struct bus_counts counts = {
        .sent = atomic_load_explicit(&b->sent, memory_order_relaxed),
        .send_failed = atomic_load_explicit(&b->send_failed, memory_order_relaxed),
        .joints_refusal = (enum codec_verdict)atomic_load_explicit(&b->joints_refusal,
                                                                   memory_order_relaxed),
    };

    if (slot_read(&b->joints_why, counts.joints_refusal_text) == 0)
        snprintf(counts.joints_refusal_text, sizeof counts.joints_refusal_text, "%s",
                 counts.joints_refusal ? codec_verdict_name(counts.joints_refusal) : "");
    return counts;
}
