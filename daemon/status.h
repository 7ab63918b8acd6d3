// status: how the daemon is doing: once a second a protobuf message for machines and a line in
// the log for people, both made from the same numbers; the message also whenever someone asks.
// Class plain, any number of threads: a mutex is held while a message is made. Reads the board; no
// other thread class waits for it.
#ifndef ACTD_STATUS_H
#define ACTD_STATUS_H

#include <stdbool.h>

#include "daemon/blackbox.h"
#include "daemon/board.h"
#include "daemon/bus.h"
#include "daemon/camera.h"
#include "daemon/config.h"
#include "daemon/explain.h"
#include "daemon/infer.h"
#include "daemon/swap.h"
#include "policy/policy.h"

#define STATUS_MOST (64 * 1024) // bytes that a packed status has at most

struct status_source {
    const struct config *cfg;
    const struct policy_info *policy; // of the first one; may be NULL
    struct board *board;
    const struct bus *bus;
    struct camera *const *cameras; // (cfg->n_cameras)
    const struct infer *infer;
    struct blackbox_writer *blackbox; // NULL = none
    struct recorder *recorder;        // NULL = none
    struct swap *swap;                // knows the policy in use; NULL = always the first
    const struct explain_source *explain; // NULL = made of what is here
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

// plain. An actd.v1.Status of now into out (size; STATUS_MOST is always enough): rates are those
// of the last whole second, all else is as of the newest tick. Bytes, or 0 when they do not fit.
// Takes the mutex of the swap while it holds its own.
size_t status_pack(struct status *s, uint8_t *out, size_t size);

// plain. Messages received per second as of the last status_publish: joints, then the cameras. 0 of
// a stream that began, or came back, within that second: what a part of one says is no rate.
void status_received_hz(struct status *s, double hz[POLICY_MAX_CAMERAS + 1]);

// plain. The last lines of a run: rates, worst lateness, chunks, what was limited and dropped.
void status_summary(struct status *s);

#endif
