// units: what a checkpoint was probably trained in, guessed from its statistics.
// LeRobot's own arms have been in degrees, in -100..100 and in degrees again, and no
// checkpoint says which; a wrong unit moves an arm to the wrong place at once. So a guess
// is only ever shown, written down for a person to confirm, and compared with what
// policy.yaml declares.
//
// All functions are plain.
#ifndef ACTD_UNITS_H
#define ACTD_UNITS_H

#include <stdbool.h>

#include "policy/normalize.h"
#include "policy/policy.h"

// Least and largest value of one dimension seen in training.
struct units_range {
    bool known; // from min and max, else mean -/+ 3 standard deviations
    double lo, hi;
};

// Ranges (n) of a feature's statistics; any array may be NULL.
void units_ranges(const struct policy_stats *s, struct units_range *out, int n);
struct policy_stats units_stats(const struct norm_stats *s);

// The guess for each value: "rad", "deg", "m100_100", "0_100", "0_1", or "" without
// statistics. names are n texts, stride bytes apart. The vector is looked at as a whole:
// a driver has one unit for its arm joints; a gripper (by its name) is judged by itself.
void units_guess(const struct units_range *r, const char *names, int stride, int n,
                 const char **out);

bool units_is_gripper(const char *name);

// Scale from wire (rad or m) to this unit, or NAN when the unit does not fix it.
double units_scale(const char *unit);

#endif
