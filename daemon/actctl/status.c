// status: one screen that tells a person what the robot does, why, and what to do next.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/actctl/bar.h"
#include "daemon/actctl/ctl.h"
#include "daemon/actctl/style.h"
#include "daemon/actctl/text.h"
#include "daemon/actctl/words.h"
#include "daemon/table.h"

#define WIDTH 80

typedef unsigned long long ull;

// What is the matter, and what to do: the daemon's sentence has both; ours stands in for
// it.
static void print_why(const Actd__V1__Status *s, bool colour)
{
    text_wrap(stdout, 2, WIDTH, words_mode_means(s->mode));
    text_wrap(stdout, 2, WIDTH,
              *s->explanation ? s->explanation : words_reason_means(s->reason));
    fputs(style_code(colour, BOLD), stdout);
    if (!*s->explanation)
        text_wrap(stdout, 2, WIDTH, words_reason_mend(s->reason));
    text_wrap(stdout, 2, WIDTH, words_mode_next(s->mode));
    fputs(style_code(colour, PLAIN), stdout);
}

static void print_head(const Actd__V1__Status *s, bool colour)
{
    printf("%s%s%s  %s%s%s", style_code(colour, BOLD), text_safe(s->instance),
           style_code(colour, PLAIN), style_code(colour, words_mode_style(s->mode)),
           words_mode(s->mode), style_code(colour, PLAIN));
    if (s->reason)
        printf("  %s", words_reason(s->reason));
    printf("%s  (actd %s)\n", s->degraded ? "  degraded" : "", text_safe(s->version));
    print_why(s, colour);
    if (strcmp(s->version, ACTD_VERSION) != 0)
        printf("  (actctl is %s: what only one of them knows is not shown)\n",
               ACTD_VERSION);
}

static void print_policy(const Actd__V1__Status *s)
{
    const Actd__V1__PolicyStatus *p = s->policy_in_use;

    if (!p) {
        printf("policy     %s\n", text_safe(s->policy));
        return;
    }
    printf("policy     %s (%s%s%s), generation %u, %llu swap%s, %llu failed\n",
           text_safe(p->name), text_safe(p->type), *p->precision ? ", " : "",
           text_safe(p->precision), p->generation, (ull)p->swaps, PLURAL(p->swaps),
           (ull)p->swaps_failed);
    printf("  digest   %s\n", text_safe(p->digest));
    if (*p->previous)
        printf("  before   %s (actctl swap --back)\n", text_safe(p->previous));
    if (*p->swapping_to)
        printf("  swapping to %s\n", text_safe(p->swapping_to));
}

static void histogram_row(struct table *t, const char *name, const Actd__V1__Histogram *h)
{
    if (h && h->count)
        table_row(t, "%s\tp50 %s\tp99 %s\tmax %s\tof %llu", name, text_ns(h->p50_ns),
                  text_ns(h->p99_ns), text_ns(h->max_ns), (ull)h->count);
}

static void print_times(const Actd__V1__Status *s)
{
    static struct table t;

    printf(
        "rates      control %.1f of %.0f Hz, inference %.1f Hz; %llu tick%s, %llu skipped\n",
        s->achieved_hz, s->control_hz, s->inference_hz, (ull)s->ticks, PLURAL(s->ticks),
        (ull)s->skipped_ticks);
    printf("granted    %s, memory %slocked\n",
           *s->scheduling ? text_safe(s->scheduling) : "unknown",
           s->memory_locked ? "" : "not ");
    histogram_row(&t, "lateness", s->lateness);
    histogram_row(&t, "tick", s->tick_time);
    histogram_row(&t, "inference", s->inference);
    histogram_row(&t, "chunk latency", s->chunk_latency);
    table_print(&t, stdout);
    for (size_t i = 0; i < s->n_budgets; i++) {
        const Actd__V1__Budget *b = s->budgets[i];
        if (b->missed)
            printf("  %s of %s missed %llu of %llu times, worst %s%s\n",
                   text_safe(b->name), text_ns(b->limit_ns), (ull)b->missed,
                   (ull)b->samples, text_ns(b->worst_ns),
                   b->over ? ", and now too often" : "");
    }
}

static void print_chunk(const Actd__V1__Status *s)
{
    const Actd__V1__ChunkStatus *c = s->chunk;

    if (!c || c->id == 0)
        printf("chunk      none\n");
    else if (!words_follows(s->mode))
        printf("chunk      %llu: ready, not followed; %u rows; %s old\n", (ull)c->id,
               c->rows, text_ns(c->age_ns));
    else
        printf("chunk      %llu: row %.1f of %u, %.1f left; %s old; %u blended\n",
               (ull)c->id, c->row, c->rows, c->remaining, text_ns(c->age_ns), c->blended);
}

static void print_streams(const Actd__V1__Status *s)
{
    static struct table t;

    for (size_t i = 0; i < s->n_streams; i++) {
        const Actd__V1__Stream *m = s->streams[i];
        if (t.n == TABLE_ROWS)
            table_print(&t, stdout);
        if (i == 0)
            table_row(&t, "STREAM\tHZ\tOF\tAGE\tRECEIVED\t");
        table_row(&t, "%s\t%.1f\t%.0f\t%s\t%llu\t%s%s", text_safe(m->name),
                  m->achieved_hz, m->asked_hz, m->received ? text_ns(m->age_ns) : "never",
                  (ull)m->received, m->fresh ? "" : "not fresh", m->slow ? " slow" : "");
    }
    table_print(&t, stdout);
}

// Where nothing was saved there is nothing to say.
static void print_seen(const Actd__V1__Status *s)
{
    for (size_t i = 0; i < s->n_streams; i++) {
        const Actd__V1__Stream *m = s->streams[i];
        if (m->seen_early || m->seen_kept)
            printf("  %s: seen %llu time%s early, kept %llu, in the inference %llu\n",
                   text_safe(m->name), (ull)m->seen_early, PLURAL(m->seen_early),
                   (ull)m->seen_kept, (ull)m->seen_computed);
    }
}

static void print_joints(const Actd__V1__Status *s)
{
    static struct table t;
    char bar[BAR_MAX + 1], wanted[32];

    for (size_t i = 0; i < s->n_joints; i++) {
        const Actd__V1__JointStatus *j = s->joints[i];
        if (t.n == TABLE_ROWS)
            table_print(&t, stdout);
        if (i == 0)
            table_row(&t, "JOINT\tMEASURED\tCOMMANDED\tWANTED\tLIMIT\t"
                          "   MIN  o meas. #comm.  MAX");
        bar_place(bar, 14, j->min, j->max, j->measured, NAN, j->commanded);
        snprintf(wanted, sizeof wanted, "%8.4f", j->wanted);
        table_row(&t, "%s\t%8.4f\t%8.4f\t%s\t%s\t%6.2f %s %.2f", text_safe(j->name),
                  j->measured, j->commanded, isfinite(j->wanted) ? wanted : "       -",
                  j->limit ? words_limit(j->limit) : "", j->min, bar, j->max);
    }
    table_print(&t, stdout);
}

// Those that count one by one, those that are over in one line.
static void print_faults(const Actd__V1__Status *s, bool colour)
{
    char line[TEXT_LENGTH] = "";
    size_t used = 0;

    for (size_t i = 0; i < s->n_faults; i++) {
        const Actd__V1__Fault *f = s->faults[i];
        if (f->active || f->latched)
            printf("%sfault%s      %s%s%s, %llu time%s, last in tick %llu\n",
                   style_code(colour, f->active ? BAD : WARN), style_code(colour, PLAIN),
                   words_reason(f->reason), f->active ? ", now" : "",
                   f->latched ? ", latched" : "", (ull)f->episodes, PLURAL(f->episodes),
                   (ull)f->last_tick);
        else if (used < sizeof line)
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%s %llu",
                                     used ? ", " : "", words_reason(f->reason),
                                     (ull)f->episodes);
    }
    if (used) {
        printf("faults that are over, and how often\n");
        text_wrap(stdout, 2, WIDTH, line);
    }
    if (s->stalls)
        printf("stalls     %llu: the monitor cut the output\n", (ull)s->stalls);
    if (*s->black_box)
        printf("black box  %s\n", text_safe(s->black_box));
}

static ull lost_of(const Actd__V1__RecordStatus *r)
{
    ull n = 0;

    for (size_t i = 0; i < r->n_lost; i++)
        n += r->lost[i]->value;
    return n;
}

static void print_lost(const Actd__V1__RecordStatus *r, bool colour)
{
    char line[TEXT_LENGTH] = "";
    size_t used = 0;

    if (lost_of(r) == 0)
        return;
    for (size_t i = 0; i < r->n_lost && used < sizeof line; i++)
        if (r->lost[i]->value)
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%s %llu",
                                     used ? ", " : "", r->lost[i]->name,
                                     (ull)r->lost[i]->value);
    printf("  %slost%s     %s\n", style_code(colour, WARN), style_code(colour, PLAIN),
           text_safe(line));
}

// Nothing of a recorder that never did anything.
static void print_record(const Actd__V1__RecordStatus *r, bool colour)
{
    if (!r || (r->mode == ACTD__V1__RECORD_STATUS__MODE__OFF && !r->recording &&
               !r->files && !*r->last_error))
        return;
    printf("record     %s%s, mode %s; %llu file%s, %s, %llu messages",
           r->recording ? "on" : "off",
           r->mode == ACTD__V1__RECORD_STATUS__MODE__TRIGGER && !r->recording
               ? " until a fault or a mark"
               : "",
           words_enum(&actd__v1__record_status__mode__descriptor, (int)r->mode),
           (ull)r->files, PLURAL(r->files), text_bytes(r->bytes), (ull)r->messages);
    if (r->held_bytes)
        printf(", %s in memory", text_bytes(r->held_bytes));
    printf("\n");
    if (*r->file)
        printf("  file     %s\n", text_safe(r->file));
    print_lost(r, colour);
    if (*r->last_error) {
        fputs(style_code(colour, WARN), stdout);
        text_wrap(stdout, 2, WIDTH, r->last_error);
        fputs(style_code(colour, PLAIN), stdout);
    }
}

// Causes are sentences: one a line. Those that never came up are left out.
static void print_drops(const Actd__V1__Status *s)
{
    char line[TEXT_LENGTH];
    bool any = false;

    for (size_t i = 0; i < s->n_drops; i++) {
        if (!s->drops[i]->value)
            continue;
        printf("%s", any ? "" : "drops\n");
        any = true;
        snprintf(line, sizeof line, "%llu %s", (ull)s->drops[i]->value,
                 s->drops[i]->name);
        text_wrap(stdout, 2, WIDTH, line);
    }
}

static void print_limited(const Actd__V1__Status *s)
{
    char line[TEXT_LENGTH] = "";
    size_t used = 0;

    for (size_t i = 0; i < s->n_limited && used < sizeof line; i++)
        if (s->limited[i]->value)
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%s %llu",
                                     used ? ", " : "", s->limited[i]->name,
                                     (ull)s->limited[i]->value);
    if (used)
        printf("limited\n");
    text_wrap(stdout, 2, WIDTH, line);
}

static void print_status(const Actd__V1__Status *s, bool colour)
{
    print_head(s, colour);
    print_policy(s);
    print_times(s);
    print_chunk(s);
    print_streams(s);
    print_seen(s);
    print_joints(s);
    print_faults(s, colour);
    print_record(s->record, colour);
    print_drops(s);
    print_limited(s);
}

int status_main(struct ctl *c)
{
    Actd__V1__ControlRequest q = ctl_question(ACTD__V1__VERB__VERB_STATUS);
    Actd__V1__ControlReply *r;
    int status;
    status = ctl_ask(c, &q, &r);
    if (status)
        return status;
    if (!r->status && r->result == ACTD__V1__RESULT__RESULT_OK) {
        ctl_free(r);
        return ctl_fail(c, CTL_PROTOCOL, "the daemon's answer has no status in it");
    }
    status = ctl_tell(c, r);
    if (!status && r->status && !c->json)
        print_status(r->status, c->colour);
    ctl_free(r);
    return status;
}
