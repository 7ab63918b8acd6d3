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
            out[i] = (struct units_range){
                .known = true, .lo = (double)s->min[i], .hi = (double)s->max[i]};
        else if (s->mean && s->std)
            out[i] = (struct units_range){.known = true,
                                          .lo = (double)(s->mean[i] - 3 * s->std[i]),
                                          .hi = (double)(s->mean[i] + 3 * s->std[i]),
                                          .estimated = true};
        out[i].known = out[i].known && isfinite(out[i].lo) && isfinite(out[i].hi);
    }
}

bool units_is_gripper(const char *name)
{
    return strcasestr(name, "gripper") || strcasestr(name, "finger");
}

bool units_is_so_arm(const char *robot_type)
{
    return strcasestr(robot_type, "so100") || strcasestr(robot_type, "so101") ||
           strcasestr(robot_type, "so_follower");
}

bool units_is_sure(const char *guess)
{
    return *guess && !strchr(guess, ' ');
}

bool units_fits(const char *guess, const char *unit)
{
    size_t n = strlen(unit);

    if (!*guess)
        return true;
    for (const char *word = guess; word; word = strstr(word, " or ")) {
        word += *word == ' ' ? 4 : 0;
        if (strncmp(word, unit, n) == 0 && (word[n] == '\0' || word[n] == ' '))
            return true;
    }
    return false;
}

// LeRobot clamps -100..100, so a value beyond it can only be degrees; anything up to it may
// be either. Estimates go beyond what was there, so of them only the mean counts.
static bool beyond_100(const struct units_range *r)
{
    double mean = (r->lo + r->hi) / 2;

    return r->estimated ? fabs(mean) > 100.5 : fmax(fabs(r->lo), fabs(r->hi)) > 100.5;
}

static const char *guess_gripper(const struct units_range *r, const char *arm)
{
    bool small = strcmp(arm, "rad") == 0;
    double mean = (r->lo + r->hi) / 2;

    if (r->estimated) // its ends say nothing
        return mean < 0                ? arm
               : small && mean <= 1    ? UNITS_GRIP_SMALL
               : !small && mean <= 100 ? UNITS_GRIP_LARGE
                                       : arm;
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
    bool beyond = false;
    const char *arm;

    for (int i = 0; i < n; i++) {
        if (!r[i].known || units_is_gripper(names + i * stride))
            continue;
        largest = fmax(largest, fmax(fabs(r[i].lo), fabs(r[i].hi)));
        beyond = beyond || beyond_100(&r[i]);
    }
    arm = largest <= FULL_TURN ? "rad" : beyond ? "deg" : UNITS_ARM_EITHER;
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
