// codec: protobuf to plain structs and back, and the only place where wall-clock stamps
// meet the monotonic clock. What comes in is not trusted: size caps, a fixed arena for
// the parser (no malloc; an unknown-field bomb hits the arena's end and is refused), and
// checks of meaning after the parse, since a message of zero bytes is valid protobuf.
#ifndef ACTD_CODEC_H
#define ACTD_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/board.h"
#include "daemon/clock.h"

#define CODEC_JOINTS_MAX  (16 * 1024)       // bytes of a JointStates message
#define CODEC_FRAME_MAX   (8 * 1024 * 1024) // bytes of a camera message
#define CODEC_COMMAND_MAX (16 * 1024) // a buffer that holds any JointCommand we make

enum codec_verdict {
    CODEC_OK,
    CODEC_TOO_LARGE,
    CODEC_UNPARSABLE,
    CODEC_EMPTY,
    CODEC_WRONG_NAMES,
    CODEC_NOT_FINITE,
    CODEC_BAD_STAMP,
    CODEC_BAD_FORMAT,
    CODEC_BAD_SIZE,
    CODEC_IMPOSSIBLE, // no arm moves that fast; intake's
};
#define CODEC_VERDICTS 10
const char *codec_verdict_name(enum codec_verdict v); // any thread class

// One part of a message of several, which nobody sends on purpose: all that is looked at.
struct codec_part {
    const void *data;
    size_t size;
    bool first, more; // of its message; another one follows
};
#define CODEC_SEVERAL_PARTS "it has several parts: send each message in one"

#define CODEC_WHY_MAX 160 // bytes of a sentence about a refusal, its end included
#define CODEC_STEP_MS 50  // by so much a sender's clock has moved: accepted, and told
#define CODEC_JUMP_MS 500 // and by more than so much it is not believed

// Maps one sender's stamps to our clock. Kept is the smallest difference between receipt
// and stamp, so that one late message does not shift it. While the arm may move (learn
// false) it is only forgotten slowly, and a clock that jumps is refused for as long as it
// takes: what looks fresh because its clock moved would steer the arm. While it may not
// (learn true) the smallest of the last seconds counts, and a clock that three messages
// in a row agree upon is taken over. See codec_stamp.c.
struct codec_stamp {       // all zero to begin with
    int64_t offset_ns;     // monotonic minus sender's wall clock
    uint64_t samples;      // accepted with this clock; 0 = none yet
    ns_t last_ns;          // receipt of the last accepted one, and
    int64_t stamp_wall_ns; // its stamp
    bool late;             // it came CODEC_STEP_MS or more after the offset's time
    bool ahead; // the last one was refused for being CODEC_STEP_MS or more ahead,
    int64_t ahead_ns, ahead_wall_ns; // by this difference, with this stamp
    struct {
        int64_t now_ns, before_ns; // the smallest difference in this second, and before
        ns_t since_ns;             // when this second began
        uint32_t count;            // accepted in it
    } low;
    struct {            // a clock that may be the sender's new one
        uint32_t count; // messages in a row that agree on it
        int64_t least_ns, most_ns;
        ns_t first_ns;
        int64_t first_wall_ns, last_wall_ns;
    } other;
    struct { // what the local wall clock was set by, while this sender may still follow
        int64_t by_ns;
        ns_t until_ns;
    } set;
};

enum codec_time {
    CODEC_TIME_OK,
    CODEC_TIME_STEP, // accepted; the sender's clock, or the way, is now CODEC_STEP_MS off
    CODEC_TIME_SAME, // the stamp of the one before: no news, whatever is in it
    CODEC_TIME_BACK, // older than the last accepted one: came out of order
    CODEC_TIME_JUMP, // more than CODEC_JUMP_MS off
};
// What to think of a message stamped stamp_wall_ns and received at received_ns, and its
// capture time, never later than receipt. Of the last three verdicts *capture_ns is
// receipt and means nothing. A stamp of 0 means "not given": receipt counts. Any thread
// class; one at a time.
enum codec_time codec_stamp_map(struct codec_stamp *s, int64_t stamp_wall_ns,
                                ns_t received_ns, bool learn, ns_t *capture_ns);
void codec_stamp_reset(struct codec_stamp *s);
// The local wall clock was set by by_ns at now (wall.h). A sender on this machine stamps
// by the same clock: for 5 s a message is also held against what was known plus by_ns,
// and if that fits better the sender's clock is known anew, armed or not; nothing of it
// is refused and no age changes. For a sender with a clock of its own nothing changes.
void codec_stamp_wall_set(struct codec_stamp *s, int64_t by_ns, ns_t now);

struct codec; // the parser's arena and the names of the joints; one per thread

// plain. names (n) in the robot's order are copied. 0, -EINVAL (n) or -ENOMEM.
int codec_new(struct codec **out, const char *const *names, int n);
void codec_free(struct codec *c); // plain; NULL is fine

// A joint's name, 0 <= joint < n. Any thread class.
const char *codec_joint_name(const struct codec *c, int joint);

// Why the last message that this codec refused was: a sentence of ASCII, in which words
// of the sender are cut and escaped. io, on the codec's thread. "" before the first.
const char *codec_why(const struct codec *c);
// The sentence for a stamp of which codec_stamp_map just said JUMP: by how much.
// io. c may be NULL. Returns CODEC_BAD_STAMP.
enum codec_verdict codec_refuse_stamp(struct codec *c, const struct codec_stamp *s,
                                      int64_t stamp_wall_ns, ns_t received_ns);

// foxglove.JointStates. io. Every configured joint must be there exactly once, no other;
// any order. Fills pos, vel, n; stamp_wall_ns is the sender's. No allocation outside the
// arena.
enum codec_verdict codec_joints(struct codec *c, const void *data, size_t size,
                                struct joint_sample *out, int64_t *stamp_wall_ns);

// Of the last message that was CODEC_NOT_FINITE: the joint, and what was said of its
// position or velocity. io. -1 and 0 before the first.
int codec_not_finite(const struct codec *c, double *value);

// A camera frame, CompressedImage or RawImage (told apart by the wire type of field 2),
// not yet decoded; `data` points into the message. plain or io. Read without protobuf-c,
// which would copy the pixels; allocates nothing. c keeps the sentence about a refusal
// and may be NULL. The format of a CompressedImage may be "jpeg" or "jpg".
struct codec_frame {
    enum { CODEC_JPEG, CODEC_RGB8, CODEC_BGR8, CODEC_MONO8 } format;
    // These two are filled of a refused message as well, as far as they can be read.
    enum { CODEC_NO_IMAGE, CODEC_COMPRESSED_IMAGE, CODEC_RAW_IMAGE } message;
    int64_t stamp_wall_ns;   // 0 = none
    int width, height, step; // from the message, or from the JPEG header (step 0)
    const uint8_t *data;
    size_t size;
};
enum codec_verdict codec_frame(struct codec *c, const void *data, size_t size,
                               struct codec_frame *out);

// A google.protobuf.Timestamp's two fields as nanoseconds since 1970. Any thread class.
// CODEC_OK or CODEC_BAD_STAMP (negative, nanos out of range, or after the year 2116).
enum codec_verdict codec_wall(int64_t seconds, int32_t nanos, int64_t *wall_ns);

// The command's bytes into buf. made_wall_ns: its made_ns by the wall clock, since 1970. Reads no
// clock: the same command and time give the same bytes. io. Returns the size, or 0 when buf is too
// small or the command has another number of joints than the codec.
size_t codec_command(struct codec *c, const struct command *cmd, int64_t made_wall_ns,
                     void *buf, size_t capacity);

#endif
