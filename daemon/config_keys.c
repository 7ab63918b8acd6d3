// config_keys: the table. Defaults that a person may want to know the reason of have it
// in doc.
#include "daemon/config_keys.h"

#include <stdio.h>
#include <string.h>

#define AT(field) offsetof(struct config, field), sizeof(((struct config *)0)->field)
#define AT_C(field) \
    offsetof(struct config_camera, field), sizeof(((struct config_camera *)0)->field)
#define AT_J(field) \
    offsetof(struct config_joint, field), sizeof(((struct config_joint *)0)->field)
#define AT_RANGE(low) offsetof(struct config_joint, low), 2 * sizeof(double)

// The bytes of a word are stored as an int, and [min, max] as two neighbours.
_Static_assert(sizeof(enum chunk_mode) == sizeof(int), "enum is not an int");
_Static_assert(sizeof(enum precision) == sizeof(int), "enum is not an int");
_Static_assert(offsetof(struct config_joint, max) ==
                   offsetof(struct config_joint, min) + sizeof(double),
               "min and max must be neighbours");
_Static_assert(offsetof(struct config_joint, hard_max) ==
                   offsetof(struct config_joint, hard_min) + sizeof(double),
               "hard_min and hard_max must be neighbours");

static const char *const resize_words[] = {"refuse", "stretch", "letterbox", NULL};
static const char *const precision_words[] = {"float32", "bf16", "int8", NULL};
static const char *const trigger_words[] = {"continuous", "rows", NULL};
static const char *const mode_words[] = {"replace",          "crossfade",   "ensemble",
                                         "weighted_average", "latest_only", "average",
                                         "conservative",     NULL};
static const char *const record_words[] = {"off", "always", "trigger", NULL};
static const char *const compression_words[] = {"zstd", "lz4", "none", NULL};
static const char *const frozen_words[] = {"ignore", "warn", "stop", NULL};
static const char *const interpolation_words[] = {"hold", "linear", "cubic", NULL};

const struct config_section config_section[] = {
    {"", SCOPE_CONFIG, "The daemon itself."},
    {"policy", SCOPE_CONFIG, "The trained policy: a LeRobot ACT checkpoint."},
    {"control", SCOPE_CONFIG, "The loop that sends commands."},
    {"inference", SCOPE_CONFIG,
     "When a new chunk of actions is computed, and from what."},
    {"chunks", SCOPE_CONFIG, "How overlapping chunks become one target per tick."},
    {"joint_state", SCOPE_CONFIG,
     "Where the robot's driver publishes foxglove.JointStates."},
    {"joint_command", SCOPE_CONFIG, "Where actd publishes actd.v1.JointCommand."},
    {"status", SCOPE_CONFIG, "Where actd publishes actd.v1.Status, once a second."},
    {"safety", SCOPE_CONFIG, "When to slow down, hold and stop."},
    {"deadlines", SCOPE_CONFIG,
     "Budgets; more than 10 % of the ticks of 500 ms (2 of the last 10 chunks) missed is a "
     "fault, and the arm stops."},
    {"black_box", SCOPE_CONFIG, "Evidence: the last 5 s before a fault."},
    {"record", SCOPE_CONFIG,
     "Everything actd senses, thinks and does, as MCAP files that Foxglove, PlotJuggler and "
     "Rerun open and `actd replay` plays back."},
    {"operators", SCOPE_CONFIG,
     "Who may talk to the control socket, besides root and the user who runs actd. A group "
     "stands in quotes: \"@lab\"."},
    {"swap", SCOPE_CONFIG, "Changing the policy while the arm moves."},
    {"metrics", SCOPE_CONFIG, "Numbers for a monitoring system."},
    {"cameras", SCOPE_CAMERA, "One entry per camera; its name is yours to choose."},
    {"joints", SCOPE_JOINT,
     "One entry per joint; its name is the driver's, in its messages."},
};
const int config_sections = sizeof config_section / sizeof *config_section;

// section, name, type, required, place, least, most, unit, default, or what counts
// instead, words, meaning
// clang-format off
const struct config_key config_key[] = {
    {"", "instance", KEY_PLACE, false, AT(instance), 0, 0, "", "default", NULL, NULL,
     "Name of this daemon; two on one machine need two names. A service that keeps the "
     "default has its unit's."},
    {"", "runtime", KEY_PATH, false, AT(runtime), 0, 0, "", NULL,
     "the service's runtime directory, else /run/actd/INSTANCE, or "
     "$XDG_RUNTIME_DIR/actd/INSTANCE where /run/actd is not ours",
     NULL,
     "Directory of the sockets."},

    {"policy", "directory", KEY_PATH, true, AT(policy.directory), 0, 0, "", NULL, NULL,
     NULL,
     "Checkpoint directory (config.json, model.safetensors, policy.yaml); relative "
     "to this file."},
    {"policy", "threads", KEY_INT, false, AT(policy.threads), 0, 64, "", "0", NULL, NULL,
     "Compute threads; 0 means every core but the loop's, at most 8."},
    {"policy", "resize", KEY_WORD, false, AT(policy.resize), 0, 0, "", "refuse", NULL,
     resize_words,
     "What to do with frames that are not of the trained size."},
    {"policy", "stats_tag", KEY_NAME, false, AT(policy.stats_tag), 0, 0, "", NULL, "none",
     NULL,
     "Which group of statistics, for a checkpoint that has several."},
    {"policy", "precision", KEY_WORD, false, AT(policy.precision), 0, 0, "", "float32", NULL,
     precision_words,
     "int8: most of the transformer's products are of 8-bit numbers, and it is faster. bf16: "
     "weights take about half of what float32's packed ones take, and it is slower. Either is "
     "loaded in float32 first, which takes float32's memory and twice the time, so that every "
     "start measures how far its chunks are from float32's."},
    {"policy", "max_deviation", KEY_REAL, false, AT(policy.max_deviation), 0, 1, "", "0.02",
     NULL, NULL,
     "With another precision than float32: a policy is refused whose chunks are further from "
     "float32's in any joint. A share of the joint's position range, so that it is one measure "
     "for arms, grippers and slides."},

    {"control", "rate_hz", KEY_REAL, false, AT(control.rate_hz), 1, 2000, "Hz", "100",
     NULL, NULL,
     "Commands per second; independent of the rate the policy was trained at."},
    {"control", "priority", KEY_INT, false, AT(control.priority), 1, 98, "", "50", NULL,
     NULL,
     "SCHED_FIFO priority of the loop."},
    {"control", "cpu", KEY_INT, false, AT(control.cpu), -1, 1023, "", "-1", NULL, NULL,
     "Core of the loop; -1 means that actd chooses."},
    {"control", "require_rt", KEY_BOOL, false, AT(control.require_rt), 0, 0, "", "false",
     NULL, NULL,
     "Refuse to start when the kernel does not grant SCHED_FIFO."},
    {"control", "lock_memory", KEY_BOOL, false, AT(control.lock_memory), 0, 0, "", "true",
     NULL, NULL,
     "Lock all memory, so that no tick waits for a page."},

    {"inference", "trigger", KEY_WORD, false, AT(inference.trigger), 0, 0, "",
     "rows", NULL, trigger_words,
     "When a new inference starts: after every_rows rows, or (continuous) as soon as the last is "
     "done. Policies other than ensembled ones may stall when they re-decide too often."},
    {"inference", "every_rows", KEY_INT, false, AT(inference.every_rows), 0, 10000,
     "rows", "0", NULL, NULL,
     "For trigger rows; 0 means the checkpoint's n_action_steps, sooner where the "
     "latency would outlast the chunk."},
    {"inference", "max_age_ms", KEY_REAL, false, AT(inference.max_age_ms), 0, 60000, "ms",
     "0", NULL, NULL,
     "A chunk whose observation is older is not used; 0 means the chunk's own "
     "duration."},
    {"inference", "max_skew_ms", KEY_REAL, false, AT(inference.max_skew_ms), 1, 10000,
     "ms", "50", NULL, NULL,
     "How far apart in time the samples of one observation may lie."},

    {"chunks", "mode", KEY_WORD, false, AT(chunks.mode), 0, 0, "", "crossfade", NULL,
     mode_words,
     "How a new chunk takes over from the one before."},
    {"chunks", "interpolation", KEY_WORD, false, AT(chunks.interpolation), 0, 0, "",
     "linear", NULL, interpolation_words,
     "Between rows: from the policy's rate to the control rate."},
    {"chunks", "fade_ms", KEY_REAL, false, AT(chunks.fade_ms), 0, 10000, "ms", "150",
     NULL, NULL,
     "Length of a crossfade."},
    {"chunks", "horizon_rows", KEY_INT, false, AT(chunks.horizon_rows), 0, 10000, "rows",
     "0", NULL, NULL,
     "Use only so many rows of a chunk, and compute no more in the last decoder layer's "
     "cross attention and feed-forward; 0 means all."},
    {"chunks", "ensemble_coeff", KEY_REAL, false, AT(chunks.ensemble_coeff), -10, 10, "",
     NULL, "the checkpoint's temporal_ensemble_coeff, else 0.01", NULL,
     "m of the weights exp(-m i) in mode ensemble; i = 0 is the oldest chunk."},

    {"joint_state", "endpoint", KEY_ENDPOINT, false, AT(joint_state.endpoint), 0, 0, "",
     NULL, "ipc://RUNTIME/joints.state", NULL,
     "ZeroMQ endpoint."},
    {"joint_state", "bind", KEY_BOOL, false, AT(joint_state.bind), 0, 0, "", "true", NULL,
     NULL,
     "true: actd binds and the other side connects."},
    {"joint_state", "rate_hz", KEY_REAL, true, AT(joint_state.rate_hz), 1, 2000, "Hz",
     NULL, NULL, NULL,
     "The rate at which the driver publishes; staleness is judged by it."},

    {"joint_command", "endpoint", KEY_ENDPOINT, false, AT(joint_command.endpoint), 0, 0,
     "", NULL, "ipc://RUNTIME/joints.command", NULL,
     "ZeroMQ endpoint."},
    {"joint_command", "bind", KEY_BOOL, false, AT(joint_command.bind), 0, 0, "", "true",
     NULL, NULL,
     "true: actd binds and the other side connects."},
    {"joint_command", "time_to_live_ms", KEY_REAL, false, AT(joint_command.ttl_ms), 0,
     10000, "ms", "0", NULL, NULL,
     "The driver stops by itself when no command came for so long; 0 means the "
     "larger of 20 ms and 3 control periods."},

    {"status", "endpoint", KEY_ENDPOINT, false, AT(status.endpoint), 0, 0, "", NULL,
     "ipc://RUNTIME/status", NULL,
     "ZeroMQ endpoint."},
    {"status", "bind", KEY_BOOL, false, AT(status.bind), 0, 0, "", "true", NULL, NULL,
     "true: actd binds and the other side connects."},

    {"safety", "hold_ms", KEY_REAL, false, AT(safety.hold_ms), 1, 10000, "ms", "200",
     NULL, NULL,
     "HOLD (at rest, waiting for its cause to pass) becomes a stop after so long."},
    {"safety", "approach_speed", KEY_REAL, false, AT(safety.approach_speed), 0.01, 1, "",
     "0.25", NULL, NULL,
     "Fraction of the velocity and acceleration limits while moving to where the "
     "policy starts."},
    {"safety", "approach_tolerance", KEY_REAL, false, AT(safety.approach_tolerance),
     0.0001, 1, "rad", "0.05", NULL, NULL,
     "Every joint nearer than this: the approach has arrived."},
    {"safety", "tick_gap_ms", KEY_REAL, false, AT(safety.tick_gap_ms), 1, 10000, "ms",
     "100", NULL, NULL,
     "The loop was away for longer: stop."},
    {"safety", "fresh_ticks", KEY_INT, false, AT(safety.fresh_ticks), 1, 10000, "ticks",
     "50", NULL, NULL,
     "Streams must be fresh for so many ticks in a row before arming."},
    {"safety", "following_ticks", KEY_INT, false, AT(safety.following_ticks), 1, 10000,
     "ticks", "10", NULL, NULL,
     "following_error exceeded for so many ticks: hold; for twice as many: stop. A good "
     "tick in between takes half a bad one back."},
    {"safety", "max_stats_z", KEY_REAL, false, AT(safety.max_stats_z), 0, 1000, "", "6",
     NULL, NULL,
     "Refuse to arm when a joint is so many standard deviations from the training "
     "mean; 0 means never."},
    {"safety", "max_jump", KEY_REAL, false, AT(safety.max_jump), 0.001, 100, "rad", "0.1",
     NULL, NULL,
     "Between two joint states a joint may move by 1.5 times its velocity limit and this "
     "much more; beyond, the sample is refused."},

    {"deadlines", "wakeup_ms", KEY_REAL, false, AT(deadlines.wakeup_ms), 0, 10000, "ms",
     "0", NULL, NULL,
     "A tick that wakes later misses, and so does every tick that is skipped; 0 means one "
     "control period."},
    {"deadlines", "tick_ms", KEY_REAL, false, AT(deadlines.tick_ms), 0, 10000, "ms", "0",
     NULL, NULL,
     "A tick that works longer misses; 0 means half a control period."},
    {"deadlines", "chunk_latency_ms", KEY_REAL, false, AT(deadlines.chunk_latency_ms), 0,
     60000, "ms", "0", NULL, NULL,
     "A chunk that comes later after its observation misses; 0 means the time of the rows "
     "that are used."},
    {"deadlines", "sensor_age_ms", KEY_REAL, false, AT(deadlines.sensor_age_ms), 0, 10000,
     "ms", "0", NULL, NULL,
     "A command made from an older joint state misses; 0 means the larger of 100 ms and 5 "
     "of its periods."},

    {"black_box", "directory", KEY_PATH, false, AT(black_box.directory), 0, 0, "", NULL,
     "the service's log directory, else $XDG_STATE_HOME/actd/INSTANCE (~/.local/state)",
     NULL,
     "Where the last 5 s of ticks are written when a fault stops the arm."},
    {"black_box", "keep", KEY_INT, false, AT(black_box.keep), 1, 10000, "files", "20", NULL,
     NULL,
     "So many files are kept; the oldest gives way."},

    {"record", "mode", KEY_WORD, false, AT(record.mode), 0, 0, "", "off", NULL,
     record_words,
     "off: only between `actctl record start` and `stop`; always: from start to end; trigger: "
     "before_s and after_s around every fault that stops the arm."},
    {"record", "directory", KEY_PATH, false, AT(record.directory), 0, 0, "", NULL,
     "the directory record in that of the black box", NULL,
     "Where the files go; made if it is missing."},
    {"record", "compression", KEY_WORD, false, AT(record.compression), 0, 0, "", "zstd",
     NULL, compression_words,
     "Of all but pictures that are compressed already."},
    {"record", "frames", KEY_BOOL, false, AT(record.frames), 0, 0, "", "true", NULL, NULL,
     "Record the cameras too; without their frames a replay takes the chunks as recorded."},
    {"record", "segment_mb", KEY_INT, false, AT(record.segment_mb), 1, 1000000, "MB",
     "512", NULL, NULL,
     "A new file begins when one is so large (MB of 2^20 bytes), or a quarter of most_mb."},
    {"record", "segment_minutes", KEY_REAL, false, AT(record.segment_minutes), 0.05, 10000,
     "min", "10", NULL, NULL,
     "Or covers so much time."},
    {"record", "keep_free_mb", KEY_INT, false, AT(record.keep_free_mb), 0, 100000000, "MB",
     "1024", NULL, NULL,
     "The oldest files of this daemon go until so much of the disk is free; those with a "
     "fault last, and the newest 8 of them never."},
    {"record", "most_mb", KEY_INT, false, AT(record.most_mb), 0, 100000000, "MB", "0",
     NULL, NULL,
     "All its files together take no more, likewise; 0 means no bound."},
    {"record", "before_s", KEY_REAL, false, AT(record.before_s), 0, 600, "s", "10", NULL,
     NULL,
     "In mode trigger: kept in memory, and written when a fault stops the arm or somebody sets "
     "a mark. Else: files that end so near before a fault are kept as its own."},
    {"record", "after_s", KEY_REAL, false, AT(record.after_s), 0, 600, "s", "5", NULL,
     NULL,
     "In mode trigger: recorded after that. Else: as before_s, behind it."},
    {"record", "memory_mb", KEY_INT, false, AT(record.memory_mb), 1, 65536, "MB", "256",
     NULL, NULL,
     "In mode trigger: the memory for before_s; less time is kept when it is full."},

    {"operators", "socket", KEY_PATH, false, AT(operators.socket), 0, 0, "", NULL,
     "RUNTIME/control", NULL,
     "The control socket that actctl talks to; an absolute path of at most 107 bytes."},
    {"operators", "act", KEY_NAMES, false, AT(operators.act), 0, 0, "", "@actd-operators",
     NULL, NULL,
     "Who may arm, disarm, stop, reset, swap and record; they may also read."},
    {"operators", "read", KEY_NAMES, false, AT(operators.read), 0, 0, "", "@actd-clients",
     NULL, NULL,
     "Who may ask for status, policies, metrics and findings."},

    {"swap", "directory", KEY_PATH, false, AT(swap.directory), 0, 0, "", NULL,
     "none: nothing can be swapped to", NULL,
     "Holds the policies that `actctl swap NAME` may bring, each a directory in it; relative "
     "to this file."},
    {"swap", "max_difference", KEY_REAL, false, AT(swap.max_difference), 0, 100, "rad",
     "0.3", NULL, NULL,
     "When the two policies' chunks from one observation lie further apart in any joint, the "
     "swap needs --force."},
    {"swap", "fade_ms", KEY_REAL, false, AT(swap.fade_ms), 0, 10000, "ms", "500", NULL,
     NULL,
     "Length of the passage from the old policy's motion to the new one's; 0 means none."},
    {"swap", "trials", KEY_INT, false, AT(swap.trials), 5, 100, "inferences", "5", NULL,
     NULL,
     "So many inferences of the new policy are timed before it may drive."},

    {"metrics", "listen", KEY_LISTEN, false, AT(metrics.listen), 0, 0, "", NULL, "nowhere",
     NULL,
     "Where Prometheus may fetch /metrics over HTTP."},

    {"cameras", "key", KEY_NAME, true, AT_C(key), 0, 0, "", NULL, NULL, NULL,
     "The checkpoint's image key."},
    {"cameras", "endpoint", KEY_ENDPOINT, false, AT_C(endpoint), 0, 0, "", NULL,
     "ipc://RUNTIME/camera.NAME", NULL,
     "ZeroMQ endpoint."},
    {"cameras", "bind", KEY_BOOL, false, AT_C(bind), 0, 0, "", "true", NULL, NULL,
     "true: actd binds and the camera connects."},
    {"cameras", "rate_hz", KEY_REAL, true, AT_C(rate_hz), 0.5, 1000, "Hz", NULL, NULL,
     NULL,
     "Frames per second; staleness is judged by it."},
    {"cameras", "latency_ms", KEY_REAL, false, AT_C(latency_ms), 0, 1000, "ms", "0", NULL,
     NULL,
     "From exposure to the time stamp in the message."},
    {"cameras", "frozen", KEY_WORD, false, AT_C(frozen), 0, 0, "", "warn", NULL,
     frozen_words,
     "When 10 frames in a row have the same content: ignore it, warn, or treat the camera "
     "as off."},
    {"cameras", "primary", KEY_BOOL, false, AT_C(primary), 0, 0, "", NULL,
     "true for the first camera", NULL,
     "Its newest frame sets the time of an observation; the others give their "
     "nearest."},

    {"joints", "state", KEY_NAME, false, AT_J(state), 0, 0, "", NULL,
     "the joint's own name", NULL,
     "Its name in policy.yaml's state_names."},
    {"joints", "action", KEY_NAME, false, AT_J(action), 0, 0, "", NULL, "what state says",
     NULL,
     "Its name in policy.yaml's action_names."},
    {"joints", "scale", KEY_REAL, false, AT_J(scale), -1e6, 1e6, "per rad", NULL,
     "from policy.yaml's units: 1 for rad and m, 180/pi for deg", NULL,
     "policy = (wire - offset) * scale."},
    {"joints", "offset", KEY_REAL, false, AT_J(offset), -1000, 1000, "rad", "0", NULL,
     NULL,
     "Where the policy's zero lies on the wire."},
    {"joints", "position", KEY_RANGE, true, AT_RANGE(min), -1000, 1000, "rad", NULL, NULL,
     NULL,
     "Limits of the commanded position."},
    {"joints", "hard_position", KEY_RANGE, false, AT_RANGE(hard_min), -1000, 1000, "rad",
     NULL, "position, widened on both sides by its own width", NULL,
     "A target beyond these is not limited but refused, and a fault."},
    {"joints", "home", KEY_REAL, false, AT_J(home), -1000, 1000, "rad", NULL, "none", NULL,
     "Of the rest pose that `actctl home` goes to; for all joints or none."},
    {"joints", "velocity", KEY_REAL, true, AT_J(velocity), 0.001, 100, "rad/s", NULL,
     NULL, NULL,
     "Limit."},
    {"joints", "acceleration", KEY_REAL, true, AT_J(acceleration), 0.01, 10000, "rad/s^2",
     NULL, NULL, NULL,
     "Limit."},
    {"joints", "jerk", KEY_REAL, false, AT_J(jerk), 0, 1e6, "rad/s^3", "0", NULL, NULL,
     "Limit; 0 means none."},
    {"joints", "stop_acceleration", KEY_REAL, false, AT_J(stop_acceleration), 0.01, 10000,
     "rad/s^2", NULL, "the acceleration limit", NULL,
     "Deceleration of a stop."},
    {"joints", "following_error", KEY_REAL, false, AT_J(following_error), 0, 100, "rad",
     "0", NULL, NULL,
     "Largest distance between command and measurement; more is taken for a "
     "collision; 0 means not watched."},
    {"joints", "blend", KEY_BOOL, false, AT_J(blend), 0, 0, "", "true", NULL, NULL,
     "false: always the newest chunk, neither blended nor interpolated (grippers)."},
};
// clang-format on
const int config_keys = sizeof config_key / sizeof *config_key;

const struct config_key *config_key_find(const char *section, const char *name)
{
    for (int i = 0; i < config_keys; i++)
        if (strcmp(config_key[i].section, section) == 0 &&
            strcmp(config_key[i].name, name) == 0)
            return &config_key[i];
    return NULL;
}

void config_key_path(const struct config_key *k, const char *name, char *out, size_t size)
{
    bool top = !*k->section, each = name && *name;

    snprintf(out, size, "%s%s%.60s%s%s", k->section, top ? "" : ".", each ? name : "",
             each ? "." : "", k->name);
}
