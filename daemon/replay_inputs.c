// Messages as they came, through intake and cameras once more. What each of them remembers of its
// sender is known from the first message of the process on, or from a state of the bus; a message
// that is not in the recording ends that, for its sender.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/intake_impl.h"
#include "daemon/keyframe.h"
#include "daemon/replay_impl.h"

// ---- topics ----------------------------------------------------------------------------------

// Under which topic bytes are: a joint state that is one is FORM_GOOD, too.
enum { FORM_GOOD, FORM_UNDECODABLE, FORM_PARTS, FORM_RAW };

static int forms(int stream)
{
    return stream == 0 ? FORM_RAW : REPLAY_FORMS;
}

static const char *topic_of(const struct replay *r, int stream, int form, char buf[160])
{
    const char *camera = stream > 0 ? r->robot->camera[stream - 1].name : "";

    if (form == FORM_PARTS || form == FORM_UNDECODABLE)
        snprintf(buf, 160, "/%s/%s", form == FORM_PARTS ? "parts" : "undecodable",
                 stream == 0 ? "joint_states" : camera);
    else if (stream == 0)
        snprintf(buf, 160, "/joint_states");
    else
        snprintf(buf, 160, "/camera/%s%s", camera, form == FORM_RAW ? "/raw" : "");
    return buf;
}

int replay_inputs_open(struct replay *r)
{
    char topic[160];
    int rc = replay_feed_open(r, &r->inputs, "/input");

    for (int s = 0; s <= r->robot->cameras && rc == 0; s++)
        for (int f = 0; f < forms(s) && rc == 0; f++)
            rc = replay_feed_open(r, &r->raw[s][f], topic_of(r, s, f, topic));
    r->ahead = calloc(1, sizeof *r->ahead);
    r->sample = calloc(REPLAY_SAMPLES, sizeof *r->sample);
    return rc ? rc : r->ahead && r->sample ? 0 : -ENOMEM;
}

void replay_inputs_close(struct replay *r)
{
    logbook_cursor_free(r->inputs.cursor);
    for (int s = 0; s < REPLAY_STREAMS; s++)
        for (int f = 0; f < REPLAY_FORMS; f++)
            logbook_cursor_free(r->raw[s][f].cursor);
    free(r->ahead);
    free(r->sample);
}

// ---- bytes -----------------------------------------------------------------------------------

struct bytes { // of one message
    const void *data;
    size_t size;
    void *own; // to free
    uint64_t publish_ns;
    int form;
};

// By the time of receipt, in whichever topic. A message that lies behind is looked for: of the
// two newest frames the newer one is judged first.
static bool find_bytes(struct replay *r, int stream, uint64_t log_ns, struct bytes *b)
{
    struct mcap_error e;
    char topic[160];

    for (b->form = 0; b->form < forms(stream); b->form++) {
        struct replay_feed *f = &r->raw[stream][b->form];

        while (replay_peek(r, f) && f->m.log_ns < log_ns)
            replay_drop(f);
        if (replay_peek(r, f) && f->m.log_ns == log_ns) {
            *b = (struct bytes){f->m.data, f->m.size, NULL, f->m.publish_ns, b->form};
            return true;
        }
    }
    for (b->form = 0; b->form < forms(stream); b->form++) {
        b->publish_ns = log_ns;
        if (logbook_find(r->book, topic_of(r, stream, b->form, topic), log_ns, &b->own,
                         &b->size, &e) == 0) {
            struct codec_frame f;

            b->data = b->own;
            // As the recorder has it: the sender's stamp, where there is one.
            (void)codec_frame(NULL, b->data, b->size, &f);
            if (f.stamp_wall_ns > 0)
                b->publish_ns = (uint64_t)f.stamp_wall_ns;
            return true;
        }
    }
    return false;
}

int replay_frame(struct replay *r, int camera, ns_t at_ns, void **own, size_t *size)
{
    struct mcap_error e;
    uint64_t log_ns = replay_log_time(r, at_ns);
    char topic[160];
    int rc;

    rc = logbook_find(r->book, topic_of(r, camera + 1, FORM_GOOD, topic), log_ns, own,
                      size, &e);
    if (rc != 0)
        rc = logbook_find(r->book, topic_of(r, camera + 1, FORM_RAW, topic), log_ns, own,
                          size, &e);
    return rc;
}

// ---- samples ---------------------------------------------------------------------------------

static void remember(struct replay *r, const struct joint_sample *s)
{
    r->sample[s->number % REPLAY_SAMPLES] = *s;
}

const struct joint_sample *replay_sample(const struct replay *r, uint64_t number)
{
    const struct joint_sample *s = &r->sample[number % REPLAY_SAMPLES];

    return number > 0 && s->number == number ? s : NULL;
}

// The bus as it was after input `input`, if the log has that.
static void restore(struct replay *r, uint64_t input)
{
    struct keyframe_head h;
    char why[160];

    for (; replay_peek(r, &r->bus_states); replay_drop(&r->bus_states)) {
        const struct mcap_message *m = &r->bus_states.m;

        if (m->size < sizeof h)
            continue;
        memcpy(&h, m->data, sizeof h);
        if (h.kind != KEYFRAME_BUS || h.number < input)
            continue;
        if (h.number > input)
            return;
        if (keyframe_bus_restore(r->intake, r->camera, r->robot->cameras, m->data,
                                 m->size, why) != 0)
            continue;
        for (int s = 0; s <= r->robot->cameras; s++)
            r->knows[s] = true;
        for (int i = 0; i < BOARD_HISTORY; i++)
            if (r->intake->history.sample[i].number > 0)
                remember(r, &r->intake->history.sample[i]);
        return;
    }
}

static bool knows_all(const struct replay *r)
{
    for (int s = 0; s <= r->robot->cameras; s++)
        if (!r->knows[s])
            return false;
    return true;
}

// ---- one input -------------------------------------------------------------------------------

static void act(struct replay *r, const struct tape_input *in, const struct bytes *b)
{
    struct codec_part part = {.first = in->kind == TAPE_SEVERAL_PARTS, .more = in->more};
    struct camera *c = in->stream > 0 ? r->camera[in->stream - 1] : NULL;

    switch (in->kind) {
    case TAPE_MESSAGE:
        if (c)
            camera_park(c, intake_codec(r->intake), b->data, b->size, in->at_ns);
        else
            intake_joints(r->intake, b->data, b->size, in->at_ns);
        return;
    case TAPE_SUPERSEDED:
        if (c)
            camera_supersede(c, b->data, b->size, in->at_ns);
        return;
    case TAPE_SEVERAL_PARTS:
    case TAPE_PART:
        (void)record_part_read(&part, b->data, b->size);
        if (c)
            camera_part(c, &part, in->at_ns);
        else
            intake_part(r->intake, &part, in->at_ns);
        return;
    case TAPE_WALL_SET:
        intake_wall_set(r->intake, in->by_ns, in->at_ns);
        for (int i = 0; i < r->robot->cameras; i++)
            camera_wall_set(r->camera[i], in->by_ns, in->at_ns);
    }
}

// What became of it this time. False: it left no trace.
static bool trace(struct replay *r, struct tape_input *now)
{
    const struct tape_entry *e = tape_peek(r->tape, TAPE_BUS);
    bool there = e && e->kind == TAPE_INPUT && e->size >= sizeof *now;

    if (there)
        memcpy(now, e + 1, sizeof *now);
    while (tape_peek(r->tape, TAPE_BUS))
        tape_release(r->tape, TAPE_BUS);
    while (tape_peek(r->tape, TAPE_FRAMES))
        tape_release(r->tape, TAPE_FRAMES);
    return there;
}

static void judge(struct replay *r, const struct tape_input *then, uint64_t log_ns,
                  const struct tape_input *now, const void *recorded, size_t size)
{
    unsigned char bytes[RECORD_INPUT_MAX];
    size_t n = record_input(now, bytes, sizeof bytes);
    char text[400];

    r->out->inputs++;
    replay_output_put(r->output, "/input", log_ns, log_ns, bytes, n);
    if (!r->judging || (n == size && memcmp(bytes, recorded, n) == 0))
        return;
    if (replay_compare_input(r->robot, then, now, text)) {
        replay_differs(r, REPLAY_INPUT, r->tick, text);
        return;
    }
    replay_compare_bytes(r->robot, then, now, text);
    replay_differs_in_bytes(r, r->tick, text);
}

// Not to be judged: its number is used up all the same.
static void pass(struct replay *r, uint64_t log_ns, const void *recorded, size_t size)
{
    r->out->inputs_skipped++;
    replay_output_put(r->output, "/input", log_ns, log_ns, recorded, size);
}

static void keep_sample(struct replay *r, const struct tape_input *now)
{
    const struct joint_history *h = &r->intake->history;

    if (now->stream == 0 && now->outcome == TAPE_ACCEPTED && h->count > 0)
        remember(r, &h->sample[(h->count - 1) % BOARD_HISTORY]);
}

static void one(struct replay *r, const struct tape_input *in, uint64_t log_ns,
                const void *recorded, size_t size)
{
    struct bytes b = {0};
    struct tape_input now;
    char topic[160];
    bool found = in->kept && find_bytes(r, in->stream, log_ns, &b);
    bool complete = found || in->kind != TAPE_MESSAGE || in->bytes == 0;

    if (found)
        replay_output_put(r->output, topic_of(r, in->stream, b.form, topic), log_ns,
                          b.publish_ns, b.data, b.size);
    if (!complete)
        r->knows[in->stream] = false;
    if (!complete || !r->knows[in->stream]) {
        pass(r, log_ns, recorded, size);
    } else {
        r->tape->inputs = in->number - 1;
        atomic_store(&r->bus.armed, in->armed);
        act(r, in, &b);
        if (trace(r, &now)) {
            now.kept = in->kept; // not the message's: there was room for it, or was not
            if (in->check == 0)
                now.check = 0; // of a program that took none
            keep_sample(r, &now);
            if (found || in->bytes == 0)
                judge(r, in, log_ns, &now, recorded, size);
            else
                pass(r, log_ns, recorded, size); // acted on; what it was is not known
        }
    }
    free(b.own);
}

// ---- in their order --------------------------------------------------------------------------

// Records of one instant, or of two frames of which the newer was judged first, may stand in
// another order than that of their numbers.
static void look_ahead(struct replay *r)
{
    struct replay_ahead *a = r->ahead;
    struct tape_input in;

    while (a->n < REPLAY_AHEAD && replay_peek(r, &r->inputs)) {
        const struct mcap_message *m = &r->inputs.m;

        if (m->size <= RECORD_INPUT_MAX &&
            record_input_read(&in, m->data, m->size) == 0 && in.stream >= 0 &&
            in.stream <= r->robot->cameras) {
            a->item[a->n].number = in.number;
            a->item[a->n].log_ns = m->log_ns;
            a->item[a->n].size = m->size;
            a->item[a->n].sample = in.joint_sample;
            memcpy(a->item[a->n].bytes, m->data, m->size);
            a->n++;
        } else {
            r->out->unreadable++;
        }
        replay_drop(&r->inputs);
    }
}

static int lowest(const struct replay_ahead *a)
{
    int best = 0;

    for (int i = 1; i < a->n; i++)
        if (a->item[i].number < a->item[best].number)
            best = i;
    return best;
}

// What was known of the senders before input `number`.
static void arrive_at(struct replay *r, uint64_t number)
{
    if (number != r->input + 1)
        memset(r->knows, 0, sizeof r->knows);
    if (number == 1)
        for (int s = 0; s <= r->robot->cameras; s++)
            r->knows[s] = true;
    if (!knows_all(r))
        restore(r, number - 1);
    if (knows_all(r))
        replay_output_bus(r, number - 1);
    r->input = number;
}

// The next one. False: there is none.
static bool next(struct replay *r)
{
    struct replay_ahead *a = r->ahead;
    struct tape_input in;
    int i;

    look_ahead(r);
    if (a->n == 0)
        return false;
    i = lowest(a);
    if (a->item[i].number > r->input &&
        record_input_read(&in, a->item[i].bytes, a->item[i].size) == 0) {
        arrive_at(r, in.number);
        one(r, &in, a->item[i].log_ns, a->item[i].bytes, a->item[i].size);
    } else {
        r->out->unreadable++;
    }
    a->item[i] = a->item[--a->n];
    return true;
}

bool replay_inputs_to(struct replay *r, uint64_t number, ns_t until_ns)
{
    while (!replay_sample(r, number)) {
        int i;

        look_ahead(r);
        i = lowest(r->ahead);
        // Numbers and times only rise: one that was passed will not come.
        if (r->ahead->n == 0 || r->ahead->item[i].sample > number ||
            r->ahead->item[i].log_ns > replay_log_time(r, until_ns))
            return false;
        (void)next(r);
    }
    return true;
}

bool replay_inputs_complete(const struct replay *r)
{
    const struct replay_ahead *a = r->ahead;

    return r->knows[0] && a->n > 0 && a->item[lowest(a)].number == r->input + 1;
}

void replay_inputs_all(struct replay *r)
{
    while (next(r))
        ;
}
