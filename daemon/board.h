// board: everything that crosses a thread, in one place.
//
//   bus (io)     writes joints, history, camera marks      reads commands
//   infer        writes chunks                             reads joints, history, report
//   loop (rt)    writes commands, report, ticks            reads joints, marks, chunks, requests
//   monitor (io) writes stalls                             reads ticks
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
#include "daemon/faults.h"
#include "daemon/guard.h"
#include "daemon/ladder.h"
#include "daemon/ring.h"
#include "daemon/slot.h"
#include "policy/policy.h"

struct explain_latch;
struct tape;

#define BOARD_HISTORY  128 // joint samples kept to find the one nearest to a frame
#define BOARD_COMMANDS 64
#define BOARD_CORRUPT  5  // undecodable frames in a row are as bad as none
#define BOARD_STUCK    10 // frames in a row of the same content: the camera hangs

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

// What the loop and telemetry need to know of the stream of joint states. Writer: bus.
struct joints_mark {
    _Atomic uint64_t received, refused, duplicate, out_of_order;
    _Atomic uint64_t clock_jumps; // the sender's clock moved by 50 … 500 ms
    // Since the last accepted one (after a jump: since two accepted in a row, so that two
    // drivers that take turns are found), and
    _Atomic uint32_t refused_in_a_row;
    _Atomic int refused_for;      // why the last was: REASON_JOINTS_INVALID, _NOT_FINITE,
                                  // _JUMP, _CLOCK
    _Atomic int refused_joint;    // for _NOT_FINITE and _JUMP: which, else -1
    _Atomic double refused_value; // what it said, rad
    _Atomic bool slow;            // below 90 % of the declared rate over 100 samples
};

// What the loop and telemetry need to know of a camera. One writer each: bus (all but these),
// camera thread (corrupt, corrupt_in_a_row).
struct camera_mark {
    _Atomic int64_t capture_ns; // of the newest frame, 0 = none
    _Atomic int64_t received_ns;
    _Atomic uint64_t received, refused, corrupt, duplicate, out_of_order, clock_jumps;
    _Atomic uint32_t corrupt_in_a_row; // since the last one that decoded
    _Atomic uint32_t refused_in_a_row; // since the last one that was accepted
    _Atomic uint32_t same_in_a_row;    // frames with the content of the one before
    _Atomic uint64_t same;             // in all
    _Atomic int64_t changed_ns;        // receipt of the last frame with a new content
    _Atomic bool slow;                 // below 90 % of the declared rate over 100 frames
};

// What keeps the policy worker from making an inference, as it was when it last tried.
enum board_starved {
    BOARD_FED,
    BOARD_NO_FRAME,
    BOARD_SKEW, // cameras too far apart
    BOARD_NO_JOINTS,
};

// One command on its way to the bus.
struct command {
    uint64_t sequence, tick;
    uint32_t stalls; // board's, as the loop knew it when the tick began
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
                  //   CAMERA_STALE     ms since a frame of the camera came; 0 when
                  //                    BOARD_CORRUPT in a row did not decode
                  //   OUT_OF_RANGE     rad: what the policy wanted of the joint
                  //   JOINTS_JUMP, JOINTS_NOT_FINITE   rad: what the driver said
                  //   INTERNAL         enum gate_verdict
                  //   LATE_WAKEUPS, SLOW_TICKS, LATE_CHUNKS, OLD_SENSORS   ms: the worst
                  //                    sample of that budget
                  //   all others       0
};

// The budgets, in the order of config's deadlines section.
enum board_budget { BOARD_WAKEUP, BOARD_TICK, BOARD_CHUNK, BOARD_SENSOR };
#define BOARD_BUDGETS 4
struct budget_report {
    ns_t limit_ns, worst_ns;
    uint64_t samples, missed, worst_tick;
    uint32_t in_window, consecutive_max;
    bool over;
};

// A jump of the blended target at a chunk change.
struct seam_report {
    double rad, rad_s; // the largest so far, and
    uint64_t tick;     // when the largest in rad was
};

// What became of the newest requests that the loop took. Requests of one tick are answered
// together: `requests` says which they were.
struct loop_answer {
    uint64_t number; // counts ticks in which there were any
    uint64_t tick;
    uint32_t requests; // board_request bits
    enum ladder_state from, to;
    enum ladder_reason cause; // that stood in the way: ladder_cause of that tick
    int index;                // as in loop_event, for cause
    double value;
};

// What the loop says of itself after every tick.
struct loop_report {
    ns_t now_ns;
    uint64_t tick, ticks_run, skipped, commands;
    enum ladder_state mode;
    enum ladder_reason reason;
    bool degraded;        // joint states older than 2 periods, or a camera is late
    bool wants_inference; // not while a camera or joint states (3 periods) are late
    uint64_t chunk_id;    // newest chunk in use
    ns_t chunk_anchor_ns; // its row 0, after any re-anchoring
    ns_t chunk_oldest_ns; // capture of the oldest frame behind the target
    double chunk_row;
    int chunk_rows, chunk_blended;
    ns_t chunk_step_ns;
    uint32_t generation;      // of the newest chunk in use, 0 = none yet
    uint64_t generation_tick; // in which its first chunk came into view
    double chunk_remaining;   // rows
    uint64_t chunks_seen;     // pushed, whatever the verdict
    uint64_t verdict[CHUNK_VERDICTS];
    uint64_t limited[ACTD_MAX_JOINTS][GUARD_LIMITS];
    uint64_t refused_vectors, gate_refusals, commands_dropped;
    bool at_rest;        // commanded velocity is zero
    double seam_max_rad; // over all joints
    struct seam_report seam[ACTD_MAX_JOINTS];
    struct faults faults;
    struct budget_report budget[BOARD_BUDGETS];
    uint64_t stalls;                // times the monitor cut the output
    double pos[ACTD_MAX_JOINTS];    // commanded
    double vel[ACTD_MAX_JOINTS];    // commanded
    double wanted[ACTD_MAX_JOINTS]; // by the policy; NaN when it wants nothing
    enum guard_limit limit[ACTD_MAX_JOINTS];
    double measured[ACTD_MAX_JOINTS];
    struct loop_answer answer;
    uint64_t events; // steps of the ladder so far; step i is at i % BOARD_EVENTS
    struct loop_event event[BOARD_EVENTS];
};

enum board_request {
    BOARD_ARM = 1u << 0,
    BOARD_DISARM = 1u << 1,
    BOARD_STOP = 1u << 2,
    BOARD_ESTOP = 1u << 3,
    BOARD_RESET = 1u << 4,
    BOARD_HOME = 1u << 5,
};

struct board {
    struct slot joints;  // struct joint_sample
    struct slot history; // struct joint_history
    struct joints_mark joint_mark;
    int n_cameras;
    struct camera_mark camera[POLICY_MAX_CAMERAS];
    struct ring commands;          // struct command, loop -> bus
    _Atomic uint64_t lost_command; // sequence of the newest one taken that did not leave
    int command_fd;                // eventfd: the loop writes it after each command
    struct ring chunks;            // struct chunk, infer -> loop
    _Atomic uint32_t requests;     // board_request bits, taken by the loop
    _Atomic uint32_t policy_failures;   // inferences failed in a row
    _Atomic int64_t inferring_since_ns; // or a frame is seen early; 0 = neither
    _Atomic int starved;                // enum board_starved
    _Atomic uint64_t ticks;             // run by the loop: what the monitor watches
    _Atomic uint32_t stalls;            // times the monitor cut the output
    _Atomic bool armed;                 // the arm may move: streams are not re-learned
    _Atomic bool started;               // policy warmed up, threads running
    struct explain_latch *latch;        // plain threads' word on a stop; NULL = none
    struct tape *tape;                  // what happens is put on it; NULL = nowhere
    struct slot report;                 // struct loop_report
    // Writer: loop. Wake-up, work in a tick, anchor to in view, capture of the joint state to
    // the command that knows it: in the order of enum board_budget.
    struct histogram lateness, tick_time, chunk_latency, sensor_age;
    struct histogram inference; // writer: infer
};

// plain. rows and joints size the chunk ring. 0 or -errno.
int board_init(struct board *b, int n_cameras, int rows, int joints);
void board_free(struct board *b);

#endif
