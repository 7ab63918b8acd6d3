// What the loop's own files share. Nobody else includes this.
#ifndef ACTD_LOOP_IMPL_H
#define ACTD_LOOP_IMPL_H

#include <pthread.h>

#include "daemon/gate.h"
#include "daemon/loop.h"
#include "daemon/tape.h"
#include "daemon/tick.h"

#define LOOP_LIMIT_SLACK \
    0.002 // rad: a joint may rest this far beyond its limit, as measured
#define LOOP_APPROACH_NS \
    (30 * NS_PER_S)      // an approach that has not arrived by then is given up
#define LOOP_FAR_OUT 0.1 // rad: and further out than this it has not overshot, it is lost
// An arm that was never armed is held where it was first seen, for a servo that droops under its
// load would follow its own measurement down. One that lies further away for so many samples in a
// row was moved by hand.
#define LOOP_MOVED         0.1 // rad, or a tenth of the joint's range
#define LOOP_MOVED_SAMPLES 10
#define LOOP_COMES_BACK    0.01 // rad in that time
#define LOOP_BAD_JOINTS    3    // joint states refused in a row: stop
#define LOOP_BAD_CHUNKS    2 // chunks in a row that are not finite, or out of range: stop
#define LOOP_BAD_TARGETS   5 // ticks in a row with such a target: stop
#define LOOP_WINDOW_LEAST \
    10 // samples that a budget looks back over: of chunks, and of a loop below 20 Hz
#define LOOP_FAILURES 3 // failed inferences in a row: stop

struct culprit { // see loop_event
    int index;   // -1 = none
    double value;
};

struct loop {
    // What it was made with.
    struct loop_config cfg;
    struct board *board;
    ns_t period_ns;
    struct chunks *chunks;

    // Of this tick.
    struct tick_inputs in;
    uint64_t requests;          // those of in.requests that count, as LADDER_C_ bits
    struct chunk_target target; // what the policy wants, if target_rc is 0
    int target_rc;
    int target_joint; // which one is wrong, when target_rc is -EDOM or -ERANGE
    struct culprit suspect[LADDER_REASONS]; // by reason
    uint64_t conditions;
    bool filled; // command is of this tick, whether it passed the gate or not
    struct tick_record record;

    // What the loop remembers, from here to the end (keyframe_loop.c). What goes from one tick to
    // the next and lies elsewhere is lost in a replay that begins in between.
    struct guard guard;
    struct guard sent; // as it was with the last command that was handed over,
    struct guard left; // and with the one before, which has certainly left
    uint64_t lost;     // sequence of the last one that was found not to have left
    bool joints_seen;
    struct joint_sample joints; // newest
    ns_t last_work_ns;          // of the tick before; < 0 = none
    enum ladder_state state;
    enum ladder_reason reason;
    bool armed_before;      // since start: the idle pose is then the last commanded one
    bool held;              // before that: the pose that was measured first
    int away;               // joint samples in a row that lie too far from it
    double away_from;       // by how far, in the first of them
    uint64_t away_number;   // the last one looked at
    bool approached;        // since arming
    enum gate_verdict gate; // of the last tick
    int gate_joint;
    struct faults faults;
    struct budget budget[BOARD_BUDGETS];
    bool degraded, live; // live: fit for an inference
    bool outside, stale; // the measured pose is outside the limits; is too old to be true
    ns_t hold_since_ns, approach_since_ns;
    int fresh;                      // ticks in a row
    int following[ACTD_MAX_JOINTS]; // half ticks above the bound
    int bad_chunks[CHUNK_VERDICTS]; // in a row, by verdict
    int not_finite, out_of_range;   // targets in a row
    struct culprit culprit;         // behind `reason`, as it was when that came up
    bool ran;                       // at least one tick
    uint64_t last_tick;
    ns_t last_now_ns;
    uint32_t stalls_known; // as of the last tick
    struct command command;
    struct loop_report report;
};

// loop_inputs.c, rt. Samples the board into l->in, once per tick: nothing else of the loop looks at
// it, but for loop_sample_output. Takes joints, chunks and requests.
void loop_inputs(struct loop *l, uint64_t tick, ns_t now, ns_t lateness);
// The same for what concerns the command that is about to be made: has the bus had the one before,
// and did it leave? In this order, since the bus tells the other way round: a ring that is seen
// empty has told all.
void loop_sample_output(struct loop *l);

// loop_record.c, rt. The tick as it was, to the tape. Only while that is on.
void loop_record(struct loop *l, bool published);

// loop_command.c, all rt. The pose that the arm goes to in this tick, NULL when it is to rest.
const double *loop_goal(const struct loop *l);
// The guard begins at the measured pose, brought inside the limits where it rests a hair beyond.
void loop_start_from_measured(struct loop *l);
// Arming: from there, or from where the arm is held.
void loop_start(struct loop *l);
// Fills l->command. False when nothing may be published in this tick.
bool loop_make_command(struct loop *l, ns_t now);
// Hands it over. False when it can not leave: then it was never made.
bool loop_publish(struct loop *l);

// loop_streams.c: of joint states and cameras, for loop_conditions; sets degraded, outside, stale. rt.
uint64_t loop_streams(struct loop *l, ns_t now);
// Whom to name for a reason, loop_streams.c. The first one found is enough. rt.
void loop_suspect(struct loop *l, enum ladder_reason reason, int index, double value);

// loop_watch.c: what is true in this tick, as LADDER_C_ bits. rt.
uint64_t loop_conditions(struct loop *l, ns_t now);

// loop_answer.c: what became of this tick's requests, if there were any. After everything is
// decided. rt.
void loop_answer(struct loop *l, uint64_t tick, enum ladder_state from);

// loop_report.c: what is told of this tick, to the board and to the black box. rt.
void loop_report_tick(struct loop *l, ns_t now, bool published);

// The thread around loop_tick: loop_thread.c makes it and ends it.
struct loop_thread {
    struct loop *loop;
    pthread_t thread;
    _Atomic bool stop;
};

// loop_run.c: ticks until `stop`. arg is a struct loop_thread. rt.
void *loop_run(void *arg);

#endif
