// The messages of wire.h, to and from protobuf-c.
#include "daemon/sim/wire.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <turbojpeg.h>
#include <zmq.h>

#include "actd/v1/joint_command.pb-c.h"
#include "actd/v1/sim_status.pb-c.h"
#include "foxglove/CompressedImage.pb-c.h"
#include "foxglove/JointStates.pb-c.h"
#include "foxglove/RawImage.pb-c.h"

#define JPEG_QUALITY 92
#define NS_PER_S     1000000000
#define TTL_S        0.2 // for commands of simple clients that give none

static char format_jpeg[] = "jpeg", format_rgb8[] = "rgb8";

static Google__Protobuf__Timestamp stamp(int64_t wall_ns)
{
    Google__Protobuf__Timestamp t = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    t.seconds = wall_ns / NS_PER_S;
    t.nanos = (int32_t)(wall_ns % NS_PER_S);
    return t;
}

static void send_message(void *socket, const ProtobufCMessage *m)
{
    zmq_msg_t msg;

    if (zmq_msg_init_size(&msg, protobuf_c_message_get_packed_size(m)) < 0)
        return;
    protobuf_c_message_pack(m, zmq_msg_data(&msg));
    if (zmq_msg_send(&msg, socket, ZMQ_DONTWAIT) < 0)
        zmq_msg_close(&msg);
}

void wire_send_joints(void *socket, const struct scene *s, int64_t wall_ns)
{
    Google__Protobuf__Timestamp when = stamp(wall_ns);
    Foxglove__JointStates all = FOXGLOVE__JOINT_STATES__INIT;
    Foxglove__JointState joint[ARM_JOINTS], *list[ARM_JOINTS];
    char names[ARM_JOINTS][24]; // protobuf-c wants char *, ours are const
    double q[ARM_JOINTS], qd[ARM_JOINTS];

    scene_get_pose(s, q, qd);
    for (int i = 0; i < ARM_JOINTS; i++) {
        foxglove__joint_state__init(&joint[i]);
        strncpy(names[i], arm_name[i], sizeof names[i] - 1);
        names[i][sizeof names[i] - 1] = 0;
        joint[i].name = names[i];
        joint[i].position = q[i];
        joint[i].velocity = qd[i];
        joint[i].effort = s->d->qfrc_actuator[s->dof[i]];
        list[i] = &joint[i];
    }
    all.timestamp = &when;
    all.n_joints = ARM_JOINTS;
    all.joints = list;
    send_message(socket, &all.base);
}

static void send_jpeg(void *socket, char *frame_id, const uint8_t *rgb, int width,
                      int height, int64_t wall_ns)
{
    Google__Protobuf__Timestamp when = stamp(wall_ns);
    Foxglove__CompressedImage image;
    unsigned char *jpeg = NULL;
    unsigned long size = 0;
    tjhandle tj = tjInitCompress();

    foxglove__compressed_image__init(&image);
    // 4:4:4, or the red of a cube nine pixels wide would bleed over its edges.
    if (tj && tjCompress2(tj, rgb, width, 0, height, TJPF_RGB, &jpeg, &size, TJSAMP_444,
                          JPEG_QUALITY, 0) == 0) {
        image.timestamp = &when;
        image.frame_id = frame_id;
        image.format = format_jpeg;
        image.data.data = jpeg;
        image.data.len = size;
        send_message(socket, &image.base);
    }
    tjFree(jpeg);
    if (tj)
        tjDestroy(tj);
}

static void send_raw(void *socket, char *frame_id, uint8_t *rgb, int width, int height,
                     int64_t wall_ns)
{
    Google__Protobuf__Timestamp when = stamp(wall_ns);
    Foxglove__RawImage image;

    foxglove__raw_image__init(&image);
    image.timestamp = &when;
    image.frame_id = frame_id;
    image.width = (uint32_t)width;
    image.height = (uint32_t)height;
    image.encoding = format_rgb8;
    image.step = (uint32_t)width * 3;
    image.data.data = rgb;
    image.data.len = (size_t)width * (size_t)height * 3;
    send_message(socket, &image.base);
}

void wire_send_frame(void *socket, const char *frame_id, bool raw, const uint8_t *rgb,
                     int width, int height, int64_t wall_ns)
{
    char name[32] = {0};
    size_t size = (size_t)width * (size_t)height * 3;

    strncpy(name, frame_id, sizeof name - 1);
    if (!raw) {
        send_jpeg(socket, name, rgb, width, height, wall_ns);
        return;
    }
    uint8_t *copy = malloc(size); // protobuf-c's bytes are not const
    if (copy) {
        memcpy(copy, rgb, size);
        send_raw(socket, name, copy, width, height, wall_ns);
    }
    free(copy);
}

void wire_send_status(void *socket, const struct plant *p, const struct wire_counts *c)
{
    Actd__V1__SimStatus s = ACTD__V1__SIM_STATUS__INIT;
    double tip[3], goal[3];
    unsigned n =
        p->task.episode < TASK_EPISODES_MAX ? p->task.episode : TASK_EPISODES_MAX;
    double *final = malloc((n + 1) * sizeof *final);

    if (!final)
        return;
    for (unsigned i = 0; i < n; i++)
        final[i] = (double)p->final_m[i];
    scene_tip(&p->scene, tip);
    memcpy(goal, p->task.goal_m, sizeof goal);
    s.sim_time_s = p->scene.d->time;
    s.episode = p->task.episode;
    s.episodes_total = p->episodes;
    s.succeeded = p->task.succeeded;
    s.failed = p->task.failed;
    s.goal_distance_m = p->task.distance_m;
    s.done = p->done;
    s.commands_received = c->commands;
    s.ttl_stops = p->servo.ttl_stops;
    s.decode_errors = c->refused;
    s.tip_m = tip;
    s.goal_m = goal;
    s.n_tip_m = s.n_goal_m = 3;
    s.best_distance_m = p->task.best_m;
    s.final_distance_m = final;
    s.n_final_distance_m = n;
    send_message(socket, &s.base);
    free(final);
}

// Fills target[ARM_JOINTS] by name: each joint exactly once.
static int read_targets(const Actd__V1__JointCommand *m, double *target)
{
    unsigned seen = 0;

    for (size_t k = 0; k < m->n_joints; k++) {
        int i = 0;
        while (i < ARM_JOINTS && strcmp(m->joints[k]->name, arm_name[i]) != 0)
            i++;
        if (i == ARM_JOINTS || (seen & (1u << i)))
            return -ENOENT;
        seen |= 1u << i;
        target[i] = m->joints[k]->position;
        if (!isfinite(target[i]) || !isfinite(m->joints[k]->velocity))
            return -EDOM;
    }
    return seen == (1u << ARM_JOINTS) - 1 ? 0 : -ENOENT;
}

int wire_obey(const void *data, size_t size, struct plant *p, struct wire_counts *c)
{
    double target[ARM_JOINTS];
    int rc = -EBADMSG;
    Actd__V1__JointCommand *m =
        size ? actd__v1__joint_command__unpack(NULL, size, data) : NULL;

    if (m)
        rc = read_targets(m, target);
    if (rc == 0) {
        servo_command(&p->servo, target,
                      m->time_to_live_ns ? (double)m->time_to_live_ns / NS_PER_S : TTL_S);
        c->commands++;
        // Simple clients do not send a mode.
        if (m->mode == ACTD__V1__MODE__MODE_RUNNING ||
            m->mode == ACTD__V1__MODE__MODE_UNSPECIFIED)
            p->begun = true;
    } else {
        c->refused++;
    }
    if (m)
        actd__v1__joint_command__free_unpacked(m, NULL);
    return rc;
}
