// The wire and the bus: what arrives at the daemon, in which order it is judged, and what leaves.
#include "tests/fault/world_impl.h"

#include "daemon/tape.h"

#define SMALL_MARK 64                // messages that wait at a socket, as in bus.c
#define OUT_NS     (100 * NS_PER_US) // a command is under way

ns_t world_next_letter(const struct world *w, bool to_driver)
{
    ns_t at = NEVER;

    for (int i = 0; i < w->in->letters; i++) {
        const struct letter *l = &w->in->letter[i];

        if ((l->to == DRIVER) == to_driver && l->at < at)
            at = l->at;
    }
    return at;
}

static bool before(const struct letter *a, const struct letter *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

// The first (last) letter to someone that has arrived, or -1. Of two that came together the one
// posted first is the first.
static int arrived_end(const struct world *w, int to, bool last)
{
    int end = -1;

    for (int i = 0; i < w->in->letters; i++) {
        const struct letter *l = &w->in->letter[i];

        if (l->to == to && l->at <= w->now &&
            (end < 0 || before(l, &w->in->letter[end]) != last))
            end = i;
    }
    return end;
}

static int arrived(const struct world *w, int to)
{
    return arrived_end(w, to, false);
}

static int arrived_last(const struct world *w, int to)
{
    return arrived_end(w, to, true);
}

// When the bus has n messages of a stream that are there now: the time of the first of them. No
// two have the same, as with the daemon's bus.
static ns_t receipts(struct world *w, int stream, int n)
{
    struct sender *s = &w->in->sender[stream];
    ns_t first = w->now > s->heard_ns ? w->now : s->heard_ns + 1;

    s->heard_ns = first + n - 1;
    return first;
}

static int waiting(const struct world *w, int to)
{
    int n = 0;

    for (int i = 0; i < w->in->letters; i++)
        n += w->in->letter[i].to == to && w->in->letter[i].at <= w->now;
    return n;
}

static void deliver_joints(struct world *w)
{
    int i, n = 0;

    while ((i = arrived(w, 0)) >= 0) {
        if (n++ < SMALL_MARK)
            intake_joints(w->in->intake, w->in->letter[i].bytes, w->in->letter[i].size,
                          receipts(w, 0, 1));
        letter_free(w, i);
        w->messages++;
    }
    intake_publish(w->in->intake);
}

// As the bus does: the newest that is good enough to be parked.
static void deliver_frames(struct world *w, int camera)
{
    int left = waiting(w, 1 + camera), i;
    ns_t first = left > 0 ? receipts(w, 1 + camera, left) : 0;
    bool parked = false;

    while ((i = arrived_last(w, 1 + camera)) >= 0) {
        const struct letter *l = &w->in->letter[i];
        ns_t at = first + --left;

        w->messages++;
        if (parked)
            camera_supersede(w->camera[camera], l->bytes, l->size, at);
        else
            parked = camera_park(w->camera[camera], intake_codec(w->in->intake), l->bytes,
                                 l->size, at);
        letter_free(w, i);
    }
}

// Was the wall clock set? Before any message is read.
static void look_at_wall(struct world *w)
{
    int64_t by_ns = wall_moved(&w->in->wall, w->now, clock_wall_ns(), w->now);

    if (by_ns == 0)
        return;
    intake_wall_set(w->in->intake, by_ns, w->now);
    for (int i = 0; i < w->cfg.loop.n_cameras; i++)
        camera_wall_set(w->camera[i], by_ns, w->now);
}

void world_bus_receives(struct world *w)
{
    look_at_wall(w);
    world_record_bus(w);
    deliver_joints(w);
    for (int i = 0; i < w->cfg.loop.n_cameras; i++)
        deliver_frames(w, i);
}

static void post_command(struct world *w, const void *bytes, size_t size)
{
    const struct injection *one = world_wrong(w, INJECT_BUS, 0, w->now);
    ns_t at = w->now + OUT_NS;

    w->commands++;
    if (one && one->verb == VERB_OFF)
        return;
    if (one && one->verb == VERB_INTERMITTENT &&
        injector_random01(&w->injector.random) < one->magnitude)
        return;
    if (one && one->verb == VERB_DELAYED)
        at += (ns_t)(one->magnitude * (double)NS_PER_MS);
    letter_post(w, DRIVER, at, bytes, size);
}

void world_bus_sends(struct world *w)
{
    static uint8_t bytes[CODEC_COMMAND_MAX];
    struct command c;

    w->in->command_at_ns = NEVER;
    while (outbox_next(&w->outbox, &w->board, w->now, &c)) {
        int64_t made_wall_ns = clock_wall_ns() - (clock_now_ns() - c.made_ns);
        size_t n = codec_command(intake_codec(w->in->intake), &c, made_wall_ns, bytes,
                                 sizeof bytes);

        if (n > 0)
            tape_command(w->board.tape, w->now, bytes, n);

        if (w->hooks.made)
            w->hooks.made(w->hooks.arg, w, &c);
        if (n > 0)
            post_command(w, bytes, n);
    }
}

void world_driver_hears(struct world *w)
{
    int i;

    while ((i = arrived(w, DRIVER)) >= 0) {
        bool good =
            plant_hear(&w->plant, w->in->letter[i].bytes, w->in->letter[i].size, w->now);

        letter_free(w, i);
        if (good && w->hooks.heard)
            w->hooks.heard(w->hooks.arg, w, &w->plant.command);
    }
}
