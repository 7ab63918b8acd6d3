// The tape's records as messages. Ticks first: should the disk be slow, they are the last that may
// be lost; no class gets more than a megabyte before the others are looked at again.
#include <string.h>

#include "daemon/record_codec.h"
#include "daemon/recorder_impl.h"

#define QUANTUM (1u << 20)
// Lines of our own in the log: they are in the recording already, under their own name.
#define OURS "recording: "

static void lost(struct recorder *r)
{
    r->c.lost_messages++;
    r->trouble.lost.others++;
}

// n = 0: it could not be encoded, which is a loss like any other.
static void encoded(struct recorder *r, int topic, ns_t at_ns, const void *out, size_t n)
{
    if (n > 0) {
        recorder_message(r, KIND_SMALL, topic, at_ns, 0, out, n);
        return;
    }
    lost(r);
}

static void raw(struct recorder *r, int topic, const struct tape_entry *e)
{
    recorder_message(r, KIND_SMALL, topic, e->at_ns, 0, e + 1, e->size);
}

static void tick(struct recorder *r, const struct tape_entry *e)
{
    const struct tick_record *t = (const void *)(e + 1);
    unsigned char *out = recorder_scratch(r, RECORD_TICK_MAX);
    size_t n = 0;

    if (out != NULL && e->size >= tick_record_bytes(0) && t->joints >= 0 &&
        t->joints <= ACTD_MAX_JOINTS && e->size >= tick_record_bytes(t->joints))
        n = record_tick(t, out, r->scratch_size);
    encoded(r, TOPIC_TICK, e->at_ns, out, n);
}

// A part says in its first byte where in its message it stands.
static void part(struct recorder *r, enum recorder_kind kind, int topic, ns_t at_ns,
                 const struct codec_part *p)
{
    unsigned char *out = recorder_scratch(r, p->size + 1);
    size_t n = out ? record_part(p, out, p->size + 1) : 0;

    if (n > 0)
        recorder_message(r, kind, topic, at_ns, 0, out, n);
    else
        lost(r);
}

static void joints(struct recorder *r, const struct tape_input *in, const void *data,
                   size_t size)
{
    const struct codec_part p = {data, size, in->kind == TAPE_SEVERAL_PARTS, in->more};

    if (in->form == TAPE_PARTS)
        part(r, KIND_SMALL, TOPIC_JOINTS_PARTS, in->at_ns, &p);
    else
        recorder_message(r, KIND_SMALL,
                         in->form == TAPE_JOINTS ? TOPIC_JOINTS
                                                 : TOPIC_JOINTS_UNDECODABLE,
                         in->at_ns, in->stamp_wall_ns, data, size);
}

// The bytes of a joint state follow what became of it.
static void input(struct recorder *r, const struct tape_entry *e)
{
    unsigned char out[RECORD_INPUT_MAX];
    struct tape_input in;
    size_t n;

    if (e->size < sizeof in)
        return;
    memcpy(&in, e + 1, sizeof in);
    if (e->size > sizeof in || (in.kept && in.stream == 0))
        joints(r, &in, (const unsigned char *)(e + 1) + sizeof in, e->size - sizeof in);
    if (in.stream > 0 && !r->cfg.frames)
        in.kept = false;
    n = record_input(&in, out, sizeof out);
    encoded(r, TOPIC_INPUT, in.at_ns, out, n);
}

static void frame(struct recorder *r, const struct tape_entry *e)
{
    struct tape_frame f;
    const unsigned char *bytes;
    int topic;

    if (!r->cfg.frames || e->size < sizeof f)
        return;
    memcpy(&f, e + 1, sizeof f);
    if (f.camera < 0 || f.camera >= r->cfg.facts.cameras)
        return;
    bytes = (const unsigned char *)(e + 1) + sizeof f;
    topic = recorder_topic_camera(f.camera, f.form);
    if (f.form == TAPE_PARTS) {
        part(r, KIND_JPEG, topic, e->at_ns,
             &(struct codec_part){bytes, e->size - sizeof f, f.first, f.more});
        return;
    }
    recorder_message(r, f.form == TAPE_RAW ? KIND_RAW : KIND_JPEG, topic, e->at_ns,
                     f.stamp_wall_ns, bytes, e->size - sizeof f);
}

static void chunk(struct recorder *r, const struct tape_entry *e)
{
    struct tape_chunk c;
    unsigned char *out;
    size_t most, n;

    if (e->size < sizeof c)
        return;
    memcpy(&c, e + 1, sizeof c);
    if (c.rows < 0 || c.joints < 0 ||
        (uint64_t)c.rows * (uint64_t)c.joints * sizeof(float) > e->size - sizeof c)
        return;
    most = record_chunk_bytes(c.rows, c.joints);
    out = recorder_scratch(r, most);
    if (out == NULL)
        return;
    n = record_chunk(&c, (const float *)(const void *)((const char *)(e + 1) + sizeof c),
                     out, most);
    encoded(r, TOPIC_CHUNK, e->at_ns, out, n);
}

static void event(struct recorder *r, const struct tape_entry *e)
{
    struct tape_event ev;
    const char *text = (const char *)(e + 1) + sizeof ev;
    size_t n = e->size - sizeof ev;
    unsigned char *out;

    if (e->size < sizeof ev)
        return;
    memcpy(&ev, e + 1, sizeof ev);
    if (strcmp(ev.name, "actd") == 0 && n >= sizeof OURS - 1 &&
        memcmp(text, OURS, sizeof OURS - 1) == 0)
        return;
    out = recorder_scratch(r, n + 256);
    if (out == NULL)
        return;
    n = record_event(&ev, e->at_ns + r->base_ns, text, n, out, n + 256);
    encoded(r, TOPIC_EVENT, e->at_ns, out, n);
}

static void one(struct recorder *r, const struct tape_entry *e)
{
    switch ((enum tape_kind)e->kind) {
    case TAPE_TICK:
        tick(r, e);
        break;
    case TAPE_LOOP_STATE:
    case TAPE_BUS_STATE:
        raw(r, TOPIC_KEYFRAME, e);
        break;
    case TAPE_INPUT:
        input(r, e);
        break;
    case TAPE_COMMAND:
        raw(r, TOPIC_COMMAND, e);
        break;
    case TAPE_FRAME:
        frame(r, e);
        break;
    case TAPE_CHUNK:
        chunk(r, e);
        break;
    case TAPE_EVENT:
        event(r, e);
        break;
    }
}

static uint64_t some(struct recorder *r, enum tape_class c)
{
    const struct tape_entry *e;
    uint64_t bytes = 0;

    while (bytes < QUANTUM && (e = tape_peek(r->tape, c)) != NULL) {
        bytes += sizeof *e + e->size;
        one(r, e);
        tape_release(r->tape, c);
    }
    return bytes;
}

bool recorder_drain(struct recorder *r, uint64_t most_bytes)
{
    uint64_t bytes = 0, round;

    do {
        round = 0;
        for (int c = TAPE_CLASSES - 1; c >= 0; c--)
            round += some(r, (enum tape_class)c);
        bytes += round;
    } while (round > 0 && bytes < most_bytes);
    return round > 0;
}
