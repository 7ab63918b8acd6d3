// bridge: `actd bridge plotjuggler`: a process of its own that subscribes to what a running actd
// publishes, and publishes it once more in the form that PlotJuggler's ZMQ subscriber takes:
// [topic][protobuf][seconds since 1970, ASCII]. Nobody waits for it: it is one subscriber among
// others, and PlotJuggler one of its own. All functions are plain.
//
//   /command       what actd sends the driver
//   /joint_states  where the driver's end is one that others can connect to; where actd's is, the
//                  measured joints are those of /status
//   /status        asked for over the control socket, BRIDGE_STATUS_HZ; where that is not
//                  for us, as published, once a second
#ifndef ACTD_BRIDGE_H
#define ACTD_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config.h"

#define BRIDGE_BIND      "tcp://127.0.0.1:9872" // PlotJuggler's default
#define BRIDGE_STATUS_HZ 20 // of the 50 requests a second that a user has

int bridge_main(int argc, char **argv);

// ---- between its own files, and for tests -----------------------------------------------------
// Nanoseconds since 1970 of field 1, a google.protobuf.Timestamp: each of our messages begins with
// it. False when there is none, or it is none.
bool bridge_stamp(const void *data, size_t size, int64_t *wall_ns);
// "1700000000.123456789" (32 bytes).
void bridge_seconds(int64_t wall_ns, char out[32]);

struct bridge_from { // where to subscribe; "" = nowhere
    char command[CONFIG_PATH], joints[CONFIG_PATH], status[CONFIG_PATH],
        control[CONFIG_PATH];
};
// bridge_find.c. What a daemon of this configuration publishes, or of this name (config NULL) when
// its configuration names no endpoints. Both may be NULL: the daemon called default. 0 or -errno
// with err filled.
int bridge_find(struct bridge_from *out, const char *config, const char *instance,
                struct config_error *err);

// bridge_ask.c. The control socket: one question at a time.
struct bridge_ask {
    int fd; // < 0 = not connected
    bool asked, denied;
    uint8_t reply[256 * 1024];
};
// Connects (again) where that can be done at once, and asks for the status unless it has.
void bridge_ask(struct bridge_ask *a, const char *path);
// The status in what has come: points into a->reply. NULL = not yet, or not for us.
const void *bridge_answer(struct bridge_ask *a, size_t *size);
// The bytes of ControlReply.status in a packet; NULL = it has none. Pure.
const void *bridge_status_of(const void *packet, size_t n, size_t *size);

#endif
