// What a person reads of the numbers.
#include <stdio.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/status_impl.h"

static void say_line(const struct status *s)
{
    char ages[512] = "";
    uint64_t lost = 0;
    for (int i = 0; i < s->n_streams; i++) {
        size_t n = strlen(ages);
        if (s->stream[i].received == 0)
            snprintf(ages + n, sizeof ages - n, " %s -", s->stream[i].name);
        else
            snprintf(ages + n, sizeof ages - n, " %s %.0f", s->stream[i].name,
                     (double)s->stream[i].age_ns / 1e6);
    }
    for (int i = 0; i < s->n_causes; i++)
        lost += s->drop[i].normal ? 0 : s->drop[i].value;
    log_line(
        LOG_INFO,
        "%s%s%s%s%s | commands %.1f of %.0f Hz, late p50 %.0f p99 %.0f max "
        "%.0f us, skipped %llu | chunks %.1f/s, inference p50 %.1f p99 %.1f ms | "
        "age ms%s | limited %llu, dropped %llu | %s",
        ladder_state_name(s->report.mode), s->report.reason ? " (" : "",
        s->report.reason ? ladder_reason_name(s->report.reason) : "",
        s->report.reason ? ")" : "", s->report.degraded ? " degraded" : "",
        s->achieved_hz, s->src.cfg->control.rate_hz,
        (double)s->lateness_second.p50_ns / 1e3, (double)s->lateness_second.p99_ns / 1e3,
        (double)s->lateness_second.max_ns / 1e3, (unsigned long long)s->report.skipped,
        s->inference_hz, (double)s->inference_second.p50_ns / 1e6,
        (double)s->inference_second.p99_ns / 1e6, ages,
        (unsigned long long)s->limited_total, (unsigned long long)lost,
        s->src.scheduling);
}

// What was lost since the last line, and why: at most one line a second.
static void say_drops(struct status *s)
{
    char line[768] = "";
    for (int i = 0; i < s->n_causes; i++) {
        struct status_drop *d = &s->drop[i];
        uint64_t more = d->value - d->said;
        size_t n = strlen(line);
        d->said = d->value;
        if (more > 0 && !d->normal)
            snprintf(line + n, sizeof line - n, "%s%s +%llu", n ? ", " : "", d->name,
                     (unsigned long long)more);
    }
    if (line[0])
        log_line(LOG_WARN, "dropped: %s", line);
}

// Each fault once per second at most, with how often it came up meanwhile. The steps that the
// ladder took because of one are told elsewhere, with their cause.
static void say_faults(struct status *s)
{
    char line[768] = "";

    for (int r = REASON_NONE + 1; r < LADDER_REASONS; r++) {
        uint64_t more = s->report.faults.of[r].episodes - s->episodes_said[r];
        size_t n = strlen(line);

        s->episodes_said[r] = s->report.faults.of[r].episodes;
        if (more > 0)
            snprintf(line + n, sizeof line - n, "%s%s x%llu", n ? ", " : "",
                     ladder_reason_name((enum ladder_reason)r), (unsigned long long)more);
    }
    if (line[0])
        log_line(LOG_WARN, "faults: %s", line);
}

static void say_black_box(struct status *s)
{
    const struct blackbox_counts *c = &s->blackbox;

    if (c->dumped > s->dumps_said)
        log_line(LOG_INFO, "the last 5 s before the fault are in %s", c->last_path);
    if (c->failed > s->dump_failures_said)
        log_line(LOG_WARN, "%s", c->last_error);
    s->dumps_said = c->dumped;
    s->dump_failures_said = c->failed;
}

void status_say(struct status *s)
{
    say_black_box(s);
    say_line(s);
    say_drops(s);
    say_faults(s);
}

void status_say_summary(const struct status *s)
{
    struct histogram_summary late = hist_summary(&s->src.board->lateness);
    struct histogram_summary inference = hist_summary(&s->src.board->inference);
    log_line(
        LOG_INFO,
        "ran %llu ticks, skipped %llu; lateness p50 %.0f p99 %.0f max %.0f us; "
        "inferences %llu, p50 %.1f p99 %.1f ms; chunks used %llu; largest seam "
        "%.4f rad; limits acted %llu times",
        (unsigned long long)s->report.ticks_run, (unsigned long long)s->report.skipped,
        (double)late.p50_ns / 1e3, (double)late.p99_ns / 1e3, (double)late.max_ns / 1e3,
        (unsigned long long)inference.count, (double)inference.p50_ns / 1e6,
        (double)inference.p99_ns / 1e6, (unsigned long long)s->report.verdict[CHUNK_USED],
        s->report.seam_max_rad, (unsigned long long)s->limited_total);
    for (int i = 0; i < s->n_faults; i++)
        log_line(LOG_INFO, "  fault %s: %llu times, %llu ticks%s",
                 ladder_reason_name((enum ladder_reason)s->faults[i]->reason),
                 (unsigned long long)s->faults[i]->episodes,
                 (unsigned long long)s->faults[i]->ticks,
                 s->faults[i]->latched ? ", latched" : "");
    for (int i = 0; i < s->n_limited; i++)
        log_line(LOG_INFO, "  limited %s: %llu ticks", s->limited[i]->name,
                 (unsigned long long)s->limited[i]->value);
    for (int i = 0; i < s->n_drops; i++)
        log_line(LOG_INFO, "  dropped %s: %llu", s->drops[i]->name,
                 (unsigned long long)s->drops[i]->value);
}
