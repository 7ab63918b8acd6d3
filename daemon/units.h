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
    bool known;
    double lo, hi;
    bool estimated; // mean -/+ 3 standard deviations, for want of min and max
};

// Ranges (n) of a feature's statistics; any array may be NULL.
void units_ranges(const struct policy_stats *s, struct units_range *out, int n);
struct policy_stats units_stats(const struct norm_stats *s);

// Guesses that leave a choice.
#define UNITS_ARM_EITHER "deg or m100_100"
#define UNITS_GRIP_SMALL "rad or 0_1"
#define UNITS_GRIP_LARGE "deg or 0_100"

// The guess for each value: "rad", "deg", "0_100", "0_1", one of the choices above, or ""
// without statistics. names are n texts, stride bytes apart. The vector is looked at as a
// whole: a driver has one unit for its arm joints; a gripper (by its name) is judged by
// itself.
void units_guess(const struct units_range *r, const char *names, int stride, int n,
                 const char **out);

// Is this unit the guess, or one of its choices? True for "", which excludes nothing.
bool units_fits(const char *guess, const char *unit);
// Does the guess name one unit?
bool units_is_sure(const char *guess);

// LeRobot's data sets of the SO-100 and SO-101 arms, by their robot_type.
bool units_is_so_arm(const char *robot_type);

bool units_is_gripper(const char *name);

// Scale from wire (rad or m) to this unit, or NAN when the unit does not fix it.
double units_scale(const char *unit);

#endif
