// check: see the header. Loading, and the order of things.
#include "daemon/check.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/check_impl.h"

void check_note(struct check *c, const char *format, ...)
{
    va_list ap;

    if (c->n_notes == CHECK_NOTES)
        return;
    va_start(ap, format);
    vsnprintf(c->note[c->n_notes], sizeof c->note[0], format, ap);
    va_end(ap);
    for (char *p = c->note[c->n_notes]; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    c->n_notes++;
}

bool check_seen(const struct check *c, int action, double *lo, double *hi)
{
    int j = c->binding.joint_of[action];
    const struct units_range *r = &c->range[action];
    double a = r->lo / c->binding.scale[j] + c->binding.offset[j];
    double b = r->hi / c->binding.scale[j] + c->binding.offset[j];

    *lo = fmin(a, b);
    *hi = fmax(a, b);
    return r->known;
}

static int load_policy(struct check *c)
{
    const struct policy_options opt = {
        .threads = c->cfg.policy.threads,
        .resize = c->cfg.policy.resize,
        .stats_tag = c->cfg.policy.stats_tag[0] ? c->cfg.policy.stats_tag : NULL,
        .precision = c->cfg.policy.precision,
        .rows = c->cfg.chunks.horizon_rows, // as run does: what is timed is its inference
    };
    struct policy_error why = {""};
    int rc = policy_load(&c->policy, c->cfg.policy.directory, &opt, &why);

    if (rc) {
        snprintf(c->err.text, sizeof c->err.text, "%s", why.text);
        return rc;
    }
    c->info = policy_describe(c->policy);
    return 0;
}

static void resolve_units(struct check *c)
{
    units_ranges(&c->info->action, c->range, c->side.n_action);
    units_guess(c->range, c->side.action[0], CONFIG_NAME, c->side.n_action, c->guess);
}

static int load(struct check *c, const char *file)
{
    int rc = config_load(&c->cfg, file, &c->err);

    if (!rc)
        rc = config_sidecar_load(&c->side, c->cfg.policy.directory, &c->err);
    if (!rc)
        rc = load_policy(c);
    if (!rc)
        rc = binding_make(&c->binding, &c->cfg, &c->side, c->info, &c->err);
    if (!rc)
        rc = config_loop(&c->cfg, &c->side, c->info, &c->loop, &c->err);
    if (rc)
        return rc;
    resolve_units(c);
    return 0;
}

static int run(struct check *c, const char *file)
{
    int rc = load(c, file);

    if (rc)
        return rc;
    check_report_static(c);
    check_machine(c);
    rc = check_time(c);
    if (rc)
        return rc;
    check_report_measured(c);
    rc = check_judge(c);
    if (c->n_notes)
        fprintf(c->out, "\nWarnings\n");
    for (int i = 0; i < c->n_notes; i++)
        fprintf(c->out, "  %d. %s\n", i + 1, c->note[i]);
    return rc;
}

int check_run(const char *config_file, FILE *out, FILE *err)
{
    struct check *c = calloc(1, sizeof *c);
    int rc;

    if (!c) {
        fprintf(err, "actd check: out of memory\n");
        return EX_OSERR;
    }
    c->out = out;
    rc = run(c, config_file);
    fflush(out); // the facts before the verdict, wherever they go
    if (rc)
        fprintf(err, "REFUSED: %s\n", c->err.text);
    else
        fprintf(out, "\nOK%s\n", c->n_notes ? ", with warnings" : "");
    policy_free(c->policy);
    free(c->actions);
    free(c);
    return rc == 0 ? EX_OK : rc == -ENOMEM ? EX_OSERR : EX_CONFIG;
}

int check_main(const char *config_file)
{
    return check_run(config_file, stdout, stderr);
}

int check_warnings(const struct config *cfg, const struct config_sidecar *side,
                   const struct policy_info *info, const struct binding *binding,
                   void (*say)(const char *text))
{
    struct check *c = calloc(1, sizeof *c);
    int n;

    if (!c)
        return -ENOMEM;
    c->cfg = *cfg;
    c->side = *side;
    c->info = info;
    c->binding = *binding;
    resolve_units(c);
    check_judge_static(c);
    n = c->n_notes;
    for (int i = 0; i < n; i++)
        say(c->note[i]);
    free(c);
    return n;
}
