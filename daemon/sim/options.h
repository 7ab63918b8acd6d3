// The command line of actd-sim.
#ifndef ACTD_SIM_OPTIONS_H
#define ACTD_SIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sim/scene.h"
#include "daemon/sim/wire.h"

enum { OPTIONS_FAULTS_MAX = 8 };

// A stream that falls silent from start_s (sim time) for length_s.
struct options_fault {
    int stream; // index of the camera, or SCENE_CAMERAS for the joint states
    double start_s, length_s;
};

struct options {
    char runtime[WIRE_PATH_MAX];
    enum wire_role role;
    bool lockstep, raw, help, version;
    double joint_hz, camera_hz, control_hz, speed;
    unsigned episodes;
    uint64_t seed;
    int width[SCENE_CAMERAS], height[SCENE_CAMERAS]; // 0 = this camera is off
    const char *sheet;  // PNG to draw of the first episode, or NULL
    const char *record; // directory for demonstrations, or NULL
    double noise_rad;
    struct options_fault fault[OPTIONS_FAULTS_MAX];
    int faults;
};

// Reads argv into *o, defaults included. Returns 0, or -EINVAL with a sentence in err.
int options_parse(struct options *o, int argc, char **argv, char *err, size_t err_len);

// The text of --help.
extern const char options_help[];

// Which streams a fault silences at this time: bit per camera, bit SCENE_CAMERAS for joints.
unsigned options_muted(const struct options *o, double time_s);

#endif
