// report_events: what was said while it ran. Warnings and errors come first when there is more
// than a page can hold: what is left out is counted.
#include <stdlib.h>
#include <string.h>

#include "daemon/report_impl.h"
#include "daemon/table.h"
#include "foxglove/Log.pb-c.h"

#define TROUBLE_ROWS 250
#define INFO_ROWS    150

static void count_levels(struct report *r)
{
    struct report_cursor c;
    struct mcap_error err;
    if (report_cursor_open(&c, r, "/events", &err))
        return;
    for (; c.there; report_cursor_next(&c, r)) {
        Foxglove__Log *e = foxglove__log__unpack(NULL, c.m.size, c.m.data);
        if (e)
            r->levels[(unsigned)e->level & 7]++;
        foxglove__log__free_unpacked(e, NULL);
    }
    report_cursor_close(&c);
}

static void row(FILE *f, const struct report *r, const Foxglove__Log *e, uint64_t log_ns)
{
    bool mark = strcmp(e->name, "mark") == 0;
    const char *class = e->level >= FOXGLOVE__LOG__LEVEL__ERROR     ? "e"
                        : e->level == FOXGLOVE__LOG__LEVEL__WARNING ? "w"
                        : mark                                      ? "mark"
                                                                    : "";
    fprintf(f, "<tr class=\"%s\"><td class=\"t n\">%.3f s</td><td class=\"t\">", class,
            report_at_s(r, log_ns));
    svg_text(f, e->name);
    fputs("</td><td>", f);
    svg_text(f, e->message);
    fputs("</td></tr>\n", f);
}

static void rows(FILE *f, struct report *r)
{
    struct report_cursor c;
    struct mcap_error err;
    uint64_t trouble = 0, info = 0;
    if (report_cursor_open(&c, r, "/events", &err))
        return;
    for (; c.there; report_cursor_next(&c, r)) {
        Foxglove__Log *e = foxglove__log__unpack(NULL, c.m.size, c.m.data);
        bool bad = e && (e->level >= FOXGLOVE__LOG__LEVEL__WARNING ||
                         strcmp(e->name, "mark") == 0);
        if (e && (bad ? trouble++ < TROUBLE_ROWS : info++ < INFO_ROWS))
            row(f, r, e, c.m.log_ns);
        foxglove__log__free_unpacked(e, NULL);
    }
    report_cursor_close(&c);
    uint64_t left = (trouble > TROUBLE_ROWS ? trouble - TROUBLE_ROWS : 0) +
                    (info > INFO_ROWS ? info - INFO_ROWS : 0);
    if (left > 0)
        fprintf(
            f,
            "<tr><td></td><td></td><td>and %llu more: `actd log cat` has them all</td></tr>",
            (unsigned long long)left);
}

void report_events(FILE *f, struct report *r)
{
    uint64_t all = 0;
    count_levels(r);
    for (int i = 0; i < 8; i++)
        all += r->levels[i];
    if (all == 0)
        return;
    uint64_t errors = r->levels[4] + r->levels[5], warnings = r->levels[3];
    fprintf(
        f,
        "<h2>What was said</h2><div class=\"card\"><details%s><summary>%llu line%s, "
        "%llu warning%s, %llu error%s</summary><div class=\"scroll\"><table class=\"tight\">",
        all <= 40 || errors > 0 ? " open=\"open\"" : "", (unsigned long long)all,
        PLURAL(all), (unsigned long long)warnings, PLURAL(warnings),
        (unsigned long long)errors, PLURAL(errors));
    rows(f, r);
    fputs("</table></div></details></div>\n", f);
}
