// Faults of the policy: a chunk of 80 rows of 20 ms every 400 ms or so, 30 ms after its
// observation. At the injection a chunk is at most 470 ms old, so rows last a second more.
#include <math.h>

#include "daemon/chunks_impl.h"
#include "daemon/loop_impl.h"
#include "tests/fault/matrix.h"

#define POLICY(v, n, m)                                                      \
    {                                                                        \
        .target = INJECT_POLICY, .verb = (v), .ticks = (n), .magnitude = (m) \
    }
// So late that the rows in use then came after the detector was switched off.
#define LATER(v, n, m)                                                   \
    {                                                                    \
        .target = INJECT_POLICY, .verb = (v), .from = 100, .ticks = (n), \
        .magnitude = (m)                                                 \
    }
#define WRONG(v, n, m)                                                             \
    {                                                                              \
        .target = INJECT_POLICY, .verb = VERB_WRONG, .variant = (v), .ticks = (n), \
        .magnitude = (m)                                                           \
    }

// The last row of the newest chunk is over: no chunk that was handed over reaches this tick. The
// row's place is what the command before said, and a tick is a quarter of a row.
static bool rows_over(struct probe *p)
{
    double row = p->w->plant.command.chunk_row;

    return p->began != 0 || row + 0.25 >= (double)p->w->cfg.rows;
}

static uint64_t since(struct probe *p, enum chunk_verdict v)
{
    return world_report(p->w)->verdict[v] - p->before.verdict[v];
}

static bool first_bad(struct probe *p)
{
    return since(p, CHUNK_NOT_FINITE) >= 1;
}

// From the frame to the chunk, of the newest one that was (not yet) handed over at the injection.
static ns_t took(const struct probe *p, bool since)
{
    const struct world_chunk *newest = NULL;

    for (int i = 0; i < WORLD_CHUNKS; i++) {
        const struct world_chunk *c = &p->w->chunk[i];

        if (c->id != 0 && (world_ordinal(p->w, c->ready_ns) >= p->from) == since &&
            (!newest || c->id > newest->id))
            newest = c;
    }
    return newest ? newest->ready_ns - newest->anchor_ns : 0;
}

static bool took_more(const struct probe *p, ns_t by)
{
    return took(p, true) >= took(p, false) + by - NS_PER_MS;
}

static bool took_30_more(struct probe *p)
{
    return took_more(p, 30 * NS_PER_MS);
}

static bool took_270_more(struct probe *p)
{
    return took_more(p, 270 * NS_PER_MS);
}

static const char *none_dropped(struct probe *p)
{
    for (int v = 0; v < CHUNK_VERDICTS; v++)
        if (v != CHUNK_USED && since(p, (enum chunk_verdict)v) > 0)
            return "a chunk was dropped";
    return since(p, CHUNK_USED) >= 4 ? NULL : "too few chunks since";
}

// The furthest row that was acted on.
static void furthest(struct probe *p)
{
    p->memory[0] = fmax(p->memory[0], p->w->plant.command.chunk_row);
}

// A request every 20 rows, and an answer 15 rows later: rows up to there were needed.
static const char *none_dropped_far(struct probe *p)
{
    return p->memory[0] > 34 ? none_dropped(p) : "it never came to the rows behind";
}

static const char *one_dropped(struct probe *p)
{
    return since(p, CHUNK_NOT_FINITE) == 1 ? NULL : "not exactly one chunk was dropped";
}

static const char *late_dropped(struct probe *p)
{
    return since(p, CHUNK_LATE) + since(p, CHUNK_TOO_OLD) > 0 ? NULL
                                                              : "no chunk was dropped";
}

static const char *all_disordered(struct probe *p)
{
    return since(p, CHUNK_OUT_OF_ORDER) >= 5 && since(p, CHUNK_USED) <= 4
               ? NULL
               : "it was taken for a new one";
}

static bool limited(struct probe *p)
{
    return p->w->plant.command.limit != 0;
}

static const char *limit_told(struct probe *p)
{
    const struct loop_report *r = world_report(p->w);

    for (int i = 0; i < p->w->cfg.loop.joints; i++)
        for (int l = 1; l < GUARD_LIMITS; l++)
            if (r->limited[i][l] > p->before.limited[i][l])
                return r->gate_refusals > 0 ? "the gate had to refuse it" : NULL;
    return "no limit acted";
}

// Of what an inference is made from nothing may be older than this: a chunk that took longer
// is not acted on.
static void short_memory(struct world_config *c)
{
    c->loop.chunks.max_age_ns = 500 * NS_PER_MS;
    c->every_rows = 10;
}

// Only the end of its rows ends a chunk.
static void long_memory(struct world_config *c)
{
    c->loop.chunks.max_age_ns = 20 * NS_PER_S;
}

// Memory goes wrong: the rows in use are not numbers any more.
static void hit_rows(struct world *w, uint64_t since)
{
    struct chunks *q = w->loop->chunks;

    for (int i = 0; i < q->n && since == 0; i++)
        for (int r = 0; r < q->live[i].rows; r++)
            q->live[i].row[r * w->cfg.loop.joints] = NAN;
}

static const char *never_older(struct probe *p)
{
    return since(p, CHUNK_TOO_OLD) > 0 ? NULL : "an old observation was acted on";
}

static const struct scenario of[] = {
    {.name = "policy hangs",
     .bound = "HOLD at the chunk's end",
     .detector = BLIND_POLICY,
     .inject = POLICY(VERB_OFF, 600, 0),
     .reason = REASON_POLICY_SLOW,
     .least = 273,
     .most = 273,
     .path = "HOLD STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "policy hangs, end of the rows",
     .bound = "HOLD at the chunk's end",
     .detector = BLIND_CHUNK_END,
     .configure = long_memory,
     .inject = LATER(VERB_OFF, 600, 0),
     .begins = rows_over,
     .reason = REASON_POLICY_SLOW,
     .least = 0,
     .most = 0,
     .path = "HOLD STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "policy 2 times slower",
     .bound = "the rows that are left",
     .harmless = true,
     .inject = POLICY(VERB_SLOW, 600, 2),
     .seen = took_30_more,
     .least = 45,
     .most = 45,
     .recovery = RUNS_ON,
     .check = none_dropped},
    {.name = "policy 10 times slower",
     .bound = "the rows that are left",
     .harmless = true,
     .inject = POLICY(VERB_SLOW, 600, 10),
     .seen = took_270_more,
     .least = 93,
     .most = 93,
     .recovery = RUNS_ON,
     .watch = furthest,
     .check = none_dropped_far},
    {.name = "policy 60 times slower",
     .bound = "HOLD at the chunk's end",
     .detector = BLIND_CHUNK_END,
     .configure = long_memory,
     .inject = LATER(VERB_SLOW, 600, 60),
     .begins = rows_over,
     .reason = REASON_POLICY_SLOW,
     .least = 0,
     .most = 0,
     .path = "HOLD STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true,
     .check = late_dropped},
    {.name = "answer to a request long past",
     .bound = "dropped; then HOLD",
     .detector = BLIND_CHUNK_AGE,
     .configure = short_memory,
     .inject = POLICY(VERB_DELAYED, 400, 600),
     .reason = REASON_CHUNK_TOO_OLD,
     .told = REASON_POLICY_SLOW,
     .least = 93,
     .most = 93,
     .path = "HOLD STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true,
     .check = never_older},
    {.name = "policy says NaN, once",
     .bound = "dropped, the chunk goes on",
     .detector = BLIND_CHUNK_FINITE,
     .inject = WRONG(POLICY_NAN, 85, 0),
     .seen = first_bad,
     .least = 39,
     .most = 39,
     .recovery = RUNS_ON,
     .check = one_dropped},
    {.name = "policy says NaN",
     .bound = "2 chunks",
     .detector = BLIND_CHUNK_FINITE,
     .inject = WRONG(POLICY_NAN, 400, 0),
     .reason = REASON_NOT_FINITE,
     .least = 119,
     .most = 119,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "policy says infinity",
     .bound = "2 chunks",
     .detector = BLIND_CHUNK_FINITE,
     .inject = WRONG(POLICY_INFINITE, 400, 0),
     .reason = REASON_NOT_FINITE,
     .least = 119,
     .most = 119,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "policy wants 30 rad",
     .bound = "2 chunks",
     .detector = BLIND_CHUNK_RANGE,
     .inject = WRONG(POLICY_HUGE, 400, 30),
     .reason = REASON_POLICY_OUT_OF_RANGE,
     .least = 119,
     .most = 119,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "chunks of a wrong width",
     .bound = "2 chunks",
     .detector = BLIND_CHUNK_SHAPE,
     .inject = WRONG(POLICY_WIDTH, 400, 0),
     .reason = REASON_POLICY_FAILED,
     .least = 119,
     .most = 119,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
    {.name = "chunks with the id of one before",
     .bound = "dropped; then HOLD",
     .detector = BLIND_CHUNK_ORDER,
     .inject = WRONG(POLICY_SAME_ID, 800, 0),
     .reason = REASON_NO_CHUNK,
     .least = 273,
     .most = 273,
     .path = "HOLD STOPPING STOPPED",
     .recovery = LATCHES,
     .cause_goes = true,
     .check = all_disordered},
    {.name = "policy wants a step of 1 rad",
     .bound = "limited, counted, told",
     .detector = BLIND_GUARD,
     .inject = WRONG(POLICY_FAR, 100, 1),
     .seen = limited,
     .least = 41,
     .most = 41,
     .recovery = RUNS_ON,
     .check = limit_told,
     .settle = 600},
    {.name = "policy wants nothing but zeros",
     .bound = "limited, counted, told",
     .detector = BLIND_GUARD,
     .inject = WRONG(POLICY_ZEROS, 100, 0),
     .seen = limited,
     .least = 41,
     .most = 41,
     .recovery = RUNS_ON,
     .check = limit_told,
     .settle = 600},
    {.name = "rows in memory are hit",
     .bound = "the same tick; 5 in a row",
     .detector = BLIND_TARGET,
     .act = hit_rows,
     .hits = 1,
     .inject = {.ticks = 20},
     .reason = REASON_NOT_FINITE,
     .least = 0,
     .most = 0,
     .path = "HOLD STOPPING STOPPED",
     .stop_after = 4,
     .recovery = LATCHES,
     .cause_goes = true},
    {.name = "inference fails",
     .bound = "3 in a row",
     .detector = BLIND_POLICY,
     .inject = WRONG(POLICY_FAILS, 400, 0),
     .reason = REASON_POLICY_FAILED,
     .least = 199,
     .most = 199,
     .path = "STOPPING STOPPED",
     .recovery = LATCHES},
};

const struct scenario_group group_policy = {"policy", of, sizeof of / sizeof *of};
