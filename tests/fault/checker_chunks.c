// The chunk rule of the checker: which chunks are in time at an instant, what each of them wants
// there, and whether the command can have come from them. A blend of chunks, whatever its mode,
// lies between the least and the most that one of them wants. Where one policy takes over from
// another there is a bridge: it begins where the old one's chunks are, and when it is over only the
// new one's count; in between the limits of the command are all that is asked of it here.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fault/checker_impl.h"

#define TARGET_SLACK 1e-9 // rad, of a sum of a few hundred weighted terms
#define ROW_SLACK    1e-9 // rows
#define FEW          8 // chunks in time; with more only one joint per tick is looked at

static int64_t rows_end(const struct checker_offer *o)
{
    return o->anchor_ns + o->rows * o->step_ns;
}

static int64_t oldest(const struct checker *c, const struct checker_offer *o)
{
    return c->cfg.max_age_ns > 0 ? c->cfg.max_age_ns : o->rows * o->step_ns;
}

static bool in_time(const struct checker *c, const struct checker_offer *o, int64_t now)
{
    return o->usable && now >= o->anchor_ns && now < rows_end(o) &&
           now - o->seen_ns <= oldest(c, o);
}

// ---- on offer --------------------------------------------------------------------------------

// Those that ended long ago; the others are kept so that their use can be told from an invention.
static void forget(struct checker *c, int64_t now)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->n_chunks; i++) {
        struct checker_offer *o = &c->chunk[i];

        if (now > rows_end(o) + o->rows * o->step_ns && o->id != c->chunk_id)
            free(o->row);
        else
            c->chunk[kept++] = *o;
    }
    c->n_chunks = kept;
}

static struct checker_offer *room(struct checker *c)
{
    struct checker_offer *more;

    if (c->n_chunks < c->room)
        return &c->chunk[c->n_chunks++];
    more = realloc(c->chunk, (2 * c->room + 16) * sizeof *more);
    if (!more)
        return NULL;
    c->chunk = more;
    c->room = 2 * c->room + 16;
    return &c->chunk[c->n_chunks++];
}

static bool all_finite(const float *row, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(row[i]))
            return false;
    return true;
}

void checker_policy(struct checker *c, uint32_t generation, int64_t step_ns)
{
    c->offered = generation;
    c->offered_step_ns = step_ns;
}

void checker_chunk(struct checker *c, uint64_t id, int64_t anchor_ns, int rows,
                   int joints, const float *row, int64_t now)
{
    size_t n = rows > 0 && joints > 0 ? (size_t)rows * (size_t)joints : 0;
    struct checker_offer *o;

    forget(c, now);
    o = room(c);
    if (!o)
        return;
    *o = (struct checker_offer){.id = id,
                                .generation = c->offered,
                                .step_ns = c->offered_step_ns ? c->offered_step_ns
                                                              : c->cfg.step_ns,
                                .seen_ns = anchor_ns,
                                .anchor_ns = anchor_ns,
                                .rows = rows < c->cfg.rows ? rows : c->cfg.rows,
                                .joints = joints,
                                .row = malloc((n + 1) * sizeof *o->row)};
    o->usable = n > 0 && joints == c->cfg.joints && o->row && all_finite(row, n) &&
                o->generation >= c->generation;
    if (o->row && n > 0)
        memcpy(o->row, row, n * sizeof *row);
}

// ---- what one of them wants ------------------------------------------------------------------

static double value(const struct checker_offer *o, int row, int joint)
{
    return (double)o->row[row * o->joints + joint];
}

// Catmull-Rom as the cubic through four points at -1, 0, 1, 2, Hermite form; one-sided at the
// first row, at rest in the last.
static double cubic(const struct checker_offer *o, int row, double x, int joint)
{
    double p = value(o, row, joint), q = value(o, row + 1, joint);
    double leave = row > 0 ? (q - value(o, row - 1, joint)) / 2 : q - p;
    double arrive = row + 2 < o->rows ? (value(o, row + 2, joint) - p) / 2 : 0;
    double y = 1 - x;

    return p * y * y * (1 + 2 * x) + q * x * x * (1 + 2 * y) + leave * x * y * y -
           arrive * x * x * y;
}

static double wants(const struct checker *c, const struct checker_offer *o, int64_t now,
                    int joint)
{
    int64_t since = now - o->anchor_ns;
    int row = (int)(since / o->step_ns);
    double x = (double)(since - row * o->step_ns) / (double)o->step_ns;

    if (row + 1 >= o->rows || !c->cfg.blend[joint] ||
        c->cfg.interpolation == CHECKER_HOLD_ROWS)
        return value(o, row, joint);
    if (c->cfg.interpolation == CHECKER_CUBIC)
        return cubic(o, row, x, joint);
    return value(o, row, joint) * (1 - x) + value(o, row + 1, joint) * x;
}

// ---- the command -----------------------------------------------------------------------------

static double place(const struct checker_offer *o, int64_t now)
{
    return (double)(now - o->anchor_ns) / (double)o->step_ns;
}

// Which offer of this number the command can be from: a policy gone wrong may use one twice.
static struct checker_offer *find(struct checker *c, const struct checker_command *m,
                                  int64_t now)
{
    struct checker_offer *best = NULL;

    for (size_t i = c->n_chunks; i-- > 0;) {
        struct checker_offer *o = &c->chunk[i];
        bool here = m->mode != ACTD__V1__MODE__MODE_RUNNING || c->begins ||
                    fabs(place(o, now) - m->chunk_row) <= ROW_SLACK;

        if (o->id == m->chunk_id && (!best || (here && in_time(c, o, now))))
            best = o;
    }
    return best;
}

void checker_chunks_step(struct checker *c, int from)
{
    c->begins =
        c->mode == ACTD__V1__MODE__MODE_RUNNING && from == ACTD__V1__MODE__MODE_APPROACH;
    if (c->begins || c->mode != ACTD__V1__MODE__MODE_RUNNING)
        c->chunk_id = 0;
}

// Execution begins: the chunk's row 0 is for now, and no older chunk has a part in it.
static void begin(struct checker *c, struct checker_offer *o, int64_t now)
{
    if (!in_time(c, o, now))
        checker_blame(c, CHECK_CHUNK_END,
                      "execution begins with chunk %" PRIu64 ", ended", o->id);
    o->anchor_ns = now;
    for (size_t i = 0; i < c->n_chunks; i++)
        if (&c->chunk[i] != o)
            c->chunk[i].usable = false;
    c->generation = o->generation;
    c->bridge_end_ns = 0;
    c->begins = false;
}

// ---- another policy --------------------------------------------------------------------------

// What the old policy's chunks allow at this instant; false when none is in time. Where a newer one
// replaces the others whole, none is gone back to.
static bool old_range(const struct checker *c, int joint, int64_t now, double *least,
                      double *most)
{
    bool any = false, newest = !c->cfg.whole;

    *least = INFINITY;
    *most = -INFINITY;
    for (size_t i = 0; i < c->n_chunks; i++) {
        const struct checker_offer *o = &c->chunk[i];

        if (o->generation != c->generation || !in_time(c, o, now))
            continue;
        newest = newest || o->id == c->chunk_id;
        *least = fmin(*least, wants(c, o, now, joint));
        *most = fmax(*most, wants(c, o, now, joint));
        any = true;
    }
    return any && newest;
}

// A bridge goes no further out than a target may, whatever the old policy wanted.
static double cut(const struct checker *c, int joint, double v)
{
    double lo = c->cfg.hard_min[joint], hi = c->cfg.hard_max[joint];

    return lo == 0 && hi == 0 ? v : fmin(fmax(v, lo), hi);
}

// In the tick of the change the target is still where the old policy's is.
static void judge_departure(struct checker *c, const struct checker_command *m,
                            int64_t now)
{
    double least, most;

    for (int i = 0; i < c->cfg.joints; i++)
        if (c->cfg.blend[i] && old_range(c, i, now, &least, &most) &&
            !(m->wanted[i] >= cut(c, i, least) - TARGET_SLACK &&
              m->wanted[i] <= cut(c, i, most) + TARGET_SLACK))
            checker_blame(c, CHECK_CHUNK_WANTED,
                          "joint %d: a new policy begins at %.9g, the old one is at %.9g "
                          "to %.9g",
                          i, m->wanted[i], least, most);
}

static void take_over(struct checker *c, const struct checker_offer *o,
                      const struct checker_command *m, int64_t now)
{
    // In HOLD, or in a tick without a command, it may have begun unseen.
    bool seen = c->command_mode == m->mode && c->judged + 1 == c->executed;
    int64_t end = rows_end(o), old = o->seen_ns + oldest(c, o) + 1;

    if (end > old)
        end = old;
    if (seen && c->cfg.bridge_ns > 0 && now >= c->bridge_end_ns)
        judge_departure(c, m, now);
    c->bridge_end_ns = now + c->cfg.bridge_ns;
    if (seen && c->bridge_end_ns > end)
        c->bridge_end_ns = end;
    c->generation = o->generation;
    for (size_t i = 0; i < c->n_chunks; i++)
        if (c->chunk[i].generation < c->generation)
            c->chunk[i].usable = false;
}

static void judge_place(struct checker *c, const struct checker_offer *o, double said,
                        int64_t now)
{
    double row = place(o, now);

    if (!o->usable)
        checker_blame(c, CHECK_CHUNK_UNKNOWN, "chunk %" PRIu64 " is not usable", o->id);
    if (now < o->anchor_ns || now >= rows_end(o))
        checker_blame(c, CHECK_CHUNK_END, "chunk %" PRIu64 " of %d rows, row %.6f", o->id,
                      o->rows, row);
    if (now - o->seen_ns > oldest(c, o))
        checker_blame(c, CHECK_CHUNK_AGE, "chunk %" PRIu64 ", seen %" PRId64 " ns ago",
                      o->id, now - o->seen_ns);
    if (c->mode == ACTD__V1__MODE__MODE_RUNNING && fabs(said - row) > ROW_SLACK)
        checker_blame(c, CHECK_CHUNK_ROW, "chunk %" PRIu64 ": row %.9f, not %.9f", o->id,
                      said, row);
    if (c->mode == ACTD__V1__MODE__MODE_APPROACH && said != 0)
        checker_blame(c, CHECK_CHUNK_ROW, "chunk %" PRIu64 ": row %.9f, not 0", o->id,
                      said);
}

static void judge_target(struct checker *c, const struct checker_offer *newest,
                         double wanted, int joint, int64_t now)
{
    double least = wants(c, newest, now, joint), most = least;

    if (c->cfg.blend[joint] && now < c->bridge_end_ns)
        return;
    for (size_t i = 0; i < c->n_chunks && c->cfg.blend[joint]; i++)
        if (c->chunk[i].generation == newest->generation &&
            in_time(c, &c->chunk[i], now)) {
            double w = wants(c, &c->chunk[i], now, joint);

            least = fmin(least, w);
            most = fmax(most, w);
        }
    if (!(wanted >= least - TARGET_SLACK && wanted <= most + TARGET_SLACK))
        checker_blame(c, CHECK_CHUNK_WANTED,
                      "joint %d: %.9g, the chunks say %.9g to %.9g", joint, wanted, least,
                      most);
}

static void judge_targets(struct checker *c, const struct checker_offer *newest,
                          const struct checker_command *m, int64_t now)
{
    int n = c->cfg.joints, only = (int)(c->tick % (uint64_t)n);
    bool all = c->n_chunks <= FEW;

    if (!in_time(c, newest, now))
        return; // said already
    for (int i = all ? 0 : only; i < (all ? n : only + 1); i++)
        if (c->mode == ACTD__V1__MODE__MODE_RUNNING)
            judge_target(c, newest, m->wanted[i], i, now);
        else if (m->wanted[i] != value(newest, 0, i))
            checker_blame(c, CHECK_CHUNK_WANTED, "joint %d: %.9g, row 0 says %.9g", i,
                          m->wanted[i], value(newest, 0, i));
}

static bool still_there(const struct checker *c, uint64_t id, int64_t now)
{
    for (size_t i = 0; i < c->n_chunks; i++)
        if (c->chunk[i].id == id && in_time(c, &c->chunk[i], now))
            return true;
    return false;
}

void checker_chunks_judge(struct checker *c, const struct checker_command *m, int64_t now)
{
    struct checker_offer *o = m->chunk_id ? find(c, m, now) : NULL;

    if (m->mode == ACTD__V1__MODE__MODE_RUNNING && m->chunk_id == 0)
        checker_blame(c, CHECK_CHUNK_NONE, "RUNNING");
    if (m->chunk_id == 0)
        return;
    if (!o) {
        checker_blame(c, CHECK_CHUNK_UNKNOWN, "chunk %" PRIu64 " was never offered",
                      m->chunk_id);
        return;
    }
    if (m->chunk_id < c->chunk_id && (c->cfg.whole || still_there(c, c->chunk_id, now)))
        checker_blame(c, CHECK_CHUNK_ORDER, "from %" PRIu64 " to %" PRIu64, c->chunk_id,
                      m->chunk_id);
    if (o->generation < c->generation)
        checker_blame(c, CHECK_CHUNK_ORDER, "chunk %" PRIu64 " is of an older policy",
                      o->id);
    if (c->begins)
        begin(c, o, now);
    else if (m->mode == ACTD__V1__MODE__MODE_RUNNING && o->generation > c->generation)
        take_over(c, o, m, now);
    judge_place(c, o, m->chunk_row, now);
    if (o->usable)
        judge_targets(c, o, m, now);
    if (m->mode == ACTD__V1__MODE__MODE_RUNNING) {
        c->chunk_id = m->chunk_id;
        c->judged = c->executed;
    }
}
