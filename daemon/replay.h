// replay: a recorded run once more, with the log as source and its times as clock: the same intake,
// cameras, policy, loop, chunks, guard, gate, outbox and codec, in one thread, never waiting. What
// comes out is held against what was recorded, byte by byte.
//
//   input k   the bytes of message k, judged by intake or camera as then (armed as then): what
//             becomes of it must be what became of it
//   chunk n   the frames and joints of its request, through the policy of its generation: the rows
//             must be the rows
//   tick t    the sample, chunks, marks, requests and times that went into it, onto a board, and
//             loop_tick: the record must be the record
//   command s what the loop made of it, through outbox and codec at the time at which it left: the
//             bytes must be the bytes
//
// It begins with the first tick of the process, or with the first keyframe of the log; a gap in the
// ticks ends what can be compared until the next keyframe. All plain.
#ifndef ACTD_REPLAY_H
#define ACTD_REPLAY_H

#include "daemon/config.h"
#include "daemon/intake.h"
#include "daemon/logbook.h"
#include "daemon/loop.h"
#include "daemon/record_codec.h"

struct replay_options {
    bool no_policy; // take the chunks as they were recorded
    bool strict;    // chunks of a policy that is not there, or another one, differ
    const char *policy_root; // look for policies here before the directory they came from
    double
        tolerance_rad; // < 0: bits. 0: by build (same program and kernels: bits, else 1e-5)
    const char *output; // write what came out as a log of its own; NULL = no
    // what-if: another configuration or policy in place of the recorded one; NULL = as recorded.
    const char *config_file, *policy_directory;
    bool quiet;
    void *arg; // of tick
    // Called after each tick that was replayed, with both records; NULL = not.
    void (*tick)(void *arg, const struct tick_record *then,
                 const struct tick_record *now);
    void (*chunk)(void *arg, const struct tape_chunk *c, const float *then,
                  const float *now);
    // Called now and then with the time of the log that is done; false: stop, -ECANCELED.
    bool (*going)(void *arg, ns_t covered_ns);
};

struct replay_difference { // the first one
    bool any;
    bool
        bytes_only; // only bytes of an input, which changed nothing: any other would be told instead
    uint64_t tick;     // in which, or the last one before it
    const char *stage; // "input", "chunk", "tick", "command"
    char text[400];    // what differs: field, joint, then, now
};

struct replay_result {
    uint64_t ticks, inputs, chunks, commands; // compared
    uint64_t chunks_taken;   // as recorded: their frames are not in the log, or no_policy
    uint64_t ticks_skipped;  // not comparable: before the first state, after a gap
    uint64_t inputs_skipped; // likewise, or their bytes are not in the log
    uint64_t commands_skipped; // likewise
    uint64_t gaps, keyframes;  // in the ticks; that were gone on from
    uint64_t unreadable;       // records, and places in the file
    uint64_t differing[4];     // inputs, chunks, ticks, commands
    double largest_rad;        // of all differing commands
    struct replay_difference first;
    ns_t covered_ns, took_ns;
    bool bits;          // bit equality was asked for
    bool other_kernels; // this machine has none of those that computed the chunks
    double tolerance_rad;
    char note[400]; // what could not be done as asked, and why; "" = nothing
};

// 0: ran to the end of the log (look at result for differences); -errno with err.
int replay_run(struct logbook *book, const struct replay_options *opt,
               struct replay_result *out, struct config_error *err);

// ---- the core --------------------------------------------------------------------------------
// The robot that was recorded, as its parts want to be told. replay_run makes it of the recorded
// configuration; a test that owns its world hands its own over.
struct replay_robot {
    struct loop_config loop; // blackbox is ignored
    struct intake_config intake;
    const char *joint[ACTD_MAX_JOINTS];
    int cameras;
    struct replay_camera {
        const char *name; // topic /camera/NAME
        double latency_ms, rate_hz;
        int width, height; // camera_expect; 0 = any
    } camera[POLICY_MAX_CAMERAS];
    int rows; // of a chunk, at most
    // Where think makes other rows than were recorded: how many at most, and how far apart (0 = as
    // recorded); 0 = it does not.
    int think_rows;
    ns_t think_step_ns;
    // Makes one chunk anew: image (by config camera, NULL where frame_ns is 0), joints of the
    // sample. row (rows, joints) is to fill, rows being the request's, or think_rows if that is more.
    // How many it made, -ENOENT: take it as recorded, -errno with err. NULL: all are taken as
    // recorded.
    void *arg;
    int (*think)(void *arg, const struct tape_chunk *request,
                 const struct policy_image *image, const struct joint_sample *joints,
                 float *row, struct config_error *err);
};
int replay_run_robot(struct logbook *book, const struct replay_robot *robot,
                     const struct replay_options *opt, struct replay_result *out,
                     struct config_error *err);

// `actd replay verify|what-if|eval|publish …`: exit statuses as in the manual.
int replay_main(int argc, char **argv);
int replay_eval_main(int argc, char **argv);    // replay_eval.c
int replay_publish_main(int argc, char **argv); // replay_publish.c
int replay_report_main(int argc, char **argv);  // report.c: LOG… -o out.html

#endif
