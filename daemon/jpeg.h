// jpeg: one camera's JPEG to RGB, with suspicion. libjpeg-turbo decodes every truncation
// of a file to a full picture that is partly grey, with only a warning; here a warning is
// an error. What the header says is checked before anything is decoded.
#ifndef ACTD_JPEG_H
#define ACTD_JPEG_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/codec.h"

// The picture's size from the markers before its pixels. io or plain; allocates nothing.
// CODEC_OK; CODEC_BAD_FORMAT: not a JPEG, or not a baseline one of 8 bits with one or
// three components in one scan (progressive and many-scan files take time without bound);
// CODEC_BAD_SIZE: larger than CAMERA_MAX_WIDTH x CAMERA_MAX_HEIGHT, or a size of 0.
enum codec_verdict jpeg_header(const uint8_t *data, size_t size, int *width, int *height);
// The same, and for CODEC_BAD_FORMAT a fixed sentence: what it is and what to send.
enum codec_verdict jpeg_examine(const uint8_t *data, size_t size, int *width, int *height,
                                const char **why);

struct jpeg; // a decoder, for one thread at a time

int jpeg_new(struct jpeg **out); // plain. 0 or -ENOMEM
void jpeg_free(struct jpeg *j);  // plain; NULL is fine

// plain. Pixels (height, width, 3) of a JPEG whose jpeg_header said width and height.
// Grey fills three channels. 0, or -EBADMSG on so much as a warning: rgb is then partly
// written.
int jpeg_decode(struct jpeg *j, const uint8_t *data, size_t size, int width, int height,
                uint8_t *rgb);

#endif
