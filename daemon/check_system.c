// check_system: `actd check --system`: what on this PC would hurt, with or without a
// configuration. Loads no policy and opens no socket.
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "daemon/check.h"
#include "daemon/doctor.h"
#include "policy/kernels/kernels.h"

static int judge(const struct config *cfg, FILE *out)
{
    const struct doctor_self self = {
        .loop_cpu = -1,
        .kernels = kernels_name(cfg ? cfg->policy.precision : PRECISION_FLOAT32),
        .blas_core = kernels_blas() ? openblas_get_corename() : ""};
    struct doctor_finding finding[DOCTOR_MOST];
    int n = doctor_look(cfg, &self, finding, DOCTOR_MOST);

    return doctor_print(finding, n, out) == DOCTOR_HURTS ? CHECK_HURTS : EX_OK;
}

int check_system(const char *config_file, FILE *out, FILE *err)
{
    struct config *cfg;
    struct config_error why = {""};
    int status = EX_CONFIG;

    if (!config_file)
        return judge(NULL, out);
    cfg = calloc(1, sizeof *cfg); // 100 KiB
    if (!cfg) {
        fprintf(err, "actd check: out of memory\n");
        return EX_OSERR;
    }
    if (config_load(cfg, config_file, &why))
        fprintf(err, "REFUSED: %s\n", why.text);
    else
        status = judge(cfg, out);
    free(cfg);
    return status;
}
