// What `actd replay eval` is made of. A recording or a converted data set is read once, in the order
// of its times: joint states and frames become observations as the daemon would have made them
// (replay_eval_source.c), the policy answers each with a chunk, and the rows of a chunk wait for
// the actions that were recorded at their times (replay_eval_score.c). Its test includes this, too.
#ifndef ACTD_REPLAY_EVAL_IMPL_H
#define ACTD_REPLAY_EVAL_IMPL_H

#include <stdio.h>

#include "daemon/fitted.h"
#include "daemon/logbook.h"

#define EVAL_HORIZONS 12
#define EVAL_WORST    5
#define EVAL_ACTIONS  4096 // recorded ones that are remembered: 4 s at 1 kHz
#define EVAL_OCTAVES  72   // of errors, from 2^-48 on
#define EVAL_PARTS    64   // of an octave: p95 is right to 1 %

// ---- scores ----------------------------------------------------------------------------------
struct eval_sum {
    uint64_t n;
    double sum, max, still; // errors; still: sum of an arm's that stays where it was
    int64_t max_at_ns;      // log time of the row
};

struct eval_moment {
    int64_t at_ns; // log time of the observation
    double mean;   // error over the chunk and all joints
    int joint;     // the worst one, and
    double error;
};

struct eval_action {
    int64_t at_ns;
    bool usable;
    double pos[ACTD_MAX_JOINTS]; // robot's joint order
};

struct eval_pending;
struct eval_score {
    int joints, rows, horizons, every_rows;
    int64_t step_ns, reach_ns; // reach: actions further apart are not joined
    int64_t slack_ns; // so near to an action a row is its; 0 after eval_score_init
    struct eval_sum joint[ACTD_MAX_JOINTS], all;
    struct eval_sum horizon[EVAL_HORIZONS][ACTD_MAX_JOINTS]; // row h * every_rows
    uint32_t *histogram;         // (joints + 1, EVAL_OCTAVES * EVAL_PARTS)
    uint64_t chunks, unanswered; // compared at least in part; not at all
    int worsts;
    struct eval_moment worst[EVAL_WORST]; // worst first, a second apart
    uint64_t actions;
    struct eval_action *action; // ring of EVAL_ACTIONS
    struct eval_pending *first, *last, *spare;
};

// 0 or -ENOMEM. eval_score_free is fine after a failure.
int eval_score_init(struct eval_score *s, int joints, int rows, int64_t step_ns,
                    int64_t reach_ns);
void eval_score_free(struct eval_score *s);
// A chunk for an observation at this log time: row (rows, joints), still (joints) where the arm
// was. 0 or -ENOMEM.
int eval_score_chunk(struct eval_score *s, int64_t anchor_ns, const float *row,
                     const double *still);
// In the order of their times. An action that is not usable ends what can be compared.
void eval_score_action(struct eval_score *s, const struct eval_action *a);
void eval_score_end(struct eval_score *s); // what still waits is not answered
// Error below which 95 % lie; joint -1: of all.
double eval_score_p95(const struct eval_score *s, int joint);

// ---- the run ---------------------------------------------------------------------------------
struct eval_options {
    const char *policy, *config; // config NULL: the recorded one's
    int every;
};

struct eval {
    struct logbook *book;
    struct eval_options opt;
    struct config cfg;
    struct fitted *fitted;
    bool dataset; // values are in the checkpoint's own units
    char unit[ACTD_MAX_JOINTS][16];
    struct eval_score score;
    uint64_t frames, asked, no_joints, no_frame, corrupt, damaged;
    double seconds;     // of the log
    uint64_t start_ns;  // log time
    double inference_s; // in all
};

// Configuration, policy, who is who. 0; -EINVAL: refused; -ENOENT …, with err.
int eval_prepare(struct eval *e, struct config_error *err); // replay_eval_robot.c
// Reads, thinks, compares. 0, -ENODATA: nothing to compare; -errno, with err.
int eval_run(struct eval *e, struct config_error *err); // replay_eval_source.c
void eval_free(struct eval *e);

void eval_print(const struct eval *e, FILE *f);     // replay_eval_print.c
int eval_print_json(const struct eval *e, FILE *f); // 0 or -ENOMEM
int eval_write_page(struct eval *e, const char *path, struct config_error *err);
double eval_mean(const struct eval_sum *s);  // 0 when there are none
const char *eval_unit(const struct eval *e); // one for all joints, or ""

#endif
