// Faults of the cameras: 25 Hz, one period is eight ticks. Late after max(100 ms, 3 periods) =
// 120 ms, stale after max(500 ms, 10 periods) = 500 ms. The injection begins in a tick that a
// frame is due in: the last good one is 39 ms old then.
#include "tests/fault/matrix.h"

#define CAMERA(v, n, m)                                                      \
    {                                                                        \
        .target = INJECT_CAMERA, .verb = (v), .ticks = (n), .magnitude = (m) \
    }
#define GARBAGE(v, n)                                                               \
    {                                                                               \
        .target = INJECT_CAMERA, .verb = VERB_GARBAGE, .variant = (v), .ticks = (n) \
    }
#define WRONG(v, n, m)                                                             \
    {                                                                              \
        .target = INJECT_CAMERA, .verb = VERB_WRONG, .variant = (v), .ticks = (n), \
        .magnitude = (m)                                                           \
    }
#define SECOND(v, n)                                                   \
    {                                                                  \
        .target = INJECT_CAMERA, .verb = (v), .index = 1, .ticks = (n) \
    }

static void warns(struct world_config *c)
{
    c->loop.frozen_stops[0] = c->loop.frozen_stops[1] = false;
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

static void jpegs(struct world_config *c)
{
    c->jpeg = true;
}

static void real_policy(struct world_config *c)
{
    c->brain = BRAIN_ACT;
}

// Degraded: the running chunk goes on, and no inference begins.
static const char *no_inference(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);

    if (r->faults.of[p->s->reason].ticks != 24)
        return "not degraded for the 24 ticks until the next frame";
    return r->degraded ? "still degraded" : NULL;
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

static bool duplicate(struct probe *p)
{
    return atomic_load(&CAMERA_MARK(p, 0)->duplicate) > 0;
}

static bool slow(struct probe *p)
{
    return world_report(p->w)->faults.active >> REASON_CAMERA_SLOW & 1;
}

static bool disorder(struct probe *p)
{
    return atomic_load(&CAMERA_MARK(p, 0)->out_of_order) > 0;
}

static bool clock_jump(struct probe *p)
{
    return atomic_load(&CAMERA_MARK(p, 0)->clock_jumps) > 0;
}

static bool one_corrupt(struct probe *p)
{
    return atomic_load(&CAMERA_MARK(p, 0)->corrupt) > 0;
}

static const char *went_on(struct probe *p)
{
    return p->w->inferences > p->inferences_before + 1 ? NULL : "no inference since";
}

static const char *told_not_stopped(struct probe *p)
{
    return p->w->inferences > p->inferences_before + 2
               ? NULL
               : "inference stopped for a warning";
}

// No rows are left for now: the chunks have run out.
static bool ran_out(struct probe *p)
{
    return world_report(p->w)->chunk_remaining <= 0;
}

static const struct scenario of[] = {
    {.name = "camera off, 200 ms",
     .bound = "degraded after 120 ms",
     .detector = BLIND_CAMERA_AGE,
     .inject = CAMERA(VERB_OFF, 34, 0),
     .reason = REASON_CAMERA_STALE,
     .least = 17,
     .most = 17,
     .recovery = RUNS_ON,
     .check = no_inference},
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
    {.name = "camera stuck",
     .bound = "10 frames; stop as stale",
     .detector = BLIND_CAMERA_CONTENT,
     .inject = CAMERA(VERB_STUCK, 200, 0),
     .reason = REASON_CAMERA_FROZEN,
     .least = 81,
     .most = 81,
     .path = "STOPPING STOPPED",
     .stop_after = 101,
     .recovery = LATCHES},
    {.name = "camera stuck, judged by the loop",
     .bound = "10 frames; stop as stale",
     .detector = BLIND_CAMERA_FROZEN,
     .inject = SECOND(VERB_STUCK, 200),
     .reason = REASON_CAMERA_FROZEN,
     .least = 81,
     .most = 81,
     .path = "STOPPING STOPPED",
     .stop_after = 101,
     .recovery = LATCHES,
     .check = names_the_second},
    {.name = "camera stuck, frozen: warn",
     .bound = "10 frames",
     .detector = BLIND_CAMERA_CONTENT,
     .configure = warns,
     .inject = CAMERA(VERB_STUCK, 300, 0),
     .reason = REASON_CAMERA_FROZEN,
     .least = 81,
     .most = 81,
     .recovery = RUNS_ON,
     .check = told_not_stopped},
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
     .least = 430,
     .most = 700,
     .recovery = RUNS_ON,
     .settle = 1200},
    {.name = "one JPEG truncated",
     .bound = "dropped, counted",
     .detector = BLIND_CAMERA_DECODE,
     .configure = jpegs,
     .inject = GARBAGE(CAMERA_TRUNCATED, 60),
     .seen = one_corrupt,
     .least = 0,
     .most = 80,
     .recovery = RUNS_ON,
     .check = went_on},
    {.name = "JPEGs truncated",
     .bound = "5 in a row",
     .detector = BLIND_CAMERA_DECODE,
     .configure = jpegs,
     .inject = GARBAGE(CAMERA_TRUNCATED, 300),
     .begins = one_corrupt,
     .reason = REASON_CAMERA_CORRUPT,
     .least = 32,
     .most = 32,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "JPEGs with bits turned over",
     .bound = "5 in a row",
     .detector = BLIND_CAMERA_DECODE,
     .configure = jpegs,
     .inject = GARBAGE(CAMERA_FLIPS, 300),
     .begins = one_corrupt, // some decode all the same
     .reason = REASON_CAMERA_CORRUPT,
     .least = 32,
     .most = 150,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "JPEGs with a bad Huffman table",
     .bound = "5 in a row",
     .detector = BLIND_CAMERA_CORRUPT,
     .configure = jpegs,
     .inject = GARBAGE(CAMERA_HUFFMAN, 300),
     .begins = one_corrupt,
     .reason = REASON_CAMERA_CORRUPT,
     .least = 32,
     .most = 32,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "JPEG bombs, 65535 x 65535",
     .bound = "STOPPING after 500 ms",
     .detector = BLIND_CAMERA_FORM,
     .configure = jpegs,
     .inject = GARBAGE(CAMERA_BOMB, 200),
     .reason = REASON_CAMERA_INVALID,
     .least = 93,
     .most = 93,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "frames: random bytes",
     .bound = "STOPPING after 500 ms",
     .detector = BLIND_CAMERA_FORM,
     .inject = GARBAGE(CAMERA_RANDOM, 200),
     .reason = REASON_CAMERA_INVALID,
     .least = 93,
     .most = 93,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "frames: no bytes at all",
     .bound = "STOPPING after 500 ms",
     .detector = BLIND_CAMERA_FORM,
     .inject = GARBAGE(CAMERA_EMPTY, 200),
     .reason = REASON_CAMERA_INVALID,
     .least = 93,
     .most = 93,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "frames of a wrong encoding",
     .bound = "STOPPING after 500 ms",
     .detector = BLIND_CAMERA_FORM,
     .inject = WRONG(CAMERA_ENCODING, 200, 0),
     .reason = REASON_CAMERA_INVALID,
     .least = 93,
     .most = 93,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "frames of a wrong stride",
     .bound = "STOPPING after 500 ms",
     .detector = BLIND_CAMERA_FORM,
     .inject = WRONG(CAMERA_STRIDE, 200, 0),
     .reason = REASON_CAMERA_INVALID,
     .least = 93,
     .most = 93,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "frames of a wrong size, a real policy",
     .bound = "3 inferences",
     .detector = BLIND_POLICY,
     .configure = real_policy,
     .inject = WRONG(CAMERA_SIZE, 300, 0),
     .reason = REASON_POLICY_FAILED,
     .least = 1,
     .most = 170,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "every frame twice",
     .bound = "ignored, counted",
     .detector = BLIND_CAMERA_ORDER,
     .inject = WRONG(CAMERA_DUPLICATE, 100, 0),
     .seen = duplicate,
     .least = 1,
     .most = 1,
     .recovery = RUNS_ON,
     .check = went_on},
    {.name = "frames the wrong way round",
     .bound = "dropped, counted",
     .detector = BLIND_CAMERA_ORDER,
     .inject = WRONG(CAMERA_REORDERED, 100, 0),
     .seen = disorder,
     .least = 1,
     .most = 17,
     .recovery = RUNS_ON,
     .check = went_on},
    {.name = "camera's clock + 1 h",
     .bound = "STOPPING after 500 ms",
     .detector = BLIND_CAMERA_CLOCK,
     .inject = WRONG(CAMERA_CLOCK, 200, 3600e3),
     .reason = REASON_CAMERA_INVALID,
     .least = 93,
     .most = 93,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "camera's clock - 1 h",
     .bound = "STOPPING after 500 ms",
     .detector = BLIND_CAMERA_CLOCK,
     .inject = WRONG(CAMERA_CLOCK, 200, -3600e3),
     .reason = REASON_CAMERA_INVALID,
     .least = 93,
     .most = 93,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "camera's clock + 70 ms",
     .bound = "counted, once it is confirmed",
     .detector = BLIND_CAMERA_CLOCK,
     .inject = WRONG(CAMERA_CLOCK, 300, 70),
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
     .begins = ran_out,
     .reason = REASON_CAMERA_SKEW,
     .least = 0,
     .most = 0,
     .path = "HOLD STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true},
};

const struct scenario_group group_cameras = {"cameras", of, sizeof of / sizeof *of};
