// The world records itself: a recorder worked by hand, in its time; and the robot that it was, for
// who replays the recording.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/keyframe.h"
#include "daemon/recorder.h"
#include "tests/fault/world_impl.h"

static const char *const camera_name[WORLD_CAMERAS] = {"front", "wrist"};

int world_record_begin(struct world *w)
{
    const struct tape_sizes sizes = {
        {8u << 20, 1u << 18, 2u << 20, 4u << 20, 8u << 20}}; // of 5 ms
    const char *joint[ACTD_MAX_JOINTS];
    struct recorder_config c = {.mode = RECORDER_ALWAYS,
                                .directory = w->cfg.record,
                                .compression = MCAP_ZSTD,
                                .frames = true,
                                .segment_bytes = UINT64_C(1) << 40,
                                .segment_ns = 3600 * NS_PER_S};
    int rc;

    if (!w->cfg.record)
        return 0;
    for (int i = 0; i < w->cfg.loop.joints; i++)
        joint[i] = w->plant.cfg.name[i];
    c.facts = (struct recorder_facts){.version = "world",
                                      .instance = "world",
                                      .config_file = "",
                                      .config_text = "",
                                      .cpu = "",
                                      .kernels = "",
                                      .blas_core = "",
                                      .precision = "",
                                      .exe_sha256 = "",
                                      .joint = joint,
                                      .joints = w->cfg.loop.joints,
                                      .camera = camera_name,
                                      .cameras = w->cfg.loop.n_cameras,
                                      .control_hz = w->cfg.loop.control_hz,
                                      .rows = w->cfg.rows};
    rc = tape_new(&w->tape, &sizes);
    if (rc == 0)
        rc = recorder_new(&w->recorder, w->tape, &c);
    if (rc == 0)
        w->board.tape = w->tape;
    return rc;
}

void world_record_turn(struct world *w)
{
    if (w->recorder)
        recorder_turn(w->recorder, w->now);
}

void world_record_end(struct world *w)
{
    if (w->recorder) {
        recorder_finish(w->recorder, w->now);
        recorder_free(w->recorder);
        w->recorder = NULL;
    }
}

void world_record_bus(struct world *w)
{
    keyframe_bus(w->in->intake, w->camera, w->cfg.loop.n_cameras, w->tape, w->now);
}

// ---- for a replay ----------------------------------------------------------------------------

struct intake_config world_intake(const struct world_config *c)
{
    struct intake_config in = {
        .joints = c->loop.joints, .max_jump = c->max_jump, .rate_hz = c->joints_hz};

    for (int i = 0; i < in.joints; i++)
        in.velocity[i] = c->loop.limits.velocity[i];
    return in;
}

void world_robot(const struct world_config *c, struct replay_robot *out)
{
    *out = (struct replay_robot){.loop = c->loop,
                                 .intake = world_intake(c),
                                 .cameras = c->loop.n_cameras,
                                 .rows = c->rows};
    out->loop.blackbox = NULL;
    for (int i = 0; i < c->loop.joints; i++)
        out->joint[i] = c->plant.name[i];
    for (int i = 0; i < out->cameras; i++)
        out->camera[i] = (struct replay_camera){.name = camera_name[i],
                                                .rate_hz = c->camera_hz[i],
                                                .width = c->expects ? WORLD_SIDE : 0,
                                                .height = c->expects ? WORLD_SIDE : 0};
}
