// policy_priv: what policy.c (inference), policy_load.c and golden.c share.
#ifndef ACTD_POLICY_PRIV_H
#define ACTD_POLICY_PRIV_H

#include "policy/lerobot.h"
#include "policy/models/act.h"
#include "policy/policy.h"
#include "policy/pool.h"

struct policy {
    struct policy_info info;
    enum policy_resize resize;
    struct lerobot_checkpoint *checkpoint; // kept for its normalisation constants
    struct arena arena;
    struct pool
        *pool; // that computes now: a serial one while loading beside another policy
    struct act act;
    float table[POLICY_MAX_CAMERAS][3][256]; // what 8 bits are to the network, by channel
    int image_rc[POLICY_MAX_CAMERAS];        // of the preprocessing tasks
    // Number of the frame whose features the network still has (act.s.tokens), 0 = none's.
    uint64_t seen[POLICY_MAX_CAMERAS];
    uint32_t reused;  // see policy_reused
    float *deviation; // (A) policy_info.deviation.worst; NULL in float32
    char error[256];  // of policy_infer
};

// The network behind the cameras' features, and back to the checkpoint's units; its inputs are in
// place: act.s.tokens, state and env. infer.
int policy_compute(struct policy *p, float *actions);

// Fills p->info from the checkpoint. plain.
void policy_fill_info(struct policy *p);

#endif
