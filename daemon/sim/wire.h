// What the simulated robot says and hears: foxglove.JointStates, camera frames and
// actd.v1.SimStatus out, actd.v1.JointCommand in. One PUB or SUB socket per stream, single-part
// messages, bounded queues, nothing lingers.
//
// A socket belongs to the thread that opened it. All functions: plain threads.
#ifndef ACTD_SIM_WIRE_H
#define ACTD_SIM_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/sim/plant.h"

enum {
    WIRE_COMMAND_MAX = 64 * 1024, // bytes; a larger command drops its connection
    WIRE_SMALL_HWM = 64,
    WIRE_FRAME_HWM = 4,
    WIRE_PATH_MAX = 256,
};

enum wire_role { WIRE_CONNECT, WIRE_BIND };

struct wire_counts {
    uint64_t commands; // obeyed
    uint64_t refused;  // not a command for these joints, or not finite
};

// Opens ipc://runtime/stream. `zmq_type` is ZMQ_PUB or ZMQ_SUB. NULL with a sentence in err.
void *wire_open(void *zmq, int zmq_type, int hwm, enum wire_role role,
                const char *runtime, const char *stream, char *err, size_t err_len);
void wire_close(void *socket);

// Creates the directory of the ipc sockets, with parents, mode 0750. 0 or -errno.
int wire_make_runtime(const char *runtime);

// Publishers drop what does not fit: a stuck reader must not stop the robot.
void wire_send_joints(void *socket, const struct scene *s, int64_t wall_ns);
void wire_send_frame(void *socket, const char *frame_id, bool raw, const uint8_t *rgb,
                     int width, int height, int64_t wall_ns);
void wire_send_status(void *socket, const struct plant *p, const struct wire_counts *c);

// One command's bytes: parsed, checked, given to the servos. Returns 0, -EBADMSG (not a
// message), -ENOENT (names), -EDOM (not finite). Counts.
int wire_obey(const void *data, size_t size, struct plant *p, struct wire_counts *c);

// Obeys what has arrived, at most `most` messages; returns how many were obeyed.
int wire_receive(void *socket, int most, struct plant *p, struct wire_counts *c);

#endif
