// codec: protobuf to plain structs and back, and the only place where wall-clock stamps
// meet the monotonic clock. What comes in is not trusted: size caps, a fixed arena for
// the parser (no malloc; an unknown-field bomb hits the arena's end and is refused), and
// checks of meaning after the parse, since a message of zero bytes is valid protobuf.
#ifndef ACTD_CODEC_H
#define ACTD_CODEC_H

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
};
#define CODEC_VERDICTS 9
const char *codec_verdict_name(enum codec_verdict v); // any thread class

#define CODEC_WHY_MAX 160 // bytes of a sentence about a refusal, its end included
#define CODEC_JUMP_MS 500 // that a sender's clock may jump

// Maps one sender's stamps to our clock: keeps the smallest seen difference between
// receipt and stamp, forgetting slowly, so that one late message does not shift it. A
// stamp of 0 means "not given": receipt counts. A sender's clock that jumps by more than
// CODEC_JUMP_MS is refused until codec_stamp_reset, or until nothing was accepted for 2 s: by
// then the ladder has stopped the arm, so that what is learned anew moves nothing.
struct codec_stamp {
    int64_t offset_ns;     // monotonic minus sender's wall clock
    uint64_t samples;      // since the last reset
    ns_t last_ns;          // receipt of the last accepted one, and
    int64_t stamp_wall_ns; // its stamp
};
// Capture time for a message stamped stamp_wall_ns and received at received_ns, never
// later than receipt. Any thread class. 0; -EALREADY: the same stamp as the one before
// it; -ERANGE: refused, a jump or older than the one before it.
int codec_stamp_map(struct codec_stamp *s, int64_t stamp_wall_ns, ns_t received_ns,
                    ns_t *capture_ns);
void codec_stamp_reset(struct codec_stamp *s);

struct codec; // the parser's arena and the names of the joints; one per thread

// plain. names (n) in the robot's order are copied. 0, -EINVAL (n) or -ENOMEM.
int codec_new(struct codec **out, const char *const *names, int n);
void codec_free(struct codec *c); // plain; NULL is fine

// Why the last message that this codec refused was: a sentence of ASCII, in which words
// of the sender are cut and escaped. io, on the codec's thread. "" before the first.
const char *codec_why(const struct codec *c);
// The sentence for a stamp that codec_stamp_map has just refused (-ERANGE), by how much.
// io. c may be NULL. Returns CODEC_BAD_STAMP.
enum codec_verdict codec_refuse_stamp(struct codec *c, const struct codec_stamp *s,
                                      int64_t stamp_wall_ns, ns_t received_ns);

// foxglove.JointStates. io. Every configured joint must be there exactly once, no other;
// any order. Fills pos, vel, n; stamp_wall_ns is the sender's. No allocation outside the
// arena.
enum codec_verdict codec_joints(struct codec *c, const void *data, size_t size,
                                struct joint_sample *out, int64_t *stamp_wall_ns);

// A camera frame, CompressedImage or RawImage (told apart by the wire type of field 2),
// not yet decoded; `data` points into the message. plain or io. Read without protobuf-c,
// which would copy the pixels; allocates nothing. c keeps the sentence about a refusal
// and may be NULL. The format of a CompressedImage may be "jpeg" or "jpg".
struct codec_frame {
    enum { CODEC_JPEG, CODEC_RGB8, CODEC_BGR8, CODEC_MONO8 } format;
    int64_t stamp_wall_ns;
    int width, height, step; // from the message, or from the JPEG header (step 0)
    const uint8_t *data;
    size_t size;
};
enum codec_verdict codec_frame(struct codec *c, const void *data, size_t size,
                               struct codec_frame *out);

// A google.protobuf.Timestamp's two fields as nanoseconds since 1970. Any thread class.
// CODEC_OK or CODEC_BAD_STAMP (negative, nanos out of range, or after the year 2116).
enum codec_verdict codec_wall(int64_t seconds, int32_t nanos, int64_t *wall_ns);

// The command's bytes into buf. io. Returns the size, or 0 when buf is too small or the
// command has another number of joints than the codec.
size_t codec_command(struct codec *c, const struct command *cmd, void *buf,
                     size_t capacity);

#endif
