// Faults of the cameras: 25 Hz, one period is eight ticks. Late after max(100 ms, 3 periods) =
// 120 ms, stale after max(500 ms, 10 periods) = 500 ms. The injection begins in a tick that a
// frame is due in: the last good one is 39 ms old then.
#include "tests/fault/matrix.h"

#define CAMERA(v, n, m)                                                      \
    {                                                                        \
        .target = INJECT_CAMERA, .verb = (v), .ticks = (n), .magnitude = (m) \
    }
#define SECOND(v, n)                                                   \
    {                                                                  \
        .target = INJECT_CAMERA, .verb = (v), .index = 1, .ticks = (n) \
    }

// Periods of 20 ms: late after 100 ms, stale after 500 ms.
static void fast_cameras(struct world_config *c)
{
    for (int i = 0; i < WORLD_CAMERAS; i++) {
        c->camera_hz[i] = 50;
        c->loop.camera_period_ns[i] = 20 * NS_PER_MS;
    }
}

// Periods of 80 ms: 3 are 240 ms, 10 are 800 ms.
static void slow_cameras(struct world_config *c)
{
    for (int i = 0; i < WORLD_CAMERAS; i++) {
        c->camera_hz[i] = 12.5;
        c->loop.camera_period_ns[i] = 80 * NS_PER_MS;
    }
}

// One every 80 ms, so that 24 ticks without one can not be chance.
static void eager(struct world_config *c)
{
    c->every_rows = 4;
}

// Degraded: the running chunk goes on, and no inference begins. memory: inferences begun by the
// end of the tick before, and whether that was degraded.
static void no_inference(struct probe *p)
{
    double begun = (double)p->w->inferences;

    if (p->memory[1] > 0 && begun > p->memory[0])
        probe_complain(p, "an inference began while it was degraded, before tick %lu",
                       (unsigned long)p->w->tick);
    p->memory[0] = begun;
    p->memory[1] = world_report(p->w)->degraded;
}

static const char *degraded_24(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);

    if (r->faults.of[p->s->reason].ticks != 24)
        return "not degraded for the 24 ticks until the next frame";
    if (p->w->inferences < p->inferences_before + 6)
        return "too few inferences to miss any";
    return r->degraded ? "still degraded" : NULL;
}

static bool late(struct probe *p)
{
    return world_report(p->w)->faults.active >> REASON_CAMERA_STALE & 1;
}

static bool lost(struct probe *p)
{
    return p->w->injector.lost > 0;
}

static const char *went_on(struct probe *p)
{
    return p->w->inferences > p->inferences_before + 4 ? NULL : "no inference since";
}

static const char *told_slow(struct probe *p)
{
    return world_report(p->w)->faults.of[REASON_CAMERA_SLOW].episodes == 1
               ? went_on(p)
               : "its rate is not told once";
}

static const char *names_the_second(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);
    const struct loop_event *e = &r->event[(r->events - 1) % BOARD_EVENTS];

    for (uint64_t i = 0; i < r->events && i < BOARD_EVENTS; i++)
        if (r->event[i].to == LADDER_STOPPING)
            e = &r->event[i];
    return e->to == LADDER_STOPPING && e->index == 1 ? NULL
                                                     : "it does not name the camera";
}

static bool slow(struct probe *p)
{
    return world_report(p->w)->faults.active >> REASON_CAMERA_SLOW & 1;
}

static const struct scenario of[] = {
    {.name = "camera off, 200 ms",
     .bound = "degraded after 120 ms",
     .detector = BLIND_CAMERA_AGE,
     .configure = eager,
     .inject = CAMERA(VERB_OFF, 34, 0),
     .reason = REASON_CAMERA_STALE,
     .least = 17,
     .most = 17,
     .recovery = RUNS_ON,
     .watch = no_inference,
     .check = degraded_24},
    {.name = "camera off",
     .bound = "STOPPING after 500 ms",
     .detector = BLIND_CAMERA_AGE,
     .inject = CAMERA(VERB_OFF, 200, 0),
     .reason = REASON_CAMERA_STALE,
     .least = 17,
     .most = 17,
     .path = "STOPPING STOPPED",
     .stop_after = 93,
     .recovery = LATCHES},
    {.name = "camera off, cameras of 50 Hz",
     .bound = "degraded after 100 ms",
     .detector = BLIND_CAMERA_AGE,
     .configure = fast_cameras,
     .inject = CAMERA(VERB_OFF, 200, 0),
     .reason = REASON_CAMERA_STALE,
     .least = 17,
     .most = 17,
     .path = "STOPPING STOPPED",
     .stop_after = 97,
     .recovery = LATCHES},
    {.name = "camera off, cameras of 12.5 Hz",
     .bound = "STOPPING after 10 periods",
     .detector = BLIND_CAMERA_AGE,
     .configure = slow_cameras,
     .inject = CAMERA(VERB_OFF, 200, 0),
     .reason = REASON_CAMERA_STALE,
     .least = 33,
     .most = 33,
     .path = "STOPPING STOPPED",
     .stop_after = 145,
     .recovery = LATCHES},
    {.name = "second camera off",
     .bound = "STOPPING after 500 ms",
     .detector = BLIND_CAMERA_AGE,
     .inject = SECOND(VERB_OFF, 200),
     .reason = REASON_CAMERA_STALE,
     .least = 17,
     .most = 17,
     .path = "STOPPING STOPPED",
     .stop_after = 93,
     .recovery = LATCHES,
     .check = names_the_second},
    // Nothing is said of the rate before 100 frames: 46 have come, 54 more take 864 ticks.
    {.name = "camera slow, 12.5 Hz",
     .bound = "< 90 % of 100 frames",
     .detector = BLIND_STREAM_RATE,
     .inject = CAMERA(VERB_SLOW, 1000, 2),
     .reason = REASON_CAMERA_SLOW,
     .least = 873,
     .most = 873,
     .recovery = RUNS_ON,
     .settle = 1200},
    {.name = "camera intermittent, a third lost",
     .bound = "< 90 % of 100 frames",
     .detector = BLIND_STREAM_RATE,
     .inject = CAMERA(VERB_INTERMITTENT, 1000, 0.33),
     .seen = slow,
     .reason = REASON_CAMERA_SLOW,
     .least = 609,
     .most = 609,
     .recovery = RUNS_ON,
     .settle = 1200},
    {.name = "camera slow, 5 Hz",
     .bound = "degraded between frames; told",
     .detector = BLIND_CAMERA_AGE,
     .inject = CAMERA(VERB_SLOW, 1000, 5),
     .seen = late,
     .reason = REASON_CAMERA_STALE,
     .least = 17,
     .most = 17,
     .recovery = RUNS_ON,
     .settle = 1200,
     .watch = no_inference,
     .check = told_slow},
    {.name = "camera in bursts of 5 frames",
     .bound = "degraded between bursts",
     .detector = BLIND_CAMERA_AGE,
     .inject = {.target = INJECT_CAMERA,
                .verb = VERB_DELAYED,
                .variant = CAMERA_BURSTS,
                .ticks = 1000,
                .magnitude = 200},
     .seen = late,
     .reason = REASON_CAMERA_STALE,
     .least = 17,
     .most = 17,
     .recovery = RUNS_ON,
     .watch = no_inference,
     .check = went_on},
    {.name = "camera loses 5 % of its frames",
     .bound = "nothing at all",
     .harmless = true,
     .inject = CAMERA(VERB_INTERMITTENT, 1000, 0.05),
     .seen = lost,
     .least = 288,
     .most = 288,
     .recovery = RUNS_ON,
     .settle = 1200,
     .check = went_on},
};

const struct scenario_group group_cameras = {"cameras", of, sizeof of / sizeof *of};
