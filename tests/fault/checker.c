// See the header. Numbers that are not the configuration's:
#include "tests/fault/checker.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actd/v1/joint_command.pb-c.h"
#include "tests/fault/checker_impl.h"

// Rounding of a difference of two positions of a few rad: 4e-16 each, and what arithmetic on
// both sides adds. Over a period of 1 ms it is 1e-8 rad/s and 2e-5 rad/s^2.
#define SLACK 1e-11

#define M(name) (1u << ACTD__V1__MODE__MODE_##name)
static const unsigned idle = M(INIT) | M(WAITING) | M(READY) | M(STOPPED);
static const unsigned stop = M(STOPPING) | M(STOPPED) | M(ESTOP);
static const unsigned slow = M(APPROACH) | M(HOMING);
static const unsigned driven = M(APPROACH) | M(RUNNING) | M(HOMING);

// The drawing: where a step may lead from each mode. ESTOP is added to all.
static const unsigned next[] = {
    [ACTD__V1__MODE__MODE_INIT] = M(WAITING),
    [ACTD__V1__MODE__MODE_WAITING] = M(READY) | M(STOPPING),
    [ACTD__V1__MODE__MODE_READY] = M(WAITING) | M(APPROACH) | M(HOMING) | M(STOPPING),
    [ACTD__V1__MODE__MODE_APPROACH] = M(RUNNING) | M(HOLD) | M(DISARMING) | M(STOPPING),
    [ACTD__V1__MODE__MODE_RUNNING] = M(HOLD) | M(DISARMING) | M(STOPPING),
    [ACTD__V1__MODE__MODE_HOLD] = M(RUNNING) | M(APPROACH) | M(DISARMING) | M(STOPPING),
    [ACTD__V1__MODE__MODE_STOPPING] = M(STOPPED),
    [ACTD__V1__MODE__MODE_STOPPED] = M(WAITING),
    [ACTD__V1__MODE__MODE_ESTOP] = M(WAITING),
    [ACTD__V1__MODE__MODE_DISARMING] = M(READY) | M(STOPPING),
    [ACTD__V1__MODE__MODE_HOMING] = M(DISARMING) | M(STOPPING),
};
#define MODES ((int)(sizeof next / sizeof *next))

static bool in(int mode, unsigned set)
{
    return mode > 0 && mode < MODES && ((set >> mode) & 1);
}

// ---- verdicts --------------------------------------------------------------------------------

void checker_blame(struct checker *c, enum checker_rule rule, const char *format, ...)
{
    va_list args;
    int n;

    c->count[rule]++;
    if (c->violations++ > 0)
        return;
    n = snprintf(c->first, sizeof c->first, "tick %" PRIu64 ", %s: ", c->tick,
                 checker_rule_name(rule));
    va_start(args, format);
    vsnprintf(c->first + n, sizeof c->first - (size_t)n, format, args);
    va_end(args);
}

const char *checker_rule_name(enum checker_rule r)
{
    static const char *const name[] = {
        "not finite",   "position",     "velocity",     "acceleration", "jerk",
        "named speed",  "approach",     "sequence",     "tick number",  "accounting",
        "silence",      "mode",         "transition",   "unasked",      "ignored",
        "hold",         "stop",         "speed-up",     "idle motion",  "start pose",
        "reason",       "stale joints", "time to live", "no chunk",     "unknown chunk",
        "chunk order",  "chunk row",    "chunk end",    "chunk age",    "chunk target",
        "driver order", "driver data",  "driver time",  "obeyed",
    };

    _Static_assert(sizeof name / sizeof *name == CHECKER_RULES, "a name per rule");
    return (unsigned)r < CHECKER_RULES ? name[r] : "?";
}

uint64_t checker_violations(const struct checker *c)
{
    return c->violations;
}

uint64_t checker_count(const struct checker *c, enum checker_rule r)
{
    return (unsigned)r < CHECKER_RULES ? c->count[r] : 0;
}

const char *checker_first(const struct checker *c)
{
    return c->first;
}

// ---- life ------------------------------------------------------------------------------------

int checker_new(struct checker **out, const struct checker_config *cfg)
{
    struct checker *c = calloc(1, sizeof *c);

    *out = NULL;
    if (!c)
        return -ENOMEM;
    c->cfg = *cfg;
    c->dt = (double)cfg->period_ns / 1e9;
    c->mode = ACTD__V1__MODE__MODE_INIT;
    *out = c;
    return 0;
}

void checker_free(struct checker *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n_chunks; i++)
        free(c->chunk[i].row);
    free(c->chunk);
    free(c);
}

// ---- ticks and the ladder --------------------------------------------------------------------

static void account(struct checker *c, const struct checker_tick *t)
{
    int64_t due = t->now_ns - t->lateness_ns;
    bool more = c->executed == 0 || t->tick > c->tick;

    if (c->executed++ == 0)
        c->first_ns = due - (int64_t)t->tick * c->cfg.period_ns;
    c->tick = t->tick;
    if (!more)
        checker_blame(c, CHECK_TICK, "does not increase");
    if (t->lateness_ns < 0 || (due - c->first_ns) % c->cfg.period_ns != 0)
        checker_blame(c, CHECK_ACCOUNTING, "due at %" PRId64 " ns, which is out of phase",
                      due - c->first_ns);
    if (c->executed + t->skipped !=
        (uint64_t)((due - c->first_ns) / c->cfg.period_ns) + 1)
        checker_blame(c, CHECK_ACCOUNTING, "%" PRIu64 " executed, %" PRIu64 " skipped",
                      c->executed, t->skipped);
}

static void judge_request(struct checker *c, const struct checker_tick *t, int from)
{
    bool latched =
        from == ACTD__V1__MODE__MODE_STOPPED || from == ACTD__V1__MODE__MODE_ESTOP;

    if (t->mode == ACTD__V1__MODE__MODE_APPROACH && from == ACTD__V1__MODE__MODE_READY &&
        !(t->requests & CHECKER_ARM))
        checker_blame(c, CHECK_UNASKED, "APPROACH");
    if (t->mode == ACTD__V1__MODE__MODE_HOMING && !(t->requests & CHECKER_HOME))
        checker_blame(c, CHECK_UNASKED, "HOMING");
    if (t->mode == ACTD__V1__MODE__MODE_ESTOP && !(t->requests & CHECKER_ESTOP))
        checker_blame(c, CHECK_UNASKED, "ESTOP");
    if (latched && t->mode == ACTD__V1__MODE__MODE_WAITING &&
        !(t->requests & CHECKER_RESET))
        checker_blame(c, CHECK_UNASKED, "a latch opened");
}

static void judge_stop_request(struct checker *c, const struct checker_tick *t, int from)
{
    if ((t->requests & CHECKER_ESTOP) && t->mode != ACTD__V1__MODE__MODE_ESTOP)
        checker_blame(c, CHECK_IGNORED, "emergency stop asked in mode %d, now %d", from,
                      t->mode);
    if ((t->requests & CHECKER_STOP) && from != ACTD__V1__MODE__MODE_INIT &&
        !in(t->mode, stop))
        checker_blame(c, CHECK_IGNORED, "stop asked in mode %d, now %d", from, t->mode);
}

static void judge_step(struct checker *c, const struct checker_tick *t)
{
    int from = c->mode;

    if (!in(t->mode, UINT32_MAX)) {
        checker_blame(c, CHECK_MODE, "%d is none", t->mode);
        return;
    }
    judge_stop_request(c, t, from);
    if (t->mode == from)
        return;
    if (!in(t->mode, next[from] | M(ESTOP)))
        checker_blame(c, CHECK_TRANSITION, "from mode %d to %d", from, t->mode);
    judge_request(c, t, from);
    c->mode = t->mode;
    c->since_ns = t->now_ns;
    c->commands_in_mode = 0;
    checker_chunks_step(c, from);
}

// A motion starts where the arm is, wherever the commands were.
static void start_from_measured(struct checker *c, const struct checker_tick *t)
{
    for (int i = 0; i < c->cfg.joints && t->measured; i++) {
        c->pos[i] = fmin(fmax(t->measured[i], c->cfg.min[i]), c->cfg.max[i]);
        c->vel[i] = c->acc[i] = 0;
        if (fabs(c->pos[i] - t->measured[i]) > c->cfg.outside + SLACK)
            checker_blame(c, CHECK_START, "joint %d starts outside its limits, at %.9g",
                          i, t->measured[i]);
    }
}

static void judge_time(struct checker *c, const struct checker_tick *t)
{
    if (t->mode == ACTD__V1__MODE__MODE_HOLD &&
        t->now_ns - c->since_ns > c->cfg.hold_ns + c->cfg.period_ns)
        checker_blame(c, CHECK_HOLD, "for %" PRId64 " ns", t->now_ns - c->since_ns);
    if (in(t->mode, driven) && t->captured_ns < t->now_ns - 3 * c->cfg.joints_period_ns)
        checker_blame(c, CHECK_STALE_JOINTS, "mode %d on a joint state of %" PRId64 " ns",
                      t->mode, t->now_ns - t->captured_ns);
}

// ---- one command -----------------------------------------------------------------------------

static bool all_numbers(const struct checker *c, const struct checker_command *m)
{
    for (int i = 0; i < c->cfg.joints; i++)
        if (!isfinite(m->pos[i]) || !isfinite(m->vel[i]) || !isfinite(m->wanted[i]))
            return false;
    return isfinite(m->chunk_row);
}

// The longest a stop takes, in commands, from the speed it began with.
static uint64_t stop_commands(const struct checker *c)
{
    double most = 0;

    for (int i = 0; i < c->cfg.joints; i++)
        most = fmax(most, fabs(c->stop_from[i]) / (c->cfg.stop_acceleration[i] * c->dt));
    return (uint64_t)ceil(most) + 2;
}

static void judge_stop(struct checker *c, const struct checker_command *m)
{
    if (c->commands_in_mode == 0)
        memcpy(c->stop_from, c->vel, sizeof c->stop_from);
    if (m->mode == ACTD__V1__MODE__MODE_STOPPING &&
        c->commands_in_mode >= stop_commands(c))
        checker_blame(c, CHECK_STOP, "%" PRIu64 " commands", c->commands_in_mode + 1);
}

static void judge_rates(struct checker *c, int i, double v, double a, int mode)
{
    double dt = c->dt, slack_v = SLACK / dt, slack_a = 2 * slack_v / dt;
    double most = c->cfg.acceleration[i];

    if (in(mode, stop))
        most = fmax(most, c->cfg.stop_acceleration[i]);
    if (fabs(v) > c->cfg.velocity[i] + slack_v)
        checker_blame(c, CHECK_VELOCITY, "joint %d at %.9g rad/s, mode %d", i, v, mode);
    if (fabs(a) > most + slack_a)
        checker_blame(c, CHECK_ACCELERATION, "joint %d at %.9g rad/s^2, mode %d", i, a,
                      mode);
    if (c->cfg.jerk[i] > 0 && !in(mode, stop) && !in(c->command_mode, stop) &&
        fabs(a - c->acc[i]) > c->cfg.jerk[i] * dt + 2 * slack_a)
        checker_blame(c, CHECK_JERK, "joint %d from %.9g to %.9g rad/s^2, mode %d", i,
                      c->acc[i], a, mode);
    if (in(mode, slow) && fabs(v) > c->cfg.approach_scale * c->cfg.velocity[i] + slack_v)
        checker_blame(c, CHECK_APPROACH_SPEED, "joint %d at %.9g of %.9g rad/s, mode %d",
                      i, v, c->cfg.approach_scale * c->cfg.velocity[i], mode);
    if (in(mode, stop) && (fabs(v) > fabs(c->vel[i]) + slack_v || v * c->vel[i] < 0))
        checker_blame(c, CHECK_SPEED_UP, "joint %d from %.9g to %.9g rad/s, mode %d", i,
                      c->vel[i], v, mode);
}

static void judge_joint(struct checker *c, const struct checker_command *m, int i)
{
    double v = (m->pos[i] - c->pos[i]) / c->dt, a = (v - c->vel[i]) / c->dt;

    if (m->pos[i] < c->cfg.min[i] - SLACK || m->pos[i] > c->cfg.max[i] + SLACK)
        checker_blame(c, CHECK_POSITION, "joint %d at %.17g rad, mode %d", i, m->pos[i],
                      m->mode);
    if (fabs(m->vel[i] - v) > SLACK / c->dt)
        checker_blame(c, CHECK_NAMED_VELOCITY, "joint %d says %.9g, does %.9g", i,
                      m->vel[i], v);
    judge_rates(c, i, v, a, m->mode);
    if (c->armed && in(m->mode, idle) && m->pos[i] != c->pos[i])
        checker_blame(c, CHECK_IDLE, "joint %d moves by %.3g rad, mode %d", i,
                      m->pos[i] - c->pos[i], m->mode);
    c->pos[i] = m->pos[i];
    c->vel[i] = v;
    c->acc[i] = a;
}

static void judge_words(struct checker *c, const struct checker_command *m, int mode)
{
    const unsigned says_why = M(HOLD) | M(STOPPING) | M(STOPPED) | M(ESTOP);

    if (m->sequence != c->sequence + 1)
        checker_blame(c, CHECK_SEQUENCE, "%" PRIu64 " after %" PRIu64, m->sequence,
                      c->sequence);
    if (m->tick != c->tick)
        checker_blame(c, CHECK_TICK, "the command says %" PRIu64, m->tick);
    if (m->mode != mode)
        checker_blame(c, CHECK_MODE, "the command says %d, the ladder %d", m->mode, mode);
    if (in(m->mode, says_why) && m->reason == ACTD__V1__REASON__REASON_NONE)
        checker_blame(c, CHECK_REASON, "mode %d", m->mode);
    if (m->ttl_ns < 1 || m->ttl_ns > c->cfg.ttl_ns)
        checker_blame(c, CHECK_TTL, "%" PRId64 " ns", m->ttl_ns);
    c->sequence = m->sequence;
}

static void judge_command(struct checker *c, const struct checker_tick *t)
{
    const struct checker_command *m = t->command;

    judge_words(c, m, t->mode);
    if (!all_numbers(c, m)) {
        checker_blame(c, CHECK_FINITE, "mode %d", m->mode);
        return; // nothing can be compared with it
    }
    if (in(m->mode, stop))
        judge_stop(c, m);
    for (int i = 0; i < c->cfg.joints; i++)
        judge_joint(c, m, i);
    checker_chunks_judge(c, m, t->now_ns);
    c->command_mode = m->mode;
    c->commands_in_mode++;
    c->life[m->sequence % CHECKER_PUBLISHED] = (struct checker_life){.command = *m};
}

void checker_tick(struct checker *c, const struct checker_tick *t)
{
    int from = c->mode;

    account(c, t);
    judge_step(c, t);
    judge_time(c, t);
    if (from == ACTD__V1__MODE__MODE_READY && in(t->mode, slow)) {
        if (!t->measured)
            checker_blame(c, CHECK_START, "no joint state is known");
        start_from_measured(c, t);
        c->armed = true;
        c->command_mode = from;
    }
    if (!c->armed && t->command) // the arm is moved by hand: commands follow
        start_from_measured(c, t);
    if (t->command)
        judge_command(c, t);
    else if (c->armed && !t->dropped)
        checker_blame(c, CHECK_SILENCE, "mode %d", t->mode);
}

// ---- the driver's side -----------------------------------------------------------------------

static struct checker_life *life(struct checker *c, uint64_t sequence)
{
    struct checker_life *l = &c->life[sequence % CHECKER_PUBLISHED];

    return sequence > 0 && l->command.sequence == sequence ? l : NULL;
}

void checker_sent(struct checker *c, uint64_t sequence, int64_t ttl_ns, int64_t now)
{
    struct checker_life *l = life(c, sequence);

    if (!l)
        checker_blame(c, CHECK_DRIVER_CONTENT, "command %" PRIu64 " was never published",
                      sequence);
    else if (ttl_ns < 1 || now + ttl_ns > l->command.made_ns + l->command.ttl_ns)
        checker_blame(c, CHECK_DRIVER_TTL, "%" PRId64 " ns left at the age of %" PRId64,
                      ttl_ns, now - l->command.made_ns);
    if (l)
        l->sent_ttl_ns = ttl_ns;
}

void checker_received(struct checker *c, const struct checker_command *got, int64_t now)
{
    struct checker_life *l = life(c, got->sequence);
    size_t size = (size_t)c->cfg.joints * sizeof(double);

    if (got->sequence <= c->received)
        checker_blame(c, CHECK_DRIVER_ORDER, "%" PRIu64 " after %" PRIu64, got->sequence,
                      c->received);
    c->received = got->sequence;
    if (!l || memcmp(l->command.pos, got->pos, size) != 0 ||
        memcmp(l->command.vel, got->vel, size) != 0 || l->command.tick != got->tick ||
        l->command.mode != got->mode || l->command.reason != got->reason) {
        checker_blame(c, CHECK_DRIVER_CONTENT, "command %" PRIu64, got->sequence);
        return;
    }
    if (got->ttl_ns != l->sent_ttl_ns)
        checker_blame(c, CHECK_DRIVER_TTL, "%" PRId64 " ns, sent with %" PRId64,
                      got->ttl_ns, l->sent_ttl_ns);
    l->received_ns = now;
}

void checker_obeyed(struct checker *c, uint64_t sequence, int64_t now)
{
    const struct checker_life *l = life(c, sequence);

    if (!l || l->received_ns == 0)
        checker_blame(c, CHECK_OBEYED, "command %" PRIu64 " was never received",
                      sequence);
    else if (now - l->received_ns > l->sent_ttl_ns)
        checker_blame(c, CHECK_OBEYED,
                      "command %" PRIu64 ", %" PRId64 " ns after receipt", sequence,
                      now - l->received_ns);
}
