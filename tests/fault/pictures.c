// Faults of what is in a frame: 25 Hz, one period is eight ticks. Late after max(100 ms, 3
// periods) = 120 ms, stale after max(500 ms, 10 periods) = 500 ms.
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

static void jpegs(struct world_config *c)
{
    c->jpeg = true;
}

static void one_size(struct world_config *c)
{
    c->expects = true;
}

static void real_policy(struct world_config *c)
{
    c->brain = BRAIN_ACT;
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

static const struct scenario of[] = {
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
    {.name = "one JPEG truncated",
     .bound = "dropped, counted",
     .detector = BLIND_CAMERA_DECODE,
     .configure = jpegs,
     .inject = GARBAGE(CAMERA_TRUNCATED, 60),
     .seen = one_corrupt,
     .least = 33,
     .most = 33,
     .recovery = RUNS_ON,
     .check = went_on},
    {.name = "JPEGs truncated",
     .bound = "5 in a row",
     .detector = BLIND_CAMERA_DECODE,
     .configure = jpegs,
     .inject = GARBAGE(CAMERA_TRUNCATED, 300),
     .reason = REASON_CAMERA_CORRUPT,
     .least = 65,
     .most = 65,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "JPEGs with bits turned over",
     .bound = "5 in a row",
     .detector = BLIND_CAMERA_DECODE,
     .configure = jpegs,
     .inject = GARBAGE(CAMERA_FLIPS, 300),
     .reason = REASON_CAMERA_CORRUPT,
     .least = 105,
     .most = 105,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "JPEGs with a bad Huffman table",
     .bound = "5 in a row",
     .detector = BLIND_CAMERA_CORRUPT,
     .configure = jpegs,
     .inject = GARBAGE(CAMERA_HUFFMAN, 300),
     .reason = REASON_CAMERA_CORRUPT,
     .least = 65,
     .most = 65,
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
    {.name = "frames of a wrong size",
     .bound = "STOPPING after 500 ms",
     .detector = BLIND_CAMERA_FORM,
     .configure = one_size,
     .inject = WRONG(CAMERA_SIZE, 200, 0),
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
     .least = 167,
     .most = 167,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
};

const struct scenario_group group_pictures = {"what cameras show", of,
                                              sizeof of / sizeof *of};
