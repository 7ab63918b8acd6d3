// Seams: how far the blended target jumps when chunks come and go, in every mode with
// every interpolation. The jump is measured from outside: the target is sampled every 0.1
// us around the event, and what lies before it is continued to the event by a parabola.
// The bounds come from this file's own books of what is in view; nothing here looks
// inside chunks.
#include "tests/unit/seam_scene.h"

// ---- bounds ---------------------------------------------------------------------------

// The most that the slopes of two chunks differ in. (That of Catmull-Rom through rows in
// ±D/2 is at most 1.75 D a step.)
static double apart_vel(const struct world *w)
{
    static const double per_step[] = {
        [CHUNK_HOLD] = 0, [CHUNK_LINEAR] = 2 * D, [CHUNK_CUBIC] = 3.5 * D};

    return per_step[w->cfg.interpolation] / (STEP * 1e-9);
}

// The part of each of the first n chunks in the target at t; they add up to 1. A fold of
// shares s: each leaves 1 - s of what was before it.
static void averages(const struct world *w, double s, int n, ns_t t, double *part)
{
    double old = 0;

    for (int i = 0; i < n; i++) {
        double p = presence(&w->book[i], t), mine;

        part[i] = 0;
        if (p == 0)
            continue;
        mine = old > 0 ? s * p / (s * p + (1 - s) * old) : 1;
        for (int k = 0; k < i; k++)
            part[k] *= 1 - mine;
        part[i] = mine;
        old = fmax(old, p);
    }
}

static void ensemble(const struct world *w, int n, ns_t t, double *part)
{
    double place = 0, sum = 0;

    for (int i = 0; i < n; i++) {
        double p = presence(&w->book[i], t);

        part[i] = p * exp(-w->cfg.ensemble_coeff * place);
        sum += part[i];
        place += p;
    }
    for (int i = 0; i < n; i++)
        part[i] /= sum;
}

static void parts(const struct world *w, int n, ns_t t, double *part)
{
    static const double s[] = {[CHUNK_WEIGHTED_AVERAGE] = 0.7,
                               [CHUNK_AVERAGE] = 0.5,
                               [CHUNK_CONSERVATIVE] = 0.3};

    if (w->cfg.mode == CHUNK_ENSEMBLE)
        ensemble(w, n, t, part);
    else
        averages(w, s[w->cfg.mode], n, t, part);
}

// How fast they change at t and just after it, 1/s.
static void slopes(const struct world *w, int n, ns_t t, double *slope)
{
    static double a[MOST], b[MOST], c[MOST];

    parts(w, n, t, a);
    parts(w, n, t + H, b);
    parts(w, n, t + 2 * H, c);
    for (int i = 0; i < n; i++)
        slope[i] = (-3 * a[i] + 4 * b[i] - c[i]) / (2 * H * 1e-9);
}

// The newest chunk's share as it comes into view at t.
static double share(const struct world *w, ns_t t)
{
    static double part[MOST];

    if (w->cfg.mode == CHUNK_CROSSFADE)
        return 0;
    if (w->cfg.mode == CHUNK_REPLACE || w->cfg.mode == CHUNK_LATEST_ONLY)
        return 1;
    parts(w, w->n, t, part);
    return part[w->n - 1];
}

// What of D a second is in the velocity's jump while shares move: with the share s of the
// newest one and the parts w of those before it, the target after is (1 - s) Σ w c + s
// c_new. Its slope less that of Σ w c is s (c_new' - Σ w c') + s' (c_new - Σ w c) - s Σ
// w' c; and since the w' add up to 0, that last sum is at most half of Σ |w'| times what
// two chunks differ in.
static double moving(const struct world *w, ns_t t)
{
    static double slope[MOST];
    double mine, others = 0;

    slopes(w, w->n, t, slope);
    mine = fabs(slope[w->n - 1]);
    slopes(w, w->n - 1, t, slope);
    for (int i = 0; i < w->n - 1; i++)
        others += fabs(slope[i]) / 2;
    return mine + share(w, t) * others;
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

// ---- events ---------------------------------------------------------------------------

static void check_arrival(struct world *w, const struct side *l, const struct side *r,
                          const struct chunk_target *at, ns_t t)
{
    double most = 0, s = share(w, t), bound = s * apart(w), bound_vel = s * apart_vel(w);
    bool whole = all_whole(w, t) || w->cfg.mode == CHUNK_REPLACE ||
                 w->cfg.mode == CHUNK_LATEST_ONLY || w->cfg.mode == CHUNK_CROSSFADE;

    if (!whole)
        bound_vel += moving(w, t) * apart(w);

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
        assert_true(rad_s <= bound_vel + 2e-3 && at->seam_vel[j] <= bound_vel + 2e-3);
        w->worst_vel = fmax(w->worst_vel, rad_s);
        if (whole && bound_vel > 0)
            w->worst_part_vel = fmax(w->worst_part_vel, rad_s / bound_vel);
        if (!whole)
            w->worst_part_last = fmax(w->worst_part_last, rad_s / bound_vel);
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

// The next chunk comes into view at *t: most are some rows late, some wait for row 0.
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
        "%-16s %-6s  comes %3d: %.3f rad (%3.0f %% of its bound) %5.1f rad/s (%3.0f %%, "
        "last steps %3.0f %%)  goes %3d: %.0e rad\n",
        mode_name[w->cfg.mode], how[w->cfg.interpolation], w->arrivals, w->worst,
        100 * w->worst_part, w->worst_vel, 100 * w->worst_part_vel,
        100 * w->worst_part_last, w->departures, w->departed);
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
    if (mode >= CHUNK_ENSEMBLE && mode != CHUNK_LATEST_ONLY) // shares that move
        assert_true(w.worst_part_last > (interpolation == CHUNK_HOLD ? 0.8 : 0.3));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mode_keeps_its_bounds),
        cmocka_unit_test(and_where_age_ends_a_chunk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
