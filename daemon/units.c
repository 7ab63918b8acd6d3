// units: see the header.
#include "daemon/units.h"

#include <math.h>
#include <string.h>

#define FULL_TURN 6.6 // rad, with a little slack; an arm joint rarely turns further

struct policy_stats units_stats(const struct norm_stats *s)
{
    return (struct policy_stats){
        .n = s->n, .mean = s->mean, .std = s->std, .min = s->min, .max = s->max};
}

void units_ranges(const struct policy_stats *s, struct units_range *out, int n)
{
    for (int i = 0; i < n; i++) {
        out[i] = (struct units_range){0};
        if (i >= s->n)
            continue;
        if (s->min && s->max)
            out[i] = (struct units_range){true, (double)s->min[i], (double)s->max[i]};
        else if (s->mean && s->std)
            out[i] = (struct units_range){true, (double)(s->mean[i] - 3 * s->std[i]),
                                          (double)(s->mean[i] + 3 * s->std[i])};
        out[i].known = out[i].known && isfinite(out[i].lo) && isfinite(out[i].hi);
    }
}

bool units_is_gripper(const char *name)
{
    return strcasestr(name, "gripper") || strcasestr(name, "finger");
}

// -100..100 is clamped by LeRobot, so an arm that used its range hugs the ends; degrees
// go past 100 or stay away from it.
static const char *guess_arm(double largest, int hugging)
{
    if (largest <= FULL_TURN)
        return "rad";
    if (largest > 100.5)
        return "deg";
    return hugging ? "m100_100" : "deg";
}

static const char *guess_gripper(const struct units_range *r, const char *arm)
{
    if (r->lo >= -0.1 && r->hi <= 1.1 && r->hi > 0.5)
        return "0_1";
    if (r->lo >= -1 && r->hi <= 101 && r->hi > FULL_TURN)
        return "0_100";
    return arm;
}

void units_guess(const struct units_range *r, const char *names, int stride, int n,
                 const char **out)
{
    double largest = 0;
    int hugging = 0, arms = 0;
    const char *arm = "rad";

    for (int i = 0; i < n; i++) {
        double end = fmax(fabs(r[i].lo), fabs(r[i].hi));
        if (!r[i].known || units_is_gripper(names + i * stride))
            continue;
        arms++;
        largest = fmax(largest, end);
        hugging += end >= 98.5 && end <= 100.5;
    }
    if (arms)
        arm = guess_arm(largest, hugging);
    for (int i = 0; i < n; i++) {
        bool gripper = units_is_gripper(names + i * stride);
        out[i] = !r[i].known ? "" : gripper ? guess_gripper(&r[i], arm) : arm;
    }
}

double units_scale(const char *unit)
{
    if (strcmp(unit, "deg") == 0)
        return 180 / 3.14159265358979323846;
    return strcmp(unit, "rad") == 0 || strcmp(unit, "m") == 0 ? 1 : (double)NAN;
}
