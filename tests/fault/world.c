// The order of events. Of those at one instant the earlier in this list comes first:
//
//   driver and cameras send; letters arrive at the bus; the bus sends; letters arrive at the
//   driver; the brain turns; the monitor looks; the loop ticks
//
// A thread that is stopped, or stuck, has its events at the end of that.
#include "tests/fault/world_impl.h"

#include <math.h>
#include <string.h>

uint64_t world_ordinal(const struct world *w, ns_t at)
{
    ns_t since = at - w->schedule.start_ns;

    return since < 0 ? 0 : (uint64_t)(since / w->schedule.period_ns);
}

const struct injection *world_wrong(const struct world *w, enum inject_target target,
                                    int index, ns_t at)
{
    return injector_find(&w->injector, target, index, world_ordinal(w, at));
}

// When something that was to happen at `at` does happen, given what holds that thread up.
static ns_t held_up(const struct world *w, enum inject_target target, ns_t at)
{
    const struct injection *one = world_wrong(w, target, 0, at);

    if (!one || (one->verb != VERB_STUCK && one->verb != VERB_OFF))
        return at;
    if (one->verb == VERB_OFF && target == INJECT_BUS)
        return at; // the wire, not the thread
    if (one->ticks == 0)
        return NEVER;
    return w->schedule.start_ns + (ns_t)(one->from + one->ticks) * w->schedule.period_ns;
}

static ns_t when(const struct world *w, enum inject_target thread, ns_t at)
{
    ns_t before;

    if (at == NEVER)
        return at;
    at = at > w->now ? at : w->now;
    do {
        before = at;
        at = held_up(w, INJECT_PROCESS, at);
        if (at != NEVER)
            at = held_up(w, thread, at);
    } while (at != before && at != NEVER);
    return at;
}

// ---- the loop --------------------------------------------------------------------------------

static ns_t tick_clock(void)
{
    return world_current->now + world_current->in->work_ns;
}

// The same answer for one tick, however often it is asked.
static bool unlucky(const struct world *w, double part)
{
    uint64_t state = w->schedule.tick * 2654435761u + w->cfg.seed;

    injector_random32(&state);
    return injector_random01(&state) < part;
}

// What is injected into this tick: how late it wakes, how long it works.
static ns_t wakes(const struct world *w)
{
    ns_t at = w->schedule.next_ns;
    const struct injection *one =
        injector_find(&w->injector, INJECT_LOOP, 0, w->schedule.tick);

    if (one && one->verb == VERB_DELAYED &&
        (one->variant == 0 || w->schedule.tick % (uint64_t)one->variant == 0))
        at += (ns_t)(one->magnitude * (double)NS_PER_MS);
    if (one && one->verb == VERB_INTERMITTENT && unlucky(w, one->magnitude))
        at += w->schedule.period_ns + w->schedule.period_ns / 5;
    return when(w, INJECT_LOOP, at);
}

static ns_t works(const struct world *w)
{
    const struct injection *one =
        injector_find(&w->injector, INJECT_LOOP, 0, w->schedule.tick);

    if (one && one->verb == VERB_SLOW &&
        (one->variant == 0 || w->schedule.tick % (uint64_t)one->variant == 0))
        return (ns_t)(one->magnitude * (double)NS_PER_MS);
    return w->cfg.tick_work_ns;
}

static void ask(struct world *w)
{
    const struct injection *one =
        injector_find(&w->injector, INJECT_REQUESTS, 0, w->schedule.tick);

    if (one)
        world_request(w, (uint32_t)one->magnitude & 63);
}

// As loop_run.c, with this clock.
static void tick(struct world *w)
{
    struct schedule *s = &w->schedule;

    ask(w);
    w->in->work_ns = works(w);
    w->tick = s->tick;
    w->tick_ns = w->now;
    if (w->hooks.before_tick)
        w->hooks.before_tick(w->hooks.arg, w);
    loop_tick(w->loop, s->tick, w->now, schedule_woke(s, w->now), tick_clock);
    w->ticks_run++;
    if (w->hooks.after_tick)
        w->hooks.after_tick(w->hooks.arg, w);
    schedule_advance(s, w->now + w->in->work_ns);
    w->in->command_at_ns = w->now + w->in->work_ns;
}

// The arm, and who is in its way.
static void move_arm(struct world *w, ns_t to)
{
    const struct injection *one = world_wrong(w, INJECT_PLANT, 0, to);
    int j = one && one->index < w->plant.cfg.joints ? one->index : 0;

    memset(w->plant.blocked, 0, sizeof w->plant.blocked);
    if (one && one->verb == VERB_STUCK)
        w->plant.blocked[j] = true;
    if (one && one->verb == VERB_WRONG && w->in->jumped != one->from + 1) {
        w->plant.pos[j] += one->magnitude;
        w->in->jumped = one->from + 1;
    }
    while (w->plant.now_ns + PLANT_STEP_NS <= to) {
        plant_move(&w->plant, w->plant.now_ns + PLANT_STEP_NS);
        if (w->hooks.moved)
            w->hooks.moved(w->hooks.arg, w);
    }
}

void world_set_wall(struct world *w, int64_t by_ns, bool local)
{
    w->wall_offset_ns += by_ns;
    for (int i = 0; i <= w->cfg.loop.n_cameras && local; i++)
        w->in->sender[i].clock_ns += by_ns;
}

// ---- the order -------------------------------------------------------------------------------

enum event {
    SEND_JOINTS,
    SEND_FRAME,
    RECEIVE = SEND_FRAME + WORLD_CAMERAS,
    SEND_COMMAND,
    HEAR,
    TURN,
    LOOK,
    TICK,
    EVENTS
};

static void when_all(const struct world *w, ns_t at[EVENTS])
{
    at[SEND_JOINTS] = w->in->sender[0].next_ns;
    for (int i = 0; i < WORLD_CAMERAS; i++)
        at[SEND_FRAME + i] =
            i < w->cfg.loop.n_cameras ? w->in->sender[1 + i].next_ns : NEVER;
    at[RECEIVE] = when(w, INJECT_BUS, world_next_letter(w, false));
    at[SEND_COMMAND] = when(w, INJECT_BUS, w->in->command_at_ns);
    at[HEAR] = world_next_letter(w, true);
    at[TURN] = when(w, INJECT_PROCESS, brain_due_ns(w));
    at[LOOK] = w->cfg.monitor ? when(w, INJECT_PROCESS, w->in->next_look_ns) : NEVER;
    at[TICK] = wakes(w);
}

static ns_t period(double hz)
{
    return clock_period_ns(hz);
}

static void send(struct world *w, int stream)
{
    struct sender *s = &w->in->sender[stream];

    if (stream == 0)
        sender_joints(w);
    else
        sender_frame(w, stream - 1);
    s->next_ns += period(stream == 0 ? w->cfg.joints_hz : w->cfg.camera_hz[stream - 1]);
}

static void look(struct world *w)
{
    uint64_t ticks = atomic_load(&w->board.ticks);

    if (monitor_look(&w->monitor, ticks, w->now,
                     monitor_limit_ns(w->schedule.period_ns))) {
        atomic_fetch_add(&w->board.stalls, 1);
        w->cut_ns = w->now;
    }
    w->in->next_look_ns = w->now + MONITOR_LOOK_NS;
}

static void happen(struct world *w, enum event e)
{
    if (e >= SEND_FRAME && e < RECEIVE) {
        send(w, 1 + (int)(e - SEND_FRAME));
        return;
    }
    switch (e) {
    case SEND_JOINTS:
        send(w, 0);
        return;
    case RECEIVE:
        world_bus_receives(w);
        return;
    case SEND_COMMAND:
        world_bus_sends(w);
        return;
    case HEAR:
        world_driver_hears(w);
        return;
    case TURN:
        brain_turn(w);
        return;
    case LOOK:
        look(w);
        return;
    default:
        tick(w);
    }
}

void world_step(struct world *w)
{
    ns_t at[EVENTS];
    enum event first;

    do {
        when_all(w, at);
        first = SEND_JOINTS;
        for (enum event e = SEND_JOINTS; e < EVENTS; e++)
            if (at[e] < at[first])
                first = e;
        if (at[first] == NEVER)
            return; // a world in which nothing will ever happen
        move_arm(w, at[first]);
        w->now = at[first] > w->now ? at[first] : w->now;
        happen(w, first);
        // A loop that is stuck for ever has no next tick: a step is a period then.
    } while (first != TICK && !(at[TICK] == NEVER && w->now >= w->in->step_until_ns));
    w->in->step_until_ns = w->now + w->schedule.period_ns;
    world_record_turn(w);
}
