// check_judge: what looks wrong, and what cannot work. Each warning stands for a way in
// which people have lost an afternoon or a gripper.
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "daemon/check_impl.h"
#include "daemon/rt.h"

#define FAST    20.0 // rad/s
#define DEGREES (180 / 3.14159265358979323846)

// ---- units, scales, ranges ------------------------------------------------------------

static void judge_unit(struct check *c, int a, const struct config_joint *j)
{
    const char *unit = c->side.units[a], *guess = c->guess[a];
    double natural = units_scale(unit);

    if (!units_fits(guess, unit) && strcmp(unit, "m") != 0)
        check_note(
            c,
            "%s: policy.yaml says %s, but the statistics (%s%.4g .. %.4g) look like "
            "%s: a wrong unit moves the arm to the wrong place",
            j->action, unit, c->range[a].estimated ? "about " : "", c->range[a].lo,
            c->range[a].hi, guess);
    if (!isnan(j->scale) && !isnan(natural) && fabs(fabs(j->scale) / natural - 1) > 0.01)
        check_note(c, "%s: scale %g, but %s alone would be %.7g (or its negative)",
                   j->name, j->scale, unit, natural);
}

// Nobody's arm joint turns three times a second; 120 stands for degrees.
static void judge_speed(struct check *c, int a, const struct config_joint *j)
{
    if (j->velocity > FAST && strcmp(c->side.units[a], "m") != 0)
        check_note(c,
                   "%s: velocity %g rad/s is %.0f degrees a second: were degrees meant? "
                   "Those would be %.3g rad/s",
                   j->name, j->velocity, j->velocity * DEGREES, j->velocity / DEGREES);
}

static void judge_range(struct check *c, int a, const struct config_joint *j)
{
    double lo, hi, slack = 0.02 * (j->max - j->min);

    // Three deviations reach beyond what was there, and past a limit that was kept.
    if (!check_seen(c, a, &lo, &hi) || c->range[a].estimated)
        return;
    if (lo < j->min - slack || hi > j->max + slack)
        check_note(
            c,
            "%s: training went from %.3f to %.3f, the limits from %.3f to %.3f: the "
            "guard will hold the arm back (or unit, scale or offset are wrong)",
            j->name, lo, hi, j->min, j->max);
    else if (hi - lo < 0.02 * (j->max - j->min))
        check_note(c,
                   "%s: training used %.4f of a range of %.3f: never moved, or the unit "
                   "or scale is wrong",
                   j->name, hi - lo, j->max - j->min);
}

// A grey image is no scene, yet un-normalised actions must lie about where the data lay:
// a checkpoint whose statistics got lost answers within -1..1 whatever its joints are in.
static void judge_output(struct check *c, int a, const struct config_joint *j)
{
    const struct units_range *r = &c->range[a];
    double lo = INFINITY, hi = -INFINITY, span = r->hi - r->lo;

    if (!r->known)
        return;
    for (int row = 0; row < c->info->rows; row++) {
        double v = (double)c->actions[row * c->info->action_dim + a];
        lo = fmin(lo, v);
        hi = fmax(hi, v);
    }
    if (lo < r->lo - span || hi > r->hi + span)
        check_note(c,
                   "%s: for a grey image the policy answers %.4g .. %.4g, training saw "
                   "%s%.4g .. %.4g: are these the statistics of these weights?",
                   j->action, lo, hi, r->estimated ? "about " : "", r->lo, r->hi);
}

static void judge_normalisation(struct check *c, int a, const struct config_joint *j)
{
    double span = c->range[a].hi - c->range[a].lo;

    if (!c->range[a].known)
        return;
    if (strcmp(c->info->norm_action, "IDENTITY") == 0 && span > 20)
        check_note(c,
                   "%s: actions are not normalised (IDENTITY) although they span %.4g: a "
                   "migrated checkpoint may have lost its statistics",
                   j->action, span);
}

static void judge_joints(struct check *c)
{
    for (int a = 0; a < c->binding.n; a++) {
        const struct config_joint *j = &c->cfg.joint[c->binding.joint_of[a]];
        judge_unit(c, a, j);
        judge_range(c, a, j);
        judge_speed(c, a, j);
        judge_normalisation(c, a, j);
        if (j->following_error <= 0 && j->blend)
            check_note(
                c, "%s: following_error is not watched: a collision will not be noticed",
                j->name);
    }
}

// ---- rates and ages -------------------------------------------------------------------

static bool averages(const struct check *c)
{
    return c->cfg.chunks.mode != CHUNK_REPLACE && c->cfg.chunks.mode != CHUNK_CROSSFADE &&
           c->cfg.chunks.mode != CHUNK_LATEST_ONLY;
}

// Of the file alone: how often an inference is asked for.
static void judge_chunks(struct check *c)
{
    int rows = config_every_rows(&c->cfg, c->info);

    if (!averages(c) && rows < c->info->n_action_steps)
        check_note(c,
                   "a new chunk every %d %s, configured in training to run %d: policies "
                   "may stall when they re-decide so often without ensembling; compare "
                   "with chunks.mode: ensemble, or inference.trigger: rows",
                   rows, rows == 1 ? "row at best" : "rows", c->info->n_action_steps);
    if (c->info->has_ensemble_coeff && c->cfg.chunks.mode != CHUNK_ENSEMBLE)
        check_note(c,
                   "the checkpoint asks for temporal ensembling (coefficient %g), but "
                   "chunks.mode is another: it will move otherwise than in training's "
                   "evaluation",
                   (double)c->info->ensemble_coeff);
    if (c->cfg.control.rate_hz < c->side.rate_hz)
        check_note(c, "control.rate_hz %g is below the policy's %g: rows are left out",
                   c->cfg.control.rate_hz, c->side.rate_hz);
}

// Of the latency too.
static void judge_latency(struct check *c)
{
    double rows = c->latency_ms * c->side.rate_hz / 1000, used = c->loop.chunks.rows;
    int every = config_every_rows(&c->cfg, c->info);
    double asked = c->side.rate_hz / every;
    bool continuous = c->cfg.inference.trigger == TRIGGER_CONTINUOUS;

    // Continuous asks for no rate; averaging was made for a chunk per row.
    if ((averages(c) || !continuous) && asked > 1000 / c->latency_ms)
        check_note(c,
                   "%.4g inferences a second are asked for (one %s), but this machine "
                   "makes at most %.1f: chunks will come less often than that",
                   asked, continuous ? "per row" : "per inference.every_rows",
                   1000 / c->latency_ms);
    if (rows > used / 2)
        check_note(c,
                   "%.1f of the %.0f rows used of a chunk are over when it is there: the "
                   "arm acts on what was seen long before; raise policy.threads, use a "
                   "faster machine or train on smaller images",
                   rows, used);
}

static void judge_skew(struct check *c)
{
    for (int i = 0; i < c->cfg.n_cameras; i++) {
        const struct config_camera *cam = &c->cfg.camera[i];
        if (!cam->primary && 500 / cam->rate_hz > c->cfg.inference.max_skew_ms)
            check_note(
                c,
                "cameras.%s: at %g Hz its nearest frame is up to %.4g ms away, more than "
                "inference.max_skew_ms %g: observations will be incomplete",
                cam->name, cam->rate_hz, 500 / cam->rate_hz,
                c->cfg.inference.max_skew_ms);
    }
}

static double
primary_ms(const struct check *c) // how old its frames may be at an inference
{
    const struct config_camera *cam = &c->cfg.camera[c->binding.primary];

    return c->cfg.n_cameras ? 1000 / cam->rate_hz + cam->latency_ms : 0;
}

static int no(struct check *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int no(struct check *c, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(c->err.text, sizeof c->err.text, format, ap);
    va_end(ap);
    return -EINVAL;
}

static int judge_age(struct check *c)
{
    double age = (double)c->loop.chunks.max_age_ns / (double)NS_PER_MS;
    double chunk = 1000 * c->loop.chunks.rows / c->side.rate_hz;

    if (c->latency_ms >= chunk)
        return no(c,
                  "an inference takes %.4g ms here, but the rows used of a chunk last "
                  "%.4g ms: every chunk would be over before it is there; raise "
                  "chunks.horizon_rows or policy.threads, or use a faster machine",
                  c->latency_ms, chunk);
    if (c->latency_ms >= age)
        return no(c,
                  "an inference takes %.4g ms here, but inference.max_age_ms is %.4g: "
                  "every chunk would be dropped; raise it, or leave it out",
                  c->latency_ms, age);
    if (c->latency_ms + primary_ms(c) >= fmin(age, chunk))
        check_note(c,
                   "frames may be %.4g ms old when an inference of %.4g ms starts, and a "
                   "chunk is good for %.4g ms: some will be dropped",
                   primary_ms(c), c->latency_ms, fmin(age, chunk));
    return 0;
}

// ---- the machine ----------------------------------------------------------------------

static int judge_machine(struct check *c)
{
    if (c->cfg.control.cpu >= 0 && !rt_may_run_on(c->cfg.control.cpu))
        return no(c, RT_NO_CPU, c->cfg.control.cpu);
    if (!c->fifo && c->cfg.control.require_rt)
        return no(c,
                  "the kernel does not grant SCHED_FIFO %d, which control.require_rt "
                  "demands; raise RLIMIT_RTPRIO (LimitRTPRIO= in the unit, `ulimit -r`)",
                  c->cfg.control.priority);
    if (!c->fifo)
        check_note(c,
                   "the loop will run without real-time priority (%s): ticks will be "
                   "late under load; raise RLIMIT_RTPRIO",
                   c->granted);
    if (c->cfg.control.lock_memory && !c->lockable && c->cfg.control.require_rt)
        return no(c, "memory cannot be locked, which control.require_rt demands; raise "
                     "RLIMIT_MEMLOCK (LimitMEMLOCK= in the unit, `ulimit -l`)");
    if (c->cfg.control.lock_memory && !c->lockable)
        check_note(c, "memory cannot be locked: raise RLIMIT_MEMLOCK, or set "
                      "control.lock_memory: false");
    return 0;
}

void check_judge_static(struct check *c)
{
    judge_joints(c);
    judge_chunks(c);
    judge_skew(c);
}

int check_judge(struct check *c)
{
    int rc;

    check_judge_static(c);
    for (int a = 0; a < c->binding.n; a++)
        judge_output(c, a, &c->cfg.joint[c->binding.joint_of[a]]);
    judge_latency(c);
    rc = joint_deviation_check(&c->cfg, &c->side, &c->binding, c->info, &c->err);
    rc = rc ? rc : check_judge_operators(c);
    rc = rc ? rc : judge_age(c);
    return rc ? rc : judge_machine(c);
}
