// fuzz_command: any command that the loop could make, and many that it could not, on its
// way to the wire: what protobuf-c reads back is what was meant. The names are from the
// input as well, up to the longest and the most that there can be.
#include <stdlib.h>
#include <string.h>

#include "actd/v1/joint_command.pb-c.h"
#include "daemon/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t size;
};

static void must(int promise)
{
    if (!promise)
        abort();
}

// The next bytes; zeros at the end.
static void take(struct input *in, void *to, size_t size)
{
    size_t n = size < in->size ? size : in->size;

    memset(to, 0, size);
    memcpy(to, in->data, n);
    in->data += n;
    in->size -= n;
}

static int64_t integer(struct input *in)
{
    int64_t v;

    take(in, &v, sizeof v);
    return v;
}

static double real(struct input *in)
{
    double v;

    take(in, &v, sizeof v);
    return v;
}

static int byte(struct input *in)
{
    int8_t v;

    take(in, &v, sizeof v);
    return v;
}

static void fill(struct input *in, struct command *c, int n)
{
    *c = (struct command){.sequence = (uint64_t)integer(in),
                          .tick = (uint64_t)integer(in)};
    c->made_ns = clock_now_ns() - (integer(in) & INT64_C(0xffffffffff)); // 18 minutes ago
    c->n = byte(in) < 0 ? n + 1 : n;
    c->first_joint = byte(in);
    c->first_limit = (enum guard_limit)(byte(in) & 0x7f);
    c->mode = (enum ladder_state)(byte(in) & 0x7f);
    c->reason = (enum ladder_reason)(byte(in) & 0x7f);
    c->blended = byte(in);
    c->ttl_ns = integer(in);
    c->joint_age_ns = integer(in);
    c->frame_age_ns = integer(in);
    c->margin_ns = integer(in);
    c->lateness_ns = integer(in);
    c->chunk_id = (uint64_t)integer(in);
    c->chunk_row = real(in);
    for (int i = 0; i < n; i++) {
        c->pos[i] = real(in);
        c->vel[i] = real(in);
        c->wanted[i] = real(in);
        c->limit[i] = (enum guard_limit)(byte(in) & 0x7f);
    }
}

// To the bit, so that NaN is equal to itself; only the sign of a zero gets lost, since
// protobuf-c does not send zeros.
static void same(double a, double b)
{
    must(a == b || memcmp(&a, &b, sizeof a) == 0);
}

static void not_negative(uint64_t told, int64_t meant)
{
    must(told == (meant > 0 ? (uint64_t)meant : 0));
}

static void check(const Actd__V1__JointCommand *m, const struct command *c,
                  const char *const *names)
{
    const char *first =
        c->first_joint >= 0 && c->first_joint < c->n ? names[c->first_joint] : "";

    must(m && m->timestamp && m->timestamp->nanos >= 0 && m->timestamp->nanos < NS_PER_S);
    must(m->sequence == c->sequence && m->tick == c->tick);
    must((int)m->mode == (int)c->mode && (int)m->reason == (int)c->reason);
    must((int)m->limit == (int)c->first_limit && strcmp(m->limited_joint, first) == 0);
    not_negative(m->time_to_live_ns, c->ttl_ns);
    not_negative(m->joint_state_age_ns, c->joint_age_ns);
    not_negative(m->frame_age_ns, c->frame_age_ns);
    not_negative(m->wakeup_lateness_ns, c->lateness_ns);
    not_negative(m->chunks_blended, c->blended);
    must(m->deadline_margin_ns == c->margin_ns && m->chunk_id == c->chunk_id);
    same(m->chunk_row, c->chunk_row);
    must(m->n_joints == (size_t)c->n);
    for (int i = 0; i < c->n; i++) {
        must(strcmp(m->joints[i]->name, names[i]) == 0);
        must((int)m->joints[i]->limit == (int)c->limit[i]);
        same(m->joints[i]->position, c->pos[i]);
        same(m->joints[i]->velocity, c->vel[i]);
        same(m->joints[i]->wanted, c->wanted[i]);
    }
}

static void round_trip(struct codec *codec, const struct command *c, int n,
                       const char *const *names, uint16_t capacity)
{
    static uint8_t buf[CODEC_COMMAND_MAX];
    size_t size = codec_command(codec, c, c->made_ns & INT64_MAX, buf, sizeof buf);
    uint8_t *exact = malloc(capacity);

    must(exact && codec_command(codec, c, c->made_ns & INT64_MAX, exact, capacity) <= capacity);
    free(exact);
    must((size > 0) == (c->n == n));
    if (size == 0)
        return;
    Actd__V1__JointCommand *m = actd__v1__joint_command__unpack(NULL, size, buf);
    check(m, c, names);
    actd__v1__joint_command__free_unpacked(m, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char name[ACTD_MAX_JOINTS][64];
    const char *names[ACTD_MAX_JOINTS];
    struct input in = {data, size};
    struct codec *codec;
    struct command c;
    int n = (byte(&in) & 0xff) % (ACTD_MAX_JOINTS + 1);
    uint16_t capacity;

    memset(name, 0, sizeof name);
    take(&in, &capacity, sizeof capacity);
    fill(&in, &c, n);
    for (int i = 0; i < n; i++) {
        take(&in, name[i], (size_t)(byte(&in) & 63));
        names[i] = name[i];
    }
    must(codec_new(&codec, names, n) == 0);
    round_trip(codec, &c, n, names, capacity);
    codec_free(codec);
    return 0;
}
