// What the tests of seams share: a queue of chunks with random rows, this side's own
// books of what is in view, and the target's position and velocity on both sides of an
// event, measured from outside. One program includes it once.
#ifndef TEST_SEAM_SCENE_H
#define TEST_SEAM_SCENE_H

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
static inline double rnd(void) // [0, 1)
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
    int arrivals, departures, plain;  // plain: no chunk was in its last step
    double worst, worst_part;         // rad at arrivals, and of its bound
    double worst_vel, worst_part_vel; // rad/s at arrivals, of its bound when plain, and
    double worst_part_last;           // when one was in its last step
    double departed, gripper;
};

static const char *const mode_name[] = {"replace",          "crossfade",   "ensemble",
                                        "weighted_average", "latest_only", "average",
                                        "conservative"};

static inline void world_start(struct world *w, enum chunk_mode mode, int interpolation,
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

// ---- books ----------------------------------------------------------------------------

static inline double presence(const struct book *b, ns_t t)
{
    if (t < b->anchor || t >= b->end)
        return 0;
    return t < b->end - STEP ? 1 : (double)(b->end - t) / (double)STEP;
}

static inline bool near(ns_t a, ns_t b, ns_t by)
{
    return llabs(a - b) < by;
}

// Is t near a row of this chunk, its end, or the start of its last step?
static inline bool near_event(const struct book *b, ns_t t)
{
    ns_t part = ((t - b->anchor) % STEP + STEP) % STEP;

    return near(part, 0, CLEAR) || near(part, STEP, CLEAR) || near(t, b->end, APART) ||
           near(t, b->end - STEP, CLEAR);
}

static inline bool clear(const struct world *w, const struct book *fresh, ns_t t)
{
    for (int i = 0; i < w->n; i++) {
        const struct book *b = &w->book[i];

        if (near_event(b, t) || near_event(b, fresh->anchor) ||
            near_event(b, fresh->end) || near_event(fresh, b->end))
            return false;
    }
    return t == fresh->anchor || !near_event(fresh, t);
}

// ---- measuring ------------------------------------------------------------------------

struct side { // of an event, as the samples there say
    bool there;
    double pos[JOINTS], vel[JOINTS];
};

static inline bool sample(struct world *w, ns_t t, struct chunk_target *out)
{
    return chunks_target(w->q, t, out) == 0;
}

static inline struct side before(struct world *w, ns_t t)
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
static inline struct side after(struct world *w, ns_t t, struct chunk_target *at)
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

// ---- chunks ---------------------------------------------------------------------------

// The most that two chunks differ in (chunks.h).
static inline double apart(const struct world *w)
{
    return w->cfg.interpolation == CHUNK_CUBIC ? 1.25 * D : D;
}

static inline enum chunk_verdict push(struct world *w, ns_t anchor, int rows, ns_t now)
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

#endif
