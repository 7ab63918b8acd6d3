// Joint states in, commands out, through the code that protoc-c generates. The parser
// gets its memory from an arena inside struct codec: 1 MiB of two-byte unknown fields
// would make protobuf-c 1.4.1 ask malloc for 46 MB in half a million calls; here it is
// refused at 64 KiB. The arena gives zeroed memory and its free does nothing, which also
// disarms what 1.4.1 does with pointers that it never set when it cleans up after an
// error.
#include "daemon/codec_impl.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/blind.h"
#include "actd/v1/joint_command.pb-c.h"
#include "foxglove/JointStates.pb-c.h"

// 32 joints with names of 63 bytes need about 6 KiB.
#define ARENA (64 * 1024)
#define ALIGN 16
// No joint is a thousand kilometres away or turns that fast; a value like it is a bug
// upstream.
#define PLAUSIBLE 1e6

struct codec {
    int n;
    char *name[ACTD_MAX_JOINTS]; // (n)
    char why[CODEC_WHY_MAX];     // of the last refusal
    int bad_joint;               // of the last CODEC_NOT_FINITE, -1 = none, and
    double bad_value;
    size_t used; // of the arena, a multiple of ALIGN
    _Alignas(ALIGN) unsigned char arena[ARENA];
};

const char *codec_verdict_name(enum codec_verdict v)
{
    static const char *const name[] = {
        "ok",         "too large", "not parsable",   "empty",    "wrong joint names",
        "not finite", "bad stamp", "unknown format", "bad size", "impossible jump",
    };
    _Static_assert(sizeof name / sizeof *name == CODEC_VERDICTS, "one name per verdict");
    return (unsigned)v < CODEC_VERDICTS ? name[v] : "?";
}

int codec_new(struct codec **out, const char *const *names, int n)
{
    struct codec *c;

    *out = NULL;
    if (n < 0 || n > ACTD_MAX_JOINTS)
        return -EINVAL;
    c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    c->bad_joint = -1;
    for (; c->n < n; c->n++) {
        c->name[c->n] = strdup(names[c->n]);
        if (!c->name[c->n]) {
            codec_free(c);
            return -ENOMEM;
        }
    }
    *out = c;
    return 0;
}

void codec_free(struct codec *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->n; i++)
        free(c->name[i]);
    free(c);
}

char *codec_why_text(struct codec *c)
{
    return c ? c->why : NULL;
}

const char *codec_joint_name(const struct codec *c, int joint)
{
    return c->name[joint];
}

const char *codec_why(const struct codec *c)
{
    return c->why;
}

int codec_not_finite(const struct codec *c, double *value)
{
    *value = c->bad_value;
    return c->bad_joint;
}

static void *arena_alloc(void *data, size_t size)
{
    struct codec *c = data;
    unsigned char *p = c->arena + c->used;

    if (size > ARENA - c->used)
        return NULL;
    c->used += (size + ALIGN - 1) / ALIGN * ALIGN;
    memset(p, 0, size);
    return p;
}

static void arena_free(void *data, void *p)
{
    (void)data;
    (void)p;
}

static int joint_index(const struct codec *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->name[i], name) == 0)
            return i;
    return -1;
}

static bool plausible(double x)
{
    return isfinite(x) && fabs(x) < PLAUSIBLE;
}

// Of the joints not seen, the one that shares the longest beginning with a name that is
// none: "elbow" and "elbow_flex.pos" both mean elbow_flex. NULL when little is shared.
static const char *joint_like(const struct codec *c, const char *name, const bool *seen)
{
    const char *best = NULL;
    size_t most = 0;

    for (int i = 0; i < c->n; i++) {
        const char *joint = c->name[i];
        size_t same = 0;

        while (joint[same] &&
               tolower((unsigned char)joint[same]) == tolower((unsigned char)name[same]))
            same++;
        if (seen[i] || same <= most || (same < 3 && joint[same]))
            continue;
        most = same;
        best = joint;
    }
    return best;
}

static enum codec_verdict refuse_stranger(struct codec *c, const char *name,
                                          const bool *seen, bool missing)
{
    const char *like = joint_like(c, name, seen);
    char a[CODEC_QUOTE], b[CODEC_QUOTE];

    codec_quote(a, name, strlen(name));
    if (!missing)
        return codec_refuse(c, CODEC_WRONG_NAMES, "one joint too many: '%s'", a);
    if (!like)
        return codec_refuse(c, CODEC_WRONG_NAMES, "'%s' is no joint of this robot", a);
    return codec_refuse(c, CODEC_WRONG_NAMES, "'%s' is no joint of this robot (%s?)", a,
                        codec_quote(b, like, strlen(like)));
}

// What is wrong with the names: a stranger, a double, or one missing; in this order,
// since a misspelt joint is missing as well. Of very many joints only the first are
// looked at.
static enum codec_verdict wrong_names(struct codec *c, const Foxglove__JointStates *m)
{
    const char *stranger = NULL, *twice = NULL, *missing = NULL;
    bool seen[ACTD_MAX_JOINTS] = {false};
    char quoted[CODEC_QUOTE];

    for (size_t i = 0; i < m->n_joints && i < 2 * ACTD_MAX_JOINTS; i++) {
        int j = joint_index(c, m->joints[i]->name);

        if (j < 0)
            stranger = stranger ? stranger : m->joints[i]->name;
        else if (seen[j])
            twice = twice ? twice : c->name[j];
        else
            seen[j] = true;
    }
    for (int j = c->n; j-- > 0;)
        missing = seen[j] ? missing : c->name[j];
    if (stranger)
        return refuse_stranger(c, stranger, seen, missing != NULL);
    if (twice)
        return codec_refuse(c, CODEC_WRONG_NAMES, "joint '%s' comes twice",
                            codec_quote(quoted, twice, strlen(twice)));
    if (missing)
        return codec_refuse(c, CODEC_WRONG_NAMES, "joint '%s' is missing",
                            codec_quote(quoted, missing, strlen(missing)));
    return codec_refuse(c, CODEC_WRONG_NAMES, "%zu joints, and this robot has %d",
                        m->n_joints, c->n);
}

static enum codec_verdict not_finite(struct codec *c, int joint,
                                     const Foxglove__JointState *s)
{
    bool position = !plausible(s->position);
    char quoted[CODEC_QUOTE];

    c->bad_joint = joint;
    c->bad_value = position ? s->position : s->velocity;
    return codec_refuse(c, CODEC_NOT_FINITE, "the %s of joint '%s' is %g: send %s",
                        position ? "position" : "velocity",
                        codec_quote(quoted, s->name, strlen(s->name)), c->bad_value,
                        position ? "rad (m)" : "rad/s (m/s), or none");
}

static enum codec_verdict joints_check(struct codec *c, const Foxglove__JointStates *m,
                                       struct joint_sample *out)
{
    bool seen[ACTD_MAX_JOINTS] = {false};

    if (m->n_joints == 0)
        return codec_refuse(c, CODEC_EMPTY, "there are no joints in it");
    if (m->n_joints != (size_t)c->n)
        return wrong_names(c, m);
    for (int i = 0; i < c->n; i++) {
        const Foxglove__JointState *s = m->joints[i];
        int j = BLIND(BLIND_JOINTS_NAMES) ? i : joint_index(c, s->name);

        if (j < 0 || seen[j])
            return wrong_names(c, m);
        if (!BLIND(BLIND_JOINTS_FINITE) &&
            (!plausible(s->position) || !plausible(s->velocity)))
            return not_finite(c, j, s);
        seen[j] = true;
        out->pos[j] = s->position;
        out->vel[j] = s->velocity;
    }
    out->n = c->n;
    return CODEC_OK;
}

enum codec_verdict codec_joints(struct codec *c, const void *data, size_t size,
                                struct joint_sample *out, int64_t *stamp_wall_ns)
{
    ProtobufCAllocator arena = {arena_alloc, arena_free, c};
    const Foxglove__JointStates *m;

    if (size > CODEC_JOINTS_MAX)
        return codec_refuse(c, CODEC_TOO_LARGE, "%zu bytes, %d at most", size,
                            CODEC_JOINTS_MAX);
    if (size == 0)
        return codec_refuse(c, CODEC_EMPTY, "the message has no bytes");
    c->used = 0;
    m = foxglove__joint_states__unpack(&arena, size, data);
    if (!m)
        return codec_refuse(c, CODEC_UNPARSABLE, "not a foxglove.JointStates message");
    *stamp_wall_ns = 0;
    if (m->timestamp &&
        codec_wall(m->timestamp->seconds, m->timestamp->nanos, stamp_wall_ns) != CODEC_OK)
        return codec_refuse(c, CODEC_BAD_STAMP, "its stamp, %lld s and %d ns, is no time",
                            (long long)m->timestamp->seconds, (int)m->timestamp->nanos);
    return joints_check(c, m, out);
}

static uint64_t age(ns_t ns)
{
    return ns > 0 ? (uint64_t)ns : 0;
}

// Everything but the joints. The strings point into c.
static void command_header(const struct codec *c, const struct command *cmd,
                           Actd__V1__JointCommand *m)
{
    m->sequence = cmd->sequence;
    m->tick = cmd->tick;
    m->mode = (Actd__V1__Mode)cmd->mode;
    m->reason = (Actd__V1__Reason)cmd->reason;
    m->limit = (Actd__V1__Limit)cmd->first_limit;
    if (cmd->first_joint >= 0 && cmd->first_joint < c->n)
        m->limited_joint = c->name[cmd->first_joint];
    m->time_to_live_ns = age(cmd->ttl_ns);
    m->joint_state_age_ns = age(cmd->joint_age_ns);
    m->frame_age_ns = age(cmd->frame_age_ns);
    m->chunk_id = cmd->chunk_id;
    m->chunk_row = cmd->chunk_row;
    m->deadline_margin_ns = cmd->margin_ns;
    m->wakeup_lateness_ns = age(cmd->lateness_ns);
    m->chunks_blended = cmd->blended > 0 ? (uint32_t)cmd->blended : 0;
}

static void command_joint(const struct codec *c, const struct command *cmd, int i,
                          Actd__V1__Joint *m)
{
    actd__v1__joint__init(m);
    m->name = c->name[i];
    m->position = cmd->pos[i];
    m->velocity = cmd->vel[i];
    m->limit = (Actd__V1__Limit)cmd->limit[i];
    m->wanted = cmd->wanted[i];
}

size_t codec_command(struct codec *c, const struct command *cmd, int64_t made_wall_ns,
                     void *buf, size_t capacity)
{
    Actd__V1__JointCommand m;
    Google__Protobuf__Timestamp stamp = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    Actd__V1__Joint joint[ACTD_MAX_JOINTS], *joints[ACTD_MAX_JOINTS];

    if (cmd->n != c->n)
        return 0;
    actd__v1__joint_command__init(&m);
    stamp.seconds = made_wall_ns / NS_PER_S;
    stamp.nanos = (int32_t)(made_wall_ns % NS_PER_S);
    m.timestamp = &stamp;
    command_header(c, cmd, &m);
    for (int i = 0; i < c->n; i++) {
        command_joint(c, cmd, i, &joint[i]);
        joints[i] = &joint[i];
    }
    m.joints = joints;
    m.n_joints = (size_t)c->n;
    if (actd__v1__joint_command__get_packed_size(&m) > capacity)
        return 0;
    return actd__v1__joint_command__pack(&m, buf);
}
