// A driver at 500 Hz and two cameras at 50 Hz that drop, double, reorder, corrupt, fall silent,
// reconnect and restart, all from one seed. Mild faults are bounded so that the arm never has to
// stop: no two bad messages in a row, no silence as long as a stop. Harsh ones are not.
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <turbojpeg.h>
#include <unistd.h>
#include <zmq.h>

#include "actd/v1/joint_command.pb-c.h"
#include "foxglove/CompressedImage.pb-c.h"
#include "foxglove/JointStates.pb-c.h"
#include "foxglove/RawImage.pb-c.h"
#include "tests/soak/soak.h"

#define MESSAGE_MAX (64 * 1024)
#define FRAME_NS    (20 * NS_PER_MS)

const char *const soak_joint[SOAK_JOINTS] = {
    "shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"};
const char *const soak_camera[SOAK_CAMERAS] = {"front", "wrist"};

struct picture {
    int width, height;
    uint8_t *rgb[SOAK_PICTURES];
};

struct soak_robot {
    uint64_t random;
    char runtime[PATH_MAX];
    void *context, *states, *commands, *idle, *frames[SOAK_CAMERAS];
    struct picture picture[SOAK_CAMERAS];
    tjhandle jpeg;
    double pose[SOAK_JOINTS];
    ns_t silent_until[1 + SOAK_CAMERAS], next_frame[SOAK_CAMERAS], next_trouble;
    ns_t nan_until, swapped_until, clock_until, corrupt_until;
    int64_t last_stamp_ns;
    bool was_bad[1 + SOAK_CAMERAS];
    uint8_t message[MESSAGE_MAX], old[MESSAGE_MAX];
    size_t old_size;
    struct soak_counts n;
};

uint64_t soak_random(uint64_t *s)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * UINT64_C(2685821657736338717);
}

uint64_t soak_below(uint64_t *s, uint64_t n)
{
    return (soak_random(s) >> 11) % n;
}

static uint64_t below(struct soak_robot *r, uint64_t n)
{
    return soak_below(&r->random, n);
}

// ---- sockets ---------------------------------------------------------------------------------

static void *open_socket(struct soak_robot *r, int type, const char *what)
{
    char endpoint[PATH_MAX + 64];
    void *s = zmq_socket(r->context, type);
    const int none = 0, mark = 8, again_ms = 20;

    snprintf(endpoint, sizeof endpoint, "ipc://%s/%s", r->runtime, what);
    zmq_setsockopt(s, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(s, ZMQ_SNDHWM, &mark, sizeof mark);
    zmq_setsockopt(s, ZMQ_RECONNECT_IVL, &again_ms, sizeof again_ms);
    if (type == ZMQ_SUB)
        zmq_setsockopt(s, ZMQ_SUBSCRIBE, "", 0);
    zmq_connect(s, endpoint);
    return s;
}

static void open_all(struct soak_robot *r)
{
    char name[64];

    r->context = zmq_ctx_new();
    r->states = open_socket(r, ZMQ_PUB, "joints.state");
    r->commands = open_socket(r, ZMQ_SUB, "joints.command");
    r->idle = open_socket(r, ZMQ_SUB, "joints.command"); // reads never
    for (int c = 0; c < SOAK_CAMERAS; c++) {
        snprintf(name, sizeof name, "camera.%s", soak_camera[c]);
        r->frames[c] = open_socket(r, ZMQ_PUB, name);
    }
}

static void close_all(struct soak_robot *r)
{
    zmq_close(r->states);
    zmq_close(r->commands);
    zmq_close(r->idle);
    for (int c = 0; c < SOAK_CAMERAS; c++)
        zmq_close(r->frames[c]);
    zmq_ctx_term(r->context);
}

static void reconnect(struct soak_robot *r)
{
    char name[64];
    int c = (int)below(r, SOAK_CAMERAS);

    r->n.reconnects++;
    switch (below(r, 4)) {
    case 0:
        zmq_close(r->states);
        r->states = open_socket(r, ZMQ_PUB, "joints.state");
        return;
    case 1:
        zmq_close(r->commands);
        r->commands = open_socket(r, ZMQ_SUB, "joints.command");
        return;
    case 2:
        zmq_close(r->idle);
        r->idle = open_socket(r, ZMQ_SUB, "joints.command");
        return;
    default:
        snprintf(name, sizeof name, "camera.%s", soak_camera[c]);
        zmq_close(r->frames[c]);
        r->frames[c] = open_socket(r, ZMQ_PUB, name);
    }
}

static void send_bytes(void *socket, const void *data, size_t size)
{
    (void)zmq_send(socket, data, size,
                   ZMQ_DONTWAIT); // dropped is as good as lost on the way
}

// ---- messages --------------------------------------------------------------------------------

static void stamp_now(const struct soak_robot *r, ns_t now,
                      Google__Protobuf__Timestamp *t)
{
    int64_t wall = clock_wall_ns() + (now < r->clock_until ? 3600 * NS_PER_S : 0);

    google__protobuf__timestamp__init(t);
    t->seconds = wall / NS_PER_S;
    t->nanos = (int32_t)(wall % NS_PER_S);
}

static size_t pack_states(struct soak_robot *r, ns_t now, int joints, bool nan, bool swap)
{
    Google__Protobuf__Timestamp stamp;
    Foxglove__JointStates m = FOXGLOVE__JOINT_STATES__INIT;
    Foxglove__JointState joint[SOAK_JOINTS], *list[SOAK_JOINTS];

    stamp_now(r, now, &stamp);
    for (int j = 0; j < SOAK_JOINTS; j++) {
        foxglove__joint_state__init(&joint[j]);
        joint[j].name = (char *)(uintptr_t)soak_joint[swap && j == 0 ? 1 : j];
        joint[j].position = r->pose[j];
        list[j] = &joint[j];
    }
    if (nan)
        joint[below(r, SOAK_JOINTS)].position = below(r, 2) ? NAN : INFINITY;
    m.timestamp = &stamp;
    m.joints = list;
    m.n_joints = (size_t)joints;
    return foxglove__joint_states__pack(&m, r->message);
}

static size_t pack_raw(struct soak_robot *r, int c, uint8_t *rgb, ns_t now)
{
    static char encoding[] = "rgb8";
    const struct picture *p = &r->picture[c];
    Google__Protobuf__Timestamp stamp;
    Foxglove__RawImage m = FOXGLOVE__RAW_IMAGE__INIT;

    stamp_now(r, now, &stamp);
    m.timestamp = &stamp;
    m.width = (uint32_t)p->width;
    m.height = (uint32_t)p->height;
    m.step = 3 * m.width;
    m.encoding = encoding;
    m.data = (ProtobufCBinaryData){3 * (size_t)p->width * (size_t)p->height, rgb};
    return foxglove__raw_image__pack(&m, r->message);
}

static size_t pack_jpeg(struct soak_robot *r, int c, uint8_t *rgb, ns_t now, bool corrupt)
{
    static char format[] = "jpeg";
    const struct picture *p = &r->picture[c];
    Google__Protobuf__Timestamp stamp;
    Foxglove__CompressedImage m = FOXGLOVE__COMPRESSED_IMAGE__INIT;
    unsigned char *bytes = NULL;
    unsigned long size = 0;
    size_t n;

    if (tjCompress2(r->jpeg, rgb, p->width, 0, p->height, TJPF_RGB, &bytes, &size,
                    TJSAMP_444, 90, 0) != 0)
        return 0;
    stamp_now(r, now, &stamp);
    m.timestamp = &stamp;
    m.format = format;
    if (corrupt && below(r, 2))
        size /= 2;
    else if (corrupt)
        for (int i = 0; i < 4; i++)
            bytes[below(r, size)] ^= (uint8_t)(1 + below(r, 255));
    m.data = (ProtobufCBinaryData){size, bytes};
    n = foxglove__compressed_image__pack(&m, r->message);
    tjFree(bytes);
    return n;
}

// Bytes that are wrong in one of many ways; sends them itself. size: a good message in `message`.
static void send_spoilt(struct soak_robot *r, void *socket, size_t size)
{
    switch (below(r, 6)) {
    case 0:
        r->message[below(r, size)] ^= (uint8_t)(1u << below(r, 8));
        send_bytes(socket, r->message, size);
        return;
    case 1:
        send_bytes(socket, r->message, below(r, size));
        return;
    case 2:
        for (size_t i = 0; i < size; i++)
            r->message[i] = (uint8_t)soak_random(&r->random);
        send_bytes(socket, r->message, size);
        return;
    case 3:
        send_bytes(socket, "", 0);
        return;
    case 4: // several parts
        if (zmq_send(socket, r->message, size, ZMQ_DONTWAIT | ZMQ_SNDMORE) >= 0)
            send_bytes(socket, r->message, size);
        return;
    default: // beyond every cap of a joint state
        memset(r->message, 0x0a, MESSAGE_MAX);
        send_bytes(socket, r->message, MESSAGE_MAX);
    }
}

// ---- streams ---------------------------------------------------------------------------------

static void send_bad_states(struct soak_robot *r, ns_t now)
{
    size_t size;

    r->n.bad++;
    switch (below(r, 4)) {
    case 0:
        size = pack_states(r, now, SOAK_JOINTS, true, false);
        break;
    case 1:
        size = pack_states(r, now, SOAK_JOINTS, false, true);
        break;
    case 2:
        size = pack_states(r, now, SOAK_JOINTS - 1, false, false);
        break;
    default:
        send_spoilt(r, r->states, pack_states(r, now, SOAK_JOINTS, false, false));
        return;
    }
    send_bytes(r->states, r->message, size);
}

static void send_states(struct soak_robot *r, enum soak_mood mood, ns_t now)
{
    uint64_t dice = mood == SOAK_CALM ? 999 : below(r, 1000);
    bool bad = (dice >= 40 && dice < 60 && !r->was_bad[0]) || now < r->nan_until ||
               now < r->swapped_until;
    size_t size;

    r->was_bad[0] = bad;
    if (bad) {
        send_bad_states(r, now);
        return;
    }
    if (dice < 20) {
        r->n.dropped++;
        return;
    }
    size = pack_states(r, now, SOAK_JOINTS, false, false);
    send_bytes(r->states, r->message, size);
    r->n.states++;
    if (dice < 30) {
        send_bytes(r->states, r->message, size);
        r->n.duplicate++;
    } else if (dice < 40 && r->old_size > 0) {
        send_bytes(r->states, r->old, r->old_size);
        r->n.reordered++;
    }
    if (dice % 7 == 0) {
        memcpy(r->old, r->message, size);
        r->old_size = size;
    }
}

// A little noise makes every frame another one, as a sensor does.
static void send_frame(struct soak_robot *r, int c, enum soak_mood mood, ns_t now)
{
    const struct picture *p = &r->picture[c];
    uint8_t *rgb = p->rgb[below(r, SOAK_PICTURES)];
    uint64_t dice = mood == SOAK_CALM ? 999 : below(r, 100);
    bool bad = (dice < 4 && !r->was_bad[1 + c]) || now < r->corrupt_until;
    size_t size;

    for (int i = 0; i < 64; i++)
        rgb[below(r, 3 * (uint64_t)p->width * (uint64_t)p->height)] ^= 1;
    r->was_bad[1 + c] = bad;
    r->n.frames++;
    r->n.bad_frames += bad;
    size = below(r, 2) ? pack_raw(r, c, rgb, now)
                       : pack_jpeg(r, c, rgb, now, bad && (dice & 1));
    if (bad && !(dice & 1))
        send_spoilt(r, r->frames[c], size);
    else
        send_bytes(r->frames[c], r->message, size);
}

// The newest one counts, and the arm is there at once.
static void obey(struct soak_robot *r)
{
    static uint8_t buf[MESSAGE_MAX];
    Actd__V1__JointCommand *c;
    int size = -1, n;

    while ((n = zmq_recv(r->commands, buf, sizeof buf, ZMQ_DONTWAIT)) >= 0) {
        size = n;
        r->n.commands++;
    }
    if (size < 0 ||
        (c = actd__v1__joint_command__unpack(NULL, (size_t)size, buf)) == NULL)
        return;
    for (size_t j = 0; j < c->n_joints && j < SOAK_JOINTS; j++)
        r->pose[j] = c->joints[j]->position;
    r->n.mode = (int)c->mode;
    r->n.reason = (int)c->reason;
    r->n.in_mode[(unsigned)c->mode % SOAK_STATES]++;
    actd__v1__joint_command__free_unpacked(c, NULL);
}

// ---- trouble ---------------------------------------------------------------------------------

static void mild_trouble(struct soak_robot *r, ns_t now)
{
    int c = (int)below(r, SOAK_CAMERAS);

    switch (below(r, 8)) {
    case 0: // HOLD after 300 ms of them, a stop after 500
        r->silent_until[0] = now + (ns_t)(320 + below(r, 80)) * NS_PER_MS;
        r->n.silences++;
        break;
    case 1: // degraded after 600 ms, a stop after 2 s
        r->silent_until[1 + c] = now + (ns_t)(650 + below(r, 500)) * NS_PER_MS;
        r->n.silences++;
        break;
    case 2: // the driver dies and comes back at once
        close_all(r);
        open_all(r);
        r->n.restarts++;
        break;
    default:
        reconnect(r);
    }
}

static void flood(struct soak_robot *r)
{
    for (int i = 0; i < 5000; i++)
        send_spoilt(r, below(r, 2) ? r->states : r->frames[below(r, SOAK_CAMERAS)],
                    1 + below(r, 2000));
}

static void harsh_trouble(struct soak_robot *r, ns_t now)
{
    r->n.harsh++;
    switch (below(r, 8)) {
    case 0:
        r->silent_until[0] = now + 2 * NS_PER_S;
        break;
    case 1:
        r->silent_until[1 + below(r, SOAK_CAMERAS)] = now + 3 * NS_PER_S;
        break;
    case 2:
        r->nan_until = now + 100 * NS_PER_MS;
        break;
    case 3:
        r->swapped_until = now + 600 * NS_PER_MS;
        break;
    case 4:
        r->clock_until = now + 3 * NS_PER_S;
        break;
    case 5:
        r->corrupt_until = now + NS_PER_S;
        break;
    case 6:
        r->pose[below(r, SOAK_JOINTS)] += 0.8; // somebody pushes it, or the encoder slips
        break;
    default:
        flood(r);
    }
}

void soak_robot_step(struct soak_robot *r, enum soak_mood mood, ns_t now)
{
    obey(r);
    if (mood == SOAK_CALM)
        memset(r->silent_until, 0, sizeof r->silent_until);
    if (mood != SOAK_CALM && now >= r->next_trouble) {
        if (mood == SOAK_HARSH && below(r, 2))
            harsh_trouble(r, now);
        else
            mild_trouble(r, now);
        r->next_trouble = now + (ns_t)(500 + below(r, 2500)) * NS_PER_MS;
    }
    if (now >= r->silent_until[0])
        send_states(r, mood, now);
    for (int c = 0; c < SOAK_CAMERAS; c++)
        if (now >= r->next_frame[c]) {
            r->next_frame[c] = now + FRAME_NS;
            if (now >= r->silent_until[1 + c])
                send_frame(r, c, mood, now);
        }
}

void soak_robot_forget(struct soak_robot *r)
{
    static const double rest[SOAK_JOINTS] = {0.0, -0.9, 0.9, 0.6, 0.0, 0.1};

    memcpy(r->pose, rest, sizeof rest);
    memset(r->silent_until, 0, sizeof r->silent_until);
    r->nan_until = r->swapped_until = r->clock_until = r->corrupt_until = 0;
    r->n.mode = r->n.reason = 0;
    r->old_size = 0;
}

const struct soak_counts *soak_robot_counts(const struct soak_robot *r)
{
    return &r->n;
}

// ---- pictures --------------------------------------------------------------------------------

static int keep_picture(struct picture *p, int i, const uint8_t *bytes, size_t size)
{
    Foxglove__RawImage *m = foxglove__raw_image__unpack(NULL, size, bytes);
    int rc = -EPROTO;

    if (m && (p->rgb[i] = malloc(m->data.len))) {
        memcpy(p->rgb[i], m->data.data, m->data.len);
        p->width = (int)m->width;
        p->height = (int)m->height;
        rc = 0;
    }
    if (m)
        foxglove__raw_image__free_unpacked(m, NULL);
    return rc;
}

static int take_pictures(struct soak_robot *r, const char *directory)
{
    void *context = zmq_ctx_new();
    const int ms = 20000, none = 0;
    int rc = 0;

    for (int c = 0; c < SOAK_CAMERAS && rc == 0; c++) {
        static uint8_t buf[MESSAGE_MAX];
        char endpoint[PATH_MAX + 64];
        void *s = zmq_socket(context, ZMQ_SUB);

        snprintf(endpoint, sizeof endpoint, "ipc://%s/camera.%s", directory,
                 soak_camera[c]);
        zmq_setsockopt(s, ZMQ_SUBSCRIBE, "", 0);
        zmq_setsockopt(s, ZMQ_RCVTIMEO, &ms, sizeof ms);
        zmq_setsockopt(s, ZMQ_LINGER, &none, sizeof none);
        zmq_connect(s, endpoint);
        for (int i = 0; i < SOAK_PICTURES && rc == 0; i++) {
            int n = zmq_recv(s, buf, sizeof buf, 0);
            rc = n < 0 ? -errno : keep_picture(&r->picture[c], i, buf, (size_t)n);
        }
        zmq_close(s);
    }
    zmq_ctx_term(context);
    return rc;
}

// The simulator's own view, so that the policy sees what it was trained on.
static int photograph(struct soak_robot *r, const char *build)
{
    extern char **environ;
    char program[PATH_MAX], directory[] = "/tmp/actd-soak-XXXXXX", command[128];
    char *argv[] = {"actd-sim", "--runtime",  directory, "--bind",
                    "--raw",    "--episodes", "0",       NULL};
    pid_t pid;
    int rc;

    snprintf(program, sizeof program, "%s/actd-sim", build);
    if (!mkdtemp(directory))
        return -errno;
    rc = -posix_spawn(&pid, program, NULL, NULL, argv, environ);
    if (rc == 0) {
        rc = take_pictures(r, directory);
        kill(pid, SIGTERM);
        waitpid(pid, NULL, 0);
    }
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    if (system(command) != 0)
        fprintf(stderr, "soak: %s is left over\n", directory);
    return rc;
}

int soak_robot_new(struct soak_robot **out, const char *build, const char *runtime,
                   uint64_t seed)
{
    struct soak_robot *r = calloc(1, sizeof *r);
    int rc;

    *out = r;
    if (r == NULL)
        return -ENOMEM;
    r->random = seed * 2 + 1;
    r->jpeg = tjInitCompress();
    snprintf(r->runtime, sizeof r->runtime, "%s", runtime);
    soak_robot_forget(r);
    rc = photograph(r, build);
    if (rc)
        fprintf(stderr, "soak: no pictures from %s/actd-sim: %s\n", build, strerror(-rc));
    open_all(r);
    return rc;
}

void soak_robot_free(struct soak_robot *r)
{
    if (r == NULL)
        return;
    close_all(r);
    tjDestroy(r->jpeg);
    for (int c = 0; c < SOAK_CAMERAS; c++)
        for (int i = 0; i < SOAK_PICTURES; i++)
            free(r->picture[c].rgb[i]);
    free(r);
}
