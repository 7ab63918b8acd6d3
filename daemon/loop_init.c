// The part of the loop that allocates; loop.c and loop_watch.c hold rt functions only.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/loop_impl.h"

static bool positive(double x)
{
    return isfinite(x) && x > 0;
}

// The config was checked key by key long ago; this is what the loop's own arithmetic needs.
static int check(const struct loop_config *c)
{
    const struct guard_limits *l = &c->limits;

    if (c->joints < 1 || c->joints > ACTD_MAX_JOINTS || l->n != c->joints ||
        c->chunks.joints != c->joints || c->n_cameras < 0 ||
        c->n_cameras > POLICY_MAX_CAMERAS)
        return -EINVAL;
    if (!positive(c->control_hz) || c->joints_period_ns < 1 || c->hold_ns < 0 ||
        c->tick_gap_ns < 1 || !(c->approach_scale > 0 && c->approach_scale <= 1) ||
        !positive(c->approach_tolerance))
        return -EINVAL;
    for (int i = 0; i < c->joints; i++)
        if (!isfinite(l->min[i]) || !isfinite(l->max[i]) || l->min[i] >= l->max[i] ||
            !positive(l->velocity[i]) || !positive(l->acceleration[i]) ||
            !positive(l->stop_acceleration[i]) || !isfinite(l->jerk[i]) || l->jerk[i] < 0)
            return -EINVAL;
    return 0;
}

// Chunks are refused for what the guard would refuse.
static void copy_hard_range(struct loop *l)
{
    memcpy(l->cfg.chunks.hard_min, l->guard.lim.hard_min, sizeof l->guard.lim.hard_min);
    memcpy(l->cfg.chunks.hard_max, l->guard.lim.hard_max, sizeof l->guard.lim.hard_max);
}

// A budget that is not given is never missed.
static void init_budgets(struct loop *l)
{
    struct board *b = l->board;
    struct histogram *histogram[BOARD_BUDGETS] = {
        [BOARD_WAKEUP] = &b->lateness,
        [BOARD_TICK] = &b->tick_time,
        [BOARD_CHUNK] = &b->chunk_latency,
        [BOARD_SENSOR] = &b->sensor_age,
    };
    int ticks = (int)(BUDGET_WINDOW_NS / l->period_ns);

    for (int i = 0; i < BOARD_BUDGETS; i++) {
        int window =
            i == BOARD_CHUNK || ticks < LOOP_WINDOW_LEAST ? LOOP_WINDOW_LEAST : ticks;
        ns_t limit = l->cfg.budget_ns[i] > 0 ? l->cfg.budget_ns[i] : INT64_MAX;

        budget_init(&l->budget[i], histogram[i], limit, window);
    }
}

int loop_new(struct loop **out, const struct loop_config *cfg, struct board *board)
{
    int rc = check(cfg);
    struct loop *l;

    *out = NULL;
    if (rc != 0)
        return rc;
    l = calloc(1, sizeof *l);
    if (l == NULL)
        return -ENOMEM;
    l->cfg = *cfg;
    l->board = board;
    l->period_ns = clock_period_ns(cfg->control_hz);
    l->state = LADDER_INIT;
    l->reason = REASON_STARTING;
    l->last_work_ns = -1;
    l->report.mode = l->state;
    l->report.reason = l->reason;
    for (int i = 0; i < ACTD_MAX_JOINTS; i++)
        l->report.wanted[i] = NAN;
    guard_init(&l->guard, &cfg->limits, (double)l->period_ns / (double)NS_PER_S);
    init_budgets(l);
    copy_hard_range(l);
    rc = chunks_init(&l->chunks, &l->cfg.chunks);
    if (rc != 0) {
        free(l);
        return rc;
    }
    *out = l;
    return 0;
}

void loop_free(struct loop *l)
{
    if (l == NULL)
        return;
    chunks_free(l->chunks);
    free(l);
}
