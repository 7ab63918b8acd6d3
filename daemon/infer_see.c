// Seeing early. The frames of one instant arrive one after the other, up to three quarters of a
// period apart; a camera's part of an inference, its backbone, is half of the work (45 % of the
// time with one camera of 640x480) and needs that camera's frame alone. So the worker does not wait
// idly for the set to be complete:
//
//   frame of the primary camera        |== see ==|
//   frames of the others               .      |    |== see ==|        .  last one
//   joints, the rest of the inference  .                              |=== think ===|
//
// A look begins when an inference is due by its trigger and the set is not complete. It holds the
// anchor: however long seeing takes, 100 ms of backbone at 30 Hz, the set is that of the frame it
// began with, else a slow network would find a newer anchor each time that it looks up, and never
// have a complete set. What belongs to the anchor is caught as it lands (camera_await), by the
// camera's own thread, and kept: by the time that the worker gets there the newest frame may be
// three later. Which frames are used is decided as without a look, when the set is complete or the
// time to wait is over (infer_observe.c), but that of a camera which brings several meanwhile the
// first that belongs is taken, not the newest. That the end of the wait is noticed later, by up to
// one backbone, is made up for by the work that is done. The frames' numbers decide what need not be
// computed again: whatever was seen and is not used costs its time and nothing else.
//
// A camera may leave out the frame that belongs to the anchor. If it brings the one after that, more
// than max_skew later, while the worker sees, the look is given up for the newest frames: held on to,
// it would end in a set too far apart and one inference less.
//
// After a set that could not be used (too far apart, no joints) nothing is seen early until one
// could: who starves would burn a core on frames that nobody uses.
#include <string.h>

#include "daemon/infer_impl.h"

// ---- the set ---------------------------------------------------------------------------------

ns_t infer_from_ns(const struct infer *w, int c, ns_t anchor_ns)
{
    return anchor_ns - w->cfg.camera_period_ns[c] / 2;
}

bool infer_came(const struct infer *w, int c, ns_t anchor_ns)
{
    // Ordered like the decoder's look at it: who sees the mark can wait for the frame.
    return atomic_load(&w->board->camera[c].capture_ns) >= infer_from_ns(w, c, anchor_ns);
}

// Where in the policy's order config camera c is, -1 = it does not look at it.
static int place_of(const struct infer_seat *seat, int c)
{
    for (int i = 0; i < seat->info->n_cameras; i++)
        if (seat->binding->camera_of[i] == c)
            return i;
    return -1;
}

static void hold(struct infer *w, int place, int c)
{
    w->look.held[c] = true;
    w->look.camera = place;
}

void infer_look_away(struct infer *w)
{
    w->look.on = false;
    w->look.seen = 0;
    w->look.took_ns = 0;
    memset(w->look.held, 0, sizeof w->look.held);
}

// Takes the anchor's frame and has the others caught. False when it did not decode: the set is left
// to infer_observe, which says so.
static bool begin(struct infer *w, ns_t capture_ns)
{
    const struct infer_seat *seat = w->seat;
    struct infer_look *l = &w->look;
    int primary = seat->binding->primary, place = place_of(seat, primary);
    if (place < 0)
        return false;
    w->used = false; // a candidate's trial would want pictures that are about to go
    memset(w->framed, 0, sizeof w->framed);
    infer_look_away(w);
    camera_request(w->cameras[primary]);
    if (infer_frame(w, primary) || w->capture_ns[primary] < capture_ns)
        return false;
    l->on = true;
    l->anchor_ns = w->capture_ns[primary];
    l->received_ns = w->received_ns[primary];
    for (int i = 0; i < seat->info->n_cameras; i++) {
        int c = seat->binding->camera_of[i];
        if (c != primary)
            camera_await(w->cameras[c], infer_from_ns(w, c, l->anchor_ns));
    }
    // 128 samples of a 1 kHz driver are over before a backbone is.
    infer_keep_joints(w);
    hold(w, place, primary);
    return true;
}

// Has camera c brought a frame for the look?
static bool caught(struct infer *w, int c)
{
    return infer_came(w, c, w->look.anchor_ns) && infer_frame(w, c) == 0;
}

// A camera that left out the frame of the anchor is caught with one that belongs to a later set.
static bool too_late(const struct infer *w, int c)
{
    return w->capture_ns[c] - w->look.anchor_ns > w->cfg.max_skew_ns;
}

// Another frame that has come.
static bool next(struct infer *w)
{
    const struct infer_seat *seat = w->seat;
    for (int i = 0; i < seat->info->n_cameras; i++) {
        int c = seat->binding->camera_of[i];
        if (w->look.held[c] || !caught(w, c) || too_late(w, c))
            continue;
        hold(w, i, c);
        return true;
    }
    return false;
}

// No set can be made of the look any more, but one of a newer frame of the primary camera.
static bool overtaken(struct infer *w)
{
    const struct infer_seat *seat = w->seat;
    if (!w->look.on ||
        atomic_load(&w->board->camera[seat->binding->primary].capture_ns) <=
            w->look.anchor_ns)
        return false;
    for (int i = 0; i < seat->info->n_cameras; i++) {
        int c = seat->binding->camera_of[i];
        if (!w->look.held[c] && caught(w, c) && too_late(w, c))
            return true;
    }
    return false;
}

// ---- the steps -------------------------------------------------------------------------------

bool infer_look(struct infer *w, ns_t now_ns)
{
    struct infer_anchor a;
    if (!w->seat->brain.see || atomic_load(&w->board->starved) != BOARD_FED)
        return false;
    if (!infer_triggered(w, &a)) {
        infer_look_away(w); // it is not due any more
        return false;
    }
    if (overtaken(w)) {
        infer_look_away(w);
        if (!infer_triggered(w, &a)) // by the newest frame, now
            return false;
    }
    if (infer_complete(w, &a, now_ns))
        return false;
    return w->look.on ? next(w) : begin(w, a.capture_ns);
}

void infer_see(struct infer *w, ns_t now_ns)
{
    const struct infer_seat *seat = w->seat;
    struct infer_look *l = &w->look;
    const struct policy_image *image = &w->frame[seat->binding->camera_of[l->camera]];
    l->since_ns = now_ns;
    atomic_store(&w->board->inferring_since_ns, now_ns);
    // What is refused here is refused again, and counted, by the inference.
    if (seat->brain.see(seat->brain.self, l->camera, image) == 0)
        l->seen |= 1u << l->camera;
}

void infer_saw(struct infer *w, ns_t now_ns)
{
    struct infer_look *l = &w->look;
    l->took_ns += now_ns - l->since_ns;
    l->since_ns = 0;
    atomic_store(&w->board->inferring_since_ns, 0);
}

// ---- what it saved ---------------------------------------------------------------------------

// Early is what was seen of this set before it was complete, and was not there from the last one.
void infer_count_seen(struct infer *w)
{
    const struct infer_seat *seat = w->seat;
    const struct infer_brain *b = &seat->brain;
    uint32_t there = b->reused ? b->reused(b->self) : 0;
    for (int i = 0; i < seat->info->n_cameras; i++) {
        int c = seat->binding->camera_of[i];
        struct infer_seen *n = &w->counts.seen[c];
        bool reused = there >> i & 1, early = w->seen >> i & 1;
        if (!reused)
            n->computed++;
        else if (early && w->image[i].number != w->last_number[c])
            n->early++;
        else
            n->kept++;
        w->last_number[c] = w->image[i].number;
    }
}
