// A robot that holds still where it is told to be: joint states, pictures from a store, and an ear
// for the commands, each of which says how late its tick woke.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>
#include <zmq.h>

#include "actd/v1/joint_command.pb-c.h"
#include "daemon/rt.h"
#include "foxglove/CompressedImage.pb-c.h"
#include "foxglove/JointStates.pb-c.h"
#include "tests/record/rig.h"

#define WIDTH   640
#define HEIGHT  480
#define STORE   16 // pictures; a camera that sends the same one again and again is stuck
#define MESSAGE (512 * 1024)

const char *const rig_joint[RIG_JOINTS] = {"shoulder_pan", "shoulder_lift", "elbow_flex",
                                           "wrist_flex",   "wrist_roll",    "gripper"};
const char *const rig_camera[RIG_CAMERAS] = {"top", "front", "left", "right"};

struct rig_pictures {
    unsigned char *jpeg[STORE];
    unsigned long size[STORE];
};

struct side { // sockets and buffers of one thread
    struct rig_robot *robot;
    void *context, *states, *commands, *camera[RIG_CAMERAS];
    double pose[RIG_JOINTS];
    uint64_t last_tick;
    uint8_t message[MESSAGE];
};

// ---- pictures ------------------------------------------------------------------------------------

// Waves with some noise: 29 kB, as a tidy table has them.
static void paint(uint8_t *rgb, int number)
{
    uint32_t noise = 12345u + (uint32_t)number;

    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            for (int c = 0; c < 3; c++) {
                int wave = ((x + 9 * number) * (c + 1) / 5 + y * (3 - c) / 4) & 255;

                noise = noise * 1664525u + 1013904223u;
                *rgb++ = (uint8_t)((wave < 128 ? wave : 255 - wave) + (int)(noise >> 28));
            }
}

static struct rig_pictures *take_pictures(void)
{
    struct rig_pictures *p = calloc(1, sizeof *p);
    uint8_t *rgb = malloc((size_t)3 * WIDTH * HEIGHT);
    tjhandle jpeg = tjInitCompress();
    bool good = p != NULL && rgb != NULL && jpeg != NULL;

    for (int i = 0; good && i < STORE; i++) {
        paint(rgb, i);
        good = tjCompress2(jpeg, rgb, WIDTH, 0, HEIGHT, TJPF_RGB, &p->jpeg[i],
                           &p->size[i], TJSAMP_420, 80, 0) == 0;
    }
    tjDestroy(jpeg);
    free(rgb);
    if (good)
        return p;
    free(p);
    return NULL;
}

static void free_pictures(struct rig_pictures *p)
{
    for (int i = 0; p != NULL && i < STORE; i++)
        tjFree(p->jpeg[i]);
    free(p);
}

// ---- messages ------------------------------------------------------------------------------------

static Google__Protobuf__Timestamp stamp(void)
{
    int64_t wall = clock_wall_ns();
    Google__Protobuf__Timestamp t = GOOGLE__PROTOBUF__TIMESTAMP__INIT;

    t.seconds = wall / NS_PER_S;
    t.nanos = (int32_t)(wall % NS_PER_S);
    return t;
}

static void send_states(struct side *s)
{
    Google__Protobuf__Timestamp t = stamp();
    Foxglove__JointStates m = FOXGLOVE__JOINT_STATES__INIT;
    Foxglove__JointState joint[RIG_JOINTS], *list[RIG_JOINTS];

    for (int j = 0; j < RIG_JOINTS; j++) {
        foxglove__joint_state__init(&joint[j]);
        joint[j].name = (char *)(uintptr_t)rig_joint[j];
        joint[j].position = s->pose[j];
        list[j] = &joint[j];
    }
    m.timestamp = &t;
    m.joints = list;
    m.n_joints = RIG_JOINTS;
    (void)zmq_send(s->states, s->message, foxglove__joint_states__pack(&m, s->message),
                   ZMQ_DONTWAIT);
}

static void send_frame(struct side *s, int camera, uint64_t number)
{
    static char format[] = "jpeg";
    const struct rig_pictures *p = s->robot->pictures;
    Google__Protobuf__Timestamp t = stamp();
    Foxglove__CompressedImage m;
    size_t i = (size_t)(number + 3 * (uint64_t)camera) % STORE;

    foxglove__compressed_image__init(&m);
    m.timestamp = &t;
    m.format = format;
    m.data = (ProtobufCBinaryData){p->size[i], p->jpeg[i]};
    if (zmq_send(s->camera[camera], s->message,
                 foxglove__compressed_image__pack(&m, s->message), ZMQ_DONTWAIT) >= 0)
        atomic_fetch_add(&s->robot->frames, 1);
}

// ---- commands ------------------------------------------------------------------------------------

static void obey(struct side *s, const Actd__V1__JointCommand *c)
{
    struct rig_robot *r = s->robot;
    int set = atomic_load(&r->set);
    uint64_t none =
        s->last_tick != 0 && c->tick > s->last_tick + 1 ? c->tick - s->last_tick - 1 : 0;

    for (size_t j = 0; j < c->n_joints && j < RIG_JOINTS; j++)
        s->pose[j] = c->joints[j]->position;
    atomic_store(&r->mode, (int)c->mode);
    if (set >= 0) {
        rig_add(&r->lateness[set], (ns_t)c->wakeup_lateness_ns);
        rig_add(&r->margin[set], c->deadline_margin_ns);
        r->late[set] += (ns_t)c->wakeup_lateness_ns >= r->period_ns;
        r->skipped[set] += none;
        r->gaps[set] += none > 0;
    }
    s->last_tick = c->tick;
    atomic_fetch_add(&r->none, none);
    atomic_store(&r->tick, c->tick);
}

static void listen(struct side *s)
{
    int n;

    while ((n = zmq_recv(s->commands, s->message, MESSAGE, ZMQ_DONTWAIT)) > 0) {
        Actd__V1__JointCommand *c =
            actd__v1__joint_command__unpack(NULL, (size_t)n, s->message);

        if (c != NULL) {
            obey(s, c);
            actd__v1__joint_command__free_unpacked(c, NULL);
        }
    }
}

// ---- thread --------------------------------------------------------------------------------------

static void *open_socket(struct side *s, int type, const char *name)
{
    void *socket = zmq_socket(s->context, type);
    const int none = 0, high = 20000;
    char endpoint[256];

    snprintf(endpoint, sizeof endpoint, "ipc://%s/%s", s->robot->runtime, name);
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
    if (type == ZMQ_SUB) {
        zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0);
        zmq_setsockopt(socket, ZMQ_RCVHWM, &high, sizeof high);
    }
    (void)zmq_connect(socket, endpoint); // in any order
    return socket;
}

static void open_all(struct side *s)
{
    s->context = zmq_ctx_new();
    s->states = open_socket(s, ZMQ_PUB, "joints.state");
    s->commands = open_socket(s, ZMQ_SUB, "joints.command");
    for (int c = 0; c < s->robot->cameras; c++) {
        char name[64];

        snprintf(name, sizeof name, "camera.%s", rig_camera[c]);
        s->camera[c] = open_socket(s, ZMQ_PUB, name);
    }
}

static void close_all(struct side *s)
{
    zmq_close(s->states);
    zmq_close(s->commands);
    for (int c = 0; c < s->robot->cameras; c++)
        zmq_close(s->camera[c]);
    zmq_ctx_term(s->context);
}

static void drive(struct side *s)
{
    struct rig_robot *r = s->robot;
    ns_t step = clock_period_ns(r->joint_hz), next = clock_now_ns(), frame_at = next;
    int cameras = r->frame_hz > 0 ? r->cameras : 0, camera = 0;
    ns_t apart = cameras > 0 ? clock_period_ns(r->frame_hz * cameras) : INT64_MAX / 4;
    uint64_t number = 0;

    while (!atomic_load(&r->stop)) {
        clock_sleep_until(next += step);
        if (clock_now_ns() - next > 100 * NS_PER_MS)
            next = clock_now_ns(); // late is late: no burst of old joint states
        listen(s);
        send_states(s);
        for (; cameras > 0 && clock_now_ns() >= frame_at; frame_at += apart) {
            send_frame(s, camera, number);
            camera = (camera + 1) % cameras;
            number += camera == 0;
        }
    }
}

static void *run(void *arg)
{
    struct side *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->robot = arg;
    open_all(s);
    drive(s);
    close_all(s);
    free(s);
    return NULL;
}

int rig_robot_start(struct rig_robot *r)
{
    r->pictures = take_pictures();
    if (r->pictures == NULL)
        return -ENOMEM;
    atomic_store(&r->set, -1);
    return rt_thread_create(&r->thread, "robot", RT_CLASS_IO, 30, run, r);
}

void rig_robot_measure(struct rig_robot *r, int set, ns_t ns)
{
    atomic_store(&r->set, set);
    clock_sleep_until(clock_now_ns() + ns);
    atomic_store(&r->set, -1);
    clock_sleep_until(clock_now_ns() + 10 * NS_PER_MS); // it may be adding one
}

void rig_robot_stop(struct rig_robot *r)
{
    if (r->pictures == NULL)
        return;
    atomic_store(&r->stop, true);
    pthread_join(r->thread, NULL);
    free_pictures(r->pictures);
    for (int i = 0; i < 2; i++) {
        free(r->lateness[i].v);
        free(r->margin[i].v);
    }
    memset(r, 0, sizeof *r);
}
