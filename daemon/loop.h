// loop: one tick on one screen. Takes what is newest from the board, asks the ladder, asks the
// chunks, asks the guard, passes the gate and hands the command over. Reads no clock of its
// own: the time of a tick is an argument, so a test or a replay can own it.
//
// What is published: as soon as a joint state has been seen, one command per tick, moving or
// not. Before the first arming that is the pose that was measured first (anew after the arm was
// moved by hand), and nothing at all while the measured pose lies outside the limits or is too old
// to be true. Afterwards, when idle, it is the last commanded pose, or the measured one where the
// arm was moved by hand. Arming starts from the measured pose; once armed, from where the command
// holds the arm, unless it lies somewhere else.
//
// loop_new, loop_free (loop_init.c) and the thread (loop_thread.c) are plain; loop_tick is rt.
#ifndef ACTD_LOOP_H
#define ACTD_LOOP_H

#include "daemon/blackbox.h"
#include "daemon/board.h"
#include "daemon/chunks.h"
#include "daemon/guard.h"

struct loop_config {
    double control_hz;
    int joints;
    struct guard_limits limits;
    struct chunks_config chunks;
    double following_error[ACTD_MAX_JOINTS]; // rad, 0 = not watched
    int following_ticks; // before HOLD; twice that: STOPPING. A good tick takes half back
    bool has_home;
    double home[ACTD_MAX_JOINTS]; // rad, the rest pose
    ns_t joints_period_ns;        // declared by the driver
    int n_cameras;
    ns_t camera_period_ns[POLICY_MAX_CAMERAS];
    bool frozen_stops[POLICY_MAX_CAMERAS]; // the same content for ever is as good as off
    bool frozen_warns[POLICY_MAX_CAMERAS];
    ns_t budget_ns[BOARD_BUDGETS];
    ns_t hold_ns;              // HOLD expires
    ns_t ttl_ns;               // of a command
    ns_t tick_gap_ns;          // away longer than this: a fault
    int fresh_ticks;           // in a row before READY
    double approach_scale;     // of velocity and acceleration limits
    double approach_tolerance; // rad per joint: arrived
    struct blackbox *blackbox; // the caller's, must outlive the loop; NULL = none
};

// How old a stream may be, by its own declared period. Any thread class, pure.
struct loop_bounds {
    ns_t degraded; // told; a camera: no new inference
    ns_t hold;     // 0 = never by age
    ns_t stop;
};
struct loop_bounds loop_joint_bounds(ns_t period_ns);  // 2, 3, max(100 ms, 5) periods
struct loop_bounds loop_camera_bounds(ns_t period_ns); // max(100 ms, 3), max(500 ms, 10)

struct loop;

// plain. The board must outlive the loop. 0 or -errno.
int loop_new(struct loop **out, const struct loop_config *cfg, struct board *board);
void loop_free(struct loop *l);

// One tick. rt.
//   tick         number of this tick; a jump by more than one means skipped ticks
//   now_ns       when the tick woke (virtual or real)
//   lateness_ns  now minus its deadline
//   clock        read for the margin and the tick's own time: clock_now_ns, or a test's own. Once
//                when a command was made, once before the reports, once after them
void loop_tick(struct loop *l, uint64_t tick, ns_t now_ns, ns_t lateness_ns,
               ns_t (*clock)(void));
// rt. What the tick before took, its reports included, an input of the next one: a replay sets it
// between the two. < 0 = there was none.
void loop_worked(struct loop *l, ns_t work_ns);

// What the loop said last. For tests and for the owner of the loop between ticks.
const struct loop_report *loop_last(const struct loop *l);

// Is this what was asked for, in the state that the ladder was in after the tick that took the
// request (loop_answer.to)? Also when it was so before. One request, not a set. Any thread class,
// pure.
bool loop_granted(enum board_request request, enum ladder_state to);

// The thread: absolute deadlines, skipped ticks counted, never caught up.
struct loop_thread_config {
    int priority; // SCHED_FIFO, 0 = do not ask
    int cpu;      // -1 = any
    bool require_rt;
};
struct loop_thread;
// plain. Starts it; *granted (64 bytes) says what the kernel gave, read back: "SCHED_FIFO 50".
// 0 or -errno (-EPERM when require_rt and not granted).
int loop_thread_start(struct loop_thread **out, struct loop *l,
                      const struct loop_thread_config *cfg, char granted[64]);
// plain. Ends after the tick in progress; joins.
void loop_thread_stop(struct loop_thread *t);

#endif
