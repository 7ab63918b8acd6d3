// What replay_eval_source.c (the log) and replay_eval_observe.c (what the policy sees of it) share.
#ifndef ACTD_REPLAY_EVAL_SOURCE_H
#define ACTD_REPLAY_EVAL_SOURCE_H

#include "daemon/codec.h"
#include "daemon/record_codec.h"
#include "daemon/replay_eval_impl.h"

#define EVAL_FRAMES  8   // of a camera that are kept
#define EVAL_SAMPLES 512 // samples, likewise
#define EVAL_DISORDER_NS \
    UINT64_C(100000000) // a record of an input is not later than this
#define EVAL_INPUTS 512 // records of what became of a message

struct eval_frame {
    int64_t at_ns, capture_ns; // log times; 0 = none
    void *data;
    size_t size, capacity;
};

struct eval_view { // of a camera
    struct eval_frame frame[EVAL_FRAMES];
    unsigned count;
    uint8_t *rgb;
    size_t capacity;
};

struct eval_sample {
    int64_t capture_ns;
    double pos[ACTD_MAX_JOINTS];
};

struct eval_track { // a topic
    struct logbook_cursor *cursor;
    struct mcap_message m;
    bool there;
};
enum {
    TRACK_INPUT,
    TRACK_JOINTS,
    TRACK_ACTION,
    TRACK_CAMERAS
}; // then two for each camera
#define TRACKS (TRACK_CAMERAS + 2 * POLICY_MAX_CAMERAS)

struct eval_source {
    struct eval *e;
    struct config_error *err;
    struct eval_track track[TRACKS];
    struct codec *joints, *actions;
    bool inputs; // the log says what became of each message
    struct tape_input input[EVAL_INPUTS];
    uint64_t n_inputs;
    struct eval_view view[POLICY_MAX_CAMERAS];
    struct eval_sample sample[EVAL_SAMPLES];
    uint64_t n_samples;
    int64_t due[EVAL_FRAMES]; // of the primary camera's frames: when to look; 0 = not
    int64_t wait_ns, skew_ns;
    float *row; // (rows, joints), robot's
};

// Anchors whose time has come, oldest first. 0 or -errno with s->err.
int eval_observe_due(struct eval_source *s, int64_t now);
// A frame of a camera, captured at this log time. 0 or -ENOMEM.
int eval_take_frame(struct eval_source *s, int camera, int64_t capture_ns,
                    const struct mcap_message *m);
void eval_views_free(struct eval_source *s);

#endif
