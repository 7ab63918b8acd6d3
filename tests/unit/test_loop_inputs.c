// What a tick depends on is sampled once, at its beginning: each word of the board goes where it
// belongs, and what changes on the board while the tick runs is the next one's. And the time that a
// tick took is an input of the next.
#include "tests/unit/loop_random.h"

static struct rig rig;
static struct stimulus s;

// Runs as a robot that works, to RUNNING.
static void start(void)
{
    struct chance w;
    struct loop_config cfg;
    size_t n;

    chance_start(&w, 4);
    cfg = random_config(&w.seed);
    cfg.chunks.mode = CHUNK_CROSSFADE;
    rig_start(&rig, &cfg);
    tape_turn(rig.tape, true);
    do {
        s = *chance_next(&w, &rig);
        rig_tick(&rig, &s);
        (void)rig_record(&rig, &n);
    } while (rig.loop->state != LADDER_RUNNING || !rig.got || rig.loop->target_rc != 0);
    s.chunks = 0;
    s.requests = 0;
    s.lost = false;
    s.taken = true;
    s.joints_new = false;
}

// The next tick of what is in s.
static const struct tick_record *turn(void)
{
    size_t n;

    s.tick++;
    s.now += R_PERIOD;
    s.made += R_PERIOD;
    s.reported += R_PERIOD;
    rig_tick(&rig, &s);
    return rig_record(&rig, &n);
}

// ---- where things go -------------------------------------------------------------------------

static void each_word_has_its_place(void **state)
{
    (void)state;
    const struct tick_record *r;
    uint64_t before;

    start();
    before = rig.loop->report.chunks_seen;
    s.lateness = 17;
    s.worked = 123456;
    s.joints_new = true;
    s.joints.number += 5;
    s.joints.received_ns = s.joints.capture_ns = s.now;
    s.refused_in_a_row = 2;
    s.refused_for = REASON_JOINTS_JUMP;
    s.refused_joint = 1;
    s.refused_value = 0.75;
    s.joints_slow = true;
    s.camera[0] = (struct tick_camera){s.now - 3, s.now - 4, 1, 2, 3, true};
    s.camera[1] = (struct tick_camera){s.now - 5, s.now - 6, 4, 5, 6, false};
    s.failures = 1;
    s.inferring = true;
    s.starved = BOARD_NO_JOINTS;
    s.started = true;
    s.stalls += 9;
    s.requests = BOARD_HOME | BOARD_RESET;
    s.chunks = 2;
    r = turn();
    assert_int_equal(r->in.tick, s.tick);
    assert_int_equal(r->in.now_ns, s.now);
    assert_int_equal(r->in.lateness_ns, 17);
    assert_int_equal(r->in.made_ns, s.made);
    assert_int_equal(r->in.reported_ns, s.reported);
    assert_int_equal(r->in.joint_sample, s.joints.number);
    assert_true(r->in.joint_sample_new);
    assert_int_equal(r->in.joints_refused_in_a_row, 2);
    assert_int_equal(r->in.joints_refused_for, REASON_JOINTS_JUMP);
    assert_int_equal(r->in.joints_refused_joint, 1);
    assert_true(r->in.joints_refused_value == 0.75);
    assert_true(r->in.joints_slow);
    for (int i = 0; i < R_CAMERAS; i++) {
        assert_int_equal(r->in.camera[i].received_ns, s.camera[i].received_ns);
        assert_int_equal(r->in.camera[i].changed_ns, s.camera[i].changed_ns);
        assert_int_equal(r->in.camera[i].corrupt_in_a_row, s.camera[i].corrupt_in_a_row);
        assert_int_equal(r->in.camera[i].refused_in_a_row, s.camera[i].refused_in_a_row);
        assert_int_equal(r->in.camera[i].same_in_a_row, s.camera[i].same_in_a_row);
        assert_int_equal(r->in.camera[i].slow, s.camera[i].slow);
    }
    assert_int_equal(r->in.policy_failures, 1);
    assert_true(r->in.inferring && r->in.started && r->in.room);
    assert_int_equal(r->in.starved, BOARD_NO_JOINTS);
    assert_int_equal(r->in.stalls, s.stalls);
    assert_int_equal(r->in.requests, BOARD_HOME | BOARD_RESET);
    assert_int_equal(r->in.chunks_before, before);
    assert_int_equal(r->in.chunks_taken, 2);

    s.joints_new = false;
    s.requests = 0;
    s.chunks = 0;
    r = turn();
    assert_int_equal(r->in.joint_sample, s.joints.number); // known, and not new
    assert_false(r->in.joint_sample_new);
    assert_int_equal(r->in.requests, 0);
    assert_int_equal(r->in.chunks_before, before + 2);
    assert_int_equal(r->in.chunks_taken, 0);
    assert_int_equal(r->in.last_work_ns, 123456);
    rig_end(&rig);
}

// What came of it, in the words of the command and of the report.
static void the_outcome(void **state)
{
    (void)state;
    const struct tick_record *r;
    const struct loop_report *now;

    start();
    r = turn();
    now = loop_last(rig.loop);
    assert_true(rig.got && r->published);
    assert_int_equal(r->joints, R_JOINTS);
    assert_int_equal(r->cameras, R_CAMERAS);
    assert_int_equal(r->mode, now->mode);
    assert_int_equal(r->reason, now->reason);
    assert_int_equal(r->sequence, rig.command.sequence);
    assert_int_equal(r->margin_ns, rig.command.margin_ns);
    assert_int_equal(r->margin_ns, s.now - s.lateness + R_PERIOD - s.made);
    assert_int_equal(r->chunk_id, rig.command.chunk_id);
    assert_true(r->chunk_row == rig.command.chunk_row);
    assert_true(r->chunk_remaining == now->chunk_remaining);
    assert_int_equal(r->generation, now->generation);
    assert_int_equal(r->target_rc, 0);
    assert_int_equal(r->gate, GATE_PASSED);
    assert_int_equal(r->latched, now->faults.latched);
    assert_int_equal(r->active, now->faults.active);
    for (int i = 0; i < R_JOINTS; i++) {
        const struct tick_joint *j = &r->joint[i];

        assert_true(j->measured == now->measured[i]);
        assert_true(j->target == now->wanted[i]);
        assert_true(j->wanted == rig.command.wanted[i]);
        assert_true(j->commanded == rig.command.pos[i]);
        assert_true(j->commanded_vel == rig.command.vel[i]);
        assert_int_equal(j->limit, rig.command.limit[i]);
    }
    rig_end(&rig);
}

// Before a joint state has come nothing is commanded, and the clock is asked once less.
static void nothing_yet(void **state)
{
    (void)state;
    struct chance w;
    struct loop_config cfg;
    const struct tick_record *r;

    chance_start(&w, 4);
    cfg = random_config(&w.seed);
    rig_start(&rig, &cfg);
    tape_turn(rig.tape, true);
    s = *chance_next(&w, &rig);
    s.joints_new = false;
    s.chunks = 0;
    r = turn();
    assert_false(r->published);
    assert_int_equal(r->sequence, 0);
    assert_int_equal(r->in.last_work_ns, -1); // the first of the process
    assert_int_equal(r->in.made_ns, 0);
    assert_int_equal(r->in.reported_ns, s.reported);
    assert_int_equal(r->in.joint_sample, 0);
    assert_true(r->in.room);
    assert_int_equal(r->margin_ns, 0);
    assert_int_equal(r->mode, LADDER_INIT);
    for (int i = 0; i < R_JOINTS; i++) {
        assert_true(isnan(r->joint[i].target) && isnan(r->joint[i].target_vel));
        assert_true(r->joint[i].commanded == 0 && r->joint[i].wanted == 0);
    }
    rig_end(&rig);
}

// ---- once ------------------------------------------------------------------------------------

// The clock is asked in the middle of a tick, when the command is made: everything on the board is
// another then.
static ns_t restless_clock(void)
{
    struct board *b = &rig.board;
    struct joint_sample j = s.joints;

    j.number += 100;
    j.pos[0] += 1;
    slot_write(&b->joints, &j);
    atomic_store(&b->joint_mark.refused_in_a_row, 1000);
    atomic_store(&b->joint_mark.slow, true);
    for (int i = 0; i < R_CAMERAS; i++) {
        atomic_store(&b->camera[i].received_ns, 1);
        atomic_store(&b->camera[i].corrupt_in_a_row, 1000);
        atomic_store(&b->camera[i].same_in_a_row, 1000);
        atomic_store(&b->camera[i].slow, true);
    }
    atomic_store(&b->requests, BOARD_ESTOP);
    atomic_store(&b->stalls, 1000);
    atomic_store(&b->policy_failures, 1000);
    atomic_store(&b->starved, BOARD_SKEW);
    atomic_store(&b->started, false);
    return rig_clock();
}

static void later_is_the_next_ones(void **state)
{
    (void)state;
    struct tick_record calm;
    struct rig *r = &rig;
    struct blackbox *box;
    struct blackbox_record *last;
    ns_t camera_age;

    start();
    assert_int_equal(blackbox_new(&box, R_JOINTS, R_CAMERAS, 200), 0);
    r->loop->cfg.blackbox = box;
    last = malloc(blackbox_record_bytes(box));
    assert_non_null(last);
    s.camera[1].received_ns = s.now - 4000000;
    s.tick++;
    s.now += R_PERIOD;
    put_marks(&r->board, &s);
    clock_of = &s;
    clock_loop = r->loop;
    size_t n;
    camera_age = s.now - s.camera[1].received_ns;
    loop_tick(r->loop, s.tick, s.now, s.lateness, restless_clock);
    calm = *rig_record(r, &n);
    assert_int_equal(calm.mode, LADDER_RUNNING);
    assert_int_equal(calm.in.joint_sample, s.joints.number);
    assert_int_equal(calm.in.camera[1].received_ns, s.camera[1].received_ns);
    assert_int_equal(calm.in.joints_refused_in_a_row, s.refused_in_a_row);
    assert_int_equal(calm.in.requests, 0);
    assert_int_equal(calm.in.stalls, s.stalls);
    assert_true(calm.in.started);
    assert_int_equal(loop_last(r->loop)->stalls, s.stalls);
    assert_true(blackbox_read(box, 0, last));
    assert_int_equal(last->camera_age_ns[1], camera_age);
    assert_int_equal(last->joint_number, s.joints.number);
    // Now it is its turn.
    s.tick++;
    s.now += R_PERIOD;
    ring_release(&r->board.commands);
    loop_tick(r->loop, s.tick, s.now, s.lateness, rig_clock);
    calm = *rig_record(r, &n);
    assert_int_equal(calm.mode, LADDER_ESTOP);
    assert_int_equal(calm.in.stalls, 1000);
    assert_false(calm.in.started);
    blackbox_free(box);
    free(last);
    rig_end(r);
}

// ---- the output ------------------------------------------------------------------------------

static void room_and_loss(void **state)
{
    (void)state;
    const struct tick_record *r;
    double before;
    uint64_t lost;

    start();
    s.taken = false; // the bus is held up
    r = turn();
    assert_false(r->in.room || r->published || rig.got);
    assert_int_equal(r->sequence, 0);
    assert_int_equal(r->in.made_ns, s.made); // one was made
    assert_int_equal(r->margin_ns, s.now - s.lateness + R_PERIOD - s.made);
    s.taken = true;
    r = turn();
    assert_true(r->in.room && r->published);

    // The next one is taken, and does not leave: the step after it is from the one before.
    before = r->joint[0].commanded;
    r = turn();
    s.lost = true;
    lost = rig.sequence;
    assert_int_equal(r->in.lost_command, rig.board.lost_command);
    r = turn();
    s.lost = false;
    assert_int_equal(r->in.lost_command, lost);
    assert_true(fabs(r->joint[0].commanded - before) <= 2 * 0.005 + 1e-9);
    r = turn();
    assert_int_equal(r->in.lost_command, lost);
    rig_end(&rig);
}

// ---- the time that a tick took ---------------------------------------------------------------

static void work_counts_in_the_next(void **state)
{
    (void)state;
    const struct budget *b;
    const struct tick_record *r;
    uint64_t samples, missed, slow;

    start();
    b = &rig.loop->budget[BOARD_TICK];
    s.worked = 1000;
    (void)turn();
    samples = b->samples;
    missed = b->missed;
    s.worked = NS_PER_S;
    r = turn();
    assert_int_equal(r->in.last_work_ns, 1000);
    assert_int_equal(b->samples, samples + 1);
    assert_int_equal(b->missed, missed); // not yet
    slow = s.tick;
    s.worked = 2000;
    r = turn();
    assert_int_equal(r->in.last_work_ns, NS_PER_S);
    assert_int_equal(b->missed, missed + 1);
    assert_int_equal(b->worst_ns, NS_PER_S);
    assert_int_equal(b->worst_tick, slow); // under the tick that it was
    assert_int_equal(hist_summary(&rig.board.tick_time).count, b->samples);

    loop_worked(rig.loop, 777); // a replay's
    r = turn();
    assert_int_equal(r->in.last_work_ns, 777);
    s.worked = -5; // a clock that went back
    (void)turn();
    r = turn();
    assert_int_equal(r->in.last_work_ns, 0);
    rig_end(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_has_its_place),
        cmocka_unit_test(the_outcome),
        cmocka_unit_test(nothing_yet),
        cmocka_unit_test(later_is_the_next_ones),
        cmocka_unit_test(room_and_loss),
        cmocka_unit_test(work_counts_in_the_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
