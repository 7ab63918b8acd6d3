// What chunks.c, chunks_bridge.c, chunks_blend.c (rt) and chunks_init.c (plain) share. Nobody else includes this.
#ifndef ACTD_CHUNKS_IMPL_H
#define ACTD_CHUNKS_IMPL_H

#include "daemon/chunks.h"

#define CHUNKS_NEVER INT64_MAX // no time yet

struct live { // a chunk in use
    uint64_t id;
    uint32_t generation;
    ns_t step_ns;   // of its own rows, and
    double step_s;  // the same
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

// From one generation's motion to the next one's: chunks_bridge.c.
struct bridge {
    ns_t start_ns, length_ns;           // length 0 = none
    struct point from[ACTD_MAX_JOINTS]; // old less new, when it began
};

struct chunks {
    struct chunks_config cfg;
    int n;
    struct live *live;   // (capacity), oldest first
    struct share *share; // (capacity), scratch
    double decay;        // exp(-m)
    float *rows;         // (capacity, cfg.rows, joints)
    uint64_t newest_id;  // of all accepted
    ns_t newest_seen_ns;
    uint32_t newest_generation; // of all accepted, and
    uint32_t generation;        // in view, if
    bool in_view;               // there was one
    struct chunks_before before;
    struct point commanded[ACTD_MAX_JOINTS]; // if
    bool told;
    struct bridge bridge;
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
struct place chunks_place(const struct live *c, ns_t now);
// Shares of all usable chunks in view, oldest first, into q->share; those that a newer one
// replaces whole are left out. Returns how many.
int chunks_share(struct chunks *q, ns_t now);
// One joint of the blended target, of the first n shares.
struct point chunks_blend(const struct chunks *q, int n, ns_t now, int joint);

// chunks_bridge.c, rt.
// What is still on the way from the old generation to the new one, at one instant: the parts of
// the offset and of its slope that are left, and how fast they go.
struct crossing {
    double pos, vel;           // of offset and slope (s)
    double pos_rate, vel_rate; // 1/s and 1
};
// False when there is none, or it is over: then *x is not set.
bool chunks_crossing(const struct chunks *q, ns_t now, struct crossing *x);
struct point chunks_cross(const struct chunks *q, const struct crossing *x, int joint,
                          struct point p);
// Chunk i of a generation after the one in view has come into view: those before it are
// forgotten, and the bridge begins at what q->before says, else at what is commanded.
void chunks_take_over(struct chunks *q, int i, ns_t now);
// Forgets the k oldest.
void chunks_forget(struct chunks *q, int k);

#endif
