// A bus over real ipc sockets in a directory of its own, with drivers to talk to it. One
// test program includes it once.
#ifndef TEST_BUS_FIXTURE_H
#define TEST_BUS_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>
#include <cmocka.h>

#include "daemon/bus.h"
#include "daemon/endpoint.h"
#include "actd/v1/joint_command.pb-c.h"
#include "foxglove/JointStates.pb-c.h"
#include "foxglove/RawImage.pb-c.h"

#define UNUSED __attribute__((unused))
#define SOON   (10 * NS_PER_S) // enough under a sanitizer on a busy machine
#define JOINTS 2
#define W      16
#define H      8

struct fixture {
    struct config cfg;
    struct config_error err;
    struct board board;
    struct camera *camera[1];
    struct bus *bus;
    void *context;
    void *joints, *frames, *commands; // the robot's side
    int64_t stamp_ns;                 // of the last message sent
};

UNUSED static void nap(ns_t ns)
{
    clock_sleep_until(clock_now_ns() + ns);
}

// Waits until an expression holds, or fails.
#define EVENTUALLY(condition)                                      \
    do {                                                           \
        ns_t until_ = clock_now_ns() + SOON;                       \
        bool holds_;                                               \
        while (!(holds_ = (condition)) && clock_now_ns() < until_) \
            nap(NS_PER_MS);                                        \
        if (!holds_)                                               \
            fail_msg("never: %s", #condition);                     \
    } while (0)

UNUSED static void make_config(struct config *c, const char *runtime)
{
    memset(c, 0, sizeof *c);
    snprintf(c->runtime, sizeof c->runtime, "%s", runtime);
    snprintf(c->joint_state.endpoint, CONFIG_PATH, "ipc://%.400s/joints.state", runtime);
    snprintf(c->joint_command.endpoint, CONFIG_PATH, "ipc://%.400s/joints.command",
             runtime);
    snprintf(c->camera[0].endpoint, CONFIG_PATH, "ipc://%.400s/camera.top", runtime);
    c->joint_state.bind = c->joint_command.bind = c->camera[0].bind = true;
    c->n_cameras = 1;
    snprintf(c->camera[0].name, CONFIG_NAME, "top");
    c->n_joints = JOINTS;
    snprintf(c->joint[0].name, CONFIG_NAME, "lift");
    snprintf(c->joint[1].name, CONFIG_NAME, "turn");
    for (int i = 0; i < JOINTS; i++)
        c->joint[i].velocity = 1000;
    c->safety.max_jump = 1000; // tests of the intake are elsewhere
    c->joint_state.rate_hz = c->camera[0].rate_hz = 100;
}

// A PUB that can be asked whether the other side has subscribed. Its own mark is
// infinite, so that whatever is lost is lost on the bus's side.
UNUSED static void *driver_pub(struct fixture *f, const char *endpoint)
{
    void *s = zmq_socket(f->context, ZMQ_XPUB);
    const int none = 0, ms = 10000;
    char subscription[8];

    zmq_setsockopt(s, ZMQ_SNDHWM, &none, sizeof none);
    zmq_setsockopt(s, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(s, ZMQ_RCVTIMEO, &ms, sizeof ms);
    assert_int_equal(zmq_connect(s, endpoint), 0);
    assert_int_equal(zmq_recv(s, subscription, sizeof subscription, 0), 1);
    return s;
}

UNUSED static void *driver_sub(struct fixture *f, const char *endpoint)
{
    void *s = zmq_socket(f->context, ZMQ_SUB);
    const int none = 0;

    zmq_setsockopt(s, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(s, ZMQ_RCVHWM, &none, sizeof none);
    zmq_setsockopt(s, ZMQ_SUBSCRIBE, "", 0);
    assert_int_equal(zmq_connect(s, endpoint), 0);
    return s;
}

UNUSED static bool push_command(struct fixture *f, uint64_t sequence)
{
    struct command c = {.sequence = sequence,
                        .n = JOINTS,
                        .made_ns = clock_now_ns(),
                        .ttl_ns = SOON,
                        .stalls = atomic_load(&f->board.stalls),
                        .mode = LADDER_READY,
                        .first_joint = -1};
    const uint64_t one = 1;

    if (!ring_push(&f->board.commands, &c))
        return false;
    return write(f->board.command_fd, &one, sizeof one) == sizeof one;
}

// Sequence of the next command on a socket, or 0 after timeout_ms without.
UNUSED static uint64_t next_command(void *socket, int timeout_ms)
{
    uint8_t buf[CODEC_COMMAND_MAX];
    Actd__V1__JointCommand *m;
    uint64_t sequence;
    int n;

    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &timeout_ms, sizeof timeout_ms);
    n = zmq_recv(socket, buf, sizeof buf, 0);
    if (n < 0)
        return 0;
    m = actd__v1__joint_command__unpack(NULL, (size_t)n, buf);
    assert_non_null(m);
    assert_int_equal(m->n_joints, JOINTS);
    sequence = m->sequence;
    actd__v1__joint_command__free_unpacked(m, NULL);
    return sequence;
}

// Sends commands of sequence 1 until the subscriber has one: now it is connected.
UNUSED static void connect_commands(struct fixture *f)
{
    ns_t until = clock_now_ns() + SOON;

    do
        push_command(f, 1);
    while (next_command(f->commands, 20) == 0 && clock_now_ns() < until);
    while (next_command(f->commands, 100) != 0)
        ;
}

UNUSED static size_t joints_message(struct fixture *f, double position, uint8_t *out)
{
    static char lift[] = "lift", turn[] = "turn";
    Google__Protobuf__Timestamp stamp;
    Foxglove__JointState joint[JOINTS], *list[JOINTS] = {&joint[0], &joint[1]};
    Foxglove__JointStates m;

    f->stamp_ns = clock_wall_ns() > f->stamp_ns ? clock_wall_ns() : f->stamp_ns + 1;
    google__protobuf__timestamp__init(&stamp);
    stamp.seconds = f->stamp_ns / NS_PER_S;
    stamp.nanos = (int32_t)(f->stamp_ns % NS_PER_S);
    foxglove__joint_states__init(&m);
    foxglove__joint_state__init(&joint[0]);
    foxglove__joint_state__init(&joint[1]);
    joint[0].name = turn;
    joint[1].name = lift;
    joint[1].position = position;
    m.timestamp = &stamp;
    m.joints = list;
    m.n_joints = JOINTS;
    return foxglove__joint_states__pack(&m, out);
}

UNUSED static void send_joints(struct fixture *f, double position)
{
    uint8_t buf[256];
    size_t n = joints_message(f, position, buf);

    assert_int_equal(zmq_send(f->joints, buf, n, 0), n);
}

// A grey picture in which every pixel is `grey`.
UNUSED static void send_frame(struct fixture *f, uint8_t grey)
{
    static char encoding[] = "mono8";
    uint8_t pixels[W * H], buf[512];
    Foxglove__RawImage m;
    size_t n;

    foxglove__raw_image__init(&m);
    memset(pixels, grey, sizeof pixels);
    m.width = m.step = W;
    m.height = H;
    m.encoding = encoding;
    m.data = (ProtobufCBinaryData){sizeof pixels, pixels};
    n = foxglove__raw_image__pack(&m, buf);
    assert_int_equal(zmq_send(f->frames, buf, n, 0), n);
}

UNUSED static double newest_position(struct fixture *f)
{
    struct joint_sample s;

    return slot_read(&f->board.joints, &s) ? s.pos[0] : NAN;
}

UNUSED static int start(struct fixture *f)
{
    int lock_fd, r = endpoint_lock(f->cfg.runtime, &lock_fd, &f->err);

    return r ? r : bus_start(&f->bus, &f->cfg, &f->board, f->camera, 0, lock_fd, &f->err);
}

UNUSED static void connect_all(struct fixture *f)
{
    f->joints = driver_pub(f, f->cfg.joint_state.endpoint);
    f->frames = driver_pub(f, f->cfg.camera[0].endpoint);
    f->commands = driver_sub(f, f->cfg.joint_command.endpoint);
}

UNUSED static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    char directory[] = "/tmp/actd-bus-XXXXXX", runtime[64];

    *state = f;
    if (!mkdtemp(directory))
        return -1;
    snprintf(runtime, sizeof runtime, "%s/run/a", directory);
    make_config(&f->cfg, runtime);
    f->context = zmq_ctx_new();
    if (board_init(&f->board, 1, 4, JOINTS) != 0)
        return -1;
    return camera_start(&f->camera[0], "top", &f->board.camera[0], 0);
}

UNUSED static void close_driver(void **socket)
{
    if (*socket)
        zmq_close(*socket);
    *socket = NULL;
}

UNUSED static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[600];

    close_driver(&f->joints);
    close_driver(&f->frames);
    close_driver(&f->commands);
    bus_stop(f->bus);
    camera_stop(f->camera[0]);
    board_free(&f->board);
    zmq_ctx_term(f->context);
    snprintf(command, sizeof command, "rm -rf %.20s", f->cfg.runtime); // mkdtemp's part
    if (strncmp(f->cfg.runtime, "/tmp/actd-bus-", 14) == 0 && system(command) != 0)
        return -1;
    free(f);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
