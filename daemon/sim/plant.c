#include "daemon/sim/plant.h"

#include <errno.h>
#include <string.h>

int plant_open(struct plant *p, uint64_t seed, unsigned episodes, double command_hz,
               char *err, size_t err_len)
{
    memset(p, 0, sizeof *p);
    int rc = scene_open(&p->scene, err, err_len);
    if (rc < 0)
        return rc;
    if (p->scene.m->nq != PLANT_NQ || p->scene.m->nmocap != PLANT_MOCAP) {
        scene_close(&p->scene);
        return -EINVAL;
    }
    p->episodes = episodes;
    servo_init(&p->servo, arm_rest_rad, 1 / command_hz);
    // Seeds of SplitMix64 that lie close together are one stream, a few draws apart. The
    // recorder uses them as they are; what is driven live, and judged, starts somewhere else in
    // the 2^64 places, so that no episode of it can be one that was recorded.
    struct rng apart = {~seed};
    task_init(&p->task, rng_next(&apart));
    task_start(&p->task, &p->scene, 0);
    return 0;
}

void plant_close(struct plant *p)
{
    scene_close(&p->scene);
}

static void end_episode(struct plant *p)
{
    unsigned n = p->task.episode; // already counts this one

    if (n <= TASK_EPISODES_MAX)
        p->final_m[n - 1] = (float)p->task.distance_m;
    if (p->episodes && n >= p->episodes)
        p->done = true;
    else
        task_start(&p->task, &p->scene, p->scene.d->time);
}

void plant_step(struct plant *p)
{
    servo_step(&p->servo, SCENE_TIMESTEP_S);
    scene_step(&p->scene, p->servo.q, p->servo.qd);
    if (p->done)
        return;
    // Until somebody drives, the first episode waits: loading a policy takes seconds.
    if (!p->begun) {
        p->task.started_s = p->scene.d->time;
        p->task.entered_s = -1;
    }
    if (task_update(&p->task, &p->scene, p->scene.d->time) != TASK_GOES_ON)
        end_episode(p);
}

void plant_snapshot(const struct plant *p, int64_t wall_ns, struct snapshot *snap)
{
    snap->time_s = p->scene.d->time;
    snap->wall_ns = wall_ns;
    memcpy(snap->qpos, p->scene.d->qpos, sizeof snap->qpos);
    memcpy(snap->mocap_m, p->scene.d->mocap_pos, sizeof snap->mocap_m);
    memcpy(snap->goal_m, p->task.goal_m, sizeof snap->goal_m);
    scene_tip(&p->scene, snap->tip_m);
}

void plant_restore(struct scene *s, const struct snapshot *snap)
{
    memcpy(s->d->qpos, snap->qpos, sizeof snap->qpos);
    memcpy(s->d->mocap_pos, snap->mocap_m, sizeof snap->mocap_m);
    mj_kinematics(s->m, s->d);
    mj_comPos(s->m, s->d);
    mj_camlight(s->m, s->d);
}
