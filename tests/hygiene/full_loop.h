// The loop on a real board with a robot that follows every command at once, a camera that
// is always fresh and a policy whose chunks overlap four deep: the full-size case of the
// benches and of the tests of real-time hygiene. Everything the loop needs comes from a
// configuration in text, so that it is what a daemon would run. No sockets. One program
// includes it once.
#ifndef TEST_FULL_LOOP_H
#define TEST_FULL_LOOP_H

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/blackbox.h"
#include "daemon/config.h"
#include "daemon/config_loop.h"
#include "daemon/loop.h"

#define WORLD_UNUSED  __attribute__((unused))
#define WORLD_ROWS    100 // at 50 Hz: a chunk lasts 2 s, and
#define WORLD_EVERY   25  // rows lie between two: 4 are alive at any time
#define WORLD_STEP_NS (20 * NS_PER_MS)

struct world_spec {
    double control_hz;
    int joints;
    const char *mode;    // of chunks.mode
    double jerk;         // rad/s^3, 0 = no limit
    double lively;       // rad: how far two chunks disagree
    const char *runtime; // directory of the sockets, NULL when there are none
};

struct loop_world {
    struct world_spec spec;
    struct config cfg;
    struct config_sidecar side;
    struct policy_info info;
    struct loop_config loop_cfg;
    struct board board;
    struct blackbox *blackbox;
    struct loop *loop;
    double measured[ACTD_MAX_JOINTS];
    uint64_t samples, chunks;
    ns_t next_chunk_ns, running_ns; // 0 = it does not run yet
    struct config_error err;
};

// ---- configuration --------------------------------------------------------------------

WORLD_UNUSED static int world_configure(struct loop_world *w)
{
    static char text[16384], side[8192];
    const struct world_spec *s = &w->spec;
    int n =
        snprintf(text, sizeof text,
                 "policy: {directory: nowhere}\n"
                 "runtime: %s\n"
                 "control: {rate_hz: %g}\n"
                 "inference: {trigger: rows, every_rows: %d}\n"
                 "chunks: {mode: %s, interpolation: cubic, fade_ms: 400}\n"
                 "joint_state: {rate_hz: 20}\n" // judged late after 150 ms only
                 "cameras: {top: {key: observation.images.top, rate_hz: 5}}\n"
                 "joints:\n",
                 s->runtime ? s->runtime : "/tmp", s->control_hz, WORLD_EVERY, s->mode);
    int m = snprintf(side, sizeof side, "rate_hz: 50\nunits: rad\nstate_names: [");
    char names[2048] = "";

    for (int j = 0; j < s->joints; j++) {
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "  j%d: {position: [-3, 3], velocity: 3, acceleration: 30, "
                      "jerk: %g, following_error: 0.5}\n",
                      j, s->jerk);
        snprintf(names + strlen(names), sizeof names - strlen(names), "%sj%d",
                 j ? ", " : "", j);
    }
    snprintf(side + m, sizeof side - (size_t)m, "%s]\naction_names: [%s]\n", names,
             names);
    if (config_parse(&w->cfg, "world.yaml", text, strlen(text), &w->err) ||
        config_sidecar_parse(&w->side, "policy.yaml", side, strlen(side), &w->err))
        return -EINVAL;
    w->info = (struct policy_info){.type = "act",
                                   .n_cameras = 1,
                                   .state_dim = s->joints,
                                   .action_dim = s->joints,
                                   .chunk_size = WORLD_ROWS,
                                   .n_action_steps = WORLD_ROWS};
    snprintf(w->info.camera[0].key, POLICY_NAME_MAX, "observation.images.top");
    return config_loop(&w->cfg, &w->side, &w->info, &w->loop_cfg, &w->err);
}

// What every joint should do at a time: rest until the approach has arrived, then a slow
// wave, each joint with a phase of its own.
WORLD_UNUSED static double world_wish(const struct loop_world *w, int joint, ns_t at)
{
    ns_t since = w->running_ns > 0 && at > w->running_ns ? at - w->running_ns : 0;

    return 0.8 * sin(2 * 3.14159265358979 * 0.2 * (double)since / NS_PER_S + joint);
}

// 0 or -errno with w->err filled.
WORLD_UNUSED static int world_open(struct loop_world *w, const struct world_spec *spec)
{
    int rc;

    memset(w, 0, sizeof *w);
    w->spec = *spec;
    rc = world_configure(w);
    if (rc == 0)
        rc = board_init(&w->board, 1, WORLD_ROWS, spec->joints);
    if (rc == 0)
        rc = blackbox_new(&w->blackbox, spec->joints, 1, spec->control_hz);
    w->loop_cfg.blackbox = w->blackbox;
    if (rc == 0)
        rc = loop_new(&w->loop, &w->loop_cfg, &w->board);
    if (rc != 0 && w->err.text[0] == 0)
        snprintf(w->err.text, sizeof w->err.text, "the loop cannot be made: %s",
                 strerror(-rc));
    for (int j = 0; j < spec->joints; j++) // a short approach
        w->measured[j] = world_wish(w, j, 0);
    if (rc == 0)
        atomic_store(&w->board.started, true);
    return rc;
}

WORLD_UNUSED static void world_close(struct loop_world *w)
{
    loop_free(w->loop);
    blackbox_free(w->blackbox);
    board_free(&w->board);
}

// ---- the robot's side -----------------------------------------------------------------

WORLD_UNUSED static void world_joints(struct loop_world *w, ns_t now)
{
    struct joint_sample s = {.number = ++w->samples,
                             .received_ns = now,
                             .capture_ns = now,
                             .n = w->spec.joints};

    memcpy(s.pos, w->measured, sizeof s.pos);
    slot_write(&w->board.joints, &s);
}

WORLD_UNUSED static void world_frame(struct loop_world *w, ns_t now)
{
    atomic_fetch_add(&w->board.camera[0].received, 1);
    atomic_store(&w->board.camera[0].capture_ns, now);
    atomic_store(&w->board.camera[0].received_ns, now);
}

WORLD_UNUSED static void world_chunk(struct loop_world *w, ns_t now)
{
    struct chunk *c = ring_reserve(&w->board.chunks);
    int n = w->spec.joints;

    if (c == NULL)
        return;
    c->id = ++w->chunks;
    c->anchor_ns = c->oldest_ns = now - 40 * NS_PER_MS;
    c->ready_ns = now;
    c->rows = WORLD_ROWS;
    c->joints = n;
    for (int k = 0; k < WORLD_ROWS; k++)
        for (int j = 0; j < n; j++) {
            double other = (w->chunks + (uint64_t)j) % 2 ? w->spec.lively : 0;

            c->row[k * n + j] =
                (float)(world_wish(w, j, c->anchor_ns + k * WORLD_STEP_NS) + other);
        }
    ring_commit(&w->board.chunks);
}

// The arm is where the newest command put it; all streams are fresh; a chunk when
// one is due.
WORLD_UNUSED static void world_feed(struct loop_world *w, ns_t now)
{
    world_joints(w, now);
    world_frame(w, now);
    if (now >= w->next_chunk_ns) {
        world_chunk(w, now);
        w->next_chunk_ns = now + WORLD_EVERY * WORLD_STEP_NS;
    }
}

// Takes all commands and obeys them; seen (may be NULL) is called for each.
WORLD_UNUSED static int
world_obey(struct loop_world *w, void (*seen)(const struct command *, void *), void *arg)
{
    struct command c;
    int n = 0;

    for (; ring_pop(&w->board.commands, &c); n++) {
        memcpy(w->measured, c.pos, sizeof w->measured);
        if (seen)
            seen(&c, arg);
    }
    return n;
}

// Asks for what leads to RUNNING from where the loop is, and starts the wave once
// it is there.
WORLD_UNUSED static void world_arm(struct loop_world *w, enum ladder_state mode, ns_t now)
{
    if (mode == LADDER_READY)
        atomic_fetch_or(&w->board.requests, BOARD_ARM);
    if (mode == LADDER_STOPPED || mode == LADDER_ESTOP)
        atomic_fetch_or(&w->board.requests, BOARD_RESET);
    if (mode == LADDER_RUNNING && w->running_ns == 0)
        w->running_ns = now;
    if (mode != LADDER_RUNNING && mode != LADDER_HOLD)
        w->running_ns = 0;
}

#endif
