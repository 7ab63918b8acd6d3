// report_losses: what came, what was thrown away, what never left.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/report_impl.h"

static void number(FILE *f, uint64_t n, const char *class)
{
    if (n == 0)
        fputs("<td class=\"n dim\">0</td>", f);
    else
        fprintf(f, "<td class=\"n %s\">%llu</td>", class, (unsigned long long)n);
}

static void why_refused(FILE *f, const struct report_stream *s)
{
    bool any = false;
    for (int i = 1; i < CODEC_VERDICTS; i++) {
        if (s->verdict[i] == 0)
            continue;
        fprintf(f, "%s%llu %s", any ? ", " : "", (unsigned long long)s->verdict[i],
                codec_verdict_name((enum codec_verdict)i));
        any = true;
    }
}

static void stream_row(FILE *f, const struct report_stream *s)
{
    double seconds = (double)(s->last_ns - s->first_ns) / 1e9;
    uint64_t accepted = s->outcome[TAPE_ACCEPTED];
    fputs("<tr><td>", f);
    svg_text(f, s->name);
    fprintf(f, "</td><td class=\"n\">%llu</td>", (unsigned long long)s->messages);
    if (seconds > 0 && accepted > 1)
        fprintf(f, "<td class=\"n\">%.1f</td>", (double)(accepted - 1) / seconds);
    else
        fputs("<td class=\"n dim\">–</td>", f);
    number(f, accepted, "");
    number(f, s->outcome[TAPE_REFUSED], "bad");
    number(f, s->outcome[TAPE_DUPLICATE], "warn");
    number(f, s->outcome[TAPE_OUT_OF_ORDER], "warn");
    number(f, s->superseded + s->several_parts, "warn");
    number(f, s->not_kept, "warn");
    fputs("<td>", f);
    why_refused(f, s);
    fputs("</td></tr>\n", f);
}

static void streams(FILE *f, const struct report *r)
{
    fputs(
        "<div class=\"card scroll\"><table><tr><th>stream</th><th class=\"n\">messages</th>"
        "<th class=\"n\">per second</th><th class=\"n\">used</th><th class=\"n\">refused</th>"
        "<th class=\"n\">twice</th><th class=\"n\">out of order</th>"
        "<th class=\"n\">unread</th><th class=\"n\">not recorded</th><th>refused for</th>"
        "</tr>",
        f);
    for (int i = 0; i < r->streams; i++)
        stream_row(f, &r->stream[i]);
    fputs("</table></div>\n", f);
}

static void count(FILE *f, uint64_t n, const char *what)
{
    fputs("<tr>", f);
    number(f, n, "warn");
    fprintf(f, "<td>%s</td></tr>", what);
}

void report_losses(FILE *f, struct report *r)
{
    if (r->ticks == 0)
        return;
    fputs("<h2>Drops and losses</h2>", f);
    streams(f, r);
    fputs("<div class=\"card scroll\"><table class=\"tight\">", f);
    count(f, r->skipped, "ticks skipped: the loop woke later than a period");
    count(f, r->late, "ticks that woke later than a period");
    count(f, r->lost_commands, "commands that the bus took and did not send");
    count(f, r->no_room, "commands that the bus had no room for");
    count(f, r->stalls, "times that the monitor cut the output");
    count(f, r->unrecorded, "ticks that are not in the recording");
    count(f, r->inputs_missing, "inputs that are not in the recording");
    count(f, r->wall_sets, "times that somebody set the wall clock");
    fputs("</table></div>\n", f);
}
