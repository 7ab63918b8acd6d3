// The robot made anew, and one tick of the log after the other.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/replay_impl.h"

#define DAMAGES_MOST 100000 // in a row: then the topic is over
#define GOING_TICKS  2048   // between two looks at whether to go on
// Room for one record of a kind and some: whoever writes on the tape is read at once.
#define ROOM_SMALL  (256u << 10)
#define ROOM_STATES (64u << 20)

// ---- topics ----------------------------------------------------------------------------------

int replay_feed_open(struct replay *r, struct replay_feed *f, const char *topic)
{
    int rc = logbook_cursor_new(&f->cursor, r->book, topic, 0, 0);

    if (rc == -ENOENT) {
        f->over = true;
        return 0;
    }
    return rc;
}

bool replay_peek(struct replay *r, struct replay_feed *f)
{
    struct mcap_error e;

    for (int tries = 0; !f->there && !f->over; tries++) {
        int rc = logbook_next(f->cursor, &f->m, &e);

        f->there = rc == 1;
        f->over = rc == 0 || tries >= DAMAGES_MOST;
        if (rc < 0)
            r->out->unreadable++;
    }
    return f->there;
}

void replay_drop(struct replay_feed *f)
{
    f->there = false;
}

ns_t replay_at(const struct replay *r, const struct mcap_message *m)
{
    return (ns_t)(m->log_ns - (uint64_t)r->base_ns);
}

// Unsigned: what a file says of times may be anything.
uint64_t replay_log_time(const struct replay *r, ns_t at_ns)
{
    return (uint64_t)at_ns + (uint64_t)r->base_ns;
}

static void differs(struct replay *r, enum replay_stage stage, bool bytes_only,
                    uint64_t tick, const char *text)
{
    static const char *const name[] = {"input", "chunk", "tick", "command"};
    struct replay_difference *d = &r->out->first;

    r->out->differing[stage]++;
    if (d->any && (bytes_only || !d->bytes_only))
        return;
    d->any = true;
    d->bytes_only = bytes_only;
    d->tick = tick;
    d->stage = name[stage];
    snprintf(d->text, sizeof d->text, "%s", text);
}

void replay_differs(struct replay *r, enum replay_stage stage, uint64_t tick,
                    const char *text)
{
    differs(r, stage, false, tick, text);
}

void replay_differs_in_bytes(struct replay *r, uint64_t tick, const char *text)
{
    differs(r, REPLAY_INPUT, true, tick, text);
}

// ---- the robot -------------------------------------------------------------------------------

static int new_tape(struct replay *r)
{
    struct tape_sizes sizes = {{0}};
    int rc;

    for (int c = 0; c < TAPE_CLASSES; c++)
        sizes.bytes[c] = ROOM_SMALL;
    if (r->opt->output) {
        sizes.bytes[TAPE_TICKS] = ROOM_STATES;
        sizes.bytes[TAPE_BUS] = ROOM_STATES / 8;
    }
    rc = tape_new(&r->tape, &sizes);
    if (rc)
        return rc;
    tape_turn(r->tape, true);
    // Asked for when it is turned on; a replay asks where the recording did.
    r->tape->loop_state_given = atomic_load(&r->tape->loop_state_asked);
    atomic_store(&r->tape->bus_state_given, atomic_load(&r->tape->bus_state_asked));
    r->board.tape = r->bus.tape = r->tape;
    return 0;
}

static int new_senders(struct replay *r)
{
    const struct replay_robot *robot = r->robot;
    int rc = intake_new(&r->intake, &robot->intake, robot->joint, &r->bus);

    for (int i = 0; i < robot->cameras && rc == 0; i++) {
        const struct replay_camera *c = &robot->camera[i];

        rc = camera_new(&r->camera[i], &r->bus.camera[i], c->latency_ms);
        if (rc)
            break;
        camera_declare(r->camera[i], c->rate_hz, &r->bus.armed);
        camera_expect(r->camera[i], c->width, c->height);
        camera_record(r->camera[i], r->tape, i + 1);
    }
    return rc;
}

static int new_robot(struct replay *r)
{
    const struct replay_robot *robot = r->robot;
    int joints = robot->loop.joints, rc;

    rc = board_init(&r->bus, robot->cameras, 1, joints);
    if (rc == 0)
        rc = board_init(&r->board, robot->cameras, robot->rows, joints);
    if (rc == 0)
        rc = board_init(&r->wire, 0, 1, joints);
    if (rc == 0)
        rc = new_tape(r);
    if (rc == 0)
        rc = new_senders(r);
    if (rc == 0)
        rc = loop_new(&r->loop, &robot->loop, &r->board);
    return rc;
}

static int open_feeds(struct replay *r)
{
    int rc = replay_feed_open(r, &r->ticks, "/tick");

    if (rc == 0)
        rc = replay_feed_open(r, &r->chunks, "/policy/chunk");
    if (rc == 0)
        rc = replay_feed_open(r, &r->commands, "/command");
    if (rc == 0)
        rc = replay_feed_open(r, &r->loop_states, "/keyframe");
    if (rc == 0)
        rc = replay_feed_open(r, &r->bus_states, "/keyframe");
    return rc ? rc : replay_inputs_open(r);
}

static void close_all(struct replay *r)
{
    logbook_cursor_free(r->ticks.cursor);
    logbook_cursor_free(r->chunks.cursor);
    logbook_cursor_free(r->commands.cursor);
    logbook_cursor_free(r->loop_states.cursor);
    logbook_cursor_free(r->bus_states.cursor);
    replay_inputs_close(r);
    replay_chunks_close(r);
    loop_free(r->loop);
    for (int i = 0; i < r->robot->cameras; i++)
        camera_stop(r->camera[i]);
    intake_free(r->intake);
    tape_free(r->tape);
    board_free(&r->bus);
    board_free(&r->board);
    board_free(&r->wire);
}

// ---- all of it -------------------------------------------------------------------------------

static int fail(struct replay *r, int rc, const char *what)
{
    snprintf(r->err->text, sizeof r->err->text, "%s: %s", what, strerror(-rc));
    return rc;
}

static int through(struct replay *r)
{
    uint64_t n = 0;
    int rc;

    while ((rc = replay_tick(r)) == 1)
        if (r->opt->going && ++n % GOING_TICKS == 0 &&
            !r->opt->going(r->opt->arg, r->last_ns - r->first_ns))
            return -ECANCELED;
    if (rc)
        return rc;
    replay_chunks_all(r);
    replay_inputs_all(r);
    replay_commands_all(r);
    return 0;
}

static double tolerance(const struct replay_options *opt)
{
    return opt->tolerance_rad > 0 ? opt->tolerance_rad : 0;
}

static int run(struct replay *r)
{
    int rc = new_robot(r);

    if (rc)
        return fail(r, rc, "cannot make the robot anew");
    rc = open_feeds(r);
    if (rc)
        return fail(r, rc, "the log cannot be read");
    if (r->opt->output) {
        rc = replay_output_open(r, r->opt->output);
        if (rc)
            return rc;
    }
    rc = through(r);
    if (r->output) {
        int closed = replay_output_close(r, rc == 0);

        rc = rc ? rc : closed;
    }
    return rc;
}

int replay_run_robot(struct logbook *book, const struct replay_robot *robot,
                     const struct replay_options *opt, struct replay_result *out,
                     struct config_error *err)
{
    struct replay *r = calloc(1, sizeof *r);
    ns_t began = clock_now_ns();
    int rc;

    memset(out, 0, sizeof *out);
    err->text[0] = '\0';
    if (!r)
        return -ENOMEM;
    r->book = book;
    r->robot = robot;
    r->opt = opt;
    r->out = out;
    r->err = err;
    r->base_ns = logbook_base_ns(book);
    r->tolerance_rad = tolerance(opt);
    r->judging = !opt->config_file && !opt->policy_directory;
    out->bits = r->judging && r->tolerance_rad <= 0;
    out->tolerance_rad = r->tolerance_rad;
    r->board.command_fd = r->bus.command_fd = r->wire.command_fd = -1;
    rc = run(r);
    close_all(r);
    out->covered_ns = r->last_ns - r->first_ns;
    out->took_ns = clock_now_ns() - began;
    free(r);
    return rc;
}
