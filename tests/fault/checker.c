// See the header. Numbers that are not the configuration's:
#include "tests/fault/checker.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fault/checker_impl.h"

// Rounding of a difference of two positions of a few rad: 4e-16 each, and what arithmetic on
// both sides adds. Over a period of 1 ms it is 1e-8 rad/s and 2e-5 rad/s^2.
#define SLACK 1e-11

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
        "not finite",   "position",     "velocity",      "acceleration", "jerk",
        "named speed",  "approach",     "sequence",      "tick number",  "accounting",
        "silence",      "mode",         "transition",    "unasked",      "ignored",
        "hold",         "stop",         "speed-up",      "idle motion",  "start pose",
        "reason",       "stale joints", "stale camera",  "following",    "gap",
        "time to live", "no chunk",     "unknown chunk", "chunk order",  "chunk row",
        "chunk end",    "chunk age",    "chunk target",  "driver order", "driver data",
        "driver time",  "obeyed",
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

    if (in(mode, STOP))
        most = fmax(most, c->cfg.stop_acceleration[i]);
    if (fabs(v) > c->cfg.velocity[i] + slack_v)
        checker_blame(c, CHECK_VELOCITY, "joint %d at %.9g rad/s, mode %d", i, v, mode);
    if (fabs(a) > most + slack_a)
        checker_blame(c, CHECK_ACCELERATION, "joint %d at %.9g rad/s^2, mode %d", i, a,
                      mode);
    if (c->cfg.jerk[i] > 0 && !in(mode, STOP) && !in(c->command_mode, STOP) &&
        fabs(a - c->acc[i]) > c->cfg.jerk[i] * dt + 2 * slack_a)
        checker_blame(c, CHECK_JERK, "joint %d from %.9g to %.9g rad/s^2, mode %d", i,
                      c->acc[i], a, mode);
    if (in(mode, SLOW) && fabs(v) > c->cfg.approach_scale * c->cfg.velocity[i] + slack_v)
        checker_blame(c, CHECK_APPROACH_SPEED, "joint %d at %.9g of %.9g rad/s, mode %d",
                      i, v, c->cfg.approach_scale * c->cfg.velocity[i], mode);
    if (in(mode, STOP) && (fabs(v) > fabs(c->vel[i]) + slack_v || v * c->vel[i] < 0))
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
    if (c->armed && in(m->mode, IDLE) && m->pos[i] != c->pos[i])
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

static void remember(struct checker *c)
{
    memcpy(c->before.pos, c->pos, sizeof c->pos);
    memcpy(c->before.vel, c->vel, sizeof c->vel);
    memcpy(c->before.acc, c->acc, sizeof c->acc);
    c->before.mode = c->command_mode;
}

void checker_lost(struct checker *c, uint64_t sequence)
{
    if (sequence != c->sequence)
        return;
    memcpy(c->pos, c->before.pos, sizeof c->pos);
    memcpy(c->vel, c->before.vel, sizeof c->vel);
    memcpy(c->acc, c->before.acc, sizeof c->acc);
    c->command_mode = c->before.mode;
}

static void judge_command(struct checker *c, const struct checker_tick *t)
{
    const struct checker_command *m = t->command;

    remember(c);

    judge_words(c, m, t->mode);
    if (!all_numbers(c, m)) {
        checker_blame(c, CHECK_FINITE, "mode %d", m->mode);
        return; // nothing can be compared with it
    }
    if (in(m->mode, STOP))
        judge_stop(c, m);
    for (int i = 0; i < c->cfg.joints; i++)
        judge_joint(c, m, i);
    checker_chunks_judge(c, m, t->now_ns);
    c->command_mode = m->mode;
    c->commands_in_mode++;
    c->life[m->sequence % CHECKER_PUBLISHED] = (struct checker_life){.command = *m};
}

static double inside(const struct checker *c, int i, double pos)
{
    return fmin(fmax(pos, c->cfg.min[i]), c->cfg.max[i]);
}

// The first motion starts where the arm is, and any other that finds it far from its command.
// Also when it turns out that the last of them never left.
static void start_from_measured(struct checker *c, const struct checker_tick *t)
{
    for (int i = 0; i < c->cfg.joints && t->measured; i++) {
        c->pos[i] = inside(c, i, t->measured[i]);
        c->vel[i] = c->acc[i] = 0;
    }
    remember(c);
}

static void judge_outside(struct checker *c, const struct checker_tick *t)
{
    for (int i = 0; i < c->cfg.joints && t->measured; i++)
        if (fabs(inside(c, i, t->measured[i]) - t->measured[i]) > c->cfg.outside + SLACK)
            checker_blame(c, CHECK_START, "joint %d starts outside its limits, at %.9g",
                          i, t->measured[i]);
}

// Is the arm measured further from its command than droop and lag may bring it?
static bool away(const struct checker *c, const struct checker_tick *t)
{
    for (int i = 0; i < c->cfg.joints && t->measured; i++) {
        double bound = fmin(0.1, (c->cfg.max[i] - c->cfg.min[i]) / 10);

        bound = fmax(bound, c->cfg.following_error[i]);
        if (fabs(t->measured[i] - c->pos[i]) > bound)
            return true;
    }
    return false;
}

// Is this command another place than the one before?
static bool elsewhere(const struct checker *c, const struct checker_command *m)
{
    return memcmp(m->pos, c->pos, (size_t)c->cfg.joints * sizeof *m->pos) != 0;
}

void checker_tick(struct checker *c, const struct checker_tick *t)
{
    int from = c->mode;

    checker_ladder_judge(c, t);
    if (from == ACTD__V1__MODE__MODE_READY && in(t->mode, SLOW)) {
        if (!t->measured)
            checker_blame(c, CHECK_START, "no joint state is known");
        judge_outside(c, t);
        if (!c->armed || away(c, t)) // else without a step, from where it is held
            start_from_measured(c, t);
        c->armed = true;
        c->command_mode = from;
    }
    if (!c->armed && t->command)
        judge_outside(c, t);
    // It was moved by hand.
    if (t->command && elsewhere(c, t->command) &&
        (!c->armed || (in(t->mode, M(WAITING) | M(READY)) && away(c, t))))
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
    if (sequence != c->sequence)
        checker_blame(c, CHECK_DRIVER_ORDER, "%" PRIu64 " is sent, %" PRIu64 " is there",
                      sequence, c->sequence);
    if (l)
        l->sent_ttl_ns = ttl_ns;
}

// As numbers: a wire that leaves zeros out makes 0 of -0.
static bool same(const struct checker *c, const struct checker_command *a,
                 const struct checker_command *b)
{
    for (int i = 0; i < c->cfg.joints; i++)
        if (a->pos[i] != b->pos[i] || a->vel[i] != b->vel[i])
            return false;
    return a->tick == b->tick && a->mode == b->mode && a->reason == b->reason;
}

void checker_received(struct checker *c, const struct checker_command *got, int64_t now)
{
    struct checker_life *l = life(c, got->sequence);

    if (got->sequence <= c->received)
        checker_blame(c, CHECK_DRIVER_ORDER, "%" PRIu64 " after %" PRIu64, got->sequence,
                      c->received);
    c->received = got->sequence;
    if (!l || !same(c, &l->command, got)) {
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
