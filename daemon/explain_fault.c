// Sentences for what is wrong with a value, a clock or a deadline. Streams that are absent are in
// explain.c.
#include <math.h>
#include <stdio.h>

#include "daemon/explain_impl.h"
#include "daemon/gate.h"
#include "daemon/intake.h"

static const char *joint_name(const struct explain_source *s, int joint)
{
    return joint >= 0 && joint < s->cfg->n_joints ? s->cfg->joint[joint].name : "a joint";
}

// Which camera it is now, for a state that waits and has no event: the first one that fits.
static int camera_now(const struct explain_source *s, enum ladder_reason reason, int i)
{
    for (int k = 0; i < 0 && k < s->cfg->n_cameras; k++) {
        const struct camera_mark *m = &s->board->camera[k];

        if ((reason == REASON_CAMERA_CORRUPT && m->corrupt_in_a_row >= BOARD_CORRUPT) ||
            (reason == REASON_CAMERA_INVALID && m->refused_in_a_row > 0) ||
            (reason == REASON_CAMERA_FROZEN && m->same_in_a_row >= BOARD_STUCK))
            return k;
    }
    return i >= 0 && i < s->cfg->n_cameras ? i : 0;
}

// ---- joint states ----------------------------------------------------------------------------

static void invalid(const struct explain_source *s, char *text, size_t size)
{
    struct bus_counts c = {0};

    if (s->bus)
        c = bus_counts(s->bus);
    snprintf(text, size, "%d joint states in a row were refused%s%s: mend the driver",
             INTAKE_BAD_IN_A_ROW, c.joints_refusal_text[0] ? ": " : "",
             c.joints_refusal_text);
}

static void not_finite(const struct explain_source *s, int joint, double value,
                       char *text, size_t size)
{
    if (joint < 0) { // as things are now
        joint = s->board->joint_mark.refused_joint;
        value = s->board->joint_mark.refused_value;
    }
    snprintf(text, size, "%s says %g, %d times in a row: check its encoder and driver",
             joint_name(s, joint), value, INTAKE_BAD_IN_A_ROW);
}

static void jump(const struct explain_source *s, int joint, double value, char *text,
                 size_t size)
{
    if (joint < 0) {
        joint = s->board->joint_mark.refused_joint;
        value = s->board->joint_mark.refused_value;
    }
    snprintf(text, size,
             "%s jumped to %.4g rad, further than %g times its velocity limit and "
             "safety.max_jump (%g rad) allow: two drivers on one endpoint, or an encoder "
             "that slips?",
             joint_name(s, joint), value, INTAKE_SPEED, s->cfg->safety.max_jump);
}

// ---- cameras ---------------------------------------------------------------------------------

static void camera(const struct explain_source *s, enum ladder_reason reason, int i,
                   char *text, size_t size)
{
    const char *name = s->cfg->camera[camera_now(s, reason, i)].name;
    char why[CODEC_WHY_MAX] = "";

    if (s->cameras)
        camera_last_refusal_text(s->cameras[camera_now(s, reason, i)], why);
    if (reason == REASON_CAMERA_CORRUPT)
        snprintf(text, size,
                 "frames of camera %s cannot be decoded: send whole baseline JPEG or raw "
                 "images",
                 name);
    else if (reason == REASON_CAMERA_INVALID)
        snprintf(text, size, "every frame of camera %s is refused%s%s", name,
                 why[0] ? ": " : "", why);
    else
        snprintf(text, size,
                 "camera %s sends the same picture again and again: restart it, or write "
                 "cameras.%s.frozen: ignore if the scene cannot change",
                 name, name);
}

// ---- the policy ------------------------------------------------------------------------------

static void out_of_range(const struct explain_source *s, int joint, double value,
                         char *text, size_t size)
{
    const struct config_joint *j =
        joint >= 0 && joint < s->cfg->n_joints ? &s->cfg->joint[joint] : NULL;

    if (j == NULL)
        snprintf(text, size,
                 "chunks want a joint beyond its hard_position: check the units in "
                 "policy.yaml");
    else
        snprintf(
            text, size,
            "the policy wants %s at %.4g rad, beyond its hard_position %.4g .. %.4g: "
            "check its units in policy.yaml, or widen hard_position",
            j->name, value, j->hard_min, j->hard_max);
}

// ---- deadlines and the loop ------------------------------------------------------------------

static void deadline(const struct loop_report *now, enum ladder_reason reason, char *text,
                     size_t size)
{
    static const struct {
        enum ladder_reason reason;
        enum board_budget budget;
        const char *what, *key, *remedy;
    } of[] = {
        {REASON_LATE_WAKEUPS, BOARD_WAKEUP, "ticks woke later", "wakeup_ms",
         "give the loop SCHED_FIFO and a core of its own (control.cpu)"},
        {REASON_SLOW_TICKS, BOARD_TICK, "ticks worked longer", "tick_ms",
         "lower control.rate_hz"},
        {REASON_LATE_CHUNKS, BOARD_CHUNK, "chunks came later", "chunk_latency_ms",
         "give policy.threads more cores"},
        {REASON_OLD_SENSORS, BOARD_SENSOR, "commands knew a joint state older",
         "sensor_age_ms", "let the driver publish faster"},
    };

    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const struct budget_report *b = &now->budget[of[i].budget];

        if (of[i].reason != reason)
            continue;
        snprintf(text, size,
                 "too many %s than deadlines.%s (%.4g ms; the worst %.4g "
                 "ms in tick %llu): %s, or allow more",
                 of[i].what, of[i].key, (double)b->limit_ns / 1e6,
                 (double)b->worst_ns / 1e6, (unsigned long long)b->worst_tick,
                 of[i].remedy);
    }
}

static void gate(const struct explain_source *s, int joint, double verdict, char *text,
                 size_t size)
{
    snprintf(
        text, size,
        "the last gate refused a command of %s (%s): this is a fault of actd, please "
        "report it with the black box's file",
        joint_name(s, joint), gate_verdict_name((enum gate_verdict)(int)verdict));
}

void explain_fault(const struct explain_source *s, const struct loop_report *now,
                   enum ladder_reason reason, int index, double value, char *text,
                   size_t size)
{
    switch (reason) {
    case REASON_JOINTS_INVALID:
        invalid(s, text, size);
        return;
    case REASON_JOINTS_NOT_FINITE:
        not_finite(s, index, value, text, size);
        return;
    case REASON_JOINTS_JUMP:
        jump(s, index, value, text, size);
        return;
    case REASON_JOINTS_CLOCK:
        snprintf(
            text, size,
            "the clock behind the joint states' stamps jumped by more than %d ms: keep "
            "it synchronised, or send no stamps",
            CODEC_JUMP_MS);
        return;
    case REASON_CAMERA_CORRUPT:
    case REASON_CAMERA_INVALID:
    case REASON_CAMERA_FROZEN:
        camera(s, reason, index, text, size);
        return;
    case REASON_JOINTS_SLOW:
    case REASON_CAMERA_SLOW:
        explain_slow(s, reason, text, size);
        return;
    case REASON_CAMERA_SKEW:
        snprintf(text, size,
                 "no chunk of actions covers this moment, since the cameras' frames lie "
                 "further apart than inference.max_skew_ms (%g)",
                 s->cfg->inference.max_skew_ms);
        return;
    case REASON_POLICY_OUT_OF_RANGE:
        out_of_range(s, index, value, text, size);
        return;
    case REASON_INTERNAL:
        gate(s, index, value, text, size);
        return;
    case REASON_LOOP_STALLED:
        snprintf(
            text, size,
            "the loop did not tick for 100 ms, and the monitor cut the output: what held "
            "its core? (a debugger, a suspended machine, real-time throttling)");
        return;
    case REASON_UNREACHABLE:
        snprintf(text, size,
                 "the arm has not come to where it should go in time: its goal may lie "
                 "outside the limits, or safety.approach_speed be too low");
        return;
    default:
        deadline(now, reason, text, size);
    }
}
