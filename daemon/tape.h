// tape: the way from those who act to the one who writes it down. One spool per class of record,
// so that frames can be given up and tick records kept; whoever finds no room drops the record and
// counts it, and nobody waits. What is on the tape is the daemon's own structs and the bytes of
// messages as they came; the recorder (recorder.h) turns that into a file, in a thread of its own.
//
//   class     writer             records                                      given up
//   FRAMES    bus (io)           camera messages                              first
//   EVENTS    plain, any         lines of the log, marks                      second
//   CHUNKS    infer              chunks and the request that each answers     third
//   BUS       bus (io)           joint states, inputs, commands sent          fourth
//   TICKS     loop (rt)          ticks                                        last
//
// Each class has memory of its own, and frames are given up, too, while that of ticks or of the bus
// is half full.
//
// While the tape is off nothing is written and it costs a load per record. A state is what its
// owner remembers (keyframe.h), put on the tape when the recorder asks, so that a replay can begin
// there.
#ifndef ACTD_TAPE_H
#define ACTD_TAPE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/board.h"
#include "daemon/spool.h"
#include "daemon/tick.h"

enum tape_class { TAPE_FRAMES, TAPE_EVENTS, TAPE_CHUNKS, TAPE_BUS, TAPE_TICKS };
#define TAPE_CLASSES 5

enum tape_kind {     // and what follows struct tape_entry
    TAPE_TICK,       // TICKS: struct tick_record, cut after its joints
    TAPE_LOOP_STATE, // TICKS: keyframe.h
    TAPE_INPUT,      // BUS: struct tape_input; of a joint state that is kept, its bytes
    TAPE_COMMAND,    // BUS: the bytes sent
    TAPE_BUS_STATE,  // BUS: keyframe.h
    TAPE_FRAME,      // FRAMES: struct tape_frame, then the bytes
    TAPE_CHUNK,      // CHUNKS: struct tape_chunk, then (rows, joints) float
    TAPE_EVENT,      // EVENTS: struct tape_event, then its text, no end byte
};

struct tape_entry {
    uint32_t kind; // enum tape_kind
    uint32_t size; // of what follows
    ns_t at_ns;    // CLOCK_MONOTONIC: log time of the record
};

enum tape_input_kind {
    TAPE_MESSAGE,
    TAPE_SUPERSEDED,
    TAPE_SEVERAL_PARTS, // the first part of a message of several, which is refused for that
    TAPE_WALL_SET,
    TAPE_PART // one of those after it: each is an input of its own, so that none is too large
};
enum tape_outcome {
    TAPE_ACCEPTED,
    TAPE_REFUSED,
    TAPE_DUPLICATE,
    TAPE_OUT_OF_ORDER,
    TAPE_NONE
};
enum tape_form {
    TAPE_UNDECODABLE,
    TAPE_JOINTS,
    TAPE_COMPRESSED,
    TAPE_RAW,
    TAPE_PARTS      // of a message of several: unread
};                  // protobuf message
struct tape_input { // actd.v1.Input
    uint64_t number;
    ns_t at_ns;
    enum tape_input_kind kind;
    int stream; // 0 = joint states, 1 … = cameras
    bool armed;
    enum tape_outcome outcome;
    int verdict; // enum codec_verdict
    enum tape_form form;
    int64_t stamp_wall_ns; // the sender's, 0 = none that can be read
    uint64_t joint_sample;
    ns_t capture_ns;
    int64_t by_ns;
    uint64_t bytes;
    bool kept;
    bool more; // another part follows this one
    uint64_t
        check; // content_check of the bytes: a replay knows them by it; 0 = not taken
};

struct tape_frame {
    int camera; // config's
    enum tape_form form;
    bool first, more; // of a part: of its message; another one follows
    int64_t stamp_wall_ns;
};

struct tape_chunk { // actd.v1.Chunk
    uint64_t number, id;
    uint32_t generation;
    int32_t rows, joints;
    ns_t anchor_ns, oldest_ns, ready_ns, step_ns;
    ns_t
        began_ns; // ready less what the inference took, with what was computed early of it
    uint64_t joint_sample;
    ns_t frame_ns[POLICY_MAX_CAMERAS], capture_ns[POLICY_MAX_CAMERAS]; // by config camera
};

enum tape_level {
    TAPE_LEVEL_INFO = 2,
    TAPE_LEVEL_WARNING,
    TAPE_LEVEL_ERROR
}; // foxglove.Log's
struct tape_event {
    enum tape_level level;
    char name[16]; // who says it: "actd", "mark", "fault", "record"
};

struct tape_seat { // actd.v1.Seat; goes to the recorder by itself (recorder_seat)
    uint32_t generation;
    int threads;
    ns_t since_ns;
    char name[128], directory[4096], digest[72], config_sha256[72], weights_sha256[72],
        statistics_sha256[72];
};

struct tape {
    struct spool spool[TAPE_CLASSES];
    _Atomic bool on;
    _Atomic uint32_t loop_state_asked, bus_state_asked;
    uint32_t loop_state_given,
        loop_state_seen;                 // the loop's: which asking it has answered, and
    ns_t loop_state_seen_ns;             // since when it has known of the newest one
    _Atomic uint32_t bus_state_given;    // the bus's
    bool touched;                        // the recorder's: all pages are there
    uint64_t inputs;                     // bus: given a number so far
    uint64_t chunks;                     // infer: likewise
    pthread_mutex_t plain;               // among writers of EVENTS
    _Atomic uint64_t lost[TAPE_CLASSES]; // records, since it was made
    _Atomic uint64_t lost_bytes[TAPE_CLASSES];
};

struct tape_sizes {
    size_t bytes[TAPE_CLASSES]; // 0 = the default
};
#define TAPE_DEFAULT_FRAMES (64u << 20)
#define TAPE_DEFAULT_EVENTS (1u << 20)
#define TAPE_DEFAULT_CHUNKS (8u << 20)
#define TAPE_DEFAULT_BUS    (16u << 20)
#define TAPE_DEFAULT_TICKS \
    (64u << 20) // twice as long as BUS lasts: ticks are given up last

// plain, tape_init.c. Off; no page is touched. 0 or -ENOMEM.
int tape_new(struct tape **out, const struct tape_sizes *sizes);
void tape_free(struct tape *t); // NULL is fine
// plain, tape_init.c; the recorder. On: every page is touched first (once), and both states are
// asked for. Numbers of inputs and chunks go on counting while it is off.
void tape_turn(struct tape *t, bool on);

// Any thread. NULL is off.
static inline bool tape_on(const struct tape *t)
{
    return t != NULL && atomic_load_explicit(&t->on, memory_order_acquire);
}

// plain, the recorder. The owners shall put their state on the tape.
void tape_ask_states(struct tape *t);
// rt, io: was it asked for since the last time? True once per asking, and not while it is off.
// The loop's comes after the bus' of the same asking, so that it knows no sample that the bus does
// not: or, where the bus has nothing to do, TAPE_BUS_FIRST_NS after it was asked for.
#define TAPE_BUS_FIRST_NS (100 * NS_PER_MS)
bool tape_loop_state_due(struct tape *t, ns_t now);
bool tape_bus_state_due(struct tape *t);

// Each may be called with NULL and while off: then nothing happens (numbers are given all the
// same). None waits; true = it is on the tape.
bool tape_tick(struct tape *t, const struct tick_record *r); // rt
// rt, io. In place: fill *size or less, then tape_commit with what it became. NULL = no room.
void *tape_reserve(struct tape *t, enum tape_class c, enum tape_kind kind, ns_t at_ns,
                   size_t size);
void tape_commit(struct tape *t, enum tape_class c);
// io. Gives in->number, in->bytes and in->check, and sets in->kept: for a camera the bytes go to
// FRAMES first.
void tape_input(struct tape *t, struct tape_input *in, const void *data, size_t size);
bool tape_command(struct tape *t, ns_t sent_ns, const void *data, size_t size); // io
// infer. Gives c->number.
bool tape_chunk(struct tape *t, struct tape_chunk *c, const float *row);
bool tape_event(struct tape *t, ns_t at_ns, enum tape_level level, const char *name,
                const char *text); // plain, any

// The reader, plain. The oldest record of a class, in place until released; NULL = none waits.
const struct tape_entry *tape_peek(struct tape *t, enum tape_class c);
void tape_release(struct tape *t, enum tape_class c);
uint64_t tape_lost(const struct tape *t, enum tape_class c); // any thread: records, ever

#endif
