// chunks: against independent twins of LeRobot's queue, ensembler and async client, and against
// what the header promises about time, ends, seams and smoothness.
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

#define MS NS_PER_MS

static uint32_t seed = 12345;
static float rnd(void) // [-1, 1)
{
    seed = seed * 1664525u + 1013904223u;
    return (float)((double)(seed >> 8) / (1 << 23) - 1);
}

static struct chunk *make(uint64_t id, ns_t anchor, int rows, int joints)
{
    struct chunk *c = calloc(1, chunk_bytes(rows, joints));

    c->id = id;
    c->anchor_ns = c->oldest_ns = anchor;
    c->rows = rows;
    c->joints = joints;
    return c;
}

static struct chunk *random_chunk(uint64_t id, ns_t anchor, int rows, int joints)
{
    struct chunk *c = make(id, anchor, rows, joints);

    for (int i = 0; i < rows * joints; i++)
        c->row[i] = rnd();
    return c;
}

// Row k of joint j is a line: offset + slope * k.
static struct chunk *line(uint64_t id, ns_t anchor, int rows, double offset, double slope)
{
    struct chunk *c = make(id, anchor, rows, 1);

    for (int k = 0; k < rows; k++)
        c->row[k] = (float)(offset + slope * k);
    return c;
}

static struct chunks_config config(enum chunk_mode mode, int rows, int joints, ns_t step)
{
    struct chunks_config cfg = {.mode = mode,
                                .interpolation = CHUNK_LINEAR,
                                .rows = rows,
                                .joints = joints,
                                .capacity = 16,
                                .step_ns = step,
                                .fade_ns = 60 * MS,
                                .ensemble_coeff = 0.01};

    for (int i = 0; i < ACTD_MAX_JOINTS; i++)
        cfg.blend[i] = true;
    return cfg;
}

static struct chunks *start(const struct chunks_config *cfg)
{
    struct chunks *q;

    assert_int_equal(chunks_init(&q, cfg), 0);
    return q;
}

static enum chunk_verdict push(struct chunks *q, struct chunk *c, ns_t now)
{
    enum chunk_verdict v = chunks_push(q, c, now);

    free(c);
    return v;
}

static double value(struct chunks *q, ns_t now)
{
    struct chunk_target t;

    assert_int_equal(chunks_target(q, now, &t), 0);
    return t.pos[0];
}

// ---- 300 ticks of select_action at the policy rate ------------------------------------------
#define TICKS 300
#define C     100
#define A     7

// The online form: E holds one averaged action per future step, n how many went into it.
struct ensembler {
    float e[C][A], w[C], cum[C];
    int n[C], filled;
};

static void ensembler_start(struct ensembler *t, double coeff)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < C; i++) {
        t->w[i] = (float)exp(-coeff * i);
        t->cum[i] = t->w[i] + (i > 0 ? t->cum[i - 1] : 0);
    }
}

static void ensembler_update(struct ensembler *t, const float *chunk, float *action)
{
    for (int i = 0; i < C; i++) {
        int n = i < t->filled ? t->n[i] : 0;

        for (int j = 0; j < A; j++)
            t->e[i][j] = n == 0
                             ? chunk[i * A + j]
                             : (t->e[i][j] * t->cum[n - 1] + chunk[i * A + j] * t->w[n]) /
                                   t->cum[n];
        t->n[i] = n + 1 < C ? n + 1 : C;
    }
    memcpy(action, t->e[0], sizeof t->e[0]);
    memmove(t->e, t->e + 1, sizeof t->e - sizeof t->e[0]);
    memmove(t->n, t->n + 1, sizeof t->n - sizeof t->n[0]);
    t->filled = C - 1;
}

static void ensemble_300(double coeff, ns_t step, enum chunk_interpolation how)
{
    struct chunks_config cfg = config(CHUNK_ENSEMBLE, C, A, step);
    struct ensembler twin;
    ns_t t0 = 987654321;
    double worst = 0;

    cfg.capacity = C + 1;
    cfg.ensemble_coeff = coeff;
    cfg.interpolation = how;
    struct chunks *q = start(&cfg);
    ensembler_start(&twin, coeff);
    for (int k = 0; k < TICKS; k++) {
        ns_t now = t0 + k * step;
        struct chunk *c = random_chunk((uint64_t)k + 1, now, C, A);
        struct chunk_target t;
        float want[A];

        ensembler_update(&twin, c->row, want);
        assert_int_equal(push(q, c, now), CHUNK_USED);
        assert_int_equal(chunks_target(q, now, &t), 0);
        assert_int_equal(t.blended, k < C ? k + 1 : C);
        for (int j = 0; j < A; j++)
            worst = fmax(worst, fabs(t.pos[j] - (double)want[j]));
    }
    chunks_free(q);
    assert_true(worst <= 1e-5);
}

static void equals_the_ensembler(void **state)
{
    (void)state;
    static const double coeff[] = {0.01, 0, -0.1, 0.1};

    for (size_t i = 0; i < 4; i++) {
        ensemble_300(coeff[i], 20 * MS, CHUNK_LINEAR);
        ensemble_300(coeff[i], 33333333, CHUNK_CUBIC);
    }
}

static void equals_the_queue(void **state)
{
    (void)state;
    static const int steps[] = {1, 8, 50, C};

    for (size_t s = 0; s < 4; s++) {
        int n = steps[s];
        struct chunks_config cfg = config(CHUNK_REPLACE, n, A, 33333333);
        struct chunks *q = start(&cfg);
        float queue[C * A] = {0};

        for (int k = 0; k < TICKS; k++) {
            ns_t now = 5 + k * cfg.step_ns;
            struct chunk_target t;

            if (k % n == 0) { // the queue is empty: infer in this tick
                struct chunk *c = random_chunk((uint64_t)k + 1, now, C, A);

                memcpy(queue, c->row, sizeof queue);
                assert_int_equal(push(q, c, now), CHUNK_USED);
            }
            assert_int_equal(chunks_target(q, now, &t), 0);
            for (int j = 0; j < A; j++) // to the bit
                assert_true(t.pos[j] == (double)queue[(k % n) * A + j]);
        }
        chunks_free(q);
    }
}

// LeRobot's async client: what is queued and comes again is mixed old and new, in place.
static void equals_the_async_client(void **state)
{
    (void)state;
    static const struct {
        enum chunk_mode mode;
        double share;
    } family[] = {{CHUNK_WEIGHTED_AVERAGE, 0.7},
                  {CHUNK_LATEST_ONLY, 1},
                  {CHUNK_AVERAGE, 0.5},
                  {CHUNK_CONSERVATIVE, 0.3}};

    for (size_t f = 0; f < 4; f++) {
        struct chunks_config cfg = config(family[f].mode, 30, 1, 20 * MS);
        struct chunks *q = start(&cfg);
        double queue[400] = {0};
        int until = 0; // steps below this are queued

        for (int k = 0; k < 300; k++) {
            ns_t now = 1000 * MS + k * cfg.step_ns;
            struct chunk_target t;

            if (k % 12 == 0) { // observation 5 steps old: rows 0..4 are past
                int first = k >= 12 ? k - 5 : k;
                struct chunk *c =
                    random_chunk((uint64_t)k + 1, 1000 * MS + first * cfg.step_ns, 30, 1);

                for (int i = 0; i < 30; i++) {
                    double *old = &queue[first + i], new = (double)c->row[i];

                    *old =
                        first + i < until ? *old + family[f].share * (new - *old) : new;
                }
                until = first + 30;
                assert_int_equal(push(q, c, now), CHUNK_USED);
            }
            assert_int_equal(chunks_target(q, now, &t), 0);
            assert_true(fabs(t.pos[0] - queue[k]) < 1e-6);
        }
        chunks_free(q);
    }
}

// ---- time ------------------------------------------------------------------------------------

static void covers_its_rows_and_no_more(void **state)
{
    (void)state;
    struct chunks_config cfg = config(CHUNK_REPLACE, 4, 1, 20 * MS);
    struct chunks *q = start(&cfg);
    struct chunk_target t;

    assert_int_equal(chunks_target(q, 0, &t), -ENODATA);
    push(q, line(1, 100 * MS, 9, 1, 1), 130 * MS); // five rows are beyond the horizon
    assert_true(value(q, 130 * MS) == 2.5);        // row 1.5: row 0 was never in view
    assert_true(value(q, 160 * MS) == 4);
    assert_true(value(q, 179 * MS) == 4); // the last row is held for its step
    assert_true(value(q, 180 * MS - 1) == 4);
    assert_int_equal(chunks_target(q, 180 * MS, &t), -ENODATA);
    assert_int_equal(chunks_target(q, 10000 * MS, &t), -ENODATA);
    // An anchor that is still to come (a camera's clock ahead of ours) is waited for.
    push(q, line(2, 20000 * MS, 4, 1, 1), 19990 * MS);
    assert_int_equal(chunks_target(q, 20000 * MS - 1, &t), -ENODATA);
    assert_int_equal(chunks_first(q, 20000 * MS - 1, &t), -ENODATA);
    assert_int_equal(chunks_begin(q, 20000 * MS - 1), -ENODATA);
    assert_int_equal(chunks_begin(q, 20080 * MS), -ENODATA); // and over is over
    assert_true(value(q, 20000 * MS) == 1);
    chunks_free(q);
}

static void whole_steps_are_whole_rows(void **state)
{
    (void)state;
    struct chunks_config cfg = config(CHUNK_REPLACE, C, 1, 33333333);
    ns_t anchor = INT64_C(86400) * 30 * NS_PER_S + 7; // a month of uptime
    struct chunks *q = start(&cfg);

    push(q, line(1, anchor, C, 0, 1), anchor);
    for (int k = 0; k < C; k++) {
        struct chunk_target t;

        assert_int_equal(chunks_target(q, anchor + k * cfg.step_ns, &t), 0);
        assert_true(t.row == k && t.pos[0] == k);
    }
    chunks_free(q);
}

static void verdicts(void **state)
{
    (void)state;
    struct chunks_config cfg = config(CHUNK_REPLACE, 10, 1, 20 * MS);
    cfg.max_age_ns = 120 * MS;
    struct chunks *q = start(&cfg);
    struct chunk *bad = line(9, 900 * MS, 10, 0, 1), *wide = make(9, 900 * MS, 10, 2);
    struct chunk_target t;

    assert_int_equal(push(q, line(5, 800 * MS, 10, 0, 1), 850 * MS), CHUNK_USED);
    assert_int_equal(push(q, line(6, 800 * MS, 10, 0, 1), 850 * MS), CHUNK_OUT_OF_ORDER);
    assert_int_equal(push(q, line(4, 820 * MS, 10, 0, 1), 850 * MS), CHUNK_OUT_OF_ORDER);
    assert_int_equal(push(q, line(6, 790 * MS, 10, 0, 1), 850 * MS), CHUNK_OUT_OF_ORDER);
    assert_int_equal(push(q, line(7, 810 * MS, 10, 0, 1), 1010 * MS), CHUNK_LATE);
    assert_int_equal(push(q, line(7, 810 * MS, 10, 0, 1), 931 * MS), CHUNK_TOO_OLD);
    assert_int_equal(push(q, line(7, 810 * MS, 10, 0, 1), 930 * MS), CHUNK_USED);
    bad->row[9] = NAN;
    assert_int_equal(push(q, bad, 910 * MS), CHUNK_NOT_FINITE);
    assert_int_equal(push(q, wide, 910 * MS), CHUNK_WRONG_SHAPE);
    assert_int_equal(chunks_count(q, CHUNK_USED), 2);
    assert_int_equal(chunks_count(q, CHUNK_OUT_OF_ORDER), 3);
    // A chunk in use whose observation becomes too old is not acted on either.
    assert_int_equal(chunks_target(q, 930 * MS, &t), 0);
    assert_int_equal(chunks_target(q, 930 * MS + 1, &t), -ESTALE);
    assert_int_equal(chunks_target(q, 1010 * MS, &t), -ENODATA);
    chunks_free(q);
}

// One value in the rows that may be executed, of one joint, is enough to refuse the whole chunk.
static void beyond_the_hard_limits_is_refused_whole(void **state)
{
    (void)state;
    struct chunks_config cfg = config(CHUNK_REPLACE, 10, 3, 20 * MS);
    struct chunk_target t;
    uint64_t id = 1, refused = 0;

    cfg.hard_min[0] = -2;
    cfg.hard_max[0] = 1.5;
    cfg.hard_min[2] = -0.5;
    cfg.hard_max[2] = 0; // one of the two is 0: checked
    struct chunks *q = start(&cfg);
    assert_int_equal(chunks_culprit(q).joint, -1);
    assert_int_equal(push(q, make(id++, 0, 10, 3), 0), CHUNK_USED);
    for (int row = 0; row < 12; row++)
        for (int joint = 0; joint < 3; joint++)
            for (int side = 0; side < 4; side++, id++) {
                struct chunk *c = make(id, (ns_t)id * MS, 12, 3);
                double edge = side < 2 ? cfg.hard_min[joint] : cfg.hard_max[joint];
                float at = (float)edge, beyond = nextafterf(at, side < 2 ? -9e9f : 9e9f);
                bool bad = side % 2 && row < 10 && joint != 1;

                c->row[row * 3 + joint] = side % 2 ? beyond : at;
                enum chunk_verdict v = push(q, c, 150 * MS);
                assert_int_equal(v, bad ? CHUNK_OUT_OF_RANGE : CHUNK_USED);
                refused += bad;
                if (!bad)
                    continue;
                struct chunk_culprit who = chunks_culprit(q);
                assert_true(who.joint == joint && who.row == row);
                assert_true(who.value == (double)beyond);
                assert_int_equal(chunks_target(q, 150 * MS, &t),
                                 0); // the one before stays
                assert_int_equal(t.newest_id, id - 1);
            }
    assert_int_equal(chunks_count(q, CHUNK_OUT_OF_RANGE), refused);
    chunks_free(q);
    // Not checked where both are 0, and NaN has its own verdict.
    cfg = config(CHUNK_REPLACE, 10, 1, 20 * MS);
    q = start(&cfg);
    assert_int_equal(push(q, line(1, 0, 10, 1e9, 1), 0), CHUNK_USED);
    assert_int_equal(push(q, line(2, MS, 10, NAN, 1), MS), CHUNK_NOT_FINITE);
    assert_true(chunks_culprit(q).row == 0 && isnan(chunks_culprit(q).value));
    chunks_free(q);
}

static void cold_start_skips_nothing(void **state)
{
    (void)state;
    struct chunks_config cfg = config(CHUNK_CROSSFADE, 50, 1, 20 * MS);
    struct chunks *q = start(&cfg);
    struct chunk_target t;

    assert_int_equal(chunks_begin(q, 0), -ENODATA);
    assert_int_equal(chunks_first(q, 0, &t), -ENODATA);
    push(q, line(1, 1000 * MS, 50, 5, 1), 1050 * MS);
    push(q, line(2, 1100 * MS, 50, 7, 1), 1300 * MS);
    assert_int_equal(chunks_first(q, 1500 * MS, &t), 0);
    assert_true(t.pos[0] == 7 && t.newest_id == 2 && t.vel[0] == 0);
    assert_int_equal(chunks_begin(q, 1500 * MS), 0);
    assert_int_equal(chunks_target(q, 1500 * MS, &t), 0);
    assert_true(t.pos[0] == 7 && t.row == 0 && t.blended == 1 && t.seam_max == 0);
    assert_true(value(q, 1520 * MS) == 8);
    // The next chunk has its own true anchor; order is by observation, not by re-anchoring.
    assert_int_equal(push(q, line(3, 1400 * MS, 50, 0, 1), 1600 * MS), CHUNK_USED);
    assert_true(value(q, 1600 * MS) == 12); // continuous: still the old one
    assert_true(value(q, 1700 * MS) == 15); // row 15 of the new one
    // Rows go on, but not past the observation's age: 1100 ms + 50 rows.
    chunks_clear(q);
    push(q, line(1, 1100 * MS, 50, 7, 1), 2000 * MS);
    assert_int_equal(chunks_begin(q, 2000 * MS), 0);
    assert_int_equal(chunks_target(q, 2100 * MS, &t), 0);
    assert_int_equal(chunks_target(q, 2100 * MS + 1, &t), -ESTALE);
    chunks_free(q);
}

// ---- smoothness ------------------------------------------------------------------------------

// Largest step of the target in 0.1 ms, over random arrivals of flat chunks up to 2 apart.
static double roughness(enum chunk_mode mode, double *seam)
{
    struct chunks_config cfg = config(mode, 20, 1, 20 * MS);
    ns_t tick = MS / 10, t0 = 3 * NS_PER_S;
    double before = NAN, worst = 0;
    uint64_t id = 0;

    cfg.capacity = 32;
    struct chunks *q = start(&cfg);
    *seam = 0;
    for (int k = 0; k < 200000; k++) {
        ns_t now = t0 + k * tick;
        struct chunk_target t;

        if (k == 0 || (rnd() + 1) / 2 < 0.0012f || (k % 2000) == 0)
            push(q, line(++id, now - (k ? 45 * MS : 0), 20, (double)rnd(), 0), now);
        if (chunks_target(q, now, &t) != 0) {
            before = NAN;
            continue;
        }
        if (!isnan(before))
            worst = fmax(worst, fabs(t.pos[0] - before));
        *seam = fmax(*seam, t.seam_max);
        before = t.pos[0];
    }
    chunks_free(q);
    return worst;
}

static void crossfade_is_continuous(void **state)
{
    (void)state;
    double seam, step = roughness(CHUNK_CROSSFADE, &seam);

    // One fade over a difference of 2 moves 1.5 * 2 / 60 ms: 0.005 in 0.1 ms; a few at once
    // a little more. A jump would be of the order of 1.
    assert_true(seam == 0);
    printf("crossfade: largest step %.3f\n", step);
    assert_true(step < 0.01);
    step = roughness(CHUNK_REPLACE, &seam);
    printf("replace: largest step %.3f, seam %.3f\n", step, seam);
    assert_true(seam > 0.5 && step > 0.5);
}

static void crossfade_by_hand(void **state)
{
    (void)state;
    struct chunks_config cfg = config(CHUNK_CROSSFADE, 10, 1, 20 * MS);
    struct chunks *q = start(&cfg);
    struct chunk_target t;

    push(q, line(1, 0, 10, 1, 0), 0);
    push(q, line(2, 50 * MS, 10, 2, 0), 100 * MS);
    assert_true(value(q, 100 * MS) == 1);
    assert_int_equal(chunks_target(q, 130 * MS, &t), 0); // half of the 60 ms
    assert_true(fabs(t.pos[0] - 1.5) < 1e-12 && t.blended == 2);
    assert_true(fabs(t.vel[0] - 1.5 / 0.06) < 1e-9); // 6 x (1 - x) / fade at x = 1/2
    push(q, line(3, 110 * MS, 10, 5, 0), 130 * MS);  // while the first fade goes on
    assert_true(fabs(value(q, 130 * MS) - 1.5) < 1e-12);
    assert_int_equal(chunks_target(q, 190 * MS, &t), 0);
    assert_true(t.pos[0] == 5 && t.blended == 1);
    // The old one covers 10 ms more: the fade is that long and no longer.
    chunks_clear(q);
    push(q, line(1, 0, 10, 1, 0), 0);
    push(q, line(2, 150 * MS, 10, 2, 0), 190 * MS);
    assert_true(value(q, 190 * MS) == 1);
    assert_true(fabs(value(q, 195 * MS) - 1.5) < 1e-12);
    assert_true(fabs(value(q, 200 * MS - 1) - 2) < 1e-9);
    assert_true(value(q, 200 * MS) == 2);
    chunks_free(q);
}

// At a control rate above the policy rate the end of a chunk is not a step.
static void leaves_smoothly(enum chunk_mode mode, double whole)
{
    struct chunks_config cfg = config(mode, 5, 1, 20 * MS);
    double before = NAN, slope = 0;
    struct chunks *q = start(&cfg);

    push(q, line(1, 0, 5, 1, 0), 0);
    push(q, line(2, 40 * MS, 5, 2, 0), 40 * MS);
    push(q, line(3, 60 * MS, 5, 4, 0), 60 * MS);
    assert_true(fabs(value(q, 80 * MS) - whole) < 1e-12); // as its last step starts
    for (ns_t now = 60 * MS; now < 160 * MS; now += MS / 10) {
        struct chunk_target t;

        assert_int_equal(chunks_target(q, now, &t), 0);
        if (!isnan(before)) {
            assert_true(fabs(t.pos[0] - before) < 0.03);
            if (now % (20 * MS) > MS / 10) // the slope it tells is the slope it has
                assert_true(fabs((t.pos[0] - before) / 1e-4 - (t.vel[0] + slope) / 2) <
                            0.05);
        }
        before = t.pos[0];
        slope = t.vel[0];
    }
    chunks_free(q);
}

static void members_leave_smoothly(void **state)
{
    (void)state;
    double w1 = exp(-0.01), w2 = exp(-0.02);

    leaves_smoothly(CHUNK_ENSEMBLE, (1 + 2 * w1 + 4 * w2) / (1 + w1 + w2));
    leaves_smoothly(CHUNK_AVERAGE, 2.75);
    leaves_smoothly(CHUNK_WEIGHTED_AVERAGE, 3.31);
    leaves_smoothly(CHUNK_CONSERVATIVE, 2.11);
}

static void interpolations(void **state)
{
    (void)state;
    struct chunks_config cfg = config(CHUNK_REPLACE, 8, 1, 20 * MS);
    struct chunk *c = random_chunk(1, 0, 8, 1);

    for (int how = CHUNK_HOLD; how <= CHUNK_CUBIC; how++) {
        double p0 = NAN;

        cfg.interpolation = (enum chunk_interpolation)how;
        struct chunks *q = start(&cfg);
        assert_int_equal(chunks_push(q, c, 0), CHUNK_USED);
        for (ns_t now = 0; now < 140 * MS; now += MS / 10) {
            struct chunk_target t;
            ns_t k = now / (20 * MS), part = now % (20 * MS);

            assert_int_equal(chunks_target(q, now, &t), 0);
            if (part == 0)
                assert_true(t.pos[0] == (double)c->row[k]);
            if (how == CHUNK_HOLD)
                assert_true(t.pos[0] == (double)c->row[k] && t.vel[0] == 0);
            if (how != CHUNK_HOLD && !isnan(p0))
                assert_true(fabs(t.pos[0] - p0) < 0.03); // C0
            if (how == CHUNK_LINEAR)                     // one slope per step
                assert_true(fabs(t.vel[0] - (double)(c->row[k + 1] - c->row[k]) / 0.02) <
                            1e-4);
            p0 = t.pos[0];
        }
        for (ns_t now = 140 * MS; now < 160 * MS; now += MS) { // held, and says so
            struct chunk_target t;

            assert_int_equal(chunks_target(q, now, &t), 0);
            assert_true(t.pos[0] == (double)c->row[7] && t.vel[0] == 0);
        }
        chunks_free(q);
    }
    free(c);
}

// 200 random chunks, every 10 us from the first row to the end of the last, held one. With rows
// in [-1, 1] the second derivative is at most 22 per row^2 (|6 d| + |4 m0| + |2 m1|, d and a
// one-sided m0 <= 2, m1 <= 1): 0.55 rad/s in 10 us at 20 ms a row. Rows far beyond the horizon
// are wild and must not be felt.
static void cubic_is_smooth_to_its_end(void **state)
{
    (void)state;
    struct chunks_config cfg = config(CHUNK_REPLACE, 8, 1, 20 * MS);
    const double dt = 1e-5;
    double jump = 0, wrong = 0;

    cfg.interpolation = CHUNK_CUBIC;
    for (int n = 0; n < 200; n++) {
        struct chunk *c = random_chunk(1, 0, 12, 1);
        struct chunk_target t, before;

        cfg.rows = 1 + n % 12;
        for (int k = cfg.rows; k < 12; k++)
            c->row[k] *= 1e6f;
        struct chunks *q = start(&cfg);
        assert_int_equal(push(q, c, 0), CHUNK_USED);
        assert_int_equal(chunks_target(q, 0, &before), 0);
        for (ns_t now = MS / 100; chunks_target(q, now, &t) == 0; now += MS / 100) {
            double slope = (t.pos[0] - before.pos[0]) / dt;

            jump = fmax(jump, fabs(t.vel[0] - before.vel[0]));
            wrong = fmax(wrong, fabs(slope - (t.vel[0] + before.vel[0]) / 2));
            before = t;
        }
        assert_true(before.vel[0] == 0);
        chunks_free(q);
    }
    printf("cubic: velocity jumps %.3f rad/s, differs by %.1e from the slope\n", jump,
           wrong);
    assert_true(jump < 0.55 && wrong < 1e-3);
}

// Catmull-Rom gives a line back as a line, but for the step that comes to rest in the last row:
// 0, 1, 2, 3 go at 50 rad/s, and are at 0 rad/s in row 3, by x + x^2 - x^3 from row 2.
static void cubic_line_comes_to_rest(void **state)
{
    (void)state;
    struct chunks_config cfg = config(CHUNK_REPLACE, 4, 1, 20 * MS);
    struct chunk_target t;

    cfg.interpolation = CHUNK_CUBIC;
    struct chunks *q = start(&cfg);
    push(q, line(1, 0, 9, 0, 1), 0); // five rows are beyond the horizon
    for (ns_t now = 0; now < 80 * MS; now += MS / 10) {
        double x = (double)now / 20e6, y = x, v = 1;

        if (x > 2) {
            x = fmin(x, 3) - 2;
            y = 2 + x + x * x - x * x * x;
            v = 1 + 2 * x - 3 * x * x;
        }
        assert_int_equal(chunks_target(q, now, &t), 0);
        assert_true(fabs(t.pos[0] - y) < 1e-12 && fabs(t.vel[0] - v / 0.02) < 1e-9);
    }
    chunks_free(q);
}

static void gripper_takes_the_newest(void **state)
{
    (void)state;
    struct chunks_config cfg = config(CHUNK_ENSEMBLE, 4, 2, 20 * MS);
    cfg.blend[1] = false;
    struct chunks *q = start(&cfg);
    struct chunk *a = make(1, 0, 4, 2), *b = make(2, 20 * MS, 4, 2);
    struct chunk_target t;

    for (int k = 0; k < 4; k++) {
        a->row[2 * k] = a->row[2 * k + 1] = (float)k;
        b->row[2 * k] = b->row[2 * k + 1] = (float)(10 + k);
    }
    push(q, a, 0);
    push(q, b, 20 * MS);
    assert_int_equal(chunks_target(q, 30 * MS, &t), 0);
    assert_true(t.pos[1] == 10 && t.vel[1] == 0);   // not blended, not interpolated
    assert_true(t.pos[0] > 1.5 && t.pos[0] < 10.5); // blended
    assert_int_equal(t.newest_id, 2);
    chunks_free(q);
}

static void oldest_gives_way(void **state)
{
    (void)state;
    struct chunks_config cfg = config(CHUNK_ENSEMBLE, 50, 1, 20 * MS);
    cfg.capacity = 3;
    cfg.ensemble_coeff = 0;
    struct chunks *q = start(&cfg);

    for (int i = 0; i < 5; i++)
        push(q, line((uint64_t)i + 1, i * MS, 50, i, 0), 10 * MS);
    assert_true(fabs(value(q, 10 * MS) - 3) < 1e-12); // of 2, 3, 4
    chunks_free(q);
}

static void remaining_rows(void **state)
{
    (void)state;
    struct chunks_config cfg = config(CHUNK_REPLACE, 10, 1, 20 * MS);
    struct chunks *q = start(&cfg);

    assert_true(chunks_remaining(q, 0) == 0);
    push(q, line(1, 0, 10, 0, 1), 30 * MS);
    assert_true(chunks_remaining(q, 30 * MS) == 8.5);
    assert_true(chunks_remaining(q, 200 * MS) == 0);
    chunks_free(q);
}

// Random pushes of every kind; rows must be finite, inside the chunks' own range, never past end.
static void random_arrivals(void **state)
{
    (void)state;
    for (int m = CHUNK_REPLACE; m <= CHUNK_CONSERVATIVE; m++) {
        struct chunks_config cfg = config((enum chunk_mode)m, 12, 2, 20 * MS);
        struct chunks *q;
        uint64_t id = 0, have = 0;
        ns_t now = 0, last_end = 0;

        cfg.capacity = 1 + m;
        q = start(&cfg);
        for (int k = 0; k < 30000; k++) {
            struct chunk_target t;

            now += (ns_t)((rnd() + 1) * 5e6f);
            if (rnd() > 0.9f) {
                ns_t anchor = now - (ns_t)((rnd() + 1) * 150e6f);
                int rows = 1 + (int)((rnd() + 1) * 10);

                id += rnd() > -0.9f;
                if (push(q, random_chunk(id, anchor, rows, 2), now) == CHUNK_USED) {
                    ns_t end = anchor + (rows < 12 ? rows : 12) * cfg.step_ns;

                    last_end = end > last_end ? end : last_end;
                }
            }
            if (chunks_target(q, now, &t) != 0)
                continue;
            have++;
            assert_true(now < last_end);
            for (int j = 0; j < 2; j++)
                assert_true(fabs(t.pos[j]) <= 1.0001 && isfinite(t.vel[j]));
            assert_true(t.row >= 0 && t.row < 12 && t.blended >= 1);
        }
        assert_true(have > 5000);
        chunks_free(q);
    }
}

static void refuses_bad_settings(void **state)
{
    (void)state;
    struct chunks_config cfg = config(CHUNK_REPLACE, 0, 1, 20 * MS);
    struct chunks *q;

    assert_int_equal(chunks_init(&q, &cfg), -EINVAL);
    cfg = config(CHUNK_REPLACE, 4, 33, 20 * MS);
    assert_int_equal(chunks_init(&q, &cfg), -EINVAL);
    cfg = config(CHUNK_REPLACE, 4, 3, 0);
    assert_int_equal(chunks_init(&q, &cfg), -EINVAL);
    cfg = config(CHUNK_ENSEMBLE, 4, 3, 20 * MS);
    cfg.ensemble_coeff = NAN;
    assert_int_equal(chunks_init(&q, &cfg), -EINVAL);
    cfg = config(CHUNK_REPLACE, 4, 3, 20 * MS);
    cfg.hard_max[1] = -1; // below the least
    assert_int_equal(chunks_init(&q, &cfg), -EINVAL);
    cfg.hard_max[1] = NAN;
    assert_int_equal(chunks_init(&q, &cfg), -EINVAL);
    assert_string_equal(chunk_verdict_name(CHUNK_NOT_FINITE), "not finite");
    assert_string_equal(chunk_verdict_name((enum chunk_verdict)CHUNK_VERDICTS), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_ensembler),
        cmocka_unit_test(equals_the_queue),
        cmocka_unit_test(equals_the_async_client),
        cmocka_unit_test(covers_its_rows_and_no_more),
        cmocka_unit_test(whole_steps_are_whole_rows),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(beyond_the_hard_limits_is_refused_whole),
        cmocka_unit_test(cold_start_skips_nothing),
        cmocka_unit_test(crossfade_is_continuous),
        cmocka_unit_test(crossfade_by_hand),
        cmocka_unit_test(members_leave_smoothly),
        cmocka_unit_test(interpolations),
        cmocka_unit_test(cubic_is_smooth_to_its_end),
        cmocka_unit_test(cubic_line_comes_to_rest),
        cmocka_unit_test(gripper_takes_the_newest),
        cmocka_unit_test(oldest_gives_way),
        cmocka_unit_test(remaining_rows),
        cmocka_unit_test(random_arrivals),
        cmocka_unit_test(refuses_bad_settings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
