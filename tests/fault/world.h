// world: actd and its robot in virtual time, in one thread, in lock-step. Everything between a
// message that comes in and the bytes of a command that goes out is the daemon's own code; the
// clock, the wire, the arm, the cameras and (mostly) the policy's answers are this file's.
//
//   driver ─joint states─> intake ─┐                       ┌─> outbox ─> codec ─> driver ─> arm
//   cameras ──frames──> camera ────┼─> board ─> loop_tick ─┘       ^
//                 brain <─ infer <─┘     ^  monitor ───────────────┘
//
// A step ends with the next tick of the loop. Events of one instant happen in the order of the
// list in world.c. clock_now_ns() and clock_wall_ns() are replaced (clock.c) by this clock, for
// all code of the program: nothing here can see the machine's time.
#ifndef ACTD_FAULT_WORLD_H
#define ACTD_FAULT_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/board.h"
#include "daemon/camera.h"
#include "daemon/infer.h"
#include "daemon/loop.h"
#include "daemon/monitor.h"
#include "daemon/outbox.h"
#include "daemon/replay.h"
#include "tests/fault/injector.h"
#include "tests/fault/plant.h"

#define WORLD_PATH     128
#define WORLD_CAMERAS  2
#define WORLD_CHUNKS   64                      // of which the rows are remembered
#define WORLD_START_NS (1000 * NS_PER_S)       // the monotonic clock at the beginning
#define WORLD_WALL_NS  (1700000000 * NS_PER_S) // and the wall clock

enum brain {
    BRAIN_SINE, // each joint about its centre: what a chunk wants is continuous over chunks
    BRAIN_GOAL, // each joint to cfg.goal with cfg.goal_speed
    BRAIN_ACT,  // a real, tiny ACT checkpoint
};

struct world_config {
    struct loop_config loop; // world_defaults fills in a robot of 3 joints at 200 Hz
    double joints_hz;
    double camera_hz[WORLD_CAMERAS];
    int rows; // of a chunk
    enum brain brain;
    ns_t latency_ns;   // of an inference
    ns_t tick_work_ns; // of a tick
    ns_t wire_ns;      // a joint state or a frame is this long under way
    int every_rows;    // between inferences
    ns_t max_skew_ns;
    double amplitude, frequency_hz; // BRAIN_SINE
    double goal[ACTD_MAX_JOINTS], goal_speed;
    double max_jump;       // of intake
    bool expects;          // cameras know the size that frames must have
    bool jpeg;             // frames are JPEG, else mono8
    bool monitor;          // a monitor looks on
    const char *black_box; // directory of dumps, NULL = none are written
    const char *record;    // directory of a recording, NULL = none is made
    uint64_t seed;
    struct plant_config plant;
};

// A chunk as the policy handed it over, for who judges what is acted on.
struct world_chunk {
    uint64_t id; // 0 = none
    ns_t anchor_ns, oldest_ns, ready_ns;
    int rows, joints;
};

struct world;

// Called back while the world turns; any may be NULL.
struct world_hooks {
    void *arg;
    void (*before_tick)(void *arg, struct world *w); // loop_tick comes next
    void (*after_tick)(void *arg, struct world *w);  // it has just returned
    void (*made)(void *arg, struct world *w, const struct command *c); // left the outbox
    void (*heard)(void *arg, struct world *w, const struct heard *h);  // by the driver
    void (*moved)(void *arg, struct world *w); // the arm by PLANT_STEP_NS
    void (*thought)(void *arg, struct world *w, const struct chunk *c); // and handed over
};

struct world {
    struct world_config cfg;
    struct world_hooks hooks;
    struct injector injector;
    struct plant plant;
    ns_t now;               // the clock
    int64_t wall_offset_ns; // clock_wall_ns() - clock_now_ns()

    // actd's.
    struct board board;
    struct loop *loop;
    struct schedule schedule; // as loop_run.c keeps it
    struct outbox outbox;
    struct monitor_state monitor;
    struct camera *camera[WORLD_CAMERAS];
    struct tape *tape; // NULL = it is not recorded
    struct recorder *recorder;

    // Of the last tick that ran: its number, and when it woke.
    uint64_t tick;
    ns_t tick_ns;
    ns_t cut_ns; // when the monitor cut the output last
    // Accounting, apart from the daemon's own.
    uint64_t ticks_run;                     // calls of loop_tick
    uint64_t commands;                      // bytes put on the wire
    uint64_t messages;                      // joint states and frames given to actd
    uint64_t inferences;                    // begun
    struct world_chunk chunk[WORLD_CHUNKS]; // the newest, by id % WORLD_CHUNKS

    struct world_inside *in; // world.c's own
};

// A robot of 3 joints at 200 Hz: joint states at 100 Hz, two cameras at 25 Hz, a policy at 50 Hz
// with chunks of 80 rows, one every 20, answered after 30 ms. Every default of the daemon.
struct world_config world_defaults(void);

// plain. 0 or -errno.
int world_new(struct world **out, const struct world_config *cfg);
void world_free(struct world *w);

// Up to and including the next tick of the loop.
void world_step(struct world *w);
void world_run(struct world *w, uint64_t ticks); // … until `ticks` more have their number
// Steps until the mode is s, at most `most` steps. True when it is.
bool world_until(struct world *w, enum ladder_state s, int most);
// From a start to RUNNING and a second more of it, and to a tick that a joint message and a
// frame of each camera come right before. False when that does not happen.
bool world_to_running(struct world *w);
// The next tick whose number is a multiple of this has all streams in this phase.
#define WORLD_PHASE_TICKS 16

// world_record.c, plain. The robot that a world is, for replay_run_robot; what it points to is
// cfg's. Its chunks are taken as recorded.
void world_robot(const struct world_config *cfg, struct replay_robot *out);
// brain.c, plain. The policy of a BRAIN_ACT once more, and what makes chunks anew with it: for
// replay_robot's arg and think. NULL when there is none.
struct brain_again;
struct brain_again *brain_again_new(const struct world_config *cfg);
void brain_again_free(struct brain_again *b);
int brain_again_think(void *again, const struct tape_chunk *request,
                      const struct policy_image *image, const struct joint_sample *joints,
                      float *row, struct config_error *err);

// Somebody sets the wall clock; local: driver and cameras run on this machine and stamp by it.
void world_set_wall(struct world *w, int64_t by_ns, bool local);
void world_request(struct world *w, uint32_t bits); // board_request bits
// target … magnitude as in one; from counts from the tick to come: 0 = it.
void world_inject(struct world *w, struct injection one);

// The tick that is due at a time, from 0: what injections count in.
uint64_t world_ordinal(const struct world *w, ns_t at);
// A new directory under $TMPDIR, else /tmp. False when there can be none.
bool world_scratch(char out[WORLD_PATH], const char *name);
const struct infer_counts *world_infer_counts(const struct world *w);
const struct loop_report *world_report(const struct world *w);
enum ladder_state world_mode(const struct world *w);
enum ladder_reason world_reason(const struct world *w);

// The clock of the world that runs now; there is one at a time.
extern struct world *world_current;

#endif
