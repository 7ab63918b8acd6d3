// arming: is the pose that the arm is in one that the policy may have seen? Units that
// changed between versions of the training software, or a wrong joint map, show as a pose
// that training never saw.
#ifndef ACTD_ARMING_H
#define ACTD_ARMING_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/fitted.h"

// plain. True when the arm must not be armed at the measured pose (cfg->n_joints values,
// rad), with a sentence in text: which joint, how far it is from the training data's mean
// (safety.max_stats_z), and the remedy. False without statistics, or when nothing is
// checked.
bool arming_refused(const struct config *cfg, const struct fitted *f,
                    const double *measured, char *text, size_t size);

#endif
