// control: verbs and their answers, with the time in the test's hand.
#include <pwd.h>

#include "tests/unit/control_fixture.h"

#include "daemon/explain_latch.h"

// ---- verbs that read -----------------------------------------------------------------

static void status_metrics_and_findings_are_answered(void **state)
{
    Actd__V1__ControlReply *m;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    m = asked(V(STATUS), "", R(OK));
    assert_non_null(m->status);
    assert_string_equal(m->status->instance, "left");
    assert_int_equal(m->status->ticks, 12345);
    m = asked(V(METRICS), "", R(OK));
    assert_non_null(strstr(m->metrics, "actd_"));
    assert_non_null(strstr(m->metrics, "12345"));
    m = asked(V(DOCTOR), "", R(OK));
    assert_true(m->n_findings > 3);
    for (size_t i = 0; i < m->n_findings; i++)
        assert_true(*m->findings[i]->what && *m->findings[i]->text);
}

static void policies_are_listed(void **state)
{
    Actd__V1__ControlReply *m;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fake.list = 3; // the last with a name that is no UTF-8
    fake.entry[2] = (struct swap_entry){.name = "a\xff"};
    fake.entry[0] = (struct swap_entry){
        .name = "reach", .running = true, .usable = true, .bytes = 99};
    fake.entry[1] = (struct swap_entry){
        .name = "bad", .previous = true, .note = "it is writable", .modified_s = -5};
    m = asked(V(POLICIES), "", R(OK));
    assert_int_equal(m->n_policies, 2);
    assert_string_equal(m->policies[0]->name, "reach");
    assert_true(m->policies[0]->running && m->policies[0]->usable &&
                m->policies[0]->bytes == 99 && !m->policies[0]->previous);
    assert_string_equal(m->policies[1]->note, "it is writable");
    assert_true(m->policies[1]->previous && m->policies[1]->modified_s == -5);
    fake.list = -ENOENT;
    m = asked(V(POLICIES), "", R(FAILED));
    assert_non_null(strstr(m->text, "no swap.directory in the configuration"));
    snprintf(w.cfg.swap.directory, sizeof w.cfg.swap.directory, "/p");
    m = asked(V(POLICIES), "", R(FAILED));
    assert_non_null(strstr(m->text, "swap.directory cannot be read"));
}

static void what_is_not_there_is_said_to_be_not_there(void **state)
{
    (void)state;
    assert_int_equal(world_open("", ""), 0);
    assert_string_equal(asked(V(INSTRUCT), "pick it up", R(UNSUPPORTED))->text,
                        "not supported by this policy");
    w.control->src.recorder = NULL;
    assert_non_null(strstr(asked(V(RECORD_START), "", R(REFUSED))->text, "no recorder"));
    assert_non_null(strstr(asked(V(RECORD_STOP), "", R(REFUSED))->text, "no recorder"));
    assert_non_null(strstr(asked(V(RECORD_MARK), "x", R(REFUSED))->text, "no recorder"));
    assert_int_equal(fake.started + fake.stopped, 0);
    w.control->src.status = NULL;
    asked(V(STATUS), "", R(FAILED));
    asked(V(METRICS), "", R(FAILED));
    w.control->src.swap = NULL;
    asked(V(POLICIES), "", R(FAILED));
    asked(V(SWAP), "x", R(REFUSED));
    asked(V(ARM), "", R(REFUSED));
    assert_int_equal(atomic_load(&w.board.requests), 0);
}

static void a_reply_that_is_too_long_is_not_sent_in_half(void **state)
{
    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fake.status = CONTROL_REPLY_MAX - 4;
    w.control->src.status = some_status;
    // The fake lies about its length; what is beyond must not be read either.
    struct control_session s = {.fd = -1};
    int fd[2];
    Actd__V1__ControlReply m;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fd), 0);
    s.fd = fd[0];
    control_reply(&m, 9, R(OK));
    control_send(w.control, &s, &m, w.control->status, CONTROL_REPLY_MAX - 4);
    assert_non_null(strstr(expect(fd[1], 9, R(FAILED))->text, "longer than 256 KiB"));
    close(fd[0]);
    close(fd[1]);
}

static void the_longest_reply_fits_one_packet(void **state)
{
    static char text[CONTROL_REPLY_MAX];
    Actd__V1__ControlReply m;
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fd = client();
    turn(0);
    memset(text, 'm', sizeof text - 16);
    control_reply(&m, 9, R(OK));
    m.metrics = text;
    control_send(w.control, &w.control->session[0], &m, NULL, 0);
    assert_int_equal(strlen(expect(fd, 9, R(OK))->metrics), sizeof text - 16);
    close(fd);
}

// ---- verbs that the loop answers -----------------------------------------------------

static void the_loop_is_asked_and_its_answer_told(void **state)
{
    static const struct {
        Actd__V1__Verb verb;
        uint32_t bit;
        enum ladder_state from, to;
    } cases[] = {
        {V(ARM), BOARD_ARM, LADDER_READY, LADDER_APPROACH},
        {V(ARM), BOARD_ARM, LADDER_READY, LADDER_APPROACH}, // not the old answer
        {V(DISARM), BOARD_DISARM, LADDER_RUNNING, LADDER_DISARMING},
        {V(STOP), BOARD_STOP, LADDER_RUNNING, LADDER_STOPPING},
        {V(ESTOP), BOARD_ESTOP, LADDER_RUNNING, LADDER_ESTOP},
        {V(RESET), BOARD_RESET, LADDER_STOPPED, LADDER_WAITING},
        {V(HOME), BOARD_HOME, LADDER_READY, LADDER_HOMING},
    };
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fd = client();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_report(cases[i].from, REASON_NONE);
        ask_for(fd, i, cases[i].verb, "");
        turn(NS_PER_MS);
        turn(NS_PER_MS);
        no_reply(fd);
        turn(150 * NS_PER_MS); // not a word before the loop has spoken
        no_reply(fd);
        assert_int_equal(loop_does(cases[i].to, REASON_NONE), cases[i].bit);
        assert_true(control_next_ns(w.control, w.now) <= w.now + NS_PER_MS);
        turn(NS_PER_MS);
        assert_true(*expect(fd, i, R(OK))->text);
    }
    assert_int_equal(log_lines("by user 0 (process"), geteuid() == 0 ? 7 : 0);
    assert_int_equal(log_lines("control: ESTOP by user"), 1);
    close(fd);
}

static void a_refusal_tells_the_cause(void **state)
{
    Actd__V1__ControlReply *m;
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    write_report(LADDER_STOPPED, REASON_OPERATOR);
    fd = client();
    ask_for(fd, 1, V(ARM), "");
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    loop_does(LADDER_STOPPED, REASON_OPERATOR);
    turn(NS_PER_MS);
    m = expect(fd, 1, R(REFUSED));
    assert_non_null(strstr(m->text, "not armed"));
    assert_non_null(strstr(m->text, "actctl reset"));
    assert_int_equal(log_lines("ARM by user"), 1);
    assert_int_equal(log_lines("not done: not armed"), 1);
    close(fd);
}

static void a_strange_pose_is_not_armed(void **state)
{
    static const float mean[1] = {10}, std[1] = {1};
    struct loop_answer before;
    Actd__V1__ControlReply *m;

    (void)state;
    snprintf(w.cfg.joint[0].name, sizeof w.cfg.joint[0].name, "shoulder");
    w.cfg.safety.max_stats_z = 6;
    fake.info.state.n = 1;
    fake.info.state.mean = mean;
    fake.info.state.std = std;
    fake.fitted.binding.n = fake.fitted.binding.n_state = 1;
    fake.fitted.binding.scale[0] = 1;
    assert_int_equal(world_open("", ""), 0);
    w.report.measured[0] = 3;
    write_report(LADDER_READY, REASON_NONE);
    before = w.report.answer;
    m = asked(V(ARM), "", R(REFUSED));
    assert_non_null(strstr(m->text, "shoulder is 7.0 standard deviations"));
    assert_int_equal(atomic_load(&w.board.requests), 0);
    // In another state that is the reason, and still the loop is not asked.
    write_report(LADDER_ESTOP, REASON_ESTOP);
    m = asked(V(ARM), "", R(REFUSED));
    assert_null(strstr(m->text, "deviations"));
    assert_non_null(strstr(m->text, "ESTOP"));
    assert_int_equal(atomic_load(&w.board.requests), 0);
    assert_int_equal(w.report.answer.number, before.number);
    w.report.measured[0] = 5;
    write_report(LADDER_READY, REASON_NONE);
    int fd = client();
    ask_for(fd, 3, V(ARM), "");
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    assert_int_equal(loop_does(LADDER_APPROACH, REASON_NONE), BOARD_ARM);
    turn(NS_PER_MS);
    expect(fd, 3, R(OK));
    close(fd);
}

// An arming is an edge, and this one came in the tick in which READY began.
static void an_arm_at_the_edge_of_ready_is_asked_again(void **state)
{
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fd = client();
    for (int i = 0; i < 2; i++) {
        static const Actd__V1__Verb verb[] = {V(ARM), V(HOME)};
        uint32_t bit = i == 0 ? BOARD_ARM : BOARD_HOME;

        write_report(LADDER_DISARMING, REASON_OPERATOR);
        ask_for(fd, 1, verb[i], "");
        turn(NS_PER_MS);
        turn(NS_PER_MS);
        assert_int_equal(loop_does(LADDER_READY, REASON_NONE), bit);
        turn(NS_PER_MS);
        no_reply(fd);
        assert_int_equal(loop_does(i == 0 ? LADDER_APPROACH : LADDER_HOMING, REASON_NONE),
                         bit);
        turn(NS_PER_MS);
        expect(fd, 1, R(OK));
    }
    // Not for ever, and not where two contradict each other or something is in the way.
    write_report(LADDER_DISARMING, REASON_OPERATOR);
    ask_for(fd, 2, V(ARM), "");
    turn(NS_PER_MS);
    turn(CONTROL_ANSWER_NS - NS_PER_MS);
    loop_does(LADDER_READY, REASON_NONE);
    turn(2 * NS_PER_MS);
    assert_non_null(strstr(expect(fd, 2, R(REFUSED))->text, "not READY at that tick"));
    assert_int_equal(atomic_load(&w.board.requests), 0);
    write_report(LADDER_DISARMING, REASON_OPERATOR);
    ask_for(fd, 3, V(ARM), "");
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    atomic_fetch_or(&w.board.requests, BOARD_DISARM);
    loop_does(LADDER_READY, REASON_NONE);
    turn(NS_PER_MS);
    expect(fd, 3, R(REFUSED));
    write_report(LADDER_WAITING, REASON_STARTING);
    ask_for(fd, 4, V(ARM), "");
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    loop_does(LADDER_WAITING, REASON_STARTING);
    turn(NS_PER_MS);
    expect(fd, 4, R(REFUSED));
    close(fd);
}

// Asks for a reset of an arm that brakes: refused by the loop, and not told yet.
static void reset_too_early(int fd, enum ladder_state from, enum ladder_state to)
{
    write_report(from, REASON_OPERATOR);
    ask_for(fd, 7, V(RESET), "");
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    assert_int_equal(loop_does(to, REASON_OPERATOR), BOARD_RESET);
    turn(NS_PER_MS);
    no_reply(fd);
}

static void a_reset_waits_for_the_brakes(void **state)
{
    static const struct {
        enum ladder_state from, to;
    } at[] = {{LADDER_STOPPING, LADDER_STOPPING},
              {LADDER_ESTOP, LADDER_ESTOP},
              {LADDER_STOPPING, LADDER_STOPPED},
              {LADDER_RUNNING, LADDER_STOPPING}}; // another's stop in the same tick
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fd = client();
    for (int i = 0; i < 4; i++) {
        w.report.at_rest = false;
        reset_too_early(fd, at[i].from, at[i].to);
        for (int k = 0; k < 100 && i < 2; k++) { // a second
            turn(10 * NS_PER_MS);
            no_reply(fd);
            assert_int_equal(atomic_load(&w.board.requests), 0);
            assert_true(control_next_ns(w.control, w.now) <= w.now + NS_PER_MS);
        }
        w.report.at_rest = true;
        write_report(i == 1 ? LADDER_ESTOP : LADDER_STOPPED, REASON_OPERATOR);
        turn(NS_PER_MS);
        no_reply(fd);
        assert_int_equal(loop_does(LADDER_WAITING, REASON_STARTING), BOARD_RESET);
        turn(NS_PER_MS);
        assert_non_null(strstr(expect(fd, 7, R(OK))->text, "reset; ready once"));
    }
    close(fd);
}

// It was for the stop that its user knew of: what another one did meanwhile it does not open.
static void a_reset_that_waits_opens_no_later_latch(void **state)
{
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fd = client();
    for (int i = 0; i < 2; i++) {
        w.report.at_rest = false;
        w.report.faults.latched = 1u << REASON_OPERATOR;
        reset_too_early(fd, LADDER_STOPPING, LADDER_STOPPING);
        turn(10 * NS_PER_MS);
        no_reply(fd);
        if (i == 0) { // somebody presses the emergency stop
            w.report.answer.number++;
            w.report.answer.requests = BOARD_ESTOP;
        } else {
            w.report.faults.latched |= 1u << REASON_ESTOP;
        }
        w.report.at_rest = true;
        write_report(LADDER_ESTOP, REASON_ESTOP);
        turn(10 * NS_PER_MS);
        expect(fd, 7, R(REFUSED));
        assert_int_equal(atomic_load(&w.board.requests), 0);
    }
    close(fd);
}

// No client waits longer than 2 s for its answer.
static void a_reset_does_not_wait_for_ever(void **state)
{
    Actd__V1__ControlReply *m;
    ns_t begin;
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fd = client();
    begin = w.now;
    reset_too_early(fd, LADDER_STOPPING, LADDER_STOPPING);
    while (!(m = reply_on(fd, NULL)) && w.now < begin + 3 * NS_PER_S)
        turn(5 * NS_PER_MS);
    assert_non_null(m);
    assert_int_equal(m->result, R(REFUSED));
    assert_non_null(strstr(m->text, "still coming to rest"));
    assert_non_null(strstr(m->text, "(STOPPING)"));
    assert_true(w.now - begin + CONTROL_ANSWER_NS < 2 * NS_PER_S);
    assert_true(w.now - begin > NS_PER_S);
    assert_int_equal(atomic_load(&w.board.requests), 0);
    // What is wrong when it rests is told, and nothing is waited for.
    w.report.at_rest = true;
    write_report(LADDER_STOPPED, REASON_JOINTS_MISSING);
    ask_for(fd, 8, V(RESET), "");
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    loop_does(LADDER_STOPPED, REASON_JOINTS_MISSING);
    turn(NS_PER_MS);
    assert_non_null(strstr(expect(fd, 8, R(REFUSED))->text, "JOINTS_MISSING"));
    close(fd);
}

static void a_stop_is_remembered_with_its_user(void **state)
{
    struct explain_latch latch;
    struct passwd *me = getpwuid(geteuid());
    char want[128], text[EXPLAIN_LATCH_TEXT];
    int fd;

    (void)state;
    assert_int_equal(explain_latch_init(&latch), 0);
    w.board.latch = &latch;
    w.cfg.control.rate_hz = 100;
    assert_int_equal(world_open("", ""), 0);
    w.report.tick = 500;
    write_report(LADDER_RUNNING, REASON_NONE);
    fd = client();
    ask_for(fd, 1, V(ESTOP), "");
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    w.report.tick = 501;
    w.report.event[w.report.events++] = (struct loop_event){
        .tick = 501, .from = LADDER_RUNNING, .to = LADDER_ESTOP, .reason = REASON_ESTOP};
    loop_does(LADDER_ESTOP, REASON_ESTOP);
    turn(NS_PER_MS);
    expect(fd, 1, R(OK));
    snprintf(want, sizeof want, "e-stop by user %s%s(uid %u, process %d) at ",
             me ? me->pw_name : "", me ? " " : "", (unsigned)geteuid(), (int)getpid());
    assert_true(explain_latched(&w.explain, &w.report, text, sizeof text));
    if (strncmp(text, want, strlen(want)) != 0)
        fail_msg("%s", text);
    close(fd);
    explain_latch_free(&latch);
}

// What was told to have failed does not happen later; what stops may.
// Asked, and gone before it was read: nothing starts to move, but a stop is done.
static void who_has_hung_up_moves_nothing(void **state)
{
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fd = client();
    turn(20 * NS_PER_MS); // let in
    ask_for(fd, 1, V(ARM), "");
    close(fd);
    turn(NS_PER_MS);
    assert_int_equal(atomic_load(&w.board.requests), 0);
    fd = client();
    turn(20 * NS_PER_MS);
    ask_for(fd, 1, V(ESTOP), "");
    close(fd);
    turn(NS_PER_MS);
    assert_int_equal(atomic_load(&w.board.requests), BOARD_ESTOP);
}

static void a_silent_loop_is_told_and_nothing_starts_later(void **state)
{
    static const struct {
        Actd__V1__Verb verb;
        uint32_t left;
    } cases[] = {{V(ARM), 0},           {V(HOME), 0},
                 {V(RESET), 0},         {V(DISARM), BOARD_DISARM},
                 {V(STOP), BOARD_STOP}, {V(ESTOP), BOARD_ESTOP}};
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fd = client();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        atomic_store(&w.board.requests, 0);
        ask_for(fd, i, cases[i].verb, "");
        turn(NS_PER_MS);
        turn(NS_PER_MS);
        assert_true(atomic_load(&w.board.requests) != 0);
        turn(197 * NS_PER_MS);
        no_reply(fd);
        turn(3 * NS_PER_MS);
        assert_non_null(
            strstr(expect(fd, i, R(FAILED))->text, "does not answer within 200 ms"));
        assert_int_equal(atomic_load(&w.board.requests), cases[i].left);
    }
    close(fd);
}

// Two users within a millisecond: the loop's second answer hides the first.
static void an_answer_that_was_overtaken_is_told_by_the_state(void **state)
{
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fd = client();
    ask_for(fd, 1, V(ARM), "");
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    loop_does(LADDER_APPROACH, REASON_NONE);
    atomic_store(&w.board.requests, BOARD_RESET); // another's
    loop_does(LADDER_APPROACH, REASON_NONE);
    turn(NS_PER_MS);
    no_reply(fd);
    turn(CONTROL_ANSWER_NS);
    expect(fd, 1, R(OK));
    close(fd);
}

static void a_stop_ends_a_swap_and_a_disarm_does_not(void **state)
{
    static const Actd__V1__Verb verbs[] = {V(DISARM), V(HOME), V(RESET), V(STOP),
                                           V(ESTOP)};
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fd = client();
    for (int i = 0; i < 5; i++) {
        ask_for(fd, 1, verbs[i], "");
        turn(NS_PER_MS);
        turn(NS_PER_MS);
        loop_does(LADDER_STOPPED, REASON_OPERATOR);
        turn(NS_PER_MS);
        assert_non_null(reply_on(fd, NULL));
        assert_int_equal(fake.cancelled, i < 3 ? 0 : i - 2);
    }
    close(fd);
}

// ---- swaps ---------------------------------------------------------------------------

static void a_swap_is_told_stage_by_stage(void **state)
{
    Actd__V1__ControlReply *m;
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fake.known = 3;
    fake.look = (struct swap_report){.number = 3, .stage = SWAP_LOADING, .to = "new"};
    fd = client();
    ask_for(fd, 5, V(SWAP), "new");
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    m = expect(fd, 5, R(PROGRESS));
    assert_int_equal(m->swap->stage, SWAP_LOADING);
    assert_string_equal(fake.asked.name, "new");
    assert_true(fake.asked.uid == geteuid() && fake.asked.pid == getpid());
    turn(NS_PER_S);
    no_reply(fd); // nothing new
    fake.look.stage = SWAP_TRYING;
    turn(20 * NS_PER_MS);
    assert_int_equal(expect(fd, 5, R(PROGRESS))->swap->stage, SWAP_TRYING);
    turn(100 * NS_PER_S); // however long it takes
    no_reply(fd);
    fake.look.stage = SWAP_DONE;
    fake.look.difference_rad = 0.25;
    fake.look.golden_error = -1;
    fake.look.commit_ns = 4000000;
    snprintf(fake.look.from_digest, sizeof fake.look.from_digest, "abc");
    snprintf(fake.look.text, sizeof fake.look.text, "new drives");
    turn(20 * NS_PER_MS);
    m = expect(fd, 5, R(OK));
    assert_string_equal(m->text, "new drives");
    assert_true((int)m->swap->stage == SWAP_DONE && m->swap->number == 3 &&
                m->swap->difference_rad == 0.25 && m->swap->golden_error == -1 &&
                m->swap->commit_ns == 4000000);
    assert_string_equal(m->swap->from_digest, "abc");
    ask_for(fd, 6, V(STATUS), ""); // and is listened to again
    turn(NS_PER_MS);
    expect(fd, 6, R(OK));
    close(fd);
}

// Else a script that swaps twice would find the first one still under way.
static void a_swap_is_over_when_the_next_may_begin(void **state)
{
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fake.look.stage = SWAP_DONE;
    fake.busy = true;
    fd = client();
    ask_for(fd, 1, V(SWAP), "x");
    for (int i = 0; i < 30; i++)
        turn(20 * NS_PER_MS);
    no_reply(fd);
    fake.busy = false;
    turn(20 * NS_PER_MS);
    expect(fd, 1, R(OK));
    fake.busy = true; // a worker that hangs keeps the old seat
    ask_for(fd, 2, V(SWAP), "x");
    for (int i = 0; i < 45; i++)
        turn(20 * NS_PER_MS);
    no_reply(fd);
    for (int i = 0; i < 10; i++)
        turn(20 * NS_PER_MS);
    expect(fd, 2, R(OK));
    close(fd);
}

static void a_swap_that_fails_or_cannot_begin_says_why(void **state)
{
    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fake.look = (struct swap_report){.stage = SWAP_FAILED, .text = "NaN in layer 3"};
    assert_string_equal(asked(V(SWAP), "x", R(FAILED))->text, "NaN in layer 3");
    asked(V(SWAP_BACK), "", R(FAILED));
    assert_true(fake.asked.back);
    fake.begin = -EBUSY;
    assert_string_equal(asked(V(SWAP), "x", R(BUSY))->text, "why not");
    fake.begin = -EINVAL;
    assert_string_equal(asked(V(SWAP), "x", R(REFUSED))->text, "why not");
    fake.begin = 0;
    fake.known = 0;
    fake.look.stage = SWAP_LOADING;
    int fd = client();
    ask_for(fd, 1, V(SWAP), "x");
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    expect(fd, 1, R(PROGRESS));
    fake.known = 99; // forgotten
    turn(20 * NS_PER_MS);
    expect(fd, 1, R(FAILED));
    close(fd);
}

static void whoever_asked_for_a_swap_may_go_away(void **state)
{
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    fake.look.stage = SWAP_LOADING;
    fd = client();
    ask_for(fd, 5, V(SWAP), "new");
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    expect(fd, 5, R(PROGRESS));
    close(fd);
    turn(NS_PER_S);
    fake.look.stage = SWAP_TRYING;
    turn(NS_PER_S);
    assert_int_equal(w.control->session[0].fd, -1);
    assert_int_equal(fake.cancelled, 0);
    asked(V(STATUS), "", R(OK));
}

static void recordings_are_begun_ended_and_marked(void **state)
{
    (void)state;
    assert_int_equal(world_open("", ""), 0);
    assert_string_equal(asked(V(RECORD_START), "", R(OK))->text, "recording, in /r");
    assert_string_equal(asked(V(RECORD_MARK), "it fell: \xc3\xb6", R(OK))->text,
                        "marked");
    assert_string_equal(fake.mark, "it fell: \xc3\xb6");
    assert_string_equal(asked(V(RECORD_STOP), "", R(OK))->text, "the recording ends");
    fake.record_late = 1; // long after a start: there is none
    asked(V(RECORD_MARK), "x", R(REFUSED));
    fake.record = -EALREADY;
    assert_string_equal(asked(V(RECORD_START), "", R(REFUSED))->text, "recording, in /r");
    asked(V(RECORD_STOP), "", R(REFUSED));
    asked(V(RECORD_MARK), "x", R(REFUSED));
    assert_true(fake.started == 2 && fake.stopped == 2);
    assert_non_null(strstr(asked(V(RECORD_MARK), "", R(INVALID))->text, "text: missing"));
    assert_int_equal(atomic_load(&w.board.requests), 0); // the loop is not asked
}

// The tape takes a moment to be ready; whoever marks at once waits for it, and nobody else.
static void a_mark_right_after_a_start_waits(void **state)
{
    int fd;

    (void)state;
    assert_int_equal(world_open("", ""), 0);
    asked(V(RECORD_START), "", R(OK));
    fake.record_late = 10;
    fd = client();
    ask_for(fd, 9, V(RECORD_MARK), "now");
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    asked(V(STATUS), "", R(OK));
    for (int i = 0; i < 20 && fake.record_late > 0; i++)
        turn(5 * NS_PER_MS);
    turn(5 * NS_PER_MS);
    assert_string_equal(expect(fd, 9, R(OK))->text, "marked");
    fake.record_late = 1000000;
    ask_for(fd, 10, V(RECORD_MARK), "never");
    for (int i = 0; i < 200; i++)
        turn(5 * NS_PER_MS);
    expect(fd, 10, R(REFUSED));
    close(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_up, world_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(status_metrics_and_findings_are_answered),
        TEST(policies_are_listed),
        TEST(what_is_not_there_is_said_to_be_not_there),
        TEST(recordings_are_begun_ended_and_marked),
        TEST(a_mark_right_after_a_start_waits),
        TEST(a_reply_that_is_too_long_is_not_sent_in_half),
        TEST(the_longest_reply_fits_one_packet),
        TEST(the_loop_is_asked_and_its_answer_told),
        TEST(a_refusal_tells_the_cause),
        TEST(a_strange_pose_is_not_armed),
        TEST(an_arm_at_the_edge_of_ready_is_asked_again),
        TEST(a_reset_waits_for_the_brakes),
        TEST(a_reset_that_waits_opens_no_later_latch),
        TEST(a_reset_does_not_wait_for_ever),
        TEST(a_stop_is_remembered_with_its_user),
        TEST(who_has_hung_up_moves_nothing),
        TEST(a_silent_loop_is_told_and_nothing_starts_later),
        TEST(an_answer_that_was_overtaken_is_told_by_the_state),
        TEST(a_stop_ends_a_swap_and_a_disarm_does_not),
        TEST(a_swap_is_told_stage_by_stage),
        TEST(a_swap_is_over_when_the_next_may_begin),
        TEST(a_swap_that_fails_or_cannot_begin_says_why),
        TEST(whoever_asked_for_a_swap_may_go_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
