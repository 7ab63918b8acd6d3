// What must have happened by the end of a scenario, and how one leaves a latch.
#include <string.h>

#include "tests/fault/scenario_impl.h"

enum ladder_reason verdict_reason(const struct scenario *s)
{
    return s->told ? s->told : s->reason;
}

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

static void check_disarming(struct probe *p)
{
    for (int i = 0; i < p->disarmings; i++) {
        int want = i < 2 ? (int)p->s->disarming[i] : (int)REASON_NONE;

        if (p->told_disarming[i] != want)
            probe_complain(p, "the driver reads %s in DISARMING number %d, not %s",
                           ladder_reason_name((enum ladder_reason)p->told_disarming[i]),
                           i + 1, ladder_reason_name((enum ladder_reason)want));
    }
    if (p->disarmings < 2 && p->s->disarming[p->disarmings] != REASON_NONE)
        probe_complain(p, "the driver heard of %d DISARMING", p->disarmings);
}

static void check_told(struct probe *p)
{
    static const enum ladder_state in[] = {LADDER_HOLD, LADDER_STOPPING, LADDER_ESTOP};

    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        if (p->entered[in[i]] > 0 && p->told[in[i]] < 0 &&
            p->s->inject.target != INJECT_BUS)
            probe_complain(p, "the driver never heard of %s", ladder_state_name(in[i]));
    if (p->mistold_in)
        probe_complain(p, "the driver reads %s in %s, not %s",
                       ladder_reason_name(p->mistold), ladder_state_name(p->mistold_in),
                       ladder_reason_name(verdict_reason(p->s)));
    check_disarming(p);
}

static void check_episodes(struct probe *p)
{
    uint64_t came = world_report(p->w)->faults.of[p->s->reason].episodes -
                    p->before.faults.of[p->s->reason].episodes;

    if (!p->s->seen && came != (uint64_t)p->s->more_episodes + 1)
        probe_complain(p, "the fault came up %lu times, not %d", (unsigned long)came,
                       p->s->more_episodes + 1);
}

// Of what is harmless nothing is told.
static void check_silence(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);

    for (int i = 0; i < LADDER_REASONS; i++)
        if (r->faults.of[i].episodes != p->before.faults.of[i].episodes)
            probe_complain(p, "%s was told", ladder_reason_name((enum ladder_reason)i));
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
bool verdict_reset(struct probe *p)
{
    bool before = latched(p);

    world_request(p->w, BOARD_RESET);
    probe_step(p);
    return before && !latched(p);
}

void verdict_latch(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);
    enum ladder_reason why = verdict_reason(p->s);

    if (!(r->faults.latched >> why & 1))
        probe_complain(p, "%s is not latched", ladder_reason_name(why));
    world_request(p->w, BOARD_ARM | BOARD_HOME);
    probe_step(p);
    world_request(p->w, BOARD_ARM);
    probe_step(p);
    if (!latched(p))
        probe_complain(p, "it left the latch without a reset");
    world_request(p->w, BOARD_RESET);
    probe_step(p);
    if (world_mode(p->w) != LADDER_WAITING)
        probe_complain(p, "the reset led to %s (%s), not to WAITING",
                       ladder_state_name(world_mode(p->w)),
                       ladder_reason_name(world_reason(p->w)));
    if (r->faults.latched != 0)
        probe_complain(p, "something is still latched after the reset");
}

// Ready again, still until somebody arms, and then it goes.
void verdict_rearm(struct probe *p)
{
    if (!world_until(p->w, LADDER_READY, 400))
        probe_complain(p, "never READY again: %s",
                       ladder_reason_name(world_reason(p->w)));
    for (int i = 0; i < 100; i++) {
        probe_step(p);
        if (world_mode(p->w) != LADDER_READY)
            probe_complain(p, "it left READY by itself");
    }
    world_request(p->w, BOARD_ARM);
    probe_step(p);
    if (world_mode(p->w) != LADDER_APPROACH)
        probe_complain(p, "it can not be armed again");
}

// Everything but what comes after a latch. reset: one was taken while the cause was there.
void verdict_run(struct probe *p, bool reset)
{
    const char *complaint = NULL;

    check_detection(p);
    if (reset)
        probe_complain(p, "a reset was taken while the cause was there");
    check_path(p);
    check_stop(p);
    check_told(p);
    check_episodes(p);
    if (p->s->harmless)
        check_silence(p);
    if (p->s->check)
        complaint = p->s->check(p);
    if (complaint)
        probe_complain(p, "%s", complaint);
}
