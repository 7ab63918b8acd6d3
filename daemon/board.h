// board: everything that crosses a thread, in one place.
//
//   bus (io)     writes joints, history, camera marks      reads commands
//   infer        writes chunks                             reads joints, history, report
//   loop (rt)    writes commands, report                   reads joints, marks, chunks, requests
//   plain        writes requests                           reads report
//
// Values are in wire units (rad, m) and in the robot's joint order, the order of the config.
#ifndef ACTD_BOARD_H
#define ACTD_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/chunks.h"
#include "daemon/clock.h"
#include "daemon/deadline.h"
#include "daemon/guard.h"
#include "daemon/ladder.h"
#include "daemon/ring.h"
#include "daemon/slot.h"
#include "policy/policy.h"

#define BOARD_HISTORY  128 // joint samples kept to find the one nearest to a frame
#define BOARD_COMMANDS 64
#define BOARD_CORRUPT  5 // undecodable frames in a row are as bad as none

struct joint_sample {
    uint64_t number;  // counts accepted samples from 1
    ns_t received_ns; // when the bus had it
    ns_t capture_ns;  // when it was measured, sender's stamp mapped to our clock
    int n;
    double pos[ACTD_MAX_JOINTS]; // rad
    double vel[ACTD_MAX_JOINTS]; // rad/s
};

struct joint_history { // newest BOARD_HISTORY samples
    uint64_t count;    // samples ever; sample i is at i % BOARD_HISTORY
    struct joint_sample sample[BOARD_HISTORY];
};

// What the loop and telemetry need to know of a camera. One writer each: bus (received,
// capture, refused), camera thread (corrupt).
struct camera_mark {
    _Atomic int64_t capture_ns; // of the newest frame, 0 = none
    _Atomic int64_t received_ns;
    _Atomic uint64_t received, refused, corrupt, duplicate;
    _Atomic uint32_t corrupt_in_a_row; // since the last one that decoded
};

// One command on its way to the bus.
struct command {
    uint64_t sequence, tick;
    ns_t made_ns;
    int n;
    double pos[ACTD_MAX_JOINTS], vel[ACTD_MAX_JOINTS], wanted[ACTD_MAX_JOINTS];
    enum guard_limit limit[ACTD_MAX_JOINTS];
    enum guard_limit first_limit;
    int first_joint; // -1 = none
    enum ladder_state mode;
    enum ladder_reason reason;
    ns_t ttl_ns, joint_age_ns, frame_age_ns, margin_ns, lateness_ns;
    uint64_t chunk_id;
    double chunk_row;
    int blended;
};

// A step of the ladder. Kept for whoever writes the log, who looks less often than the loop
// ticks: a HOLD of two ticks would be lost otherwise.
#define BOARD_EVENTS 16
struct loop_event {
    uint64_t tick;
    enum ladder_state from, to;
    enum ladder_reason reason;
    int index;    // of the joint, for CAMERA_* of the camera that is the cause; -1 = none
    double value; // by reason, as it was in that tick:
                  //   OUT_OF_LIMITS    rad: where the joint was measured
                  //   FOLLOWING_ERROR  rad: how far it was from its command
                  //   JOINTS_STALE     ms since the newest joint state was captured
                  //   CAMERA_STALE     ms since a frame of the camera was taken; 0 when
                  //                    BOARD_CORRUPT in a row did not decode
                  //   all others       0
};

// What the loop says of itself after every tick.
struct loop_report {
    ns_t now_ns;
    uint64_t tick, ticks_run, skipped, commands;
    enum ladder_state mode;
    enum ladder_reason reason;
    bool degraded;          // joint states older than 2 periods, or a camera is late
    bool wants_inference;   // not while a camera or joint states (3 periods) are late
    uint64_t chunk_id;      // newest chunk in use
    ns_t chunk_anchor_ns;   // its row 0, after any re-anchoring
    double chunk_remaining; // rows
    uint64_t chunks_seen;   // pushed, whatever the verdict
    uint64_t verdict[CHUNK_VERDICTS];
    uint64_t limited[ACTD_MAX_JOINTS][GUARD_LIMITS];
    uint64_t refused_vectors, gate_refusals, commands_dropped;
    double seam_max_rad;
    double pos[ACTD_MAX_JOINTS]; // commanded
    double measured[ACTD_MAX_JOINTS];
    uint64_t events; // steps of the ladder so far; step i is at i % BOARD_EVENTS
    struct loop_event event[BOARD_EVENTS];
};

enum board_request {
    BOARD_ARM = 1u << 0,
    BOARD_DISARM = 1u << 1,
    BOARD_STOP = 1u << 2,
    BOARD_ESTOP = 1u << 3,
    BOARD_RESET = 1u << 4,
};

struct board {
    struct slot joints;  // struct joint_sample
    struct slot history; // struct joint_history
    _Atomic uint64_t joints_received, joints_refused, joints_duplicate;
    int n_cameras;
    struct camera_mark camera[POLICY_MAX_CAMERAS];
    struct ring commands;             // struct command, loop -> bus
    int command_fd;                   // eventfd: the loop writes it after each command
    struct ring chunks;               // struct chunk, infer -> loop
    _Atomic uint32_t requests;        // board_request bits, taken by the loop
    _Atomic uint32_t policy_failures; // inferences failed in a row
    _Atomic bool started;             // policy warmed up, threads running
    struct slot report;               // struct loop_report
    struct histogram lateness, tick_time; // writer: loop
    struct histogram inference;           // writer: infer
    struct histogram chunk_latency;       // writer: loop: anchor to in view
};

// plain. rows and joints size the chunk ring. 0 or -errno.
int board_init(struct board *b, int n_cameras, int rows, int joints);
void board_free(struct board *b);

#endif
