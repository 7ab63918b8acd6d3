// What chunks.c (rt) and chunks_init.c (plain) share. Nobody else includes this.
#ifndef ACTD_CHUNKS_IMPL_H
#define ACTD_CHUNKS_IMPL_H

#include "daemon/chunks.h"

struct live { // a chunk in use
    uint64_t id;
    ns_t seen_ns;   // capture time of its observation, whatever the anchor became
    ns_t anchor_ns; // time of row 0
    ns_t end_ns;    // from here on not acted on: rows are over, or the observation too old
    ns_t oldest_ns, shown_ns;
    ns_t fade_ns; // of its own fade-in, cut to what the one before covered
    int rows;
    float *row; // (rows, joints), room for cfg.rows
};

struct share { // of one live chunk in one tick
    int live;
    double s, ds; // weight against what is older, and its slope in 1/s
};

struct chunks {
    struct chunks_config cfg;
    double step_s;
    int n;
    struct live *live; // (capacity), oldest first
    struct share *share; // (capacity), scratch
    double *weight;      // (capacity), exp(-m i)
    float *rows;         // (capacity, cfg.rows, joints)
    uint64_t newest_id;  // of all accepted
    ns_t newest_seen_ns;
    uint64_t count[CHUNK_VERDICTS];
};

#endif
