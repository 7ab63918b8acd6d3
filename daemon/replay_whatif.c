#include "daemon/replay_whatif.h"

#include <math.h>

#include "daemon/table.h"

static void add(struct whatif_spread *s, double then, double now, ns_t at_ns)
{
    double by = fabs(then - now);

    if (isnan(by)) // one of them wants nothing
        return;
    s->n++;
    s->squares += by * by;
    if (by <= s->largest)
        return;
    s->largest = by;
    s->at_ns = at_ns;
}

static double rms(const struct whatif_spread *s)
{
    return s->n > 0 ? sqrt(s->squares / (double)s->n) : 0;
}

static void add_seam(double seam, uint64_t *n, double *largest)
{
    *n += seam > WHATIF_SEAM;
    *largest = fmax(*largest, seam);
}

static void add_joint(struct whatif *w, int j, const struct tick_record *then,
                      const struct tick_record *now, ns_t at_ns)
{
    const struct tick_joint *a = &then->joint[j], *b = &now->joint[j];

    add(&w->joint[j].target, a->target, b->target, at_ns);
    if (then->published && now->published)
        add(&w->joint[j].command, a->commanded, b->commanded, at_ns);
    w->joint[j].limited_then += a->limit != GUARD_NONE;
    w->joint[j].limited_now += b->limit != GUARD_NONE;
    add_seam(a->seam, &w->joint[j].seams_then, &w->joint[j].largest_seam_then);
    add_seam(b->seam, &w->joint[j].seams_now, &w->joint[j].largest_seam_now);
}

void whatif_tick(void *arg, const struct tick_record *then, const struct tick_record *now)
{
    struct whatif *w = arg;
    ns_t at_ns;

    if (!w->any)
        w->first_ns = then->in.now_ns;
    w->any = true;
    w->joints = then->joints;
    w->ticks++;
    at_ns = then->in.now_ns - w->first_ns;
    for (int j = 0; j < then->joints && j < now->joints; j++)
        add_joint(w, j, then, now, at_ns);
    if (then->mode == now->mode)
        return;
    if (w->apart++ > 0)
        return;
    w->apart_ns = at_ns;
    w->apart_then = then->mode;
    w->apart_now = now->mode;
}

// ---- for people ------------------------------------------------------------------------------

static double seconds(ns_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

void whatif_print(const struct whatif *w, const char *const *names, FILE *f)
{
    struct table t = {0};

    table_row(
        &t, "joint\ttarget: largest\tat\trms\tcommand: largest\tat\trms\tlimited\tseams\t"
            "largest seam");
    for (int j = 0; j < w->joints; j++) {
        const struct whatif_spread *a = &w->joint[j].target, *b = &w->joint[j].command;

        table_row(
            &t,
            "%s\t%.5f\t%.3f s\t%.5f\t%.5f\t%.3f s\t%.5f\t%llu, now %llu\t%llu, now %llu\t"
            "%.4f, now %.4f",
            names[j], a->largest, seconds(a->at_ns), rms(a), b->largest,
            seconds(b->at_ns), rms(b), (unsigned long long)w->joint[j].limited_then,
            (unsigned long long)w->joint[j].limited_now,
            (unsigned long long)w->joint[j].seams_then,
            (unsigned long long)w->joint[j].seams_now, w->joint[j].largest_seam_then,
            w->joint[j].largest_seam_now);
    }
    table_print(&t, f);
    fprintf(
        f,
        "\nDifferences in rad (m), over %llu ticks. Open loop: what was measured stays as it "
        "was recorded,\nso the arm does not go where these commands would have led it. Target: "
        "what the chunks\nwant; command: what the limits leave of it. Limited: ticks in which a "
        "limit acted, then\nand now; seams: jumps of the target where a chunk came into view.\n",
        (unsigned long long)w->ticks);
    if (w->apart > 0)
        fprintf(
            f,
            "The ladder was in another state in %llu ticks, first at %.3f s: then %s, now "
            "%s.\n",
            (unsigned long long)w->apart, seconds(w->apart_ns),
            ladder_state_name(w->apart_then), ladder_state_name(w->apart_now));
}

// ---- for programs ----------------------------------------------------------------------------

static json_t *spread_json(const struct whatif_spread *s)
{
    return json_pack("{s:f, s:f, s:f, s:I}", "largest", s->largest, "at_s",
                     seconds(s->at_ns), "rms", rms(s), "n", (json_int_t)s->n);
}

static json_t *joint_json(const struct whatif *w, int j, const char *name)
{
    return json_pack(
        "{s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:f, s:f}", "name", name, "target",
        spread_json(&w->joint[j].target), "command", spread_json(&w->joint[j].command),
        "limited_then", (json_int_t)w->joint[j].limited_then, "limited_now",
        (json_int_t)w->joint[j].limited_now, "seams_then",
        (json_int_t)w->joint[j].seams_then, "seams_now",
        (json_int_t)w->joint[j].seams_now, "largest_seam_then",
        w->joint[j].largest_seam_then, "largest_seam_now", w->joint[j].largest_seam_now);
}

json_t *whatif_json(const struct whatif *w, const char *const *names)
{
    json_t *joints = json_array();

    for (int j = 0; j < w->joints && joints; j++)
        if (json_array_append_new(joints, joint_json(w, j, names[j])) != 0) {
            json_decref(joints);
            joints = NULL;
        }
    if (!joints)
        return NULL;
    return json_pack("{s:I, s:I, s:o}", "ticks", (json_int_t)w->ticks, "other_state",
                     (json_int_t)w->apart, "joints", joints);
}
