// joint_deviation: see the header.
#include "daemon/joint_deviation.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool joint_deviation_of(const struct config *cfg, const struct config_sidecar *side,
                        const struct binding *b, const struct policy_info *info,
                        struct joint_deviation *out)
{
    *out = (struct joint_deviation){.n = b->n};
    if (info->deviation.observations == 0)
        return false;
    for (int a = 0; a < b->n; a++) {
        int j = b->joint_of[a];
        const struct config_joint *joint = &cfg->joint[j];
        out->wire[j] = fabs((double)info->deviation.worst[a] / b->scale[j]);
        out->share[j] = out->wire[j] / (joint->max - joint->min);
        out->unit[j] = strcmp(side->units[a], "m") == 0 ? "m" : "rad";
    }
    for (int j = 1; j < b->n; j++)
        if (out->share[j] > out->share[out->worst])
            out->worst = j;
    return true;
}

// "4 made-up observations", "that of golden.safetensors and 4 made-up ones"
static const char *observations(const struct policy_deviation *d, char buf[80])
{
    if (d->golden)
        snprintf(buf, 80, "the observation of golden.safetensors and %d made-up ones",
                 d->observations - 1);
    else
        snprintf(buf, 80, "%d made-up observations", d->observations);
    return buf;
}

const char *joint_deviation_text(const struct config *cfg,
                                 const struct config_sidecar *side,
                                 const struct binding *b, const struct policy_info *info,
                                 char *buf, size_t size)
{
    struct joint_deviation d;
    char on[80];

    if (!joint_deviation_of(cfg, side, b, info, &d)) {
        snprintf(buf, size, "%s", precision_name(info->precision));
        return buf;
    }
    snprintf(buf, size,
             "%s: furthest from float32 in %s, %.2g %s (%.2g %% of its range), on %s",
             precision_name(info->precision), cfg->joint[d.worst].name, d.wire[d.worst],
             d.unit[d.worst], 100 * d.share[d.worst], observations(&info->deviation, on));
    return buf;
}

int joint_deviation_check(const struct config *cfg, const struct config_sidecar *side,
                          const struct binding *b, const struct policy_info *info,
                          struct config_error *err)
{
    struct joint_deviation d;
    double bound = cfg->policy.max_deviation;

    if (!joint_deviation_of(cfg, side, b, info, &d) || d.share[d.worst] <= bound)
        return 0;
    snprintf(
        err->text, sizeof err->text,
        "in %s the policy wants %s up to %.3g %s from where it wants it in float32, %.3g %% "
        "of the joint's position range, and policy.max_deviation allows %.3g %%: use "
        "`precision: float32`, or raise policy.max_deviation if the task forgives that",
        precision_name(info->precision), cfg->joint[d.worst].name, d.wire[d.worst],
        d.unit[d.worst], 100 * d.share[d.worst], 100 * bound);
    return -EDOM;
}
