// One scenario from its start to its verdict.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/loop_impl.h"
#include "daemon/tape.h"
#include "tests/fault/scenario_impl.h"
#include "tests/replay/replay_check.h"

#define SETTLE 120 // ticks until the window of every budget, 500 ms, is clean again

bool scenario_trace, scenario_blind;
const char *scenario_record;
struct replay_ran scenario_ran;

void probe_complain(struct probe *p, const char *format, ...)
{
    va_list ap;

    if (p->problem[0])
        return;
    va_start(ap, format);
    vsnprintf(p->problem, sizeof p->problem, format, ap);
    va_end(ap);
}

// ---- what is looked at in every tick ---------------------------------------------------------

// What no fault whatever may do to a command.
static void command_left(void *arg, struct world *w, const struct command *c)
{
    struct probe *p = arg;
    const struct guard_limits *l = &w->cfg.loop.limits;
    double dt = 1 / w->cfg.loop.control_hz;
    // Which begins with the measured pose.
    bool starts = c->mode != p->last_made &&
                  (c->mode == LADDER_APPROACH || c->mode == LADDER_HOMING);
    double ticks = p->last_sequence > 0 ? (double)(c->sequence - p->last_sequence) : 0;

    if (c->sequence <= p->last_sequence)
        probe_complain(p, "command %lu after %lu", (unsigned long)c->sequence,
                       (unsigned long)p->last_sequence);
    if (c->ttl_ns < 1 || c->ttl_ns > w->cfg.loop.ttl_ns)
        probe_complain(p, "a command lives %ld ns", (long)c->ttl_ns);
    for (int i = 0; i < c->n; i++) {
        if (!isfinite(c->pos[i]) || !isfinite(c->vel[i]))
            probe_complain(p, "a command that is not finite left in tick %lu",
                           (unsigned long)c->tick);
        if (c->pos[i] < l->min[i] || c->pos[i] > l->max[i])
            probe_complain(p, "a command outside the limits left");
        if (!starts && ticks > 0 &&
            fabs(c->pos[i] - p->last[i]) > l->velocity[i] * dt * ticks + 1e-9)
            probe_complain(p, "a jump of %g rad left in tick %lu", c->pos[i] - p->last[i],
                           (unsigned long)c->tick);
        p->last[i] = c->pos[i];
    }
    p->last_sequence = c->sequence;
    p->last_made = c->mode;
    p->made++;
}

// The first command of a state: every time that it is entered.
static void told(struct probe *p, enum ladder_state in, enum ladder_reason reason)
{
    bool stop = in == LADDER_HOLD || in == LADDER_STOPPING || in == LADDER_ESTOP;

    p->told[in] = (int)reason;
    if (stop && reason != verdict_reason(p->s) && !p->mistold_in) {
        p->mistold = reason;
        p->mistold_in = in;
    }
    if (in == LADDER_DISARMING && p->disarmings < 4)
        p->told_disarming[p->disarmings++] = (int)reason;
}

static void command_heard(void *arg, struct world *w, const struct heard *h)
{
    struct probe *p = arg;

    (void)w;
    p->heard++;
    if (p->from > 0 && h->tick >= p->from && h->mode > 0 && h->mode < LADDER_STATES &&
        h->mode != p->last_mode)
        told(p, (enum ladder_state)h->mode, (enum ladder_reason)h->reason);
    p->last_mode = h->mode;
}

static bool fault_there(const struct probe *p)
{
    return world_report(p->w)->faults.active >> p->s->reason & 1;
}

static void look(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);
    bool begun = p->s->begins ? p->s->begins(p) : true;

    if (p->began == 0 && begun)
        p->began = p->w->tick;
    if (p->detected == 0 && (p->s->seen ? p->s->seen(p) : fault_there(p))) {
        p->detected = p->s->when ? p->s->when(p) : p->w->tick;
        if (p->began == 0)
            probe_complain(p, "detected before it began");
    }
    if (r->ticks_run + r->skipped != p->w->tick + 1)
        probe_complain(p, "%lu ticks run and %lu skipped by tick %lu",
                       (unsigned long)r->ticks_run, (unsigned long)r->skipped,
                       (unsigned long)p->w->tick);
}

static void trace(const struct probe *p)
{
    const struct loop_report *r = world_report(p->w);
    static uint64_t faults, latched;
    static enum ladder_state mode;

    if (mode != r->mode || faults != r->faults.active || latched != r->faults.latched)
        fprintf(stderr, "%lu %s (%s):", (unsigned long)p->w->tick,
                ladder_state_name(r->mode), ladder_reason_name(r->reason));
    else
        return;
    for (int i = 0; i < LADDER_REASONS; i++)
        if ((r->faults.active | r->faults.latched) >> i & 1)
            fprintf(stderr, " %s%s", ladder_reason_name((enum ladder_reason)i),
                    r->faults.latched >> i & 1 ? "!" : "");
    fprintf(stderr, "\n");
    mode = r->mode;
    faults = r->faults.active;
    latched = r->faults.latched;
}

void probe_step(struct probe *p)
{
    enum ladder_state before = world_mode(p->w), after;
    size_t n = strlen(p->action);

    if (p->s->act && p->w->schedule.tick >= p->from)
        p->s->act(p->w, p->w->schedule.tick - p->from);
    world_step(p->w);
    after = world_mode(p->w);
    if (after != before) {
        if (p->entered[after] == 0)
            p->entered[after] = p->w->tick;
        snprintf(p->action + n, sizeof p->action - n, "%s%s", n ? " " : "",
                 ladder_state_name(after));
    }
    look(p);
    if (p->s->watch && p->w->tick >= p->from)
        p->s->watch(p);
    if (scenario_trace)
        trace(p);
}

static void steps_until(struct probe *p, uint64_t tick)
{
    while (p->w->schedule.tick < tick)
        probe_step(p);
}

// ---- the run ---------------------------------------------------------------------------------

static bool start(struct probe *p)
{
    struct world_config c = world_defaults();
    int rc;

    if (p->s->configure)
        p->s->configure(&c);
    c.record = scenario_record;
    rc = world_new(&p->w, &c);
    if (rc != 0) {
        probe_complain(p, "no world: %d", rc);
        return false;
    }
    p->w->hooks.arg = p;
    p->w->hooks.made = command_left;
    p->w->hooks.heard = command_heard;
    if (!world_to_running(p->w)) {
        probe_complain(p, "never RUNNING: %s (%s)", ladder_state_name(world_mode(p->w)),
                       ladder_reason_name(world_reason(p->w)));
        return false;
    }
    if (world_report(p->w)->faults.active || world_report(p->w)->faults.latched)
        probe_complain(p, "a fault before there was one");
    return true;
}

#ifdef ACTD_BLIND
// The guard is not switched off but left with nothing to guard.
static void unlimit(struct guard_limits *l)
{
    for (int i = 0; i < l->n; i++) {
        l->velocity[i] = l->acceleration[i] = 1e9;
        l->jerk[i] = 0;
        l->min[i] = -1e9;
        l->max[i] = 1e9;
    }
}

static void close_eyes(struct probe *p)
{
    if (p->s->harmless)
        return;
    blind_mask = UINT64_C(1) << p->s->detector;
    if (p->s->detector == BLIND_GUARD)
        unlimit(&p->w->loop->guard.lim);
}
#else
static void close_eyes(struct probe *p)
{
    (void)p;
}
#endif

void probe_begin(struct probe *p)
{
    p->begun = p->problem[0] == 0;
    if (scenario_blind)
        close_eyes(p);
}

static void remember(struct probe *p)
{
    p->before = *world_report(p->w);
    p->counts = *world_infer_counts(p->w);
    p->from = p->w->schedule.tick;
    p->commands_before = p->w->commands;
    p->inferences_before = p->w->inferences;
    p->messages_before = p->w->messages;
    p->made = p->heard = 0;
    for (int i = 0; i < LADDER_STATES; i++)
        p->told[i] = -1;
}

static void run(struct probe *p)
{
    const struct scenario *s = p->s;
    bool reset = false;
    uint64_t last = s->inject.ticks > 0 ? s->inject.ticks : 1;
    uint64_t settle = (uint64_t)(s->settle > 0 ? s->settle : s->settle < 0 ? 0 : SETTLE);

    if (s->inject.verb != VERB_OK && !(s->harmless && scenario_blind))
        world_inject(p->w, s->inject);
    if (s->recovery == LATCHES && !s->cause_goes) {
        steps_until(p, p->from + last - 4);
        reset = verdict_reset(p);
    }
    steps_until(p, p->from + last + settle);
    verdict_run(p, reset);
    if (s->recovery == LATCHES) {
        char action[sizeof p->action];

        memcpy(action, p->action, sizeof action);
        verdict_latch(p);
        verdict_rearm(p);
        memcpy(p->action, action, sizeof action);
    } else if (s->recovery != STAYS && (world_mode(p->w) != LADDER_RUNNING ||
                                        world_report(p->w)->faults.latched)) {
        probe_complain(p, "it does not run on: %s (%s)",
                       ladder_state_name(world_mode(p->w)),
                       ladder_reason_name(world_reason(p->w)));
    }
}

static void note_run(const struct probe *p)
{
    const struct world *w = p->w;

    if (w && w->tape)
        scenario_ran = (struct replay_ran){.cfg = w->cfg,
                                           .ticks = w->ticks_run,
                                           .commands = w->commands,
                                           .inputs = w->tape->inputs,
                                           .chunks = w->tape->chunks,
                                           .hit = p->s->hits ? p->from + p->s->hits : 0,
                                           .shown = p->detected};
}

void scenario_run(struct probe *p, const struct scenario *s)
{
    memset(p, 0, sizeof *p);
    p->s = s;
    if (s->alone) {
        const char *complaint = s->alone(p);

        if (complaint)
            probe_complain(p, "%s", complaint);
        return;
    }
    if (start(p)) {
        remember(p);
        probe_begin(p);
        run(p);
    }
    note_run(p);
    world_free(p->w);
    p->w = NULL;
}
