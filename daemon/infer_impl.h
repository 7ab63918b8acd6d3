// What infer.c (the worker) and infer_observe.c (what it looks at, and when) share. Nobody else
// includes this.
#ifndef ACTD_INFER_IMPL_H
#define ACTD_INFER_IMPL_H

#include <pthread.h>

#include "daemon/infer.h"

#define INFER_LATENCIES 32 // recent ones whose maximum decides when to start

struct infer {
    struct infer_config cfg;
    const struct policy_info *info;
    struct infer_brain brain;
    const struct binding *binding;
    struct camera *const *cameras;
    struct board *board;
    pthread_t thread;
    _Atomic bool stop;
    struct infer_counts counts;
    struct slot failure; // char[INFER_FAILURE_MAX]

    // The observation. Working memory is allocated once, by infer_new.
    float *state;                 // (S)
    struct joint_history history; // copied out of the board
    struct policy_image image[POLICY_MAX_CAMERAS];
    ns_t capture_ns[POLICY_MAX_CAMERAS];
    ns_t anchor_ns, oldest_ns;

    // The inference.
    float *actions;                // (C, A)
    ns_t since_ns;                 // when the one in progress began, 0 = none is
    int rc;                        // what the brain said
    uint64_t made;                 // chunks handed over
    ns_t last_anchor_ns;           // of the last observation used
    ns_t latency[INFER_LATENCIES]; // anchor to chunk handed over
};

#endif
