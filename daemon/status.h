// status: how the daemon is doing, once a second: a protobuf message for machines and a line in
// the log for people, both made from the same numbers. Class plain. Reads the board; nobody
// waits for it.
#ifndef ACTD_STATUS_H
#define ACTD_STATUS_H

#include <stdbool.h>

#include "daemon/blackbox.h"
#include "daemon/board.h"
#include "daemon/bus.h"
#include "daemon/camera.h"
#include "daemon/config.h"
#include "daemon/infer.h"
#include "policy/policy.h"

struct status_source {
    const struct config *cfg;
    const struct policy_info *policy;
    struct board *board;
    const struct bus *bus;
    struct camera *const *cameras; // (cfg->n_cameras)
    const struct infer *infer;
    struct blackbox_writer *blackbox; // NULL = none
    const char *scheduling; // class granted to the loop, as the kernel reports it
    bool memory_locked;
    void *publisher; // from bus_publisher
};

struct status;

// plain. Copies *src; what it points to must outlive the status. 0 or -ENOMEM.
int status_new(struct status **out, const struct status_source *src);
void status_free(struct status *s);

// plain, about once a second: publishes and logs.
void status_publish(struct status *s);

// plain. Messages received per second as of the last status: joints, then the cameras.
void status_received_hz(const struct status *s, double hz[POLICY_MAX_CAMERAS + 1]);

// plain. The last lines of a run: rates, worst lateness, chunks, what was limited and dropped.
void status_summary(struct status *s);

#endif
