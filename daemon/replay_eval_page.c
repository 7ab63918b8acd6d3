// An evaluation as a page: the same table, and how the error grows along the chunk.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/replay_eval_impl.h"
#include "daemon/report_impl.h"

static void headline(FILE *f, const struct eval *e)
{
    const struct eval_sum *all = &e->score.all;
    double still = all->n > 0 ? all->still / (double)all->n : 0;
    bool good = eval_mean(all) < still * 0.9;
    const char *unit = eval_unit(e);
    fputs("<h1>", f);
    svg_text(f, e->fitted->name);
    fprintf(f, ", open loop</h1><p class=\"sub\">against what was %s in ",
            e->dataset ? "demonstrated" : "commanded");
    svg_text(f, logbook_path(e->book, 0));
    fprintf(f, ", %.1f s; digest ", e->seconds);
    svg_text(f, e->fitted->info->digest);
    fprintf(
        f,
        "</p><div class=\"card verdict %s\"><b class=\"%s\">%.4g%s%s from what was %s, on "
        "average</b><p>An arm that stays where it is: %.4g%s%s. ",
        good ? "good" : "bad", good ? "good" : "bad", eval_mean(all), *unit ? " " : "",
        unit, e->dataset ? "demonstrated" : "commanded", still, *unit ? " " : "", unit);
    fputs(
        good ? "</p></div>"
             : "That is no better than standing still: another policy than this robot's? "
               "Units, joint order, cameras exchanged?</p></div>",
        f);
}

static void joint_row(FILE *f, const struct eval *e, const char *name, const char *unit,
                      const struct eval_sum *s, double p95)
{
    fputs("<tr><td>", f);
    svg_text(f, name);
    fputs("</td><td class=\"dim\">", f);
    svg_text(f, unit);
    fprintf(
        f,
        "</td><td class=\"n\">%.4g</td><td class=\"n\">%.4g</td><td class=\"n\">%.4g</td>"
        "<td class=\"n dim\">%.2f s</td><td class=\"n\">%.4g</td></tr>\n",
        eval_mean(s), p95, s->max, (double)(s->max_at_ns - (int64_t)e->start_ns) / 1e9,
        s->n > 0 ? s->still / (double)s->n : 0);
}

static void joints(FILE *f, const struct eval *e)
{
    const struct eval_score *s = &e->score;
    fprintf(
        f,
        "<h2>Error by joint</h2><div class=\"card scroll\"><p class=\"dim small\">%llu of "
        "%llu frames asked, %d rows of %.3g ms each</p><table><tr><th>joint</th>"
        "<th>unit</th><th class=\"n\">mean</th><th class=\"n\">95 %% below</th>"
        "<th class=\"n\">worst</th><th class=\"n\">at</th><th class=\"n\">standing still"
        "</th></tr>",
        (unsigned long long)e->asked, (unsigned long long)e->frames, s->rows,
        (double)s->step_ns / 1e6);
    for (int j = 0; j < s->joints; j++)
        joint_row(f, e, e->cfg.joint[j].name, e->unit[j], &s->joint[j],
                  eval_score_p95(s, j));
    joint_row(f, e, "all", "", &s->all, eval_score_p95(s, -1));
    fputs("</table></div>\n", f);
}

// Mean error by row as a curve, and below it what standing still would give.
static void horizon(FILE *f, const struct eval *e, int j)
{
    const struct eval_score *s = &e->score;
    struct svg_curve *c = calloc(2, sizeof *c);
    double end = fmax((s->horizons - 1) * s->every_rows, 1) * (double)s->step_ns / 1e9;
    struct svg_plot p = {
        .x1 = end, .height = 90, .label = e->cfg.joint[j].name, .unit = e->unit[j]};
    for (int h = 0; c && h < s->horizons; h++) {
        const struct eval_sum *sum = &s->horizon[h][j];
        int col = svg_column(h * s->every_rows * (double)s->step_ns / 1e9, 0, end);
        svg_add(&c[0], col, sum->n > 0 ? eval_mean(sum) : (double)NAN);
        svg_add(&c[1], col, sum->n > 0 ? sum->still / (double)sum->n : (double)NAN);
    }
    if (c) {
        p.y1 = fmax(fmax(c[0].most, c[1].most) * 1.08, 1e-9);
        fputs("<div class=\"card\"><h3>", f);
        svg_text(f, e->cfg.joint[j].name);
        fputs("</h3>", f);
        svg_begin(f, &p);
        svg_draw(f, &p, &c[1], "a");
        svg_draw(f, &p, &c[0], "b");
        svg_end(f, &p, true);
        fputs("</div>\n", f);
    }
    free(c);
}

static void worst(FILE *f, const struct eval *e)
{
    const struct eval_score *s = &e->score;
    fputs(
        "<h2>Worst moments</h2><div class=\"card scroll\"><table><tr><th class=\"n\">at</th>"
        "<th class=\"n\">mean of the chunk</th><th>worst joint</th><th class=\"n\">its error"
        "</th></tr>",
        f);
    for (int i = 0; i < s->worsts; i++) {
        fprintf(f, "<tr><td class=\"n\">%.2f s</td><td class=\"n\">%.4g</td><td>",
                (double)(s->worst[i].at_ns - (int64_t)e->start_ns) / 1e9,
                s->worst[i].mean);
        svg_text(f, e->cfg.joint[s->worst[i].joint].name);
        fprintf(f, "</td><td class=\"n\">%.4g</td></tr>", s->worst[i].error);
    }
    fputs("</table></div>\n", f);
}

static void write_page(FILE *f, void *arg)
{
    const struct eval *e = arg;
    const struct eval_score *s = &e->score;
    report_head(f, "Open-loop evaluation", 0);
    headline(f, e);
    joints(f, e);
    fputs(
        "<h2>Error along the chunk</h2><div class=\"key\"><span><i class=\"b\"></i>the policy, "
        "mean</span><span><i class=\"a\"></i>an arm that stays where it is</span></div>"
        "<div class=\"grid\">",
        f);
    for (int j = 0; j < s->joints; j++)
        horizon(f, e, j);
    fputs("</div>\n", f);
    worst(f, e);
    report_foot(f);
}

int eval_write_page(struct eval *e, const char *path, struct config_error *err)
{
    int rc = report_to_file(path, write_page, e);
    if (rc)
        snprintf(err->text, sizeof err->text, "%.400s: the report cannot be written: %s",
                 path, strerror(-rc));
    return rc;
}
