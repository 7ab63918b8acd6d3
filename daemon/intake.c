#include "daemon/intake_impl.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/blind.h"
#include "daemon/codec_impl.h"
#include "daemon/tape.h"

struct refusal {
    enum codec_verdict verdict;
    enum ladder_reason reason;
    int joint; // -1 = none
    double value;
};

// ---- plain ----------------------------------------------------------------------------

int intake_new(struct intake **out, const struct intake_config *cfg,
               const char *const *names, struct board *board)
{
    struct intake *in = calloc(1, sizeof *in);
    int r;

    *out = NULL;
    if (!in)
        return -ENOMEM;
    in->cfg = *cfg;
    in->board = board;
    pace_init(&in->pace, cfg->rate_hz);
    r = slot_init(&in->why, CODEC_WHY_MAX);
    if (r == 0)
        r = codec_new(&in->codec, names, cfg->joints);
    if (r != 0) {
        intake_free(in);
        return r;
    }
    atomic_store(&board->joint_mark.refused_joint, -1);
    *out = in;
    return 0;
}

void intake_free(struct intake *in)
{
    if (!in)
        return;
    codec_free(in->codec);
    slot_free(&in->why);
    free(in);
}

enum codec_verdict intake_last_refusal(const struct intake *in, char text[CODEC_WHY_MAX])
{
    enum codec_verdict v =
        (enum codec_verdict)atomic_load_explicit(&in->verdict, memory_order_relaxed);

    if (slot_read(&in->why, text) == 0)
        snprintf(text, CODEC_WHY_MAX, "%s", v ? codec_verdict_name(v) : "");
    return v;
}

struct codec *intake_codec(struct intake *in)
{
    return in->codec;
}

// ---- refusals -------------------------------------------------------------------------

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void row_is(struct intake *in, uint32_t n)
{
    in->in_a_row = n;
    // After what it is about: who sees three in a row sees why.
    atomic_store_explicit(&in->board->joint_mark.refused_in_a_row, n,
                          memory_order_release);
}

static void refuse(struct intake *in, const struct refusal *r, const char *text)
{
    struct joints_mark *m = &in->board->joint_mark;
    char sentence[CODEC_WHY_MAX] = "";

    memcpy(sentence, text, strnlen(text, sizeof sentence - 1));
    slot_write(&in->why, sentence);
    atomic_store_explicit(&in->verdict, (int)r->verdict, memory_order_relaxed);
    atomic_store_explicit(&m->refused_for, (int)r->reason, memory_order_relaxed);
    atomic_store_explicit(&m->refused_joint, r->joint, memory_order_relaxed);
    atomic_store_explicit(&m->refused_value, r->value, memory_order_relaxed);
    count(&m->refused);
    if (in->alone && r->reason == REASON_JOINTS_JUMP)
        in->in_a_row++; // the one between
    in->alone = false;
    if (r->reason != REASON_JOINTS_JUMP)
        in->agreed = 0;
    row_is(in, in->in_a_row + 1);
}

void intake_part(struct intake *in, const struct codec_part *part, ns_t now)
{
    static const struct refusal r = {CODEC_UNPARSABLE, REASON_JOINTS_INVALID, -1, 0};
    struct tape_input told = {.at_ns = now,
                              .kind = TAPE_PART,
                              .armed = atomic_load(&in->board->armed),
                              .outcome = TAPE_NONE,
                              .form = TAPE_PARTS,
                              .more = part->more};

    if (part->first) {
        told.kind = TAPE_SEVERAL_PARTS;
        told.outcome = TAPE_REFUSED;
        told.verdict = CODEC_UNPARSABLE;
        refuse(in, &r, CODEC_SEVERAL_PARTS);
    }
    tape_input(in->board->tape, &told, part->data, part->size);
}

static void refuse_form(struct intake *in, enum codec_verdict v)
{
    struct refusal r = {v, REASON_JOINTS_INVALID, -1, 0};

    if (v == CODEC_NOT_FINITE) {
        r.reason = REASON_JOINTS_NOT_FINITE;
        r.joint = codec_not_finite(in->codec, &r.value);
    }
    refuse(in, &r, codec_why(in->codec));
}

// ---- time and sense -------------------------------------------------------------------

// Fills s->capture_ns. TAPE_ACCEPTED, or what became of it.
static enum tape_outcome place_in_time(struct intake *in, int64_t stamp_wall_ns,
                                       struct joint_sample *s)
{
    struct joints_mark *m = &in->board->joint_mark;
    enum codec_time t = codec_stamp_map(&in->stamp, stamp_wall_ns, s->received_ns,
                                        !in->armed, &s->capture_ns);

    if (t == CODEC_TIME_SAME && !BLIND(BLIND_JOINTS_DUPLICATE)) {
        count(&m->duplicate);
        return TAPE_DUPLICATE;
    }
    if (t == CODEC_TIME_BACK && !BLIND(BLIND_JOINTS_ORDER)) {
        count(&m->out_of_order);
        return TAPE_OUT_OF_ORDER;
    }
    if ((t == CODEC_TIME_JUMP || t == CODEC_TIME_STEP) && BLIND(BLIND_JOINTS_CLOCK))
        return TAPE_ACCEPTED;
    if (t == CODEC_TIME_JUMP) {
        const struct refusal r = {
            codec_refuse_stamp(in->codec, &in->stamp, stamp_wall_ns, s->received_ns),
            REASON_JOINTS_CLOCK, -1, 0};

        refuse(in, &r, codec_why(in->codec));
        return TAPE_REFUSED;
    }
    if (t == CODEC_TIME_STEP)
        count(&m->clock_jumps);
    return TAPE_ACCEPTED;
}

// How far a joint may be from where it was dt_ns before.
static double reach(const struct intake_config *cfg, int joint, ns_t dt_ns)
{
    double dt_s = (double)(dt_ns > 1 ? dt_ns : 1) / (double)NS_PER_S;

    return INTAKE_SPEED * cfg->velocity[joint] * dt_s + cfg->max_jump;
}

// The first joint that no arm brings from one sample to the other; -1 = none.
static int leap(const struct intake *in, const struct joint_sample *from,
                const struct joint_sample *to)
{
    for (int i = 0; i < in->cfg.joints; i++)
        if (fabs(to->pos[i] - from->pos[i]) >
            reach(&in->cfg, i, to->capture_ns - from->capture_ns))
            return i;
    return -1;
}

static const char *explain_leap(struct intake *in, const struct joint_sample *from,
                                const struct joint_sample *to, int joint)
{
    const char *name = codec_joint_name(in->codec, joint);
    ns_t dt_ns = to->capture_ns - from->capture_ns;
    char quoted[CODEC_QUOTE];

    codec_refuse(
        in->codec, CODEC_IMPOSSIBLE,
        "joint '%s' went from %.4g to %.4g in %.4g ms, by %.4g at most: a second "
        "driver? else raise safety.max_jump",
        codec_quote(quoted, name, strlen(name)), from->pos[joint], to->pos[joint],
        (double)dt_ns / (double)NS_PER_MS, reach(&in->cfg, joint, dt_ns));
    return codec_why(in->codec);
}

// False: refused, since no arm moves like that.
static bool makes_sense(struct intake *in, const struct joint_sample *s)
{
    const struct joint_history *h = &in->history;
    const struct joint_sample *last =
        h->count > 0 ? &h->sample[(h->count - 1) % BOARD_HISTORY] : s;
    int joint = leap(in, last, s);

    if (BLIND(BLIND_JOINTS_JUMP) || joint < 0)
        return true;
    in->agreed = leap(in, &in->elsewhere, s) < 0 ? in->agreed + 1 : 1;
    in->elsewhere = *s;
    if (in->agreed >= INTAKE_BAD_IN_A_ROW && !in->armed) {
        row_is(in, 0);
        return true;
    }
    const struct refusal r = {CODEC_IMPOSSIBLE, REASON_JOINTS_JUMP, joint, s->pos[joint]};
    refuse(in, &r, explain_leap(in, last, s, joint));
    return false;
}

static void accept(struct intake *in, struct joint_sample *s)
{
    struct joint_history *h = &in->history;
    struct joints_mark *m = &in->board->joint_mark;
    bool after_jump =
        in->in_a_row > 0 && !in->alone &&
        atomic_load_explicit(&m->refused_for, memory_order_relaxed) == REASON_JOINTS_JUMP;

    s->number = h->count + 1;
    h->sample[h->count % BOARD_HISTORY] = *s;
    h->count++;
    in->agreed = 0;
    in->alone = after_jump;
    if (!after_jump)
        row_is(in, 0);
    atomic_store_explicit(&m->slow, pace_add(&in->pace, s->received_ns),
                          memory_order_relaxed);
}

static enum tape_outcome judge(struct intake *in, enum codec_verdict form,
                               int64_t stamp_wall_ns, struct joint_sample *s)
{
    enum tape_outcome o;

    if (form != CODEC_OK) {
        if (form != CODEC_NOT_FINITE && BLIND(BLIND_JOINTS_FORM))
            return TAPE_NONE;
        refuse_form(in, form);
        return TAPE_REFUSED;
    }
    o = place_in_time(in, stamp_wall_ns, s);
    if (o != TAPE_ACCEPTED)
        return o;
    if (!makes_sense(in, s))
        return TAPE_REFUSED;
    accept(in, s);
    return TAPE_ACCEPTED;
}

void intake_joints(struct intake *in, const void *data, size_t size, ns_t now)
{
    struct joint_sample s = {.received_ns = now};
    struct tape_input told = {.at_ns = now, .kind = TAPE_MESSAGE};
    enum codec_verdict v = codec_joints(in->codec, data, size, &s, &told.stamp_wall_ns);

    // Looked at once: a replay sees the same, whatever the loop does meanwhile.
    told.armed = in->armed = atomic_load(&in->board->armed);
    told.outcome = judge(in, v, told.stamp_wall_ns, &s);
    told.verdict = told.outcome == TAPE_REFUSED
                       ? atomic_load_explicit(&in->verdict, memory_order_relaxed)
                       : (int)v;
    told.form =
        v == CODEC_UNPARSABLE || v == CODEC_TOO_LARGE ? TAPE_UNDECODABLE : TAPE_JOINTS;
    if (told.outcome == TAPE_ACCEPTED) {
        told.joint_sample = s.number;
        told.capture_ns = s.capture_ns;
    }
    tape_input(in->board->tape, &told, data, size);
}

void intake_wall_set(struct intake *in, int64_t by_ns, ns_t now)
{
    struct tape_input told = {.at_ns = now,
                              .kind = TAPE_WALL_SET,
                              .armed = atomic_load(&in->board->armed),
                              .outcome = TAPE_NONE,
                              .by_ns = by_ns};

    codec_stamp_wall_set(&in->stamp, by_ns, now);
    tape_input(in->board->tape, &told, NULL, 0);
}

void intake_publish(struct intake *in)
{
    struct board *b = in->board;
    uint64_t n = in->history.count;

    if (n == in->published)
        return;
    slot_write(&b->joints, &in->history.sample[(n - 1) % BOARD_HISTORY]);
    slot_write(&b->history, &in->history);
    atomic_store_explicit(&b->joint_mark.received, n, memory_order_release);
    in->published = n;
}
