// Faults of the joint states: 100 Hz, one period is two ticks of 5 ms. The injection begins in a
// tick that a message is due in, so the last good one is 9 ms old then (1 ms under way).
#include <math.h>

#include "tests/fault/matrix.h"

#define OFF(n)                                                  \
    {                                                           \
        .target = INJECT_JOINTS, .verb = VERB_OFF, .ticks = (n) \
    }
#define GARBAGE(v)                                                                  \
    {                                                                               \
        .target = INJECT_JOINTS, .verb = VERB_GARBAGE, .variant = (v), .ticks = 100 \
    }
#define WRONG(v, n, m)                                                           \
    {                                                                            \
        .target = INJECT_JOINTS, .verb = VERB_WRONG, .variant = (v), .index = 1, \
        .ticks = (n), .magnitude = (m)                                           \
    }

static bool flagged(struct probe *p)
{
    return world_report(p->w)->degraded;
}

static const char *flag_went(struct probe *p)
{
    return world_report(p->w)->degraded ? "still degraded" : NULL;
}

static bool held(struct probe *p)
{
    return p->entered[LADDER_HOLD] > 0;
}

static bool refused(struct probe *p)
{
    return atomic_load(&JOINT_MARK(p)->refused) > 0;
}

static const char *one_refused(struct probe *p)
{
    if (atomic_load(&JOINT_MARK(p)->refused) != 1)
        return "not exactly one was refused";
    return world_report(p->w)->degraded ? "still degraded" : NULL;
}

static const char *duplicates(struct probe *p)
{
    return atomic_load(&JOINT_MARK(p)->duplicate) >= 100 ? NULL
                                                         : "duplicates not counted";
}

static const char *names_joint_1(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);

    for (uint64_t i = 0; i < r->events && i < BOARD_EVENTS; i++)
        if (r->event[i].to == LADDER_STOPPING && r->event[i].index == 1)
            return NULL;
    return "it does not name the joint";
}

// Periods of 40 ms: 3 are 120 ms, 5 are 200 ms. The last good one is 39 ms old.
static void slow_driver(struct world_config *c)
{
    c->joints_hz = 25;
    c->loop.joints_period_ns = 40 * NS_PER_MS;
    c->loop.budget_ns[BOARD_SENSOR] = 200 * NS_PER_MS;
}

static bool heard_since(struct probe *p)
{
    return p->w->injector.hits > 0;
}

// A message is 10 ms old at most and the arm does not move faster than 3 rad/s.
static void each_in_its_place(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);

    for (int i = 0; i < p->w->cfg.loop.joints; i++)
        if (fabs(r->measured[i] - p->w->plant.pos[i]) > 0.03)
            probe_complain(p, "joint %d is at %.3f and believed at %.3f", i,
                           p->w->plant.pos[i], r->measured[i]);
}

static const char *none_refused(struct probe *p)
{
    return atomic_load(&JOINT_MARK(p)->refused) == 0 ? NULL : "messages were refused";
}

static const struct scenario of[] = {
    {.name = "joints off, 20 ms",
     .bound = "flag after 2 periods",
     .detector = BLIND_JOINTS_AGE,
     .inject = OFF(4),
     .seen = flagged,
     .least = 3,
     .most = 3,
     .recovery = RUNS_ON,
     .check = flag_went},
    {.name = "joints off, 60 ms",
     .bound = "HOLD after 3 periods",
     .detector = BLIND_JOINTS_AGE,
     .inject = OFF(12),
     .reason = REASON_JOINTS_STALE,
     .least = 5,
     .most = 5,
     .path = "HOLD RUNNING",
     .recovery = RETURNS},
    {.name = "joints off",
     .bound = "STOPPING after 100 ms",
     .detector = BLIND_JOINTS_AGE,
     .inject = OFF(200),
     .reason = REASON_JOINTS_STALE,
     .least = 5,
     .most = 5,
     .path = "HOLD STOPPING STOPPED",
     .stop_after = 19,
     .recovery = LATCHES},
    {.name = "joints off, a driver of 25 Hz",
     .bound = "STOPPING after 5 periods",
     .detector = BLIND_JOINTS_AGE,
     .configure = slow_driver,
     .inject = OFF(200),
     .reason = REASON_JOINTS_STALE,
     .least = 17,
     .most = 17,
     .path = "HOLD STOPPING STOPPED",
     .stop_after = 33,
     .recovery = LATCHES},
    {.name = "joints delayed by 60 ms",
     .bound = "HOLD expires after 200 ms",
     .detector = BLIND_HOLD_EXPIRES,
     .inject =
         {.target = INJECT_JOINTS, .verb = VERB_DELAYED, .magnitude = 60, .ticks = 200},
     .reason = REASON_JOINTS_STALE,
     .least = 5,
     .most = 5,
     .path = "HOLD STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "joints stuck, one message for ever",
     .bound = "as off, and counted",
     .detector = BLIND_JOINTS_DUPLICATE,
     .inject = {.target = INJECT_JOINTS, .verb = VERB_STUCK, .ticks = 200},
     .reason = REASON_JOINTS_STALE,
     .least = 5,
     .most = 5,
     .path = "HOLD STOPPING STOPPED",
     .stop_after = 19,
     .recovery = LATCHES,
     .check = duplicates},
    {.name = "joints slow, 50 Hz",
     .bound = "< 90 % of 100 samples",
     .detector = BLIND_STREAM_RATE,
     .inject = {.target = INJECT_JOINTS, .verb = VERB_SLOW, .magnitude = 2, .ticks = 300},
     .reason = REASON_JOINTS_SLOW,
     .least = 47,
     .most = 47,
     .recovery = RUNS_ON,
     .settle = 400},
    {.name = "joints intermittent, half of them lost",
     .bound = "HOLD after 3 periods",
     .detector = BLIND_JOINTS_AGE,
     .inject = {.target = INJECT_JOINTS,
                .verb = VERB_INTERMITTENT,
                .magnitude = 0.5,
                .ticks = 300},
     .seen = held,
     .reason = REASON_JOINTS_STALE,
     .least = 51,
     .most = 51,
     .path = ANY_PATH,
     .recovery = RETURNS},
    {.name = "joints NaN, once",
     .bound = "refused",
     .detector = BLIND_JOINTS_FINITE,
     .inject = WRONG(JOINTS_NAN, 1, 0),
     .seen = refused,
     .least = 1,
     .most = 1,
     .recovery = RUNS_ON,
     .check = one_refused},
    {.name = "joints NaN",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_FINITE,
     .inject = WRONG(JOINTS_NAN, 200, 0),
     .reason = REASON_JOINTS_NOT_FINITE,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "joints NaN, as the loop hears of it",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_REFUSED,
     .inject = WRONG(JOINTS_NAN, 200, 0),
     .reason = REASON_JOINTS_NOT_FINITE,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .check = names_joint_1},
    {.name = "joints +infinity",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_FINITE,
     .inject = WRONG(JOINTS_INFINITE, 200, 1),
     .reason = REASON_JOINTS_NOT_FINITE,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "joints -infinity",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_FINITE,
     .inject = WRONG(JOINTS_INFINITE, 200, -1),
     .reason = REASON_JOINTS_NOT_FINITE,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "joints 1e30 rad",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_FINITE,
     .inject = WRONG(JOINTS_HUGE, 200, 0),
     .reason = REASON_JOINTS_NOT_FINITE,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "joints with a NaN velocity",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_FINITE,
     .inject = WRONG(JOINTS_VELOCITY_NAN, 200, 0),
     .reason = REASON_JOINTS_NOT_FINITE,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "joint jumps 1 rad, once",
     .bound = "refused",
     .detector = BLIND_JOINTS_JUMP,
     .inject = WRONG(JOINTS_OFFSET, 1, 1.0),
     .seen = refused,
     .least = 1,
     .most = 1,
     .recovery = RUNS_ON,
     .check = one_refused},
    {.name = "joint jumps 1 rad",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_JUMP,
     .inject = WRONG(JOINTS_OFFSET, 200, 1.0),
     .reason = REASON_JOINTS_JUMP,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "a joint less",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_FORM,
     .inject = WRONG(JOINTS_ONE_LESS, 200, 0),
     .reason = REASON_JOINTS_INVALID,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "a joint more",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_FORM,
     .inject = WRONG(JOINTS_ONE_MORE, 200, 0),
     .reason = REASON_JOINTS_INVALID,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "a joint renamed",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_FORM,
     .inject = WRONG(JOINTS_RENAMED, 200, 0),
     .reason = REASON_JOINTS_INVALID,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "a joint twice, another missing",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_FORM,
     .inject = WRONG(JOINTS_TWICE, 200, 0),
     .reason = REASON_JOINTS_INVALID,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "joints: random bytes",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_FORM,
     .inject = GARBAGE(JOINTS_RANDOM),
     .reason = REASON_JOINTS_INVALID,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "joints: truncated",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_FORM,
     .inject = GARBAGE(JOINTS_TRUNCATED),
     .reason = REASON_JOINTS_INVALID,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "joints: no bytes at all",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_FORM,
     .inject = GARBAGE(JOINTS_EMPTY),
     .reason = REASON_JOINTS_INVALID,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "joints: nested 4000 deep",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_FORM,
     .inject = GARBAGE(JOINTS_NESTED),
     .reason = REASON_JOINTS_INVALID,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "joints: bomb of unknown fields",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_FORM,
     .inject = GARBAGE(JOINTS_BOMB),
     .reason = REASON_JOINTS_INVALID,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "joints in another order",
     .bound = "understood by their names",
     .detector = BLIND_JOINTS_NAMES,
     .inject = WRONG(JOINTS_PERMUTED, 300, 0),
     .seen = heard_since,
     .least = 0,
     .most = 0,
     .recovery = RUNS_ON,
     .watch = each_in_its_place,
     .check = none_refused},
};

const struct scenario_group group_joints = {"joint states", of, sizeof of / sizeof *of};
