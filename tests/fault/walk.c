// See the header. The rows of the chunks are this file's own: the arm's pose, then towards poses
// that change now and then, at speeds below, at and above the limits, with noise and jumps.
#include "tests/fault/walk_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/loop_impl.h"
#include "daemon/tape.h"
#include "tests/fault/checker.h"
#include "tests/replay/replay_check.h"

const char *walk_record;
struct replay_ran walk_ran;

enum style { CALM, BRISK, WILD, NOISY, STEPS, RESTLESS, STYLES };

// ---- the policy ------------------------------------------------------------------------------

static void new_goal(struct walk *k)
{
    const struct guard_limits *l = &k->world->cfg.loop.limits;
    double beyond = k->style == WILD || k->style == STEPS ? 0.3 : -0.1;

    for (int j = 0; j < l->n; j++)
        k->goal[j] = walk_between(k, l->min[j] - beyond, l->max[j] + beyond);
}

static double row_wants(struct walk *k, int row, int joint, double from)
{
    const struct loop_config *c = &k->world->cfg.loop;
    ns_t row_ns = k->row_ns ? k->row_ns : c->chunks.step_ns;
    double step_s = (double)row_ns / (double)NS_PER_S;
    double most = k->liveliness * c->limits.velocity[joint] * step_s * row;
    double way = k->goal[joint] - from;

    if (k->style == STEPS)
        return row % 7 < 4 ? from : k->goal[joint];
    if (k->style == RESTLESS) // an approach never arrives: its row 0 is always elsewhere
        return walk_chance(k, 0.5) ? c->limits.min[joint] : c->limits.max[joint];
    if (k->style == NOISY)
        from += walk_between(k, -0.05, 0.05);
    return from + fmax(-most, fmin(most, way));
}

// Another policy has made this one, with rows of another length; or, when it is in use already,
// the one before it has.
static uint32_t author(struct walk *k, struct world *w)
{
    static const int tenths[] = {10, 10, 15, 20, 8};

    if (k->generation > 1 && loop_last(w->loop)->generation == k->generation &&
        walk_chance(k, 0.2 * k->swap))
        return k->generation - 1;
    if (!walk_chance(k, k->swap))
        return k->generation;
    k->row_ns = w->cfg.loop.chunks.step_ns * tenths[walk_pick(k, 5)] / 10;
    k->totals->swaps++;
    new_goal(k);
    return ++k->generation;
}

static void think(void *arg, struct world *w, const struct chunk *c)
{
    struct walk *k = arg;
    struct chunk *own = (struct chunk *)(uintptr_t)c; // the loop has not seen it yet
    int n = w->cfg.loop.joints;
    bool spoilt = injector_find(&w->injector, INJECT_POLICY, 0, w->schedule.tick) != NULL;

    own->generation = spoilt ? k->generation : author(k, w);
    own->step_ns = k->row_ns;
    if (walk_chance(k, 0.2))
        new_goal(k);
    // What an injection has written stays.
    for (int r = 0; r < c->rows && c->joints == n && !spoilt; r++)
        for (int j = 0; j < n; j++)
            own->row[r * n + j] = (float)row_wants(k, r, j, w->plant.pos[j]);
    if (k->checker)
        checker_policy(k->checker, c->generation, c->step_ns);
    if (k->checker)
        checker_chunk(k->checker, c->id, c->anchor_ns, c->rows, c->joints, c->row,
                      w->now);
}

// ---- who asks --------------------------------------------------------------------------------

static void ask(struct walk *k, uint32_t bits)
{
    world_request(k->world, bits);
    k->totals->requests++;
}

static void operate(struct walk *k)
{
    enum ladder_state s = world_mode(k->world);

    if (s == LADDER_READY && walk_chance(k, k->arm))
        ask(k, walk_chance(k, 0.15) ? BOARD_HOME : BOARD_ARM);
    if ((s == LADDER_STOPPED || s == LADDER_ESTOP) && walk_chance(k, k->reset))
        ask(k, BOARD_RESET);
    if (ladder_moving(s) && walk_chance(k, k->disarm))
        ask(k, walk_chance(k, 0.6)   ? BOARD_DISARM
               : walk_chance(k, 0.6) ? BOARD_STOP
                                     : BOARD_ESTOP);
    if (walk_chance(k, k->whim))
        ask(k, 1u << walk_pick(k, 6));
}

static void hurt(struct walk *k)
{
    const struct world_config *c = &k->world->cfg;
    struct injection one;

    if (!walk_chance(k, k->fault))
        return;
    one = injector_any(&k->random, 0, c->loop.joints, c->loop.n_cameras);
    // At 1 kHz 300 ticks are soon over.
    one.ticks *= 1 + walk_pick(k, 1 + (uint32_t)(c->loop.control_hz / 150));
    world_inject(k->world, one);
    k->totals->injections++;
    k->totals->injected[one.target][one.verb]++;
    if (k->tell)
        printf("%8" PRIu64 "  %s %s.%d of %d, %g, from +%" PRIu64 " for %" PRIu64 "\n",
               k->world->schedule.tick, inject_target_name(one.target),
               inject_verb_name(one.verb), one.variant, one.index, one.magnitude,
               one.from, one.ticks);
}

// A bit of the loop's memory turns over: it believes the arm elsewhere by more than a step.
static void hit_memory(const struct world *w)
{
    const struct injection *one =
        injector_find(&w->injector, INJECT_COMMAND, 0, w->schedule.tick);
    struct guard *g = &w->loop->guard;

    if (one && !w->tape)
        g->pos[one->index] += copysign(
            fmax(fabs(one->magnitude), 3 * g->lim.velocity[one->index] * g->period_s),
            one->magnitude);
}

// ---- who looks on ----------------------------------------------------------------------------

static void before_tick(void *arg, struct world *w)
{
    struct walk *k = arg;
    const struct loop_report *r = world_report(w);

    hit_memory(w);
    if (k->checker && k->lost_command != atomic_load(&w->board.lost_command))
        checker_lost(k->checker, atomic_load(&w->board.lost_command));
    k->lost_command = atomic_load(&w->board.lost_command);
    k->requests = atomic_load(&w->board.requests);
    k->joints_known = slot_read(&w->board.joints, &k->joints) != 0;
    for (int i = 0; i < w->cfg.loop.n_cameras; i++)
        k->frame_ns[i] = atomic_load(&w->board.camera[i].received_ns);
    k->commands = r->commands;
    k->lost = r->commands_dropped + r->gate_refusals;
}

static const struct command *newest(const struct world *w)
{
    const struct ring *r = &w->board.commands;
    uint64_t head = atomic_load(&r->head);

    return (const struct command *)(const void *)(r->data +
                                                  ((head - 1) & r->mask) * r->stride);
}

static void decode(const struct command *from, struct checker_command *to)
{
    size_t size = (size_t)from->n * sizeof(double);

    *to = (struct checker_command){.sequence = from->sequence,
                                   .tick = from->tick,
                                   .made_ns = from->made_ns,
                                   .ttl_ns = from->ttl_ns,
                                   .mode = (int)from->mode,
                                   .reason = (int)from->reason,
                                   .chunk_id = from->chunk_id,
                                   .chunk_row = from->chunk_row};
    memcpy(to->pos, from->pos, size);
    memcpy(to->vel, from->vel, size);
    memcpy(to->wanted, from->wanted, size);
}

static void look_on(struct walk *k, const struct world *w, const struct loop_report *r)
{
    static struct checker_command m; // large
    struct checker_tick t = {.tick = w->tick,
                             .skipped = r->skipped,
                             .now_ns = w->tick_ns,
                             .mode = (int)r->mode,
                             .requests = k->requests,
                             .measured = k->joints_known ? k->joints.pos : NULL,
                             .captured_ns = k->joints.capture_ns,
                             .dropped =
                                 r->commands_dropped + r->gate_refusals != k->lost};

    for (int i = 0; i < w->cfg.loop.n_cameras; i++)
        t.frame_ns[i] = k->frame_ns[i];
    t.lateness_ns = (w->tick_ns - w->schedule.next_ns); // next: of this tick, still
    if (r->commands != k->commands) {
        decode(newest(w), &m);
        t.command = &m;
    }
    if (k->tell && k->joint >= 0 && t.command)
        printf("%8" PRIu64 "  %.9f %+.6f wants %.6f\n", w->tick, m.pos[k->joint],
               m.vel[k->joint], m.wanted[k->joint]);
    checker_tick(k->checker, &t);
}

static void after_tick(void *arg, struct world *w)
{
    struct walk *k = arg;
    const struct loop_report *r = world_report(w);

    k->totals->ticks++;
    k->totals->in_state[r->mode]++;
    if (r->reason != k->reason || r->mode != k->mode)
        k->totals->reason[r->reason]++;
    if (!ladder_moving(k->mode) && ladder_moving(r->mode))
        k->totals->motions++;
    if (k->tell && r->mode != k->mode)
        printf("%8" PRIu64 "  %s -> %s (%s)\n", w->tick, ladder_state_name(k->mode),
               ladder_state_name(r->mode), ladder_reason_name(r->reason));
    k->mode = r->mode;
    k->reason = r->reason;
    if (k->checker) {
        uint64_t before = checker_violations(k->checker);

        look_on(k, w, r);
        if (k->tell && before == 0 && checker_violations(k->checker) > 0)
            printf("%8" PRIu64 "  VIOLATION %s\n", w->tick, checker_first(k->checker));
    }
}

static void sent(void *arg, struct world *w, const struct command *c)
{
    checker_sent(((struct walk *)arg)->checker, c->sequence, c->ttl_ns, w->now);
}

static void heard(void *arg, struct world *w, const struct heard *h)
{
    static struct checker_command m;
    size_t size = (size_t)h->n * sizeof(double);

    (void)w;
    m = (struct checker_command){.sequence = h->sequence,
                                 .tick = h->tick,
                                 .ttl_ns = h->ttl_ns,
                                 .mode = h->mode,
                                 .reason = h->reason};
    memcpy(m.pos, h->pos, size);
    memcpy(m.vel, h->vel, size);
    checker_received(((struct walk *)arg)->checker, &m, h->received_ns);
}

static void moved(void *arg, struct world *w)
{
    if (w->plant.alive)
        checker_obeyed(((struct walk *)arg)->checker, w->plant.command.sequence,
                       w->plant.now_ns);
}

// ---- life ------------------------------------------------------------------------------------

static struct checker_config rules(const struct loop_config *l)
{
    struct checker_config c = {.joints = l->joints,
                               .approach_scale = l->approach_scale,
                               .outside = 0.002,
                               .period_ns = clock_period_ns(l->control_hz),
                               .hold_ns = l->hold_ns,
                               .ttl_ns = l->ttl_ns,
                               .gap_ns = l->tick_gap_ns,
                               .following_ticks = l->following_ticks,
                               .cameras = l->n_cameras,
                               .joints_period_ns = l->joints_period_ns,
                               .rows = l->chunks.rows,
                               .step_ns = l->chunks.step_ns,
                               .max_age_ns = l->chunks.own_age ? 0 : l->chunks.max_age_ns,
                               .bridge_ns = l->chunks.bridge_ns};
    size_t size = sizeof c.min;

    c.whole = l->chunks.mode == CHUNK_REPLACE || l->chunks.mode == CHUNK_CROSSFADE ||
              l->chunks.mode == CHUNK_LATEST_ONLY;
    c.interpolation = l->chunks.interpolation == CHUNK_HOLD     ? CHECKER_HOLD_ROWS
                      : l->chunks.interpolation == CHUNK_LINEAR ? CHECKER_LINEAR
                                                                : CHECKER_CUBIC;
    memcpy(c.min, l->limits.min, size);
    memcpy(c.max, l->limits.max, size);
    memcpy(c.velocity, l->limits.velocity, size);
    memcpy(c.acceleration, l->limits.acceleration, size);
    memcpy(c.jerk, l->limits.jerk, size);
    memcpy(c.stop_acceleration, l->limits.stop_acceleration, size);
    memcpy(c.following_error, l->following_error, size);
    for (int i = 0; i < l->n_cameras; i++)
        c.camera_period_ns[i] = l->camera_period_ns[i];
    for (int i = 0; i < l->joints; i++) {
        double width = l->limits.max[i] - l->limits.min[i];
        bool given = l->limits.hard_min[i] != 0 || l->limits.hard_max[i] != 0;

        c.hard_min[i] = given ? l->limits.hard_min[i] : l->limits.min[i] - width;
        c.hard_max[i] = given ? l->limits.hard_max[i] : l->limits.max[i] + width;
    }
    memcpy(c.blend, l->chunks.blend, sizeof c.blend);
    return c;
}

static void temper(struct walk *k)
{
    static const double fault[] = {0, 0.0005, 0.001, 0.002, 0.004, 0.01};

    k->style = (int)walk_pick(k, STYLES - 1);
    if (k->number % 25 == 7)
        k->style = RESTLESS;
    k->liveliness = walk_between(k, 0.05, 0.6);
    if (k->style == BRISK)
        k->liveliness = walk_between(k, 0.6, 1.2);
    if (k->style == WILD)
        k->liveliness = walk_between(k, 1, 20);
    k->fault = fault[walk_pick(k, sizeof fault / sizeof *fault)];
    k->whim = walk_chance(k, 0.5) ? 0.001 : 0;
    k->arm = walk_between(k, 0.05, 0.5);
    k->reset = walk_between(k, 0.02, 0.3);
    k->disarm = walk_between(k, 0, 0.002);
    k->generation = 1;
    k->swap = walk_chance(k, 0.3) ? 0 : walk_between(k, 0.01, 0.15);
    if (k->style == RESTLESS) // it must have 30 s to go wrong
        k->fault = k->whim = k->disarm = 0;
}

int walk_begin(struct walk *k, uint64_t seed, int number, bool check,
               struct walk_totals *totals)
{
    static struct world_config c; // large
    struct checker_config r;
    int rc;

    *k = (struct walk){.totals = totals, .seed = seed, .number = number, .joint = -1};
    k->random =
        seed * UINT64_C(1000003) + (uint64_t)number * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < 8; i++)
        (void)injector_random32(&k->random);
    temper(k);
    walk_robot(k, &c);
    if (k->style == RESTLESS)
        c.loop.control_hz = 50, c.tick_work_ns = 0;
    rc = blackbox_new(&k->box, c.loop.joints, c.loop.n_cameras, c.loop.control_hz);
    c.loop.blackbox = k->box;
    c.record = walk_record;
    if (rc == 0)
        rc = world_new(&k->world, &c);
    if (rc != 0)
        return rc;
    k->mode = LADDER_INIT;
    r = rules(&c.loop);
    rc = check ? checker_new(&k->checker, &r) : 0;
    k->world->hooks = (struct world_hooks){.arg = k,
                                           .before_tick = before_tick,
                                           .after_tick = after_tick,
                                           .thought = think,
                                           .made = check ? sent : NULL,
                                           .heard = check ? heard : NULL,
                                           .moved = check ? moved : NULL};
    new_goal(k);
    return rc;
}

void walk_step(struct walk *k)
{
    operate(k);
    hurt(k);
    world_step(k->world);
}

void walk_end(struct walk *k, char *first, size_t size)
{
    const struct loop_report *r = world_report(k->world);
    struct walk_totals *t = k->totals;

    for (int i = 0; i < LADDER_REASONS; i++)
        t->reason[i] += r->faults.of[i].episodes;
    t->walks++;
    t->skipped += r->skipped;
    t->commands += r->commands;
    first[0] = 0;
    if (k->checker) {
        uint64_t n = checker_violations(k->checker);

        t->violations += n;
        t->broken += n > 0;
        snprintf(first, size, "%s", checker_first(k->checker));
    }
    if (k->world->tape)
        walk_ran = (struct replay_ran){.cfg = k->world->cfg,
                                       .ticks = k->world->ticks_run,
                                       .commands = k->world->commands,
                                       .inputs = k->world->tape->inputs,
                                       .chunks = k->world->tape->chunks};
    checker_free(k->checker);
    world_free(k->world);
    blackbox_free(k->box);
}
