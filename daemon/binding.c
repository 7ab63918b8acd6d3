// binding: who is who, by name and one-to-one. Where names do not match, nothing is
// guessed: the sentence says what there is. (A policy whose joints were bound by position
// has driven shoulders with wrist values: LeRobot fixed that in its own roll-out as late
// as 2026.)
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config.h"
#include "daemon/config_keys.h"
#include "daemon/table.h"
#include "daemon/units.h"

static int no(struct config_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int no(struct config_error *err, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(err->text, sizeof err->text, format, ap);
    va_end(ap);
    for (char *p = err->text; *p; p++) // names come from files: no forged log lines
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return -EINVAL;
}

// "a, b, c" of n names that lie stride bytes apart.
static const char *names(const char *first, size_t stride, int n, char *buf, size_t size)
{
    size_t at = 0;

    snprintf(buf, size, "none");
    for (int i = 0; i < n && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? ", " : "",
                               first + (size_t)i * stride);
    return buf;
}

// "robot.yaml:12:5", or without a place the file alone.
static const char *where(const struct config *cfg, struct config_place at,
                         char buf[CONFIG_PATH + 32])
{
    if (at.line > 0)
        snprintf(buf, CONFIG_PATH + 32, "%s:%d:%d", cfg->file, at.line, at.column);
    else
        snprintf(buf, CONFIG_PATH + 32, "%s", cfg->file);
    return buf;
}

static int find(const char *first, size_t stride, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(first + (size_t)i * stride, name) == 0)
            return i;
    return -1;
}

// ---- counts ---------------------------------------------------------------------------

// Actions that no robot joint claims: "a, b".
static const char *unclaimed(const struct config *cfg, const struct config_sidecar *side,
                             char *buf, size_t size)
{
    size_t at = 0;

    snprintf(buf, size, "none");
    for (int i = 0; i < side->n_action && at < size; i++)
        if (find(cfg->joint[0].action, sizeof cfg->joint[0], cfg->n_joints,
                 side->action[i]) < 0)
            at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "",
                                   side->action[i]);
    return buf;
}

static int check_counts(const struct config *cfg, const struct config_sidecar *side,
                        const struct policy_info *p, struct config_error *err)
{
    char buf[300], missing[300];

    if (p->env_dim > 0)
        return no(err,
                  "the checkpoint wants observation.environment_state (%d values), which "
                  "no robot publishes; train a policy on cameras and joints",
                  p->env_dim);
    if (side->n_action != p->action_dim)
        return no(err,
                  "policy.yaml: action_names: %d name%s, but the checkpoint's action has "
                  "%d value%s; write one name for each, in the order of the data set",
                  side->n_action, PLURAL(side->n_action), p->action_dim,
                  PLURAL(p->action_dim));
    if (side->n_state != p->state_dim)
        return no(
            err,
            "policy.yaml: state_names: %d name%s, but the checkpoint's observation.state "
            "has %d value%s; write one name for each, in the order of the data set",
            side->n_state, PLURAL(side->n_state), p->state_dim, PLURAL(p->state_dim));
    if (side->n_state != 0 && side->n_state != side->n_action)
        return no(err,
                  "policy.yaml: %d state_names and %d action_names; actd drives policies "
                  "that have one state value and one action value per joint",
                  side->n_state, side->n_action);
    if (cfg->n_joints != side->n_action)
        return no(
            err,
            "%s: joints: %d of them, but the policy moves %d: %s; without a joint here: "
            "%s",
            cfg->file, cfg->n_joints, side->n_action,
            names(side->action[0], CONFIG_NAME, side->n_action, buf, sizeof buf),
            unclaimed(cfg, side, missing, sizeof missing));
    return 0;
}

// ---- units ----------------------------------------------------------------------------

// Scale of joint j, whose action has this unit.
static int scale_of(const struct config *cfg, const struct config_joint *j,
                    const char *action, const char *unit, double *scale,
                    struct config_error *err)
{
    const char *how = strcmp(unit, "m100_100") == 0
                          ? "scale: 200 / (max - min) and offset: (max + min) / 2"
                      : strcmp(unit, "0_100") == 0
                          ? "scale: 100 / (open - closed) and offset: closed"
                          : "scale: 1 / (open - closed) and offset: closed";

    *scale = j->scale;
    if (!isnan(j->scale))
        return 0;
    *scale = units_scale(unit);
    if (!isnan(*scale))
        return 0;
    return no(err,
              "%s: joints.%s.scale: missing; action '%s' is in %s, which does not say "
              "how far the joint turns; write %s, the ends in rad as the driver reports "
              "them at calibration",
              cfg->file, j->name, action, unit, how);
}

// ---- joints ---------------------------------------------------------------------------

// A name of joint j that the policy does not have; n names that it has.
static int no_such_name(const struct config *cfg, int j, bool action, const char *have,
                        int n, struct config_error *err)
{
    const struct config_joint *joint = &cfg->joint[j];
    const char *name = action ? joint->action : joint->state;
    const char *what = action ? "action" : "state";
    char place[CONFIG_PATH + 32], near[160], buf[400];

    return no(err, "%s: joints.%s.%s: '%s' is no %s of the policy; policy.yaml has: %s%s",
              where(cfg, action ? joint->action_at : joint->state_at, place), joint->name,
              what, name, what, names(have, CONFIG_NAME, n, buf, sizeof buf),
              config_suggest_name(have, CONFIG_NAME, n, name, near, sizeof near));
}

static int bind_joint(struct binding *b, int j, const struct config *cfg,
                      const struct config_sidecar *side, struct config_error *err)
{
    const struct config_joint *joint = &cfg->joint[j];
    int a = find(side->action[0], CONFIG_NAME, side->n_action, joint->action);
    int s = find(side->state[0], CONFIG_NAME, side->n_state, joint->state);

    if (a < 0)
        return no_such_name(cfg, j, true, side->action[0], side->n_action, err);
    if (s < 0 && side->n_state > 0)
        return no_such_name(cfg, j, false, side->state[0], side->n_state, err);
    b->joint_of[a] = j;
    if (s >= 0)
        b->state_of[s] = j;
    b->offset[j] = joint->offset;
    return scale_of(cfg, joint, joint->action, side->units[a], &b->scale[j], err);
}

// Equal counts and no name twice (config_load and config_sidecar_load saw to that) make
// the map one-to-one; still it is counted.
static int check_one_to_one(const struct binding *b, struct config_error *err)
{
    int seen_action[ACTD_MAX_JOINTS] = {0}, seen_state[ACTD_MAX_JOINTS] = {0};

    for (int i = 0; i < b->n; i++)
        if (b->joint_of[i] < 0 || seen_action[b->joint_of[i]]++)
            return no(
                err,
                "joints: two robot joints claim one action, or none claims action %d", i);
    for (int i = 0; i < b->n_state; i++)
        if (b->state_of[i] < 0 || seen_state[b->state_of[i]]++)
            return no(err,
                      "joints: two robot joints claim one state, or none claims state %d",
                      i);
    return 0;
}

// ---- cameras --------------------------------------------------------------------------

static int check_sidecar_cameras(const struct config_sidecar *side,
                                 const struct policy_info *p, struct config_error *err)
{
    char buf[400];

    for (int i = 0; i < side->n_cameras; i++)
        if (find(p->camera[0].key, sizeof p->camera[0], p->n_cameras, side->camera[i]) <
            0)
            return no(
                err,
                "policy.yaml: cameras: '%s' is no image of the checkpoint, which has: %s",
                side->camera[i],
                names(p->camera[0].key, sizeof p->camera[0], p->n_cameras, buf,
                      sizeof buf));
    if (side->n_cameras && side->n_cameras != p->n_cameras)
        return no(
            err, "policy.yaml: cameras: %d of them, but the checkpoint has %d: %s",
            side->n_cameras, p->n_cameras,
            names(p->camera[0].key, sizeof p->camera[0], p->n_cameras, buf, sizeof buf));
    return 0;
}

static int no_such_image(const struct config *cfg, const struct config_camera *c,
                         const struct policy_info *p, struct config_error *err)
{
    const size_t stride = sizeof p->camera[0];
    char place[CONFIG_PATH + 32], near[160], buf[400];

    return no(err,
              "%s: cameras.%s.key: '%s' is no image of the checkpoint, which has: %s%s",
              where(cfg, c->key_at, place), c->name, c->key,
              names(p->camera[0].key, stride, p->n_cameras, buf, sizeof buf),
              config_suggest_name(p->camera[0].key, stride, p->n_cameras, c->key, near,
                                  sizeof near));
}

static int bind_cameras(struct binding *b, const struct config *cfg,
                        const struct policy_info *p, struct config_error *err)
{
    const size_t stride = sizeof cfg->camera[0];
    char buf[400];

    for (int i = 0; i < cfg->n_cameras; i++) {
        const struct config_camera *c = &cfg->camera[i];
        if (find(p->camera[0].key, sizeof p->camera[0], p->n_cameras, c->key) < 0)
            return no_such_image(cfg, c, p, err);
        if (c->primary)
            b->primary = i;
    }
    for (int i = 0; i < p->n_cameras; i++) {
        b->camera_of[i] =
            find(cfg->camera[0].key, stride, cfg->n_cameras, p->camera[i].key);
        if (b->camera_of[i] < 0)
            return no(
                err,
                "%s: cameras: the checkpoint's image '%s' has no camera; add one with "
                "`key: %s`; there are: %s",
                cfg->file, p->camera[i].key, p->camera[i].key,
                names(cfg->camera[0].name, stride, cfg->n_cameras, buf, sizeof buf));
    }
    return 0;
}

int binding_make(struct binding *out, const struct config *cfg,
                 const struct config_sidecar *side, const struct policy_info *policy,
                 struct config_error *err)
{
    int rc = check_counts(cfg, side, policy, err);

    if (rc)
        return rc;
    memset(out, 0, sizeof *out);
    out->n = side->n_action;
    out->n_state = side->n_state;
    for (int i = 0; i < ACTD_MAX_JOINTS; i++)
        out->joint_of[i] = out->state_of[i] = -1;
    for (int j = 0; j < cfg->n_joints && !rc; j++)
        rc = bind_joint(out, j, cfg, side, err);
    rc = rc ? rc : check_one_to_one(out, err);
    rc = rc ? rc : check_sidecar_cameras(side, policy, err);
    return rc ? rc : bind_cameras(out, cfg, policy, err);
}

// ---- in use ---------------------------------------------------------------------------

void binding_state(const struct binding *b, const double *joints, float *state)
{
    for (int i = 0; i < b->n_state; i++) {
        int j = b->state_of[i];
        state[i] = (float)((joints[j] - b->offset[j]) * b->scale[j]);
    }
}

void binding_actions(const struct binding *b, const float *actions, int rows, float *out)
{
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < b->n; i++) {
            int j = b->joint_of[i];
            out[r * b->n + j] =
                (float)((double)actions[r * b->n + i] / b->scale[j] + b->offset[j]);
        }
}
