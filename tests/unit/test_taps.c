// What intake and cameras put on the tape of each message, held against what the board says came
// of it; and that a tape changes nothing.
#include "tests/unit/bus_streams.h"

#define EVENTS 6000

struct counts {
    uint64_t accepted, refused, duplicate, out_of_order;
};

static struct counts counts_of(const struct side *s, int stream)
{
    const struct joints_mark *j = &s->board.joint_mark;
    const struct camera_mark *c = &s->board.camera[stream > 0 ? stream - 1 : 0];

    if (stream > 0)
        return (struct counts){c->received, c->refused, c->duplicate, c->out_of_order};
    return (struct counts){j->received, j->refused, j->duplicate, j->out_of_order};
}

static enum tape_outcome became(struct counts a, struct counts b)
{
    assert_int_equal(b.accepted - a.accepted + b.refused - a.refused + b.duplicate -
                         a.duplicate + b.out_of_order - a.out_of_order,
                     1);
    return b.accepted > a.accepted     ? TAPE_ACCEPTED
           : b.refused > a.refused     ? TAPE_REFUSED
           : b.duplicate > a.duplicate ? TAPE_DUPLICATE
                                       : TAPE_OUT_OF_ORDER;
}

// As protobuf-c reads it.
static enum tape_form form_of(const struct event *e)
{
    Foxglove__JointStates *j;
    Foxglove__CompressedImage *c;
    Foxglove__RawImage *r;

    if (e->kind == EVENT_PARTS)
        return TAPE_PARTS;
    if (e->kind == EVENT_WALL)
        return TAPE_UNDECODABLE; // nothing is kept of it
    if (e->stream == 0) {
        if (!(j = foxglove__joint_states__unpack(NULL, e->size, e->bytes)))
            return TAPE_UNDECODABLE;
        foxglove__joint_states__free_unpacked(j, NULL);
        return TAPE_JOINTS;
    }
    if ((c = foxglove__compressed_image__unpack(NULL, e->size, e->bytes))) {
        foxglove__compressed_image__free_unpacked(c, NULL);
        return TAPE_COMPRESSED;
    }
    if (!(r = foxglove__raw_image__unpack(NULL, e->size, e->bytes)))
        return TAPE_UNDECODABLE;
    foxglove__raw_image__free_unpacked(r, NULL);
    return TAPE_RAW;
}

static enum codec_verdict refusal(const struct side *s, int stream)
{
    char text[CODEC_WHY_MAX];

    return stream > 0 ? camera_last_refusal(s->camera[stream - 1])
                      : intake_last_refusal(s->intake, text);
}

static void check_times(struct side *s, const struct event *e,
                        const struct tape_input *in)
{
    struct joint_sample newest = {0};

    if (in->outcome != TAPE_ACCEPTED) {
        SAME(in->capture_ns, 0);
        SAME(in->joint_sample, 0);
    } else if (e->stream == 0) {
        slot_read(&s->board.joints, &newest);
        SAME(in->joint_sample, newest.number);
        SAME(in->capture_ns, newest.capture_ns);
        SAME(newest.received_ns, e->at_ns);
    } else {
        SAME(in->joint_sample, 0);
        SAME(in->capture_ns, s->board.camera[e->stream - 1].capture_ns);
    }
}

static void check_message(struct side *s, const struct event *e, const struct taped *t,
                          enum tape_outcome outcome)
{
    const struct tape_input *in = &t->in;

    SAME(in->kind, TAPE_MESSAGE);
    SAME(in->outcome, outcome);
    SAME(in->verdict, (int)(outcome == TAPE_REFUSED ? refusal(s, e->stream) : CODEC_OK));
    SAME(in->bytes, e->size);
    SAME(in->kept, true);
    SAME(t->size, e->size);
    assert_memory_equal(t->bytes, e->bytes, e->size);
    check_times(s, e, in);
}

static void check(struct side *s, const struct event *e, const struct taped *t,
                  struct counts was)
{
    const struct tape_input *in = &t->in;
    struct counts is = counts_of(s, e->stream);

    SAME(in->at_ns, e->at_ns);
    SAME(in->stream, e->kind == EVENT_WALL ? 0 : e->stream);
    SAME(in->armed, atomic_load(&s->board.armed));
    SAME(in->form, form_of(e));
    SAME(in->by_ns, e->by_ns);
    SAME(in->check, e->kind == EVENT_WALL ? 0 : content_check(e->bytes, e->size));
    if (e->kind == EVENT_MESSAGE)
        check_message(s, e, t, became(was, is));
    if (e->kind == EVENT_SUPERSEDED) {
        SAME(in->kind, TAPE_SUPERSEDED);
        SAME(in->outcome, TAPE_NONE);
        SAME(t->size, e->size);
        assert_memory_equal(t->bytes, e->bytes, e->size);
        SAME(is.accepted, was.accepted);
    }
    if (e->kind == EVENT_PARTS) {
        SAME(in->kind, e->first ? TAPE_SEVERAL_PARTS : TAPE_PART);
        SAME(in->outcome, e->first ? TAPE_REFUSED : TAPE_NONE);
        SAME(in->verdict, e->first ? CODEC_UNPARSABLE : CODEC_OK);
        SAME(in->more, e->more);
        SAME(is.refused, was.refused + e->first); // a message is counted once
        SAME(t->size, e->size);
        assert_memory_equal(t->bytes, e->bytes, e->size);
    }
    if (e->kind == EVENT_WALL)
        SAME(in->kind, TAPE_WALL_SET);
}

static void test_each_is_told(void **state)
{
    static struct event e;
    static struct taped t;
    struct source s = source_of(3);
    struct side *a = side_new(true), *plain = side_new(false);
    uint64_t inputs = 0, outcomes[5] = {0}, forms[5] = {0};

    (void)state;
    tape_turn(a->tape, true);
    for (int i = 0; i < EVENTS; i++) {
        struct counts was;

        next_event(&s, &e);
        was = counts_of(a, e.stream);
        take(a, &e);
        take(plain, &e);
        same_boards(&a->board, &plain->board);
        SAME(last_input(a, &t), e.kind != EVENT_ARMED);
        if (e.kind == EVENT_ARMED)
            continue;
        SAME(t.in.number, ++inputs);
        check(a, &e, &t, was);
        outcomes[t.in.outcome]++;
        forms[t.in.form]++;
    }
    for (int i = 0; i < 5; i++) // nothing was left out
        assert_true(outcomes[i] > 20);
    for (int i = 0; i < 5; i++)
        assert_true(forms[i] > 20);
    side_free(a);
    side_free(plain);
}

// Off, only the numbers go on.
static void test_off(void **state)
{
    static struct event e;
    static struct taped t;
    struct source s = source_of(4);
    struct side *a = side_new(true);
    uint64_t inputs = 0;

    (void)state;
    for (int i = 0; i < 300; i++) {
        next_event(&s, &e);
        take(a, &e);
        inputs += e.kind != EVENT_ARMED;
        assert_false(last_input(a, &t));
    }
    SAME(a->tape->inputs, inputs);
    side_free(a);
}

// No room for a frame: it is said that its bytes are not there, and all else is told.
static void test_frame_given_up(void **state)
{
    static struct event e;
    static struct taped t;
    struct source s = source_of(6);
    struct side *a = side_new(true);
    const struct tape_entry *entry;
    uint64_t frames = 0;

    (void)state;
    tape_turn(a->tape, true);
    while (tape_reserve(a->tape, TAPE_FRAMES, TAPE_FRAME, 0, 512))
        tape_commit(a->tape, TAPE_FRAMES);
    while (frames < 20) {
        next_event(&s, &e);
        take(a, &e);
        if (e.stream == 0 || e.kind != EVENT_MESSAGE)
            continue;
        frames++;
        t.in.number = 0;
        for (; (entry = tape_peek(a->tape, TAPE_BUS)); tape_release(a->tape, TAPE_BUS))
            if (entry->kind == TAPE_INPUT)
                memcpy(&t.in, entry + 1, sizeof t.in);
        SAME(t.in.number, a->tape->inputs);
        SAME(t.in.kept, false);
        SAME(t.in.bytes, e.size);
    }
    assert_true(tape_lost(a->tape, TAPE_FRAMES) >= frames);
    side_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_is_told),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_frame_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
