// top_draw: from top to bottom: who and in what state, why, rates, lateness beside
// streams, the chunk, joints, faults, keys. 24 rows hold eight joints; more rows hold
// more of the histogram and of the joints.
#include "daemon/actctl/top_draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/actctl/bar.h"
#include "daemon/actctl/text.h"
#include "daemon/actctl/words.h"

#define HIST_ROWS_MIN 5 // and the row above it
#define HIST_ROWS_MAX 10
#define HIST_WIDTH    38 // of 80; streams have the rest

typedef unsigned long long ull;

static int clamp(int v, int low, int high)
{
    return v < low ? low : v > high ? high : v;
}

// Returns the column after it.
static int draw_record(struct canvas *c, const Actd__V1__RecordStatus *r, int at)
{
    if (r && *r->last_error)
        return canvas_text(c, 0, at, BAD, "  record fails");
    if (r && r->recording)
        return canvas_text(c, 0, at, INVERSE, " REC ");
    if (r && r->mode != ACTD__V1__RECORD_STATUS__MODE__OFF)
        return canvas_text(c, 0, at, DIM, "  rec waits");
    return at;
}

static int draw_head(struct canvas *c, const struct top_view *v)
{
    const Actd__V1__Status *s = v->s;
    const Actd__V1__PolicyStatus *p = s->policy_in_use;
    int at = canvas_text(c, 0, 0, BOLD, "%s ", text_safe(s->instance));

    at = canvas_text(c, 0, at, words_mode_style(s->mode), " %s ", words_mode(s->mode));
    if (s->reason)
        at = canvas_text(c, 0, at, WARN, " %s", words_reason(s->reason));
    if (s->degraded)
        at = canvas_text(c, 0, at, WARN, " degraded");
    if (v->paused)
        at = canvas_text(c, 0, at + 1, INVERSE, " PAUSED ");
    at = draw_record(c, s->record, at);
    canvas_text(c, 0, at, DIM, "  actd %s", text_safe(s->version));
    at = canvas_text(c, 1, 0, PLAIN, "policy ");
    at = canvas_text(c, 1, at, BOLD, "%s", text_safe(p ? p->name : s->policy));
    if (p)
        at = canvas_text(c, 1, at, DIM, "  generation %u  %.12s", p->generation,
                         text_safe(p->digest));
    if (p && *p->swapping_to)
        canvas_text(c, 1, at, WARN, "  swapping to %s", text_safe(p->swapping_to));
    return 2;
}

// Two rows: what is the matter, and what to do, or when all is well the state's own
// sentences.
static int draw_why(struct canvas *c, const struct top_view *v, int row)
{
    const Actd__V1__Status *s = v->s;
    const char *why = *s->explanation ? s->explanation : words_reason_means(s->reason);
    const char *next = *s->explanation ? "" : words_reason_mend(s->reason);

    if (*v->lost) {
        canvas_wrap(c, row, 2, BAD, text_safe(v->lost));
        return row + 2;
    }
    int used =
        canvas_wrap(c, row, 2, PLAIN, *why ? text_safe(why) : words_mode_means(s->mode));
    if (used < 2)
        canvas_wrap(c, row + used, 2 - used, DIM,
                    *next ? next : words_mode_next(s->mode));
    return row + 2;
}

static int draw_rates(struct canvas *c, const Actd__V1__Status *s, int row)
{
    double share = s->control_hz > 0 ? s->achieved_hz / s->control_hz : 0;
    const Actd__V1__Histogram *i = s->inference, *l = s->chunk_latency;
    ull drops = 0;
    int at;

    for (size_t k = 0; k < s->n_drops; k++)
        drops += s->drops[k]->value;
    at = canvas_text(c, row, 0, PLAIN, "rate  ");
    at = canvas_text(c, row, at, share > 0.97 ? GOOD : WARN, "%.1f", s->achieved_hz);
    canvas_text(c, row, at, PLAIN,
                " of %.0f Hz, %llu skipped, %llu drops, inference %.1f Hz", s->control_hz,
                (ull)s->skipped_ticks, drops, s->inference_hz);
    at = canvas_text(c, row + 1, 0, PLAIN, "infer ");
    if (i && i->count)
        at = canvas_text(c, row + 1, at, PLAIN, "p50 %s p99 %s", text_ns(i->p50_ns),
                         text_ns(i->p99_ns));
    if (l && l->count)
        canvas_text(c, row + 1, at, PLAIN, "; chunk latency p50 %s p99 %s",
                    text_ns(l->p50_ns), text_ns(l->p99_ns));
    return row + 2;
}

// The rows' upper ends; the last is open.
static const uint64_t ends_ns[] = {10000,    20000,    50000,    100000,  200000,
                                   500000,   1000000,  2000000,  5000000, 10000000,
                                   20000000, 50000000, 100000000};
#define ENDS (int)(sizeof ends_ns / sizeof ends_ns[0])

static int class_of(uint64_t below_ns)
{
    int i = 0;

    while (i < ENDS && below_ns > ends_ns[i])
        i++;
    return i;
}

// Which of the ENDS + 1 rows to show: up to the worst there is, as far back as there is
// room; what lies before counts to the first shown.
static void gather(const Actd__V1__Histogram *h, int rows, ull count[ENDS + 1],
                   int *first)
{
    int last = rows - 1;

    memset(count, 0, sizeof(ull) * (ENDS + 1));
    for (size_t i = 0; i < h->n_buckets; i++) {
        int k = class_of(h->buckets[i]->below_ns);
        count[k] += h->buckets[i]->count;
        last = k > last ? k : last;
    }
    *first = last - rows + 1;
    for (int k = 0; k < *first; k++)
        count[*first] += count[k];
}

static void draw_bar(struct canvas *c, int row, int k, ull count, ull largest)
{
    int width = HIST_WIDTH - 20, n = bar_log(width, count, largest);
    char bar[HIST_WIDTH] = "";
    enum style s = k > class_of(1000000) ? BAD : k > class_of(200000) ? WARN : GOOD;

    memset(bar, '#', (size_t)n);
    if (k >= 0 && k < ENDS)
        canvas_text(c, row, 0, PLAIN, "  <%5g ms ", (double)ends_ns[k] / 1e6);
    else
        canvas_text(c, row, 0, PLAIN, "  more     ");
    canvas_text(c, row, 12, s, "%s", bar);
    if (count)
        canvas_text(c, row, 13 + n, PLAIN, "%llu", count);
}

static void draw_lateness(struct canvas *c, const Actd__V1__Status *s, int row, int rows)
{
    const Actd__V1__Histogram *h = s->lateness;
    ull count[ENDS + 1], largest = 0;
    int first;

    if (!h || !h->count) {
        canvas_text(c, row, 0, BOLD, "lateness  nothing yet");
        return;
    }
    int at = canvas_text(c, row, 0, BOLD, "late (log) ");
    canvas_text(c, row, at, PLAIN, "p99 %s max %s", text_ns(h->p99_ns),
                text_ns(h->max_ns));
    if (h->n_buckets == 0)
        return;
    gather(h, rows, count, &first);
    for (int k = first; k < first + rows; k++)
        largest = count[k] > largest ? count[k] : largest;
    for (int k = 0; k < rows; k++)
        draw_bar(c, row + 1 + k, first + k, count[first + k], largest);
}

static void draw_streams(struct canvas *c, const Actd__V1__Status *s, int row, int rows)
{
    int n = (int)s->n_streams, shown = n > rows ? rows - 1 : n, left = HIST_WIDTH;
    int name = clamp(c->columns - left - 29, 12, 24);

    canvas_text(c, row, left, BOLD, "%-*s %6s %4s %10s", name, "stream", "Hz", "of",
                "age");
    for (int i = 0; i < shown; i++) {
        const Actd__V1__Stream *m = s->streams[i];
        enum style st = !m->fresh ? BAD : m->slow ? WARN : PLAIN;
        canvas_text(c, row + 1 + i, left, st, "%-*.*s %6.1f %4.0f %10s%s", name, name,
                    text_safe(m->name), m->achieved_hz, m->asked_hz,
                    m->received ? text_ns(m->age_ns) : "never", m->slow ? " slow" : "");
    }
    if (shown < n)
        canvas_text(c, row + 1 + shown, left, DIM, "and %d more", n - shown);
}

static int draw_chunk(struct canvas *c, const Actd__V1__Status *s, int row)
{
    const Actd__V1__ChunkStatus *k = s->chunk;
    char bar[BAR_MAX + 1];
    int at = canvas_text(c, row, 0, BOLD, "chunk ");

    if (!k || k->id == 0) {
        canvas_text(c, row, at, DIM, "none");
        return row + 1;
    }
    if (!words_follows(s->mode)) {
        canvas_text(c, row, at, PLAIN, "ready, not followed; %u rows, %s old", k->rows,
                    text_ns(k->age_ns));
        return row + 1;
    }
    bar_chunk(bar, c->columns - 54, k->row, k->rows);
    at = canvas_text(c, row, at, GOOD, "%s", bar);
    canvas_text(c, row, at, PLAIN, " row %.0f/%u, %.0f left, %u blended, %s old", k->row,
                k->rows, k->remaining, k->blended, text_ns(k->age_ns));
    return row + 1;
}

static void draw_joint(struct canvas *c, int row, const Actd__V1__JointStatus *j)
{
    char bar[BAR_MAX + 1];
    enum style st = j->limit ? WARN : PLAIN;
    int width = c->columns - 62;

    bar_place(bar, width, j->min, j->max, j->measured, j->wanted, j->commanded);
    canvas_text(c, row, 0, st, "%-14.14s %8.3f %8.3f ", text_safe(j->name), j->measured,
                j->commanded);
    if (isfinite(j->wanted))
        canvas_text(c, row, 33, st, "%8.3f", j->wanted);
    canvas_text(c, row, 42, st, "%-8.8s", j->limit ? words_limit(j->limit) : "");
    int at = canvas_text(c, row, 50, DIM, "%6.2f ", j->min);
    at = canvas_text(c, row, at, st, "%s", bar);
    canvas_text(c, row, at, DIM, " %.2f", j->max);
}

static void draw_joints(struct canvas *c, const struct top_view *v, int row, int rows)
{
    int n = (int)v->s->n_joints, shown = n, first = v->first_joint;

    if (n == 0 || rows < 2)
        return;
    if (n > rows - 1)
        shown = rows - 2; // and a row that says so
    if (first > n - shown)
        first = n - shown;
    canvas_text(c, row, 0, BOLD, "%-14s %8s %8s %8s %-8s %6s", "joint", "o meas.",
                "# comm.", "w wanted", "limit", "min");
    canvas_text(c, row, c->columns - 5, BOLD, "max");
    for (int i = 0; i < shown; i++)
        draw_joint(c, row + 1 + i, v->s->joints[first + i]);
    if (shown < n)
        canvas_text(c, row + 1 + shown, 0, DIM,
                    "joints %d to %d of %d: j and k, or a taller terminal", first + 1,
                    first + shown, n);
}

static void draw_keys(struct canvas *c, int row, int rows)
{
    static const char *const line[] = {
        "q      quit",
        "space  pause the picture, not the robot",
        "j k    further joints",
        "s      stop: the arm comes to rest, latched until actctl reset",
        "e      emergency stop: e again within 3 s sends it, any other key cancels it",
        "?      the joints again",
        "Bars of joints: o measured, # commanded, w wanted by the policy, between limits",
    };

    canvas_text(c, row, 0, BOLD, "keys");
    for (int i = 0; i < (int)(sizeof line / sizeof line[0]) && i < rows - 1; i++)
        canvas_text(c, row + 1 + i, 0, PLAIN, "%s", line[i]);
}

static void draw_foot(struct canvas *c, const struct top_view *v)
{
    const Actd__V1__Status *s = v->s;
    int row = c->rows - 2, at = 0;

    for (size_t i = 0; s && i < s->n_faults; i++)
        if (s->faults[i]->active || s->faults[i]->latched)
            at = canvas_text(c, row, at, s->faults[i]->active ? BAD : WARN, "%s%s%s",
                             at ? ", " : "fault ", words_reason(s->faults[i]->reason),
                             s->faults[i]->latched ? " latched" : "");
    if (*v->message)
        canvas_text(c, c->rows - 1, 0, v->message_style, "%s", text_safe(v->message));
    else if (v->keys)
        canvas_text(
            c, c->rows - 1, 0, DIM,
            "q quit  space pause  j k joints  s stop  e e-stop (press twice)  ? keys");
}

void top_draw(struct canvas *c, const struct top_view *v)
{
    int row, hist, spare;

    canvas_clear(c, c->rows, c->columns);
    if (v->s == NULL) {
        canvas_text(c, 0, 0, BOLD, "actctl top  %s", text_safe(v->socket));
        canvas_wrap(c, 2, 4, BAD,
                    *v->lost ? text_safe(v->lost) : "waiting for the first answer");
        draw_foot(c, v);
        return;
    }
    row = draw_head(c, v);
    row = draw_why(c, v, row);
    row = draw_rates(c, v->s, row);
    // What is left beside the chunk, the joints with their heading, faults and keys.
    spare = c->rows - row - 1 - 1 - ((int)v->s->n_joints + 1) - 2;
    hist = clamp(spare, HIST_ROWS_MIN, HIST_ROWS_MAX);
    draw_lateness(c, v->s, row, hist);
    draw_streams(c, v->s, row, hist);
    row = draw_chunk(c, v->s, row + 1 + hist);
    if (v->help)
        draw_keys(c, row, c->rows - 2 - row);
    else
        draw_joints(c, v, row, c->rows - 2 - row);
    draw_foot(c, v);
}
