// The bus's side of a camera: what it says of itself is checked before anything is
// copied, then when it was taken, and whether it shows anything new.
#include <stdio.h>
#include <string.h>

#include "daemon/blind.h"
#include "daemon/camera_impl.h"
#include "daemon/codec_impl.h"
#include "daemon/tape.h"

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

void camera_declare(struct camera *c, double rate_hz, const _Atomic bool *armed)
{
    pace_init(&c->pace, rate_hz);
    c->armed = armed;
}

void camera_wall_set(struct camera *c, int64_t by_ns, ns_t now)
{
    codec_stamp_wall_set(&c->stamp, by_ns, now);
}

void camera_record(struct camera *c, struct tape *tape, int stream)
{
    c->tape = tape;
    c->stream = stream;
}

static bool armed(const struct camera *c)
{
    return c->armed && atomic_load(c->armed);
}

static void refuse_for(struct camera *c, enum codec_verdict why, const char *text)
{
    char sentence[CODEC_WHY_MAX] = "";

    memcpy(sentence, text, strnlen(text, sizeof sentence - 1));
    slot_write(&c->why, sentence);
    atomic_store_explicit(&c->last_refusal, (int)why, memory_order_relaxed);
    count(&c->mark->refused);
    atomic_fetch_add_explicit(&c->mark->refused_in_a_row, 1, memory_order_relaxed);
}

static enum tape_form form_of(const struct codec_frame *f)
{
    return f->message == CODEC_COMPRESSED_IMAGE ? TAPE_COMPRESSED
           : f->message == CODEC_RAW_IMAGE      ? TAPE_RAW
                                                : TAPE_UNDECODABLE;
}

void camera_part(struct camera *c, const struct codec_part *part, ns_t received_ns)
{
    struct tape_input told = {.at_ns = received_ns,
                              .kind = TAPE_PART,
                              .stream = c->stream,
                              .armed = armed(c),
                              .outcome = TAPE_NONE,
                              .form = TAPE_PARTS,
                              .more = part->more};

    if (part->first) {
        told.kind = TAPE_SEVERAL_PARTS;
        told.outcome = TAPE_REFUSED;
        told.verdict = CODEC_UNPARSABLE;
        refuse_for(c, CODEC_UNPARSABLE, CODEC_SEVERAL_PARTS);
    }
    tape_input(c->tape, &told, part->data, part->size);
}

void camera_supersede(struct camera *c, const void *data, size_t size, ns_t received_ns)
{
    struct tape_input told = {.at_ns = received_ns,
                              .kind = TAPE_SUPERSEDED,
                              .stream = c->stream,
                              .armed = armed(c),
                              .outcome = TAPE_NONE};
    struct codec_frame f;

    c->passed_over++;
    count(&c->superseded);
    if (tape_on(c->tape)) {
        (void)codec_frame(NULL, data, size, &f);
        told.form = form_of(&f);
        told.stamp_wall_ns = f.stamp_wall_ns;
    }
    tape_input(c->tape, &told, data, size);
}

enum codec_verdict camera_last_refusal(const struct camera *c)
{
    return (enum codec_verdict)atomic_load_explicit(&c->last_refusal,
                                                    memory_order_relaxed);
}

void camera_last_refusal_text(const struct camera *c, char text[CODEC_WHY_MAX])
{
    if (slot_read(&c->why, text) == 0)
        snprintf(text, CODEC_WHY_MAX, "%s",
                 slot_count(&c->why) > 0 ? codec_verdict_name(camera_last_refusal(c))
                                         : "");
}

uint64_t camera_superseded(const struct camera *c)
{
    return atomic_load_explicit(&c->superseded, memory_order_relaxed);
}

static void refuse(struct camera *c, const struct codec *codec, enum codec_verdict v)
{
    refuse_for(c, v, codec ? codec_why(codec) : codec_verdict_name(v));
}

// Fills r->capture_ns. TAPE_ACCEPTED, or what became of it.
static enum tape_outcome place_in_time(struct camera *c, struct codec *codec,
                                       struct camera_raw *r, bool learn)
{
    int64_t stamp = r->frame.stamp_wall_ns;
    enum codec_time t =
        codec_stamp_map(&c->stamp, stamp, r->received_ns, learn, &r->capture_ns);

    if ((t == CODEC_TIME_JUMP || t == CODEC_TIME_STEP) && BLIND(BLIND_CAMERA_CLOCK))
        t = CODEC_TIME_OK;
    if (t == CODEC_TIME_JUMP) {
        refuse(c, codec, codec_refuse_stamp(codec, &c->stamp, stamp, r->received_ns));
        return TAPE_REFUSED;
    }
    if ((t == CODEC_TIME_SAME || t == CODEC_TIME_BACK) && !BLIND(BLIND_CAMERA_ORDER)) {
        count(t == CODEC_TIME_SAME ? &c->mark->duplicate : &c->mark->out_of_order);
        return t == CODEC_TIME_SAME ? TAPE_DUPLICATE : TAPE_OUT_OF_ORDER;
    }
    if (t == CODEC_TIME_STEP)
        count(&c->mark->clock_jumps);
    r->capture_ns -= c->latency_ns;
    return TAPE_ACCEPTED;
}

static void judge_content(struct camera *c, const struct codec_frame *f, ns_t received_ns)
{
    struct camera_mark *m = c->mark;

    if (content_same(&c->content, f->data, f->size) && !BLIND(BLIND_CAMERA_CONTENT)) {
        count(&m->same);
        atomic_fetch_add_explicit(&m->same_in_a_row, 1, memory_order_relaxed);
        return;
    }
    atomic_store_explicit(&m->changed_ns, received_ns, memory_order_relaxed);
    atomic_store_explicit(&m->same_in_a_row, 0, memory_order_relaxed);
}

static void judge_pace(struct camera *c, ns_t received_ns)
{
    for (; c->passed_over > 0; c->passed_over--)
        pace_add(&c->pace, received_ns);
    atomic_store_explicit(&c->mark->slow, pace_add(&c->pace, received_ns),
                          memory_order_relaxed);
}

void camera_expect(struct camera *c, int width, int height)
{
    c->width = width;
    c->height = height;
}

static enum codec_verdict check_size(const struct camera *c, struct codec *codec,
                                     const struct codec_frame *f)
{
    if (c->width == 0 || (f->width == c->width && f->height == c->height))
        return CODEC_OK;
    return codec_refuse(codec, CODEC_BAD_SIZE,
                        "%dx%d, but the policy takes %dx%d: set the camera, or "
                        "policy.resize",
                        f->width, f->height, c->width, c->height);
}

// Copies the frame and hands it to the decoder.
static void hand_over(struct camera *c)
{
    struct camera_raw *r = &c->raw[c->back];
    ns_t received_ns = r->received_ns, capture_ns = r->capture_ns;

    memcpy(r->bytes, r->frame.data, r->frame.size);
    r->frame.data = r->bytes;
    c->back = atomic_exchange(&c->middle, c->back | CAMERA_FRESH) & ~CAMERA_FRESH;
    atomic_store_explicit(&c->mark->refused_in_a_row, 0, memory_order_relaxed);
    // After the exchange, so that who sees the mark can have the frame.
    atomic_store_explicit(&c->mark->received_ns, received_ns, memory_order_release);
    atomic_store(&c->mark->capture_ns, capture_ns);
    atomic_fetch_add_explicit(&c->mark->received, 1, memory_order_release);
    // In sequentially consistent order with the decoder, which counts and then looks for a frame,
    // and with a request, which is made and then looks for one: one of the two sees the other.
    if (atomic_load(&c->mark->corrupt_in_a_row) > 0 ||
        atomic_load(&c->asked) != atomic_load(&c->answered))
        camera_ring(c);
}

static enum tape_outcome judge(struct camera *c, struct codec *codec,
                               enum codec_verdict form, bool learn)
{
    struct camera_raw *r = &c->raw[c->back];
    enum tape_outcome o;

    if (form == CODEC_OK)
        form = check_size(c, codec, &r->frame);
    if (form != CODEC_OK && BLIND(BLIND_CAMERA_FORM))
        return TAPE_NONE;
    if (form != CODEC_OK) {
        refuse(c, codec, form);
        return TAPE_REFUSED;
    }
    o = place_in_time(c, codec, r, learn);
    if (o != TAPE_ACCEPTED)
        return o;
    judge_content(c, &r->frame, r->received_ns);
    judge_pace(c, r->received_ns);
    return o;
}

bool camera_park(struct camera *c, struct codec *codec, const void *data, size_t size,
                 ns_t received_ns)
{
    struct camera_raw *r = &c->raw[c->back];
    // Looked at once: a replay sees the same, whatever the loop does meanwhile.
    struct tape_input told = {.at_ns = received_ns,
                              .kind = TAPE_MESSAGE,
                              .stream = c->stream,
                              .armed = armed(c)};

    told.verdict = (int)codec_frame(codec, data, size, &r->frame);
    r->received_ns = received_ns;
    told.form = form_of(&r->frame);
    told.stamp_wall_ns = r->frame.stamp_wall_ns;
    told.outcome = judge(c, codec, (enum codec_verdict)told.verdict, !told.armed);
    if (told.outcome == TAPE_REFUSED)
        told.verdict = (int)camera_last_refusal(c);
    if (told.outcome == TAPE_ACCEPTED) {
        told.capture_ns = r->capture_ns;
        hand_over(c);
    }
    tape_input(c->tape, &told, data, size);
    return told.outcome == TAPE_ACCEPTED;
}
