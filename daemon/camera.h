// camera: one camera's way from raw message to pixels. The bus parks each newest message
// in one of three buffers; the camera's own thread (plain) decodes the newest one when an
// inference asks, in parallel with the other cameras'; the infer thread reads the pixels.
// A JPEG whose header says that it is too large or progressive is refused by the bus,
// like any frame that cannot be used by what it says of itself. One that decodes with so
// much as a warning counts as corrupt. Neither is used: the frame before it stays, and
// ages.
#ifndef ACTD_CAMERA_H
#define ACTD_CAMERA_H

#include "daemon/board.h"
#include "daemon/codec.h"
#include "policy/policy.h"

#define CAMERA_MAX_WIDTH  1920
#define CAMERA_MAX_HEIGHT 1200

struct camera;
struct tape;

// plain. Allocates all buffers (37 MiB of addresses; pages come with use) and starts the
// decode thread (SCHED_OTHER). Frames of any size up to the cap decode. mark stays the
// caller's: parked frames count as received, those with the stamp of the one before as
// duplicate, older ones as out of order, other bad ones as refused, and as corrupt those
// that fail in the decoder. 0 or -errno.
int camera_start(struct camera **out, const char *name, struct camera_mark *mark,
                 double latency_ms);
// plain. The same without a thread, for tests in virtual time: camera_request decodes
// there and then, camera_park does when the frame before was corrupt, camera_wait never
// waits and no function reads a clock. Then one thread at a time.
int camera_new(struct camera **out, struct camera_mark *mark, double latency_ms);
// plain. After the bus and infer threads have ended. NULL is fine.
void camera_stop(struct camera *c);

// plain. Before the first camera_park: the rate that was declared for it (0 = not judged,
// the default), and the flag that says that the arm may move: while it does, the sender's
// clock is not learned anew (NULL, the default: it never may).
void camera_declare(struct camera *c, double rate_hz, const _Atomic bool *armed);
// plain. Likewise: the one size that frames may have; 0, the default, takes any.
void camera_expect(struct camera *c, int width, int height);
// plain. Likewise: the tape on which each message and what became of it are put, as input of this
// stream (1 … in the order of the configuration). NULL, the default: none.
void camera_record(struct camera *c, struct tape *tape, int stream);

// io: the bus. A whole message as received; copies it, maps its stamp, updates the mark.
// Never waits: three buffers, one writer, one reader. Refused messages are counted. True
// when it was parked: else one that came before it may be tried. A frame with the content
// of the one before is parked too, and counted in mark->same_in_a_row.
bool camera_park(struct camera *c, struct codec *codec, const void *data, size_t size,
                 ns_t received_ns);
// io: the bus. The local wall clock was set by by_ns (wall.h): a camera on this machine
// follows it. The tape hears of it by intake_wall_set.
void camera_wall_set(struct camera *c, int64_t by_ns, ns_t now);
// io: the bus. A part of a message of several: the message is refused, unread, at its first part,
// and counted once.
void camera_part(struct camera *c, const struct codec_part *part, ns_t received_ns);
// io: the bus. Counts a message that came with a newer one behind it and was dropped: unread, but
// for its type and stamp while the tape is on.
void camera_supersede(struct camera *c, const void *data, size_t size, ns_t received_ns);
// Any thread class. Why the last refused message was; CODEC_OK when none was.
enum codec_verdict camera_last_refusal(const struct camera *c);
// Any thread class. The same as a sentence, in ASCII; "" when none was.
void camera_last_refusal_text(const struct camera *c, char text[CODEC_WHY_MAX]);
// Any thread class. Messages counted by camera_supersede: with received, refused,
// duplicate and out_of_order of the mark they make up all that came.
uint64_t camera_superseded(const struct camera *c);

// infer. Asks for the newest parked frame to be decoded; returns at once. From a frame
// that does not decode to the next that does, the camera also decodes each newer frame
// unasked: mark->corrupt_in_a_row says how things are even when nobody infers.
void camera_request(struct camera *c);
// infer. The same for the first frame to come that was captured at from_ns or later, or the newest
// if it was: it is decoded as it lands, in the camera's thread, and kept until the next request. A
// request that is still open is replaced.
void camera_await(struct camera *c, ns_t from_ns);
// infer. Waits for the answer at most timeout_ns (futex). 0; -ETIMEDOUT; -ENODATA before
// the first good frame. *image points to pixels that stay put until the next request. Its number
// counts this camera's frames that were decoded, from 1 and as long as the process runs: the same
// number is the same frame.
int camera_wait(struct camera *c, ns_t timeout_ns, struct policy_image *image,
                ns_t *capture_ns);
// infer. When the frame that camera_wait gave last was received: the received_ns of its
// camera_park. 0 before the first.
ns_t camera_received(const struct camera *c);

// plain. Pixels of one frame by itself, for tests and tools: decodes into rgb (capacity
// bytes), (height, width, 3). CODEC_OK; CODEC_BAD_SIZE: capacity; CODEC_BAD_FORMAT:
// corrupt.
enum codec_verdict camera_decode(const struct codec_frame *f, uint8_t *rgb,
                                 size_t capacity, int *width, int *height);

#endif
