// Faults of order and time in what is sent: messages twice or the wrong way round, a sender that
// starts anew, its clock that is set. Joint states come every second tick, frames every eighth.
#include "tests/fault/matrix.h"

#define WRONG(v, n, m)                                                             \
    {                                                                              \
        .target = INJECT_JOINTS, .verb = VERB_WRONG, .variant = (v), .ticks = (n), \
        .magnitude = (m)                                                           \
    }
#define FRAMES(v, n, m)                                                            \
    {                                                                              \
        .target = INJECT_CAMERA, .verb = VERB_WRONG, .variant = (v), .ticks = (n), \
        .magnitude = (m)                                                           \
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

static bool counted_duplicate(struct probe *p)
{
    return atomic_load(&JOINT_MARK(p)->duplicate) > 0;
}

static const char *all_duplicates(struct probe *p)
{
    return atomic_load(&JOINT_MARK(p)->duplicate) == 50 ? NULL
                                                        : "not 50 duplicates counted";
}

static bool counted_order(struct probe *p)
{
    return atomic_load(&JOINT_MARK(p)->out_of_order) > 0;
}

static const char *all_reordered(struct probe *p)
{
    return atomic_load(&JOINT_MARK(p)->out_of_order) == 25 ? NULL
                                                           : "not 25 of 50 out of order";
}

static bool counted_clock(struct probe *p)
{
    return atomic_load(&JOINT_MARK(p)->clock_jumps) > 0;
}

static const char *one_clock_jump(struct probe *p)
{
    return atomic_load(&JOINT_MARK(p)->clock_jumps) == 1 ? NULL : "not one step counted";
}

static bool duplicate(struct probe *p)
{
    return atomic_load(&CAMERA_MARK(p, 0)->duplicate) > 0;
}

static bool disorder(struct probe *p)
{
    return atomic_load(&CAMERA_MARK(p, 0)->out_of_order) > 0;
}

static bool clock_jump(struct probe *p)
{
    return atomic_load(&CAMERA_MARK(p, 0)->clock_jumps) > 0;
}

static const char *went_on(struct probe *p)
{
    return p->w->inferences > p->inferences_before + 1 ? NULL : "no inference since";
}

static const char *two_clock_jumps(struct probe *p)
{
    return atomic_load(&JOINT_MARK(p)->clock_jumps) == 2 ? NULL : "not two steps counted";
}

// The clock is right again, after 64 ticks of being ahead.
static bool back(struct probe *p)
{
    return p->w->tick >= p->from + 64;
}

static const struct scenario of[] = {
    {.name = "joints: every message twice",
     .bound = "ignored, counted",
     .detector = BLIND_JOINTS_DUPLICATE,
     .inject = WRONG(JOINTS_DUPLICATE, 100, 0),
     .seen = counted_duplicate,
     .least = 1,
     .most = 1,
     .recovery = RUNS_ON,
     .check = all_duplicates},
    {.name = "joints: pairs the wrong way round",
     .bound = "dropped, counted",
     .detector = BLIND_JOINTS_ORDER,
     .inject = WRONG(JOINTS_REORDERED, 100, 0),
     .seen = counted_order,
     .least = 1,
     .most = 1,
     .recovery = RUNS_ON,
     .check = all_reordered},
    {.name = "driver restarts, away 1.2 s",
     .bound = "STOPPING after 100 ms",
     .detector = BLIND_JOINTS_AGE,
     .inject = WRONG(JOINTS_RESTARTED, 400, 1200),
     .reason = REASON_JOINTS_STALE,
     .least = 5,
     .most = 5,
     .path = "HOLD STOPPING STOPPED",
     .stop_after = 19,
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "driver restarts at once, clock of its own",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_CLOCK,
     .inject = WRONG(JOINTS_RESTARTED, 400, 0),
     .reason = REASON_JOINTS_CLOCK,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "driver's clock + 1 h",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_CLOCK,
     .inject = WRONG(JOINTS_CLOCK, 200, 3600e3),
     .reason = REASON_JOINTS_CLOCK,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "driver's clock - 1 h",
     .bound = "3 in a row",
     .detector = BLIND_JOINTS_CLOCK,
     .inject = WRONG(JOINTS_CLOCK, 200, -3600e3),
     .reason = REASON_JOINTS_CLOCK,
     .least = 5,
     .most = 5,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "driver's clock + 400 ms, one message",
     .bound = "refused",
     .detector = BLIND_JOINTS_CLOCK,
     .inject = WRONG(JOINTS_CLOCK, 1, 400),
     .seen = refused,
     .least = 1,
     .most = 1,
     .recovery = RUNS_ON,
     .check = one_refused},
    {.name = "driver's clock + 70 ms",
     .bound = "counted, once it is confirmed",
     .detector = BLIND_JOINTS_CLOCK,
     .inject = WRONG(JOINTS_CLOCK, 300, 70),
     .seen = counted_clock,
     .least = 3,
     .most = 3,
     .recovery = RUNS_ON,
     .settle = -1,
     .check = one_clock_jump},
    {.name = "every frame twice",
     .bound = "ignored, counted",
     .detector = BLIND_CAMERA_ORDER,
     .inject = FRAMES(CAMERA_DUPLICATE, 100, 0),
     .seen = duplicate,
     .least = 1,
     .most = 1,
     .recovery = RUNS_ON,
     .check = went_on},
    {.name = "frames the wrong way round",
     .bound = "dropped, counted",
     .detector = BLIND_CAMERA_ORDER,
     .inject = FRAMES(CAMERA_REORDERED, 100, 0),
     .seen = disorder,
     .least = 17,
     .most = 17,
     .recovery = RUNS_ON,
     .check = went_on},
    {.name = "camera's clock + 1 h",
     .bound = "STOPPING after 500 ms",
     .detector = BLIND_CAMERA_CLOCK,
     .inject = FRAMES(CAMERA_CLOCK, 200, 3600e3),
     .reason = REASON_CAMERA_INVALID,
     .least = 93,
     .most = 93,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "camera's clock - 1 h",
     .bound = "STOPPING after 500 ms",
     .detector = BLIND_CAMERA_CLOCK,
     .inject = FRAMES(CAMERA_CLOCK, 200, -3600e3),
     .reason = REASON_CAMERA_INVALID,
     .least = 93,
     .most = 93,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "camera's clock + 70 ms",
     .bound = "counted, once it is confirmed",
     .detector = BLIND_CAMERA_CLOCK,
     .inject = FRAMES(CAMERA_CLOCK, 300, 70),
     .seen = clock_jump,
     .least = 9,
     .most = 9,
     .recovery = RUNS_ON,
     .settle = -1},
    {.name = "second camera 100 ms behind the first",
     .bound = "HOLD at the chunk's end",
     .detector = BLIND_SKEW,
     .inject = {.target = INJECT_CAMERA,
                .verb = VERB_WRONG,
                .variant = CAMERA_SKEW,
                .index = 1,
                .ticks = 500,
                .magnitude = 100},
     .reason = REASON_CAMERA_SKEW,
     .least = 273,
     .most = 273,
     .path = "HOLD STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true},
    // Its messages bear stamps that have been: nobody can tell that from a network that is late.
    {.name = "driver's clock - 70 ms",
     .bound = "late by that: HOLD, expires",
     .detector = BLIND_JOINTS_AGE,
     .inject = WRONG(JOINTS_CLOCK, 300, -70),
     .reason = REASON_JOINTS_STALE,
     .least = 5,
     .most = 5,
     .path = "HOLD STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "driver's clock + 70 ms, and back",
     .bound = "the way back: HOLD, expires",
     .detector = BLIND_JOINTS_AGE,
     .inject = WRONG(JOINTS_CLOCK, 64, 70),
     .begins = back,
     .reason = REASON_JOINTS_STALE,
     .least = 5,
     .most = 5,
     .path = "HOLD STOPPING STOPPED",
     .settle = 600, // until what was learned of the other clock is forgotten
     .recovery = LATCHES,
     .cause_goes = true,
     .check = two_clock_jumps},
    {.name = "camera's clock - 70 ms",
     .bound = "counted; HOLD at the chunk's end",
     .detector = BLIND_SKEW,
     .inject = FRAMES(CAMERA_CLOCK, 500, -70),
     .reason = REASON_CAMERA_SKEW,
     .least = 273,
     .most = 273,
     .path = "HOLD STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "camera's clock + 70 ms, and back",
     .bound = "the way back: HOLD",
     .detector = BLIND_SKEW,
     .inject = FRAMES(CAMERA_CLOCK, 64, 70),
     .begins = back,
     .reason = REASON_CAMERA_SKEW,
     .least = 289,
     .most = 289,
     .path = "HOLD STOPPING STOPPED",
     .recovery = LATCHES,
     .settle = 500,
     .cause_goes = true},
};

const struct scenario_group group_clocks = {"order and clocks", of,
                                            sizeof of / sizeof *of};
