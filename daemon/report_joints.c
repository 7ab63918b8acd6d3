// report_joints: per joint what was wanted, commanded and measured, within its limits.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/report_impl.h"

static void cover(double *least, double *most, const struct svg_curve *c)
{
    if (!c->any)
        return;
    *least = fmin(*least, c->least);
    *most = fmax(*most, c->most);
}

// Limits are shown where they are near what happened: else they would flatten it.
static struct svg_plot position_plot(const struct report *r, const struct report_joint *j)
{
    struct svg_plot p = report_plot(r, j->name, "rad", 150);
    double least = INFINITY, most = -INFINITY;
    cover(&least, &most, &j->measured);
    cover(&least, &most, &j->target);
    cover(&least, &most, &j->commanded);
    if (!(most >= least))
        least = most = 0;
    double room = fmax(most - least, 0.02) * 0.5;
    if (j->known && j->min >= least - room && j->min < least)
        least = j->min;
    if (j->known && j->max <= most + room && j->max > most)
        most = j->max;
    svg_range(&p, least, most);
    return p;
}

static void position(FILE *f, const struct report *r, const struct report_joint *j)
{
    struct svg_plot p = position_plot(r, j);
    if (r->ticks == 0)
        p.unit = NULL;
    svg_begin(f, &p);
    if (j->known) {
        svg_level(f, &p, j->min, "limit");
        svg_level(f, &p, j->max, "limit");
    }
    svg_rug(f, r->chunk_seen, &p, false, "chunk");
    svg_draw(f, &p, &j->measured, "a");
    svg_draw(f, &p, &j->target, "c");
    svg_draw(f, &p, &j->commanded, "b");
    svg_rug(f, j->acted, &p, true, "acted");
    svg_end(f, &p, true);
}

static void speed(FILE *f, const struct report *r, const struct report_joint *j)
{
    struct svg_plot p = report_plot(r, "commanded velocity", "rad/s", 64);
    if (!j->speed.any)
        return;
    double most = fmax(fabs(j->speed.least), fabs(j->speed.most));
    if (j->known && j->velocity <= most * 1.5)
        most = fmax(most, j->velocity);
    svg_range(&p, -most, most);
    svg_begin(f, &p);
    if (j->known) {
        svg_level(f, &p, j->velocity, "limit");
        svg_level(f, &p, -j->velocity, "limit");
    }
    svg_draw(f, &p, &j->speed, "b");
    svg_end(f, &p, false);
}

static void words(FILE *f, const struct report *r, const struct report_joint *j)
{
    static const char *const limit[GUARD_LIMITS] = {"", "position", "velocity",
                                                    "acceleration", "jerk"};
    bool any = false;
    if (r->ticks == 0)
        return;
    fputs("<p class=\"dim small\">", f);
    if (j->known)
        fprintf(f, "limits %.4g … %.4g rad, %.3g rad/s; ", j->min, j->max, j->velocity);
    if (j->follow > 0)
        fprintf(f, "at most %.3g rad from its command (at %.2f s); ", j->follow,
                j->follow_s);
    if (j->seam > 0)
        fprintf(f, "largest seam %.3g rad (at %.2f s); ", j->seam, j->seam_s);
    for (int i = 1; i < GUARD_LIMITS; i++) {
        if (j->limits[i] == 0)
            continue;
        fprintf(f, "%s%s in %llu ticks", any ? ", " : "limited by ", limit[i],
                (unsigned long long)j->limits[i]);
        any = true;
    }
    fputs(any ? "</p>" : "no limit acted</p>", f);
}

static void key(FILE *f, bool ticks)
{
    fputs("<div class=\"key\"><span><i class=\"a\"></i>measured</span>", f);
    if (ticks)
        fputs("<span><i class=\"c\"></i>wanted by the policy</span>"
              "<span><i class=\"b\"></i>commanded</span>"
              "<span><i class=\"limit\"></i>limit</span>"
              "<span><i class=\"chunk\"></i>a new chunk</span>"
              "<span><i class=\"acted\"></i>a limit acted</span>",
              f);
    else
        fputs("<span><i class=\"b\"></i>action</span>", f);
    fputs("</div>", f);
}

void report_joints(FILE *f, struct report *r)
{
    if (r->joints == 0)
        return;
    fputs("<h2>Joints</h2>", f);
    key(f, r->ticks > 0);
    for (int i = 0; i < r->joints; i++) {
        fputs("<div class=\"card\"><h3>", f);
        svg_text(f, r->joint[i].name);
        fputs("</h3>", f);
        words(f, r, &r->joint[i]);
        position(f, r, &r->joint[i]);
        speed(f, r, &r->joint[i]);
        fputs("</div>\n", f);
    }
}
