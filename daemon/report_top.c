// report_top: what one wants to know first, and at the very end what it all was made with.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/report_impl.h"
#include "daemon/table.h"

// ---- the headline ----------------------------------------------------------------------------

static void print_moment(FILE *f, uint64_t log_ns)
{
    time_t s = (time_t)(log_ns / 1000000000);
    struct tm t;
    char text[64] = "";
    if (gmtime_r(&s, &t))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &t);
    fputs(text, f);
}

static void print_length(FILE *f, double s)
{
    if (s >= 3600)
        fprintf(f, "%d h %d min", (int)(s / 3600), (int)(s / 60) % 60);
    else if (s >= 120)
        fprintf(f, "%d min %d s", (int)(s / 60), (int)s % 60);
    else
        fprintf(f, "%.1f s", s);
}

static void headline(FILE *f, struct report *r)
{
    const char *instance = logbook_fact(r->book, "instance");
    const char *version = logbook_fact(r->book, "version");
    fputs("<h1>", f);
    svg_text(f, instance ? instance : "Recording");
    if (r->seats > 0) {
        fputs(" driven by ", f);
        svg_text(f, r->seat[0].name);
    }
    fputs("</h1><p class=\"sub\">", f);
    print_moment(f, r->start_ns);
    fputs(", ", f);
    print_length(f, r->seconds);
    if (version) {
        fputs(", actd ", f);
        svg_text(f, version);
    }
    fputs("</p>\n", f);
    const char *damage = logbook_damage(r->book);
    if (*damage || r->damaged > 0) {
        fputs("<div class=\"card verdict bad\"><b class=\"bad\">The recording is damaged"
              "</b><p>",
              f);
        svg_text(f, damage);
        if (r->damaged > 0)
            fprintf(f, " %llu message%s could not be read.",
                    (unsigned long long)r->damaged, PLURAL(r->damaged));
        fputs("</p></div>\n", f);
    }
}

// ---- the verdict -----------------------------------------------------------------------------

static void compared(FILE *f, const struct replay_result *v)
{
    fprintf(
        f,
        "<p>%llu ticks, %llu inputs, %llu chunks and %llu commands made anew and compared",
        (unsigned long long)v->ticks, (unsigned long long)v->inputs,
        (unsigned long long)v->chunks, (unsigned long long)v->commands);
    if (v->took_ns > 0)
        fprintf(f, ", %.0f times faster than they happened",
                (double)v->covered_ns / (double)v->took_ns);
    fputs(v->bits ? ", bit by bit.</p>" : ", within the tolerance.</p>", f);
    if (v->chunks_taken > 0)
        fprintf(f, "<p>%llu chunks were taken as recorded.</p>",
                (unsigned long long)v->chunks_taken);
    if (v->ticks_skipped > 0)
        fprintf(
            f,
            "<p>%llu ticks could not be compared: no state to begin with, or a gap.</p>",
            (unsigned long long)v->ticks_skipped);
}

static void print_verdict(FILE *f, const struct replay_result *v)
{
    bool same = !v->first.any;
    bool nothing = v->ticks + v->inputs + v->chunks + v->commands == 0;
    const char *class = same && !nothing ? "good" : "bad";
    fprintf(f, "<div class=\"card verdict %s\"><b class=\"%s\">", class, class);
    fputs(nothing ? "Nothing of this recording could be replayed"
          : same  ? "A replay gives the same, from every input to every command"
                  : "A replay gives something else",
          f);
    fputs("</b>", f);
    if (!same) {
        fprintf(f, "<p>First difference, at tick %llu, in the ",
                (unsigned long long)v->first.tick);
        svg_text(f, v->first.stage ? v->first.stage : "run");
        fputs(": ", f);
        svg_text(f, v->first.text);
        fprintf(
            f,
            "</p><p>Differing: %llu inputs, %llu chunks, %llu ticks, %llu commands; by "
            "%.3g rad at most.</p>",
            (unsigned long long)v->differing[0], (unsigned long long)v->differing[1],
            (unsigned long long)v->differing[2], (unsigned long long)v->differing[3],
            v->largest_rad);
    }
    compared(f, v);
    fputs("</div>\n", f);
}

// ---- tiles -----------------------------------------------------------------------------------

static void tile(FILE *f, const char *class, const char *value, const char *what)
{
    fprintf(f, "<div class=\"tile\"><b class=\"%s\">", class);
    svg_text(f, value);
    fputs("</b><span>", f);
    svg_text(f, what);
    fputs("</span></div>", f);
}

static void tile_duration(FILE *f, const struct histogram *h, const char *what)
{
    struct histogram_summary s = hist_summary(h);
    char value[40];
    if (s.count == 0)
        return;
    svg_duration(value, sizeof value, (double)s.p99_ns);
    tile(f, "", value, what);
}

static int count_stops(const struct report *r)
{
    int n = 0;
    for (int i = 0; i < r->spans; i++)
        n += (r->span[i].mode == LADDER_STOPPING || r->span[i].mode == LADDER_ESTOP) &&
             (i == 0 || r->span[i - 1].mode != r->span[i].mode);
    return n;
}

static void tiles(FILE *f, struct report *r)
{
    char value[60];
    int stops = count_stops(r);
    uint64_t late = r->late + r->skipped;
    fputs("<div class=\"tiles\">", f);
    snprintf(value, sizeof value, "%.1f s", r->in_mode_s[LADDER_RUNNING]);
    tile(f, "", value, "driven by the policy");
    snprintf(value, sizeof value, "%d", stops);
    tile(f, stops ? "bad" : "good", value, "stops");
    snprintf(value, sizeof value, "%llu", (unsigned long long)r->commands);
    tile(f, "", value, "commands");
    snprintf(value, sizeof value, "%llu", (unsigned long long)late);
    tile(f, late ? "warn" : "good", value, "ticks late by a period, or skipped");
    tile_duration(f, &r->lateness, "lateness, 99 of 100 ticks below");
    tile_duration(f, &r->work, "work in a tick, 99 of 100 below");
    tile_duration(f, &r->inference, "inference, 99 of 100 below");
    tile_duration(f, &r->latency, "frame to chunk in use, 99 of 100 below");
    fputs("</div>\n", f);
}

void report_top(FILE *f, struct report *r, const struct replay_result *v)
{
    headline(f, r);
    if (v)
        print_verdict(f, v);
    if (r->ticks > 0)
        tiles(f, r);
}

// ---- facts -----------------------------------------------------------------------------------

static void fact(FILE *f, struct report *r, const char *name, const char *key)
{
    const char *value = logbook_fact(r->book, key);
    if (!value || !*value)
        return;
    fprintf(f, "<dt>%s</dt><dd>", name);
    svg_text(f, value);
    fputs("</dd>", f);
}

static void print_seats(FILE *f, const struct report *r)
{
    for (int i = 0; i < r->seats; i++) {
        const struct report_seat *s = &r->seat[i];
        fputs("<dt>policy</dt><dd>", f);
        svg_text(f, s->name);
        if (i > 0)
            fprintf(f, ", from %.1f s on", s->since_s);
        fputs(", digest ", f);
        svg_text(f, s->digest);
        fputs(" <span class=\"dim\">", f);
        svg_text(f, s->directory);
        fputs("</span></dd>", f);
    }
}

static void print_files(FILE *f, struct report *r)
{
    int n = logbook_files(r->book);
    fputs("<dt>recording</dt><dd>", f);
    for (int i = 0; i < n && i < 20; i++) {
        const char *slash = strrchr(logbook_path(r->book, i), '/');
        svg_text(f, slash ? slash + 1 : logbook_path(r->book, i));
        fprintf(f, " <span class=\"dim\">(%.1f MB)</span>%s",
                (double)mcap_file_bytes(logbook_reader(r->book, i)) / 1e6,
                i + 1 < n ? "<br/>" : "");
    }
    if (n > 20)
        fprintf(f, "and %d more", n - 20);
    fputs("</dd>", f);
}

void report_facts(FILE *f, struct report *r)
{
    const char *config = logbook_fact(r->book, "config");
    fputs("<h2>Made with</h2><div class=\"card\"><dl>", f);
    fact(f, r, "robot", "instance");
    print_seats(f, r);
    fact(f, r, "actd", "version");
    fact(f, r, "program", "exe_sha256");
    fact(f, r, "compiler", "compiler");
    fact(f, r, "built with", "flags");
    fact(f, r, "processor", "cpu");
    fact(f, r, "kernels", "kernels");
    fact(f, r, "BLAS kernels", "blas_core");
    fact(f, r, "precision", "precision");
    fact(f, r, "control rate, Hz", "control_hz");
    fact(f, r, "configuration", "config_file");
    fact(f, r, "run", "run_id");
    print_files(f, r);
    fputs("</dl>", f);
    if (*r->config_error.text) {
        fputs(
            "<p class=\"warn small\">The configuration cannot be read, so no limits are shown: ",
            f);
        svg_text(f, r->config_error.text);
        fputs("</p>", f);
    }
    if (config) {
        fputs("<details><summary>the configuration, as it was</summary><pre>", f);
        svg_text(f, config);
        fputs("</pre></details>", f);
    }
    fputs(
        "</div>\n<footer>Written by actd from the recording alone. Curves show the least "
        "and the greatest value of every pixel column: nothing that stuck out is left out."
        "</footer>\n",
        f);
}
