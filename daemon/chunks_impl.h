// What chunks.c, chunks_blend.c (rt) and chunks_init.c (plain) share. Nobody else includes this.
#ifndef ACTD_CHUNKS_IMPL_H
#define ACTD_CHUNKS_IMPL_H

#include "daemon/chunks.h"

#define CHUNKS_NEVER INT64_MAX // no time yet

struct live { // a chunk in use
    uint64_t id;
    ns_t seen_ns;   // capture time of its observation, whatever the anchor became
    ns_t anchor_ns; // time of row 0
    ns_t end_ns; // from here on not acted on: rows are over, or the observation too old
    ns_t oldest_ns;
    ns_t shown_ns; // when it came into view, CHUNKS_NEVER = not yet
    ns_t fade_ns;  // of its own fade-in, cut to what the one before covered
    int rows;
    float *row; // (rows, joints), room for cfg.rows
};

struct share { // of one live chunk in one tick
    int live;
    double s, ds; // weight against what is older, and its slope in 1/s
};

struct point { // of one joint: rad, rad/s
    double pos, vel;
};

// What the target would be without the chunks that arrived in this tick, and without losing
// those that gave way to them.
struct chunks_before {
    ns_t now_ns; // CHUNKS_NEVER = nothing has changed
    int n;       // chunks that took part
    struct point joint[ACTD_MAX_JOINTS];
};

struct chunks {
    struct chunks_config cfg;
    double step_s;
    int n;
    struct live *live;   // (capacity), oldest first
    struct share *share; // (capacity), scratch
    double decay;        // exp(-m)
    float *rows;         // (capacity, cfg.rows, joints)
    uint64_t newest_id;  // of all accepted
    ns_t newest_seen_ns;
    struct chunks_before before;
    struct chunk_culprit culprit; // of the last chunk refused for a value
    uint64_t count[CHUNK_VERDICTS];
};

static inline bool live_usable(const struct live *c, ns_t now)
{
    return now >= c->anchor_ns && now < c->end_ns;
}

struct place { // inside a chunk
    int row;
    double part; // [0, 1) of the way to the next row
};

// chunks_blend.c, rt.
struct place chunks_place(const struct chunks *q, const struct live *c, ns_t now);
// Shares of all usable chunks in view, oldest first, into q->share; those that a newer one
// replaces whole are left out. Returns how many.
int chunks_share(struct chunks *q, ns_t now);
// One joint of the blended target, of the first n shares.
struct point chunks_blend(const struct chunks *q, int n, ns_t now, int joint);

#endif
