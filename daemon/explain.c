#include "daemon/explain_impl.h"

#include <math.h>
#include <stdio.h>

#include "daemon/explain_latch.h"
#include "daemon/loop.h"

#define SLOW 0.9 // of the declared rate: below it the rate is named as a cause

static double ms_since(ns_t at, ns_t now)
{
    return now > at ? (double)(now - at) / 1e6 : 0;
}

static bool slow_joints(const struct explain_source *s)
{
    double hz = s->received_hz[0];
    return hz > 0 && hz < SLOW * s->cfg->joint_state.rate_hz;
}

static void joints_rate(const struct explain_source *s, char *text, size_t size)
{
    snprintf(text, size,
             "joint states come at %.1f Hz, but joint_state.rate_hz says %g: correct "
             "the one that is wrong",
             s->received_hz[0], s->cfg->joint_state.rate_hz);
}

static void camera_rate(const struct explain_source *s, int i, char *text, size_t size)
{
    const struct config_camera *c = &s->cfg->camera[i];
    snprintf(text, size,
             "frames of camera %s come at %.1f Hz, but cameras.%s.rate_hz says %g: "
             "correct the one that is wrong",
             c->name, s->received_hz[i + 1], c->name, c->rate_hz);
}

// The first stream of the kind that comes more slowly than declared.
void explain_slow(const struct explain_source *s, enum ladder_reason reason, char *text,
                  size_t size)
{
    if (reason == REASON_JOINTS_SLOW) {
        if (slow_joints(s))
            joints_rate(s, text, size);
        return;
    }
    for (int i = 0; i < s->cfg->n_cameras; i++) {
        double hz = s->received_hz[i + 1];
        if (hz > 0 && hz < SLOW * s->cfg->camera[i].rate_hz) {
            camera_rate(s, i, text, size);
            return;
        }
    }
}

// So slow that what came last is no longer fresh when the next one comes, however steady it is:
// the count of fresh ticks begins anew each time. Any other rate delays nothing.
static bool never_fresh(double hz, double declared_hz, struct loop_bounds (*bounds)(ns_t))
{
    return hz > 0 && declared_hz > 0 &&
           (double)NS_PER_S / hz > (double)bounds(clock_period_ns(declared_hz)).degraded;
}

static bool blames_a_rate(const struct explain_source *s, char *text, size_t size)
{
    if (never_fresh(s->received_hz[0], s->cfg->joint_state.rate_hz, loop_joint_bounds)) {
        joints_rate(s, text, size);
        return true;
    }
    for (int i = 0; i < s->cfg->n_cameras; i++)
        if (never_fresh(s->received_hz[i + 1], s->cfg->camera[i].rate_hz,
                        loop_camera_bounds)) {
            camera_rate(s, i, text, size);
            return true;
        }
    return false;
}

// What has interrupted the count last, where that is why it is not over.
static void interrupted(const struct explain_source *s, const struct loop_report *now,
                        char *text, size_t size)
{
    static const enum ladder_reason away[] = {REASON_JOINTS_MISSING, REASON_JOINTS_STALE,
                                              REASON_CAMERA_MISSING, REASON_CAMERA_STALE};
    uint64_t least = (uint64_t)s->cfg->safety.fresh_ticks;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof away / sizeof *away; i++) {
        uint64_t ago = now->tick - now->faults.of[away[i]].last_tick;
        if (now->faults.of[away[i]].episodes == 0 || ago >= least)
            continue;
        least = ago;
        snprintf(text, size, "; the count began anew %llu ticks ago (%s)",
                 (unsigned long long)ago, ladder_reason_name(away[i]));
    }
}

static void starting(const struct explain_source *s, const struct loop_report *now,
                     char *text, size_t size)
{
    int ticks = s->cfg->safety.fresh_ticks;
    char lasts[32] = "", anew[80];

    if (blames_a_rate(s, text, size))
        return;
    if (s->cfg->control.rate_hz > 0)
        snprintf(lasts, sizeof lasts, ", %.3g s", ticks / s->cfg->control.rate_hz);
    interrupted(s, now, anew, sizeof anew);
    snprintf(text, size,
             "waits until every stream has been fresh for %d ticks in a row%s%s", ticks,
             lasts, anew);
}

static void joints_missing(const struct explain_source *s, char *text, size_t size)
{
    if (s->board->joint_mark.refused > 0)
        snprintf(text, size,
                 "every joint state was refused: see the line on what is dropped");
    else
        snprintf(text, size,
                 "nothing yet on %s: is the driver running, and does it connect there?",
                 s->cfg->joint_state.endpoint);
}

static void joints_stale(const struct explain_source *s, const struct loop_report *now,
                         double age_ms, char *text, size_t size)
{
    struct joint_sample j;
    char come[48] = "";
    if (age_ms <= 0) {
        if (!slot_read(&s->board->joints, &j))
            return;
        age_ms = ms_since(j.capture_ns, now->now_ns);
    }
    // Beside the age, not for it: also a driver that has just stopped sent fewer.
    if (slow_joints(s))
        snprintf(come, sizeof come, ", %.1f come", s->received_hz[0]);
    snprintf(
        text, size,
        "the newest joint state is %.0f ms old (%g Hz are declared%s): is the driver "
        "still running%s?",
        age_ms, s->cfg->joint_state.rate_hz, come,
        *come ? ", and joint_state.rate_hz right" : "");
}

static void camera_missing(const struct explain_source *s, int camera, char *text,
                           size_t size)
{
    const struct config_camera *c = &s->cfg->camera[camera];
    snprintf(
        text, size,
        "nothing yet from camera %s on %s: is it running, and does it connect there?",
        c->name, c->endpoint);
}

static void camera_stale(const struct explain_source *s, int camera, double age_ms,
                         char *text, size_t size)
{
    const struct config_camera *c = &s->cfg->camera[camera];
    if (age_ms > 0)
        snprintf(text, size,
                 "no usable frame from camera %s for %.0f ms (%g Hz are declared): is it "
                 "running, and its rate_hz right?",
                 c->name, age_ms, c->rate_hz);
    else
        snprintf(
            text, size,
            "frames of camera %s cannot be decoded: send whole baseline JPEG or raw images",
            c->name);
}

// Now: the camera whose frames do not decode, else the one that has been silent longest; one
// that never spoke comes before all others.
static int silent_camera(const struct explain_source *s)
{
    int worst = 0;
    for (int i = 0; i < s->cfg->n_cameras; i++) {
        if (s->board->camera[i].corrupt_in_a_row >= BOARD_CORRUPT)
            return i;
        if (s->board->camera[i].received_ns < s->board->camera[worst].received_ns)
            worst = i;
    }
    return worst;
}

static void camera_now(const struct explain_source *s, const struct loop_report *now,
                       char *text, size_t size)
{
    if (s->cfg->n_cameras == 0)
        return;
    int i = silent_camera(s);
    const struct camera_mark *m = &s->board->camera[i];
    bool corrupt = m->corrupt_in_a_row >= BOARD_CORRUPT;
    if (m->received_ns == 0)
        camera_missing(s, i, text, size);
    else
        camera_stale(s, i, corrupt ? 0 : ms_since(m->received_ns, now->now_ns), text,
                     size);
}

static void camera(const struct explain_source *s, const struct loop_report *now,
                   enum ladder_reason reason, int index, double age_ms, char *text,
                   size_t size)
{
    if (index < 0 || index >= s->cfg->n_cameras)
        camera_now(s, now, text, size);
    else if (reason == REASON_CAMERA_MISSING)
        camera_missing(s, index, text, size);
    else
        camera_stale(s, index, age_ms, text, size);
}

static void outside(const struct explain_source *s, int joint, double value, char *text,
                    size_t size)
{
    if (joint < 0 || joint >= s->cfg->n_joints)
        return;
    const struct config_joint *j = &s->cfg->joint[joint];
    snprintf(text, size,
             "%s measured at %.4g rad, outside its position limits %.4g .. %.4g%s",
             j->name, value, j->min, j->max,
             fabs(value) > 7 ? ": does the driver publish degrees?"
                             : ": move it inside, or correct joints' position");
}

static void following(const struct explain_source *s, int joint, double value, char *text,
                      size_t size)
{
    if (joint < 0 || joint >= s->cfg->n_joints)
        return;
    const struct config_joint *j = &s->cfg->joint[joint];
    snprintf(text, size,
             "%s is %.3g rad from its command, following_error allows %g: is it "
             "blocked, or is torque off?",
             j->name, value, j->following_error);
}

static void no_chunk(const struct explain_source *s, const struct loop_report *now,
                     enum ladder_reason reason, char *text, size_t size)
{
    struct histogram_summary h = hist_summary(&s->board->chunk_latency);
    ns_t since = s->board->inferring_since_ns;

    // A stop comes after a while of HOLD: by then another inference may just have begun.
    if (reason == REASON_POLICY_SLOW && since != 0 && now->now_ns - since > h.p50_ns)
        snprintf(
            text, size,
            "the chunk in use is over and the inference for the next has run for %.0f "
            "ms: give policy.threads more cores, or the machine less to do",
            ms_since(since, now->now_ns));
    else if (reason == REASON_CHUNK_TOO_OLD)
        snprintf(text, size,
                 "the chunks there are come from frames older than inference.max_age_ms: "
                 "inference or a camera is slow (latency p50 %.0f, p99 %.0f ms)",
                 (double)h.p50_ns / 1e6, (double)h.p99_ns / 1e6);
    else
        snprintf(text, size,
                 "no chunk of actions covers this moment: inference is too slow (latency "
                 "p50 %.0f, p99 %.0f ms), has stopped, or what it makes is refused",
                 (double)h.p50_ns / 1e6, (double)h.p99_ns / 1e6);
}

static void policy_failed(const struct explain_source *s, char *text, size_t size)
{
    char why[INFER_FAILURE_MAX];
    infer_last_failure(s->infer, why);
    snprintf(text, size, "inference failed: %s", why);
}

// For the states that wait and have no event to tell.
static void outside_now(const struct explain_source *s, const struct loop_report *now,
                        char *text, size_t size)
{
    for (int i = 0; i < s->cfg->n_joints; i++)
        if (now->measured[i] < s->cfg->joint[i].min ||
            now->measured[i] > s->cfg->joint[i].max) {
            outside(s, i, now->measured[i], text, size);
            return;
        }
}

void explain_reason(const struct explain_source *s, const struct loop_report *now,
                    enum ladder_reason reason, int index, double value, char *text,
                    size_t size)
{
    text[0] = '\0';
    switch (reason) {
    case REASON_STARTING:
        starting(s, now, text, size);
        return;
    case REASON_JOINTS_MISSING:
        joints_missing(s, text, size);
        return;
    case REASON_JOINTS_STALE:
        joints_stale(s, now, value, text, size);
        return;
    case REASON_CAMERA_MISSING:
    case REASON_CAMERA_STALE:
        camera(s, now, reason, index, value, text, size);
        return;
    case REASON_NO_CHUNK:
    case REASON_POLICY_SLOW:
    case REASON_CHUNK_TOO_OLD:
        no_chunk(s, now, reason, text, size);
        return;
    case REASON_FOLLOWING_ERROR:
        following(s, index, value, text, size);
        return;
    case REASON_POLICY_FAILED:
        policy_failed(s, text, size);
        return;
    case REASON_TICK_GAP:
        snprintf(text, size,
                 "the loop itself was away for more than safety.tick_gap_ms, %g ms: a "
                 "suspended machine, a debugger, or no real-time priority",
                 s->cfg->safety.tick_gap_ms);
        return;
    case REASON_OUT_OF_LIMITS:
        if (index >= 0)
            outside(s, index, value, text, size);
        else
            outside_now(s, now, text, size);
        return;
    default:
        explain_fault(s, now, reason, index, value, text, size);
    }
}

static const char *what_next(const struct loop_event *e)
{
    bool asked_for = e->reason == REASON_OPERATOR || e->reason == REASON_ESTOP;

    switch (e->to) {
    case LADDER_STOPPED:
    case LADDER_ESTOP:
        return asked_for ? "; latched until `actctl reset`"
                         : "; latched: mend the cause, then `actctl reset`";
    case LADDER_HOLD:
        return "; decelerates, goes on if the cause passes in time";
    default:
        return "";
    }
}

void explain_event(const struct explain_source *s, const struct loop_report *now,
                   const struct loop_event *e, char *text, size_t size)
{
    char why[EXPLAIN_LATCH_TEXT];
    if (e->to == LADDER_STOPPING || e->to == LADDER_STOPPED || e->to == LADDER_ESTOP)
        explain_latching(s, now, e, why, sizeof why);
    else
        explain_reason(s, now, e->reason, e->index, e->value, why, sizeof why);
    snprintf(text, size, "%s -> %s%s%s%s%s%s%s", ladder_state_name(e->from),
             ladder_state_name(e->to), e->reason ? " (" : "",
             e->reason ? ladder_reason_name(e->reason) : "", e->reason ? ")" : "",
             why[0] ? ": " : "", why, what_next(e));
}
