// What a status says of a board filled by hand, and what the log says of it. What is as of the
// newest tick is in test_status_live.c.
#include "tests/unit/status_rig.h"

// ---- the tests -------------------------------------------------------------------------------

static void says_who_and_how(void **state)
{
    struct rig *r = *state;
    r->report.mode = LADDER_HOLD;
    r->report.reason = REASON_JOINTS_STALE;
    r->report.degraded = true;
    r->report.ticks_run = 1234;
    r->report.skipped = 5;
    r->report.commands = 1200;
    r->report.verdict[CHUNK_USED] = 77;
    r->report.seam_max_rad = 0.125;
    has(publish(r), "HOLD (JOINTS_STALE) degraded | commands ");
    const Actd__V1__Status *m = r->got;
    assert_string_equal(m->instance, "left");
    assert_string_equal(m->policy, "/p/reach");
    assert_string_equal(m->scheduling, "SCHED_FIFO 50");
    assert_true(m->version[0] != '\0');
    assert_int_equal(m->mode, ACTD__V1__MODE__MODE_HOLD);
    assert_int_equal(m->reason, ACTD__V1__REASON__REASON_JOINTS_STALE);
    assert_true(m->degraded && m->memory_locked);
    assert_int_equal(m->ticks, 1234);
    assert_int_equal(m->skipped_ticks, 5);
    assert_int_equal(m->commands, 1200);
    assert_int_equal(m->chunks_used, 77);
    assert_true(m->seam_max_rad == 0.125 && m->control_hz == 100);
    assert_int_equal(m->n_drops + m->n_limited, 0);
    ns_t stamp = m->timestamp->seconds * NS_PER_S + m->timestamp->nanos;
    assert_in_range(clock_wall_ns() - stamp, 0, 10 * NS_PER_S);
    r->report.mode = LADDER_READY;
    r->report.reason = REASON_NONE;
    r->report.degraded = false;
    has(publish(r), "READY | commands ");
    assert_int_equal(r->got->mode, ACTD__V1__MODE__MODE_READY);
    assert_false(r->got->degraded);
}

// Ticks without a command are no achievement.
static void achieved_is_of_commands(void **state)
{
    struct rig *r = *state;
    r->report.ticks_run = 100;
    nap(PERIOD);
    has(publish(r), "| commands 0.0 of 100 Hz, late");
    assert_true(r->got->achieved_hz == 0);
    ns_t begin = clock_now_ns();
    r->report.ticks_run = 1000;
    r->report.commands = 40;
    of_infer.done = 12;
    nap(PERIOD);
    publish(r);
    double seconds = (double)(clock_now_ns() - begin) / 1e9;
    NEAR(r->got->achieved_hz * seconds, 40, 4);
    NEAR(r->got->inference_hz * seconds, 12, 1.2);
    nap(PERIOD / 4);
    publish(r);
    assert_true(r->got->achieved_hz == 0 && r->got->inference_hz == 0);
}

static void names_drops_with_their_reasons(void **state)
{
    struct rig *r = *state;
    r->board.joint_mark.refused = 3;
    r->board.joint_mark.duplicate = 4;
    snprintf(of_bus.joints_refusal_text, CODEC_WHY_MAX, "joint turn is missing");
    of_bus.send_failed = 15;
    r->board.camera[0].refused = 5;
    snprintf(r->camera[0].why, CODEC_WHY_MAX, "no width");
    r->board.camera[1].corrupt = 6;
    r->board.camera[1].duplicate = 7;
    r->board.joint_mark.out_of_order = 19;
    r->board.joint_mark.clock_jumps = 20;
    r->board.camera[0].out_of_order = 21;
    r->board.camera[1].clock_jumps = 22;
    of_bus.superseded = 23;
    of_bus.expired = 24;
    of_bus.cut = 25;
    of_infer.no_frame = 8;
    of_infer.skew = 9;
    of_infer.no_joints = 10;
    of_infer.failed = 11;
    of_infer.ring_full = 12;
    snprintf(infer_why, sizeof infer_why, "the state is not finite");
    r->report.refused_vectors = 13;
    r->report.gate_refusals = 14;
    r->report.commands_dropped = 16;
    r->report.verdict[CHUNK_USED] = 1000;
    r->report.verdict[CHUNK_LATE] = 17;
    r->report.verdict[CHUNK_NOT_FINITE] = 18;
    const struct {
        const char *name;
        uint64_t value;
    } all[] = {{"joint states refused (joint turn is missing)", 3},
               {"joint states duplicate", 4},
               {"front frames refused (no width)", 5},
               {"wrist frames corrupt", 6},
               {"wrist frames duplicate", 7},
               {"inference without frame", 8},
               {"inference cameras too far apart", 9},
               {"inference without joint state", 10},
               {"inference failed (the state is not finite)", 11},
               {"chunk ring full", 12},
               {"targets refused", 13},
               {"commands refused by the gate", 14},
               {"commands not sent", 15},
               {"commands dropped", 16},
               {"joint states out of order", 19},
               {"joint states 50 ms late, or the sender's clock moved", 20},
               {"front frames out of order", 21},
               {"wrist frames 50 ms late, or the sender's clock moved", 22},
               {"commands superseded", 23},
               {"commands too old to send", 24},
               {"commands cut off by the monitor", 25},
               {"chunk late", 17},
               {"chunk not finite", 18}};
    const int n = sizeof all / sizeof *all;
    const char *text = publish(r);
    uint64_t sum = 0;
    char part[128];
    for (int i = 0; i < n; i++) {
        if (dropped(r, all[i].name) != all[i].value)
            fail_msg("%s: %llu", all[i].name,
                     (unsigned long long)dropped(r, all[i].name));
        snprintf(part, sizeof part, "%s +%llu", all[i].name,
                 (unsigned long long)all[i].value);
        has(text, part);
        sum += all[i].value;
    }
    assert_int_equal(r->got->n_drops, n);
    snprintf(part, sizeof part, "dropped %llu |", (unsigned long long)sum);
    has(text, part);
}

// What was newly dropped, also when the reason in the name is another than before.
static void warns_of_what_is_new(void **state)
{
    struct rig *r = *state;
    r->board.joint_mark.refused = 100;
    snprintf(of_bus.joints_refusal_text, CODEC_WHY_MAX, "of two parts");
    has(publish(r), "warning: dropped: joint states refused (of two parts) +100\n");
    has_not(publish(r), "dropped:");
    r->board.joint_mark.refused = 102;
    r->board.camera[0].corrupt = 1;
    snprintf(of_bus.joints_refusal_text, CODEC_WHY_MAX, "too long");
    has(publish(r), "warning: dropped: joint states refused (too long) +2, "
                    "front frames corrupt +1\n");
    assert_int_equal(dropped(r, "joint states refused (too long)"), 102);
    r->board.camera[0].corrupt = 2;
    has(publish(r), "warning: dropped: front frames corrupt +1\n");
}

static void superseded_is_normal(void **state)
{
    struct rig *r = *state;
    r->camera[1].superseded = 9;
    const char *text = publish(r);
    assert_int_equal(r->got->n_drops, 1);
    assert_int_equal(dropped(r, "wrist frames superseded"), 9);
    has(text, "dropped 0 |");
    has_not(text, "dropped:");
    r->board.camera[1].duplicate = 2;
    has(publish(r), "warning: dropped: wrist frames duplicate +2\n");
}

static void counts_limits_by_joint(void **state)
{
    struct rig *r = *state;
    r->report.limited[0][GUARD_NONE] = 999; // not a limit
    r->report.limited[0][GUARD_POSITION] = 1;
    r->report.limited[0][GUARD_JERK] = 2;
    r->report.limited[1][GUARD_VELOCITY] = 30;
    r->report.limited[1][GUARD_ACCELERATION] = 40;
    r->report.limited[2][GUARD_VELOCITY] = 999; // not a joint
    has(publish(r), "limited 73, dropped 0 |");
    assert_int_equal(r->got->n_limited, 4);
    assert_int_equal(limited(r, "lift:position"), 1);
    assert_int_equal(limited(r, "lift:jerk"), 2);
    assert_int_equal(limited(r, "turn:velocity"), 30);
    assert_int_equal(limited(r, "turn:acceleration"), 40);
}

static void loses_no_counter(void **state)
{
    struct rig *r = *state;
    char name[CONFIG_NAME + 32];
    everything_wrong(r);
    publish(r);
    assert_int_equal(r->got->n_limited, JOINTS * (GUARD_LIMITS - 1));
    assert_int_equal(r->got->n_drops, CHUNK_VERDICTS - 1 + 2 + 4 * CAMERAS + 5 + 4);
    assert_int_equal(r->got->n_streams, 1 + CAMERAS);
    snprintf(name, sizeof name, "%s:jerk", r->cfg.joint[JOINTS - 1].name);
    assert_int_equal(limited(r, name), UINT64_MAX / 1000);
    assert_int_equal(dropped(r, "commands not sent"), UINT64_MAX);
    for (int c = 0; c < CAMERAS; c++) { // with the whole reason
        char whole[512];
        snprintf(whole, sizeof whole, "%s frames refused (%s)", r->cfg.camera[c].name,
                 r->camera[c].why);
        assert_int_equal(dropped(r, whole), UINT64_MAX);
    }
    print_message("the longest message has %d bytes\n", r->size);
    r->report.limited[0][GUARD_JERK]++;
    publish(r); // and again
    assert_int_equal(r->got->n_limited, JOINTS * (GUARD_LIMITS - 1));
}

static const Actd__V1__Stream *stream(const struct rig *r, size_t i, const char *name)
{
    assert_true(i < r->got->n_streams);
    assert_string_equal(r->got->streams[i]->name, name);
    return r->got->streams[i];
}

// Each camera its own, and the joints have none.
static void tells_what_was_seen(void **state)
{
    struct rig *r = *state;
    of_infer.seen[0].early = 11;
    of_infer.seen[0].kept = 12;
    of_infer.seen[0].computed = 13;
    of_infer.seen[1].computed = 36;
    publish(r);
    const Actd__V1__Stream *joints = stream(r, 0, "joints"),
                           *front = stream(r, 1, "front"), *wrist = stream(r, 2, "wrist");
    assert_true(joints->seen_early == 0 && joints->seen_kept == 0 &&
                joints->seen_computed == 0);
    assert_true(front->seen_early == 11 && front->seen_kept == 12 &&
                front->seen_computed == 13);
    assert_true(wrist->seen_early == 0 && wrist->seen_computed == 36);
}

static void tells_each_stream(void **state)
{
    struct rig *r = *state;
    double hz[POLICY_MAX_CAMERAS + 1] = {0};
    has(publish(r), "age ms joints - front - wrist - |");
    assert_false(stream(r, 0, "joints")->fresh || stream(r, 1, "front")->fresh);
    assert_int_equal(stream(r, 2, "wrist")->age_ns, 0);
    nap(PERIOD);
    ns_t now = clock_now_ns();
    const struct joint_sample j = {.number = 1, .capture_ns = now};
    slot_write(&r->board.joints, &j);
    r->board.joint_mark.received = 20;
    r->board.camera[0].received = 8;
    r->board.camera[0].capture_ns = now - 1500 * NS_PER_MS; // 3 periods are 100 ms
    r->board.camera[1].received = 4;
    r->board.camera[1].capture_ns = now + 3600 * NS_PER_S; // a clock ahead
    has(publish(r), " wrist 0 |");
    const Actd__V1__Stream *joints = stream(r, 0, "joints");
    double seconds = 20 / joints->achieved_hz;
    assert_true(seconds > 0.39 && seconds < 30 && joints->asked_hz == 50);
    assert_true(joints->received == 20 && joints->age_ns < 30 * (uint64_t)NS_PER_S);
    const Actd__V1__Stream *front = stream(r, 1, "front"), *wrist = stream(r, 2, "wrist");
    NEAR(front->achieved_hz * seconds, 8, 1e-6);
    NEAR(wrist->achieved_hz * seconds, 4, 1e-6);
    assert_true(front->asked_hz == 30 && wrist->asked_hz == 20);
    assert_in_range(front->age_ns, 1500 * NS_PER_MS, 30 * NS_PER_S);
    assert_false(front->fresh);
    assert_int_equal(wrist->age_ns, 0);
    status_received_hz(r->status, hz); // they began somewhere within it: no rate to judge
    assert_true(hz[0] == 0 && hz[1] == 0 && hz[2] == 0 && hz[3] == 0);
    r->board.joint_mark.received = 20;
    r->board.camera[0].received = 9;
    publish(r);
    status_received_hz(r->status, hz);
    assert_true(hz[0] == 0 && stream(r, 1, "front")->achieved_hz > 0 &&
                hz[1] == stream(r, 1, "front")->achieved_hz && hz[2] == 0);
    r->board.camera[0].received = r->board.joint_mark.received = 30;
    publish(r);
    status_received_hz(r->status, hz); // joints were away for a second: not judged either
    assert_true(stream(r, 0, "joints")->achieved_hz > 0 && hz[0] == 0 && hz[1] > 0);
    publish(r); // nothing more came
    assert_true(stream(r, 0, "joints")->achieved_hz == 0);
    assert_int_equal(stream(r, 0, "joints")->received, 30);
}

static void fresh_is_three_periods(void **state)
{
    struct rig *r = *state;
    r->cfg.camera[0].rate_hz = r->cfg.camera[1].rate_hz = 0.1; // 30 s
    r->board.camera[0].received = r->board.camera[1].received = 1;
    ns_t now = clock_now_ns();
    r->board.camera[0].capture_ns = now - 20 * NS_PER_S;
    r->board.camera[1].capture_ns = now - 30 * NS_PER_S;
    publish(r);
    assert_true(stream(r, 1, "front")->fresh);
    assert_false(stream(r, 2, "wrist")->fresh);
}

static void within(uint64_t got, ns_t true_ns) // buckets are 1/16 wide, told by their top
{
    assert_in_range(got, true_ns, true_ns + true_ns / 16 + 1);
}

static void tells_histograms(void **state)
{
    struct rig *r = *state;
    for (int i = 0; i < 98; i++)
        hist_add(&r->board.lateness, 10000);
    hist_add(&r->board.lateness, 500000);
    hist_add(&r->board.lateness, 900000);
    hist_add(&r->board.tick_time, 70000);
    hist_add(&r->board.inference, 20 * NS_PER_MS);
    hist_add(&r->board.chunk_latency, 33 * NS_PER_MS);
    has(publish(r), "late p50 10 p99 ");
    const Actd__V1__Status *m = r->got;
    assert_int_equal(m->lateness->count, 100);
    within(m->lateness->p50_ns, 10000);
    within(m->lateness->p99_ns, 500000);
    assert_int_equal(m->lateness->max_ns, 900000);
    assert_int_equal(m->second_lateness->count, 100);
    assert_int_equal(m->tick_time->count, 1);
    within(m->tick_time->max_ns, 70000);
    within(m->inference->p50_ns, 20 * NS_PER_MS);
    within(m->chunk_latency->p50_ns, 33 * NS_PER_MS);
    hist_add(&r->board.lateness, 2000);
    hist_add(&r->board.inference, 5 * NS_PER_MS);
    hist_add(&r->board.inference, 5 * NS_PER_MS);
    has(publish(r), "inference p50 5.");
    m = r->got; // the last second forgets, the run does not
    assert_int_equal(m->lateness->count, 101);
    assert_int_equal(m->lateness->max_ns, 900000);
    assert_int_equal(m->second_lateness->count, 1);
    within(m->second_lateness->p50_ns, 2000);
    within(m->second_lateness->max_ns, 2000);
    assert_int_equal(m->inference->count, 3);
    assert_int_equal(m->second_inference->count, 2);
    within(m->second_inference->p99_ns, 5 * NS_PER_MS);
    publish(r);
    assert_int_equal(r->got->second_lateness->count, 0);
    assert_int_equal(r->got->second_lateness->max_ns, 0);
}

static void sums_up_at_the_end(void **state)
{
    struct rig *r = *state;
    r->report.ticks_run = 500;
    r->report.skipped = 3;
    r->report.verdict[CHUNK_USED] = 42;
    r->report.seam_max_rad = 0.0123;
    r->report.limited[1][GUARD_VELOCITY] = 30;
    r->board.camera[0].corrupt = 6;
    hist_add(&r->board.inference, 20 * NS_PER_MS);
    slot_write(&r->board.report, &r->report);
    const char *text = said(r, status_summary);
    has(text, "ran 500 ticks, skipped 3;");
    has(text, "inferences 1,");
    has(text, "chunks used 42; largest seam 0.0123 rad; limits acted 30 times\n");
    has(text, "  limited turn:velocity: 30 ticks\n");
    has(text, "  dropped front frames corrupt: 6\n");
}

static void lives_without_report_or_publisher(void **state)
{
    struct rig *r = *state;
    const struct status_source src = {.cfg = &r->cfg,
                                      .board = &r->board,
                                      .cameras = r->cameras,
                                      .scheduling = "SCHED_OTHER"};
    struct status *with = r->status;
    assert_int_equal(status_new(&r->status, &src), 0);
    has(said(r, status_publish), "| commands 0.0 of 100 Hz");
    status_free(r->status);
    r->status = with;
}

// What there is of faults, budgets and seams goes out as it is; faults that never came are left
// out, and a new episode is said once.
static void tells_faults_budgets_and_seams(void **state)
{
    struct rig *r = *state;
    struct faults *f = &r->report.faults;

    f->active = UINT64_C(1) << REASON_JOINTS_STALE;
    f->latched = UINT64_C(1) << REASON_OPERATOR | f->active;
    f->of[REASON_JOINTS_STALE] = (struct fault_count){2, 30, 100, 129};
    f->of[REASON_CAMERA_SLOW] = (struct fault_count){1, 5, 7, 11};
    r->report.budget[BOARD_CHUNK] = (struct budget_report){.limit_ns = 100,
                                                           .worst_ns = 300,
                                                           .samples = 50,
                                                           .missed = 4,
                                                           .worst_tick = 77,
                                                           .in_window = 3,
                                                           .consecutive_max = 2,
                                                           .over = true};
    r->report.seam[1] = (struct seam_report){0.25, 1.5, 42};
    r->report.stalls = 6;
    const char *text = publish(r);
    has(text, "faults: JOINTS_STALE x2, CAMERA_SLOW x1");
    const Actd__V1__Status *m = r->got;
    assert_int_equal(m->n_faults, 3);
    assert_int_equal(m->faults[0]->reason, REASON_JOINTS_STALE);
    assert_true(m->faults[0]->active && m->faults[0]->latched);
    assert_int_equal(m->faults[0]->episodes, 2);
    assert_int_equal(m->faults[0]->ticks, 30);
    assert_int_equal(m->faults[0]->first_tick, 100);
    assert_int_equal(m->faults[0]->last_tick, 129);
    assert_int_equal(m->faults[1]->reason, REASON_OPERATOR); // latched, no condition
    assert_true(!m->faults[1]->active && m->faults[1]->latched);
    assert_int_equal(m->faults[2]->reason, REASON_CAMERA_SLOW);
    assert_int_equal(m->n_budgets, BOARD_BUDGETS);
    const Actd__V1__Budget *b = m->budgets[BOARD_CHUNK];
    assert_string_equal(b->name, "chunk_latency");
    assert_true(b->limit_ns == 100 && b->worst_ns == 300 && b->samples == 50 &&
                b->missed == 4 && b->worst_tick == 77 && b->missed_in_window == 3 &&
                b->consecutive_max == 2 && b->over);
    assert_false(m->budgets[BOARD_TICK]->over);
    assert_int_equal(m->n_seams, r->cfg.n_joints);
    assert_true(m->seams[1]->max_rad == 0.25 && m->seams[1]->max_rad_s == 1.5 &&
                m->seams[1]->tick == 42);
    assert_int_equal(m->stalls, 6);
    assert_null(strstr(publish(r), "faults:"));
    f->of[REASON_CAMERA_SLOW].episodes++;
    has(publish(r), "faults: CAMERA_SLOW x1");
}

static void tells_of_the_recording(void **state)
{
    struct rig *r = *state;
    publish(r);
    assert_non_null(r->got->record);
    assert_int_equal(r->got->record->mode, ACTD__V1__RECORD_STATUS__MODE__OFF);
    assert_false(r->got->record->recording);
    of_recorder = (struct recorder_counts){.mode = RECORDER_TRIGGER,
                                           .recording = true,
                                           .healthy = true,
                                           .files = 3,
                                           .messages = 4,
                                           .bytes = 5,
                                           .lost = {6, 7, 8, 9, 10},
                                           .lost_messages = 11,
                                           .removed = 12,
                                           .held_bytes = 13,
                                           .slowest_write_ns = 14,
                                           .cpu_ns = 15,
                                           .file = "/r/a.mcap",
                                           .last_error = "no room; make some"};
    publish(r);
    const Actd__V1__RecordStatus *m = r->got->record;
    static const char *const name[] = {"frames", "events", "chunks",
                                       "bus",    "ticks",  "unwritten"};
    assert_int_equal(m->mode, ACTD__V1__RECORD_STATUS__MODE__TRIGGER);
    assert_true(m->recording && m->healthy && m->files == 3 && m->messages == 4 &&
                m->bytes == 5 && m->removed == 12 && m->held_bytes == 13 &&
                m->slowest_write_ns == 14 && m->cpu_ns == 15);
    assert_string_equal(m->file, "/r/a.mcap");
    assert_string_equal(m->last_error, "no room; make some");
    assert_int_equal(m->n_lost, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(m->lost[i]->name, name[i]);
        assert_int_equal(m->lost[i]->value, 6 + i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(says_who_and_how),
        TEST(achieved_is_of_commands),
        TEST(names_drops_with_their_reasons),
        TEST(warns_of_what_is_new),
        TEST(superseded_is_normal),
        TEST(counts_limits_by_joint),
        TEST(loses_no_counter),
        TEST(tells_each_stream),
        TEST(tells_what_was_seen),
        TEST(fresh_is_three_periods),
        TEST(tells_histograms),
        TEST(sums_up_at_the_end),
        TEST(lives_without_report_or_publisher),
        TEST(tells_faults_budgets_and_seams),
        TEST(tells_of_the_recording),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
