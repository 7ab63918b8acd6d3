// report_timing: how late, how long, how old: distributions, and the worst of every moment.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/report_impl.h"

void report_histogram(FILE *f, const char *title, const struct histogram *h,
                      double budget_ns, const char *what)
{
    struct hist_detail *d = malloc(sizeof *d);
    struct svg_bars *b = calloc(1, sizeof *b);
    char p50[40], p99[40], worst[40];
    if (d && b)
        hist_detail(h, 2, d);
    if (d && b && d->summary.count > 0) {
        int most = (int)(sizeof b->bar / sizeof *b->bar);
        b->n = d->n < most ? d->n : most;
        b->budget = budget_ns;
        for (int i = 0; i < b->n; i++) {
            double to = (double)d->bucket[i].below_ns; // four buckets an octave
            b->bar[i] =
                (struct svg_bar){to - exp2(ceil(log2(to)) - 3), to, d->bucket[i].count};
        }
        svg_duration(p50, sizeof p50, (double)d->summary.p50_ns);
        svg_duration(p99, sizeof p99, (double)d->summary.p99_ns);
        svg_duration(worst, sizeof worst, (double)d->summary.max_ns);
        fputs("<div class=\"card\"><h3>", f);
        svg_text(f, title);
        fprintf(f,
                "</h3><p class=\"dim small\">half below %s, 99 %% below %s, worst %s "
                "<br/>%s</p>",
                p50, p99, worst, what);
        svg_draw_bars(f, b, title);
        fputs("</div>\n", f);
    }
    free(d);
    free(b);
}

static void distributions(FILE *f, const struct report *r)
{
    double period = (double)r->period_ns;
    char title[160];
    fputs("<div class=\"grid\">", f);
    report_histogram(f, "Lateness of ticks", &r->lateness,
                     r->configured && r->cfg.deadlines.wakeup_ms > 0
                         ? r->cfg.deadlines.wakeup_ms * 1e6
                         : period,
                     "from a tick's deadline to its wake-up");
    report_histogram(f, "Work in a tick", &r->work,
                     r->configured && r->cfg.deadlines.tick_ms > 0
                         ? r->cfg.deadlines.tick_ms * 1e6
                         : period / 2,
                     "reports included");
    report_histogram(f, "Inference", &r->inference, 0, "from observation to chunk");
    report_histogram(
        f, "Frame to chunk in use", &r->latency,
        r->configured ? r->cfg.deadlines.chunk_latency_ms * 1e6 : 0,
        "from the capture of the frame to the first tick that used the chunk");
    report_histogram(f, "Age of joint states", &r->stream[0].age,
                     r->configured ? r->cfg.deadlines.sensor_age_ms * 1e6 : 0,
                     "since their measurement, when a tick used them");
    for (int i = 1; i < r->streams; i++) {
        snprintf(title, sizeof title, "Age of frames, %s", r->stream[i].name);
        report_histogram(f, title, &r->stream[i].age, 0,
                         "since the newest one came, as ticks saw it");
    }
    fputs("</div>\n", f);
}

static void over_time(FILE *f, const struct report *r, const char *title,
                      const struct svg_curve *c, double budget_ms)
{
    struct svg_plot p = report_plot(r, title, "ms", 76);
    if (!c->any)
        return;
    double most = c->most;
    if (budget_ms > 0 && budget_ms < most * 2)
        most = fmax(most, budget_ms);
    p.y0 = 0;
    p.y1 = fmax(most * 1.08, 1e-4);
    fputs("<div class=\"card\"><h3>", f);
    svg_text(f, title);
    fputs("</h3>", f);
    svg_begin(f, &p);
    svg_draw(f, &p, c, "worst");
    if (budget_ms > 0)
        svg_level(f, &p, budget_ms, "limit");
    svg_end(f, &p, true);
    fputs("</div>\n", f);
}

void report_timing(FILE *f, struct report *r)
{
    char title[160];
    if (r->ticks == 0)
        return;
    fputs(
        "<h2>Timing</h2><p class=\"dim small\">The height of a bar is the root of its count, so "
        "that one tick among a million still shows. Dashed: the budget.</p>",
        f);
    distributions(f, r);
    fputs("<h2>Timing over the run</h2>", f);
    over_time(f, r, "Lateness of ticks", &r->late_ms, (double)r->period_ns / 1e6);
    over_time(f, r, "Work in a tick", &r->work_ms, (double)r->period_ns / 2e6);
    over_time(f, r, "Frame to chunk in use", &r->latency_ms, 0);
    over_time(f, r, "Age of joint states", &r->stream[0].oldest, 0);
    for (int i = 1; i < r->streams; i++) {
        snprintf(title, sizeof title, "Age of the newest frame, %s", r->stream[i].name);
        over_time(f, r, title, &r->stream[i].oldest, 0);
    }
}
