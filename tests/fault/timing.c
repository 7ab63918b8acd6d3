// Faults of time: the loop away, late, slow; budgets. A budget is over in the 11th miss of a
// window of 100 ticks, 500 ms.
#include "tests/fault/matrix.h"

#define LOOP(v, variant_, n, m)                                                  \
    {                                                                            \
        .target = INJECT_LOOP, .verb = (v), .variant = (variant_), .ticks = (n), \
        .magnitude = (m)                                                         \
    }

static void alone(struct world_config *c)
{
    c->monitor = false;
}

static void tight_sensors(struct world_config *c)
{
    c->loop.budget_ns[BOARD_SENSOR] = 20 * NS_PER_MS;
}

// A bound of more than a period.
static void loose_wakeups(struct world_config *c)
{
    c->loop.budget_ns[BOARD_WAKEUP] = 10 * NS_PER_MS;
}

static void tight_chunks(struct world_config *c)
{
    c->loop.budget_ns[BOARD_CHUNK] = 100 * NS_PER_MS;
}

// The tick that was due first is late; all others up to the one due now are skipped.
static const char *skipped_30(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);

    if (r->skipped - p->before.skipped != 30)
        return "30 ticks were to be skipped";
    return NULL;
}

static const char *skipped_200(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);

    if (r->skipped - p->before.skipped != 200)
        return "200 ticks were to be skipped";
    return NULL;
}

// The first tick that runs bears the number of the one that was due first.
static uint64_t in_time(struct probe *p)
{
    return world_ordinal(p->w, p->w->tick_ns);
}

// While the loop hangs the monitor cuts the output: on the board within 100 ms, which a stuck loop
// can not know. 200 ms later it comes back and stops.
static bool cut(struct probe *p)
{
    return atomic_load(&p->w->board.stalls) > 0;
}

static uint64_t when_cut(struct probe *p)
{
    return world_ordinal(p->w, p->w->cut_ns);
}

static const char *nothing_left(struct probe *p)
{
    if (atomic_load(&p->w->board.stalls) != 1)
        return "not one cut";
    if (p->w->cut_ns -
            (p->w->schedule.start_ns + (ns_t)p->from * p->w->schedule.period_ns) >
        MONITOR_LIMIT_NS)
        return "cut later than 100 ms";
    if (atomic_load(&p->w->outbox.cut) != 1)
        return "the command of the tick that hung was not cut";
    return p->w->plant.stops > 0 ? NULL : "the arm did not stop by itself";
}

static const char *told_once(struct probe *p)
{
    return world_report(p->w)->stalls == 1 ? NULL : "the loop does not say so";
}

static void hour_on(struct world *w, uint64_t since)
{
    if (since == 0)
        world_set_wall(w, 3600 * NS_PER_S, true);
}

static void hour_back(struct world *w, uint64_t since)
{
    if (since == 0)
        world_set_wall(w, -3600 * NS_PER_S, true);
}

// There is nothing to detect: not a message is lost.
static bool at_once(struct probe *p)
{
    return p->w->tick > p->from;
}

static const char *not_a_message_lost(struct probe *p)
{
    if (atomic_load(&JOINT_MARK(p)->refused) ||
        atomic_load(&CAMERA_MARK(p, 0)->refused) ||
        atomic_load(&JOINT_MARK(p)->out_of_order))
        return "messages were refused";
    return p->w->inferences > p->inferences_before + 1 ? NULL : "no inference since";
}

static const struct scenario of[] = {
    {.name = "loop away for 150 ms",
     .bound = "its first tick",
     .detector = BLIND_TICK_GAP,
     .configure = alone,
     .inject = LOOP(VERB_OFF, 0, 30, 0),
     .reason = REASON_TICK_GAP,
     .when = in_time,
     .least = 30,
     .most = 30,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true,
     .check = skipped_30},
    {.name = "process stopped for 1 s",
     .bound = "its first tick",
     .detector = BLIND_TICK_GAP,
     .inject = {.target = INJECT_PROCESS, .verb = VERB_STUCK, .ticks = 200},
     .reason = REASON_TICK_GAP,
     .when = in_time,
     .least = 200,
     .most = 200,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true,
     .check = skipped_200},
    {.name = "loop hangs in a tick",
     .bound = "output cut in 100 ms",
     .detector = BLIND_MONITOR,
     .inject = LOOP(VERB_SLOW, 0, 1, 300),
     .seen = cut,
     .when = when_cut,
     .least = 17,
     .most = 17,
     .reason = REASON_LOOP_STALLED,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true,
     .check = nothing_left,
     .settle = 240},
    {.name = "loop hangs, and the bus has its command",
     .bound = "cut",
     .detector = BLIND_OUTBOX_CUT,
     .inject = LOOP(VERB_SLOW, 0, 1, 300),
     .seen = cut,
     .when = when_cut,
     .least = 17,
     .most = 17,
     .reason = REASON_LOOP_STALLED,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true,
     .check = nothing_left,
     .settle = 240},
    {.name = "loop comes back from a hang",
     .bound = "in its first tick",
     .detector = BLIND_STALLS,
     .inject = LOOP(VERB_SLOW, 0, 1, 300),
     .begins = cut,
     .reason = REASON_LOOP_STALLED,
     .least = 0,
     .most = 0,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true,
     .check = told_once,
     .settle = 240},
    {.name = "every 2nd wake-up 6 ms late",
     .bound = "> 10 % of 500 ms",
     .detector = BLIND_BUDGETS,
     .inject = LOOP(VERB_DELAYED, 2, 100, 6),
     .reason = REASON_LATE_WAKEUPS,
     .least = 12,
     .most = 12,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "starved: 30 % of wake-ups late",
     .bound = "> 10 % of 500 ms",
     .detector = BLIND_BUDGETS,
     .inject = LOOP(VERB_INTERMITTENT, 0, 200, 0.3),
     .reason = REASON_LATE_WAKEUPS,
     .least = 34,
     .most = 34,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "every tick works 3 ms",
     .bound = "> 10 % of 500 ms",
     .detector = BLIND_BUDGETS,
     .inject = LOOP(VERB_SLOW, 0, 200, 3),
     .reason = REASON_SLOW_TICKS,
     .least = 11,
     .most = 11,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    // Each of these is on time itself: what it costs is the ticks that there was no time for.
    {.name = "one tick in 30 works 60 ms",
     .bound = "> 10 % of 500 ms lost",
     .detector = BLIND_BUDGETS,
     .configure = loose_wakeups,
     .inject = LOOP(VERB_SLOW, 30, 200, 60),
     .reason = REASON_LATE_WAKEUPS,
     .least = 36,
     .most = 36,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "joint states 15 ms late",
     .bound = "> 10 % of 500 ms",
     .detector = BLIND_BUDGETS,
     .configure = tight_sensors,
     .inject =
         {.target = INJECT_JOINTS, .verb = VERB_DELAYED, .magnitude = 15, .ticks = 200},
     .reason = REASON_OLD_SENSORS,
     .least = 24,
     .most = 24,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "chunks 120 ms late",
     .bound = "> 10 % of 10 chunks",
     .detector = BLIND_BUDGETS,
     .configure = tight_chunks,
     .inject =
         {.target = INJECT_POLICY, .verb = VERB_DELAYED, .magnitude = 120, .ticks = 300},
     .reason = REASON_LATE_CHUNKS,
     .least = 143,
     .most = 143,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true,
     .settle = 600},
    {.name = "wall clock set 1 h on, driver follows",
     .bound = "no effect",
     .detector = BLIND_WALL,
     .act = hour_on,
     .inject = {.ticks = 300},
     .seen = at_once,
     .least = 1,
     .most = 1,
     .recovery = RUNS_ON,
     .check = not_a_message_lost},
    {.name = "wall clock set 1 h back, driver follows",
     .bound = "no effect",
     .detector = BLIND_WALL,
     .act = hour_back,
     .inject = {.ticks = 300},
     .seen = at_once,
     .least = 1,
     .most = 1,
     .recovery = RUNS_ON,
     .check = not_a_message_lost},
};

const struct scenario_group group_timing = {"time", of, sizeof of / sizeof *of};
