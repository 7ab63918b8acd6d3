// Seams: how far the blended target jumps when chunks come and go, in every mode with every
// interpolation. The jump is measured from outside: the target is sampled every 0.1 us around
// the event, and what lies before it is continued to the event by a parabola. The bounds come
// from this file's own books of what is in view; nothing here looks inside chunks.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/chunks.h"

#define MS       NS_PER_MS
#define STEP     (20 * MS)
#define H        100          // ns between two samples
#define CLEAR    2000         // ns: no row is this near to an event that is measured
#define APART    (300 * 1000) // ns: and no end: shares move fast there, parabolas do not
#define ROWS     20
#define JOINTS   3    // the last one with blend = false
#define D        0.25 // rad: rows are in ±D/2, which floats can be exactly
#define ZERO     1e-9 // rad
#define ARRIVALS 1000
#define MOST     (ARRIVALS + 1)

static uint64_t seed = 1;
static double rnd(void) // [0, 1)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / (double)(UINT64_C(1) << 53);
}

struct book { // of one chunk
    ns_t anchor, end;
};
struct world {
    struct chunks_config cfg;
    struct chunks *q;
    struct book book[MOST];
    int n;
    // What was found.
    int arrivals, departures, plain; // plain: no chunk was in its last step
    double worst, worst_part;        // rad at arrivals, and of its bound
    double worst_vel, worst_part_vel, departed, gripper;
};

static const char *const mode_name[] = {"replace",          "crossfade",   "ensemble",
                                        "weighted_average", "latest_only", "average",
                                        "conservative"};

static void world_start(struct world *w, enum chunk_mode mode, int interpolation,
                        ns_t max_age)
{
    memset(w, 0, sizeof *w);
    w->cfg =
        (struct chunks_config){.mode = mode,
                               .interpolation = (enum chunk_interpolation)interpolation,
                               .rows = ROWS,
                               .joints = JOINTS,
                               .capacity = 64,
                               .step_ns = STEP,
                               .fade_ns = 60 * MS,
                               .max_age_ns = max_age,
                               .ensemble_coeff = 0.1,
                               .blend = {true, true, false}};
    assert_int_equal(chunks_init(&w->q, &w->cfg), 0);
}

// ---- books -----------------------------------------------------------------------------------

static double presence(const struct book *b, ns_t t)
{
    if (t < b->anchor || t >= b->end)
        return 0;
    return t < b->end - STEP ? 1 : (double)(b->end - t) / (double)STEP;
}

static bool near(ns_t a, ns_t b, ns_t by)
{
    return llabs(a - b) < by;
}

// Is t near a row of this chunk, its end, or the start of its last step?
static bool near_event(const struct book *b, ns_t t)
{
    ns_t part = ((t - b->anchor) % STEP + STEP) % STEP;

    return near(part, 0, CLEAR) || near(part, STEP, CLEAR) || near(t, b->end, APART) ||
           near(t, b->end - STEP, CLEAR);
}

static bool clear(const struct world *w, const struct book *fresh, ns_t t)
{
    for (int i = 0; i < w->n; i++) {
        const struct book *b = &w->book[i];

        if (near_event(b, t) || near_event(b, fresh->anchor) ||
            near_event(b, fresh->end) || near_event(fresh, b->end))
            return false;
    }
    return t == fresh->anchor || !near_event(fresh, t);
}

// ---- measuring -------------------------------------------------------------------------------

struct side { // of an event, as the samples there say
    bool there;
    double pos[JOINTS], vel[JOINTS];
};

static bool sample(struct world *w, ns_t t, struct chunk_target *out)
{
    return chunks_target(w->q, t, out) == 0;
}

static struct side before(struct world *w, ns_t t)
{
    struct chunk_target c, b, a;
    bool far = sample(w, t - 3 * H, &c), middle = sample(w, t - 2 * H, &b);
    struct side s = {.there = sample(w, t - H, &a) && far && middle};

    for (int j = 0; j < JOINTS && s.there; j++) {
        s.pos[j] = 3 * a.pos[j] - 3 * b.pos[j] + c.pos[j];
        s.vel[j] = (5 * a.pos[j] - 8 * b.pos[j] + 3 * c.pos[j]) / (2 * H * 1e-9);
    }
    return s;
}

// *at is what chunks says in the very tick.
static struct side after(struct world *w, ns_t t, struct chunk_target *at)
{
    struct chunk_target b, c;
    struct side s = {.there = sample(w, t, at)};

    s.there = s.there && sample(w, t + H, &b) && sample(w, t + 2 * H, &c);
    for (int j = 0; j < JOINTS && s.there; j++) {
        s.pos[j] = at->pos[j];
        s.vel[j] = (-3 * at->pos[j] + 4 * b.pos[j] - c.pos[j]) / (2 * H * 1e-9);
    }
    return s;
}

// ---- bounds ----------------------------------------------------------------------------------

// The most that two chunks differ in, and the most that their slopes do (chunks.h; the slope of
// Catmull-Rom through rows in ±D/2 is at most 1.75 D a step).
static double apart(const struct world *w)
{
    return w->cfg.interpolation == CHUNK_CUBIC ? 1.25 * D : D;
}
static double apart_vel(const struct world *w)
{
    static const double per_step[] = {
        [CHUNK_HOLD] = 0, [CHUNK_LINEAR] = 2 * D, [CHUNK_CUBIC] = 3.5 * D};

    return per_step[w->cfg.interpolation] / (STEP * 1e-9);
}

static double averages(const struct world *w, double s, ns_t t)
{
    double p = presence(&w->book[w->n - 1], t), old = 0;

    for (int i = 0; i < w->n - 1; i++)
        old = fmax(old, presence(&w->book[i], t));
    return s * p / (s * p + (1 - s) * old);
}

static double ensemble(const struct world *w, ns_t t)
{
    double place = 0, sum = 0, newest = 0;

    for (int i = 0; i < w->n; i++) {
        double p = presence(&w->book[i], t);

        newest = p * exp(-w->cfg.ensemble_coeff * place);
        sum += newest;
        place += p;
    }
    return newest / sum;
}

// The newest chunk's share as it comes into view at t.
static double share(const struct world *w, ns_t t)
{
    switch (w->cfg.mode) {
    case CHUNK_CROSSFADE:
        return 0;
    case CHUNK_WEIGHTED_AVERAGE:
        return averages(w, 0.7, t);
    case CHUNK_AVERAGE:
        return averages(w, 0.5, t);
    case CHUNK_CONSERVATIVE:
        return averages(w, 0.3, t);
    case CHUNK_ENSEMBLE:
        return ensemble(w, t);
    default:
        return 1;
    }
}

static bool all_whole(const struct world *w, ns_t t)
{
    for (int i = 0; i < w->n; i++) {
        double p = presence(&w->book[i], t);

        if (p > 0 && p < 1)
            return false;
    }
    return true;
}

// ---- events ----------------------------------------------------------------------------------

static void check_arrival(struct world *w, const struct side *l, const struct side *r,
                          const struct chunk_target *at, ns_t t)
{
    double most = 0, bound = share(w, t) * apart(w);
    bool whole = all_whole(w, t);

    for (int j = 0; j < JOINTS; j++) {
        double rad = fabs(r->pos[j] - l->pos[j]), rad_s = fabs(r->vel[j] - l->vel[j]);

        assert_true(fabs(at->seam[j] - rad) <= ZERO); // what it says is what happened
        assert_true(fabs(at->seam_vel[j] - rad_s) <= 2e-3);
        if (!w->cfg.blend[j]) {
            assert_true(rad <= D + ZERO && at->seam_vel[j] == 0);
            w->gripper = fmax(w->gripper, rad);
            continue;
        }
        assert_true(rad <= bound + ZERO && at->seam[j] <= bound + ZERO);
        most = fmax(most, at->seam[j]);
        if (bound > 0)
            w->worst_part = fmax(w->worst_part, rad / bound);
        w->worst = fmax(w->worst, rad);
        if (w->cfg.mode == CHUNK_CROSSFADE)
            assert_true(at->seam[j] == 0 && at->seam_vel[j] == 0);
        if (!whole && w->cfg.mode != CHUNK_REPLACE && w->cfg.mode != CHUNK_LATEST_ONLY)
            continue;
        assert_true(at->seam_vel[j] <= share(w, t) * apart_vel(w) + ZERO);
        w->worst_vel = fmax(w->worst_vel, at->seam_vel[j]);
        if (apart_vel(w) > 0 && share(w, t) > 0)
            w->worst_part_vel =
                fmax(w->worst_part_vel, rad_s / share(w, t) / apart_vel(w));
    }
    assert_true(at->seam_max == most);
    w->arrivals++;
    w->plain += whole;
}

// One that ends at t.
static void depart(struct world *w, const struct book *b)
{
    bool newest = true;
    struct chunk_target at;
    struct side l = before(w, b->end), r = after(w, b->end, &at);

    for (const struct book *o = b + 1; o < w->book + w->n; o++)
        if (presence(o, b->end) > 0)
            newest = false;
    if (!l.there || !r.there)
        return; // it was the last one: there is no target to jump
    for (int j = 0; j < JOINTS; j++) {
        double rad = fabs(r.pos[j] - l.pos[j]);

        assert_true(at.seam[j] == 0 && at.seam_vel[j] == 0);
        assert_true(rad <= (w->cfg.blend[j] ? 0 : newest ? D : 0) + ZERO);
        if (w->cfg.blend[j])
            w->departed = fmax(w->departed, rad);
    }
    w->departures++;
}

// All that end in [from, until), in order.
static void departures(struct world *w, ns_t from, ns_t until)
{
    for (;;) {
        const struct book *next = NULL;

        for (int i = 0; i < w->n; i++)
            if (w->book[i].end >= from && w->book[i].end < until &&
                (!next || w->book[i].end < next->end))
                next = &w->book[i];
        if (!next)
            return;
        depart(w, next);
        from = next->end + 1;
    }
}

static enum chunk_verdict push(struct world *w, ns_t anchor, int rows, ns_t now)
{
    struct chunk *c = calloc(1, chunk_bytes(rows, JOINTS));
    enum chunk_verdict v;

    c->id = (uint64_t)w->n + 1;
    c->anchor_ns = c->oldest_ns = anchor;
    c->rows = rows;
    c->joints = JOINTS;
    for (int i = 0; i < rows * JOINTS; i++) // to the very ends now and then
        c->row[i] = (float)(D * (rnd() < 0.3 ? (rnd() < 0.5) - 0.5 : rnd() - 0.5));
    v = chunks_push(w->q, c, now);
    free(c);
    return v;
}

// The next chunk comes into view at *t: most are some rows late, some wait for their row 0.
static void arrive(struct world *w, ns_t *t)
{
    ns_t last = *t;
    bool waits = rnd() < 0.2;
    int rows = 4 + (int)(rnd() * (ROWS - 3));
    struct book b;

    do {
        *t = last + 2 * MS + (ns_t)(rnd() * 120e6);
        b.anchor = waits ? *t : *t - (ns_t)(rnd() * 60e6);
        b.end = b.anchor + rows * STEP;
        if (w->cfg.max_age_ns > 0 && b.anchor + w->cfg.max_age_ns + 1 < b.end)
            b.end = b.anchor + w->cfg.max_age_ns + 1;
    } while (b.end < *t + APART || (w->n > 0 && b.anchor <= w->book[w->n - 1].anchor) ||
             !clear(w, &b, *t));
    departures(w, last, *t);
    w->book[w->n++] = b;
    if (waits)
        assert_int_equal(push(w, b.anchor, rows, *t - CLEAR), CHUNK_USED);
    struct chunk_target at;
    struct side l = before(w, *t);
    if (!waits)
        assert_int_equal(push(w, b.anchor, rows, *t), CHUNK_USED);
    struct side r = after(w, *t, &at);
    assert_true(r.there);
    if (l.there)
        check_arrival(w, &l, &r, &at, *t);
    else
        assert_true(at.seam_max == 0 && at.seam[JOINTS - 1] == 0);
}

static void tell(const struct world *w)
{
    static const char *const how[] = {"hold", "linear", "cubic"};

    printf(
        "%-16s %-6s  comes %3d: %.3f rad (%3.0f %% of its bound) %5.1f rad/s (%3.0f %%)"
        "  goes %3d: %.0e rad\n",
        mode_name[w->cfg.mode], how[w->cfg.interpolation], w->arrivals, w->worst,
        100 * w->worst_part, w->worst_vel, 100 * w->worst_part_vel, w->departures,
        w->departed);
}

static void bounds(enum chunk_mode mode, int interpolation, ns_t max_age)
{
    struct world w;
    ns_t t = 5 * NS_PER_S + 12345;

    world_start(&w, mode, interpolation, max_age);
    for (int i = 0; i < ARRIVALS; i++)
        arrive(&w, &t);
    tell(&w);
    // The test sees what it is there for: the bounds are nearly met, the cases are many.
    assert_true(w.arrivals > ARRIVALS / 2 && w.departures > ARRIVALS / 3);
    assert_true(w.plain > ARRIVALS / 8);
    assert_true(mode == CHUNK_CROSSFADE ? w.worst <= ZERO : w.worst_part > 0.8);
    assert_true(w.gripper > 0.8 * D);
    chunks_free(w.q);
}

static void every_mode_keeps_its_bounds(void **state)
{
    (void)state;
    for (int m = CHUNK_REPLACE; m <= CHUNK_CONSERVATIVE; m++)
        for (int how = CHUNK_HOLD; how <= CHUNK_CUBIC; how++)
            bounds((enum chunk_mode)m, how, 0);
}

// Ends that do not lie on a row.
static void and_where_age_ends_a_chunk(void **state)
{
    (void)state;
    for (int m = CHUNK_REPLACE; m <= CHUNK_CONSERVATIVE; m++)
        for (int how = CHUNK_HOLD; how <= CHUNK_CUBIC; how++)
            bounds((enum chunk_mode)m, how, 237 * MS + 77);
}

// Three places, more chunks: one gives way with nearly every arrival. The number still is what
// happened, and crossfade alone may do so without a jump.
static void what_gives_way_is_in_the_number(void **state)
{
    (void)state;
    for (int m = CHUNK_REPLACE; m <= CHUNK_CONSERVATIVE; m++)
        for (int how = CHUNK_HOLD; how <= CHUNK_CUBIC; how++) {
            struct world w;
            ns_t t = NS_PER_S;

            world_start(&w, (enum chunk_mode)m, how, 0);
            chunks_free(w.q);
            w.cfg.capacity = 3;
            assert_int_equal(chunks_init(&w.q, &w.cfg), 0);
            for (int i = 0; i < ARRIVALS; i++) {
                struct chunk_target at;
                struct book b;

                do {
                    b.anchor = t + 20 * MS + (ns_t)(rnd() * 50e6);
                    b.end = b.anchor + ROWS * STEP;
                } while (!clear(&w, &b, b.anchor));
                t = b.anchor;
                w.book[w.n++] = b;
                struct side l = before(&w, t);
                assert_int_equal(push(&w, t, ROWS, t), CHUNK_USED);
                struct side r = after(&w, t, &at);
                for (int j = 0; j < JOINTS && l.there; j++) {
                    assert_true(fabs(at.seam[j] - fabs(r.pos[j] - l.pos[j])) <= ZERO);
                    assert_true(fabs(at.seam_vel[j] - fabs(r.vel[j] - l.vel[j])) <= 2e-3);
                    assert_true(at.seam[j] <= apart(&w) + ZERO);
                }
            }
            chunks_free(w.q);
        }
}

// The seam belongs to the tick in which the chunk came into view, and to no other.
static void only_in_its_own_tick(void **state)
{
    (void)state;
    struct world w;
    struct chunk_target at;

    world_start(&w, CHUNK_REPLACE, CHUNK_LINEAR, 0);
    push(&w, 0, ROWS, 0);
    w.n++;
    assert_true(sample(&w, 0, &at) && at.seam_max == 0); // the first one follows nothing
    push(&w, 10 * MS, ROWS, 50 * MS);
    w.n++;
    assert_true(sample(&w, 50 * MS, &at) && at.seam_max > 0);
    struct chunk_target again;
    assert_true(sample(&w, 50 * MS, &again));
    assert_memory_equal(&at, &again, sizeof at);
    assert_true(sample(&w, 50 * MS + 1, &at) && at.seam_max == 0 && at.seam_vel[0] == 0);
    push(&w, 60 * MS, ROWS,
         70 * MS); // two in one tick: one seam, from what was before both
    w.n++;
    push(&w, 61 * MS, ROWS, 70 * MS);
    w.n++;
    assert_true(sample(&w, 70 * MS, &at) && at.seam_max > 0);
    push(&w, 80 * MS, ROWS, 90 * MS);
    w.n++;
    assert_int_equal(chunks_begin(w.q, 90 * MS), 0);
    assert_true(sample(&w, 90 * MS, &at) &&
                at.seam_max == 0); // starts at rest in its row 0
    push(&w, 100 * MS, ROWS, 110 * MS);
    chunks_clear(w.q);
    push(&w, 105 * MS, ROWS, 110 * MS);
    assert_true(sample(&w, 110 * MS, &at) && at.seam_max == 0);
    chunks_free(w.q);
}

// A plan that was replaced whole does not come back when the newer one ends first.
static void does_not_go_back_to_an_older_plan(void **state)
{
    (void)state;
    static const enum chunk_mode whole[] = {CHUNK_REPLACE, CHUNK_LATEST_ONLY,
                                            CHUNK_CROSSFADE};

    for (size_t m = 0; m < 3; m++) {
        struct world w;
        struct chunk_target at;

        world_start(&w, whole[m], CHUNK_LINEAR, 0);
        push(&w, 0, ROWS, 0);
        w.n++;
        assert_true(sample(&w, 0, &at));
        push(&w, 10 * MS, 5, 20 * MS); // until 110 ms; the first one goes on to 400 ms
        assert_true(sample(&w, 20 * MS, &at));
        assert_true(sample(&w, 110 * MS - 1, &at) && at.newest_id == 2);
        assert_int_equal(chunks_target(w.q, 110 * MS, &at), -ENODATA);
        assert_int_equal(chunks_target(w.q, 300 * MS, &at), -ENODATA);
        chunks_free(w.q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mode_keeps_its_bounds),
        cmocka_unit_test(and_where_age_ends_a_chunk),
        cmocka_unit_test(what_gives_way_is_in_the_number),
        cmocka_unit_test(only_in_its_own_tick),
        cmocka_unit_test(does_not_go_back_to_an_older_plan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
