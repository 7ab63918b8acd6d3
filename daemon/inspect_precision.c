// inspect_precision: see the header.
#include "daemon/inspect_precision.h"

#include <stdlib.h>
#include <sysexits.h>

#include "daemon/config.h"
#include "daemon/table.h"
#include "policy/policy.h"

// Names and units are there or are not: the numbers say something without them.
static void print(const struct policy_info *info, const struct config_sidecar *side,
                  FILE *out)
{
    static struct table t;
    const struct policy_deviation *d = &info->deviation;
    bool named = side->n_action == info->action_dim;

    fprintf(out, "\n%s against float32: the furthest of any row of %d chunks%s\n",
            precision_name(info->precision), d->observations,
            d->golden ? ", one of them of golden.safetensors" : "");
    table_row(&t, "value\tname\toff by\tunit\tof the standard deviation");
    for (int a = 0; a < info->action_dim && a < ACTD_MAX_JOINTS; a++) {
        double off = (double)d->worst[a];
        char share[24] = "-";
        if (info->action.std && a < info->action.n && info->action.std[a] > 0)
            snprintf(share, sizeof share, "%.2g %%",
                     100 * off / (double)info->action.std[a]);
        table_row(&t, "%d\t%s\t%.2g\t%s\t%s", a, named ? side->action[a] : "-", off,
                  named ? side->units[a] : "?", share);
    }
    table_print(&t, out);
    fprintf(out, "weights %.1f MiB\n", (double)info->weight_bytes / (1 << 20));
}

int inspect_precision_run(const char *dir, const char *stats_tag,
                          enum precision precision, FILE *out, FILE *err)
{
    const struct policy_options opt = {.precision = precision, .stats_tag = stats_tag};
    struct config_sidecar *side = calloc(1, sizeof *side);
    struct policy_error why = {"out of memory"};
    struct config_error unsaid = {""};
    struct policy *p = NULL;

    if (!side || policy_load(&p, dir, &opt, &why)) {
        fprintf(err, "REFUSED: %s\n", why.text);
        free(side);
        return EX_CONFIG;
    }
    if (config_sidecar_load(side, dir, &unsaid)) // inspect has said what is wrong with it
        side->n_action = 0;
    print(policy_describe(p), side, out);
    policy_free(p);
    free(side);
    return EX_OK;
}
