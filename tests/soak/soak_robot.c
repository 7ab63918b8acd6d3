// A driver at 500 Hz and two cameras at 50 Hz that drop, double, reorder, corrupt, fall silent,
// reconnect and restart, all from one seed. Mild faults are bounded so that the arm never has to
// stop: no two bad messages in a row, no silence as long as a stop. Harsh ones are not.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "actd/v1/joint_command.pb-c.h"
#include "tests/soak/soak_impl.h"

#define FRAME_NS (20 * NS_PER_MS)

const char *const soak_joint[SOAK_JOINTS] = {
    "shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"};
const char *const soak_camera[SOAK_CAMERAS] = {"front", "wrist"};

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

uint64_t soak_dice(struct soak_robot *r, uint64_t n)
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
    int c = (int)soak_dice(r, SOAK_CAMERAS);

    r->n.reconnects++;
    switch (soak_dice(r, 4)) {
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

// Bytes that are wrong in one of many ways; sends them itself. size: a good message in `message`.
static void send_spoilt(struct soak_robot *r, void *socket, size_t size)
{
    size_t at;

    switch (soak_dice(r, 6)) {
    case 0:
        // Not in the stamp: one that is a little ahead is believed, and what follows it is not.
        at = size > 64 ? 16 + soak_dice(r, size - 16) : soak_dice(r, size);
        r->message[at] ^= (uint8_t)(1u << soak_dice(r, 8));
        send_bytes(socket, r->message, size);
        return;
    case 1:
        send_bytes(socket, r->message, soak_dice(r, size));
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
        memset(r->message, 0x0a, SOAK_MESSAGE);
        send_bytes(socket, r->message, SOAK_MESSAGE);
    }
}

// ---- streams ---------------------------------------------------------------------------------

static void send_bad_states(struct soak_robot *r, ns_t now)
{
    size_t size;

    r->n.bad++;
    switch (soak_dice(r, 4)) {
    case 0:
        size = soak_pack_states(r, now, SOAK_JOINTS, true, false);
        break;
    case 1:
        size = soak_pack_states(r, now, SOAK_JOINTS, false, true);
        break;
    case 2:
        size = soak_pack_states(r, now, SOAK_JOINTS - 1, false, false);
        break;
    default:
        send_spoilt(r, r->states, soak_pack_states(r, now, SOAK_JOINTS, false, false));
        return;
    }
    send_bytes(r->states, r->message, size);
}

static void send_states(struct soak_robot *r, enum soak_mood mood, ns_t now)
{
    uint64_t dice = mood == SOAK_CALM ? 999 : soak_dice(r, 1000);
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
    size = soak_pack_states(r, now, SOAK_JOINTS, false, false);
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
    const struct soak_picture *p = &r->picture[c];
    uint8_t *rgb = p->rgb[soak_dice(r, SOAK_PICTURES)];
    uint64_t dice = mood == SOAK_CALM ? 999 : soak_dice(r, 100);
    bool bad = (dice < 4 && !r->was_bad[1 + c]) || now < r->corrupt_until;
    size_t size;

    for (int i = 0; i < 64; i++)
        rgb[soak_dice(r, 3 * (uint64_t)p->width * (uint64_t)p->height)] ^= 1;
    r->was_bad[1 + c] = bad;
    r->n.frames++;
    r->n.bad_frames += bad;
    size = soak_dice(r, 2) ? soak_pack_raw(r, c, rgb, now)
                           : soak_pack_jpeg(r, c, rgb, now, bad && (dice & 1));
    if (bad && !(dice & 1))
        send_spoilt(r, r->frames[c], size);
    else
        send_bytes(r->frames[c], r->message, size);
}

// An arm goes there as fast as the fastest can, and no faster: one that was everywhere at once
// would jump when its driver has been away.
#define ARM_RAD_S 4.0

static void move(struct soak_robot *r, ns_t now)
{
    ns_t since = r->moved_ns ? now - r->moved_ns : 0;
    double step = ARM_RAD_S * (double)since / (double)NS_PER_S;

    for (int j = 0; j < SOAK_JOINTS; j++)
        r->pose[j] += fmin(fmax(r->target[j] - r->pose[j], -step), step);
    r->moved_ns = now;
}

// The newest one counts.
static void obey(struct soak_robot *r)
{
    static uint8_t buf[SOAK_MESSAGE];
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
        r->target[j] = c->joints[j]->position;
    r->n.mode = (int)c->mode;
    r->n.reason = (int)c->reason;
    r->n.in_mode[(unsigned)c->mode % SOAK_STATES]++;
    actd__v1__joint_command__free_unpacked(c, NULL);
}

// ---- trouble ---------------------------------------------------------------------------------

static void mild_trouble(struct soak_robot *r, ns_t now)
{
    int c = (int)soak_dice(r, SOAK_CAMERAS);

    switch (soak_dice(r, 8)) {
    case 0: // HOLD after 750 ms of them, a stop after 1250
        r->silent_until[0] = now + (ns_t)(800 + soak_dice(r, 150)) * NS_PER_MS;
        r->n.silences++;
        break;
    case 1: // degraded after 600 ms, a stop after 2 s
        r->silent_until[1 + c] = now + (ns_t)(650 + soak_dice(r, 500)) * NS_PER_MS;
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
        send_spoilt(r,
                    soak_dice(r, 2) ? r->states : r->frames[soak_dice(r, SOAK_CAMERAS)],
                    1 + soak_dice(r, 2000));
}

static void harsh_trouble(struct soak_robot *r, ns_t now)
{
    r->n.harsh++;
    switch (soak_dice(r, 8)) {
    case 0:
        r->silent_until[0] = now + 2 * NS_PER_S;
        break;
    case 1:
        r->silent_until[1 + soak_dice(r, SOAK_CAMERAS)] = now + 3 * NS_PER_S;
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
        r->pose[soak_dice(r, SOAK_JOINTS)] +=
            0.8; // somebody pushes it, or the encoder slips
        break;
    default:
        flood(r);
    }
}

void soak_robot_step(struct soak_robot *r, enum soak_mood mood, ns_t now)
{
    obey(r);
    move(r, now);
    if (mood == SOAK_CALM)
        memset(r->silent_until, 0, sizeof r->silent_until);
    if (mood != SOAK_CALM && now >= r->next_trouble) {
        if (mood == SOAK_HARSH && soak_dice(r, 2))
            harsh_trouble(r, now);
        else
            mild_trouble(r, now);
        // Later than any mild silence ends: two in a row would be a stop.
        r->next_trouble =
            now +
            (ns_t)(mood == SOAK_HARSH ? 500 : 1500 + soak_dice(r, 1500)) * NS_PER_MS;
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
    memcpy(r->target, rest, sizeof rest);
    memset(r->silent_until, 0, sizeof r->silent_until);
    r->nan_until = r->swapped_until = r->clock_until = r->corrupt_until = 0;
    r->n.mode = r->n.reason = 0;
    r->old_size = 0;
}

void soak_robot_hush(struct soak_robot *r, ns_t until)
{
    r->silent_until[0] = until;
}

const struct soak_counts *soak_robot_counts(const struct soak_robot *r)
{
    return &r->n;
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
    rc = soak_photograph(r, build);
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
