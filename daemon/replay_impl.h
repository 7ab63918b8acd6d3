// What replay's own files share: the robot that is made anew, and how far it has come in the log.
// Nobody else includes this.
//
// Three boards stand for the one of the daemon, so that nobody sees what he does not get from the
// log: intake and cameras write one, the loop reads one, the outbox a third.
#ifndef ACTD_REPLAY_IMPL_H
#define ACTD_REPLAY_IMPL_H

#include "daemon/camera.h"
#include "daemon/outbox.h"
#include "daemon/replay.h"

#define REPLAY_SAMPLES   4096 // joint samples remembered: at 1 kHz a chunk may be 4 s late
#define REPLAY_AHEAD     64   // inputs of which the order is restored
#define REPLAY_TOLERANCE 1e-5 // rad, between two builds
#define REPLAY_FORMS     4    // of the bytes of a camera: topics
#define REPLAY_STREAMS   (1 + POLICY_MAX_CAMERAS)

enum replay_stage { REPLAY_INPUT, REPLAY_CHUNK, REPLAY_TICK, REPLAY_COMMAND };

struct replay_feed { // one topic, one message ahead
    struct logbook_cursor *cursor;
    struct mcap_message m; // the next one, if
    bool there;
    bool over;
};

struct replay_ahead { // inputs, by number
    int n;
    struct {
        uint64_t number, log_ns, sample;
        size_t size;
        unsigned char bytes[RECORD_INPUT_MAX];
    } item[REPLAY_AHEAD];
};

struct replay_rows { // the newest chunk that was judged
    bool there;
    struct tape_chunk c;
    float *row; // as it goes to the loop
};

struct replay_output;

struct replay {
    struct logbook *book;
    const struct replay_robot *robot;
    const struct replay_options *opt;
    struct replay_result *out;
    struct config_error *err;
    int64_t base_ns;
    double tolerance_rad; // 0 = bits
    bool judging;         // against what was recorded: else only make anew

    struct board bus, board, wire;
    struct tape *tape;
    struct intake *intake;
    struct camera *camera[POLICY_MAX_CAMERAS];
    struct loop *loop;
    struct outbox outbox;

    struct replay_feed ticks, inputs, chunks, commands, loop_states, bus_states;
    struct replay_feed raw[REPLAY_STREAMS][REPLAY_FORMS]; // the bytes of messages

    // Inputs.
    struct replay_ahead *ahead;
    uint64_t input;              // number of the last one
    bool knows[REPLAY_STREAMS];  // what was remembered of this sender then
    struct joint_sample *sample; // (REPLAY_SAMPLES), by number
    uint64_t on_board;           // number of the sample that the loop sees

    // Ticks.
    bool follows; // the loop is where the recorded one was
    bool any;     // tick was seen
    uint64_t tick;
    uint64_t sequence; // of the last command that was recorded, and
    bool sequence_unknown;
    bool refused;           // a state of the loop was
    uint64_t followed_from; // of the first since the loop is followed, 0 = none yet
    ns_t first_ns, last_ns;
    struct tick_record then, now;

    struct replay_rows rows;
    uint64_t chunk; // number of the last one
    struct replay_output *output;
};

// ---- replay_core.c ----------------------------------------------------------------------------
// The next message of a topic into f->m. False: there is none.
bool replay_peek(struct replay *r, struct replay_feed *f);
void replay_drop(struct replay_feed *f); // the one that was looked at
int replay_feed_open(struct replay *r, struct replay_feed *f, const char *topic);
ns_t replay_at(const struct replay *r, const struct mcap_message *m); // CLOCK_MONOTONIC
uint64_t replay_log_time(const struct replay *r, ns_t at_ns);         // the way back
void replay_differs(struct replay *r, enum replay_stage stage, uint64_t tick,
                    const char *text);
void replay_differs_in_bytes(struct replay *r, uint64_t tick, const char *text);

// ---- replay_inputs.c --------------------------------------------------------------------------
int replay_inputs_open(struct replay *r);
void replay_inputs_close(struct replay *r);
// Judges inputs until joint sample `number` is known, but none that came after until_ns. False: it
// is not.
bool replay_inputs_to(struct replay *r, uint64_t number, ns_t until_ns);
// Of joint states nothing is missing up to the next input, which is there.
bool replay_inputs_complete(const struct replay *r);
void replay_inputs_all(struct replay *r); // those that are left
const struct joint_sample *replay_sample(const struct replay *r, uint64_t number);
// The bytes of a camera message. *own is malloc'd. 0 or -errno.
int replay_frame(struct replay *r, int camera, ns_t at_ns, void **own, size_t *size);

// ---- replay_chunks.c --------------------------------------------------------------------------
// Judges chunks up to `number` and leaves that one in r->rows. False: it is not in the log.
bool replay_chunk(struct replay *r, uint64_t number);
void replay_chunks_all(struct replay *r);
void replay_chunks_close(struct replay *r);

// ---- replay_ticks.c ---------------------------------------------------------------------------
// The next tick of the log, if there is one. 1, 0 at the end, -errno with r->err.
int replay_tick(struct replay *r);

// ---- replay_commands.c ------------------------------------------------------------------------
// What became of the command of this tick.
void replay_command(struct replay *r, const struct command *c);
void replay_commands_all(struct replay *r);

// ---- replay_compare.c -------------------------------------------------------------------------
// In words, the first that differs by more than tolerance_rad; false: nothing does.
bool replay_compare_tick(const struct replay_robot *robot, const struct tick_record *then,
                         const struct tick_record *now, double tolerance_rad,
                         char text[400]);
bool replay_compare_input(const struct replay_robot *robot, const struct tape_input *then,
                          const struct tape_input *now, char text[400]);
// Nothing of an input differs but its bytes.
void replay_compare_bytes(const struct replay_robot *robot, const struct tape_input *then,
                          const struct tape_input *now, char text[400]);
bool replay_compare_rows(const struct replay_robot *robot, const struct tape_chunk *c,
                         const float *then, const float *now, double tolerance_rad,
                         char text[400]);
bool replay_compare_command(const void *then, size_t n_then, const void *now,
                            size_t n_now, double tolerance_rad, double *largest_rad,
                            char text[400]);

// ---- replay_output.c: what came out, as a log -------------------------------------------------
int replay_output_open(struct replay *r, const char *path);
// One message, as it is in the source but for its bytes. NULL is fine, here and below.
void replay_output_put(struct replay_output *o, const char *topic, uint64_t log_ns,
                       uint64_t publish_ns, const void *data, size_t size);
// What is on the replay's own tape and not yet taken: states.
void replay_output_states(struct replay *r);
// Where the recording has a state of its loop before this tick, or of its bus after this input, the
// output gets one made anew.
void replay_output_ask_loop(struct replay *r, uint64_t tick);
void replay_output_bus(struct replay *r, uint64_t input);
int replay_output_close(struct replay *r, bool good);

#endif
