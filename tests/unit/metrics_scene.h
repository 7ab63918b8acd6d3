// metrics_scene: a status with everything in it, written as text and read by the strict checker.
#ifndef ACTD_TESTS_METRICS_SCENE_H
#define ACTD_TESTS_METRICS_SCENE_H

#include "tests/unit/metrics_checker.h"

#include "daemon/config.h"
#include "daemon/deadline.h"
#include "daemon/metrics.h"

#define JOINTS  ACTD_MAX_JOINTS
#define CAMERAS POLICY_MAX_CAMERAS
#define DROPS   128
#define REASONS 34

#define IN "{instance=\"left\","

static char text[METRICS_MAX];

// A status with everything in it.
static struct scene {
    Actd__V1__Status m;
    Google__Protobuf__Timestamp stamp;
    Actd__V1__Histogram h[5];
    Actd__V1__Bucket bucket[HIST_BUCKETS], *buckets[HIST_BUCKETS];
    Actd__V1__Counter drop[DROPS], *drops[DROPS];
    Actd__V1__Counter limited[JOINTS * 4], *limiteds[JOINTS * 4];
    Actd__V1__Stream stream[CAMERAS + 1], *streams[CAMERAS + 1];
    Actd__V1__Fault fault[REASONS], *faults[REASONS];
    Actd__V1__Budget budget[4], *budgets[4];
    Actd__V1__Seam seam[JOINTS], *seams[JOINTS];
    Actd__V1__JointStatus joint[JOINTS], *joints[JOINTS];
    Actd__V1__ChunkStatus chunk;
    Actd__V1__PolicyStatus policy;
    Actd__V1__RecordStatus record;
    Actd__V1__Counter lost[2], *losts[2];
} w;

#define FILL(list, list_of, n, init, each) \
    do {                                   \
        for (size_t i = 0; i < (n); i++) { \
            init(&w.list[i]);              \
            w.list_of[i] = &w.list[i];     \
            each;                          \
        }                                  \
        w.m.n_##list_of = (n);             \
        w.m.list_of = w.list_of;           \
    } while (0)

static inline void scene_lists(char *name)
{
    static char *const budget[] = {"wakeup", "tick", "chunk_latency", "sensor_age"};

    FILL(stream, streams, 2, actd__v1__stream__init,
         (w.stream[i].name = name, w.stream[i].received = 7 + i,
          w.stream[i].age_ns = 2500000, w.stream[i].asked_hz = 100,
          w.stream[i].seen_early = 3 * i, w.stream[i].seen_kept = 4 * i,
          w.stream[i].seen_computed = 5 * i));
    w.stream[0].name = "joints";
    FILL(budget, budgets, 4, actd__v1__budget__init,
         (w.budget[i].name = budget[i], w.budget[i].limit_ns = 1000000 * (i + 1),
          w.budget[i].samples = 1000, w.budget[i].missed = i));
    FILL(joint, joints, 2, actd__v1__joint_status__init,
         (w.joint[i].name = i ? name : "pan", w.joint[i].measured = -0.5,
          w.joint[i].wanted = NAN, w.joint[i].max = 1.5));
    FILL(seam, seams, 2, actd__v1__seam__init,
         (w.seam[i].joint = i ? name : "pan", w.seam[i].max_rad = 0.01));
    FILL(fault, faults, 1, actd__v1__fault__init,
         (w.fault[i].reason = ACTD__V1__REASON__REASON_JOINTS_STALE,
          w.fault[i].episodes = 3, w.fault[i].ticks = 40, w.fault[i].active = 1));
}

static inline void scene_parts(char *name)
{
    google__protobuf__timestamp__init(&w.stamp);
    w.stamp.seconds = 1700000000;
    w.stamp.nanos = 250000000;
    w.m.timestamp = &w.stamp;
    actd__v1__chunk_status__init(&w.chunk);
    w.chunk.id = 12;
    w.chunk.age_ns = 42000000;
    w.chunk.row = 3.25;
    w.m.chunk = &w.chunk;
    actd__v1__policy_status__init(&w.policy);
    w.policy.name = name;
    w.policy.digest = "d1";
    w.policy.weights_sha256 = "w1";
    w.policy.generation = 4;
    w.policy.swaps = 3;
    w.policy.swaps_failed = 2;
    w.policy.precision = "int8";
    w.policy.previous = "before";
    w.m.policy_in_use = &w.policy;
    actd__v1__record_status__init(&w.record);
    for (int i = 0; i < 2; i++) {
        actd__v1__counter__init(&w.lost[i]);
        w.lost[i].name = i ? "ticks" : "frames";
        w.lost[i].value = i ? 0 : 21;
        w.losts[i] = &w.lost[i];
    }
    w.record.recording = true;
    w.record.files = 2;
    w.record.bytes = 3000000000;
    w.record.messages = 44;
    w.record.held_bytes = 5;
    w.record.removed = 6;
    w.record.slowest_write_ns = 250000000;
    w.record.cpu_ns = 1500000000;
    w.record.lost = w.losts;
    w.record.n_lost = 2;
    w.m.record = &w.record;
}

static inline void scene(char *name)
{
    memset(&w, 0, sizeof w);
    actd__v1__status__init(&w.m);
    w.m.instance = "left";
    w.m.version = "1.2";
    w.m.scheduling = "SCHED_FIFO 50";
    w.m.mode = ACTD__V1__MODE__MODE_HOLD;
    w.m.reason = ACTD__V1__REASON__REASON_JOINTS_STALE;
    w.m.ticks = 123456789012;
    w.m.commands = 1000;
    w.m.achieved_hz = 99.5;
    for (int i = 0; i < 5; i++)
        actd__v1__histogram__init(&w.h[i]);
    w.m.lateness = &w.h[0];
    w.m.tick_time = &w.h[1];
    w.m.inference = &w.h[2];
    w.m.chunk_latency = &w.h[3];
    scene_lists(name);
    w.budget[3].histogram = &w.h[4];
    scene_parts(name);
}

static inline size_t write_and_check(void)
{
    size_t n = metrics_write(&w.m, text, sizeof text);

    assert_true(n > 0);
    assert_int_equal(strlen(text), n);
    check_text(text);
    return n;
}

#endif
