// matrix: the faults one by one. Each is a scenario: the arm runs, one thing goes wrong at a tick
// that is known, and everything that follows is known too: in which tick it must be detected, what
// the ladder does, which reason the driver reads in the bytes of the command, what is latched, and
// how alone it ends. With the scenario's detector switched off (blind.h) it must fail.
#ifndef ACTD_FAULT_MATRIX_H
#define ACTD_FAULT_MATRIX_H

#include "daemon/blind.h"
#include "tests/fault/world.h"

enum recovery {
    RUNS_ON, // it is told (or only counted), and the arm goes on
    RETURNS, // HOLD, and by itself back to RUNNING, since the cause has gone in time
    LATCHES, // STOPPED or ESTOP: reset is refused while the cause is there; when it has gone
    // nothing happens until somebody resets, and nothing moves until somebody arms
    STAYS, // nothing of these: what `check` says
};

#define ANY_PATH "*"

struct probe;

struct scenario {
    const char *name;
    const char *bound; // in words, of decisions.md
    enum blind_detector detector;
    // Nothing is wrong with it, and nothing may come of it: there is no detector to switch off.
    // Once more without the fault it must fail: it is the fault that is looked at.
    bool harmless;
    void (*configure)(struct world_config *c); // NULL = the defaults
    struct injection inject;                   // from 0; verb OK = none
    // Before every step from the injection on; since = 0 in the first.
    void (*act)(struct world *w, uint64_t since);
    // True in the first tick in which the fault is there to be detected; NULL = the tick of the
    // injection.
    bool (*begins)(struct probe *p);
    // True in the tick that detects it; NULL = a fault with `reason` is there.
    bool (*seen)(struct probe *p);
    // Called after every step from the injection on; for what must hold all the time.
    void (*watch)(struct probe *p);
    // The tick of that where the loop itself can not know it; NULL = this tick.
    uint64_t (*when)(struct probe *p);
    int least, most; // ticks from the beginning to the detection
    enum ladder_reason reason;
    enum ladder_reason told; // in the command where it differs from `reason`
    // In the first command of each DISARMING, which has causes of its own.
    enum ladder_reason disarming[2];
    const char *path; // states after RUNNING; ANY_PATH: as chance has it
    int stop_after; // ticks from the beginning to STOPPING; 0 = 40 where a HOLD expires, -1 =
                    // not asked
    enum recovery recovery;
    bool cause_goes;   // with the motion: a reset is taken while the injection lasts
    int more_episodes; // of the fault than 1
    int settle; // ticks from the end of the injection to that of what it leaves behind;
                // 0 = 120, -1 = none: the injection lasts to the end
    const char *(*check)(struct probe *p); // at the end: a complaint, or NULL
    // What its detector keeps from happening is a crash, so that a blind run may well end in one.
    bool crashes;
    // `act` hits memory of the loop itself, this many ticks after the injection, + 1; 0 = it does not.
    // No input says so: a replay of the run must differ from there on, at the latest in the tick that
    // detects it.
    uint64_t hits;
    // Instead of all that: a scenario that is no run of the world. A complaint, or NULL; fills
    // the probe's action, and calls probe_begin when all that it needs is there and good.
    const char *(*alone)(struct probe *p);
};

struct probe {
    const struct scenario *s;
    struct world *w;
    bool begun; // all was well until now: what goes wrong from here on is the scenario's
    uint64_t from;              // tick of the injection
    uint64_t began;             // tick in which there was something to detect
    uint64_t detected;          // 0 = not yet
    struct loop_report before;  // as it was when all was well
    struct infer_counts counts; // the same
    uint64_t commands_before, inferences_before, messages_before;
    char action[96];                 // states taken since, as in `path`
    uint64_t entered[LADDER_STATES]; // tick of the first entry, 0 = never
    int told[LADDER_STATES];         // reason in the first command of that state
    int last_mode;                   // of the command that the driver heard last
    enum ladder_reason mistold;      // where it should have been another, 0 = nowhere
    enum ladder_state mistold_in;
    int disarmings, told_disarming[4];
    double last[ACTD_MAX_JOINTS];
    uint64_t last_sequence; // of the last command that left
    enum ladder_state last_made;
    uint64_t made, heard; // since the injection
    double memory[4];     // the scenario's own
    char problem[240];    // the first one
};

// The first complaint counts.
void probe_complain(struct probe *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// The scenario begins: from here on its detector is off, when it runs blind.
void probe_begin(struct probe *p);
// Does the whole scenario; p->problem is "" when it went as it must.
void scenario_run(struct probe *p, const struct scenario *s);

// Where the worlds of scenarios record themselves, NULL = nowhere; and what the last one ran.
struct replay_ran;
extern const char *scenario_record;
extern struct replay_ran scenario_ran;

extern bool scenario_trace; // every change of state and faults to stderr
extern bool scenario_blind; // without its detector, or its fault where it has none

struct scenario_group {
    const char *name;
    const struct scenario *of;
    int n;
};
extern const struct scenario_group group_joints, group_cameras, group_policy,
    group_clocks, group_pictures, group_timing, group_requests, group_idle, group_output,
    group_weights, group_configs, group_disk;

#define JOINT_MARK(p)     (&(p)->w->board.joint_mark)
#define CAMERA_MARK(p, i) (&(p)->w->board.camera[i])

#endif
