#include "daemon/sim/scene.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sim/scene_xml.h"

const double scene_front_m[3] = {0.66, 0.20, 0.50};
const char *const scene_camera_name[SCENE_CAMERAS] = {"front", "wrist"};
static const char *const colour[SCENE_CUBES] = {"red", "green", "blue"};

static mjModel *compile(char *err, size_t err_len)
{
    mjModel *m = NULL;
    mjVFS *vfs = malloc(sizeof *vfs); // 2 MB: not for the stack
    if (!vfs)
        return NULL;
    mj_defaultVFS(vfs);
    if (mj_makeEmptyFileVFS(vfs, "reach.xml", scene_xml_len) == 0) {
        memcpy(vfs->filedata[mj_findFileVFS(vfs, "reach.xml")], scene_xml,
               (size_t)scene_xml_len);
        m = mj_loadXML("reach.xml", vfs, err, (int)err_len);
    }
    mj_deleteVFS(vfs);
    free(vfs);
    return m;
}

static int id(const struct scene *s, mjtObj type, const char *prefix, const char *name,
              int *bad)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    int i = mj_name2id(s->m, (int)type, full);
    if (i < 0)
        *bad = 1;
    return i < 0 ? 0 : i;
}

static int look_up(struct scene *s)
{
    int bad = 0;

    for (int i = 0; i < ARM_JOINTS; i++) {
        int j = id(s, mjOBJ_JOINT, "", arm_name[i], &bad);
        s->qpos[i] = s->m->jnt_qposadr[j];
        s->dof[i] = s->m->jnt_dofadr[j];
        s->act_pos[i] = id(s, mjOBJ_ACTUATOR, "p_", arm_name[i], &bad);
        s->act_vel[i] = id(s, mjOBJ_ACTUATOR, "v_", arm_name[i], &bad);
    }
    for (int i = 0; i < SCENE_CUBES; i++) {
        s->cube_mocap[i] =
            s->m->body_mocapid[id(s, mjOBJ_BODY, "cube_", colour[i], &bad)];
        s->plinth_mocap[i] =
            s->m->body_mocapid[id(s, mjOBJ_BODY, "plinth_", colour[i], &bad)];
    }
    for (int i = 0; i < SCENE_CAMERAS; i++)
        s->camera[i] = id(s, mjOBJ_CAMERA, "", scene_camera_name[i], &bad);
    s->tip_site = id(s, mjOBJ_SITE, "", "tip", &bad);
    s->finger_qpos = s->m->jnt_qposadr[id(s, mjOBJ_JOINT, "", "gripper_mirror", &bad)];
    return bad ? -EINVAL : 0;
}

int scene_open(struct scene *s, char *err, size_t err_len)
{
    memset(s, 0, sizeof *s);
    snprintf(err, err_len, "out of memory");
    s->m = compile(err, err_len);
    if (!s->m)
        return -EINVAL;
    s->d = mj_makeData(s->m);
    if (!s->d) {
        scene_close(s);
        return -ENOMEM;
    }
    if (look_up(s) < 0) {
        snprintf(err, err_len, "the built-in scene lacks a name");
        scene_close(s);
        return -EINVAL;
    }
    scene_set_pose(s, arm_rest_rad);
    return 0;
}

void scene_close(struct scene *s)
{
    if (s->d)
        mj_deleteData(s->d);
    if (s->m)
        mj_deleteModel(s->m);
    memset(s, 0, sizeof *s);
}

void scene_set_pose(struct scene *s, const double *q)
{
    mju_zero(s->d->qvel, s->m->nv);
    for (int i = 0; i < ARM_JOINTS; i++) {
        s->d->qpos[s->qpos[i]] = q[i];
        s->d->ctrl[s->act_pos[i]] = q[i];
        s->d->ctrl[s->act_vel[i]] = 0;
    }
    s->d->qpos[s->finger_qpos] = q[ARM_GRIPPER];
    mj_forward(s->m, s->d);
}

void scene_get_pose(const struct scene *s, double *q, double *qd)
{
    for (int i = 0; i < ARM_JOINTS; i++) {
        q[i] = s->d->qpos[s->qpos[i]];
        if (qd)
            qd[i] = s->d->qvel[s->dof[i]];
    }
}

void scene_place_cube(struct scene *s, int i, const double *top_m)
{
    double *cube = s->d->mocap_pos + 3 * s->cube_mocap[i];
    double *plinth = s->d->mocap_pos + 3 * s->plinth_mocap[i];

    mju_copy3(cube, top_m);
    mju_copy3(plinth, top_m);
    // A hair above the table even at height 0, or the two faces would flicker.
    plinth[2] = top_m[2] - 2 * SCENE_CUBE_HALF_M + 0.0005;
}

void scene_tip(const struct scene *s, double tip_m[3])
{
    mju_copy3(tip_m, s->d->site_xpos + 3 * s->tip_site);
}

void scene_step(struct scene *s, const double *q_ref, const double *qd_ref)
{
    for (int i = 0; i < ARM_JOINTS; i++) {
        s->d->ctrl[s->act_pos[i]] = q_ref[i];
        s->d->ctrl[s->act_vel[i]] = qd_ref[i];
    }
    mj_step(s->m, s->d);
}
