// A tick: what went into the recorded one, onto the board, and loop_tick. The loop is where the
// recorded one was from the first tick of the process on, or from a state of the loop; a record that
// is missing, or a chunk or a sample that is not in the log, ends that.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/intake_impl.h"
#include "daemon/keyframe.h"
#include "daemon/loop_impl.h"
#include "daemon/replay_impl.h"

// ---- the clock -------------------------------------------------------------------------------

// The times of the recorded tick, in the order in which the loop asks. It has no argument to find
// its replay by, and a replay is one thread.
static _Thread_local struct {
    ns_t made_ns, reported_ns;
} hands;

static ns_t recorded_clock(void)
{
    ns_t now = hands.made_ns ? hands.made_ns : hands.reported_ns;

    hands.made_ns = 0;
    return now;
}

// ---- onto the board --------------------------------------------------------------------------

static void put_joints(struct board *b, const struct tick_inputs *in)
{
    struct joints_mark *m = &b->joint_mark;

    atomic_store(&m->refused_in_a_row, in->joints_refused_in_a_row);
    atomic_store(&m->refused_for, in->joints_refused_for);
    atomic_store(&m->refused_joint, in->joints_refused_joint);
    atomic_store(&m->refused_value, in->joints_refused_value);
    atomic_store(&m->slow, in->joints_slow);
}

static void put_camera(struct camera_mark *m, const struct tick_camera *in)
{
    atomic_store(&m->received_ns, in->received_ns);
    atomic_store(&m->changed_ns, in->changed_ns);
    atomic_store(&m->corrupt_in_a_row, in->corrupt_in_a_row);
    atomic_store(&m->refused_in_a_row, in->refused_in_a_row);
    atomic_store(&m->same_in_a_row, in->same_in_a_row);
    atomic_store(&m->slow, in->slow);
}

// What if: an arm that moved then shall move now, wherever this run began.
static uint32_t requests(const struct replay *r)
{
    bool idle = !r->judging && ladder_moving(r->then.mode) &&
                r->then.mode != LADDER_HOMING && r->loop->state == LADDER_READY;

    return r->then.in.requests | (idle ? BOARD_ARM : 0);
}

static void put_inputs(struct board *b, const struct tick_inputs *in)
{
    static const struct command waits;

    put_joints(b, in);
    for (int i = 0; i < b->n_cameras; i++)
        put_camera(&b->camera[i], &in->camera[i]);
    atomic_store(&b->requests, in->requests);
    atomic_store(&b->stalls, in->stalls);
    atomic_store(&b->policy_failures, in->policy_failures);
    atomic_store(&b->inferring_since_ns, in->inferring ? in->now_ns : 0);
    atomic_store(&b->starved, in->starved);
    atomic_store(&b->started, in->started);
    atomic_store(&b->lost_command, in->lost_command);
    if (!in->room)
        (void)ring_push(&b->commands, &waits);
}

// The sample that the tick knew. False: it is not in the log.
static bool put_sample(struct replay *r, const struct tick_inputs *in)
{
    uint64_t number = in->joint_sample;
    const struct joint_sample *s;

    if (number == r->on_board)
        return true;
    s = replay_inputs_to(r, number, in->reported_ns) ? replay_sample(r, number) : NULL;
    if (!s && r->loop->joints.number == number)
        s = &r->loop->joints; // known from its state
    if (!s)
        return false;
    slot_write(&r->board.joints, s);
    r->on_board = number;
    return true;
}

static bool put_chunk(struct replay *r, uint64_t number)
{
    const struct replay_rows *rows = &r->rows;
    const struct tape_chunk *from = &rows->c;
    struct chunk *c;

    if (!replay_chunk(r, number))
        return false;
    if (from->rows > r->robot->rows || from->joints > r->robot->loop.joints)
        return false;
    c = ring_reserve(&r->board.chunks);
    if (!c)
        return false;
    c->id = from->id;
    c->anchor_ns = from->anchor_ns;
    c->oldest_ns = from->oldest_ns;
    c->ready_ns = from->ready_ns;
    c->step_ns = from->step_ns;
    c->generation = from->generation;
    c->rows = from->rows;
    c->joints = from->joints;
    memcpy(c->row, rows->row,
           (size_t)from->rows * (size_t)from->joints * sizeof *rows->row);
    ring_commit(&r->board.chunks);
    return true;
}

static bool put_chunks(struct replay *r, const struct tick_inputs *in)
{
    uint64_t before =
        r->loop->report.chunks_seen; // as in->chunks_before says, if that is true

    for (uint32_t i = 1; i <= in->chunks_taken; i++)
        if (!put_chunk(r, before + i))
            return false;
    return true;
}

static void clear(struct board *b)
{
    while (ring_peek(&b->chunks))
        ring_release(&b->chunks);
    while (ring_peek(&b->commands))
        ring_release(&b->commands);
}

// ---- where the loop was ----------------------------------------------------------------------

static void lose(struct replay *r)
{
    if (r->follows)
        r->out->gaps++;
    r->follows = false;
    r->followed_from = 0;
    clear(&r->board);
}

// If nothing is missing in what came in, the record is not true.
static void lose_sample(struct replay *r, uint64_t number)
{
    char text[400];

    lose(r);
    if (!replay_inputs_complete(r) || !r->judging)
        return;
    snprintf(text, sizeof text,
             "joint_sample: then %llu, but the newest that had come was %llu",
             (unsigned long long)number, (unsigned long long)r->intake->history.count);
    replay_differs(r, REPLAY_TICK, r->tick, text);
}

// Are there records missing before this one? Ticks that the loop overslept are not: its commands
// and chunks go on without a gap.
static bool missing(const struct replay *r)
{
    const struct tick_record *t = &r->then;

    if (t->in.tick == r->tick + 1)
        return false;
    if (t->in.chunks_before != r->loop->report.chunks_seen)
        return true;
    return t->published && !r->sequence_unknown && t->sequence != r->sequence + 1;
}

static int new_loop(struct replay *r)
{
    r->sequence_unknown = false;
    loop_free(r->loop);
    r->loop = NULL;
    clear(&r->board);
    r->on_board = 0;
    return loop_new(&r->loop, &r->robot->loop, &r->board);
}

// The state of the loop before tick `tick`, if the log has it. 1, 0 or -errno.
static int restore(struct replay *r, uint64_t tick)
{
    struct keyframe_head h;
    char why[160];
    int rc;

    for (; replay_peek(r, &r->loop_states); replay_drop(&r->loop_states)) {
        const struct mcap_message *m = &r->loop_states.m;

        if (m->size < sizeof h)
            continue;
        memcpy(&h, m->data, sizeof h);
        if (h.kind != KEYFRAME_LOOP || h.number < tick)
            continue;
        if (h.number > tick)
            return 0;
        rc = new_loop(r);
        if (rc)
            return rc;
        rc = keyframe_loop_restore(r->loop, m->data, m->size, why);
        if (rc == 0) {
            r->sequence = r->loop->report.commands;
            r->out->keyframes++;
            return 1;
        }
        r->refused = true;
        snprintf(r->out->note, sizeof r->out->note, "%.159s", why);
    }
    return 0;
}

// What if: a run with other limits need not begin where the recorded one was.
static int begin_anew(struct replay *r)
{
    int rc = new_loop(r);

    if (rc)
        return rc;
    r->loop->report.chunks_seen = r->then.in.chunks_before;
    r->sequence_unknown = true;
    return 1;
}

// Is the loop, before this tick, where the recorded one was? 1, 0 or -errno.
static int follows(struct replay *r)
{
    const struct tick_inputs *in = &r->then.in;
    int rc;

    if (r->follows && missing(r))
        lose(r);
    if (r->follows)
        return 1;
    rc = 1;
    if (r->any || in->last_work_ns >= 0 || in->chunks_before > 0)
        rc = restore(r, in->tick);
    if (rc == 0 && !r->judging && r->refused)
        rc = begin_anew(r);
    r->follows = rc == 1;
    return rc;
}

// ---- the tick --------------------------------------------------------------------------------

static bool take_record(struct replay *r)
{
    const struct tape_entry *e;
    bool there = false;

    while ((e = tape_peek(r->tape, TAPE_TICKS)) && e->kind != TAPE_TICK)
        replay_output_states(r);
    if (e && e->size <= sizeof r->now) {
        memset(&r->now, 0, sizeof r->now);
        memcpy(&r->now, e + 1, e->size);
        there = true;
    }
    while (tape_peek(r->tape, TAPE_TICKS))
        tape_release(r->tape, TAPE_TICKS);
    return there;
}

static void judge(struct replay *r, uint64_t log_ns, const void *recorded, size_t size)
{
    unsigned char bytes[RECORD_TICK_MAX];
    size_t n = record_tick(&r->now, bytes, sizeof bytes);
    char text[400];

    r->out->ticks++;
    replay_output_put(r->output, "/tick", log_ns, log_ns, bytes, n);
    if (!r->judging || (n == size && memcmp(bytes, recorded, n) == 0))
        return;
    if (replay_compare_tick(r->robot, &r->then, &r->now, r->tolerance_rad, text))
        replay_differs(r, REPLAY_TICK, r->tick, text);
    else if (r->tolerance_rad <= 0)
        replay_differs(r, REPLAY_TICK, r->tick, "the bytes of the record");
}

static void turn(struct replay *r, uint64_t log_ns, const void *recorded, size_t size)
{
    const struct tick_inputs *in = &r->then.in;
    const struct command *c;

    replay_output_ask_loop(r, in->tick);
    put_inputs(&r->board, in);
    atomic_store(&r->board.requests, requests(r));
    hands.made_ns = in->made_ns;
    hands.reported_ns = in->reported_ns;
    loop_worked(r->loop, in->last_work_ns);
    loop_tick(r->loop, in->tick, in->now_ns, in->lateness_ns, recorded_clock);
    if (!take_record(r)) {
        replay_differs(r, REPLAY_TICK, r->tick, "the loop made no record");
        clear(&r->board);
        return;
    }
    judge(r, log_ns, recorded, size);
    if (r->then.published) {
        r->sequence = r->then.sequence;
        r->sequence_unknown = false;
    }
    if (r->now.published && (c = ring_peek(&r->board.commands)))
        replay_command(r, c);
    clear(&r->board);
    if (r->opt->tick)
        r->opt->tick(r->opt->arg, &r->then, &r->now);
}

static void note_time(struct replay *r)
{
    if (!r->any)
        r->first_ns = r->then.in.now_ns;
    r->last_ns = r->then.in.now_ns;
    r->tick = r->then.in.tick;
    r->any = true;
}

static int one(struct replay *r, const struct mcap_message *m)
{
    const struct tick_inputs *in = &r->then.in;
    int rc = follows(r);

    if (rc < 0)
        return rc;
    note_time(r);
    // Whatever becomes of the tick: what was judged up to here is.
    if (!put_sample(r, in) && r->follows)
        lose_sample(r, in->joint_sample);
    if (r->follows && !put_chunks(r, in))
        lose(r);
    if (r->follows) {
        turn(r, m->log_ns, m->data, m->size);
        return 1;
    }
    r->out->ticks_skipped++;
    replay_output_put(r->output, "/tick", m->log_ns, m->log_ns, m->data, m->size);
    return 1;
}

static int other_robot(struct replay *r)
{
    snprintf(
        r->err->text, sizeof r->err->text,
        "tick %llu of the log is of a robot with %d joints and %d cameras, but this one "
        "has %d and %d: give the configuration that was recorded",
        (unsigned long long)r->then.in.tick, r->then.joints, r->then.cameras,
        r->robot->loop.joints, r->robot->cameras);
    return -EINVAL;
}

int replay_tick(struct replay *r)
{
    int rc = 1;

    if (!replay_peek(r, &r->ticks))
        return 0;
    if (record_tick_read(&r->then, r->ticks.m.data, r->ticks.m.size) != 0)
        r->out->unreadable++;
    else if (r->then.joints != r->robot->loop.joints ||
             r->then.cameras != r->robot->cameras)
        rc = other_robot(r);
    else
        rc = one(r, &r->ticks.m);
    replay_drop(&r->ticks);
    return rc;
}
