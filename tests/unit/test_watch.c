// The watch against a board that this test writes in the loop's place, with a real
// signalfd. What it says is caught before it becomes a line; it is included, not linked,
// so that its waits can be shortened.
#define LOOK_MS    5
#define REST_LEAST (300 * NS_PER_MS)
#define PATIENCE   (100 * NS_PER_MS)
#define SAY_PERIOD (250 * NS_PER_MS)
#include "daemon/watch.c" // NOLINT(bugprone-suspicious-include)

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#define JOINTS 3
#define LINES  128
#define SOON   (10 * NS_PER_S)

// ---- in the place of log, status and explain -------------------------------------------------

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    enum log_level level;
    char text[512];
    ns_t at_ns;
} line[LINES];
static int n_lines;
static _Atomic int published;

void log_line(enum log_level level, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    pthread_mutex_lock(&mutex);
    if (n_lines < LINES) {
        vsnprintf(line[n_lines].text, sizeof line[0].text, format, ap);
        line[n_lines].level = level;
        line[n_lines++].at_ns = clock_now_ns();
    }
    pthread_mutex_unlock(&mutex);
    va_end(ap);
}

void status_publish(struct status *s)
{
    (void)s;
    published++;
}

void status_received_hz(struct status *s, double hz[POLICY_MAX_CAMERAS + 1])
{
    (void)s;
    hz[0] = 30;
}

// The rates of the last status come along.
void explain_reason(const struct explain_source *src, const struct loop_report *now,
                    enum ladder_reason reason, int index, double value, char *text,
                    size_t size)
{
    (void)now;
    if (index != -1 || value != 0)
        abort();
    text[0] = '\0';
    if (reason != REASON_INTERNAL) // of which there is nothing to add
        snprintf(text, size, "joints come at %g Hz", src->received_hz[0]);
}

void explain_event(const struct explain_source *src, const struct loop_report *now,
                   const struct loop_event *event, char *text, size_t size)
{
    (void)src;
    (void)now;
    snprintf(text, size, "step %llu to %s", (unsigned long long)event->tick,
             ladder_state_name(event->to));
}

// In the place of swap: the policy is the rig's.
static struct fitted fitted;
static _Atomic int held, cancelled;

const struct fitted *swap_hold(struct swap *s)
{
    (void)s;
    held++;
    return &fitted;
}

void swap_release(struct swap *s)
{
    (void)s;
    held--;
}

void swap_cancel(struct swap *s, const char *why)
{
    (void)s;
    if (!strstr(why, "actd ends"))
        cancelled++;
}

// In the place of recorder.
static struct {
    _Atomic int n;
    _Atomic int reason;
    _Atomic int64_t at_ns;
} recorded;

void recorder_fault(struct recorder *r, enum ladder_reason reason, ns_t at_ns)
{
    (void)r;
    recorded.reason = (int)reason;
    recorded.at_ns = at_ns;
    recorded.n++;
}

// ---- the rig ---------------------------------------------------------------------------------

struct rig {
    struct config cfg;
    struct guard_limits limits;
    struct policy_info policy;
    float mean[JOINTS], std[JOINTS];
    struct board board;
    struct watch_source src;
    struct watchdog dog;
    _Atomic int64_t alive_ns;
    struct loop_report report;
    pthread_t thread;
    bool running;
    int exit_status;
    ns_t ended_ns;
};

static int setup(void **state)
{
    static const char *const names[JOINTS] = {"lift", "turn", "grip"};
    struct rig *r = calloc(1, sizeof *r);
    sigset_t set;
    *state = r;
    n_lines = 0;
    published = 0;
    if (board_init(&r->board, 0, 4, JOINTS))
        return -1;
    r->cfg.n_joints = fitted.binding.n = fitted.binding.n_state = JOINTS;
    fitted.info = &r->policy;
    held = cancelled = 0;
    recorded.n = 0;
    r->cfg.control.rate_hz = 100;
    for (int i = 0; i < JOINTS; i++) { // state 0 is turn, 1 grip, 2 lift; in degrees
        snprintf(r->cfg.joint[i].name, CONFIG_NAME, "%s", names[i]);
        fitted.binding.state_of[i] = fitted.binding.joint_of[i] = (i + 1) % JOINTS;
        fitted.binding.scale[i] = 10;
        r->mean[i] = (float)i;
        r->std[i] = 2;
        r->limits.velocity[i] = 0.1;
        r->limits.acceleration[i] = r->limits.stop_acceleration[i] = 1000;
    }
    r->limits.n = JOINTS;
    r->policy.state = (struct policy_stats){.n = JOINTS, .mean = r->mean, .std = r->std};
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    watchdog_init(&r->dog);
    r->src = (struct watch_source){.cfg = &r->cfg,
                                   .limits = &r->limits,
                                   .board = &r->board,
                                   .dog = &r->dog,
                                   .alive_ns = &r->alive_ns,
                                   .signals = signalfd(-1, &set, SFD_CLOEXEC)};
    return r->src.signals >= 0 ? 0 : -1;
}

// Signals are sent to this thread: a library's, older than the block, may not have it.
static void *run_watch(void *arg)
{
    struct rig *r = arg;
    r->exit_status = watch_run(&r->src);
    r->ended_ns = clock_now_ns();
    return NULL;
}

static void begin(struct rig *r)
{
    assert_int_equal(pthread_create(&r->thread, NULL, run_watch, r), 0);
    r->running = true;
}

static int ended(struct rig *r)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    if (pthread_timedjoin_np(r->thread, NULL, &until) != 0)
        fail_msg("the watch does not end");
    r->running = false;
    return r->exit_status;
}

static void in_mode(struct rig *r, enum ladder_state mode, enum ladder_reason reason)
{
    r->report.mode = mode;
    r->report.reason = reason;
    slot_write(&r->board.report, &r->report);
}

static void step(struct rig *r, enum ladder_state to)
{
    const uint64_t n = r->report.events++;
    r->report.event[n % BOARD_EVENTS] = (struct loop_event){
        .tick = n, .from = r->report.mode ? r->report.mode : LADDER_INIT, .to = to};
    r->report.mode = to;
    slot_write(&r->board.report, &r->report);
}

static void nap(ns_t ns)
{
    clock_sleep_until(clock_now_ns() + ns);
}

// Lines that have `part`, of `level`.
static int lines(enum log_level level, const char *part)
{
    int n = 0;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < n_lines; i++)
        n += line[i].level == level && strstr(line[i].text, part) != NULL;
    pthread_mutex_unlock(&mutex);
    return n;
}

static bool eventually_lines(enum log_level level, const char *part, int n)
{
    ns_t until = clock_now_ns() + SOON;
    while (lines(level, part) < n && clock_now_ns() < until)
        nap(NS_PER_MS);
    return lines(level, part) == n;
}

static uint32_t eventually_requests(struct rig *r)
{
    ns_t until = clock_now_ns() + SOON;
    while (r->board.requests == 0 && clock_now_ns() < until)
        nap(NS_PER_MS);
    return atomic_exchange(&r->board.requests, 0);
}

static int teardown(void **state)
{
    struct rig *r = *state;
    if (r->running) {
        in_mode(r, LADDER_READY, REASON_NONE);
        pthread_kill(r->thread, SIGTERM);
        ended(r);
    }
    close(r->src.signals);
    board_free(&r->board);
    free(r);
    return 0;
}

#define LOOKS (20 * LOOK_MS * NS_PER_MS) // time enough for several looks

// ---- arming ----------------------------------------------------------------------------------

static void arms_once_and_only_when_ready(void **state)
{
    struct rig *r = *state;
    r->src.arm = true;
    begin(r);
    nap(LOOKS); // no report yet
    assert_int_equal(r->board.requests, 0);
    step(r, LADDER_WAITING);
    nap(LOOKS);
    assert_int_equal(r->board.requests, 0);
    step(r, LADDER_READY);
    assert_int_equal(eventually_requests(r), BOARD_ARM);
    assert_int_equal(eventually_requests(r), BOARD_ARM); // as long as the loop did not
    step(r, LADDER_APPROACH);
    nap(LOOKS);
    atomic_store(&r->board.requests, 0);
    step(r, LADDER_DISARMING);
    step(r, LADDER_READY);
    nap(LOOKS);
    assert_int_equal(r->board.requests, 0);
}

// The same when it was armed for less than a look.
static void does_not_miss_that_it_armed(void **state)
{
    struct rig *r = *state;
    r->src.arm = true;
    r->report.events = 1;
    r->report.event[0] =
        (struct loop_event){.from = LADDER_READY, .to = LADDER_APPROACH, .index = -1};
    step(r, LADDER_DISARMING);
    step(r, LADDER_READY);
    begin(r);
    nap(LOOKS);
    assert_int_equal(r->board.requests, 0);
}

static void does_not_arm_after_a_stop(void **state)
{
    struct rig *r = *state;
    r->src.arm = true;
    in_mode(r, LADDER_ESTOP, REASON_ESTOP);
    begin(r);
    nap(LOOKS);
    in_mode(r, LADDER_READY, REASON_NONE); // after a reset
    nap(LOOKS);
    assert_int_equal(r->board.requests, 0);
}

static void does_not_arm_unasked(void **state)
{
    struct rig *r = *state;
    in_mode(r, LADDER_READY, REASON_NONE);
    begin(r);
    nap(LOOKS);
    assert_int_equal(r->board.requests, 0);
}

// Of state (turn, grip, lift) with mean (0, 1, 2) and deviation 2; scale 10.
static void refuses_a_strange_pose_by_name(void **state)
{
    struct rig *r = *state;
    r->src.arm = true;
    r->cfg.safety.max_stats_z = 4;
    r->report.measured[1] = 0;
    r->report.measured[2] = 0.1 - 0.81; // grip: z 4.05 below its mean
    r->report.measured[0] = 0.2 + 0.79;
    in_mode(r, LADDER_READY, REASON_NONE);
    begin(r);
    assert_true(eventually_lines(LOG_WARN, "not armed: grip is 4.0 standard", 1) ||
                lines(LOG_WARN, "not armed: grip is 4.1 standard") == 1);
    assert_int_equal(lines(LOG_WARN, "safety.max_stats_z 4)"), 1);
    nap(SAY_PERIOD + LOOKS);
    assert_int_equal(r->board.requests, 0);
    assert_in_range(lines(LOG_WARN, "not armed"), 2, 4); // not at every look
    r->report.measured[2] = 0.1 - 0.79;                  // moved
    in_mode(r, LADDER_READY, REASON_NONE);
    assert_int_equal(eventually_requests(r), BOARD_ARM);
    nap(LOOKS);
    assert_int_equal(held, 0); // given back each time
}

static void a_pose_that_is_no_number_is_strange(void **state)
{
    struct rig *r = *state;
    r->src.arm = true;
    r->cfg.safety.max_stats_z = 4;
    r->report.measured[0] = NAN;
    in_mode(r, LADDER_READY, REASON_NONE);
    begin(r);
    assert_true(eventually_lines(LOG_WARN, "not armed: lift", 1));
    assert_int_equal(r->board.requests, 0);
}

static void any_pose_without_a_threshold_or_statistics(void **state)
{
    struct rig *r = *state;
    r->src.arm = true;
    r->report.measured[0] = 100;
    in_mode(r, LADDER_READY, REASON_NONE);
    begin(r);
    assert_int_equal(eventually_requests(r), BOARD_ARM);
    pthread_kill(r->thread, SIGTERM);
    assert_int_equal(ended(r), 0);
    r->board.requests = 0;
    r->cfg.safety.max_stats_z = 4;
    r->policy.state.std = NULL;
    begin(r);
    assert_int_equal(eventually_requests(r), BOARD_ARM);
}

// ---- what the recording hears of -----------------------------------------------------------

static void step_for(struct rig *r, enum ladder_state to, enum ladder_reason reason,
                     uint64_t tick)
{
    const uint64_t n = r->report.events++;
    r->report.event[n % BOARD_EVENTS] = (struct loop_event){
        .tick = tick, .from = r->report.mode, .to = to, .reason = reason};
    r->report.mode = to;
    r->report.tick = tick + 3; // it is looked at three ticks later
    r->report.now_ns = 5 * NS_PER_S;
    slot_write(&r->board.report, &r->report);
}

// As for the black box: what stops the arm, unless somebody asked for it.
static void a_fault_is_recorded(void **state)
{
    struct rig *r = *state;
    r->src.recorder = (struct recorder *)&recorded; // never looked into
    begin(r);
    step_for(r, LADDER_RUNNING, REASON_NONE, 10);
    step_for(r, LADDER_HOLD, REASON_JOINTS_STALE, 11);
    step_for(r, LADDER_RUNNING, REASON_NONE, 12);
    step_for(r, LADDER_STOPPING, REASON_OPERATOR, 13);
    step_for(r, LADDER_STOPPED, REASON_OPERATOR, 14);
    assert_true(eventually_lines(LOG_WARN, "step 14 to STOPPED", 1));
    nap(LOOKS);
    assert_int_equal(recorded.n, 0);
    step_for(r, LADDER_ESTOP, REASON_JOINTS_JUMP, 20);
    assert_true(eventually_lines(LOG_WARN, "step 20 to ESTOP", 1));
    nap(LOOKS);
    assert_int_equal(recorded.n, 1);
    assert_int_equal(recorded.reason, REASON_JOINTS_JUMP);
    assert_int_equal(recorded.at_ns, 5 * NS_PER_S - 3 * NS_PER_S / 100);
    atomic_store(&r->board.stalls, 1);
    assert_true(eventually_lines(LOG_ERROR, "the monitor cut the output", 1));
    nap(LOOKS);
    assert_int_equal(recorded.n, 2);
    assert_int_equal(recorded.reason, REASON_LOOP_STALLED);
}

// ---- what it says ----------------------------------------------------------------------------

static void tells_each_step_once(void **state)
{
    struct rig *r = *state;
    begin(r);
    step(r, LADDER_WAITING);
    step(r, LADDER_READY);
    assert_true(eventually_lines(LOG_INFO, "step 1 to READY", 1));
    assert_int_equal(lines(LOG_INFO, "step 0 to WAITING"), 1);
    step(r, LADDER_APPROACH);
    step(r, LADDER_HOLD); // of one tick
    step(r, LADDER_APPROACH);
    assert_true(eventually_lines(LOG_INFO, "step 4 to APPROACH", 1));
    nap(LOOKS);
    assert_int_equal(cancelled, 0); // a HOLD, as a disarm, is none of a swap's business
    step(r, LADDER_STOPPING);
    step(r, LADDER_STOPPED);
    assert_true(eventually_lines(LOG_WARN, "step 6 to STOPPED", 1));
    nap(LOOKS);
    assert_int_equal(cancelled, 2);
    step(r, LADDER_ESTOP);
    assert_true(eventually_lines(LOG_WARN, "step 7 to ESTOP", 1));
    nap(LOOKS);
    assert_int_equal(cancelled, 3);
    assert_int_equal(lines(LOG_WARN, "step 3 to HOLD"), 1);
    assert_int_equal(lines(LOG_WARN, "step 5 to STOPPING"), 1);
    nap(LOOKS);
    assert_int_equal(lines(LOG_INFO, "step") + lines(LOG_WARN, "step"), 8);
}

static void tells_of_steps_it_missed(void **state)
{
    struct rig *r = *state;
    for (int i = 0; i < BOARD_EVENTS + 5; i++)
        step(r, i % 2 ? LADDER_READY : LADDER_WAITING);
    begin(r);
    assert_true(eventually_lines(LOG_WARN, "5 steps of the ladder came too fast", 1));
    assert_int_equal(lines(LOG_INFO, "step 4 to"), 0);
    assert_int_equal(lines(LOG_INFO, "step 5 to"), 1);
    assert_int_equal(lines(LOG_INFO, "step 6 to"), 1);
    assert_int_equal(lines(LOG_INFO, "step "), 2); // the rest is more of the same
    assert_true(eventually_lines(LOG_INFO, "READY -> WAITING: 7 more", 1));
    assert_true(eventually_lines(LOG_INFO, "WAITING -> READY: 7 more", 1));
    for (int i = 0; i < BOARD_EVENTS; i++) // as many as there is room for
        step(r, LADDER_WAITING);
    assert_true(eventually_lines(LOG_INFO, "WAITING -> WAITING: 15 more", 1));
    assert_int_equal(lines(LOG_WARN, "too fast"), 1);
}

// ---- at most one line a second of a kind; looks at times of our own --------------------------

struct looks {
    struct rig *r;
    struct watch w;
    ns_t now;
};

static void look_begin(struct looks *l, struct rig *r)
{
    memset(l, 0, sizeof *l);
    l->r = r;
    l->w.src = &r->src;
    l->now = 100 * NS_PER_S;
}

static void look(struct looks *l, ns_t later)
{
    l->now += later;
    l->w.report = l->r->report;
    say_events(&l->w, l->now);
}

// 20 Hz for 10 s, between RUNNING and HOLD: 200 steps to each.
static void chatter_is_two_lines_a_second(void **state)
{
    static struct looks l;
    struct rig *r = *state;
    look_begin(&l, r);
    step(r, LADDER_RUNNING);
    look(&l, 0);
    for (int i = 0; i < 200; i++) {
        step(r, LADDER_HOLD);
        look(&l, 25 * NS_PER_MS);
        if (i == 0)
            assert_int_equal(lines(LOG_WARN, "step 1 to HOLD"), 1); // at once
        step(r, LADDER_RUNNING);
        look(&l, 25 * NS_PER_MS);
    }
    assert_int_equal(lines(LOG_WARN, "to HOLD"), 10);
    assert_int_equal(lines(LOG_WARN, "to HOLD [19 more like it"), 9);
    assert_int_equal(lines(LOG_INFO, "to RUNNING"), 11); // INIT -> RUNNING is another
    step(r, LADDER_HOLD);
    step(r, LADDER_STOPPING);
    step(r, LADDER_STOPPED);
    look(&l, 25 * NS_PER_MS);
    assert_int_equal(lines(LOG_WARN, "to STOPPING"), 1);
    assert_int_equal(lines(LOG_WARN, "to STOPPED"), 1);
    assert_int_equal(lines(LOG_WARN, "more since"), 0);
    look(&l, NS_PER_S);
    assert_int_equal(lines(LOG_WARN, "RUNNING -> HOLD: "), 0); // told with its line
    assert_int_equal(lines(LOG_WARN, "to HOLD [19 more like it"), 10);
    assert_int_equal(lines(LOG_INFO, "HOLD -> RUNNING: 19 more"), 1);
    look(&l, 10 * NS_PER_S);
    assert_int_equal(lines(LOG_INFO, ""), 12);
    assert_int_equal(lines(LOG_WARN, ""), 13);
}

// Faster than the board can hold: that, too, is told once a second, and nothing is lost of it.
static void missed_steps_are_told_once_a_second(void **state)
{
    static struct looks l;
    struct rig *r = *state;
    look_begin(&l, r);
    for (int i = 0; i < 41; i++) {
        for (int k = 0; k < BOARD_EVENTS + 4; k++)
            step(r, k % 2 ? LADDER_RUNNING : LADDER_HOLD);
        look(&l, 50 * NS_PER_MS);
    }
    assert_int_equal(lines(LOG_WARN, "too fast"), 3);
    assert_int_equal(lines(LOG_WARN, "4 steps of the ladder came too fast"), 1);
    assert_int_equal(lines(LOG_WARN, "80 steps of the ladder came too fast"), 2);
}

// The end is not waited for: what was left out is told then.
static void the_rest_is_told_at_the_end(void **state)
{
    struct rig *r = *state;
    for (int i = 0; i < 5; i++)
        step(r, i % 2 ? LADDER_HOLD : LADDER_RUNNING);
    step(r, LADDER_READY);
    r->src.seconds = 0.02;
    begin(r);
    assert_int_equal(ended(r), 0);
    assert_int_equal(lines(LOG_WARN, "RUNNING -> HOLD: 1 more"), 1);
    assert_int_equal(lines(LOG_INFO, "HOLD -> RUNNING: 1 more"), 1);
    assert_int_equal(lines(LOG_INFO, "ends on its time limit"), 1);
}

// Also a step that comes while it waits for rest.
static void an_emergency_stop_on_the_way_to_rest_is_told(void **state)
{
    struct rig *r = *state;
    step(r, LADDER_RUNNING);
    begin(r);
    assert_true(eventually_lines(LOG_INFO, "step 0 to RUNNING", 1));
    pthread_kill(r->thread, SIGTERM);
    assert_int_equal(eventually_requests(r), BOARD_DISARM);
    r->report.at_rest = true;
    step(r, LADDER_ESTOP);
    assert_int_equal(ended(r), 0);
    assert_int_equal(lines(LOG_WARN, "step 1 to ESTOP"), 1);
}

static void explains_a_wait_after_a_while(void **state)
{
    struct rig *r = *state;
    ns_t since = clock_now_ns();
    in_mode(r, LADDER_WAITING, REASON_JOINTS_MISSING);
    begin(r);
    assert_true(
        eventually_lines(LOG_WARN, "WAITING (JOINTS_MISSING): joints come at", 1));
    assert_true(line[0].at_ns - since >= PATIENCE);
    assert_true(eventually_lines(LOG_WARN, "JOINTS_MISSING", 2));
    assert_true(line[1].at_ns - line[0].at_ns >= SAY_PERIOD);
    in_mode(r, LADDER_READY, REASON_NONE); // what does not wait is not explained
    nap(PATIENCE + SAY_PERIOD + LOOKS);
    assert_in_range(lines(LOG_WARN, ""), 2, 3);
    since = clock_now_ns();
    in_mode(r, LADDER_APPROACH, REASON_NO_CHUNK);
    assert_true(eventually_lines(LOG_WARN, "APPROACH (NO_CHUNK): joints come at", 1));
    assert_true(line[n_lines - 1].at_ns - since >= PATIENCE);
    in_mode(r, LADDER_WAITING, REASON_INTERNAL);
    nap(PATIENCE + SAY_PERIOD + LOOKS);
    assert_int_equal(lines(LOG_WARN, "INTERNAL"), 0);
}

static void publishes_once_a_second(void **state)
{
    struct rig *r = *state;
    ns_t since = clock_now_ns();
    in_mode(r, LADDER_WAITING, REASON_STARTING);
    begin(r);
    nap(NS_PER_S - LOOKS - 5 * NS_PER_MS);
    if (clock_now_ns() - since < NS_PER_S) // not on a machine that was away
        assert_int_equal(published, 0);
    assert_true(
        eventually_lines(LOG_WARN, "joints come at 30 Hz", 1)); // and hands rates on
    assert_in_range(published, 1, 1 + (clock_now_ns() - since) / NS_PER_S);
}

// ---- the end ---------------------------------------------------------------------------------

static void ends_at_rest(void **state)
{
    struct rig *r = *state;
    in_mode(r, LADDER_RUNNING, REASON_NONE);
    begin(r);
    nap(LOOKS);
    pthread_kill(r->thread, SIGHUP); // there is nothing to read again
    nap(LOOKS);
    assert_int_equal(r->board.requests, 0);
    pthread_kill(r->thread, SIGTERM);
    assert_int_equal(eventually_requests(r), BOARD_DISARM);
    in_mode(r, LADDER_DISARMING, REASON_OPERATOR);
    nap(LOOKS);
    assert_int_equal(lines(LOG_INFO, "ends on"), 0);
    in_mode(r, LADDER_READY, REASON_NONE);
    assert_int_equal(ended(r), 0);
    assert_int_equal(lines(LOG_INFO, "ends on Terminated, arm at rest"), 1);
}

static void says_75_when_not_at_rest(void **state)
{
    struct rig *r = *state;
    in_mode(r, LADDER_RUNNING, REASON_NONE);
    begin(r);
    nap(LOOKS);
    ns_t since = clock_now_ns();
    pthread_kill(r->thread, SIGINT);
    assert_int_equal(ended(r), 75);
    ns_t took = r->ended_ns - since; // V / A is nothing here: the second more
    assert_true(took >= NS_PER_S);
    assert_int_equal(lines(LOG_WARN, "ends on Interrupt, arm NOT yet at rest"), 1);
}

static void rest_is(void **state)
{
    (void)state;
    for (int m = LADDER_INIT; m < LADDER_STATES; m++) {
        const struct loop_report p = {.mode = (enum ladder_state)m};
        bool moves = m == LADDER_APPROACH || m == LADDER_RUNNING || m == LADDER_HOLD ||
                     m == LADDER_STOPPING || m == LADDER_DISARMING ||
                     m == LADDER_HOMING || m == LADDER_ESTOP;
        const struct loop_report resting = {.mode = LADDER_ESTOP, .at_rest = true};
        assert_int_equal(at_rest(&p), !moves);
        assert_true(at_rest(&resting));
    }
}

static void rest_limit_follows_the_limits(void **state)
{
    struct rig *r = *state;
    struct guard_limits *l = &r->limits;
    assert_in_range(rest_limit(l), NS_PER_S, NS_PER_S + NS_PER_MS);
    l->velocity[1] = 2;
    l->acceleration[1] = 0.5;
    assert_int_equal(rest_limit(l), 5 * NS_PER_S); // 2 / 0.5 and 1 more
    l->stop_acceleration[1] = 0.25;
    assert_int_equal(rest_limit(l), 9 * NS_PER_S); // the lower of the two
    l->jerk[1] = 0.125;
    assert_int_equal(rest_limit(l), 13 * NS_PER_S); // 2 * 0.25 / 0.125
    l->stop_acceleration[1] = 1e-9;
    assert_int_equal(rest_limit(l), 3601 * NS_PER_S);
    l->n = 0;
    assert_int_equal(rest_limit(l), NS_PER_S);
}

static void ends_on_its_time_limit(void **state)
{
    struct rig *r = *state;
    ns_t since = clock_now_ns();
    r->src.seconds = 0.2;
    in_mode(r, LADDER_WAITING, REASON_STARTING);
    begin(r);
    assert_int_equal(ended(r), 0);
    assert_true(r->ended_ns - since >= 200 * NS_PER_MS);
    assert_int_equal(lines(LOG_INFO, "ends on its time limit, arm at rest"), 1);
}

static void tells_the_manager_that_it_stops(void **state)
{
    struct rig *r = *state;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char text[64] = "";
    snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "actd-watch-%d", (int)getpid());
    int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(at.sun_path + 1));
    assert_int_equal(bind(s, (struct sockaddr *)&at, size), 0);
    at.sun_path[0] = '@';
    setenv("NOTIFY_SOCKET", at.sun_path, 1);
    assert_true(watch_under_manager());
    watchdog_init(&r->dog);
    r->src.seconds = 0.5; // a first look comes late on a busy machine
    in_mode(r, LADDER_READY, REASON_NONE);
    begin(r);
    assert_int_equal(ended(r), 0);
    unsetenv("NOTIFY_SOCKET");
    assert_true(recv(s, text, sizeof text - 1, MSG_DONTWAIT) > 0);
    assert_string_equal(text, "READY=1");
    memset(text, 0, sizeof text);
    assert_true(recv(s, text, sizeof text - 1, MSG_DONTWAIT) > 0);
    assert_string_equal(text, "STOPPING=1");
    watchdog_end(&r->dog);
    close(s);
}

static void knows_its_manager(void **state)
{
    char pid[32];
    (void)state;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("SYSTEMD_EXEC_PID");
    assert_false(watch_under_manager());
    snprintf(pid, sizeof pid, "%d",
             (int)getppid()); // of the desktop that started a shell
    setenv("SYSTEMD_EXEC_PID", pid, 1);
    assert_false(watch_under_manager());
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("SYSTEMD_EXEC_PID", pid, 1);
    assert_true(watch_under_manager());
    unsetenv("SYSTEMD_EXEC_PID");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(arms_once_and_only_when_ready),
        TEST(does_not_miss_that_it_armed),
        TEST(does_not_arm_after_a_stop),
        TEST(does_not_arm_unasked),
        TEST(refuses_a_strange_pose_by_name),
        TEST(a_pose_that_is_no_number_is_strange),
        TEST(any_pose_without_a_threshold_or_statistics),
        TEST(a_fault_is_recorded),
        TEST(tells_each_step_once),
        TEST(tells_of_steps_it_missed),
        TEST(chatter_is_two_lines_a_second),
        TEST(missed_steps_are_told_once_a_second),
        TEST(the_rest_is_told_at_the_end),
        TEST(an_emergency_stop_on_the_way_to_rest_is_told),
        TEST(explains_a_wait_after_a_while),
        TEST(publishes_once_a_second),
        TEST(ends_at_rest),
        TEST(says_75_when_not_at_rest),
        TEST(rest_is),
        TEST(rest_limit_follows_the_limits),
        TEST(ends_on_its_time_limit),
        TEST(tells_the_manager_that_it_stops),
        cmocka_unit_test(knows_its_manager),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
