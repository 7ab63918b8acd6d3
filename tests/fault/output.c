// What leaves: the bus held up, the last gate.
#include <math.h>

#include "daemon/loop_impl.h"
#include "tests/fault/matrix.h"

static uint64_t dropped(const struct probe *p)
{
    return world_report(p->w)->commands_dropped - p->before.commands_dropped;
}

static bool one_dropped(struct probe *p)
{
    return dropped(p) > 0;
}

// 12 ticks of 5 ms: one command waits, and is too old when the bus comes for it; the other 11
// were never made, so the next one is a step from what the arm was told last.
static const char *one_waited(struct probe *p)
{
    if (dropped(p) != 11)
        return "not 11 of 12 were dropped";
    return atomic_load(&p->w->outbox.expired) == 1 ? NULL : "the one that waited left";
}

static bool expired(struct probe *p)
{
    return atomic_load(&p->w->outbox.expired) > 0;
}

static const char *one_expired(struct probe *p)
{
    return atomic_load(&p->w->outbox.expired) == 1 ? NULL : "not one expired";
}

// It made one command, and nobody came for it.
static void loop_away(struct world *w, uint64_t since)
{
    if (since == 0)
        world_inject(w,
                     (struct injection){
                         .target = INJECT_LOOP, .verb = VERB_OFF, .from = 1, .ticks = 7});
}

// What the arm was told last and where it is: one joint is 0.2 rad away.
static bool apart(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);

    for (int i = 0; i < p->w->cfg.loop.joints; i++)
        if (fabs(p->last[i] - r->measured[i]) > 0.2)
            return true;
    return false;
}

static const char *stopped_by_itself(struct probe *p)
{
    return p->w->plant.stops > 0 ? NULL : "the driver did not stop by itself";
}

// Memory goes wrong: the guard's limits are ten times what they were.
static void hit_guard(struct world *w, uint64_t since)
{
    if (since == 0)
        for (int i = 0; i < w->cfg.loop.joints; i++) {
            w->loop->guard.lim.velocity[i] *= 10;
            w->loop->guard.lim.acceleration[i] *= 1000;
            w->loop->target.pos[i] += 0.5;
        }
    if (since == 100)
        w->loop->guard.lim = w->loop->cfg.limits;
}

static bool refused(struct probe *p)
{
    return world_report(p->w)->gate_refusals > 0;
}

static const struct scenario of[] = {
    {.name = "bus held up for 60 ms",
     .bound = "one waits; no step is lost",
     .detector = BLIND_OUTBOX_NEWEST,
     .inject = {.target = INJECT_BUS, .verb = VERB_STUCK, .ticks = 12},
     .seen = one_dropped,
     .least = 1,
     .most = 1,
     .path = "HOLD RUNNING",
     .told = REASON_JOINTS_STALE,
     .recovery = RETURNS,
     .check = one_waited},
    {.name = "bus held up, and the loop away",
     .bound = "time to live",
     .detector = BLIND_OUTBOX_TTL,
     .inject = {.target = INJECT_BUS, .verb = VERB_STUCK, .ticks = 8},
     .act = loop_away,
     .seen = expired,
     .least = 1,
     .most = 1,
     .recovery = RUNS_ON,
     .check = one_expired},
    {.name = "no command reaches the driver",
     .bound = "following error, 10 ticks",
     .detector = BLIND_FOLLOWING,
     .inject = {.target = INJECT_BUS, .verb = VERB_OFF, .ticks = 500},
     .begins = apart,
     .reason = REASON_FOLLOWING_ERROR,
     .least = 9,
     .most = 9,
     .path = "HOLD STOPPING STOPPED",
     .stop_after = 19,
     .recovery = LATCHES,
     .cause_goes = true,
     .check = stopped_by_itself},
    {.name = "guard's memory is hit",
     .bound = "the same tick; INTERNAL in the next",
     .detector = BLIND_GATE,
     .act = hit_guard,
     .hits = 1,
     .inject = {.target = INJECT_POLICY,
                .verb = VERB_WRONG,
                .variant = POLICY_FAR,
                .magnitude = 1,
                .ticks = 100},
     .begins = refused,
     .reason = REASON_INTERNAL,
     .least = 1,
     .most = 1,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true},
};

const struct scenario_group group_output = {"output", of, sizeof of / sizeof *of};
