// config: robot.yaml and the sidecar policy.yaml, checked whole. One table of keys
// (config_keys.c) says for each its type, unit, bounds, default and meaning; error messages,
// the man page and the example file are held to it by tests. All functions are plain.
//
// Refused with file:line:column, the key, what was expected and the nearest known key: unknown
// and duplicate keys, wrong types, values out of range or not finite, missing limits, anchors,
// aliases, tags, several documents, nesting deeper than 16, files over 64 KiB.
#ifndef ACTD_CONFIG_H
#define ACTD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/chunks.h"
#include "daemon/guard.h"
#include "policy/policy.h"

#define CONFIG_NAME 64
#define CONFIG_PATH 512
#define CONFIG_LIST 1024 // of names, one per line

struct config_error {
    char text[1536]; // "file:line:column: key: what is wrong; what to do"
};

struct config_place { // in the file, from 1; 0 = nowhere
    int line, column;
};

struct config_joint {
    char name[CONFIG_NAME];   // the robot's, on the wire
    char state[CONFIG_NAME];  // the policy's state name
    char action[CONFIG_NAME]; // the policy's action name
    double scale, offset; // policy = (wire - offset) * scale; scale NAN = from the units
    double min, max;      // rad: position limits
    double hard_min,
        hard_max; // rad: a target beyond them is refused; default: the limits,
                  // widened on both sides by their own width
    double home;  // rad: of the rest pose; NAN = none
    double velocity, acceleration, jerk, stop_acceleration;
    double following_error; // rad, 0 = not watched
    bool blend;             // false: newest chunk only, no interpolation (grippers)
    struct config_place state_at, action_at; // of the names, else of the joint
};

enum config_frozen { FROZEN_IGNORE, FROZEN_WARN, FROZEN_STOP };

struct config_camera {
    char name[CONFIG_NAME];    // ours, for endpoint and status
    char key[POLICY_NAME_MAX]; // the policy's image key
    char endpoint[CONFIG_PATH];
    bool bind;
    double rate_hz;
    double latency_ms;         // exposure to stamp
    bool primary;              // its newest frame is the anchor; default: the first
    enum config_frozen frozen; // what the same content again and again means
    struct config_place key_at, endpoint_at; // else of the camera
};

enum config_trigger { TRIGGER_CONTINUOUS, TRIGGER_ROWS };

enum config_record { RECORD_OFF, RECORD_ALWAYS, RECORD_TRIGGER };
enum config_compression { COMPRESSION_ZSTD, COMPRESSION_LZ4, COMPRESSION_NONE };

struct config {
    char file[CONFIG_PATH];
    char instance[CONFIG_NAME];
    char runtime[CONFIG_PATH]; // directory of the ipc sockets
    struct {
        char directory[CONFIG_PATH]; // absolute after config_load
        int threads;                 // resolved, at least 1
        enum policy_resize resize;
        char stats_tag[CONFIG_NAME]; // "" = none
        enum precision precision;
        double max_deviation; // from float32, as a share of a joint's position range
    } policy;
    struct {
        double rate_hz;
        int priority; // SCHED_FIFO
        int cpu;      // -1 = choose
        bool require_rt, lock_memory;
    } control;
    struct {
        enum config_trigger trigger;
        int every_rows;     // 0 = the checkpoint's n_action_steps
        double max_age_ms;  // 0 = the chunk's own duration
        double max_skew_ms; // between the anchor and another stream's sample
    } inference;
    struct {
        enum chunk_mode mode;
        enum chunk_interpolation interpolation;
        double fade_ms;
        int horizon_rows;      // 0 = the whole chunk
        double ensemble_coeff; // NAN = the checkpoint's, else 0.01
    } chunks;
    struct {
        char endpoint[CONFIG_PATH];
        bool bind;
        double rate_hz;
    } joint_state;
    struct {
        char endpoint[CONFIG_PATH];
        bool bind;
        double ttl_ms; // 0 = max(20 ms, 3 control periods)
    } joint_command;
    struct {
        char endpoint[CONFIG_PATH];
        bool bind;
    } status;
    struct {
        double hold_ms, approach_speed, approach_tolerance;
        double tick_gap_ms;
        int fresh_ticks, following_ticks;
        double
            max_stats_z; // refuse to arm when the pose is further from the training mean
        double max_jump; // rad that a joint may move beyond 1.5 times its speed limit
    } safety;
    struct { // 0 = the default that config_loop makes of the rates
        double wakeup_ms, tick_ms, chunk_latency_ms, sensor_age_ms;
    } deadlines;
    struct {
        char directory[CONFIG_PATH]; // "" = config_black_box decides
        int keep;
    } black_box;
    struct { // what actd sensed, thought and did, as files
        enum config_record mode;
        char directory[CONFIG_PATH]; // "" = config_record_directory decides
        enum config_compression compression;
        bool frames; // camera messages too
        int segment_mb;
        double segment_minutes;
        int keep_free_mb, most_mb; // 0 = no bound
        double before_s, after_s;  // RECORD_TRIGGER: around a fault
        int memory_mb;             // RECORD_TRIGGER: of what is kept back
    } record;
    struct {                                      // who may talk to the control socket
        char socket[CONFIG_PATH];                 // absolute after config_load
        char act[CONFIG_LIST], read[CONFIG_LIST]; // users and @groups
    } operators;
    struct {
        char directory[CONFIG_PATH]; // of policies to swap to, absolute; "" = none
        double max_difference;       // rad between the chunks; more needs --force
        double fade_ms;              // from the old policy's motion to the new one's
        int trials;
    } swap;
    struct {
        char listen[CONFIG_NAME]; // "127.0.0.1:9464", "" = nowhere
    } metrics;
    int n_cameras;
    struct config_camera camera[POLICY_MAX_CAMERAS];
    int n_joints;
    struct config_joint joint[ACTD_MAX_JOINTS];
};

// The sidecar: what an ACT checkpoint does not carry.
struct config_sidecar {
    double rate_hz; // at which the policy was trained
    int n_state, n_action;
    char state[ACTD_MAX_JOINTS][CONFIG_NAME]; // names, order of the checkpoint's vector
    char action[ACTD_MAX_JOINTS][CONFIG_NAME];
    char units[ACTD_MAX_JOINTS]
              [16]; // of action i: "rad", "deg", "m100_100", "0_100", "0_1", "m"
    int n_cameras;  // 0 = not given
    char camera[POLICY_MAX_CAMERAS]
               [POLICY_NAME_MAX]; // image keys, checked by binding_make
};

// Reads and checks robot.yaml. 0 or -errno with err filled (-EINVAL: exit 78).
int config_load(struct config *out, const char *file, struct config_error *err);
// The same from n bytes of memory; `file` is what errors call it and what relative paths
// count from.
int config_parse(struct config *out, const char *file, const char *text, size_t n,
                 struct config_error *err);
// Reads and checks DIR/policy.yaml.
int config_sidecar_load(struct config_sidecar *out, const char *dir,
                        struct config_error *err);
// Its text; *text is the caller's to free.
int config_sidecar_read(char **text, size_t *n, const char *dir,
                        struct config_error *err);
// The same from n bytes of memory.
int config_sidecar_parse(struct config_sidecar *out, const char *file, const char *text,
                         size_t n, struct config_error *err);

// Who is who: position in one order for position in another, checked one-to-one.
struct binding {
    int n;       // joints, and values of an action
    int n_state; // values of the state: n, or 0 for a policy without
    int state_of
        [ACTD_MAX_JOINTS]; // state vector index i comes from robot joint state_of[i]
    int joint_of[ACTD_MAX_JOINTS]; // action vector index i drives robot joint joint_of[i]
    double scale[ACTD_MAX_JOINTS], offset[ACTD_MAX_JOINTS]; // per robot joint
    int camera_of[POLICY_MAX_CAMERAS]; // policy camera i is config camera camera_of[i]
    int primary;                       // config camera whose newest frame is the anchor
};
// Binds joints and cameras by name. -EINVAL with a sentence naming what matches nothing,
// what is left over, and what there is.
int binding_make(struct binding *out, const struct config *cfg,
                 const struct config_sidecar *side, const struct policy_info *policy,
                 struct config_error *err);
// infer. Robot joints (n, rad) to the policy's state (S), and rows of actions (rows, A) to
// rows in robot order (rows, n) in rad.
void binding_state(const struct binding *b, const double *joints, float *state);
void binding_actions(const struct binding *b, const float *actions, int rows, float *out);

#endif
