// config_loop: see the header.
#include "daemon/config_loop.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// Of an ACT without its own coefficient: the paper's value (Zhao et al. 2023, section
// IV-B).
#define ENSEMBLE_COEFF 0.01
#define TTL_LEAST_MS   20.0 // shorter is lost in the scheduling of an ordinary driver

static ns_t ms(double v)
{
    return (ns_t)llround(v * (double)NS_PER_MS);
}

static int used_rows(const struct config *cfg, const struct policy_info *policy)
{
    int h = cfg->chunks.horizon_rows;

    return h > 0 ? h : policy->chunk_size;
}

int config_every_rows(const struct config *cfg, const struct policy_info *policy)
{
    int n = cfg->inference.every_rows;

    if (cfg->inference.trigger == TRIGGER_CONTINUOUS)
        return 1;
    if (n > 0)
        return n;
    n = policy->n_action_steps > 0 ? policy->n_action_steps : policy->chunk_size;
    return n < used_rows(cfg, policy) ? n : used_rows(cfg, policy);
}

ns_t config_max_age_ns(const struct config *cfg, const struct config_sidecar *side,
                       const struct policy_info *policy)
{
    if (cfg->inference.max_age_ms > 0)
        return ms(cfg->inference.max_age_ms);
    return used_rows(cfg, policy) * clock_period_ns(side->rate_hz);
}

static int check_rows(const struct config *cfg, const struct policy_info *policy,
                      struct config_error *err)
{
    int rows = used_rows(cfg, policy), every = config_every_rows(cfg, policy);

    if (rows > policy->chunk_size)
        snprintf(err->text, sizeof err->text,
                 "%s: chunks.horizon_rows: %d, but a chunk of this checkpoint has %d "
                 "rows; write at most that",
                 cfg->file, rows, policy->chunk_size);
    else if (every > rows)
        snprintf(err->text, sizeof err->text,
                 "%s: inference.every_rows: a new chunk every %d rows, but only %d rows "
                 "of each are used; write at most that",
                 cfg->file, every, rows);
    else
        return 0;
    return -EINVAL;
}

static void fill_limits(const struct config *cfg, struct loop_config *out)
{
    struct guard_limits *l = &out->limits;

    l->n = cfg->n_joints;
    for (int i = 0; i < cfg->n_joints; i++) {
        const struct config_joint *j = &cfg->joint[i];
        l->min[i] = j->min;
        l->max[i] = j->max;
        l->hard_min[i] = j->hard_min;
        l->hard_max[i] = j->hard_max;
        l->velocity[i] = j->velocity;
        l->acceleration[i] = j->acceleration;
        l->jerk[i] = j->jerk;
        l->stop_acceleration[i] = j->stop_acceleration;
        out->following_error[i] = j->following_error;
        out->home[i] = j->home;
        out->chunks.blend[i] = j->blend;
    }
}

// How many chunks may cover one instant: one per inference while a chunk lasts, and one
// on its way. Modes that show the newest chunk alone need few; 256 of 100 rows and 14
// joints are 1.4 MB.
static int live_chunks(const struct config *cfg, int rows, int every)
{
    int n = rows / every + 2;
    bool newest_only =
        cfg->chunks.mode == CHUNK_REPLACE || cfg->chunks.mode == CHUNK_LATEST_ONLY;

    if (newest_only)
        return 4;
    return n < 4 ? 4 : n > 256 ? 256 : n;
}

static void fill_chunks(const struct config *cfg, const struct config_sidecar *side,
                        const struct policy_info *policy, struct chunks_config *out)
{
    double m = cfg->chunks.ensemble_coeff;

    out->mode = cfg->chunks.mode;
    out->interpolation = cfg->chunks.interpolation;
    out->rows = used_rows(cfg, policy);
    out->joints = cfg->n_joints;
    out->capacity = live_chunks(cfg, out->rows, config_every_rows(cfg, policy));
    out->step_ns = clock_period_ns(side->rate_hz);
    out->fade_ns = ms(cfg->chunks.fade_ms);
    out->max_age_ns = config_max_age_ns(cfg, side, policy);
    out->own_age = !(cfg->inference.max_age_ms > 0);
    out->bridge_ns = ms(cfg->swap.fade_ms);
    if (isnan(m))
        m = policy->has_ensemble_coeff ? (double)policy->ensemble_coeff : ENSEMBLE_COEFF;
    out->ensemble_coeff = m;
}

static void fill_camera(const struct config_camera *c, int i, struct loop_config *out)
{
    out->camera_period_ns[i] = clock_period_ns(c->rate_hz);
    out->frozen_stops[i] = c->frozen == FROZEN_STOP;
    out->frozen_warns[i] = c->frozen != FROZEN_IGNORE;
}

static ns_t or_else(double given_ms, ns_t preset)
{
    return given_ms > 0 ? ms(given_ms) : preset;
}

// After periods and chunks are known.
static void fill_budgets(const struct config *cfg, struct loop_config *out)
{
    ns_t period = clock_period_ns(cfg->control.rate_hz);
    ns_t stale = loop_joint_bounds(out->joints_period_ns).stop;

    out->budget_ns[BOARD_WAKEUP] = or_else(cfg->deadlines.wakeup_ms, period);
    out->budget_ns[BOARD_TICK] = or_else(cfg->deadlines.tick_ms, period / 2);
    out->budget_ns[BOARD_CHUNK] =
        or_else(cfg->deadlines.chunk_latency_ms, out->chunks.rows * out->chunks.step_ns);
    out->budget_ns[BOARD_SENSOR] = or_else(cfg->deadlines.sensor_age_ms, stale);
}

int config_loop(const struct config *cfg, const struct config_sidecar *side,
                const struct policy_info *policy, struct loop_config *out,
                struct config_error *err)
{
    double ttl = cfg->joint_command.ttl_ms, three = 3000 / cfg->control.rate_hz;
    int rc = check_rows(cfg, policy, err);

    if (rc)
        return rc;
    memset(out, 0, sizeof *out);
    out->control_hz = cfg->control.rate_hz;
    out->joints = cfg->n_joints;
    fill_limits(cfg, out);
    fill_chunks(cfg, side, policy, &out->chunks);
    out->following_ticks = cfg->safety.following_ticks;
    out->joints_period_ns = clock_period_ns(cfg->joint_state.rate_hz);
    out->n_cameras = cfg->n_cameras;
    for (int i = 0; i < cfg->n_cameras; i++)
        fill_camera(&cfg->camera[i], i, out);
    fill_budgets(cfg, out);
    out->has_home = !isnan(cfg->joint[0].home);
    out->hold_ns = ms(cfg->safety.hold_ms);
    out->ttl_ns = ms(ttl > 0 ? ttl : three > TTL_LEAST_MS ? three : TTL_LEAST_MS);
    out->tick_gap_ns = ms(cfg->safety.tick_gap_ms);
    out->fresh_ticks = cfg->safety.fresh_ticks;
    out->approach_scale = cfg->safety.approach_speed;
    out->approach_tolerance = cfg->safety.approach_tolerance;
    return 0;
}
