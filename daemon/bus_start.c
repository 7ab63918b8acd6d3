// The bus from outside: opening and closing, and what it says of itself.
#include "daemon/bus_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "daemon/endpoint.h"
#include "daemon/rt.h"

#define SMALL_MARK 64 // a publisher starves of read credits below about 16, in bursts
#define FRAME_MARK 4
#define RELAY_MARK 4           // of a publisher that sends now and then
#define RELAY_MAX  (64 * 1024) // bytes of a message of theirs
#define LAST_MS    50          // that the last commands get on their way out

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
    int r = publisher_open(&b->commands, b->sockets, cfg->joint_command.endpoint,
                           cfg->joint_command.bind, SMALL_MARK, err);

    if (r == 0)
        r = open_stream(b, &joints, NULL, err);
    for (int i = 0; i < cfg->n_cameras && r == 0; i++) {
        const struct config_camera *c = &cfg->camera[i];
        const struct socket_spec frames = {ZMQ_SUB, c->endpoint, c->bind, FRAME_MARK,
                                           CODEC_FRAME_MAX};

        camera_declare(cameras[i], c->rate_hz, &b->board->armed);
        camera_record(cameras[i], b->board->tape, 1 + i);
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
              struct camera *const *cameras, int priority, int lock_fd,
              struct config_error *err)
{
    struct bus *b = calloc(1, sizeof *b);
    int r;

    *out = NULL;
    if (!b) {
        close(lock_fd);
        return endpoint_refuse(err, ENOMEM, "no memory for the bus: free some");
    }
    b->lock_fd = lock_fd;
    b->board = board;
    b->camera = cameras;
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

static void wake(struct bus *b)
{
    const uint64_t one = 1;

    // Full is fine too: the thread is awake then.
    while (write(b->board->command_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

void bus_stop(struct bus *b)
{
    if (!b)
        return;
    if (b->running) {
        atomic_store(&b->stop, true);
        wake(b);
        pthread_join(b->thread, NULL);
    }
    for (int i = 0; i < b->n_streams; i++)
        zmq_close(b->stream[i].socket);
    for (int i = 0; i < b->n_relays; i++) {
        bus_close(b->relay[i].end);
        publisher_close(b->relay[i].out, 0);
    }
    // The one exception to LINGER 0: the last commands are the ramp to rest.
    publisher_close(b->commands, LAST_MS);
    sockets_free(b->sockets);
    intake_free(b->intake);
    close(b->lock_fd);
    free(b);
}

// Two ends of a pair inside this process.
static void *connect_pair(struct bus *b, int n, void **ours, struct config_error *err)
{
    char name[32];
    void *theirs = NULL;

    snprintf(name, sizeof name, "inproc://relay.%d", n);
    *ours = sockets_pair(b->sockets, name, true, RELAY_MARK, RELAY_MAX);
    if (*ours)
        theirs = sockets_pair(b->sockets, name, false, RELAY_MARK, RELAY_MAX);
    if (!theirs) {
        bus_close(*ours);
        endpoint_refuse(err, errno,
                        "no socket inside actd: %s; raise the limit of open "
                        "files (ulimit -n)",
                        zmq_strerror(errno));
    }
    return theirs;
}

void *bus_publisher(struct bus *b, const char *endpoint, bool bind,
                    struct config_error *err)
{
    int n = b->n_relays;
    struct publisher *out;
    void *theirs;

    if (n == BUS_RELAYS) {
        endpoint_refuse(err, ENOSPC, "%s is one stream too many for the bus", endpoint);
        return NULL;
    }
    if (publisher_open(&out, b->sockets, endpoint, bind, RELAY_MARK, err) != 0)
        return NULL;
    theirs = connect_pair(b, n, &b->relay[n].end, err);
    if (!theirs) {
        publisher_close(out, 0);
        return NULL;
    }
    b->relay[n].out = out;
    atomic_store(&b->n_relays, n + 1);
    wake(b);
    return theirs;
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

    counts.subscribers = publisher_counts(b->commands).open;
    counts.missed = publisher_counts(b->commands).missed;
    counts.peers_closed = publisher_counts(b->commands).closed;
    counts.joints_refusal = intake_last_refusal(b->intake, counts.joints_refusal_text);
    return counts;
}
