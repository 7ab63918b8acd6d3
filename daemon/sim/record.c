#include "daemon/sim/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sim/expert.h"
#include "daemon/sim/render.h"
#include "daemon/sim/servo.h"
#include "daemon/sim/task.h"

enum {
    STEPS_MAX = 64,
    HOLD_STEPS = 10, // after arrival: standing still has to be learnt too
    CHAIN = 6,       // episodes between two jumps of the arm to another start
};

static const int size_px[SCENE_CAMERAS] = {RECORD_FRONT_PX, RECORD_WRIST_PX};

struct episode {
    uint32_t steps;
    float goal_m[3];
    float state[STEPS_MAX][ARM_JOINTS];
    float action[STEPS_MAX][ARM_JOINTS];
    uint8_t *frames[SCENE_CAMERAS]; // [STEPS_MAX][size][size][3]
};

struct recorder {
    struct scene scene;
    struct task task;
    struct servo servo;
    struct rng rng;
    struct render *render;
    struct episode ep;
    double noise[ARM_JOINTS]; // rad, error of the executed action now
    double noise_rad;
};

static size_t frame_bytes(int camera)
{
    return (size_t)size_px[camera] * (size_t)size_px[camera] * 3;
}

// A start: at rest, or anywhere the arm can be over the table, pointing more or less downwards.
static void jump(struct recorder *r)
{
    double q[ARM_JOINTS];
    struct arm_pose p;

    memcpy(q, arm_rest_rad, sizeof q);
    if (rng_uniform(&r->rng, 0, 1) > 0.3)
        do {
            p.r_m = rng_uniform(&r->rng, 0.12, 0.31);
            p.azimuth_rad = rng_uniform(&r->rng, -1.15, 1.15);
            p.z_m = rng_uniform(&r->rng, 0.04, 0.22);
            p.pitch_rad = rng_uniform(&r->rng, 0.6, 1.9);
            p.yaw_rad = rng_uniform(&r->rng, -0.4, 0.4);
            q[ARM_GRIPPER] = rng_uniform(&r->rng, 0, 0.8);
        } while (arm_inverse(&p, q) < 0);
    scene_set_pose(&r->scene, q);
    servo_init(&r->servo, q, 1.0 / RECORD_RATE_HZ);
}

// First-order noise with a memory of about 6 steps, scaled to what a joint moves of the tip.
static void stir(struct recorder *r)
{
    static const double weight[ARM_JOINTS] = {1, 1, 1, 1, 1.5, 1.5};
    for (int i = 0; i < ARM_JOINTS; i++)
        r->noise[i] =
            0.85 * r->noise[i] + 0.527 * weight[i] * r->noise_rad * rng_normal(&r->rng);
}

static void observe(struct recorder *r, uint32_t k)
{
    double q[ARM_JOINTS];

    scene_get_pose(&r->scene, q, NULL);
    for (int i = 0; i < ARM_JOINTS; i++)
        r->ep.state[k][i] = (float)q[i];
    mj_forward(r->scene.m, r->scene.d);
    for (int c = 0; c < SCENE_CAMERAS; c++)
        render_draw(r->render, r->scene.d, r->scene.camera[c], size_px[c], size_px[c],
                    r->ep.frames[c] + k * frame_bytes(c));
}

static void execute(struct recorder *r, const double *action)
{
    double noisy[ARM_JOINTS];
    int steps = (int)(1.0 / RECORD_RATE_HZ / SCENE_TIMESTEP_S + 0.5);

    stir(r);
    for (int i = 0; i < ARM_JOINTS; i++)
        noisy[i] = action[i] + r->noise[i];
    servo_command(&r->servo, noisy, 0);
    for (int i = 0; i < steps; i++) {
        servo_step(&r->servo, SCENE_TIMESTEP_S);
        scene_step(&r->scene, r->servo.q, r->servo.qd);
    }
}

static int run_episode(struct recorder *r)
{
    struct expert e;
    double q[ARM_JOINTS], action[ARM_JOINTS];

    task_start(&r->task, &r->scene, r->scene.d->time);
    for (int i = 0; i < 3; i++)
        r->ep.goal_m[i] = (float)r->task.goal_m[i];
    scene_get_pose(&r->scene, q, NULL);
    expert_plan(&e, q, r->task.goal_m);
    r->ep.steps = (uint32_t)(e.duration_s * RECORD_RATE_HZ + 0.5) + HOLD_STEPS;
    for (uint32_t k = 0; k < r->ep.steps; k++) {
        if (expert_at(&e, (k + 1.0) / RECORD_RATE_HZ, action) < 0)
            return -ERANGE;
        observe(r, k);
        for (int i = 0; i < ARM_JOINTS; i++)
            r->ep.action[k][i] = (float)action[i];
        execute(r, action);
    }
    return 0;
}

static int write_file(const struct episode *ep, FILE *f)
{
    uint32_t head[4] = {ep->steps, ARM_JOINTS, SCENE_CAMERAS, RECORD_RATE_HZ};
    size_t rows = ep->steps * (size_t)ARM_JOINTS;

    fwrite("ACTDEP02", 8, 1, f);
    fwrite(head, sizeof head, 1, f);
    for (int c = 0; c < SCENE_CAMERAS; c++) {
        char name[16] = {0};
        uint32_t size[2] = {(uint32_t)size_px[c], (uint32_t)size_px[c]};
        snprintf(name, sizeof name, "%s", scene_camera_name[c]);
        fwrite(name, sizeof name, 1, f);
        fwrite(size, sizeof size, 1, f);
    }
    fwrite(ep->goal_m, sizeof ep->goal_m, 1, f);
    fwrite(ep->state, sizeof(float), rows, f);
    fwrite(ep->action, sizeof(float), rows, f);
    for (int c = 0; c < SCENE_CAMERAS; c++)
        fwrite(ep->frames[c], frame_bytes(c), ep->steps, f);
    return ferror(f) ? -EIO : 0;
}

static int save(const struct episode *ep, const char *dir, uint64_t seed, unsigned n)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/s%llu_%05u.ep", dir, (unsigned long long)seed,
                 n) >= (int)sizeof path)
        return -ENAMETOOLONG;
    FILE *f = fopen(path, "wb");
    if (!f)
        return -errno;
    int rc = write_file(ep, f);
    if (fclose(f) != 0 && rc == 0)
        rc = -EIO;
    return rc;
}

static int open_all(struct recorder *r, const struct record_options *o, const char **why)
{
    static char err[512];

    *why = err;
    if (scene_open(&r->scene, err, sizeof err) < 0)
        return -EINVAL;
    for (int c = 0; c < SCENE_CAMERAS; c++) {
        r->ep.frames[c] = malloc(STEPS_MAX * frame_bytes(c));
        if (!r->ep.frames[c]) {
            *why = "out of memory";
            return -ENOMEM;
        }
    }
    // Seeds next to each other would be one stream, a few draws apart (plant.c says more), and
    // episodes held out could be among those learnt from: so each seed is spread first.
    struct rng spread = {o->seed};
    task_init(&r->task, rng_next(&spread));
    r->rng.state = rng_next(&spread);
    r->noise_rad = o->noise_rad;
    return render_open(&r->render, r->scene.m, RECORD_FRONT_PX, RECORD_FRONT_PX, why);
}

static void close_all(struct recorder *r)
{
    render_close(r->render);
    scene_close(&r->scene);
    for (int c = 0; c < SCENE_CAMERAS; c++)
        free(r->ep.frames[c]);
    free(r);
}

int record_run(const struct record_options *o, const char **why)
{
    struct recorder *r = calloc(1, sizeof *r);
    unsigned skipped = 0;
    int rc;

    *why = "out of memory";
    if (!r)
        return -ENOMEM;
    rc = open_all(r, o, why);
    for (unsigned n = 0; rc == 0 && n < o->episodes;) {
        if ((n + skipped) % CHAIN == 0)
            jump(r);
        if (run_episode(r) < 0) { // the way leads out of reach: not a demonstration
            skipped++;
            continue;
        }
        *why = "cannot write the demonstration: check that the directory exists and has "
               "room";
        rc = save(&r->ep, o->dir, o->seed, n);
        if (++n % 50 == 0)
            fprintf(stderr, "recorded %u of %u (%u skipped)\n", n, o->episodes, skipped);
    }
    close_all(r);
    return rc;
}
