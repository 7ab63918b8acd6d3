// From a joint message to the first command that was made from it, through the daemon's own bus
// and loop over ipc, and in turn a message of the same size over a bare libzmq pair. A command says
// how old the joint state was that it knew, and with its own stamp so when that was made.
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
#include <zmq.h>

#include "actd/v1/joint_command.pb-c.h"
#include "daemon/bus.h"
#include "daemon/endpoint.h"
#include "daemon/rt.h"
#include "foxglove/JointStates.pb-c.h"
#include "tests/bench/bench_loop.h"
#include "tests/hygiene/full_loop.h"

#define JOINTS  14
#define LOST_NS (200 * NS_PER_MS) // a message that is not answered by then

struct wire {
    struct loop_world world;
    struct camera *camera[1];
    struct bus *bus;
    struct loop_thread *thread;
    void *driver, *states, *commands; // the robot's side
    void *here, *there, *from, *to;   // the bare pair: two contexts, two sockets
    char directory[64];
    const struct bench_place *at;
};

// The robot's threads ask for what the bus asks for; refused is fine, on both sides alike.
static void *context(int priority)
{
    void *c = zmq_ctx_new();

    zmq_ctx_set(c, ZMQ_THREAD_SCHED_POLICY, SCHED_FIFO);
    zmq_ctx_set(c, ZMQ_THREAD_PRIORITY, priority);
    return c;
}

// An XPUB tells when its subscriber has come.
static void *publisher(void *ctx, const char *endpoint, bool bind)
{
    void *s = zmq_socket(ctx, ZMQ_XPUB);
    const int none = 0;

    zmq_setsockopt(s, ZMQ_LINGER, &none, sizeof none);
    if ((bind ? zmq_bind : zmq_connect)(s, endpoint) != 0)
        return NULL;
    return s;
}

static void *subscriber(void *ctx, const char *endpoint)
{
    void *s = zmq_socket(ctx, ZMQ_SUB);
    const int none = 0, ms = 200;

    zmq_setsockopt(s, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(s, ZMQ_RCVTIMEO, &ms, sizeof ms);
    zmq_setsockopt(s, ZMQ_SUBSCRIBE, "", 0);
    return zmq_connect(s, endpoint) == 0 ? s : NULL;
}

static int wait_subscribed(void *xpub)
{
    const int ms = 5000;
    char byte[8];

    zmq_setsockopt(xpub, ZMQ_RCVTIMEO, &ms, sizeof ms);
    return zmq_recv(xpub, byte, sizeof byte, 0) >= 0 ? 0 : -ETIMEDOUT;
}

static int open_daemon(struct wire *w, double hz)
{
    struct world_spec spec = {
        .control_hz = hz, .joints = JOINTS, .mode = "crossfade", .runtime = w->directory};
    const struct loop_thread_config cfg = {.priority = w->at->priority,
                                           .cpu = w->at->cpu};
    struct loop_world *world = &w->world;
    char granted[RT_GRANTED];
    int lock_fd = -1;
    int rc = world_open(world, &spec);

    if (rc == 0)
        rc = camera_start(&w->camera[0], "top", &world->board.camera[0], 0);
    if (rc == 0)
        rc = endpoint_lock(world->cfg.runtime, &lock_fd, &world->err);
    if (rc == 0)
        rc = bus_start(&w->bus, &world->cfg, &world->board, w->camera,
                       w->at->priority - 1, lock_fd, &world->err);
    if (rc == 0)
        rc = loop_thread_start(&w->thread, world->loop, &cfg, granted);
    if (rc)
        fprintf(stderr, "bench_loop: %s: %s\n", strerror(-rc), world->err.text);
    return rc;
}

static int open_robot(struct wire *w)
{
    char bare[128];

    snprintf(bare, sizeof bare, "ipc://%s/bare", w->directory);
    w->driver = context(w->at->priority - 1);
    w->here = context(w->at->priority - 1);
    w->there = context(w->at->priority - 1);
    w->states = publisher(w->driver, w->world.cfg.joint_state.endpoint, false);
    w->commands = subscriber(w->driver, w->world.cfg.joint_command.endpoint);
    w->from = publisher(w->here, bare, true);
    w->to = subscriber(w->there, bare);
    if (!w->states || !w->commands || !w->from || !w->to)
        return -errno;
    return wait_subscribed(w->states) || wait_subscribed(w->from) ? -ETIMEDOUT : 0;
}

static void close_socket(void *s)
{
    if (s)
        zmq_close(s);
}

static void close_all(struct wire *w)
{
    close_socket(w->states);
    close_socket(w->commands);
    close_socket(w->from);
    close_socket(w->to);
    if (w->driver)
        zmq_ctx_term(w->driver);
    if (w->here)
        zmq_ctx_term(w->here);
    if (w->there)
        zmq_ctx_term(w->there);
    loop_thread_stop(w->thread);
    bus_stop(w->bus);
    camera_stop(w->camera[0]);
    world_close(&w->world);
}

static size_t pack(const struct wire *w, int64_t wall, uint8_t *out)
{
    Google__Protobuf__Timestamp stamp = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    Foxglove__JointStates m = FOXGLOVE__JOINT_STATES__INIT;
    Foxglove__JointState joint[JOINTS], *list[JOINTS];

    for (int j = 0; j < JOINTS; j++) {
        foxglove__joint_state__init(&joint[j]);
        joint[j].name = (char *)(uintptr_t)w->world.cfg.joint[j].name;
        joint[j].position = 0.1;
        joint[j].velocity = 1e-9;
        list[j] = &joint[j];
    }
    stamp.seconds = wall / NS_PER_S;
    stamp.nanos = (int32_t)(wall % NS_PER_S);
    m.timestamp = &stamp;
    m.joints = list;
    m.n_joints = JOINTS;
    return foxglove__joint_states__pack(&m, out);
}

// When the joint state behind a command was made, by the robot's clock (which is ours).
static int64_t known(const Actd__V1__JointCommand *c)
{
    return c->timestamp ? c->timestamp->seconds * NS_PER_S + c->timestamp->nanos -
                              (int64_t)c->joint_state_age_ns
                        : 0;
}

// When the first command came that knew the joint state stamped `wall`, 0 = none did. Stamps are
// mapped to within the quickest message's way, which is far less than lies between two of them.
static ns_t await(struct wire *w, int64_t wall, ns_t until)
{
    static uint8_t buf[CODEC_COMMAND_MAX];

    for (ns_t now = 0; now < until;) {
        int n = zmq_recv(w->commands, buf, sizeof buf, 0);
        Actd__V1__JointCommand *c;
        bool found;

        now = clock_now_ns();
        if (n < 0)
            continue;
        c = actd__v1__joint_command__unpack(NULL, (size_t)n, buf);
        found = c && known(c) >= wall - 20 * NS_PER_US;
        if (c)
            actd__v1__joint_command__free_unpacked(c, NULL);
        if (found)
            return now;
    }
    return 0;
}

static void one_bare(struct wire *w, const uint8_t *message, size_t size,
                     struct samples *out)
{
    static uint8_t buf[4096];
    ns_t start = clock_now_ns();

    if (zmq_send(w->from, message, size, 0) >= 0 &&
        zmq_recv(w->to, buf, sizeof buf, 0) >= 0 && out)
        samples_add(out, clock_now_ns() - start);
}

// The driver: the phase between its messages and the loop's ticks goes round, and every phase
// is as likely. The first messages are to let everything settle.
static int exchange(struct wire *w, int messages, ns_t period, struct samples *through,
                    struct samples *bare)
{
    uint8_t buf[4096];
    int lost = 0;

    for (int i = -20; i < messages; i++) {
        size_t size;
        ns_t start, came;
        int64_t wall;

        clock_sleep_until(clock_now_ns() + period / 3 + i * (period / 97) % period);
        size = pack(w, clock_wall_ns(), buf);
        one_bare(w, buf, size, i < 0 ? NULL : bare);
        clock_sleep_until(clock_now_ns() + period / 5);
        wall = clock_wall_ns();
        size = pack(w, wall, buf);
        start = clock_now_ns();
        if (zmq_send(w->states, buf, size, 0) < 0)
            return -errno;
        came = await(w, wall, start + LOST_NS);
        lost += i >= 0 && came == 0;
        if (i >= 0 && came)
            samples_add(through, came - start);
    }
    if (lost > messages / 100)
        fprintf(stderr, "bench_loop: %d of %d joint messages came back in no command\n",
                lost, messages);
    return lost > messages / 10 ? -EPROTO : 0;
}

struct driver {
    struct wire *w;
    int messages, rc;
    ns_t period;
    struct samples *through, *bare;
};

static void *drive(void *arg)
{
    struct driver *d = arg;

    d->rc = exchange(d->w, d->messages, d->period, d->through, d->bare);
    return NULL;
}

int wire_rounds(const struct bench_place *at, double hz, int messages,
                struct samples *through, struct samples *bare)
{
    struct wire *w = calloc(1, sizeof *w);
    struct driver d = {w, messages, 0, clock_period_ns(hz), through, bare};
    char command[128];
    pthread_t thread;
    int rc = -ENOMEM;

    if (w == NULL)
        return rc;
    w->at = at;
    snprintf(w->directory, sizeof w->directory, "/tmp/actd-bench-XXXXXX");
    rc = mkdtemp(w->directory) ? open_daemon(w, hz) : -errno;
    if (rc == 0)
        rc = open_robot(w);
    if (rc == 0)
        rc =
            rt_thread_create(&thread, "driver", RT_CLASS_IO, at->priority - 1, drive, &d);
    if (rc == 0) {
        pthread_join(thread, NULL);
        rc = d.rc;
    }
    close_all(w);
    snprintf(command, sizeof command, "rm -rf '%s'", w->directory);
    if (system(command) != 0)
        fprintf(stderr, "bench_loop: %s is left over\n", w->directory);
    free(w);
    return rc;
}
