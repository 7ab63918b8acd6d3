// plant: an arm of n joints with a position servo each, and the driver in front of it. The servo
// follows the last command that lives with a first-order lag, within a speed and an acceleration
// that are the motor's own. The driver decodes command bytes, obeys the newest, counts its time
// to live from receipt, and brakes by itself when that is over. Time is an argument.
#ifndef ACTD_FAULT_PLANT_H
#define ACTD_FAULT_PLANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/board.h"

#define PLANT_STEP_NS NS_PER_MS

// A command as the driver decoded it.
struct heard {
    ns_t received_ns;
    uint64_t sequence, tick;
    int mode, reason, limit; // actd.v1.Mode, Reason, Limit
    char limited_joint[64];
    int n;
    double pos[ACTD_MAX_JOINTS], vel[ACTD_MAX_JOINTS], wanted[ACTD_MAX_JOINTS];
    ns_t ttl_ns, joint_age_ns, frame_age_ns, margin_ns, lateness_ns;
    uint64_t chunk_id;
    double chunk_row;
    uint32_t blended;
};

struct plant_config {
    int joints;
    char name[ACTD_MAX_JOINTS][16];
    double speed[ACTD_MAX_JOINTS];        // rad/s that the motor can do
    double acceleration[ACTD_MAX_JOINTS]; // rad/s²
    double start[ACTD_MAX_JOINTS];        // rad
    double lag_s;                         // of the servo
};

struct plant {
    struct plant_config cfg;
    ns_t now_ns;
    double pos[ACTD_MAX_JOINTS], vel[ACTD_MAX_JOINTS];
    bool blocked[ACTD_MAX_JOINTS];
    bool has_command;                   // ever
    struct heard command;               // the newest
    bool alive;                         // its time to live is not over
    uint64_t heard, stale, undecodable; // messages; stale: older than the newest
    uint64_t stops;                     // times that the time to live ran out
};

void plant_init(struct plant *p, const struct plant_config *cfg, ns_t now);
// One command message, received now. False: not decodable, or older than the newest.
bool plant_hear(struct plant *p, const void *data, size_t size, ns_t now);
// Moves the arm up to `now`, in steps of PLANT_STEP_NS.
void plant_move(struct plant *p, ns_t now);

#endif
