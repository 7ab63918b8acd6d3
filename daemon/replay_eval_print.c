// What came of an evaluation, for a person and for a program.
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/replay_eval_impl.h"
#include "daemon/table.h"

static double seconds(const struct eval *e, int64_t at_ns)
{
    return (double)(at_ns - (int64_t)e->start_ns) / 1e9;
}

static double still_of(const struct eval_sum *s)
{
    return s->n > 0 ? s->still / (double)s->n : 0;
}

const char *eval_unit(const struct eval *e)
{
    for (int j = 1; j < e->score.joints; j++)
        if (strcmp(e->unit[j], e->unit[0]) != 0)
            return "";
    return e->unit[0];
}

static void print_head(const struct eval *e, FILE *f)
{
    const struct eval_score *s = &e->score;
    fprintf(f,
            "policy %s (%.12s) against what was %s in %s%s\n"
            "%.1f s of log, %llu frames of '%s', %llu asked, %d rows of %.3g ms each; "
            "%.1f ms per inference\n\n",
            e->fitted->name, e->fitted->info->digest,
            e->dataset ? "demonstrated" : "commanded", logbook_path(e->book, 0),
            logbook_files(e->book) > 1 ? " and its other files" : "", e->seconds,
            (unsigned long long)e->frames, e->cfg.camera[e->fitted->binding.primary].name,
            (unsigned long long)e->asked, s->rows, (double)s->step_ns / 1e6,
            e->asked ? e->inference_s * 1e3 / (double)e->asked : 0.0);
}

static void sum_row(struct table *t, const struct eval *e, const char *name,
                    const char *unit, const struct eval_sum *sum, double p95)
{
    table_row(t, "%s\t%s\t%.4g\t%.4g\t%.4g\t%.2f s\t%.4g", name, unit, eval_mean(sum),
              p95, sum->max, seconds(e, sum->max_at_ns), still_of(sum));
}

static void print_joints(const struct eval *e, struct table *t, FILE *f)
{
    const struct eval_score *s = &e->score;
    table_row(t, "joint\tunit\tmean\t95 %% below\tworst\tat\tstanding still");
    for (int j = 0; j < s->joints; j++)
        sum_row(t, e, e->cfg.joint[j].name, e->unit[j], &s->joint[j],
                eval_score_p95(s, j));
    sum_row(t, e, "all", eval_unit(e), &s->all, eval_score_p95(s, -1));
    table_print(t, f);
}

static void print_horizons(const struct eval *e, struct table *t, FILE *f)
{
    const struct eval_score *s = &e->score;
    char line[TABLE_LINE] = "mean error at row";
    size_t at = strlen(line);
    for (int h = 0; h < s->horizons; h++)
        at += (size_t)snprintf(line + at, sizeof line - at, "\t%d", h * s->every_rows);
    table_row(t, "%s", line);
    at = (size_t)snprintf(line, sizeof line, "seconds after the frame");
    for (int h = 0; h < s->horizons; h++)
        at += (size_t)snprintf(line + at, sizeof line - at, "\t%.2f",
                               h * s->every_rows * (double)s->step_ns / 1e9);
    table_row(t, "%s", line);
    for (int j = 0; j < s->joints; j++) {
        at = (size_t)snprintf(line, sizeof line, "%s", e->cfg.joint[j].name);
        for (int h = 0; h < s->horizons && at < sizeof line; h++)
            at += (size_t)snprintf(line + at, sizeof line - at, "\t%.3g",
                                   eval_mean(&s->horizon[h][j]));
        table_row(t, "%s", line);
    }
    fputs("\n", f);
    table_print(t, f);
}

static void print_worst(const struct eval *e, struct table *t, FILE *f)
{
    const struct eval_score *s = &e->score;
    table_row(t, "worst moments\tmean of chunk\tworst joint\tits error");
    for (int i = 0; i < s->worsts; i++)
        table_row(t, "%.2f s\t%.4g\t%s\t%.4g", seconds(e, s->worst[i].at_ns),
                  s->worst[i].mean, e->cfg.joint[s->worst[i].joint].name,
                  s->worst[i].error);
    fputs("\n", f);
    table_print(t, f);
}

static void print_left_out(const struct eval *e, FILE *f)
{
    uint64_t left = e->no_joints + e->no_frame + e->corrupt;
    if (left > 0)
        fprintf(
            f,
            "\nleft out: %llu frames without a joint state near enough, %llu without a frame "
            "of another camera, %llu that do not decode\n",
            (unsigned long long)e->no_joints, (unsigned long long)e->no_frame,
            (unsigned long long)e->corrupt);
    if (e->score.unanswered > 0)
        fprintf(f, "\n%llu chunks had nothing to be compared with: %s\n",
                (unsigned long long)e->score.unanswered,
                e->dataset ? "no action at their times"
                           : "the policy did not drive then");
    if (e->damaged > 0)
        fprintf(f, "\n%llu messages or places of the log could not be read\n",
                (unsigned long long)e->damaged);
}

void eval_print(const struct eval *e, FILE *f)
{
    const struct eval_sum *all = &e->score.all;
    struct table *t = calloc(1, sizeof *t);
    double mean = eval_mean(all), still = still_of(all);
    if (!t)
        return;
    print_head(e, f);
    print_joints(e, t, f);
    print_horizons(e, t, f);
    print_worst(e, t, f);
    print_left_out(e, f);
    fprintf(
        f,
        "\nOn average the policy is %.4g %s from what was %s; an arm that stays where it is: "
        "%.4g.\n",
        mean, eval_unit(e), e->dataset ? "demonstrated" : "commanded", still);
    if (mean >= still * 0.9)
        fputs(
            "That is no better than standing still. Another policy than this robot's? Units, "
            "joint order, cameras exchanged?\n",
            f);
    free(t);
}

// ---- for a program ---------------------------------------------------------------------------

static json_t *sum_json(const struct eval *e, const struct eval_sum *s)
{
    return json_pack("{s:I, s:f, s:f, s:f, s:f}", "values", (json_int_t)s->n, "mean",
                     eval_mean(s), "max", s->max, "max_at_s",
                     s->n > 0 ? seconds(e, s->max_at_ns) : 0.0, "standing_still",
                     still_of(s));
}

static json_t *joint_json(const struct eval *e, int j)
{
    const struct eval_score *s = &e->score;
    json_t *o = sum_json(e, &s->joint[j]), *horizon = json_array();
    json_object_set_new(o, "name", json_string(e->cfg.joint[j].name));
    json_object_set_new(o, "unit", json_string(e->unit[j]));
    json_object_set_new(o, "p95", json_real(eval_score_p95(s, j)));
    for (int h = 0; h < s->horizons; h++) {
        json_t *row = sum_json(e, &s->horizon[h][j]);
        json_object_set_new(row, "row", json_integer(h * s->every_rows));
        json_array_append_new(horizon, row);
    }
    json_object_set_new(o, "horizon", horizon);
    return o;
}

static json_t *worst_json(const struct eval *e)
{
    json_t *a = json_array();
    for (int i = 0; i < e->score.worsts; i++) {
        const struct eval_moment *m = &e->score.worst[i];
        json_array_append_new(a,
                              json_pack("{s:f, s:f, s:s, s:f}", "at_s",
                                        seconds(e, m->at_ns), "mean", m->mean, "joint",
                                        e->cfg.joint[m->joint].name, "error", m->error));
    }
    return a;
}

int eval_print_json(const struct eval *e, FILE *f)
{
    const struct eval_score *s = &e->score;
    json_t *joints = json_array(), *all = sum_json(e, &s->all);
    uint64_t left = e->no_joints + e->no_frame + e->corrupt;
    for (int j = 0; j < s->joints; j++)
        json_array_append_new(joints, joint_json(e, j));
    json_object_set_new(all, "p95", json_real(eval_score_p95(s, -1)));
    json_t *o = json_pack(
        "{s:s, s:s, s:s, s:b, s:f, s:I, s:I, s:I, s:I, s:I, s:i, s:f, s:f, s:o, s:o, s:o}",
        "policy", e->fitted->name, "digest", e->fitted->info->digest, "log",
        logbook_path(e->book, 0), "dataset", e->dataset, "seconds", e->seconds, "frames",
        (json_int_t)e->frames, "asked", (json_int_t)e->asked, "compared",
        (json_int_t)s->chunks, "left_out", (json_int_t)left, "unreadable",
        (json_int_t)e->damaged, "rows", s->rows, "step_ms", (double)s->step_ns / 1e6,
        "inference_ms", e->asked ? e->inference_s * 1e3 / (double)e->asked : 0.0, "all",
        all, "joints", joints, "worst", worst_json(e));
    int rc =
        o && json_dumpf(o, f, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) == 0 ? 0 : -ENOMEM;
    if (rc == 0)
        fputs("\n", f);
    json_decref(o);
    return rc;
}
