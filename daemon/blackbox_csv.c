// What is in the file. One line per tick; columns are fixed by the configuration. Words
// where a person reads them (mode, reason, conditions joined by |), numbers without unit
// in SI or with the unit in the column's name; an empty cell is "there is none". Names
// are quoted where CSV needs it (RFC 4180).
#include <string.h>

#include "daemon/blackbox_impl.h"
#include "daemon/decimal.h"
#include "daemon/gate.h"

// ---- text -----------------------------------------------------------------------------

static void put(struct blackbox_text *t, const char *from, size_t n)
{
    if (t->size - t->n < n)
        return;
    memcpy(t->data + t->n, from, n);
    t->n += n;
}

static void put_char(struct blackbox_text *t, char c)
{
    put(t, &c, 1);
}

static void put_word(struct blackbox_text *t, const char *word)
{
    put(t, word, strlen(word));
}

static void put_u64(struct blackbox_text *t, uint64_t v)
{
    if (t->size - t->n >= DECIMAL_MAX)
        t->n += decimal_u64(t->data + t->n, v);
    put_char(t, ',');
}

static void put_fixed(struct blackbox_text *t, int64_t v, int decimals)
{
    if (t->size - t->n >= DECIMAL_MAX)
        t->n += decimal_fixed(t->data + t->n, v, decimals);
    put_char(t, ',');
}

static void put_real(struct blackbox_text *t, double v)
{
    if (t->size - t->n >= DECIMAL_MAX)
        t->n += decimal_real(t->data + t->n, v);
    put_char(t, ',');
}

static void put_cell(struct blackbox_text *t, const char *word)
{
    put_word(t, word);
    put_char(t, ',');
}

// The last cell's comma becomes the end of the line.
static void end_line(struct blackbox_text *t)
{
    if (t->n > 0 && t->data[t->n - 1] == ',')
        t->data[t->n - 1] = '\n';
}

// NAME.what, quoted where something would read the name as two cells or drop a blank.
static void put_name(struct blackbox_text *t, const char *name, const char *what)
{
    size_t n = strlen(name);
    bool quote = strpbrk(name, ",\"\r\n;\t") != NULL || (n > 0 && name[0] == ' ');

    if (quote)
        put_char(t, '"');
    for (size_t i = 0; i < n; i++) {
        if (name[i] == '"')
            put_char(t, '"');
        put_char(t, name[i]);
    }
    put_word(t, what);
    put_cell(t, quote ? "\"" : "");
}

// ---- words ----------------------------------------------------------------------------

#define C(name)                \
    {                          \
        LADDER_C_##name, #name \
    }
static const struct {
    uint64_t bit;
    const char *name;
} condition[] = {
    C(STARTED),           C(STREAMS_FRESH),    C(HOLD_EXPIRED),   C(AT_REST),
    C(AT_TARGET),         C(APPROACHED),       C(APPROACH_LONG),  C(LATCHED),
    C(JOINTS_MISSING),    C(JOINTS_LATE),      C(JOINTS_STALE),   C(JOINTS_INVALID),
    C(JOINTS_NOT_FINITE), C(JOINTS_JUMP),      C(JOINTS_CLOCK),   C(OUT_OF_LIMITS),
    C(FAR_OUT),           C(FOLLOWING),        C(FOLLOWING_LONG), C(JOINTS_SLOW),
    C(CAMERA_MISSING),    C(CAMERA_LATE),      C(CAMERA_STALE),   C(CAMERA_CORRUPT),
    C(CAMERA_INVALID),    C(CAMERA_STUCK),     C(CAMERA_FROZEN),  C(CAMERA_SAME),
    C(NO_CHUNK),          C(CHUNK_TOO_OLD),    C(POLICY_SLOW),    C(CAMERA_SKEW),
    C(NOT_FINITE),        C(NOT_FINITE_AGAIN), C(OUT_OF_RANGE),   C(OUT_OF_RANGE_AGAIN),
    C(POLICY_FAILED),     C(CAMERA_SLOW),      C(GATE),           C(STALLED),
    C(TICK_GAP),          C(WAKEUP_BUDGET),    C(TICK_BUDGET),    C(CHUNK_BUDGET),
    C(SENSOR_BUDGET),     C(REQ_ARM),          C(REQ_DISARM),     C(REQ_STOP),
    C(REQ_ESTOP),         C(REQ_RESET),        C(REQ_HOME),
};
#undef C

static const char *const limit_name[] = {"NONE", "POSITION", "VELOCITY", "ACCELERATION",
                                         "JERK"};
_Static_assert(sizeof limit_name / sizeof *limit_name == GUARD_LIMITS,
               "one name per limit");

const char *blackbox_condition_name(uint64_t bit)
{
    for (size_t i = 0; i < sizeof condition / sizeof *condition; i++)
        if (condition[i].bit == bit)
            return condition[i].name;
    return NULL;
}

static void put_joined(struct blackbox_text *t, const char *word, bool *first)
{
    if (!*first)
        put_char(t, '|');
    put_word(t, word);
    *first = false;
}

// A bit that has no name is written as its number: what is not understood is not dropped.
static void put_conditions(struct blackbox_text *t, uint64_t bits)
{
    bool first = true;

    for (int i = 0; bits >> i != 0; i++) {
        const char *name;
        char number[DECIMAL_MAX];

        if (!(bits >> i & 1))
            continue;
        name = blackbox_condition_name(LADDER_BIT(i));
        number[decimal_u64(number, (uint64_t)i)] = 0;
        put_joined(t, name != NULL ? name : number, &first);
        if (i == 63)
            break;
    }
    put_char(t, ',');
}

static void put_latched(struct blackbox_text *t, uint64_t reasons)
{
    bool first = true;

    for (int i = 0; i < LADDER_REASONS; i++)
        if (reasons >> i & 1)
            put_joined(t, ladder_reason_name((enum ladder_reason)i), &first);
    put_char(t, ',');
}

static void put_limit(struct blackbox_text *t, enum guard_limit limit)
{
    put_cell(t, (unsigned)limit < GUARD_LIMITS ? limit_name[limit] : "?");
}

static void put_age_ms(struct blackbox_text *t, ns_t age_ns)
{
    if (age_ns != BLACKBOX_NO_AGE)
        put_fixed(t, age_ns, 6);
    else
        put_char(t, ',');
}

// ---- lines ----------------------------------------------------------------------------

static const char *const before_cameras[] = {
    "tick", "time_s",    "monotonic_s", "lateness_us",  "tick_us",
    "mode", "reason",    "latched",     "conditions",   "degraded",
    "gate", "published", "sequence",    "joint_number", "joint_age_ms"};
static const char *const after_cameras[] = {"target_rc", "chunk_id", "chunk_row",
                                            "blended"};
static const char *const of_joint[] = {".measured",   ".measured_vel", ".target",
                                       ".target_vel", ".commanded",    ".commanded_vel",
                                       ".seam",       ".limit"};
#define COUNT(a) (sizeof(a) / sizeof *(a))

void blackbox_csv_header(struct blackbox_text *t, const struct blackbox_columns *c)
{
    for (size_t i = 0; i < COUNT(before_cameras); i++)
        put_cell(t, before_cameras[i]);
    for (int i = 0; i < c->cameras; i++)
        put_name(t, c->camera[i], ".age_ms");
    for (size_t i = 0; i < COUNT(after_cameras); i++)
        put_cell(t, after_cameras[i]);
    for (int j = 0; j < c->joints; j++)
        for (size_t i = 0; i < COUNT(of_joint); i++)
            put_name(t, c->joint[j], of_joint[i]);
    end_line(t);
}

static void put_tick(struct blackbox_text *t, const struct blackbox_record *r,
                     ns_t zero_ns)
{
    put_u64(t, r->tick);
    put_fixed(t, r->now_ns - zero_ns, 9);
    put_fixed(t, r->now_ns, 9);
    put_fixed(t, r->lateness_ns, 3);
    put_fixed(t, r->tick_ns, 3);
    put_cell(t, ladder_state_name(r->mode));
    put_cell(t, ladder_reason_name(r->reason));
    put_latched(t, r->latched);
    put_conditions(t, r->conditions);
    put_u64(t, r->degraded);
    put_cell(t, gate_verdict_name((enum gate_verdict)r->gate));
    put_u64(t, r->published);
    put_u64(t, r->sequence);
    put_u64(t, r->joint_number);
    put_age_ms(t, r->joint_number > 0 ? r->joint_age_ns : BLACKBOX_NO_AGE);
}

static void put_joint(struct blackbox_text *t, const struct blackbox_joint *j)
{
    put_real(t, j->measured);
    put_real(t, j->measured_vel);
    put_real(t, j->target);
    put_real(t, j->target_vel);
    put_real(t, j->commanded);
    put_real(t, j->commanded_vel);
    put_real(t, j->seam);
    put_limit(t, j->limit);
}

void blackbox_csv_row(struct blackbox_text *t, const struct blackbox_columns *c,
                      const struct blackbox_record *r, ns_t zero_ns)
{
    put_tick(t, r, zero_ns);
    for (int i = 0; i < c->cameras; i++)
        put_age_ms(t, r->camera_age_ns[i]);
    put_fixed(t, r->target_rc, 0);
    put_u64(t, r->chunk_id);
    put_real(t, r->chunk_row);
    put_fixed(t, r->blended, 0);
    for (int j = 0; j < c->joints; j++)
        put_joint(t, &r->joint[j]);
    end_line(t);
}
