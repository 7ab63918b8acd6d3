// From one generation's chunks to the next one's, against a twin that is made of two queues that
// know one generation each and of a Bézier curve between them; and the promises of the header
// about the ends of the bridge and the way between.
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

#define MS     NS_PER_MS
#define ROWS   20
#define JOINTS 3 // the last one with blend = false
#define STEP   (20 * MS)
#define BRIDGE (150 * MS)
#define T0     (1000 * NS_PER_S)

static uint64_t seed = 1;
static double rnd(void) // [0, 1)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / (double)(UINT64_C(1) << 53);
}

static struct chunks_config config(enum chunk_mode mode, enum chunk_interpolation how)
{
    return (struct chunks_config){.mode = mode,
                                  .interpolation = how,
                                  .rows = ROWS,
                                  .joints = JOINTS,
                                  .capacity = 8,
                                  .step_ns = STEP,
                                  .fade_ns = 60 * MS,
                                  .bridge_ns = BRIDGE,
                                  .ensemble_coeff = 0.1,
                                  .blend = {true, true, false}};
}

static struct chunks *start(const struct chunks_config *cfg)
{
    struct chunks *q;

    assert_int_equal(chunks_init(&q, cfg), 0);
    return q;
}

// Rows around `middle`, all the same where spread is 0.
static struct chunk *make(uint64_t id, uint32_t generation, ns_t anchor, double middle,
                          double spread)
{
    struct chunk *c = calloc(1, chunk_bytes(ROWS, JOINTS));

    c->id = id;
    c->generation = generation;
    c->anchor_ns = c->oldest_ns = anchor;
    c->rows = ROWS;
    c->joints = JOINTS;
    for (int i = 0; i < ROWS * JOINTS; i++)
        c->row[i] = (float)(middle + spread * (rnd() - 0.5));
    return c;
}

static enum chunk_verdict push(struct chunks *q, struct chunk *c, ns_t now)
{
    enum chunk_verdict v = chunks_push(q, c, now);

    free(c);
    return v;
}

static struct chunk_target want(struct chunks *q, ns_t now)
{
    struct chunk_target t;

    assert_int_equal(chunks_target(q, now, &t), 0);
    return t;
}

static void close_to(double a, double b, double by)
{
    if (!(fabs(a - b) <= by))
        fail_msg("%.15g, not %.15g: %.3g apart", a, b, a - b);
}

// ---- the twin --------------------------------------------------------------------------------

struct twin {
    struct chunks_config cfg;
    struct chunks *both, *old, *new;
    bool crossed;
    ns_t from, length;
    double d[JOINTS], w[JOINTS]; // rad, rad/s
    double farthest;             // of its bound
    int from_old, from_command, compared;
};

// A cubic Bézier curve from d with slope w to 0 with slope 0 in T, by de Casteljau.
static double curve(double d, double w, double T, double x, double *slope)
{
    double p[4] = {d, d + w * T / 3, 0, 0};

    for (int n = 3; n > 1; n--)
        for (int i = 0; i < n; i++)
            p[i] += x * (p[i + 1] - p[i]);
    *slope = 3 * (p[1] - p[0]) / T;
    return p[0] + x * (p[1] - p[0]);
}

static void twin_start(struct twin *t, const struct chunks_config *cfg)
{
    memset(t, 0, sizeof *t);
    t->cfg = *cfg;
    t->both = start(cfg);
    t->old = start(cfg);
    t->new = start(cfg);
}

static void twin_end(struct twin *t)
{
    chunks_free(t->both);
    chunks_free(t->old);
    chunks_free(t->new);
}

// first: the chunk that the new generation begins with. What was commanded counts when the old
// queue has nothing.
static void cross(struct twin *t, const struct chunk *first, ns_t now, const double *pos,
                  const double *vel)
{
    struct chunk_target o, n = want(t->new, now);
    bool covered = chunks_target(t->old, now, &o) == 0;
    ns_t step = first->step_ns ? first->step_ns : t->cfg.step_ns;
    ns_t end = first->anchor_ns + first->rows * step;
    ns_t old = first->anchor_ns + t->cfg.max_age_ns + 1;

    if (t->cfg.max_age_ns > 0 && old < end)
        end = old;
    for (int j = 0; j < JOINTS; j++) {
        t->d[j] = (covered ? o.pos[j] : pos[j]) - n.pos[j];
        t->w[j] = (covered ? o.vel[j] : vel[j]) - n.vel[j];
        if (!t->cfg.blend[j])
            t->d[j] = t->w[j] = 0;
    }
    t->crossed = true;
    t->from = now;
    t->length = end - now < t->cfg.bridge_ns ? end - now : t->cfg.bridge_ns;
    t->from_old += covered;
    t->from_command += !covered;
}

// The new generation's target, and the curve on top of it while that lasts.
static void compare(struct twin *t, ns_t now, int rc, const struct chunk_target *got)
{
    struct chunk_target n;
    double T = (double)t->length / 1e9;
    bool on = now - t->from < t->length;

    assert_int_equal(rc, chunks_target(t->new, now, &n));
    if (rc !=
        0) { // too old, long after the bridge: which was cut to what its first one covers
        assert_false(on);
        return;
    }
    for (int j = 0; j < JOINTS; j++) {
        double slope = 0, x = on ? (double)(now - t->from) / (double)t->length : 0;
        double h = on ? curve(t->d[j], t->w[j], T, x, &slope) : 0;
        double most = fabs(t->d[j]) + 4.0 / 27 * fabs(t->w[j]) * T;
        double most_slope = 1.5 * fabs(t->d[j]) / T + fabs(t->w[j]);

        close_to(got->pos[j], n.pos[j] + h, 1e-12);
        close_to(got->vel[j], n.vel[j] + slope, 1e-9);
        assert_true(fabs(got->pos[j] - n.pos[j]) <= most + 1e-12);
        assert_true(fabs(got->vel[j] - n.vel[j]) <= most_slope + 1e-9);
        if (most > 0.01)
            t->farthest = fmax(t->farthest, fabs(got->pos[j] - n.pos[j]) / most);
    }
    assert_int_equal(got->generation, 2);
    assert_int_equal(got->newest_id, n.newest_id);
    assert_int_equal(got->blended, n.blended);
    t->compared++;
}

// At the very instant: as the old one would have gone on. A nanosecond before its end: the new
// one's, but for what a nanosecond is worth.
static void ends(struct twin *t, const struct chunk_target *at, const double *pos,
                 const double *vel)
{
    struct chunk_target o;
    bool covered = chunks_target(t->old, t->from, &o) == 0;
    double least = (double)t->length / 1e9;

    for (int j = 0; j < JOINTS && t->cfg.blend[j]; j++) {
        close_to(at->pos[j], covered ? o.pos[j] : pos[j], 1e-12);
        close_to(at->vel[j], covered ? o.vel[j] : vel[j], 1e-9);
        close_to(at->seam[j], 0, 1e-12);
        close_to(at->seam_vel[j], 0, 1e-9);
    }
    for (int j = 0; j < JOINTS; j++) {
        double slope, h = curve(t->d[j], t->w[j], least, 1 - 1e-9 / least, &slope);

        close_to(h, 0, 1e-9);
        close_to(slope, 0, 1e-3 / least);
    }
}

// One run: old chunks, then new ones whose first was captured `lag` before it is pushed (less
// than 0: its row 0 is yet to come), with rows of another length, while more of both arrive.
static void run(struct twin *t, ns_t lag, ns_t step, ns_t old_end)
{
    ns_t now = T0, change = T0 + 200 * MS + (ns_t)(rnd() * 30e6);
    struct chunk *first = NULL;
    uint64_t id = 0;
    double pos[JOINTS], vel[JOINTS];

    for (int i = 0; i < 130; i++, now += 5 * MS + (ns_t)(rnd() * 1000)) {
        bool old_turn = i % 20 == 0 && now < change && now < old_end;
        bool new_turn = now >= change && (first == NULL || i % 20 == 0);
        struct chunk_target got;
        int rc;

        for (int j = 0; j < JOINTS; j++)
            pos[j] = rnd() - 0.5, vel[j] = 4 * (rnd() - 0.5);
        chunks_commanded(t->both, pos, vel);
        if (old_turn) {
            struct chunk *c = make(++id, 1, now - 30 * MS, 0, 1);

            c->rows = old_end == INT64_MAX ? ROWS : 6; // over before the change

            assert_int_equal(chunks_push(t->old, c, now), CHUNK_USED);
            assert_int_equal(push(t->both, c, now), CHUNK_USED);
        }
        if (new_turn) {
            struct chunk *c = make(++id, 2, first ? now - 30 * MS : now - lag, 1, 1);

            c->step_ns = step;
            if (first == NULL || c->anchor_ns > first->anchor_ns) {
                assert_int_equal(chunks_push(t->new, c, now), CHUNK_USED);
                assert_int_equal(chunks_push(t->both, c, now), CHUNK_USED);
            }
            if (first == NULL)
                first = c;
            else
                free(c);
        }
        rc = chunks_target(t->both, now, &got);
        if (!t->crossed && first && now >= first->anchor_ns) {
            assert_int_equal(rc, 0);
            cross(t, first, now, pos, vel);
            ends(t, &got, pos, vel);
        }
        if (t->crossed) {
            compare(t, now, rc, &got);
            continue;
        }
        struct chunk_target o; // to the bit
        assert_int_equal(rc, chunks_target(t->old, now, &o));
        assert_memory_equal(&got, &o, sizeof o);
    }
    assert_true(t->crossed);
    free(first);
}

static void is_the_curve_between_two_queues(void **state)
{
    static const ns_t lag[] = {0, 30 * MS, 137 * MS, 250 * MS, -70 * MS};
    static const ns_t step[] = {0, STEP, 33333333, 50 * MS};
    static const ns_t age[] = {0, 290 * MS};
    static const ns_t old_end[] = {INT64_MAX, T0 + 1};
    double farthest = 0;
    int runs = 0, from_old = 0, from_command = 0, compared = 0;

    (void)state;
    for (int mode = 0; mode <= CHUNK_CONSERVATIVE; mode++)
        for (int how = 0; how <= CHUNK_CUBIC; how++)
            for (int v = 0; v < 5 * 4 * 2 * 2; v++) {
                struct chunks_config cfg =
                    config((enum chunk_mode)mode, (enum chunk_interpolation)how);
                struct twin t;

                cfg.max_age_ns = age[v / 20 % 2];
                twin_start(&t, &cfg);
                run(&t, lag[v % 5], step[v / 5 % 4], old_end[v / 40]);
                farthest = fmax(farthest, t.farthest);
                from_old += t.from_old;
                from_command += t.from_command;
                compared += t.compared;
                twin_end(&t);
                runs++;
            }
    printf(
        "%d runs, %d from the old target, %d from the command; %d ticks; farthest %.0f %% of "
        "its bound\n",
        runs, from_old, from_command, compared, 100 * farthest);
    assert_int_equal(runs, 1680);
    assert_true(from_old > 500 && from_command > 100 && compared > 50000);
    assert_true(farthest > 0.95 && farthest <= 1 + 1e-9);
}

// ---- one by one ------------------------------------------------------------------------------

// A constant to another one: half way after half the time, with 1.5 times the mean speed there.
static void half_way(void **state)
{
    struct chunks_config cfg = config(CHUNK_REPLACE, CHUNK_CUBIC);
    struct chunks *q = start(&cfg);
    struct chunk_target t;

    (void)state;
    push(q, make(1, 1, T0, 0, 0), T0);
    assert_true(want(q, T0 + 50 * MS).pos[0] == 0);
    push(q, make(2, 2, T0 + 60 * MS, 1, 0), T0 + 100 * MS);
    t = want(q, T0 + 100 * MS);
    assert_true(t.pos[0] == 0 && t.vel[0] == 0 && t.seam_max == 0 && t.blended == 1);
    assert_true(t.pos[2] == 1 && t.seam[2] == 1); // as ever
    t = want(q, T0 + 175 * MS);
    close_to(t.pos[0], 0.5, 1e-12);
    close_to(t.vel[0], 1.5 / 0.15, 1e-9);
    t = want(q, T0 + 250 * MS);
    assert_true(t.pos[0] == 1 && t.vel[0] == 0);
    chunks_free(q);
}

static void generations_are_in_order(void **state)
{
    struct chunks_config cfg = config(CHUNK_REPLACE, CHUNK_LINEAR);
    struct chunks *q = start(&cfg);

    (void)state;
    assert_int_equal(push(q, make(1, 0, T0, 0, 0), T0), CHUNK_USED);
    // The number and the observation may be the same: it is another policy.
    assert_int_equal(push(q, make(1, 1, T0, 0, 0), T0), CHUNK_USED);
    assert_int_equal(push(q, make(2, 0, T0 + 1, 0, 0), T0 + 1), CHUNK_OUT_OF_ORDER);
    assert_int_equal(push(q, make(1, 1, T0 + 1, 0, 0), T0 + 1), CHUNK_OUT_OF_ORDER);
    assert_int_equal(push(q, make(2, 1, T0, 0, 0), T0 + 1), CHUNK_OUT_OF_ORDER);
    assert_int_equal(push(q, make(2, 1, T0 + 1, 0, 0), T0 + 1), CHUNK_USED);
    assert_int_equal(push(q, make(3, UINT32_MAX, T0 - 1, 0, 0), T0 + 1), CHUNK_USED);
    assert_int_equal(push(q, make(9, 2, T0 + 2, 0, 0), T0 + 2), CHUNK_OUT_OF_ORDER);
    chunks_clear(q);
    assert_int_equal(push(q, make(1, 0, T0, 0, 0), T0), CHUNK_USED);
    chunks_free(q);
}

// Before its row 0 it is not in view, and the old one drives; then nothing old comes back, not
// even where the old rows reach further.
static void old_ones_are_forgotten(void **state)
{
    struct chunks_config cfg = config(CHUNK_ENSEMBLE, CHUNK_LINEAR);
    struct chunks *q = start(&cfg);
    struct chunk *c = make(2, 2, T0 + 60 * MS, 1, 0);
    struct chunk_target t;

    (void)state;
    push(q, make(1, 1, T0, 0, 0), T0);
    c->rows = 5;
    push(q, c, T0 + 20 * MS);
    t = want(q, T0 + 59 * MS);
    assert_true(t.newest_id == 1 && t.generation == 1 && t.pos[0] == 0);
    t = want(q, T0 + 60 * MS);
    assert_true(t.newest_id == 2 && t.generation == 2 && t.blended == 1 && t.rows == 5);
    assert_true(t.pos[0] == 0);
    // The bridge is cut to its 5 rows.
    close_to(want(q, T0 + 110 * MS).pos[0], 0.5, 1e-12);
    close_to(want(q, T0 + 160 * MS - 1).pos[0], 1, 1e-9);
    assert_int_equal(chunks_target(q, T0 + 160 * MS, &t), -ENODATA);
    chunks_free(q);
}

// Another policy before the bridge to the last one is over: C1 at every change.
static void bridge_upon_bridge(void **state)
{
    struct chunks_config cfg = config(CHUNK_CROSSFADE, CHUNK_CUBIC);
    struct chunks *q = start(&cfg);
    double pos = 0, vel = 0;

    (void)state;
    push(q, make(1, 1, T0, 0, 0.2), T0);
    for (ns_t now = T0, g = 1; now < T0 + 20 * NS_PER_S; now += 50 * MS) {
        struct chunk_target t;

        if (now > T0) {
            g++;
            push(q, make((uint64_t)g, (uint32_t)g, now - 10 * MS, (double)(g % 3), 0.2),
                 now);
        }
        t = want(q, now);
        if (now > T0) {
            close_to(t.pos[0], pos, 1e-6); // a microsecond went by
            close_to(t.vel[0], vel, 1e-2);
            assert_true(t.seam[0] <= 1e-12 && t.seam_vel[0] <= 1e-9);
        }
        t = want(q, now + 50 * MS - 1);
        pos = t.pos[0];
        vel = t.vel[0];
    }
    chunks_free(q);
}

static void begins_at_the_command(void **state)
{
    static const double at[JOINTS] = {0.3, -0.4, 0}, v[JOINTS] = {0.5, 0, 0};
    struct chunks_config cfg = config(CHUNK_REPLACE, CHUNK_LINEAR);
    struct chunk_target t;

    (void)state;
    for (int told = 0; told < 2; told++) {
        struct chunks *q = start(&cfg);

        push(q, make(1, 1, T0, 0, 0), T0);
        want(q, T0);
        if (told)
            chunks_commanded(q, at, v);
        assert_int_equal(chunks_target(q, T0 + NS_PER_S, &t), -ENODATA);
        push(q, make(2, 2, T0 + NS_PER_S, 1, 0), T0 + NS_PER_S);
        t = want(q, T0 + NS_PER_S);
        close_to(t.pos[0], told ? 0.3 : 1, 1e-12);
        close_to(t.vel[0], told ? 0.5 : 0, 1e-12);
        close_to(t.pos[1], told ? -0.4 : 1, 1e-12);
        assert_true(t.pos[2] == 1);
        chunks_free(q);
    }
}

// Where nothing covers, the motion is over: what comes then is not bent towards it. Here a shorter
// chunk of the same policy replaces the first, and ends before the bridge does.
static void a_gap_ends_it(void **state)
{
    (void)state;
    for (int gap = 0; gap < 2; gap++) {
        struct chunks_config cfg = config(CHUNK_REPLACE, CHUNK_LINEAR);
        struct chunks *q;
        struct chunk *c;
        struct chunk_target t;

        cfg.bridge_ns = 300 * MS;
        q = start(&cfg);
        push(q, make(1, 1, T0, 0, 0), T0);
        want(q, T0);
        push(q, make(2, 2, T0 + 90 * MS, 1, 0), T0 + 100 * MS);
        assert_true(want(q, T0 + 100 * MS).pos[0] == 0);
        c = make(3, 2, T0 + 110 * MS, 1, 0);
        c->rows = 2;
        push(q, c, T0 + 110 * MS);
        close_to(want(q, T0 + 149 * MS).seam_max, 0, 1e-12);
        if (gap)
            assert_int_equal(chunks_target(q, T0 + 150 * MS, &t), -ENODATA);
        push(q, make(4, 2, T0 + 160 * MS, 1, 0), T0 + 170 * MS);
        t = want(q, T0 + 250 * MS); // in the middle of the bridge
        close_to(t.pos[0], gap ? 1 : 0.5, 1e-12);
        chunks_free(q);
    }
}

static void no_bridge_is_a_jump(void **state)
{
    struct chunks_config cfg = config(CHUNK_AVERAGE, CHUNK_LINEAR);
    struct chunks *q;
    struct chunk_target t;

    (void)state;
    cfg.bridge_ns = 0;
    q = start(&cfg);
    push(q, make(1, 1, T0, 0, 0), T0);
    want(q, T0);
    push(q, make(2, 2, T0 + 10 * MS, 1, 0), T0 + 10 * MS);
    t = want(q, T0 + 10 * MS);
    assert_true(t.pos[0] == 1 && t.seam[0] == 1 && t.seam_max == 1 && t.blended == 1);
    chunks_free(q);
}

// The old motion runs towards the limit, the bridge may not carry on beyond it.
static void is_cut_at_the_hard_range(void **state)
{
    (void)state;
    for (int side = -1; side <= 1; side += 2) {
        struct chunks_config cfg = config(CHUNK_REPLACE, CHUNK_CUBIC);
        struct chunk *c;
        struct chunks *q;
        int cut = 0;

        cfg.bridge_ns = 400 * MS;
        for (int j = 0; j < JOINTS; j++)
            cfg.hard_min[j] = -1, cfg.hard_max[j] = 1;
        q = start(&cfg);
        c = make(1, 1, T0, 0, 0);
        for (int k = 0; k < ROWS; k++)
            for (int j = 0; j < JOINTS; j++)
                c->row[k * JOINTS + j] = (float)(side * k / (double)(ROWS - 1));
        push(q, c, T0);
        want(q, T0); // and at 350 ms at 0.92, with 2.6 rad/s
        push(q, make(2, 2, T0 + 350 * MS, side * 0.95, 0), T0 + 350 * MS);
        for (ns_t now = T0 + 350 * MS; now < T0 + 600 * MS; now += MS) {
            struct chunk_target t = want(q, now);

            assert_true(fabs(t.pos[0]) <= 1);
            if (t.pos[0] == side) {
                assert_true(t.vel[0] == 0);
                cut++;
            }
        }
        assert_true(cut > 10);
        chunks_free(q);
    }
}

// What is beyond the range by the chunk's own doing is left to whoever judges targets.
static void does_not_hide_the_new_ones_fault(void **state)
{
    struct chunks_config cfg = config(CHUNK_REPLACE, CHUNK_CUBIC);
    struct chunk *c = make(2, 2, T0 + 100 * MS, 0, 0);
    struct chunks *q;
    double most = 0;

    (void)state;
    cfg.hard_min[0] = -1;
    cfg.hard_max[0] = 1;
    q = start(&cfg);
    push(q, make(1, 1, T0, 1, 0), T0);
    want(q, T0);
    for (int k = 0; k < ROWS; k++) // a cubic through them leaves the range in between
        c->row[k * JOINTS] = k % 4 < 2 ? 1 : -1;
    push(q, c, T0 + 100 * MS);
    for (ns_t now = T0 + 100 * MS; now < T0 + 400 * MS; now += MS)
        most = fmax(most, fabs(want(q, now).pos[0]));
    assert_true(most > 1.1 && most <= 1.25);
    chunks_free(q);
    // Nor is it cut where it leads back inside.
    struct chunks *free_one;
    cfg.bridge_ns = 180 * MS; // ends on a crest
    cfg.hard_min[0] = cfg.hard_max[0] = 0;
    free_one = start(&cfg);
    cfg.hard_min[0] = -1;
    cfg.hard_max[0] = 1;
    q = start(&cfg);
    for (int i = 0; i < 2; i++) {
        struct chunks *one = i ? free_one : q;

        push(one, make(1, 1, T0, -1, 0), T0);
        want(one, T0);
        c = make(2, 2, T0 + 100 * MS, 0, 0);
        for (int k = 0; k < ROWS; k++)
            c->row[k * JOINTS] = k % 4 < 2 ? 1 : -1;
        push(one, c, T0 + 100 * MS);
    }
    for (ns_t now = T0 + 100 * MS; now < T0 + 300 * MS; now += MS) {
        struct chunk_target a = want(q, now), b = want(free_one, now);

        assert_true(a.pos[0] == b.pos[0] || b.pos[0] < -1 || b.pos[0] > 1.25);
        assert_true(a.vel[0] == b.vel[0] || b.pos[0] < -1 || b.pos[0] > 1.25);
    }
    chunks_free(free_one);
    chunks_free(q);
}

// Before anything is executed there is nothing to come from.
static void begins_with_the_newest_generation(void **state)
{
    struct chunks_config cfg = config(CHUNK_ENSEMBLE, CHUNK_LINEAR);
    struct chunks *q = start(&cfg);
    struct chunk_target t;

    (void)state;
    push(q, make(1, 1, T0, 0, 0), T0);
    assert_int_equal(chunks_first(q, T0, &t), 0);
    assert_true(t.generation == 1 && t.rows == ROWS && t.step_ns == STEP);
    push(q, make(2, 2, T0 + 1, 1, 0), T0 + 10 * MS);
    assert_int_equal(chunks_first(q, T0 + 10 * MS, &t), 0);
    assert_true(t.generation == 2 && t.pos[0] == 1);
    close_to(want(q, T0 + 5 * MS).pos[0], 1,
             0); // the first in view: nothing to come from
    push(q, make(3, 3, T0 + 2, 4, 0), T0 + 10 * MS);
    assert_true(want(q, T0 + 10 * MS).pos[0] ==
                1); // a bridge, which execution does not use
    assert_int_equal(chunks_begin(q, T0 + 10 * MS), 0);
    t = want(q, T0 + 10 * MS);
    assert_true(t.generation == 3 && t.pos[0] == 4 && t.blended == 1 && t.row == 0);
    // And the next one of its own comes as ever.
    push(q, make(4, 3, T0 + 15 * MS, 2, 0), T0 + 20 * MS);
    assert_int_equal(want(q, T0 + 20 * MS).blended, 2);
    chunks_free(q);
}

// Two of the new one and one of the old in one tick: the old one is never in view, the bridge leads
// to the blend of the two.
static void several_at_once(void **state)
{
    struct chunks_config cfg = config(CHUNK_AVERAGE, CHUNK_LINEAR);
    struct chunks *q = start(&cfg);
    struct chunk_target t;

    (void)state;
    push(q, make(1, 1, T0, 0, 0), T0);
    want(q, T0);
    push(q, make(2, 1, T0 + 1, 9, 0), T0 + 20 * MS);
    push(q, make(3, 2, T0 + 2, 1, 0), T0 + 20 * MS);
    push(q, make(4, 2, T0 + 3, 3, 0), T0 + 20 * MS);
    t = want(q, T0 + 20 * MS);
    assert_true(t.blended == 2 && t.newest_id == 4 && t.seam_max == 0 && t.pos[0] == 0);
    close_to(want(q, T0 + 95 * MS).pos[0], 1, 1e-12); // half way to 2
    close_to(want(q, T0 + 170 * MS).pos[0], 2, 1e-12);
    chunks_free(q);
}

// ---- a step of their own ---------------------------------------------------------------------

static void rows_last_as_long_as_the_chunk_says(void **state)
{
    struct chunks_config cfg = config(CHUNK_REPLACE, CHUNK_LINEAR);
    struct chunks *q = start(&cfg);
    struct chunk *c = make(1, 1, T0, 0, 0);
    struct chunk_target t;

    (void)state;
    c->step_ns = 50 * MS;
    for (int k = 0; k < ROWS; k++)
        c->row[k * JOINTS] = (float)k;
    assert_int_equal(push(q, c, T0 + 600 * MS),
                     CHUNK_USED); // over after 400 ms otherwise
    t = want(q, T0 + 625 * MS);
    assert_true(t.pos[0] == 12.5 && t.row == 12.5 && t.step_ns == 50 * MS);
    close_to(t.vel[0], 20, 1e-9);
    close_to(chunks_remaining(q, T0 + 625 * MS), 7.5, 1e-12);
    assert_true(want(q, T0 + NS_PER_S - 1).pos[0] == ROWS - 1);
    assert_int_equal(chunks_target(q, T0 + NS_PER_S, &t), -ENODATA);
    c = make(2, 1, T0 + 1, 0, 0);
    c->step_ns = 50 * MS;
    assert_int_equal(push(q, c, T0 + 1 + NS_PER_S), CHUNK_LATE);
    c = make(2, 1, T0 + 1, 0, 0);
    c->step_ns = 50 * MS;
    assert_int_equal(push(q, c, T0 + NS_PER_S), CHUNK_USED);
    chunks_free(q);
}

static void steps_that_can_not_be(void **state)
{
    struct chunks_config cfg = config(CHUNK_REPLACE, CHUNK_LINEAR);
    static const ns_t step[] = {-1, INT64_MIN, CHUNKS_STEP_MOST + 1, INT64_MAX};
    struct chunks *q = start(&cfg);
    struct chunk *c;

    (void)state;
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) {
        c = make(1, 1, T0, 0, 0);
        c->step_ns = step[i];
        assert_int_equal(push(q, c, T0), CHUNK_WRONG_SHAPE);
    }
    c = make(1, 1, T0, 0, 0);
    c->step_ns = CHUNKS_STEP_MOST;
    assert_int_equal(push(q, c, T0), CHUNK_USED);
    chunks_free(q);
    cfg.step_ns = CHUNKS_STEP_MOST + 1;
    assert_int_equal(chunks_init(&q, &cfg), -EINVAL);
    cfg.step_ns = STEP;
    cfg.bridge_ns = -1;
    assert_int_equal(chunks_init(&q, &cfg), -EINVAL);
}

// own_age: max_age_ns is only what an ordinary chunk lasts.
static void age_is_each_ones_own(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        struct chunks_config cfg = config(CHUNK_REPLACE, CHUNK_LINEAR);
        struct chunk *c = make(1, 1, T0, 0, 0);
        struct chunk_target t;
        struct chunks *q;

        cfg.max_age_ns = ROWS * STEP;
        cfg.own_age = own;
        q = start(&cfg);
        c->step_ns = 50 * MS;
        assert_int_equal(push(q, c, T0), CHUNK_USED);
        assert_int_equal(chunks_target(q, T0 + ROWS * STEP, &t), 0);
        assert_int_equal(chunks_target(q, T0 + ROWS * STEP + 1, &t), own ? 0 : -ESTALE);
        chunks_free(q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_curve_between_two_queues),
        cmocka_unit_test(half_way),
        cmocka_unit_test(generations_are_in_order),
        cmocka_unit_test(old_ones_are_forgotten),
        cmocka_unit_test(bridge_upon_bridge),
        cmocka_unit_test(begins_at_the_command),
        cmocka_unit_test(a_gap_ends_it),
        cmocka_unit_test(no_bridge_is_a_jump),
        cmocka_unit_test(is_cut_at_the_hard_range),
        cmocka_unit_test(does_not_hide_the_new_ones_fault),
        cmocka_unit_test(begins_with_the_newest_generation),
        cmocka_unit_test(several_at_once),
        cmocka_unit_test(rows_last_as_long_as_the_chunk_says),
        cmocka_unit_test(steps_that_can_not_be),
        cmocka_unit_test(age_is_each_ones_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
