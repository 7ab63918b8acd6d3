// fuzz_intake: joint states in a row, with receive times, from any sender. Most are built
// here, so that the fuzzer plays with times and positions; some are any bytes. After each
// one the counters add up, and what is published is finite, where an arm can be, no older
// than a stamp may be, and numbered. The count of refusals in a row is worked out once
// more from what became of each message. Nothing is allocated.
//
// The input: a byte of settings, then records of OP and as many bytes as OP says.
#include <math.h>
#include <sanitizer/allocator_interface.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/intake.h"
#include "foxglove/JointStates.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define JOINTS 2
#define WALL   (INT64_C(1700000000) * NS_PER_S) // the sender's clock at our time 0

static const double velocity[JOINTS] = {2, 4};
static _Thread_local bool watched;

enum op { STEP, FAR, ANY, BYTES, ARM, SET_CLOCK, PARTS, LATER, OPS };
static const size_t length[OPS] = {[STEP] = 10, [FAR] = 16,      [ANY] = 24, [BYTES] = 1,
                                   [ARM] = 1,   [SET_CLOCK] = 8, [LATER] = 5};

static struct board board; // one for all inputs: it takes longest to make
static uint64_t published; // before this input

struct rig {
    struct intake *in;
    ns_t now;
    int64_t wall_set; // by so much in all
    uint64_t sent;
    struct joint_sample last; // accepted
    // The twin of refused_in_a_row: what became of the message before, and
    enum { NOTHING, ACCEPTED, BETWEEN, REFUSED, JUMPED } before;
    uint32_t in_a_row;
    uint32_t jumps; // refused for one, since anything else was accepted or refused
};

struct counts {
    uint64_t received, refused, duplicate, out_of_order;
};

static void must(int promise)
{
    if (!promise)
        abort();
}

static void on_malloc(const volatile void *p, size_t size)
{
    (void)p;
    (void)size;
    must(!watched);
}

static void on_free(const volatile void *p)
{
    must(!p || !watched);
}

static struct counts counts(void)
{
    const struct joints_mark *m = &board.joint_mark;

    return (struct counts){m->received, m->refused, m->duplicate, m->out_of_order};
}

// ---- what must be true --------------------------------------------------------------

static bool can_be(const struct joint_sample *from, const struct joint_sample *to)
{
    ns_t dt_ns = to->capture_ns - from->capture_ns;
    double dt_s = dt_ns > 1 ? (double)dt_ns / 1e9 : 1e-9;

    for (int i = 0; i < JOINTS; i++)
        if (fabs(to->pos[i] - from->pos[i]) > 1.5 * velocity[i] * dt_s + 0.25 + 1e-9)
            return false;
    return true;
}

static void check_accepted(struct rig *r)
{
    bool armed = board.armed;
    struct joint_sample s;

    must(slot_read(&board.joints, &s) != 0);
    must(s.number == r->last.number + 1 && s.number == board.joint_mark.received);
    must(s.n == JOINTS && s.received_ns == r->now);
    must(s.capture_ns <= r->now && r->now - s.capture_ns <= CODEC_JUMP_MS * NS_PER_MS);
    for (int i = 0; i < JOINTS; i++)
        must(fabs(s.pos[i]) < 1e6 && fabs(s.vel[i]) < 1e6);
    if (r->last.number > 0 && !can_be(&r->last, &s)) { // a new place, agreed upon
        must(!armed && r->jumps >= INTAKE_BAD_IN_A_ROW - 1);
        r->before = ACCEPTED;
        r->in_a_row = 0;
    } else if (r->before == JUMPED) {
        r->before = BETWEEN;
    } else {
        r->before = ACCEPTED;
        r->in_a_row = 0;
    }
    r->jumps = 0;
    r->last = s;
}

static void check_refused(struct rig *r)
{
    const struct joints_mark *m = &board.joint_mark;
    bool jump = m->refused_for == REASON_JOINTS_JUMP;
    int joint = m->refused_joint;
    char text[CODEC_WHY_MAX];

    must(intake_last_refusal(r->in, text) != CODEC_OK);
    must(strnlen(text, sizeof text) > 0 && strnlen(text, sizeof text) < sizeof text);
    for (const char *p = text; *p; p++)
        must(*p >= ' ' && *p <= '~');
    must(jump || m->refused_for == REASON_JOINTS_INVALID ||
         m->refused_for == REASON_JOINTS_NOT_FINITE ||
         m->refused_for == REASON_JOINTS_CLOCK);
    must(joint < JOINTS &&
         (joint >= 0) == (jump || m->refused_for == REASON_JOINTS_NOT_FINITE));
    must(!jump || isfinite(m->refused_value));
    r->in_a_row += jump && r->before == BETWEEN ? 2 : 1;
    r->before = jump ? JUMPED : REFUSED;
    r->jumps = jump ? r->jumps + 1 : 0;
}

static void check(struct rig *r, struct counts before)
{
    struct counts now = counts();
    uint64_t accepted = now.received - before.received;
    uint64_t refused = now.refused - before.refused;
    uint64_t history = 0;

    r->sent++;
    must(now.received + now.refused + now.duplicate + now.out_of_order == r->sent);
    must(slot_count(&board.joints) - published == now.received);
    must(slot_count(&board.history) - published == now.received);
    must(slot_count(&board.history) == 0 || slot_read(&board.history, &history) != 0);
    must(now.received == 0 || history == now.received);
    must(accepted + refused <= 1);
    if (accepted)
        check_accepted(r);
    if (refused)
        check_refused(r);
    must(board.joint_mark.refused_in_a_row == r->in_a_row);
}

// ---- messages -----------------------------------------------------------------------

static void take(struct rig *r, const void *data, size_t size)
{
    struct counts before = counts();

    watched = true;
    intake_joints(r->in, data, size, r->now);
    intake_publish(r->in);
    watched = false;
    check(r, before);
}

static void send(struct rig *r, int64_t stamp_wall_ns, const double *pos)
{
    static char name[JOINTS][8] = {"lift", "turn"};
    Google__Protobuf__Timestamp t = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    Foxglove__JointState joint[JOINTS], *list[JOINTS];
    Foxglove__JointStates m = FOXGLOVE__JOINT_STATES__INIT;
    uint8_t buf[256];

    t.seconds = stamp_wall_ns / NS_PER_S;
    t.nanos = (int32_t)(stamp_wall_ns % NS_PER_S);
    m.timestamp = &t;
    for (int i = 0; i < JOINTS; i++) {
        foxglove__joint_state__init(&joint[i]);
        joint[i].name = name[i];
        joint[i].position = pos[i];
        list[i] = &joint[i];
    }
    m.joints = list;
    m.n_joints = JOINTS;
    must(foxglove__joint_states__get_packed_size(&m) <= sizeof buf);
    take(r, buf, foxglove__joint_states__pack(&m, buf));
}

// In time to a tenth of a millisecond, or late, and near: 1/1024 rad.
static void step(struct rig *r, const uint8_t *p, int64_t far_ns)
{
    uint16_t dt;
    int16_t late, at[JOINTS], on[1];

    memcpy(&dt, p, 2);
    memcpy(&late, p + 2, 2);
    memcpy(at, p + 4, 4);
    memcpy(on, p + 8, 2);
    r->now += dt * (NS_PER_MS / 10);
    send(r, WALL + r->now + r->wall_set + far_ns - late * (NS_PER_MS / 10),
         (double[]){at[0] / 1024.0 + on[0] / 64.0, at[1] / 1024.0});
}

static void any(struct rig *r, const uint8_t *p)
{
    int64_t stamp;
    double pos[JOINTS];

    memcpy(&stamp, p, 8);
    memcpy(pos, p + 8, sizeof pos);
    send(r, stamp, pos);
}

// The local wall clock, to anything that it can be: 1970 to 2116.
static void set_clock(struct rig *r, const uint8_t *p)
{
    int64_t to;

    memcpy(&to, p, 8);
    to = (to & INT64_MAX / 2) - WALL;
    watched = true;
    intake_wall_set(r->in, to - r->wall_set, r->now);
    watched = false;
    r->wall_set = to;
}

// p has length[op] bytes; of BYTES the message follows. Returns how many that is.
static size_t record(struct rig *r, enum op op, const uint8_t *p, size_t left)
{
    struct counts before = counts();
    int64_t n = 0;

    switch (op) {
    case STEP:
        step(r, p, 0);
        break;
    case FAR: // up to 18 minutes off
        memcpy(&n, p + 10, 6);
        step(r, p, (n & INT64_C(0xffffffffff)) - INT64_C(0x8000000000));
        break;
    case ANY:
        any(r, p);
        break;
    case BYTES:
        n = *p < left ? *p : (int64_t)left;
        take(r, p + 1, (size_t)n);
        return (size_t)n;
    case ARM:
        atomic_store(&board.armed, *p & 1);
        break;
    case SET_CLOCK:
        set_clock(r, p);
        break;
    case PARTS:
        intake_part(r->in, &(struct codec_part){r, 1, true, left & 1}, r->now);
        intake_part(r->in, &(struct codec_part){NULL, 0, false, false}, r->now);
        check(r, before);
        break;
    case LATER:
        memcpy(&n, p, 5);
        r->now += n;
        break;
    case OPS:
        break;
    }
    return 0;
}

static void begin(struct rig *r, double rate_hz)
{
    static const char *const names[JOINTS] = {"lift", "turn"};
    const struct intake_config cfg = {JOINTS, {velocity[0], velocity[1]}, 0.25, rate_hz};

    if (board.command_fd == 0) {
        must(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0);
        must(board_init(&board, 0, 1, JOINTS) == 0);
        // Of the history only its count: to publish all its 69 KB takes 100 us here.
        slot_free(&board.history);
        must(slot_init(&board.history, sizeof(uint64_t)) == 0);
    }
    published = slot_count(&board.joints);
    memset(&board.joint_mark, 0, sizeof board.joint_mark);
    atomic_store(&board.armed, false);
    memset(r, 0, sizeof *r);
    must(intake_new(&r->in, &cfg, names, &board) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rig r;

    if (size == 0)
        return 0;
    begin(&r, *data & 1 ? 100 : 0);
    for (data++, size--; size > 0;) {
        enum op op = *data++ % OPS;

        if (--size < length[op])
            break;
        size_t used = length[op] + record(&r, op, data, size - length[op]);
        data += used;
        size -= used;
    }
    intake_free(r.in);
    return 0;
}
