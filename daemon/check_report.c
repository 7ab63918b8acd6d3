// check_report: every resolved fact, as tables.
#include <math.h>
#include <string.h>

#include "daemon/check_impl.h"
#include "daemon/rt.h"
#include "policy/golden.h"
#include "policy/kernels/kernels.h"

static const char *const mode_name[] = {"replace",          "crossfade",   "ensemble",
                                        "weighted_average", "latest_only", "average",
                                        "conservative"};
static const char *const interpolation_name[] = {"hold", "linear", "cubic"};
static const char *const resize_name[] = {"frames of another size are refused", "stretch",
                                          "letterbox"};

static double mib(size_t bytes)
{
    return (double)bytes / (1024 * 1024);
}

static double ms(ns_t ns)
{
    return (double)ns / (double)NS_PER_MS;
}

static void precision_row(struct check *c)
{
    char text[300];

    table_row(
        &c->table, "precision\t%s",
        joint_deviation_text(&c->cfg, &c->side, &c->binding, c->info, text, sizeof text));
}

static void policy_facts(struct check *c)
{
    const struct policy_info *p = c->info;
    struct table *t = &c->table;

    table_row(t, "directory\t%s", c->cfg.policy.directory);
    table_row(t, "written by\t%s", p->format);
    table_row(t,
              "network\t%s, %s%scameras: %d; dim %d, %d heads, feed-forward %d, %d + %d "
              "layers, %s-norm",
              p->type, p->backbone, *p->backbone ? ", " : "", p->n_cameras, p->dim_model,
              p->n_heads, p->dim_feedforward, p->n_encoder_layers, p->n_decoder_layers,
              p->pre_norm ? "pre" : "post");
    table_row(t, "parameters\t%.1f million", (double)p->parameters / 1e6);
    table_row(t, "state, action\t%d and %d values", p->state_dim, p->action_dim);
    table_row(t, "normalisation\tstate %s, images %s, action %s", p->norm_state,
              p->n_cameras ? p->norm_visual : "-", p->norm_action);
    table_row(t, "chunk\t%d rows at %g Hz = %.4g s; n_action_steps %d", p->chunk_size,
              c->side.rate_hz, p->chunk_size / c->side.rate_hz, p->n_action_steps);
    if (p->has_ensemble_coeff)
        table_row(t, "ensembling\tcoefficient %g as trained or configured there",
                  (double)p->ensemble_coeff);
    table_row(t, "compute\tthreads: %d; kernels: %s%s%s (%s)", p->threads, p->kernels,
              *p->blas_core ? " " : "", p->blas_core, kernels_why());
    table_row(t, "memory\tweights %.1f MiB, tables %.1f MiB, working %.1f MiB",
              mib(p->weight_bytes), mib(p->table_bytes), mib(p->activation_bytes));
    precision_row(c);
    table_row(t, "digest\t%.12s (whole in the log of run)", p->digest);
    if (p->golden_error >= 0)
        table_row(t, "golden forward\toff by %.1e where %.0e is allowed", p->golden_error,
                  GOLDEN_TOLERANCE);
    else
        table_row(t, "golden forward\tnone recorded; `actd golden %s` records one",
                  c->cfg.policy.directory);
    fprintf(c->out, "Policy\n");
    table_print(t, c->out);
}

// What another precision than float32 does to each joint.
static void deviation_table(struct check *c)
{
    struct joint_deviation d;

    if (!joint_deviation_of(&c->cfg, &c->side, &c->binding, c->info, &d))
        return;
    table_row(&c->table, "robot joint\tfrom float32\tof its range\tallowed");
    for (int j = 0; j < d.n; j++)
        table_row(&c->table, "%s\t%.2g %s\t%.2g %%\t%.2g %%%s", c->cfg.joint[j].name,
                  d.wire[j], d.unit[j], 100 * d.share[j],
                  100 * c->cfg.policy.max_deviation, j == d.worst ? "  (worst)" : "");
    fprintf(c->out, "\nPrecision\n");
    table_print(&c->table, c->out);
}

// Who is who, by name.
static void joint_table(struct check *c)
{
    const struct binding *b = &c->binding;

    table_row(&c->table,
              "robot joint\tpolicy state\tpolicy action\tunit\tguessed\tscale\toffset");
    for (int a = 0; a < b->n; a++) {
        const struct config_joint *j = &c->cfg.joint[b->joint_of[a]];
        table_row(&c->table, "%s\t%s\t%s [%d]\t%s\t%s\t%.7g\t%g", j->name,
                  b->n_state ? j->state : "-", j->action, a, c->side.units[a],
                  *c->guess[a] ? c->guess[a] : "?", b->scale[b->joint_of[a]],
                  b->offset[b->joint_of[a]]);
    }
    fprintf(c->out, "\nJoints: policy = (wire - offset) * scale\n");
    table_print(&c->table, c->out);
}

static void limit_table(struct check *c)
{
    const struct binding *b = &c->binding;
    double lo, hi, time, distance;
    bool estimated = false;
    char seen[80], jerk[32], following[32];

    table_row(&c->table,
              "robot joint\tposition\tseen in "
              "training\tvelocity\tacceleration\tjerk\tfollowing\tstops in\twithin");
    for (int a = 0; a < b->n; a++) {
        int i = b->joint_of[a];
        const struct config_joint *j = &c->cfg.joint[i];
        guard_stopping(&c->loop.limits, i, &time, &distance);
        snprintf(seen, sizeof seen, "?");
        if (check_seen(c, a, &lo, &hi))
            snprintf(seen, sizeof seen, "%s%.3f .. %.3f",
                     c->range[a].estimated ? "about " : "", lo, hi);
        estimated = estimated || c->range[a].estimated;
        snprintf(jerk, sizeof jerk, j->jerk > 0 ? "%g" : "none", j->jerk);
        snprintf(following, sizeof following,
                 j->following_error > 0 ? "%g" : "not watched", j->following_error);
        table_row(&c->table, "%s\t%.3f .. %.3f\t%s\t%g\t%g\t%s\t%s\t%.3f s\t%.3f%s",
                  j->name, j->min, j->max, seen, j->velocity, j->acceleration, jerk,
                  following, time, distance, j->blend ? "" : "\tnot blended");
    }
    fprintf(c->out, "\nLimits: rad, rad/s, rad/s^2, rad/s^3 (metres for sliding joints); "
                    "stops from top speed\n");
    table_print(&c->table, c->out);
    if (estimated)
        fprintf(c->out,
                "  about: the checkpoint has no minimum and maximum; mean +- 3 std "
                "stand in for them\n");
}

static void camera_table(struct check *c)
{
    if (!c->info->n_cameras)
        return;
    table_row(&c->table, "camera\timage key\tsize\trate\tlatency\tendpoint");
    for (int i = 0; i < c->info->n_cameras; i++) {
        const struct policy_camera *p = &c->info->camera[i];
        const struct config_camera *cam = &c->cfg.camera[c->binding.camera_of[i]];
        table_row(&c->table, "%s%s\t%s\t%dx%d\t%g Hz\t%g ms\t%s (%s)", cam->name,
                  cam->primary ? " (primary)" : "", p->key, p->width, p->height,
                  cam->rate_hz, cam->latency_ms, cam->endpoint,
                  cam->bind ? "bind" : "connect");
    }
    fprintf(c->out, "\nCameras: %s\n", resize_name[c->cfg.policy.resize]);
    table_print(&c->table, c->out);
}

static void stream_table(struct check *c)
{
    const struct config *cfg = &c->cfg;
    struct table *t = &c->table;

    table_row(t, "joint states in\t%g Hz\t%s (%s)", cfg->joint_state.rate_hz,
              cfg->joint_state.endpoint, cfg->joint_state.bind ? "bind" : "connect");
    table_row(t, "commands out\t%g Hz\t%s (%s), good for %.4g ms", cfg->control.rate_hz,
              cfg->joint_command.endpoint, cfg->joint_command.bind ? "bind" : "connect",
              ms(c->loop.ttl_ns));
    table_row(t, "status out\t1 Hz\t%s (%s)", cfg->status.endpoint,
              cfg->status.bind ? "bind" : "connect");
    fprintf(c->out, "\nStreams of instance '%s'\n", cfg->instance);
    table_print(t, c->out);
}

static void rate_table(struct check *c)
{
    const struct config *cfg = &c->cfg;
    struct table *t = &c->table;

    table_row(t, "control\t%g Hz", cfg->control.rate_hz);
    table_row(t, "policy\t%g Hz: rows are %.4g ms apart", c->side.rate_hz,
              1000 / c->side.rate_hz);
    if (cfg->inference.trigger == TRIGGER_CONTINUOUS)
        table_row(t, "inference\tas soon as the last one is done");
    else
        table_row(t, "inference\tevery %d row%s at most = %.4g ms",
                  config_every_rows(cfg, c->info),
                  PLURAL(config_every_rows(cfg, c->info)),
                  1000 * config_every_rows(cfg, c->info) / c->side.rate_hz);
    table_row(t,
              "chunks\t%s, %s interpolation, %d of %d rows used; fade %.4g ms, ensemble "
              "coefficient %g",
              mode_name[cfg->chunks.mode], interpolation_name[cfg->chunks.interpolation],
              c->loop.chunks.rows, c->info->chunk_size, ms(c->loop.chunks.fade_ns),
              c->loop.chunks.ensemble_coeff);
    table_row(
        t, "max. age\t%.4g ms from exposure; samples of one observation within %.4g ms",
        ms(c->loop.chunks.max_age_ns), cfg->inference.max_skew_ms);
    table_row(t,
              "safety\thold %.4g ms, approach at %.4g of speed to within %.4g rad, tick "
              "gap %.4g ms, fresh for %d ticks",
              cfg->safety.hold_ms, cfg->safety.approach_speed,
              cfg->safety.approach_tolerance, cfg->safety.tick_gap_ms,
              cfg->safety.fresh_ticks);
    fprintf(c->out, "\nRates\n");
    table_print(t, c->out);
}

void check_report_static(struct check *c)
{
    policy_facts(c);
    deviation_table(c);
    joint_table(c);
    limit_table(c);
    camera_table(c);
    stream_table(c);
    rate_table(c);
    check_report_safety(c);
    check_report_operators(c);
}

static void core_row(struct check *c)
{
    int core = c->cfg.control.cpu >= 0 ? c->cfg.control.cpu : rt_choose_cpu();
    const char *shared = rt_mask_without(core, c->cfg.policy.threads) == 0
                             ? "; compute threads share the loop's core"
                             : "";

    if (core >= 0)
        table_row(&c->table, "cores\t%d; the loop's is number %d (%s)%s", rt_cpu_count(),
                  core, c->cfg.control.cpu >= 0 ? "control.cpu" : "chosen", shared);
    else
        table_row(&c->table, "cores\t%d; the loop may run on any%s", rt_cpu_count(),
                  shared);
}

void check_report_measured(struct check *c)
{
    struct table *t = &c->table;
    int every = config_every_rows(&c->cfg, c->info);

    table_row(t,
              "inference\t%.2f ms, median of %d on a grey image: at most %.1f a second",
              c->latency_ms, CHECK_RUNS, 1000 / c->latency_ms);
    table_row(t, "in rows\t%.2f of %d rows pass while a chunk is computed",
              c->latency_ms * c->side.rate_hz / 1000, c->loop.chunks.rows);
    if (c->cfg.inference.trigger == TRIGGER_ROWS)
        table_row(t,
                  "new chunk\tevery %d row%s at most; with this latency after about %d",
                  every, PLURAL(every), check_lead_rows(c));
    table_row(t, "scheduling\t%s", c->granted);
    table_row(t, "memory lock\t%s",
              !c->cfg.control.lock_memory ? "not asked for"
              : c->lockable               ? "possible"
                                          : "RLIMIT_MEMLOCK is too low");
    core_row(c);
    fprintf(c->out, "\nMeasured here\n");
    table_print(t, c->out);
}
