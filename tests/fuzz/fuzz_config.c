// fuzz_config: any bytes as robot.yaml and as policy.yaml. Either is accepted whole or
// refused with a sentence; an accepted one must keep its promises.
//
// Its corpus grew from tests/data/config and the examples in config/.
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config.h"
#include "daemon/config_loop.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int promise)
{
    if (!promise)
        abort();
}

static int is_budget(double ms)
{
    return ms == 0 || (isfinite(ms) && ms >= 0.001);
}

static void check_config(const struct config *c)
{
    must(c->n_joints >= 1 && c->n_joints <= ACTD_MAX_JOINTS);
    must(c->n_cameras >= 0 && c->n_cameras <= POLICY_MAX_CAMERAS);
    must(c->control.rate_hz >= 1 && c->control.rate_hz <= 2000 && c->policy.threads >= 1);
    must(c->policy.directory[0] == '/' && c->runtime[0] == '/');
    must(is_budget(c->deadlines.wakeup_ms) && is_budget(c->deadlines.tick_ms) &&
         is_budget(c->deadlines.chunk_latency_ms) &&
         is_budget(c->deadlines.sensor_age_ms));
    for (int i = 0; i < c->n_joints; i++) {
        const struct config_joint *j = &c->joint[i];
        must(j->min < j->max && isfinite(j->min) && isfinite(j->max));
        must(j->velocity > 0 && j->acceleration > 0 && j->stop_acceleration > 0 &&
             j->jerk >= 0);
        must(isnan(j->scale) || (isfinite(j->scale) && fabs(j->scale) >= 1e-6));
        must(isfinite(j->offset) && *j->name && *j->state && *j->action);
        must(memchr(j->name, 0, sizeof j->name) != NULL);
    }
    for (int i = 0; i < c->n_cameras; i++)
        must(*c->camera[i].key && *c->camera[i].endpoint && c->camera[i].rate_hz > 0);
}

static void check_loop(const struct config *c)
{
    struct policy_info p = {.chunk_size = 100, .n_action_steps = 100};
    struct config_sidecar side = {.rate_hz = 30};
    struct config_error err;
    struct loop_config l;

    if (config_loop(c, &side, &p, &l, &err))
        return;
    must(l.ttl_ns > 0 && l.hold_ns > 0 && l.joints_period_ns > 0 && l.chunks.step_ns > 0);
    must(l.chunks.rows >= 1 && l.chunks.rows <= 100 && l.chunks.capacity >= 1);
    must(l.chunks.max_age_ns > 0 && isfinite(l.chunks.ensemble_coeff));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct config cfg;
    static struct config_sidecar side;
    struct config_error err;
    const char *text = (const char *)data;

    memset(&err, 0, sizeof err);
    if (config_parse(&cfg, "fuzz.yaml", text, size, &err) == 0) {
        check_config(&cfg);
        check_loop(&cfg);
    } else {
        must(strncmp(err.text, "fuzz.yaml:", 10) == 0);
    }
    memset(&err, 0, sizeof err);
    if (config_sidecar_parse(&side, "fuzz.yaml", text, size, &err) == 0)
        must(side.n_action >= 1 && side.rate_hz >= 0.5 && *side.units[side.n_action - 1]);
    else
        must(strncmp(err.text, "fuzz.yaml:", 10) == 0);
    return 0;
}
