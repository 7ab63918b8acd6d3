#include "daemon/watch.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/arming.h"
#include "daemon/blackbox.h"
#include "daemon/explain.h"
#include "daemon/log.h"
#include "daemon/lograte.h"
#include "daemon/monitor.h"
#include "daemon/recorder.h"
#include "daemon/swap.h"
#include "daemon/watchdog.h"

#ifndef LOOK_MS // a test has less time
// Between looks at signals and at the board.
#define LOOK_MS 50
// To come to rest after SIGTERM, more where limits are low.
#define REST_LEAST (3 * NS_PER_S)
// In a waiting state before it is explained.
#define PATIENCE (2 * NS_PER_S)
// Between repeats of why it waits or does not arm.
#define SAY_PERIOD (5 * NS_PER_S)
#endif
// Between lines on steps that were missed.
#define SAY_MISSED LOGRATE_PERIOD_NS

struct watch {
    const struct watch_source *src;
    struct explain_source explain;
    struct loop_report report;
    uint64_t events_said;
    struct lograte rate;
    uint64_t missed; // steps that the board had lost when we looked, not yet told
    ns_t missed_told_ns;
    ns_t waiting_since_ns, said_wait_ns, said_arm_ns;
    enum ladder_reason waiting_for;
    bool armed_once;
    bool arrived, homed; // at the rest pose; and the way there is over, arrived or not
    uint32_t stalls_told;
    bool ready_told;
    uint64_t told[LADDER_REASONS]; // episodes of what is only told
};

// ---- arming ----------------------------------------------------------------------------------

bool watch_under_manager(void)
{
    const char *pid = getenv("SYSTEMD_EXEC_PID");
    return getenv("NOTIFY_SOCKET") || (pid && strtol(pid, NULL, 10) == (long)getpid());
}

// Once, when the ladder is READY and the pose is one the policy may have seen.
static void arm_when_ready(struct watch *w)
{
    char why[512];
    ns_t now = clock_now_ns();
    if (!w->src->arm || w->armed_once)
        return;
    if (w->report.mode > LADDER_READY) // armed, or stopped: not again without a restart
        w->armed_once = true;
    if (w->report.mode != LADDER_READY)
        return;
    const struct fitted *policy = swap_hold(w->src->swap);
    bool refused =
        arming_refused(w->src->cfg, policy, w->report.measured, why, sizeof why);
    swap_release(w->src->swap);
    if (!refused) {
        atomic_fetch_or(&w->src->board->requests, BOARD_ARM);
        return;
    }
    if (now - w->said_arm_ns < SAY_PERIOD)
        return;
    w->said_arm_ns = now;
    log_line(LOG_WARN, "not armed: %s", why);
}

static void home_when_ready(struct watch *w)
{
    if (w->src->home && !w->homed && w->report.mode == LADDER_READY)
        atomic_fetch_or(&w->src->board->requests, BOARD_HOME);
}

// Tells the service manager, or keeps silent; and what the loop can not record itself, that it
// was stuck.
static void look_at_loop(struct watch *w)
{
    uint32_t stalls = atomic_load(&w->src->board->stalls);

    // Repeated until it could be said: the manager's queue may be full.
    w->ready_told = w->ready_told || watchdog_say(w->src->dog, "READY=1");
    atomic_store(w->src->alive_ns, clock_now_ns());
    if (w->src->monitor == NULL)
        (void)watchdog_ping(w->src->dog, clock_now_ns(), true);
    if (stalls == w->stalls_told)
        return;
    w->stalls_told = stalls;
    if (w->src->blackbox)
        blackbox_trigger(w->src->blackbox, REASON_LOOP_STALLED);
    if (w->src->recorder)
        recorder_fault(w->src->recorder, REASON_LOOP_STALLED, clock_now_ns());
    log_line(LOG_ERROR, "the loop has not ticked for 100 ms: the monitor cut the output");
}

// ---- what it says ----------------------------------------------------------------------------

static enum log_level level_of(enum ladder_state to)
{
    bool bad = to == LADDER_HOLD || to == LADDER_STOPPING || to == LADDER_STOPPED ||
               to == LADDER_ESTOP;
    return bad ? LOG_WARN : LOG_INFO;
}

// As for the black box: a stop that somebody asked for is no fault. We may look 50 ms later, and
// the loop may have made many ticks since.
static void record_fault(struct watch *w, const struct loop_event *e)
{
    double ticks_ago = (double)(w->report.tick - e->tick);
    ns_t ago_ns = (ns_t)(ticks_ago / w->src->cfg->control.rate_hz * (double)NS_PER_S);

    if (w->src->recorder && e->reason != REASON_OPERATOR && e->reason != REASON_NONE)
        recorder_fault(w->src->recorder, e->reason, w->report.now_ns - ago_ns);
}

// What a step means for what follows, told or not.
static void heed(struct watch *w, const struct loop_event *e)
{
    char text[96];

    w->armed_once |= e->to == LADDER_APPROACH; // may be over when we look
    w->arrived |= e->from == LADDER_HOMING && e->reason == REASON_NONE;
    w->homed |= w->src->home && (e->from == LADDER_DISARMING || e->to == LADDER_STOPPED);
    // A policy that is on its way in need not be loaded to the end for an arm that stops.
    snprintf(text, sizeof text, "the arm stops (%s)", ladder_reason_name(e->reason));
    if (e->to != LADDER_STOPPING && e->to != LADDER_STOPPED && e->to != LADDER_ESTOP)
        return;
    swap_cancel(w->src->swap, text);
    record_fault(w, e);
}

static void say_event(struct watch *w, const struct loop_event *e, ns_t now)
{
    char text[512], more[64] = "";
    uint32_t left_out;

    if (!lograte_step(&w->rate, e->from, e->to, e->reason, now, &left_out))
        return;
    explain_event(&w->explain, &w->report, e, text, sizeof text);
    if (left_out > 0)
        snprintf(more, sizeof more, " [%u more like it since it was last told]",
                 left_out);
    log_line(level_of(e->to), "%s%s", text, more);
}

// What was left out and has no further line that could tell of it.
static void say_left_out(struct watch *w, ns_t now)
{
    enum ladder_state from, to;
    enum ladder_reason reason;
    uint32_t n;

    while (lograte_silent(&w->rate, now, &from, &to, &reason, &n))
        log_line(level_of(to), "%s -> %s%s%s%s: %u more since it was last told",
                 ladder_state_name(from), ladder_state_name(to), reason ? " (" : "",
                 reason ? ladder_reason_name(reason) : "", reason ? ")" : "", n);
    if (w->missed == 0 || (w->missed_told_ns && now - w->missed_told_ns < SAY_MISSED))
        return;
    log_line(LOG_WARN, "%llu steps of the ladder came too fast to be told",
             (unsigned long long)w->missed);
    w->missed = 0;
    w->missed_told_ns = now;
}

static void say_events(struct watch *w, ns_t now)
{
    uint64_t from = w->events_said, to = w->report.events;

    if (to - from > BOARD_EVENTS) {
        w->missed += to - from - BOARD_EVENTS;
        from = to - BOARD_EVENTS;
    }
    for (; from < to; from++) {
        const struct loop_event *e = &w->report.event[from % BOARD_EVENTS];

        heed(w, e);
        say_event(w, e, now);
    }
    w->events_said = to;
    say_left_out(w, now);
}

// What changes nothing must still be said by name: which stream, and what to do.
static void say_told(struct watch *w)
{
    static const enum ladder_reason only[] = {REASON_JOINTS_SLOW, REASON_CAMERA_SLOW,
                                              REASON_CAMERA_FROZEN};
    char text[512];

    for (size_t i = 0; i < sizeof only / sizeof *only; i++) {
        const struct faults *f = &w->report.faults;
        bool now = (f->active >> only[i]) & 1;

        if (!now || f->of[only[i]].episodes == w->told[only[i]])
            continue;
        explain_reason(&w->explain, &w->report, only[i], -1, 0, text, sizeof text);
        if (!text[0])
            continue; // the rate is known once a second has passed
        w->told[only[i]] = f->of[only[i]].episodes;
        log_line(LOG_WARN, "%s: %s", ladder_reason_name(only[i]), text);
    }
}

// A state that waits for something says for what, after a while and then now and again.
static void say_waiting(struct watch *w)
{
    char text[512];
    ns_t now = clock_now_ns();
    bool waits = w->report.mode == LADDER_WAITING || w->report.mode == LADDER_APPROACH;
    if (!waits || w->report.reason != w->waiting_for || w->report.reason == REASON_NONE) {
        w->waiting_for = w->report.reason;
        w->waiting_since_ns = now;
        return;
    }
    if (now - w->waiting_since_ns < PATIENCE || now - w->said_wait_ns < SAY_PERIOD)
        return;
    explain_reason(&w->explain, &w->report, w->report.reason, -1, 0, text, sizeof text);
    if (text[0])
        log_line(LOG_WARN, "%s (%s): %s", ladder_state_name(w->report.mode),
                 ladder_reason_name(w->report.reason), text);
    w->said_wait_ns = now;
}

// What `systemctl status` shows of it.
static void say_state(const struct watch *w)
{
    const struct loop_report *r = &w->report;
    char text[256];
    const struct fitted *policy = swap_hold(w->src->swap);
    snprintf(text, sizeof text, "STATUS=%s%s%s%s, policy %.63s, %llu ticks, %llu skipped",
             ladder_state_name(r->mode), r->reason == REASON_NONE ? "" : " (",
             r->reason == REASON_NONE ? "" : ladder_reason_name(r->reason),
             r->reason == REASON_NONE ? "" : ")", policy->name,
             (unsigned long long)r->ticks_run, (unsigned long long)r->skipped);
    swap_release(w->src->swap);
    watchdog_say(w->src->dog, text);
}

// ---- the end ---------------------------------------------------------------------------------

static int signal_received(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct signalfd_siginfo info;
    if (poll(&p, 1, timeout_ms) <= 0 || read(fd, &info, sizeof info) != sizeof info)
        return 0;
    return (int)info.ssi_signo == SIGHUP ? 0 : (int)info.ssi_signo;
}

static bool at_rest(const struct loop_report *r)
{
    return r->mode <= LADDER_READY || r->mode == LADDER_STOPPED ||
           (r->mode == LADDER_ESTOP && r->at_rest);
}

// The longest braking from top speed, jerk included, and a second more.
static ns_t rest_limit(const struct guard_limits *l)
{
    double worst = 0;
    for (int i = 0; i < l->n; i++) {
        double a = fmin(l->acceleration[i], l->stop_acceleration[i]);
        double ramp = l->jerk[i] > 0 ? 2 * a / l->jerk[i] : 0;
        worst = fmax(worst, l->velocity[i] / a + ramp);
    }
    ns_t limit = (ns_t)((fmin(worst, 3600) + 1) * (double)NS_PER_S);
    return limit > REST_LEAST ? limit : REST_LEAST;
}

// SIGTERM: disarm, wait until the arm rests, say why we end. 0, or the exit status if it moves.
static int come_to_rest(struct watch *w, const char *cause)
{
    ns_t limit = clock_now_ns() + rest_limit(w->src->limits);
    bool known; // a read may lose against the loop's writes
    watchdog_say(w->src->dog, "STOPPING=1");
    atomic_fetch_or(&w->src->board->requests, BOARD_DISARM); // waits for nobody
    swap_cancel(w->src->swap, "actd ends");
    do {
        poll(NULL, 0, LOOK_MS / 5);
        look_at_loop(w);
        known = slot_read(&w->src->board->report, &w->report) != 0;
        if (known)
            say_events(w, clock_now_ns());
    } while (!(known && at_rest(&w->report)) && clock_now_ns() < limit);
    bool rest = known && at_rest(&w->report);
    say_left_out(w, clock_now_ns() + LOGRATE_PERIOD_NS); // there is no later
    log_line(rest ? LOG_INFO : LOG_WARN, "ends on %s, arm %s", cause,
             rest ? "at rest" : "NOT yet at rest: the driver's time to live stops it");
    return rest ? 0 : EX_TEMPFAIL;
}

static const char *cause_to_end(const struct watch *w, ns_t begin_ns)
{
    const struct watch_source *src = w->src;
    int s = signal_received(src->signals, LOOK_MS);
    if (s)
        return strsignal(s);
    if (w->homed)
        return w->arrived ? "its arrival at the rest pose" : "a fault on the way to rest";
    if (src->seconds > 0 && (double)(clock_now_ns() - begin_ns) >= src->seconds * 1e9)
        return "its time limit";
    return NULL;
}

int watch_run(const struct watch_source *src)
{
    struct watch *w = calloc(1, sizeof *w);
    if (!w)
        return EX_OSERR;
    w->src = src;
    w->explain = (struct explain_source){.cfg = src->cfg,
                                         .board = src->board,
                                         .infer = src->infer,
                                         .bus = src->bus,
                                         .cameras = src->cameras};
    ns_t begin = clock_now_ns(), next = begin + NS_PER_S;
    const char *cause = NULL;
    while (!(cause = cause_to_end(w, begin))) {
        look_at_loop(w);
        if (slot_read(&src->board->report, &w->report)) {
            say_events(w, clock_now_ns());
            arm_when_ready(w);
            home_when_ready(w);
            say_waiting(w);
        }
        if (clock_now_ns() < next)
            continue;
        status_publish(src->status);
        status_received_hz(src->status, w->explain.received_hz);
        say_told(w);
        say_state(w);
        next += NS_PER_S;
    }
    bool short_of_home = src->home && !w->arrived; // before it is disarmed on its way
    int r = come_to_rest(w, cause);
    if (r == 0 && short_of_home)
        r = EX_TEMPFAIL;
    free(w);
    return r;
}
