// report_story: the ladder over time, as a band of colours and as a list.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/report_impl.h"

#define ROWS 60 // of the list; the band has them all

const char *report_mode(enum ladder_state mode)
{
    static const char *const class[LADDER_STATES] = {
        "m1", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "m10", "m11"};
    return (unsigned)mode < LADDER_STATES ? class[mode] : "m1";
}

// "CAMERA_STALE, camera wrist".
static void because(const struct report *r, const struct report_span *s, char *out,
                    size_t size)
{
    const char *reason = ladder_reason_name(s->reason);
    bool camera = strncmp(reason, "CAMERA", 6) == 0;
    if (s->reason == REASON_NONE)
        *out = '\0';
    else if (camera && s->culprit >= 0 && s->culprit + 1 < r->streams)
        snprintf(out, size, "%s, camera %s", reason, r->stream[s->culprit + 1].name);
    else if (!camera && s->culprit >= 0 && s->culprit < r->joints)
        snprintf(out, size, "%s, joint %s", reason, r->joint[s->culprit].name);
    else
        snprintf(out, size, "%s", reason);
}

static void band(FILE *f, const struct report *r)
{
    struct svg_plot p = report_plot(r, "States of the ladder over time", NULL, 44);
    char title[300], why[200];
    fprintf(
        f,
        "<div class=\"plot band\"><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
        "role=\"img\" style=\"height:%dpx\" aria-label=\"States of the ladder over time"
        "\">",
        SVG_COLUMNS, p.height * 10, p.height);
    for (int i = 0; i < r->spans; i++) {
        const struct report_span *s = &r->span[i];
        because(r, s, why, sizeof why);
        snprintf(title, sizeof title, "%s%s%s, %.3f to %.3f s",
                 ladder_state_name(s->mode), *why ? ": " : "", why, s->from_s, s->to_s);
        double to = i + 1 < r->spans && r->span[i + 1].from_s - s->to_s < 1
                        ? r->span[i + 1].from_s
                        : s->to_s;
        svg_band(f, &p, s->from_s, to, report_mode(s->mode), title);
    }
    svg_rug(f, r->seat_seen, &p, true, "seat");
    svg_end(f, &p, true);
}

static void key(FILE *f, const struct report *r)
{
    fputs("<div class=\"key\">", f);
    for (int i = 1; i < LADDER_STATES; i++) {
        bool seen = false;
        for (int k = 0; k < r->spans && !seen; k++)
            seen = (int)r->span[k].mode == i;
        if (!seen)
            continue;
        fprintf(f,
                "<span><svg viewBox=\"0 0 10 10\"><rect class=\"%s\" width=\"10\" "
                "height=\"10\"/></svg>%s %.1f s</span>",
                report_mode((enum ladder_state)i),
                ladder_state_name((enum ladder_state)i), r->in_mode_s[i]);
    }
    fputs("</div>", f);
}

static bool matters(const struct report *r, int i)
{
    return i == 0 || r->span[i].mode != r->span[i - 1].mode;
}

// Steps from one state to another; a reason that changes within a state is in the band.
static void list(FILE *f, const struct report *r)
{
    char why[200];
    int rows = 0, more = 0;
    fputs(
        "<details open=\"open\"><summary>step by step</summary><div class=\"scroll\"><table class=\"tight\">"
        "<tr><th class=\"n\">at</th><th class=\"n\">for</th><th>state</th><th>reason</th>"
        "</tr>",
        f);
    for (int i = 0; i < r->spans; i++) {
        const struct report_span *s = &r->span[i];
        int last = i;
        if (!matters(r, i))
            continue;
        while (last + 1 < r->spans && !matters(r, last + 1))
            last++;
        if (rows++ >= ROWS) {
            more++;
            continue;
        }
        bool bad = s->mode >= LADDER_STOPPING && s->mode <= LADDER_ESTOP;
        because(r, s, why, sizeof why);
        fprintf(
            f,
            "<tr><td class=\"n\">%.3f s</td><td class=\"n\">%.3f s</td><td class=\"%s\">"
            "%s</td><td>",
            s->from_s, fmax(r->span[last].to_s - s->from_s, 0),
            bad                      ? "bad"
            : s->mode == LADDER_HOLD ? "warn"
                                     : "",
            ladder_state_name(s->mode));
        svg_text(f, why);
        fputs("</td></tr>\n", f);
    }
    fputs("</table></div>", f);
    if (more > 0)
        fprintf(f, "<p class=\"dim small\">and %d more, in the band above</p>", more);
    fputs("</details>", f);
}

void report_story(FILE *f, struct report *r)
{
    if (r->spans == 0)
        return;
    fputs("<h2>What it did</h2><div class=\"card\">", f);
    band(f, r);
    key(f, r);
    if (r->spans_lost > 0)
        fprintf(f,
                "<p class=\"warn small\">More than %d changes: the last one shown stands "
                "for all that followed.</p>",
                REPORT_SPANS);
    list(f, r);
    fputs("</div>\n", f);
}
