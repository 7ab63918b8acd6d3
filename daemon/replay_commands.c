// A command on its way out: the outbox at the time at which the recorded one left, and its bytes.
#include <stdio.h>
#include <string.h>

#include "actd/v1/joint_command.pb-c.h"
#include "daemon/intake.h"
#include "daemon/replay_impl.h"

struct sent { // a recorded one
    uint64_t sequence;
    int64_t wall_ns;
};

static bool read_sent(const struct mcap_message *m, struct sent *out)
{
    Actd__V1__JointCommand *c = actd__v1__joint_command__unpack(NULL, m->size, m->data);

    if (!c)
        return false;
    out->sequence = c->sequence;
    out->wall_ns = 0; // what is no time gives other bytes
    if (c->timestamp)
        (void)codec_wall(c->timestamp->seconds, c->timestamp->nanos, &out->wall_ns);
    actd__v1__joint_command__free_unpacked(c, NULL);
    return true;
}

static void pass(struct replay *r)
{
    const struct mcap_message *m = &r->commands.m;

    r->out->commands_skipped++;
    replay_output_put(r->output, "/command", m->log_ns, m->publish_ns, m->data, m->size);
    replay_drop(&r->commands);
}

static void judge(struct replay *r, const void *bytes, size_t n)
{
    const struct mcap_message *m = &r->commands.m;
    double largest_rad = 0;
    char text[400];

    r->out->commands++;
    replay_output_put(r->output, "/command", m->log_ns, m->publish_ns, bytes, n);
    if (!r->judging || (n == m->size && memcmp(bytes, m->data, n) == 0))
        return;
    if (replay_compare_command(m->data, m->size, bytes, n, r->tolerance_rad, &largest_rad,
                               text))
        replay_differs(r, REPLAY_COMMAND, r->tick, text);
    else if (r->tolerance_rad <= 0)
        replay_differs(r, REPLAY_COMMAND, r->tick, "the bytes of the message");
    if (largest_rad > r->out->largest_rad)
        r->out->largest_rad = largest_rad;
}

// As the bus did it, at the same time.
static void send(struct replay *r, const struct command *c, const struct sent *then)
{
    unsigned char bytes[CODEC_COMMAND_MAX];
    struct command out;
    size_t n = 0;

    atomic_store(&r->wire.stalls, c->stalls);
    (void)ring_push(&r->wire.commands, c);
    if (outbox_next(&r->outbox, &r->wire, replay_at(r, &r->commands.m), &out))
        n = codec_command(intake_codec(r->intake), &out, then->wall_ns, bytes,
                          sizeof bytes);
    judge(r, bytes, n);
    replay_drop(&r->commands);
}

// What if: the recorded ones are another run's. It leaves as soon as it is made.
static void send_anew(struct replay *r, const struct command *c)
{
    unsigned char bytes[CODEC_COMMAND_MAX];
    uint64_t at = replay_log_time(r, c->made_ns);
    size_t n =
        codec_command(intake_codec(r->intake), c, (int64_t)at, bytes, sizeof bytes);

    r->out->commands++;
    replay_output_put(r->output, "/command", at, at, bytes, n);
}

static void differs_unmade(struct replay *r, const struct sent *then)
{
    char text[400];

    snprintf(text, sizeof text, "sequence %llu comes after commands that were made later",
             (unsigned long long)then->sequence);
    if (r->judging)
        replay_differs(r, REPLAY_COMMAND, r->tick, text);
}

void replay_command(struct replay *r, const struct command *c)
{
    struct sent then;

    if (!r->judging) {
        send_anew(r, c);
        return;
    }
    if (r->followed_from == 0)
        r->followed_from = c->sequence;
    while (replay_peek(r, &r->commands)) {
        if (!read_sent(&r->commands.m, &then)) {
            r->out->unreadable++;
            if (r->judging)
                replay_differs(r, REPLAY_COMMAND, r->tick, "what was recorded is none");
            replay_drop(&r->commands);
            continue;
        }
        if (then.sequence > c->sequence)
            return; // this one never left
        if (then.sequence == c->sequence) {
            send(r, c, &then);
            return;
        }
        // Of ticks that were replayed each command is one that was made, and judged.
        if (r->followed_from > 0 && then.sequence >= r->followed_from)
            differs_unmade(r, &then);
        pass(r);
    }
}

void replay_commands_all(struct replay *r)
{
    while (r->judging && replay_peek(r, &r->commands))
        pass(r);
}
