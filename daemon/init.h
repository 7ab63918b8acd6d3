// init: `actd init CHECKPOINT_DIR` writes the two files that a checkpoint needs before it
// can move a robot: policy.yaml into the checkpoint (names, rate, units, which it does
// not carry) and robot.yaml for the robot at hand. What can be known is filled in, from
// the checkpoint, the data set's meta/info.json and the statistics; the rest is the word
// EDIT, which every loader refuses, so that nothing unconfirmed drives an arm. All
// functions are plain.
#ifndef ACTD_INIT_H
#define ACTD_INIT_H

#include <stdbool.h>
#include <stdio.h>

#include "daemon/config.h"
#include "daemon/units.h"
#include "policy/lerobot.h"

#define INIT_JOINT 80 // bytes of a joint's name, EDIT_joint_N included

struct init_options {
    const char *checkpoint; // directory
    const char *dataset;    // meta/info.json, or NULL
    const char *output;     // robot.yaml, or NULL for "robot.yaml"
    const char *stats_tag;  // or NULL
    bool force;             // overwrite
};

// What the data set's description says. Missing facts are 0 or empty.
struct init_dataset {
    double fps;
    char robot_type[CONFIG_NAME];
    int n_state, n_action;
    char state[ACTD_MAX_JOINTS][CONFIG_NAME];
    char action[ACTD_MAX_JOINTS][CONFIG_NAME];
};

// Everything the two files are written from.
struct init_facts {
    struct config_sidecar side; // rate_hz 0 = unknown; units "" = a person must say
    const char *looks[ACTD_MAX_JOINTS]; // what the statistics of each action look like
    bool has_ensemble_coeff;
    float ensemble_coeff;
    bool named; // names come from the data set, not made up
    bool kept;  // policy.yaml was there and is used as it is
    char rate_source[CONFIG_NAME];
    char robot_type[CONFIG_NAME];
    char directory[CONFIG_PATH]; // of the checkpoint, absolute
    const char *stats_tag;
    struct units_range state[ACTD_MAX_JOINTS], action[ACTD_MAX_JOINTS];
};

// The whole command. 0 or -errno with err filled; says on `say` what it wrote, what must
// be edited and what to run next.
int init_run(const struct init_options *opt, FILE *say, struct config_error *err);

// argv[0] is "init". Returns the exit status: 0, 64 (usage) or 78.
int init_main(int argc, char **argv);

// LeRobot's meta/info.json, versions 2 and 3: fps, robot_type, names of action and
// observation.state (a list, or a mapping of lists, or of names to positions).
int init_dataset_read(struct init_dataset *out, const char *file,
                      struct config_error *err);
// The rate in a checkpoint's train_config.json (env.fps), 0 when there is none.
double init_train_rate(const char *dir);

// What action i's joint is called in robot.yaml: its name without ".pos", or EDIT_joint_i
// where names are made up.
void init_joint_name(const struct init_facts *facts, int action, char *out, size_t size);

// The two files.
void init_write_sidecar(FILE *f, const struct init_facts *facts);
void init_write_robot(FILE *f, const struct init_facts *facts);

#endif
