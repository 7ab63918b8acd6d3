// What the loop's own files share. Nobody else includes this.
#ifndef ACTD_LOOP_IMPL_H
#define ACTD_LOOP_IMPL_H

#include "daemon/loop.h"

#define LOOP_LIMIT_SLACK \
    0.002 // rad: a joint may rest this far beyond its limit, as measured
#define LOOP_APPROACH_NS \
    (30 * NS_PER_S)        // an approach that has not arrived by then is given up
#define LOOP_BAD_CHUNKS  2 // chunks in a row that are not finite: stop
#define LOOP_BAD_TARGETS 5 // ticks in a row with a target that is not finite: stop
#define LOOP_FAILURES    3 // failed inferences in a row: stop

struct culprit { // see loop_event
    int index;   // -1 = none
    double value;
};

struct loop {
    struct loop_config cfg;
    struct board *board;
    ns_t period_ns;
    struct chunks *chunks;
    struct guard guard;
    struct guard guard_before; // as it was before this tick's command

    // Inputs of this tick.
    bool joints_seen;
    struct joint_sample joints; // newest
    uint32_t requests;          // ladder_condition bits
    struct chunk_target target; // what the policy wants, if target_rc is 0
    int target_rc;

    // What the loop remembers.
    enum ladder_state state;
    enum ladder_reason reason;
    bool armed_before;   // since start: the idle pose is then the last commanded one
    bool approached;     // since arming
    bool gate_refused;   // in the last tick
    bool degraded, live; // live: fit for an inference
    bool outside, stale; // the measured pose is outside the limits; is too old to be true
    ns_t hold_since_ns, approach_since_ns;
    int fresh;                              // ticks in a row
    int following[ACTD_MAX_JOINTS];         // ticks in a row above the bound
    int bad_chunks, bad_targets;            // in a row
    struct culprit suspect[LADDER_REASONS]; // by reason, in this tick
    struct culprit culprit; // behind `reason`, as it was when that came up
    bool ran;               // at least one tick
    uint64_t last_tick;
    ns_t last_now_ns;

    struct command command;
    struct loop_report report;
};

// loop_watch.c: what is true in this tick, as ladder_condition bits. rt.
uint32_t loop_conditions(struct loop *l, ns_t now);

#endif
