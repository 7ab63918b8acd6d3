// report_scan: one walk through a recording's ticks, with inputs and chunks beside them, in the
// order in which they happened.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/report_impl.h"

// ---- cursors ---------------------------------------------------------------------------------

int report_cursor_open(struct report_cursor *c, struct report *r, const char *topic,
                       struct mcap_error *err)
{
    memset(c, 0, sizeof *c);
    int rc = logbook_cursor_new(&c->c, r->book, topic, 0, 0);
    if (rc == -ENOENT)
        return 0;
    if (rc)
        snprintf(err->text, sizeof err->text, "%s: cannot be read: %s", topic,
                 strerror(-rc));
    else
        report_cursor_next(c, r);
    return rc;
}

// What is damaged is passed over and counted. A file can be damaged in many places, but each costs
// a call that moves on; still there is an end to patience.
void report_cursor_next(struct report_cursor *c, struct report *r)
{
    struct mcap_error err;
    int rc = 0;
    for (int tries = 0; c->c && tries < 100000; tries++) {
        rc = logbook_next(c->c, &c->m, &err);
        if (rc >= 0)
            break;
        r->damaged++;
    }
    c->there = c->c && rc == 1;
}

void report_cursor_close(struct report_cursor *c)
{
    logbook_cursor_free(c->c);
    c->c = NULL;
    c->there = false;
}

double report_at_s(const struct report *r, uint64_t log_ns)
{
    return log_ns > r->start_ns ? (double)(log_ns - r->start_ns) / 1e9 : 0;
}

int report_column(const struct report *r, uint64_t log_ns)
{
    return svg_column(report_at_s(r, log_ns), 0, r->seconds);
}

// ---- the ladder ------------------------------------------------------------------------------

// A span goes on from tick to tick, but not over a gap of the recording.
static bool goes_on(struct report *r, struct report_span *last,
                    const struct tick_record *t, double at_s)
{
    if (at_s - last->to_s > 1)
        return false;
    r->in_mode_s[last->mode] += at_s - last->to_s;
    last->to_s = at_s;
    return last->mode == t->mode && last->reason == t->reason;
}

static void scan_ladder(struct report *r, const struct tick_record *t, double at_s)
{
    bool known = (int)t->mode > 0 && t->mode < LADDER_STATES;
    if (r->spans > 0 && goes_on(r, &r->span[r->spans - 1], t, at_s))
        return;
    if (r->spans == REPORT_SPANS) { // the last one stands for all that follow
        r->spans_lost++;
        return;
    }
    r->span[r->spans++] = (struct report_span){at_s, at_s, known ? t->mode : LADDER_INIT,
                                               t->reason, t->culprit};
}

// ---- joints ----------------------------------------------------------------------------------

// At rest a driver that begins anew may be anywhere: that is not how well the arm follows.
static void scan_motion(struct report_joint *j, const struct tick_joint *k, bool moves,
                        bool published, double at_s)
{
    double off = fabs(k->measured - j->last_commanded);
    if (moves && off > j->follow) {
        j->follow = off;
        j->follow_s = at_s;
    }
    if (fabs(k->seam) > j->seam) {
        j->seam = fabs(k->seam);
        j->seam_s = at_s;
    }
    j->last_commanded = published ? k->commanded : NAN;
}

static void scan_joint(struct report *r, struct report_joint *j,
                       const struct tick_record *t, const struct tick_joint *k,
                       uint64_t log_ns)
{
    int col = report_column(r, log_ns);
    bool moving = t->mode == LADDER_RUNNING || t->mode == LADDER_APPROACH ||
                  t->mode == LADDER_HOLD || t->mode == LADDER_HOMING;
    svg_add(&j->measured, col, t->in.joint_sample ? k->measured : (double)NAN);
    svg_add(&j->target, col, k->target);
    svg_add(&j->commanded, col, t->published ? k->commanded : (double)NAN);
    svg_add(&j->speed, col, t->published ? k->commanded_vel : (double)NAN);
    if (moving && (int)k->limit > GUARD_NONE && k->limit < GUARD_LIMITS) {
        j->limits[k->limit]++;
        j->acted[col] = 1;
    }
    scan_motion(j, k, moving || t->mode == LADDER_STOPPING || t->mode == LADDER_DISARMING,
                t->published, report_at_s(r, log_ns));
}

static void break_curves(struct report *r)
{
    for (int i = 0; i < r->joints; i++) {
        struct report_joint *j = &r->joint[i];
        j->measured.broken = j->target.broken = true;
        j->commanded.broken = j->speed.broken = true;
        j->last_commanded = NAN;
    }
}

// ---- ticks -----------------------------------------------------------------------------------

// Ticks that are missing were skipped by a loop that woke late, or are not in the recording.
static void scan_gap(struct report *r, const struct tick_record *t)
{
    uint64_t missing = t->in.tick - r->last_tick - 1;
    if (r->ticks == 0 || t->in.tick <= r->last_tick || missing == 0)
        return;
    if ((double)t->in.lateness_ns + 0.5 * (double)r->period_ns >=
        (double)missing * (double)r->period_ns)
        r->skipped += missing;
    else
        r->unrecorded += missing;
    if (missing > 10)
        break_curves(r);
}

static void scan_counts(struct report *r, const struct tick_record *t)
{
    if (r->ticks == 0) {
        r->first_stalls = t->in.stalls;
        r->last_lost = t->in.lost_command;
    }
    r->stalls = t->in.stalls - r->first_stalls;
    r->commands += t->published;
    r->no_room += t->in.made_ns != 0 && !t->in.room;
    r->lost_commands += t->in.lost_command != r->last_lost;
    r->last_lost = t->in.lost_command;
    r->late += r->period_ns > 0 && t->in.lateness_ns > r->period_ns;
}

// How old what the tick knew was: of joint states since their capture, of frames since receipt.
static void scan_ages(struct report *r, const struct tick_record *t, int col)
{
    uint64_t number = t->in.joint_sample;
    if (number > 0 && r->recent[number % REPORT_RECENT].number == number) {
        ns_t age = t->in.now_ns - r->recent[number % REPORT_RECENT].capture_ns;
        hist_add(&r->stream[0].age, age);
        svg_add(&r->stream[0].oldest, col, (double)age / 1e6);
    }
    for (int i = 0; i < t->cameras && i + 1 < r->streams; i++) {
        ns_t received = t->in.camera[i].received_ns;
        if (received == 0)
            continue;
        hist_add(&r->stream[i + 1].age, t->in.now_ns - received);
        svg_add(&r->stream[i + 1].oldest, col, (double)(t->in.now_ns - received) / 1e6);
    }
}

static void scan_tick(struct report *r, const struct tick_record *t, uint64_t log_ns)
{
    int col = report_column(r, log_ns);
    scan_gap(r, t);
    scan_counts(r, t);
    scan_ladder(r, t, report_at_s(r, log_ns));
    scan_ages(r, t, col);
    hist_add(&r->lateness, t->in.lateness_ns);
    svg_add(&r->late_ms, col, (double)t->in.lateness_ns / 1e6);
    if (t->in.last_work_ns >= 0) {
        hist_add(&r->work, t->in.last_work_ns);
        svg_add(&r->work_ms, col, (double)t->in.last_work_ns / 1e6);
    }
    for (int i = 0; i < t->joints && i < r->joints; i++)
        scan_joint(r, &r->joint[i], t, &t->joint[i], log_ns);
    r->last_tick = t->in.tick;
    r->last_tick_ns = t->in.now_ns;
    r->ticks++;
}

// ---- the walk --------------------------------------------------------------------------------

struct walk {
    struct report_cursor tick, input, chunk;
};

// Chunks that came into view in this tick.
static void take_chunks(struct report *r, struct walk *w, const struct tick_record *t,
                        uint64_t log_ns)
{
    uint64_t last = t->in.chunks_before + t->in.chunks_taken;
    while (w->chunk.there && w->chunk.m.log_ns <= log_ns) {
        struct tape_chunk c;
        float *row = NULL;
        if (record_chunk_read(&c, &row, w->chunk.m.data, w->chunk.m.size)) {
            r->damaged++;
        } else if (c.number > last) {
            free(row);
            return; // ready, but this tick had not looked yet
        } else {
            report_scan_chunk(r, &c, log_ns, t->in.now_ns);
        }
        free(row);
        report_cursor_next(&w->chunk, r);
    }
}

static void take_inputs(struct report *r, struct walk *w, uint64_t log_ns)
{
    while (w->input.there && w->input.m.log_ns <= log_ns) {
        report_scan_input(r, &w->input.m);
        report_cursor_next(&w->input, r);
    }
}

static void walk_ticks(struct report *r, struct walk *w, struct tick_record *t)
{
    for (; w->tick.there; report_cursor_next(&w->tick, r)) {
        if (record_tick_read(t, w->tick.m.data, w->tick.m.size)) {
            r->damaged++;
            continue;
        }
        take_inputs(r, w, w->tick.m.log_ns);
        scan_tick(r, t, w->tick.m.log_ns);
        take_chunks(r, w, t, w->tick.m.log_ns);
    }
    take_inputs(r, w, UINT64_MAX);
}

int report_scan(struct report *r, struct mcap_error *err)
{
    struct walk w = {0};
    struct tick_record *t = calloc(1, sizeof *t);
    int rc = t ? 0 : -ENOMEM;
    if (rc == 0)
        rc = report_cursor_open(&w.tick, r, "/tick", err);
    if (rc == 0)
        rc = report_cursor_open(&w.input, r, "/input", err);
    if (rc == 0)
        rc = report_cursor_open(&w.chunk, r, "/policy/chunk", err);
    if (rc == 0)
        walk_ticks(r, &w, t);
    report_cursor_close(&w.tick);
    report_cursor_close(&w.input);
    report_cursor_close(&w.chunk);
    free(t);
    return rc;
}
