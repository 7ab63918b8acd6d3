// Camera messages, read in place. The two message types are flat and small but for their
// pixels, so a bounded reader of protobuf's wire format replaces protobuf-c, which would
// copy up to 8 MiB. The tests hold it against protobuf-c on the same bytes.
//
//   field            1          2        3        4           5      6      7
//   CompressedImage  timestamp  data     format   frame_id    -      -      -
//   RawImage         timestamp  width    height   encoding    step   data   frame_id
//
// Lengths in CompressedImage's 2 and 3, 32-bit numbers in RawImage's: field 2's wire type
// says which of the two it is, and a message in which it is missing is neither.
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "daemon/camera.h"
#include "daemon/codec_impl.h"
#include "daemon/jpeg.h"

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_LENGTH = 2, WIRE_32 = 5 };

struct reader {
    const uint8_t *at, *end;
};

struct field {
    uint32_t number; // 0 = absent
    enum wire wire;
    uint64_t value;     // of WIRE_VARINT, WIRE_32
    struct reader body; // of WIRE_LENGTH
};
#define FIELDS 8 // numbers 1 to 7; others are skipped

static size_t left(const struct reader *r)
{
    return (size_t)(r->end - r->at);
}

static bool read_varint(struct reader *r, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte;

        if (r->at == r->end)
            return false;
        byte = *r->at++;
        if (shift == 63 && byte > 1) // the tenth byte has room for one bit
            return false;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool read_length(struct reader *r, struct reader *body)
{
    uint64_t size;

    if (!read_varint(r, &size) || size > left(r))
        return false;
    body->at = r->at;
    body->end = r->at += size;
    return true;
}

static bool read_fixed(struct reader *r, size_t bytes, uint64_t *value)
{
    if (left(r) < bytes)
        return false;
    *value = 0;
    for (size_t i = bytes; i-- > 0;)
        *value = *value << 8 | r->at[i];
    r->at += bytes;
    return true;
}

static bool read_field(struct reader *r, struct field *f)
{
    uint64_t tag;

    if (!read_varint(r, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
        return false;
    f->number = (uint32_t)(tag >> 3);
    f->wire = (enum wire)(tag & 7);
    switch (f->wire) {
    case WIRE_VARINT:
        return read_varint(r, &f->value);
    case WIRE_64:
        return read_fixed(r, 8, &f->value);
    case WIRE_32:
        return read_fixed(r, 4, &f->value);
    case WIRE_LENGTH:
        return read_length(r, &f->body);
    }
    return false; // groups, and two types that do not exist
}

struct stamp {
    int64_t seconds;
    int32_t nanos;
};

// Into what is there already: a message field that comes twice is merged.
static bool read_stamp(struct reader r, struct stamp *s)
{
    struct field f;

    while (left(&r) > 0) {
        if (!read_field(&r, &f))
            return false;
        if (f.number > 2)
            continue;
        if (f.wire != WIRE_VARINT)
            return false;
        if (f.number == 1)
            s->seconds = (int64_t)f.value;
        else
            s->nanos = (int32_t)(uint32_t)f.value;
    }
    return true;
}

// The last of each field, as protobuf wants it. One field with two wire types is refused.
static bool read_message(struct reader r, struct field field[FIELDS], struct stamp *s)
{
    struct field f;

    while (left(&r) > 0) {
        if (!read_field(&r, &f))
            return false;
        if (f.number >= FIELDS)
            continue;
        if (field[f.number].number != 0 && field[f.number].wire != f.wire)
            return false;
        if (f.number == 1 && (f.wire != WIRE_LENGTH || !read_stamp(f.body, s)))
            return false;
        field[f.number] = f;
    }
    return true;
}

static bool absent_or(const struct field *f, enum wire wire)
{
    return f->number == 0 || f->wire == wire;
}

static bool text_is(const struct field *f, const char *text)
{
    size_t n = strlen(text);

    return f->number != 0 && left(&f->body) == n && memcmp(f->body.at, text, n) == 0;
}

static enum codec_verdict unparsable(struct codec *c)
{
    return codec_refuse(c, CODEC_UNPARSABLE,
                        "neither a foxglove.CompressedImage nor a foxglove.RawImage");
}

static enum codec_verdict refuse_word(struct codec *c, const char *what,
                                      const struct field *f, const char *remedy)
{
    char quoted[CODEC_QUOTE];

    if (f->number == 0)
        return codec_refuse(c, CODEC_BAD_FORMAT, "it has no %s: %s", what, remedy);
    return codec_refuse(c, CODEC_BAD_FORMAT, "%s '%s' is not read: %s", what,
                        codec_quote(quoted, f->body.at, left(&f->body)), remedy);
}

static enum codec_verdict refuse_size(struct codec *c, uint64_t width, uint64_t height)
{
    return codec_refuse(c, CODEC_BAD_SIZE,
                        "%llu x %llu pixels: 1 x 1 to %d x %d are read",
                        (unsigned long long)width, (unsigned long long)height,
                        CAMERA_MAX_WIDTH, CAMERA_MAX_HEIGHT);
}

static enum codec_verdict compressed(struct codec *c, const struct field *field,
                                     struct codec_frame *out)
{
    const char *why;
    enum codec_verdict v;

    if (!absent_or(&field[3], WIRE_LENGTH) || !absent_or(&field[4], WIRE_LENGTH))
        return unparsable(c);
    out->format = CODEC_JPEG;
    out->data = field[2].body.at;
    out->size = left(&field[2].body);
    out->step = 0;
    if (out->size == 0)
        return codec_refuse(c, CODEC_EMPTY, "its data is empty");
    if (!text_is(&field[3], "jpeg") && !text_is(&field[3], "jpg"))
        return refuse_word(c, "format", &field[3], "send jpeg");
    v = jpeg_examine(out->data, out->size, &out->width, &out->height, &why);
    if (v == CODEC_BAD_SIZE)
        return refuse_size(c, (uint64_t)out->width, (uint64_t)out->height);
    return v == CODEC_OK ? v : codec_refuse(c, v, "%s", why);
}

// Rows lie `step` bytes apart and fill the data exactly.
static enum codec_verdict raw_size(struct codec *c, const struct field *field,
                                   uint64_t channels, struct codec_frame *out)
{
    uint64_t width = field[2].value, height = field[3].value, step = field[5].value;

    if (width == 0 || width > CAMERA_MAX_WIDTH || height == 0 ||
        height > CAMERA_MAX_HEIGHT)
        return refuse_size(c, width, height);
    if (step < width * channels)
        return codec_refuse(
            c, CODEC_BAD_SIZE,
            "step %llu is shorter than a row of %llu pixels of %llu bytes",
            (unsigned long long)step, (unsigned long long)width,
            (unsigned long long)channels);
    uint64_t bytes = step * height; // of two 32-bit numbers
    if (step > INT_MAX || bytes != out->size)
        return codec_refuse(c, CODEC_BAD_SIZE,
                            "data has %zu bytes, and step %" PRIu64
                            " times height %" PRIu64 " is %" PRIu64,
                            out->size, step, height, bytes);
    out->width = (int)width;
    out->height = (int)height;
    out->step = (int)step;
    return CODEC_OK;
}

static enum codec_verdict raw(struct codec *c, const struct field *field,
                              struct codec_frame *out)
{
    if (!absent_or(&field[3], WIRE_32) || !absent_or(&field[4], WIRE_LENGTH) ||
        !absent_or(&field[5], WIRE_32) || !absent_or(&field[6], WIRE_LENGTH) ||
        !absent_or(&field[7], WIRE_LENGTH))
        return unparsable(c);
    out->data = field[6].body.at;
    out->size = left(&field[6].body);
    if (out->size == 0)
        return codec_refuse(c, CODEC_EMPTY, "its data is empty");
    if (text_is(&field[4], "rgb8"))
        out->format = CODEC_RGB8;
    else if (text_is(&field[4], "bgr8"))
        out->format = CODEC_BGR8;
    else if (text_is(&field[4], "mono8"))
        out->format = CODEC_MONO8;
    else
        return refuse_word(c, "encoding", &field[4], "rgb8, bgr8, mono8");
    return raw_size(c, field, out->format == CODEC_MONO8 ? 1 : 3, out);
}

enum codec_verdict codec_frame(struct codec *c, const void *data, size_t size,
                               struct codec_frame *out)
{
    struct field field[FIELDS] = {{0}};
    struct stamp s = {0, 0};
    enum codec_verdict v;

    out->message = CODEC_NO_IMAGE;
    out->stamp_wall_ns = 0;
    if (size > CODEC_FRAME_MAX)
        return codec_refuse(c, CODEC_TOO_LARGE, "%zu bytes, %d at most", size,
                            CODEC_FRAME_MAX);
    if (size == 0)
        return codec_refuse(c, CODEC_EMPTY, "the message has no bytes");
    if (!read_message((struct reader){data, (const uint8_t *)data + size}, field, &s))
        return unparsable(c);
    if (field[2].number != 0 && field[2].wire == WIRE_LENGTH)
        out->message = CODEC_COMPRESSED_IMAGE;
    else if (field[2].number != 0 && field[2].wire == WIRE_32)
        out->message = CODEC_RAW_IMAGE;
    if (codec_wall(s.seconds, s.nanos, &out->stamp_wall_ns) != CODEC_OK)
        return codec_refuse(c, CODEC_BAD_STAMP, "its stamp, %lld s and %d ns, is no time",
                            (long long)s.seconds, (int)s.nanos);
    if (field[2].number == 0)
        return codec_refuse(
            c, CODEC_EMPTY,
            "it has neither data (of a CompressedImage) nor a width (of a "
            "RawImage)");
    v = out->message == CODEC_COMPRESSED_IMAGE ? compressed(c, field, out)
        : out->message == CODEC_RAW_IMAGE      ? raw(c, field, out)
                                               : unparsable(c);
    if (v == CODEC_UNPARSABLE)
        out->message = CODEC_NO_IMAGE;
    return v;
}
