// The first difference between what was recorded and what came out, in words.
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "actd/v1/joint_command.pb-c.h"
#include "daemon/replay_impl.h"

enum kind { U64, I64, U32, INT, BOOLEAN, REAL, BITS, MODE, REASON, LIMIT };

struct field {
    const char *name;
    size_t at;
    enum kind kind;
};

// Of the struct `s`.
#define IN(s, f, k)                    \
    {                                  \
#f, offsetof(struct s, f), (k) \
    }

static const struct field tick_fields[] = {
    IN(tick_record, mode, MODE),
    IN(tick_record, reason, REASON),
    IN(tick_record, conditions, BITS),
    IN(tick_record, latched, BITS),
    IN(tick_record, active, BITS),
    IN(tick_record, culprit, INT),
    IN(tick_record, culprit_value, REAL),
    IN(tick_record, degraded, BOOLEAN),
    IN(tick_record, wants_inference, BOOLEAN),
    IN(tick_record, target_rc, INT),
    IN(tick_record, chunk_id, U64),
    IN(tick_record, generation, U32),
    IN(tick_record, chunk_row, REAL),
    IN(tick_record, chunk_remaining, REAL),
    IN(tick_record, chunks_blended, INT),
    IN(tick_record, published, BOOLEAN),
    IN(tick_record, gate, INT),
    IN(tick_record, sequence, U64),
    IN(tick_record, margin_ns, I64),
    IN(tick_record, in.tick, U64),
    IN(tick_record, in.now_ns, I64),
    IN(tick_record, in.lateness_ns, I64),
    IN(tick_record, in.last_work_ns, I64),
    IN(tick_record, in.made_ns, I64),
    IN(tick_record, in.reported_ns, I64),
    IN(tick_record, in.joint_sample, U64),
    IN(tick_record, in.joint_sample_new, BOOLEAN),
    IN(tick_record, in.joints_refused_in_a_row, U32),
    IN(tick_record, in.joints_refused_for, INT),
    IN(tick_record, in.joints_refused_joint, INT),
    IN(tick_record, in.joints_refused_value, REAL),
    IN(tick_record, in.joints_slow, BOOLEAN),
    IN(tick_record, in.chunks_before, U64),
    IN(tick_record, in.chunks_taken, U32),
    IN(tick_record, in.requests, U32),
    IN(tick_record, in.stalls, U32),
    IN(tick_record, in.policy_failures, U32),
    IN(tick_record, in.inferring, BOOLEAN),
    IN(tick_record, in.starved, INT),
    IN(tick_record, in.started, BOOLEAN),
    IN(tick_record, in.lost_command, U64),
    IN(tick_record, in.room, BOOLEAN),
};

// In the order in which they are computed.
static const struct field joint_fields[] = {
    IN(tick_joint, measured, REAL),  IN(tick_joint, measured_vel, REAL),
    IN(tick_joint, target, REAL),    IN(tick_joint, target_vel, REAL),
    IN(tick_joint, seam, REAL),      IN(tick_joint, wanted, REAL),
    IN(tick_joint, commanded, REAL), IN(tick_joint, commanded_vel, REAL),
    IN(tick_joint, limit, LIMIT),
};

static const struct field camera_fields[] = {
    IN(tick_camera, received_ns, I64),      IN(tick_camera, changed_ns, I64),
    IN(tick_camera, corrupt_in_a_row, U32), IN(tick_camera, refused_in_a_row, U32),
    IN(tick_camera, same_in_a_row, U32),    IN(tick_camera, slow, BOOLEAN),
};

static const struct field input_fields[] = {
    IN(tape_input, outcome, INT),      IN(tape_input, verdict, INT),
    IN(tape_input, joint_sample, U64), IN(tape_input, capture_ns, I64),
    IN(tape_input, at_ns, I64),        IN(tape_input, armed, BOOLEAN),
    IN(tape_input, by_ns, I64),        IN(tape_input, bytes, U64),
    IN(tape_input, number, U64),       IN(tape_input, kept, BOOLEAN),
    IN(tape_input, more, BOOLEAN),
};

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

// ---- one field -------------------------------------------------------------------------------

static size_t width(enum kind k)
{
    switch (k) {
    case U32:
        return sizeof(uint32_t);
    case INT:
    case MODE:
    case REASON:
    case LIMIT:
        return sizeof(int);
    case BOOLEAN:
        return sizeof(bool);
    default:
        return sizeof(uint64_t);
    }
}

static double real(const void *p)
{
    double v;

    memcpy(&v, p, sizeof v);
    return v;
}

static bool equal(const struct field *f, const void *a, const void *b, double tolerance)
{
    if (memcmp(a, b, width(f->kind)) == 0)
        return true;
    if (f->kind != REAL || tolerance <= 0)
        return false;
    if (isnan(real(a)) || isnan(real(b)))
        return isnan(real(a)) && isnan(real(b));
    return fabs(real(a) - real(b)) <= tolerance;
}

static const char *limit_name(int limit)
{
    static const char *const name[] = {"none", "position", "velocity", "acceleration",
                                       "jerk"};

    return limit >= 0 && limit < GUARD_LIMITS ? name[limit] : "?";
}

static const char *show(const struct field *f, const void *p, char buf[48])
{
    uint64_t u64 = 0;
    uint32_t u32 = 0;
    int i = 0;

    memcpy(width(f->kind) == 8 ? (void *)&u64 : (void *)&u32, p, width(f->kind));
    memcpy(&i, &u32, sizeof i);
    switch (f->kind) {
    case REAL:
        snprintf(buf, 48, "%.17g", real(p));
        break;
    case I64:
        snprintf(buf, 48, "%lld", (long long)u64);
        break;
    case U64:
        snprintf(buf, 48, "%llu", (unsigned long long)u64);
        break;
    case BITS:
        snprintf(buf, 48, "0x%llx", (unsigned long long)u64);
        break;
    case U32:
        snprintf(buf, 48, "%u", u32);
        break;
    case INT:
        snprintf(buf, 48, "%d", i);
        break;
    case BOOLEAN:
        return (u32 & 1) ? "true" : "false";
    case MODE:
        return ladder_state_name((enum ladder_state)i);
    case REASON:
        return ladder_reason_name((enum ladder_reason)i);
    case LIMIT:
        return limit_name(i);
    }
    return buf;
}

// Bit by bit: 0 is not -0, and a NaN is itself.
static bool same(double a, double b)
{
    uint64_t x, y;

    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y;
}

static const void *at(const void *base, size_t offset)
{
    return (const unsigned char *)base + offset;
}

// The first of n fields that differs, of whom (a joint, a camera; may be ""): "joint 'x': wanted: 1,
// now 2".
static bool differs(const struct field *f, int n, const void *then, const void *now,
                    double tolerance, const char *whose, char text[400])
{
    char a[48], b[48];

    for (int i = 0; i < n; i++) {
        const void *p = at(then, f[i].at), *q = at(now, f[i].at);

        if (equal(&f[i], p, q, tolerance))
            continue;
        snprintf(text, 400, "%s%s: then %s, now %s", whose, f[i].name, show(&f[i], p, a),
                 show(&f[i], q, b));
        return true;
    }
    return false;
}

// ---- records ---------------------------------------------------------------------------------

bool replay_compare_tick(const struct replay_robot *robot, const struct tick_record *then,
                         const struct tick_record *now, double tolerance_rad,
                         char text[400])
{
    char whose[120];

    // Field by field over all joints: what comes first in a tick is told first.
    for (int f = 0; f < COUNT(joint_fields); f++)
        for (int j = 0; j < then->joints; j++) {
            snprintf(whose, sizeof whose, "joint '%.80s': ", robot->joint[j]);
            if (differs(&joint_fields[f], 1, &then->joint[j], &now->joint[j],
                        tolerance_rad, whose, text))
                return true;
        }
    if (differs(tick_fields, COUNT(tick_fields), then, now, tolerance_rad, "", text))
        return true;
    for (int c = 0; c < then->cameras; c++) {
        snprintf(whose, sizeof whose, "camera '%.80s': ", robot->camera[c].name);
        if (differs(camera_fields, COUNT(camera_fields), &then->in.camera[c],
                    &now->in.camera[c], tolerance_rad, whose, text))
            return true;
    }
    return false;
}

bool replay_compare_input(const struct replay_robot *robot, const struct tape_input *then,
                          const struct tape_input *now, char text[400])
{
    char whose[160];

    snprintf(whose, sizeof whose,
             "input %llu of %.80s: ", (unsigned long long)then->number,
             then->stream == 0 ? "joint_states" : robot->camera[then->stream - 1].name);
    return differs(input_fields, COUNT(input_fields), then, now, 0, whose, text);
}

void replay_compare_bytes(const struct replay_robot *robot, const struct tape_input *then,
                          const struct tape_input *now, char text[400])
{
    const char *whose =
        then->stream == 0 ? "joint_states" : robot->camera[then->stream - 1].name;

    if (then->check == now->check)
        snprintf(text, 400, "input %llu of %.80s: the bytes of its record",
                 (unsigned long long)then->number, whose);
    else
        snprintf(
            text, 400,
            "input %llu of %.80s: its bytes are not those that came (then %016llx, now "
            "%016llx): the recording was changed",
            (unsigned long long)then->number, whose, (unsigned long long)then->check,
            (unsigned long long)now->check);
}

bool replay_compare_rows(const struct replay_robot *robot, const struct tape_chunk *c,
                         const float *then, const float *now, double tolerance_rad,
                         char text[400])
{
    for (int row = 0; row < c->rows; row++)
        for (int j = 0; j < c->joints; j++) {
            size_t i = (size_t)row * (size_t)c->joints + (size_t)j;
            double a = (double)then[i], b = (double)now[i];

            if (same(a, b) || (tolerance_rad > 0 && fabs(a - b) <= tolerance_rad))
                continue;
            snprintf(text, 400, "chunk %llu, row %d, joint '%.80s': then %.9g, now %.9g",
                     (unsigned long long)c->number, row, robot->joint[j], a, b);
            return true;
        }
    return false;
}

// ---- commands --------------------------------------------------------------------------------

struct pair {
    const char *name;
    double then, now;
    bool exact; // whatever the tolerance
};

static bool command_head(const Actd__V1__JointCommand *a, const Actd__V1__JointCommand *b,
                         double tolerance, char text[400])
{
    const struct pair pairs[] = {
        {"sequence", (double)a->sequence, (double)b->sequence, true},
        {"tick", (double)a->tick, (double)b->tick, true},
        {"mode", a->mode, b->mode, true},
        {"reason", a->reason, b->reason, true},
        {"limit", a->limit, b->limit, true},
        {"time_to_live_ns", (double)a->time_to_live_ns, (double)b->time_to_live_ns, true},
        {"joint_state_age_ns", (double)a->joint_state_age_ns,
         (double)b->joint_state_age_ns, true},
        {"frame_age_ns", (double)a->frame_age_ns, (double)b->frame_age_ns, true},
        {"chunk_id", (double)a->chunk_id, (double)b->chunk_id, true},
        {"chunk_row", a->chunk_row, b->chunk_row, false},
        {"deadline_margin_ns", (double)a->deadline_margin_ns,
         (double)b->deadline_margin_ns, true},
        {"wakeup_lateness_ns", (double)a->wakeup_lateness_ns,
         (double)b->wakeup_lateness_ns, true},
        {"chunks_blended", a->chunks_blended, b->chunks_blended, true},
        {"joints", (double)a->n_joints, (double)b->n_joints, true},
    };

    for (int i = 0; i < COUNT(pairs); i++) {
        double by = fabs(pairs[i].then - pairs[i].now);

        if (by == 0 || (!pairs[i].exact && by <= tolerance))
            continue;
        snprintf(text, 400, "%s: then %.17g, now %.17g", pairs[i].name, pairs[i].then,
                 pairs[i].now);
        return true;
    }
    return false;
}

static bool command_joint(const Actd__V1__Joint *a, const Actd__V1__Joint *b,
                          double tolerance, double *largest, char text[400])
{
    const struct pair pairs[] = {{"position", a->position, b->position, false},
                                 {"velocity", a->velocity, b->velocity, false},
                                 {"wanted", a->wanted, b->wanted, false},
                                 {"limit", a->limit, b->limit, true}};
    bool any = false;

    *largest = fmax(*largest, fabs(a->position - b->position));
    for (int i = 0; i < COUNT(pairs) && !any; i++) {
        if (same(pairs[i].then, pairs[i].now) ||
            (!pairs[i].exact && fabs(pairs[i].then - pairs[i].now) <= tolerance))
            continue;
        snprintf(text, 400, "joint '%.80s': %s: then %.17g, now %.17g", a->name,
                 pairs[i].name, pairs[i].then, pairs[i].now);
        any = true;
    }
    return any;
}

static bool compare_commands(const Actd__V1__JointCommand *a,
                             const Actd__V1__JointCommand *b, double tolerance,
                             double *largest, char text[400])
{
    char further[400] = ""; // only the first is told
    bool any = false;

    for (size_t j = 0; j < a->n_joints && j < b->n_joints; j++)
        if (command_joint(a->joints[j], b->joints[j], tolerance, largest,
                          any ? further : text))
            any = true;
    return any || command_head(a, b, tolerance, text);
}

bool replay_compare_command(const void *then, size_t n_then, const void *now,
                            size_t n_now, double tolerance_rad, double *largest_rad,
                            char text[400])
{
    Actd__V1__JointCommand *a = NULL, *b = NULL;
    bool any = true;

    if (n_now == 0) {
        snprintf(text, 400, "none left the outbox this time");
        return true;
    }
    a = actd__v1__joint_command__unpack(NULL, n_then, then);
    b = actd__v1__joint_command__unpack(NULL, n_now, now);
    if (a && b)
        any = compare_commands(a, b, tolerance_rad, largest_rad, text);
    else
        snprintf(text, 400, "what was recorded is no command");
    if (a)
        actd__v1__joint_command__free_unpacked(a, NULL);
    if (b)
        actd__v1__joint_command__free_unpacked(b, NULL);
    return any;
}
