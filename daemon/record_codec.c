// The way out. Messages are put together on the stack and packed by protobuf-c straight into the
// caller's memory: nothing is allocated. Three things protobuf-c would do wrong are done by hand:
// it takes -0.0 for a zero that need not be sent, it wants text to end with 0 (a line of the log
// on the tape does not), and it does not mind text that is no UTF-8, which readers in other
// languages refuse together with the whole message.
#include "daemon/record_codec_impl.h"

#include <math.h>
#include <string.h>

#include "actd/v1/record.pb-c.h"
#include "foxglove/Log.pb-c.h"

#define WIRE_FIXED64 1
#define WIRE_BYTES   2

struct span { // memory of the caller's that is being filled
    unsigned char *data;
    size_t n, capacity;
    bool full; // something did not fit: nothing counts
};

static void put_message(struct span *out, const ProtobufCMessage *m)
{
    size_t n = protobuf_c_message_get_packed_size(m);

    if (out->full || n > out->capacity - out->n)
        out->full = true;
    else
        out->n += protobuf_c_message_pack(m, out->data + out->n);
}

static void put(struct span *out, const void *data, size_t n)
{
    if (out->full || n > out->capacity - out->n) {
        out->full = true;
    } else if (n > 0) {
        memcpy(out->data + out->n, data, n);
        out->n += n;
    }
}

static void put_varint(struct span *out, uint64_t v)
{
    unsigned char b[10];
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        b[n++] = (unsigned char)(v | 0x80);
    b[n++] = (unsigned char)v;
    put(out, b, n);
}

// The double of a field if it is -0.0. Fields may come in any order.
static void put_minus_zero(struct span *out, unsigned field, double x)
{
    static const unsigned char minus_zero[8] = {0, 0, 0, 0, 0, 0, 0, 0x80};

    if (x != 0 || !signbit(x))
        return;
    put_varint(out, field << 3 | WIRE_FIXED64);
    put(out, minus_zero, sizeof minus_zero);
}

static bool follows(const unsigned char *s, size_t n, size_t i, unsigned char low,
                    unsigned char high)
{
    return i < n && s[i] >= low && s[i] <= high;
}

// Bytes of the character at s, 0 when it is none: too long a form, a surrogate, beyond Unicode.
static size_t utf8(const unsigned char *s, size_t n)
{
    unsigned char c = s[0];
    size_t more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;

    if ((c >= 0x80 && c < 0xc2) || c > 0xf4)
        return 0;
    if (more > 0 && !follows(s, n, 1, low, high))
        return 0;
    for (size_t i = 2; i <= more; i++)
        if (!follows(s, n, i, 0x80, 0xbf))
            return 0;
    return 1 + more;
}

// What is no UTF-8 becomes question marks, byte by byte: the length stays.
static void clean(char *text, size_t n)
{
    unsigned char *s = (unsigned char *)text;

    for (size_t i = 0, step; i < n; i += step) {
        step = utf8(s + i, n - i);
        if (step == 0) {
            s[i] = '?';
            step = 1;
        }
    }
}

static void put_text(struct span *out, unsigned field, const char *text, size_t n)
{
    if (n == 0)
        return;
    put_varint(out, field << 3 | WIRE_BYTES);
    put_varint(out, n);
    put(out, text, n);
    if (!out->full)
        clean((char *)out->data + out->n - n, n);
}

static size_t bytes_of(const struct span *out)
{
    return out->full ? 0 : out->n;
}

// ---- ticks -----------------------------------------------------------------------------------

struct tick_scratch { // what a tick's message points to
    Actd__V1__CameraMark mark[POLICY_MAX_CAMERAS], *marks[POLICY_MAX_CAMERAS];
    double measured[ACTD_MAX_JOINTS], measured_velocity[ACTD_MAX_JOINTS],
        target[ACTD_MAX_JOINTS], target_velocity[ACTD_MAX_JOINTS],
        wanted[ACTD_MAX_JOINTS], commanded[ACTD_MAX_JOINTS],
        commanded_velocity[ACTD_MAX_JOINTS], seam[ACTD_MAX_JOINTS];
    Actd__V1__Limit limit[ACTD_MAX_JOINTS];
};

static void tick_inputs_out(Actd__V1__Tick *m, struct tick_scratch *s,
                            const struct tick_inputs *in, int cameras)
{
#define COPY(field) m->field = in->field;
    RECORD_TICK_INPUTS(COPY)
#undef COPY
    for (int i = 0; i < cameras; i++) {
        actd__v1__camera_mark__init(&s->mark[i]);
#define COPY(field) s->mark[i].field = in->camera[i].field;
        RECORD_TICK_CAMERA(COPY)
#undef COPY
        s->marks[i] = &s->mark[i];
    }
    m->cameras = s->marks;
    m->n_cameras = (size_t)cameras;
}

static uint64_t bits(double x)
{
    uint64_t b;

    memcpy(&b, &x, sizeof b);
    return b;
}

// Empty when it says nothing of any joint: all are the NaN that <math.h> has. Any other NaN is
// kept, bit by bit, with those beside it.
static size_t target_count(const double *x, size_t n)
{
    const double nothing = NAN;

    for (size_t i = 0; i < n; i++)
        if (bits(x[i]) != bits(nothing))
            return n;
    return 0;
}

static void tick_joints_out(Actd__V1__Tick *m, struct tick_scratch *s,
                            const struct tick_record *r)
{
    size_t n = (size_t)r->joints;

    for (size_t i = 0; i < n; i++) {
#define COPY(field, of) s->field[i] = r->joint[i].of;
        RECORD_TICK_COLUMNS(COPY)
        RECORD_TICK_TARGETS(COPY)
#undef COPY
        s->limit[i] = (Actd__V1__Limit)r->joint[i].limit;
    }
#define POINT(field, of) \
    m->field = s->field; \
    m->n_##field = n;
    RECORD_TICK_COLUMNS(POINT)
#undef POINT
#define POINT(field, of) \
    m->field = s->field; \
    m->n_##field = target_count(s->field, n);
    RECORD_TICK_TARGETS(POINT)
#undef POINT
    m->limit = s->limit;
    m->n_limit = n;
}

size_t record_tick(const struct tick_record *r, void *data, size_t capacity)
{
    Actd__V1__Tick m = ACTD__V1__TICK__INIT;
    struct span out = {data, 0, capacity, false};
    struct tick_scratch s;

    if (r->joints < 0 || r->joints > ACTD_MAX_JOINTS || r->cameras < 0 ||
        r->cameras > POLICY_MAX_CAMERAS)
        return 0;
    tick_inputs_out(&m, &s, &r->in, r->cameras);
    m.mode = (Actd__V1__Mode)r->mode;
    m.reason = (Actd__V1__Reason)r->reason;
#define COPY(field) m.field = r->field;
    RECORD_TICK_OUTCOME(COPY)
#undef COPY
    m.chunks_blended = r->chunks_blended > 0 ? (uint32_t)r->chunks_blended : 0;
    tick_joints_out(&m, &s, r);
    put_message(&out, &m.base);
    put_minus_zero(&out, 12, m.joints_refused_value);
    put_minus_zero(&out, 43, m.culprit_value);
    put_minus_zero(&out, 55, m.chunk_row);
    put_minus_zero(&out, 56, m.chunk_remaining);
    return bytes_of(&out);
}

// ---- inputs, chunks --------------------------------------------------------------------------

size_t record_input(const struct tape_input *in, void *data, size_t capacity)
{
    Actd__V1__Input m = ACTD__V1__INPUT__INIT;
    struct span out = {data, 0, capacity, false};

    if (in->stream < 0 || in->verdict < 0)
        return 0;
#define COPY(field) m.field = in->field;
    RECORD_INPUT(COPY)
#undef COPY
    m.kind = (Actd__V1__Input__Kind)in->kind;
    m.stream = (uint32_t)in->stream;
    m.outcome = (Actd__V1__Input__Outcome)in->outcome;
    m.verdict = (uint32_t)in->verdict;
    m.form = (Actd__V1__Input__Form)in->form;
    put_message(&out, &m.base);
    return bytes_of(&out);
}

size_t record_part(const struct codec_part *part, void *out, size_t capacity)
{
    const unsigned char flags = (unsigned char)((part->more ? RECORD_PART_MORE : 0) |
                                                (part->first ? RECORD_PART_FIRST : 0));
    struct span s = {out, 0, capacity, false};

    put(&s, &flags, 1);
    put(&s, part->data, part->size);
    return bytes_of(&s);
}

size_t record_chunk_bytes(int rows, int joints)
{
    // 13 fields of at most 12 bytes and two tables of at most 10 bytes a camera.
    return 13 * 12 + 2 * (4 + 10 * (size_t)POLICY_MAX_CAMERAS) +
           (size_t)rows * (size_t)joints * sizeof(float);
}

// Up to the last camera that says something.
static size_t cameras_used(const struct tape_chunk *c)
{
    size_t n = POLICY_MAX_CAMERAS;

    while (n > 0 && c->frame_ns[n - 1] == 0 && c->capture_ns[n - 1] == 0)
        n--;
    return n;
}

size_t record_chunk(const struct tape_chunk *c, const float *row, void *data,
                    size_t capacity)
{
    Actd__V1__Chunk m = ACTD__V1__CHUNK__INIT;
    struct span out = {data, 0, capacity, false};
    size_t cameras = cameras_used(c);

    if (c->rows < 1 || c->joints < 1 || c->joints > ACTD_MAX_JOINTS)
        return 0;
#define COPY(field) m.field = c->field;
    RECORD_CHUNK(COPY)
#undef COPY
    m.rows = (uint32_t)c->rows;
    m.joints = (uint32_t)c->joints;
    m.n_row = (size_t)c->rows * (size_t)c->joints;
    m.row = (float *)(uintptr_t)row; // packing only reads
    m.n_frame_ns = m.n_capture_ns = cameras;
    m.frame_ns = (int64_t *)(uintptr_t)c->frame_ns;
    m.capture_ns = (int64_t *)(uintptr_t)c->capture_ns;
    put_message(&out, &m.base);
    return bytes_of(&out);
}

// ---- events, seats ---------------------------------------------------------------------------

size_t record_event(const struct tape_event *e, int64_t wall_ns, const char *text,
                    size_t n, void *data, size_t capacity)
{
    Google__Protobuf__Timestamp stamp = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    Foxglove__Log m;
    struct span out = {data, 0, capacity, false};
    int64_t nanos = wall_ns % NS_PER_S;
    char name[sizeof e->name + 1] = {0};

    nanos += nanos < 0 ? NS_PER_S : 0;
    stamp.seconds = (wall_ns - nanos) / NS_PER_S;
    stamp.nanos = (int32_t)nanos;
    memcpy(name, e->name, sizeof e->name);
    clean(name, strlen(name));
    foxglove__log__init(&m);
    m.timestamp = &stamp;
    m.level = (Foxglove__Log__Level)e->level;
    m.name = name;
    put_message(&out, &m.base);
    put_text(&out, 3, text, n);
    return bytes_of(&out);
}

static bool ends(const char *text, size_t capacity)
{
    return strnlen(text, capacity) < capacity;
}

size_t record_seat(const struct tape_seat *seat, const char *sidecar, size_t n,
                   void *data, size_t capacity)
{
    Actd__V1__Seat m;
    struct span out = {data, 0, capacity, false};
    struct tape_seat s = *seat;

    actd__v1__seat__init(&m);
#define POINT(field)                    \
    if (!ends(s.field, sizeof s.field)) \
        return 0;                       \
    clean(s.field, strlen(s.field));    \
    m.field = s.field;
    RECORD_SEAT_TEXTS(POINT)
#undef POINT
    m.generation = s.generation;
    m.since_ns = s.since_ns;
    m.threads = s.threads > 0 ? (uint32_t)s.threads : 0;
    put_message(&out, &m.base);
    put_text(&out, 8, sidecar, n);
    return bytes_of(&out);
}
