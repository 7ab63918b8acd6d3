// One scenario from its start to its verdict.
#include "tests/fault/matrix.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SETTLE 120 // ticks until the window of every budget, 500 ms, is clean again

bool scenario_trace;

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
        if (c->mode > LADDER_READY && c->mode != LADDER_APPROACH && ticks > 0 &&
            fabs(c->pos[i] - p->last[i]) > l->velocity[i] * dt * ticks + 1e-9)
            probe_complain(p, "a jump of %g rad left in tick %lu", c->pos[i] - p->last[i],
                           (unsigned long)c->tick);
        p->last[i] = c->pos[i];
    }
    p->last_sequence = c->sequence;
    p->made++;
}

static void command_heard(void *arg, struct world *w, const struct heard *h)
{
    struct probe *p = arg;

    (void)w;
    p->heard++;
    if (p->from > 0 && h->tick >= p->from && h->mode > 0 && h->mode < LADDER_STATES &&
        p->told[h->mode] < 0)
        p->told[h->mode] = h->reason;
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

static void step(struct probe *p)
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
    if (scenario_trace)
        trace(p);
}

static void steps_until(struct probe *p, uint64_t tick)
{
    while (p->w->schedule.tick < tick)
        step(p);
}

// ---- what must have happened -----------------------------------------------------------------

static void check_detection(struct probe *p)
{
    int64_t took = (int64_t)(p->detected - p->began);

    if (p->began == 0)
        probe_complain(p, "the fault never began");
    else if (p->detected == 0)
        probe_complain(p, "never detected");
    else if (took < p->s->least || took > p->s->most)
        probe_complain(p, "detected after %ld ticks, not %d to %d", (long)took,
                       p->s->least, p->s->most);
}

static void check_told(struct probe *p)
{
    static const enum ladder_state in[] = {LADDER_HOLD, LADDER_STOPPING, LADDER_ESTOP};
    int want = (int)(p->s->told ? p->s->told : p->s->reason);

    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        if (p->entered[in[i]] > 0 && p->told[in[i]] != want &&
            (p->told[in[i]] >= 0 || p->s->inject.target != INJECT_BUS))
            probe_complain(p, "the driver reads %s in %s, not %s",
                           ladder_reason_name((enum ladder_reason)p->told[in[i]]),
                           ladder_state_name(in[i]),
                           ladder_reason_name((enum ladder_reason)want));
}

static void check_episodes(struct probe *p)
{
    uint64_t came = world_report(p->w)->faults.of[p->s->reason].episodes -
                    p->before.faults.of[p->s->reason].episodes;

    if (!p->s->seen && came != (uint64_t)p->s->more_episodes + 1)
        probe_complain(p, "the fault came up %lu times, not %d", (unsigned long)came,
                       p->s->more_episodes + 1);
}

static void check_path(struct probe *p)
{
    const char *want = p->s->path ? p->s->path : "";

    if (strcmp(want, ANY_PATH) == 0)
        return;
    if (strcmp(p->action, want) != 0)
        probe_complain(p, "went %s instead of %s", p->action[0] ? p->action : "nowhere",
                       want[0] ? want : "nowhere");
}

// The second bound of a fault: when it stops the arm. A HOLD that nothing else ends lasts 200 ms.
static void check_stop(struct probe *p)
{
    uint64_t stopped = p->entered[LADDER_STOPPING], held = p->entered[LADDER_HOLD];

    if (stopped == 0)
        return;
    if (p->s->stop_after > 0 && stopped - p->began != (uint64_t)p->s->stop_after)
        probe_complain(p, "STOPPING after %ld ticks, not %d", (long)(stopped - p->began),
                       p->s->stop_after);
    if (p->s->stop_after == 0 && held > 0 && stopped - held != 40)
        probe_complain(p, "HOLD lasted %ld ticks, not 40", (long)(stopped - held));
}

static bool latched(const struct probe *p)
{
    enum ladder_state s = world_mode(p->w);

    return s == LADDER_STOPPED || s == LADDER_ESTOP;
}

// Reset while the cause is there: refused. True when it was taken.
static bool try_reset(struct probe *p)
{
    bool before = latched(p);

    world_request(p->w, BOARD_RESET);
    step(p);
    return before && !latched(p);
}

static void check_latch(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);
    enum ladder_reason why = p->s->told ? p->s->told : p->s->reason;

    if (!(r->faults.latched >> why & 1))
        probe_complain(p, "%s is not latched", ladder_reason_name(why));
    world_request(p->w, BOARD_ARM | BOARD_HOME);
    step(p);
    world_request(p->w, BOARD_ARM);
    step(p);
    if (!latched(p))
        probe_complain(p, "it left the latch without a reset");
    world_request(p->w, BOARD_RESET);
    step(p);
    if (world_mode(p->w) != LADDER_WAITING)
        probe_complain(p, "the reset led to %s (%s), not to WAITING",
                       ladder_state_name(world_mode(p->w)),
                       ladder_reason_name(world_reason(p->w)));
    if (r->faults.latched != 0)
        probe_complain(p, "something is still latched after the reset");
}

// Ready again, still until somebody arms, and then it goes.
static void check_rearm(struct probe *p)
{
    if (!world_until(p->w, LADDER_READY, 400))
        probe_complain(p, "never READY again: %s",
                       ladder_reason_name(world_reason(p->w)));
    for (int i = 0; i < 100; i++) {
        step(p);
        if (world_mode(p->w) != LADDER_READY)
            probe_complain(p, "it left READY by itself");
    }
    world_request(p->w, BOARD_ARM);
    step(p);
    if (world_mode(p->w) != LADDER_APPROACH)
        probe_complain(p, "it can not be armed again");
}

// ---- the run ---------------------------------------------------------------------------------

static bool start(struct probe *p)
{
    struct world_config c = world_defaults();
    int rc;

    if (p->s->configure)
        p->s->configure(&c);
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

    if (s->inject.verb != VERB_OK)
        world_inject(p->w, s->inject);
    if (s->recovery == LATCHES && !s->cause_goes) {
        steps_until(p, p->from + last - 4);
        reset = try_reset(p);
    }
    steps_until(p, p->from + last + settle);
    check_detection(p);
    if (reset)
        probe_complain(p, "a reset was taken while the cause was there");
    check_path(p);
    check_stop(p);
    check_told(p);
    check_episodes(p);
    if (s->check) {
        const char *complaint = s->check(p);

        if (complaint)
            probe_complain(p, "%s", complaint);
    }
    if (s->recovery == LATCHES) {
        char action[sizeof p->action];

        memcpy(action, p->action, sizeof action);
        check_latch(p);
        check_rearm(p);
        memcpy(p->action, action, sizeof action);
    } else if (s->recovery != STAYS && (world_mode(p->w) != LADDER_RUNNING ||
                                        world_report(p->w)->faults.latched)) {
        probe_complain(p, "it does not run on: %s (%s)",
                       ladder_state_name(world_mode(p->w)),
                       ladder_reason_name(world_reason(p->w)));
    }
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
        run(p);
    }
    world_free(p->w);
    p->w = NULL;
}
