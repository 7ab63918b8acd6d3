// The loop under a clock the test owns: what it does in the course of things, tick for
// tick. test_loop_{streams,policy,arm,self}.c have what it does when something is wrong.
#include "tests/unit/loop_world.h"

// ---- tests ----------------------------------------------------------------------------

static void cold_start(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    w.joints_off = w.camera_off = w.policy_off = true;
    for (int i = 0; i < 10; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_INIT);
    assert_int_equal(reason(&w), REASON_JOINTS_MISSING);
    assert_int_equal(w.got, 0); // nothing is known: nothing is published
    w.joints_off = false;
    while (w.samples == 0)
        step(&w);
    assert_int_equal(w.last_got, 1);
    double first = w.last.pos[1];
    for (int i = 0; i < 100;
         i++) { // held, for a servo that droops would follow itself down
        w.stuck = true;
        w.measured[1] = first - 0.19 * i / 100;
        step(&w);
        assert_int_equal(w.last_got, 1);
        assert_true(w.last.vel[1] == 0 && w.last.first_joint == -1);
        assert_true(w.last.pos[1] == first);
    }
    for (int i = 0; i < 100; i++) { // every second sample is wrong: still held
        w.measured[1] = first - (i / 2 % 2 ? 0.5 : 0);
        step(&w);
        assert_true(w.last.pos[1] == first);
    }
    w.measured[1] = first - 0.5; // moved by hand: followed after 10 samples, in one step
    for (int i = 0; i < 25; i++) {
        step(&w);
        assert_true(w.last.pos[1] == first || w.last.pos[1] == first - 0.5);
        assert_true(w.last.vel[1] == 0);
    }
    assert_true(w.last.pos[1] == first - 0.5);
    w.stuck = false;
    w.joints_off =
        true; // a pose of long ago is not echoed: the arm may be elsewhere by now
    for (int i = 0; i < 30; i++)
        step(&w);
    assert_int_equal(w.last_got, 0);
    w.joints_off = false;
    step(&w);
    step(&w);
    assert_int_equal(w.last_got, 1);
    atomic_store(&w.board.started, true);
    step(&w);
    assert_int_equal(mode(&w), LADDER_WAITING);
    assert_int_equal(reason(&w), REASON_CAMERA_MISSING);
    request(&w, BOARD_ARM);
    step(&w);
    assert_int_equal(mode(&w), LADDER_WAITING);
    w.camera_off = false;
    while (atomic_load(&w.board.camera[0].received_ns) == 0)
        step(&w);
    // This tick was the first of 50 with everything fresh; an ARM before was not stored
    // up.
    for (int i = 1; i < 49; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_WAITING);
    assert_int_equal(reason(&w), REASON_STARTING);
    step(&w);
    assert_int_equal(mode(&w), LADDER_READY);
    for (int i = 0; i < 500; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_READY);
    world_end(&w);
}

static void approach_and_run(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    double before[JOINTS], fastest = 0;

    world_start(&w, &cfg);
    w.goal = 1.0;
    atomic_store(&w.board.started, true);
    until(&w, LADDER_READY, 200);
    memcpy(before, w.measured, sizeof before);
    request(&w, BOARD_ARM);
    step(&w);
    assert_int_equal(mode(&w), LADDER_APPROACH);
    for (int j = 0; j < JOINTS; j++) // the first command after arming starts at the pose
        assert_true(fabs(w.last.pos[j] - before[j]) <= 0.25 * 10 * 0.005 * 0.005 + 1e-12);
    while (mode(&w) == LADDER_APPROACH) {
        step(&w);
        if (mode(&w) == LADDER_APPROACH)
            for (int j = 0; j < JOINTS; j++)
                fastest = fmax(fastest, fabs(w.last.vel[j]));
        assert_true(w.tick < 3000);
    }
    assert_true(fastest <= 0.5 + 1e-9); // a quarter of 2 rad/s
    assert_int_equal(mode(&w), LADDER_RUNNING);
    assert_true(w.last.chunk_row == 0); // nothing executed yet: nothing skipped
    for (int i = 0; i < 1500; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_RUNNING);
    for (int j = 0; j < JOINTS; j++)
        assert_true(fabs(w.measured[j] - 1.0) < 0.01);
    assert_true(loop_last(w.loop)->seam_max_rad == 0); // crossfade
    assert_true(w.last.frame_age_ns > 0 && w.last.chunk_id > 0 &&
                w.last.ttl_ns == 20 * MS);
    assert_int_equal(w.last.margin_ns, TICK - 20 * NS_PER_US);
    world_end(&w);
}

static void replace_has_seams_and_a_number_for_them(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    cfg.chunks.mode = CHUNK_REPLACE;
    world_start(&w, &cfg);
    to_running(&w);
    for (int i = 0; i < 100; i++) {
        w.goal = i % 2 ? 1.0 : -1.0;
        step(&w);
    }
    assert_true(loop_last(w.loop)->seam_max_rad > 0.01);
    world_end(&w);
}

// Chunks early, late, out of order, too old, not finite: counted, and the arm goes on
// smoothly.
static void chunks_of_every_kind(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    cfg.chunks.max_age_ns = 500 * MS;
    world_start(&w, &cfg);
    to_running(&w);
    w.policy_off = true;
    uint64_t used = loop_last(w.loop)->verdict[CHUNK_USED];
    for (int i = 0; i < 400; i++) {
        if (i % 10 == 0)
            send_chunk(&w, w.now - (i % 50) * MS); // sometimes older than the one before
        if (i % 40 == 5)
            send_chunk(&w, w.now - 600 * MS);
        step(&w);
        assert_int_equal(mode(&w), LADDER_RUNNING);
    }
    const struct loop_report *r = loop_last(w.loop);
    assert_true(r->verdict[CHUNK_USED] > used + 20);
    assert_true(r->verdict[CHUNK_OUT_OF_ORDER] >= 10);
    assert_int_equal(r->chunks_seen, r->verdict[0] + r->verdict[1] + r->verdict[2] +
                                         r->verdict[3] + r->verdict[4] + r->verdict[5]);
    // One chunk with a NaN is refused and the running one goes on; the second in a row
    // stops.
    for (int k = 0; k < 2; k++) {
        struct chunk *c = ring_reserve(&w.board.chunks);

        memset(c, 0, chunk_bytes(ROWS, JOINTS));
        c->id = ++w.chunk_id;
        c->anchor_ns = w.now;
        c->rows = ROWS;
        c->joints = JOINTS;
        c->row[7] = NAN;
        ring_commit(&w.board.chunks);
        step(&w);
        assert_int_equal(mode(&w), k == 0 ? LADDER_RUNNING : LADDER_STOPPING);
    }
    assert_int_equal(reason(&w), REASON_NOT_FINITE);
    assert_int_equal(r->verdict[CHUNK_NOT_FINITE], 2);
    world_end(&w);
}

static void disarm_and_rearm(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    struct command at_rest;
    double bound = fmax(0.1, cfg.following_error[0]);

    world_start(&w, &cfg);
    w.goal = 1.8;
    to_running(&w);
    for (int i = 0; i < 60; i++)
        step(&w);
    double speed =
        fmax(fabs(w.last.vel[0]), fmax(fabs(w.last.vel[1]), fabs(w.last.vel[2])));
    assert_true(speed > 0.1);
    request(&w, BOARD_DISARM);
    step(&w);
    assert_int_equal(mode(&w), LADDER_DISARMING);
    assert_int_equal(reason(&w), REASON_OPERATOR);
    int took = until(&w, LADDER_READY, 100);
    assert_true(took <= 2 + (int)(speed / 10 / 0.005)); // at 10 rad/s²
    at_rest = w.last;
    w.stuck = true; // it sags a little; the idle pose stays what was last commanded
    w.measured[0] -= bound - 0.01;
    for (int i = 0; i < 100; i++) {
        step(&w);
        assert_memory_equal(w.last.pos, at_rest.pos, sizeof at_rest.pos);
        assert_true(w.last.vel[0] == 0);
    }
    request(&w, BOARD_ARM); // and arming goes on from there, without a step
    step(&w);
    assert_int_equal(mode(&w), LADDER_APPROACH);
    for (int j = 0; j < 3; j++)
        assert_true(fabs(w.last.pos[j] - at_rest.pos[j]) <=
                    cfg.limits.acceleration[j] * 0.005 * 0.005 + 1e-12);
    world_end(&w);
}

// A disarmed arm with its torque off is carried somewhere else: when the torque comes back it must
// not be driven to where it was.
static void moved_by_hand_once_armed(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    double bound = fmax(0.1, cfg.following_error[0]), before;

    world_start(&w, &cfg);
    to_running(&w);
    request(&w, BOARD_DISARM);
    until(&w, LADDER_READY, 100);
    w.stuck = true;
    before = w.last.pos[0];
    w.measured[0] = before + bound + 0.2;
    for (int i = 0; i < 30; i++) // it comes back by itself: it was late, no more
        step(&w), w.measured[0] -= 0.01;
    assert_true(w.last.pos[0] == before);
    w.measured[0] = before + bound + 0.05;
    for (int i = 0; i < 60; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_READY);
    assert_true(fabs(w.last.pos[0] - w.measured[0]) < 1e-9 && w.last.vel[0] == 0);
    request(&w, BOARD_ARM);
    step(&w);
    assert_int_equal(mode(&w), LADDER_APPROACH);
    assert_true(fabs(w.last.pos[0] - w.measured[0]) < 1e-3);
    world_end(&w);
}

static void requests_and_latches(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    request(&w, BOARD_STOP);
    step(&w);
    assert_int_equal(mode(&w), LADDER_STOPPING);
    until(&w, LADDER_STOPPED, 100);
    request(&w, BOARD_ARM);
    step(&w);
    assert_int_equal(mode(&w), LADDER_STOPPED);
    request(&w, BOARD_RESET);
    step(&w);
    to_running(&w);
    request(&w, BOARD_ESTOP | BOARD_ARM | BOARD_RESET);
    step(&w);
    assert_int_equal(mode(&w), LADDER_ESTOP);
    assert_int_equal(reason(&w), REASON_ESTOP);
    for (int i = 0; i < 200; i++)
        step(&w);
    assert_int_equal(mode(&w), LADDER_ESTOP);
    assert_true(w.last.vel[0] == 0 && w.last_got == 1); // still published, at rest
    request(&w, BOARD_RESET);
    step(&w);
    assert_int_equal(mode(&w), LADDER_WAITING);
    world_end(&w);
}

// What the policy wants lies far away and out of the limits: the limits hold, and say so.
static void limits_are_named(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    w.policy_off = true;
    for (int i = 0; i < 300; i++) {
        if (i % 20 == 0) {
            double m = w.measured[0];

            w.measured[0] = 4; // what the policy believes
            w.goal = 4;
            send_chunk(&w, w.now);
            w.measured[0] = m;
        }
        step(&w);
    }
    assert_true(w.last.pos[0] <= 2 && w.last.pos[0] > 1.99);
    assert_int_equal(w.last.limit[0], GUARD_POSITION);
    assert_int_equal(w.last.first_joint, 0);
    assert_true(w.last.wanted[0] > 3.9);
    assert_true(loop_last(w.loop)->limited[0][GUARD_VELOCITY] > 0);
    world_end(&w);
}

static void approach_gives_up(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    w.policy_off = true;
    atomic_store(&w.board.started, true);
    until(&w, LADDER_READY, 200);
    request(&w, BOARD_ARM);
    step(&w);
    for (int i = 0; i < 5990; i++) {
        step(&w);
        assert_int_equal(mode(&w), LADDER_APPROACH);
        assert_int_equal(reason(&w), REASON_NO_CHUNK);
        assert_true(w.last.vel[0] == 0);
    }
    until(&w, LADDER_READY, 30);
    world_end(&w);
}

// A bus that does not take its commands gets one, and the others are never made: when it comes
// back the next step is from that one.
static void full_ring(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();

    world_start(&w, &cfg);
    to_running(&w);
    for (int i = 0; i < 100; i++) {
        w.now += TICK;
        send_joints(&w);
        send_frame(&w);
        virtual_now = w.now;
        loop_tick(w.loop, w.tick++, w.now, 0, virtual_clock);
    }
    assert_int_equal(loop_last(w.loop)->commands_dropped, 99);
    step(&w); // checks the steps between what it takes
    assert_int_equal(w.last_got, 1);
    step(&w);
    assert_int_equal(w.last_got, 1);
    world_end(&w);
}

// A command that was taken and did not leave was never made.
static void lost_command(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    double before[JOINTS], lost;

    world_start(&w, &cfg);
    w.goal = 1.5;
    to_running(&w);
    for (int i = 0; i < 20; i++)
        step(&w);
    memcpy(before, w.last.pos, sizeof before);
    step(&w);
    lost = w.last.pos[0];
    assert_true(lost != before[0]);
    atomic_store(&w.board.lost_command, w.last.sequence);
    w.fuzzy = true;
    step(&w);
    assert_true(fabs(w.last.pos[0] - before[0]) <= 2 * 0.005 + 1e-9);
    assert_true(fabs(w.last.pos[0] - lost) < fabs(w.last.pos[0] - before[0]));
    world_end(&w);
}

// Random faults on everything; published commands checked by differences alone.
static void random_faults(void **state)
{
    (void)state;
    uint32_t seed = 7;
    long visited[LADDER_STATES] = {0};

    for (int round = 0; round < 40; round++) {
        struct world w;
        struct loop_config cfg = default_config();
        double p[JOINTS] = {0}, v[JOINTS] = {0};
        int known = 0;
        bool ever = false; // armed

        cfg.chunks.mode = (enum chunk_mode)(round % 7);
        cfg.has_home = true;
        for (int j = 0; j < JOINTS; j++)
            cfg.limits.jerk[j] = round % 3 == 0 ? 200 : 0;
        world_start(&w, &cfg);
        atomic_store(&w.board.started, true);
        w.fuzzy = true;
        for (int i = 0; i < 5000; i++) {
            enum ladder_state before = mode(&w);
            uint64_t got = w.got;

            seed = seed * 1664525u + 1013904223u;
            uint32_t dice = seed >> 16;
            if (dice % 211 == 0)
                w.joints_off = !w.joints_off && dice % 2;
            if (dice % 307 == 0)
                w.camera_off = !w.camera_off && dice % 2;
            if (dice % 401 == 0)
                w.policy_off = !w.policy_off && dice % 2;
            if (dice % 29 == 0)
                w.goal = (double)(dice % 600) / 100 - 3;
            if (dice % 997 == 0)
                w.measured[dice % JOINTS] += 0.3;
            if (dice % 53 == 0)
                request(&w, BOARD_ARM);
            if (dice % 31 == 0)
                request(&w, BOARD_RESET);
            if (dice % 1009 == 0)
                request(&w, 1u << (dice % 6));
            if (dice % 89 == 0)
                request(&w, BOARD_HOME);
            step_skip(&w, dice % 499 == 0 ? dice % 30 : 0);
            visited[mode(&w)]++;
            if (w.got == got) {
                known = 0; // nothing was published: the next one starts anew
                continue;
            }
            bool idle = mode(&w) == LADDER_WAITING || mode(&w) == LADDER_READY ||
                        mode(&w) == LADDER_INIT || !ever;
            bool armed = before == LADDER_READY && mode(&w) == LADDER_APPROACH;
            ever |= armed;
            for (int j = 0; j < JOINTS; j++) {
                double vel = (w.last.pos[j] - p[j]) / 0.005;

                if (known && !idle && !armed) {
                    assert_true(fabs(vel) <= 2 + 1e-6);
                    assert_true(fabs(vel - v[j]) / 0.005 <= 20 + 1e-6);
                    if (mode(&w) == LADDER_RUNNING || mode(&w) == LADDER_HOLD)
                        assert_true(fabs(vel - v[j]) / 0.005 <= 10 + 1e-6);
                }
                p[j] = w.last.pos[j];
                v[j] = idle || armed ? w.last.vel[j] : vel;
            }
            known = 1;
        }
        world_end(&w);
    }
    for (int s = LADDER_WAITING; s < LADDER_STATES; s++)
        assert_true(visited[s] > 0);
}

// All of the above ran with allocations counted around every tick.
static void nothing_was_allocated(void **state)
{
    (void)state;
    assert_int_equal(allocations, 0);
    if (!COUNTS_ALLOCATIONS)
        return;
    counting = true; // and the counter does count
    void *volatile p = malloc(1);
    free(p);
    counting = false;
    assert_int_equal(allocations, 2);
}

static void refuses_bad_settings(void **state)
{
    (void)state;
    struct loop_config cfg = default_config();
    struct board b;
    struct loop *l;

    assert_int_equal(board_init(&b, 17, 4, 3), -EINVAL);
    assert_int_equal(board_init(&b, 1, 4, 3), 0);
    cfg.limits.velocity[1] = 0;
    assert_int_equal(loop_new(&l, &cfg, &b), -EINVAL);
    cfg = default_config();
    cfg.limits.max[2] = NAN;
    assert_int_equal(loop_new(&l, &cfg, &b), -EINVAL);
    cfg = default_config();
    cfg.chunks.capacity = 0;
    assert_int_equal(loop_new(&l, &cfg, &b), -EINVAL);
    board_free(&b);
}

// The real thread, one second of it: accounting exact, commands in order, clean end.
static void thread(void **state)
{
    (void)state;
    struct world w;
    struct loop_config cfg = default_config();
    struct loop_thread_config tc = {.priority = 50, .cpu = -1};
    struct loop_thread *t;
    char granted[64] = "";
    uint64_t n = 0, last = 0;
    struct command c;

    world_start(&w, &cfg);
    w.now = clock_now_ns();
    send_joints(&w);
    assert_int_equal(loop_thread_start(&t, w.loop, &tc, granted), 0);
    printf("granted: %s\n", granted);
    assert_true(strncmp(granted, "SCHED_", 6) == 0);
    for (int i = 0; i < 20; i++) {
        usleep(20000);
        while (ring_pop(&w.board.commands, &c)) {
            assert_true(c.sequence == last + 1 && c.margin_ns < TICK);
            last = c.sequence;
            n++;
        }
    }
    loop_thread_stop(t);
    const struct loop_report *r = loop_last(w.loop);
    assert_true(n > 0);
    assert_int_equal(r->ticks_run + r->skipped, r->tick + 1);
    assert_int_equal(hist_summary(&w.board.lateness).count, r->ticks_run);
    uint64_t wakes;
    assert_int_equal(read(w.board.command_fd, &wakes, sizeof wakes), sizeof wakes);
    assert_int_equal(wakes, r->commands);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cold_start),
        cmocka_unit_test(approach_and_run),
        cmocka_unit_test(replace_has_seams_and_a_number_for_them),
        cmocka_unit_test(chunks_of_every_kind),
        cmocka_unit_test(disarm_and_rearm),
        cmocka_unit_test(moved_by_hand_once_armed),
        cmocka_unit_test(requests_and_latches),
        cmocka_unit_test(limits_are_named),
        cmocka_unit_test(approach_gives_up),
        cmocka_unit_test(full_ring),
        cmocka_unit_test(lost_command),
        cmocka_unit_test(random_faults),
        cmocka_unit_test(nothing_was_allocated),
        cmocka_unit_test(refuses_bad_settings),
        cmocka_unit_test(thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
