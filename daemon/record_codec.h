// record_codec: between the tape's structs and the messages of a recording (actd/v1/record.proto).
// The same struct gives the same bytes, always: a replay compares them. Pure; any thread class but
// rt and io (decoding allocates).
#ifndef ACTD_RECORD_CODEC_H
#define ACTD_RECORD_CODEC_H

#include "daemon/codec.h"
#include "daemon/tape.h"

#define RECORD_TICK_MAX  16384 // bytes; 32 joints, 16 cameras: 4 k
#define RECORD_INPUT_MAX 256

// Each returns the bytes written, 0 when they do not fit (or counts are beyond what there can be).
// None allocates. Bytes of a text that are no UTF-8 become '?': readers refuse the message otherwise.
size_t record_tick(const struct tick_record *r, void *out, size_t capacity);
size_t record_input(const struct tape_input *in, void *out, size_t capacity);
size_t record_chunk(const struct tape_chunk *c, const float *row /* (rows, joints) */,
                    void *out, size_t capacity);
size_t record_chunk_bytes(int rows, int joints); // that any chunk of this shape fits into
// foxglove.Log. wall_ns: since 1970.
size_t record_event(const struct tape_event *e, int64_t wall_ns, const char *text,
                    size_t n, void *out, size_t capacity);
size_t record_seat(const struct tape_seat *s, const char *sidecar, size_t n, void *out,
                   size_t capacity);

// A part of a message of several: a byte, bit 0 if another one follows, bit 1 if it is the first;
// then its bytes.
#define RECORD_PART_ENCODING "actd-part" // of its channel
size_t record_part(const struct codec_part *part, void *out, size_t capacity);

// The way back; every count and number is checked. 0, or -EINVAL: not such a message.
int record_tick_read(struct tick_record *out, const void *data, size_t size);
int record_input_read(struct tape_input *out, const void *data, size_t size);
// part->data points into data.
int record_part_read(struct codec_part *part, const void *data, size_t size);
// *row is malloc'd, (rows, joints), the caller's.
int record_chunk_read(struct tape_chunk *out, float **row, const void *data, size_t size);
// *sidecar is malloc'd and ends with 0, the caller's.
int record_seat_read(struct tape_seat *out, char **sidecar, const void *data,
                     size_t size);

#endif
