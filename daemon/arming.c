#include "daemon/arming.h"

#include <math.h>
#include <stdio.h>

bool arming_refused(const struct config *cfg, const struct fitted *f,
                    const double *measured, char *text, size_t size)
{
    const struct policy_stats *s = &f->info->state;
    float state[ACTD_MAX_JOINTS];

    text[0] = '\0';
    if (cfg->safety.max_stats_z <= 0 || !s->mean || !s->std)
        return false;
    binding_state(&f->binding, measured, state);
    for (int i = 0; i < s->n && i < f->binding.n_state; i++) {
        double z = fabs((double)(state[i] - s->mean[i])) / ((double)s->std[i] + 1e-6);
        if (z <= cfg->safety.max_stats_z) // not so for NaN
            continue;
        snprintf(text, size,
                 "%s is %.1f standard deviations from the training data's mean pose "
                 "(safety.max_stats_z %g): check its units and its place in policy.yaml "
                 "with `actd check`, or move the arm to where the demonstrations began",
                 cfg->joint[f->binding.state_of[i]].name, z, cfg->safety.max_stats_z);
        return true;
    }
    return false;
}
