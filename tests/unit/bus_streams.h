// Intake and two cameras with a board and a tape of their own, and random messages for them: good
// ones, and of every kind that is refused, passed over or put in doubt. Two sides that are given
// the same events must go the same way. One test program includes it once.
#ifndef TEST_BUS_STREAMS_H
#define TEST_BUS_STREAMS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/content.h"
#include "daemon/keyframe.h"
#include "foxglove/CompressedImage.pb-c.h"
#include "foxglove/JointStates.pb-c.h"
#include "foxglove/RawImage.pb-c.h"

#define UNUSED  __attribute__((unused))
#define JOINTS  3
#define CAMERAS 2
#define SIDE    8
#define WALL    (INT64_C(1700000000) * NS_PER_S)
#define MS      NS_PER_MS

static const char *const joint_names[JOINTS] = {"base", "elbow", "wrist"};

struct side {
    struct board board;
    struct tape *tape;
    struct intake *intake;
    struct camera *camera[CAMERAS];
};

UNUSED static struct side *side_new(bool taped)
{
    static const struct intake_config config = {
        .joints = JOINTS, .velocity = {2, 2, 2}, .max_jump = 0.25, .rate_hz = 100};
    const struct tape_sizes sizes = {{1 << 20, 1 << 16, 1 << 16, 1 << 20, 1 << 16}};
    struct side *s = calloc(1, sizeof *s);

    assert_non_null(s);
    assert_int_equal(board_init(&s->board, CAMERAS, 1, JOINTS), 0);
    assert_int_equal(tape_new(&s->tape, &sizes), 0);
    s->board.tape = taped ? s->tape : NULL;
    assert_int_equal(intake_new(&s->intake, &config, joint_names, &s->board), 0);
    for (int i = 0; i < CAMERAS; i++) {
        assert_int_equal(camera_new(&s->camera[i], &s->board.camera[i], 3), 0);
        camera_declare(s->camera[i], 25, &s->board.armed);
        camera_expect(s->camera[i], SIDE, SIDE);
        camera_record(s->camera[i], s->board.tape, 1 + i);
    }
    return s;
}

UNUSED static void side_free(struct side *s)
{
    for (int i = 0; i < CAMERAS; i++)
        camera_stop(s->camera[i]);
    intake_free(s->intake);
    tape_free(s->tape);
    board_free(&s->board);
    free(s);
}

// ---- what comes ------------------------------------------------------------------------------

enum event_kind { EVENT_MESSAGE, EVENT_SUPERSEDED, EVENT_PARTS, EVENT_WALL, EVENT_ARMED };
struct event {
    enum event_kind kind;
    int stream;
    ns_t at_ns;
    int64_t by_ns;
    bool armed;
    bool first, more; // of a part
    size_t size;
    uint8_t bytes[1024];
};

struct source { // of random events
    uint64_t random;
    ns_t now;
    ns_t last_ns[1 + CAMERAS];
    int64_t clock_ns[1 + CAMERAS]; // how far the sender's clock is off
    int64_t stamp[1 + CAMERAS];    // of the message before
    double pos[JOINTS];
    uint8_t grey;
    uint64_t armed; // events until it changes
};

UNUSED static struct source source_of(uint64_t seed)
{
    return (struct source){.random = seed * 2 + 1, .now = NS_PER_S};
}

static uint32_t rand32(struct source *s)
{
    s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(s->random >> 33);
}

static bool chance(struct source *s, uint32_t one_in)
{
    return rand32(s) % one_in == 0;
}

static int64_t next_stamp(struct source *s, int stream)
{
    int64_t t = WALL + s->now + s->clock_ns[stream];

    if (chance(s, 60))
        s->clock_ns[stream] += ((int64_t)(rand32(s) % 2000) - 1000) * MS;
    if (chance(s, 20))
        t -= (int64_t)(rand32(s) % 80) * MS;
    if (chance(s, 20))
        t = s->stamp[stream];
    if (chance(s, 30))
        t = s->stamp[stream] - 7 * MS;
    if (chance(s, 50))
        return 0; // not given
    s->stamp[stream] = t;
    return t;
}

static void stamp_of(Google__Protobuf__Timestamp *t, int64_t wall_ns)
{
    google__protobuf__timestamp__init(t);
    t->seconds = wall_ns / NS_PER_S;
    t->nanos = (int32_t)(wall_ns % NS_PER_S);
}

static void make_joints(struct source *s, struct event *e)
{
    char name[JOINTS][8] = {"base", "elbow", "wrist"};
    Google__Protobuf__Timestamp t;
    Foxglove__JointState joint[JOINTS], *list[JOINTS];
    Foxglove__JointStates m;
    int odd = (int)(rand32(s) % 100);

    foxglove__joint_states__init(&m);
    if (chance(s, 40))
        s->pos[rand32(s) % JOINTS] += 1.0; // leaps, and stays there
    stamp_of(&t, next_stamp(s, 0));
    if (odd == 3)
        t.nanos = -5;
    m.timestamp = &t;
    for (int i = 0; i < JOINTS; i++) {
        foxglove__joint_state__init(&joint[i]);
        s->pos[i] += 0.01 * ((double)(rand32(s) % 100) - 50) / 50;
        joint[i].name = name[i];
        joint[i].position = s->pos[i];
        list[i] = &joint[i];
    }
    if (odd < 2)
        joint[odd].position = NAN;
    if (odd == 2)
        name[1][0] = 'x';
    if (odd >= 4 && odd < 8)
        joint[1].position += 3; // once
    m.joints = list;
    m.n_joints = JOINTS - (odd == 8);
    e->size = foxglove__joint_states__pack(&m, e->bytes);
    if (odd == 9)
        e->size /= 2;
    if (odd == 10)
        e->size = 0;
}

static void make_raw(struct source *s, struct event *e)
{
    Google__Protobuf__Timestamp t;
    Foxglove__RawImage m;
    char encoding[] = "mono8";
    uint8_t pixels[SIDE * SIDE];
    int odd = (int)(rand32(s) % 40);

    foxglove__raw_image__init(&m);
    if (!chance(s, 8))
        s->grey++;
    memset(pixels, s->grey, sizeof pixels);
    stamp_of(&t, next_stamp(s, e->stream));
    if (odd == 0)
        t.nanos = -1;
    m.timestamp = &t;
    m.encoding = encoding;
    if (odd == 1)
        encoding[0] = 'x';
    m.width = odd == 2 ? SIDE / 2 : SIDE;
    m.height = SIDE;
    m.step = m.width;
    m.data = (ProtobufCBinaryData){(size_t)m.width * m.height, pixels};
    e->size = foxglove__raw_image__pack(&m, e->bytes);
    if (odd == 3)
        e->size /= 3;
}

static void make_compressed(struct source *s, struct event *e)
{
    Google__Protobuf__Timestamp t;
    Foxglove__CompressedImage m;
    char format[] = "jpeg";
    uint8_t nothing[] = "no jpeg";

    foxglove__compressed_image__init(&m);
    stamp_of(&t, next_stamp(s, e->stream));
    m.timestamp = &t;
    m.format = format;
    m.data = (ProtobufCBinaryData){sizeof nothing, nothing};
    e->size = foxglove__compressed_image__pack(&m, e->bytes);
}

UNUSED static void next_event(struct source *s, struct event *e)
{
    memset(e, 0, sizeof *e);
    s->now += 1 + rand32(s) % (uint32_t)(8 * MS);
    if (chance(s, 500))
        s->now += (ns_t)(rand32(s) % 3000) * MS;
    e->stream = (int)(rand32(s) % 5);
    e->stream = e->stream > CAMERAS ? 0 : e->stream;
    e->at_ns = s->now;
    if (chance(s, 50)) {
        e->kind = EVENT_ARMED;
        e->armed = chance(s, 2);
    } else if (chance(s, 200)) {
        e->kind = EVENT_WALL;
        e->by_ns = ((int64_t)(rand32(s) % 4000) - 2000) * MS;
        for (int i = 0; i <= CAMERAS; i++)
            s->clock_ns[i] += chance(s, 2) ? e->by_ns : 0;
    } else if (chance(s, 40)) {
        e->kind = EVENT_PARTS;
        e->first = chance(s, 2);
        e->more = chance(s, 2);
        e->size = rand32(s) % 40;
        memset(e->bytes, (int)(rand32(s) & 0xff), e->size);
    } else if (e->stream == 0) {
        make_joints(s, e);
    } else {
        e->kind = chance(s, 6) ? EVENT_SUPERSEDED : EVENT_MESSAGE;
        if (chance(s, 20))
            make_compressed(s, e);
        else
            make_raw(s, e);
    }
}

static void take_part(struct side *s, const struct event *e)
{
    const struct codec_part part = {e->bytes, e->size, e->first, e->more};

    if (e->stream > 0)
        camera_part(s->camera[e->stream - 1], &part, e->at_ns);
    else
        intake_part(s->intake, &part, e->at_ns);
}

UNUSED static void take(struct side *s, const struct event *e)
{
    struct camera *c = e->stream > 0 ? s->camera[e->stream - 1] : NULL;

    if (e->kind == EVENT_ARMED)
        atomic_store(&s->board.armed, e->armed);
    if (e->kind == EVENT_PARTS)
        take_part(s, e);
    if (e->kind == EVENT_WALL) {
        intake_wall_set(s->intake, e->by_ns, e->at_ns);
        for (int i = 0; i < CAMERAS; i++)
            camera_wall_set(s->camera[i], e->by_ns, e->at_ns);
    }
    if (e->kind == EVENT_SUPERSEDED)
        camera_supersede(c, e->bytes, e->size, e->at_ns);
    if (e->kind == EVENT_MESSAGE && c)
        camera_park(c, intake_codec(s->intake), e->bytes, e->size, e->at_ns);
    if (e->kind == EVENT_MESSAGE && !c)
        intake_joints(s->intake, e->bytes, e->size, e->at_ns);
    intake_publish(s->intake);
}

// ---- what came of it -------------------------------------------------------------------------

#define SAME(a, b) assert_true((a) == (b))

UNUSED static void same_boards(const struct board *a, const struct board *b)
{
    const struct joints_mark *m = &a->joint_mark, *n = &b->joint_mark;
    struct joint_sample s = {0}, t = {0};

    SAME(m->received, n->received);
    SAME(m->refused, n->refused);
    SAME(m->duplicate, n->duplicate);
    SAME(m->out_of_order, n->out_of_order);
    SAME(m->clock_jumps, n->clock_jumps);
    SAME(m->refused_in_a_row, n->refused_in_a_row);
    SAME(m->refused_for, n->refused_for);
    SAME(m->refused_joint, n->refused_joint);
    SAME(m->slow, n->slow);
    for (int i = 0; i < CAMERAS; i++) {
        const struct camera_mark *c = &a->camera[i], *d = &b->camera[i];

        SAME(c->capture_ns, d->capture_ns);
        SAME(c->received_ns, d->received_ns);
        SAME(c->changed_ns, d->changed_ns);
        SAME(c->received, d->received);
        SAME(c->refused, d->refused);
        SAME(c->duplicate, d->duplicate);
        SAME(c->out_of_order, d->out_of_order);
        SAME(c->clock_jumps, d->clock_jumps);
        SAME(c->same, d->same);
        SAME(c->refused_in_a_row, d->refused_in_a_row);
        SAME(c->same_in_a_row, d->same_in_a_row);
        SAME(c->slow, d->slow);
    }
    SAME(slot_read(&a->joints, &s) > 0, slot_read(&b->joints, &t) > 0);
    SAME(s.number, t.number);
    SAME(s.capture_ns, t.capture_ns);
    assert_memory_equal(s.pos, t.pos, sizeof s.pos);
}

// The newest input on the tape and its bytes; whatever else is there is dropped. False: none.
struct taped {
    struct tape_input in;
    size_t size; // of the bytes that were kept
    uint8_t bytes[1024];
};
UNUSED static bool last_input(struct side *s, struct taped *out)
{
    const struct tape_entry *e;
    bool any = false;

    for (; (e = tape_peek(s->tape, TAPE_BUS)); tape_release(s->tape, TAPE_BUS)) {
        if (e->kind != TAPE_INPUT)
            continue;
        any = true;
        memcpy(&out->in, e + 1, sizeof out->in);
        out->size = e->size - sizeof out->in;
        assert_true(out->size <= sizeof out->bytes);
        memcpy(out->bytes, (const char *)(e + 1) + sizeof out->in, out->size);
    }
    for (; (e = tape_peek(s->tape, TAPE_FRAMES)); tape_release(s->tape, TAPE_FRAMES)) {
        const struct tape_frame *f = (const void *)(e + 1);

        assert_int_equal(e->kind, TAPE_FRAME);
        assert_int_equal(f->camera, out->in.stream - 1);
        assert_int_equal(f->form, out->in.form);
        assert_true(f->stamp_wall_ns == out->in.stamp_wall_ns);
        assert_true(e->at_ns == out->in.at_ns);
        out->size = e->size - sizeof *f;
        memcpy(out->bytes, f + 1, out->size);
    }
    return any;
}

UNUSED static void same_inputs(const struct tape_input *a, const struct tape_input *b)
{
    SAME(a->number, b->number);
    SAME(a->at_ns, b->at_ns);
    SAME(a->kind, b->kind);
    SAME(a->stream, b->stream);
    SAME(a->armed, b->armed);
    SAME(a->outcome, b->outcome);
    SAME(a->verdict, b->verdict);
    SAME(a->form, b->form);
    SAME(a->stamp_wall_ns, b->stamp_wall_ns);
    SAME(a->joint_sample, b->joint_sample);
    SAME(a->capture_ns, b->capture_ns);
    SAME(a->by_ns, b->by_ns);
    SAME(a->bytes, b->bytes);
}

#endif
