// What the driver says: real bytes of joint states, and what becomes of them when something is
// wrong with it or with the wire.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foxglove/JointStates.pb-c.h"
#include "tests/fault/sender_impl.h"

uint8_t sender_buffer[WORLD_BYTES];

void letter_post(struct world *w, int to, ns_t at, const void *bytes, size_t size)
{
    struct letter *l;

    if (w->in->letters == WORLD_LETTERS)
        return; // full: lost, as on a wire
    l = &w->in->letter[w->in->letters++];
    *l = (struct letter){.at = at,
                         .to = to,
                         .size = size,
                         .order = w->in->posted++,
                         .bytes = malloc(size + 1)};
    if (l->bytes && size > 0)
        memcpy(l->bytes, bytes, size);
}

void letter_free(struct world *w, int i)
{
    free(w->in->letter[i].bytes);
    w->in->letter[i] = w->in->letter[--w->in->letters];
}

ns_t sender_ms(double v)
{
    return (ns_t)(v * (double)NS_PER_MS);
}

static bool by_chance(struct world *w, double part)
{
    return injector_random01(&w->injector.random) < part;
}

void sender_set_stamp(Google__Protobuf__Timestamp *t, int64_t wall_ns)
{
    google__protobuf__timestamp__init(t);
    t->seconds = wall_ns / NS_PER_S;
    t->nanos = (int32_t)(wall_ns % NS_PER_S);
}

int64_t sender_stamp(const struct world *w, const struct sender *s)
{
    return w->now + (WORLD_WALL_NS - WORLD_START_NS) + s->clock_ns;
}

// ---- joint states ----------------------------------------------------------------------------

// One joint of a message says what is not so.
static void spoil_joint(struct world *w, const struct injection *one, int wrong,
                        Foxglove__JointState *joint, int which)
{
    static char stranger[] = "elbow_of_another";
    int n = w->plant.cfg.joints;

    if (wrong == JOINTS_NAN)
        joint[which].position = NAN;
    if (wrong == JOINTS_INFINITE)
        joint[which].position = one->magnitude < 0 ? -INFINITY : INFINITY;
    if (wrong == JOINTS_HUGE)
        joint[which].position = 1e30;
    if (wrong == JOINTS_VELOCITY_NAN)
        joint[which].velocity = NAN;
    if (wrong == JOINTS_OFFSET)
        joint[which].position += one->magnitude;
    if (wrong == JOINTS_RENAMED)
        joint[which].name = stranger;
    if (wrong == JOINTS_TWICE)
        joint[which].name = w->plant.cfg.name[(which + 1) % n];
}

static bool frozen(const struct injection *one, int joint)
{
    return one && one->verb == VERB_STUCK && one->variant == JOINTS_ENCODER &&
           one->index == joint;
}

static void read_encoders(struct world *w, const struct sender *s,
                          const struct injection *one)
{
    for (int i = 0; i < w->plant.cfg.joints; i++)
        if (s->sent == 0 || !frozen(one, i))
            w->in->encoder[i] = w->plant.pos[i];
}

static size_t pack_joints(struct world *w, const struct injection *one, int64_t stamp)
{
    static char stranger[] = "elbow_of_another";
    Google__Protobuf__Timestamp t;
    Foxglove__JointState joint[ACTD_MAX_JOINTS + 1], *list[ACTD_MAX_JOINTS + 1];
    Foxglove__JointStates m;
    int n = w->plant.cfg.joints;
    int wrong = one && one->verb == VERB_WRONG ? one->variant : -1;
    int which = one && one->index < n ? one->index : 0;

    foxglove__joint_states__init(&m);
    sender_set_stamp(&t, stamp);
    m.timestamp = wrong == JOINTS_NO_STAMP ? NULL : &t;
    for (int i = 0; i < n; i++) {
        int j = wrong == JOINTS_PERMUTED ? n - 1 - i : i;

        list[i] = &joint[i];
        foxglove__joint_state__init(&joint[i]);
        joint[i].name = w->plant.cfg.name[j];
        joint[i].position = w->in->encoder[j];
        joint[i].velocity = frozen(one, j) ? 0 : w->plant.vel[j];
    }
    spoil_joint(w, one, wrong, joint, which);
    if (wrong == JOINTS_ONE_MORE) {
        joint[n] = joint[0];
        joint[n].name = stranger;
        list[n] = &joint[n];
        n++;
    }
    m.joints = list;
    m.n_joints = (size_t)(wrong == JOINTS_ONE_LESS ? n - 1 : n);
    return foxglove__joint_states__pack(&m, sender_buffer);
}

size_t sender_random(struct world *w, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sender_buffer[i] = (uint8_t)injector_random32(&w->injector.random);
    return n;
}

// `times` bits of the first n bytes turned over.
static void flip(struct world *w, size_t n, int times)
{
    for (int i = 0; i < times && n > 0; i++) {
        uint32_t r = injector_random32(&w->injector.random);

        sender_buffer[(r >> 3) % n] ^= (uint8_t)(1u << (r & 7));
    }
}

// Field 2 in itself, as deep as it goes: each level is four bytes, its length in three of them.
static size_t nested(size_t bytes)
{
    size_t at = 0;

    for (; bytes - at >= 4; at += 4) {
        size_t inside = bytes - at - 4;

        sender_buffer[at] = 2 << 3 | 2;
        sender_buffer[at + 1] = (uint8_t)(0x80 | (inside & 0x7f));
        sender_buffer[at + 2] = (uint8_t)(0x80 | (inside >> 7 & 0x7f));
        sender_buffer[at + 3] = (uint8_t)(inside >> 14);
    }
    return at;
}

// Unknown fields of two bytes.
static size_t bomb(size_t bytes)
{
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        sender_buffer[i] = 15 << 3;
        sender_buffer[i + 1] = 0;
    }
    return bytes;
}

static size_t garbage(struct world *w, int variant, size_t n)
{
    switch (variant) {
    case JOINTS_TRUNCATED:
        return n / 2;
    case JOINTS_EMPTY:
        return 0;
    case JOINTS_NESTED:
        return nested(16000);
    case JOINTS_BOMB:
        return bomb(16000);
    case JOINTS_FLIPS:
        flip(w, n, 8);
        return n;
    default:
        return sender_random(w, 64);
    }
}

static void keep(struct sender *s, const void *bytes, size_t size)
{
    free(s->kept.bytes);
    s->kept.bytes = malloc(size + 1);
    if (s->kept.bytes)
        memcpy(s->kept.bytes, bytes, size);
    s->kept.size = size;
}

// A pair of messages arrives the wrong way round.
void sender_reordered(struct world *w, int to, struct sender *s, ns_t at, size_t n)
{
    if (s->sent % 2 == 0) {
        keep(s, sender_buffer, n);
        return;
    }
    letter_post(w, to, at, sender_buffer, n);
    if (s->kept.bytes)
        letter_post(w, to, at + NS_PER_MS, s->kept.bytes, s->kept.size);
}

// What concerns any stream: false when nothing of this message is sent.
bool sender_comes(struct world *w, struct sender *s, const struct injection *one)
{
    bool does = true;

    if (!one)
        return true;
    switch (one->verb) {
    case VERB_OFF:
        does = false;
        break;
    case VERB_SLOW:
        does = s->sent % (uint64_t)fmax(1, one->magnitude) == 0;
        break;
    case VERB_INTERMITTENT:
        does = !by_chance(w, one->magnitude);
        break;
    default:
        break;
    }
    w->injector.hits++;
    w->injector.lost += !does;
    return does;
}

// A new process of the driver: some silence, then a clock of its own and stamps from there.
static bool restart(struct world *w, struct sender *s, const struct injection *one)
{
    if (!s->restarted) {
        s->restarted = true;
        s->quiet_until_ns = w->now + sender_ms(fabs(one->magnitude));
        s->clock_ns -= 60 * NS_PER_S;
    }
    return w->now >= s->quiet_until_ns;
}

void sender_joints(struct world *w)
{
    struct sender *s = &w->in->sender[0];
    const struct injection *one = world_wrong(w, INJECT_JOINTS, 0, w->now);
    bool wrong = one && one->verb == VERB_WRONG;
    int64_t stamp = sender_stamp(w, s);
    ns_t at = w->now + w->cfg.wire_ns;
    size_t n;

    read_encoders(w, s, one);
    s->sent++;
    if (!sender_comes(w, s, one) ||
        (wrong && one->variant == JOINTS_RESTARTED && !restart(w, s, one)))
        return;
    if (!wrong)
        s->restarted = false;
    if (wrong && one->variant == JOINTS_RESTARTED)
        stamp = sender_stamp(w, s);
    if (wrong && one->variant == JOINTS_CLOCK)
        stamp += sender_ms(one->magnitude);
    if (one && one->verb == VERB_STUCK && one->variant == JOINTS_SAME && s->kept.bytes) {
        letter_post(w, 0, at, s->kept.bytes, s->kept.size);
        return;
    }
    n = pack_joints(w, one, stamp);
    if (!one)
        keep(s, sender_buffer, n);
    if (one && one->verb == VERB_GARBAGE)
        n = garbage(w, one->variant, n);
    if (one && one->verb == VERB_DELAYED)
        at += sender_ms(one->magnitude);
    if (wrong && one->variant == JOINTS_REORDERED) {
        sender_reordered(w, 0, s, at, n);
        return;
    }
    letter_post(w, 0, at, sender_buffer, n);
    if (wrong && one->variant == JOINTS_DUPLICATE)
        letter_post(w, 0, at, sender_buffer, n);
}
