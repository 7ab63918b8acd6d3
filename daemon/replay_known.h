// What a recording says of its robot and policies, ready to be replayed: the configuration that is
// in it, and the checkpoints that its seats name, loaded when a chunk of theirs comes. All plain.
#ifndef ACTD_REPLAY_KNOWN_H
#define ACTD_REPLAY_KNOWN_H

#include "daemon/config.h"
#include "daemon/fitted.h"
#include "daemon/replay.h"

#define REPLAY_LOADED 2 // policies in memory at a time

struct replay_seat { // a policy that thought, or did
    struct tape_seat seat;
    char *sidecar;
};

struct replay_known {
    struct logbook *book;
    const struct replay_options *opt;
    struct config cfg;
    struct replay_robot robot;
    int n_seats;
    struct replay_seat *seat;             // by generation, each once
    struct fitted *fitted[REPLAY_LOADED]; // newest first
    struct fitted *instead;               // what-if: of opt->policy_directory
    bool same_kernels;                    // compute here as computed then
    uint32_t missing; // generation that can not be loaded, 0 = none yet
    char note[400];
};

// 0 or -errno with err: -EINVAL not a recording of ours, or its configuration was refused.
int replay_known_new(struct replay_known **out, struct logbook *book,
                     const struct replay_options *opt, struct config_error *err);
void replay_known_free(struct replay_known *k); // NULL is fine

// replay_policy.c
int replay_seats_read(struct replay_known *k);
void replay_seats_free(struct replay_known *k);
// Loads opt->policy_directory for k->cfg. 0 or -errno with err.
int replay_load_instead(struct replay_known *k, struct config_error *err);
int replay_think(void *arg, const struct tape_chunk *request,
                 const struct policy_image *image, const struct joint_sample *joints,
                 float *row, struct config_error *err);

// Is this program the one that recorded?
bool replay_same_program(struct logbook *book);

#endif
