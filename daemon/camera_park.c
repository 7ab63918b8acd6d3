// The bus's side of a camera: what it says of itself is checked before anything is
// copied, then when it was taken, and whether it shows anything new.
#include <stdio.h>
#include <string.h>

#include "daemon/blind.h"
#include "daemon/camera_impl.h"
#include "daemon/codec_impl.h"

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

void camera_refuse(struct camera *c, enum codec_verdict why, const char *text)
{
    char sentence[CODEC_WHY_MAX] = "";

    memcpy(sentence, text, strnlen(text, sizeof sentence - 1));
    slot_write(&c->why, sentence);
    atomic_store_explicit(&c->last_refusal, (int)why, memory_order_relaxed);
    count(&c->mark->refused);
    atomic_fetch_add_explicit(&c->mark->refused_in_a_row, 1, memory_order_relaxed);
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

void camera_supersede(struct camera *c, uint64_t n)
{
    c->passed_over += n;
    atomic_fetch_add_explicit(&c->superseded, n, memory_order_relaxed);
}

uint64_t camera_superseded(const struct camera *c)
{
    return atomic_load_explicit(&c->superseded, memory_order_relaxed);
}

static void refuse(struct camera *c, const struct codec *codec, enum codec_verdict v)
{
    camera_refuse(c, v, codec ? codec_why(codec) : codec_verdict_name(v));
}

// Fills r->capture_ns. False: refused, or as if it had not come.
static bool place_in_time(struct camera *c, struct codec *codec, struct camera_raw *r,
                          ns_t received_ns)
{
    bool learn = !c->armed || !atomic_load(c->armed);
    int64_t stamp = r->frame.stamp_wall_ns;
    enum codec_time t =
        codec_stamp_map(&c->stamp, stamp, received_ns, learn, &r->capture_ns);

    if ((t == CODEC_TIME_JUMP || t == CODEC_TIME_STEP) && BLIND(BLIND_CAMERA_CLOCK))
        t = CODEC_TIME_OK;
    if (t == CODEC_TIME_JUMP) {
        refuse(c, codec, codec_refuse_stamp(codec, &c->stamp, stamp, received_ns));
        return false;
    }
    if ((t == CODEC_TIME_SAME || t == CODEC_TIME_BACK) && !BLIND(BLIND_CAMERA_ORDER)) {
        count(t == CODEC_TIME_SAME ? &c->mark->duplicate : &c->mark->out_of_order);
        return false;
    }
    if (t == CODEC_TIME_STEP)
        count(&c->mark->clock_jumps);
    r->capture_ns -= c->latency_ns;
    return true;
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

bool camera_park(struct camera *c, struct codec *codec, const void *data, size_t size,
                 ns_t received_ns)
{
    struct camera_raw *r = &c->raw[c->back];
    enum codec_verdict v = codec_frame(codec, data, size, &r->frame);
    ns_t capture_ns;

    if (v == CODEC_OK)
        v = check_size(c, codec, &r->frame);
    if (v != CODEC_OK) {
        if (!BLIND(BLIND_CAMERA_FORM))
            refuse(c, codec, v);
        return false;
    }
    if (!place_in_time(c, codec, r, received_ns))
        return false;
    judge_content(c, &r->frame, received_ns);
    judge_pace(c, received_ns);
    capture_ns = r->capture_ns;
    memcpy(r->bytes, r->frame.data, r->frame.size);
    r->frame.data = r->bytes;
    c->back = atomic_exchange(&c->middle, c->back | CAMERA_FRESH) & ~CAMERA_FRESH;
    atomic_store_explicit(&c->mark->refused_in_a_row, 0, memory_order_relaxed);
    // After the exchange, so that who sees the mark can have the frame.
    atomic_store_explicit(&c->mark->received_ns, received_ns, memory_order_release);
    atomic_store_explicit(&c->mark->capture_ns, capture_ns, memory_order_release);
    atomic_fetch_add_explicit(&c->mark->received, 1, memory_order_release);
    // Both in sequentially consistent order with the decoder, which counts and then looks
    // for a frame: one of the two sees the other.
    if (atomic_load(&c->mark->corrupt_in_a_row) > 0)
        camera_ring(c);
    return true;
}
