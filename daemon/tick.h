// tick: what one tick of the loop depended on, and what came of it. The inputs are sampled once, at
// the beginning of the tick, by loop_inputs.c; the loop looks at nothing else of the board, but for
// what became of the command before, which is sampled when the next one is made. So who puts the
// same inputs on a board and calls loop_tick with the same times gets the same outputs, bit by bit:
// that is what a replay does. The record is what a recording keeps of a tick (actd.v1.Tick,
// record_codec.h).
#ifndef ACTD_TICK_H
#define ACTD_TICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/board.h"

struct tick_camera { // camera_mark, as sampled
    ns_t received_ns, changed_ns;
    uint32_t corrupt_in_a_row, refused_in_a_row, same_in_a_row;
    bool slow;
};

struct tick_inputs {
    uint64_t tick;
    ns_t now_ns, lateness_ns;
    ns_t last_work_ns;     // what the tick before took, its reports included; < 0 = none
    ns_t made_ns;          // when the command was made, 0 = none was
    ns_t reported_ns;      // when the work was done but for the reports
    uint64_t joint_sample; // number of the one that is known, 0 = none
    bool joint_sample_new; // read in this tick
    uint32_t joints_refused_in_a_row;
    int joints_refused_for, joints_refused_joint;
    double joints_refused_value;
    bool joints_slow;
    struct tick_camera camera[POLICY_MAX_CAMERAS];
    uint64_t chunks_before; // taken by earlier ticks
    uint32_t chunks_taken;
    uint32_t requests; // board_request bits
    uint32_t stalls, policy_failures;
    bool inferring;
    int starved; // enum board_starved
    bool started;
    uint64_t lost_command;
    bool room; // for the command; true where none was made
};

struct tick_joint { // rad, rad/s
    double measured, measured_vel;
    double target, target_vel;       // what the chunks want; NaN: nothing
    double wanted;                   // what the loop goes for, before limits
    double commanded, commanded_vel; // after them
    double seam;
    enum guard_limit limit;
};

struct tick_record {
    struct tick_inputs in;
    enum ladder_state mode;
    enum ladder_reason reason;
    int culprit; // -1 = none
    double culprit_value;
    uint64_t conditions, latched, active;
    bool degraded, wants_inference, published;
    int gate;
    uint64_t sequence; // of the command, 0 = none
    int target_rc;
    uint64_t chunk_id;
    uint32_t generation;
    double chunk_row, chunk_remaining;
    int chunks_blended;
    ns_t margin_ns;
    int joints, cameras;
    struct tick_joint joint[ACTD_MAX_JOINTS]; // the first `joints` of them are kept
};

// Bytes of a record of so many joints.
static inline size_t tick_record_bytes(int joints)
{
    return offsetof(struct tick_record, joint) +
           (size_t)joints * sizeof(struct tick_joint);
}

#endif
