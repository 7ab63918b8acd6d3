// Faults, budgets and seams, as the loop reported them, in the words of the message.
#include "daemon/status_impl.h"

static void judge_faults(struct status *s)
{
    const struct faults *f = &s->report.faults;

    s->n_faults = 0;
    for (int r = REASON_NONE + 1; r < LADDER_REASONS; r++) {
        Actd__V1__Fault *m = &s->fault[r];
        bool latched = (f->latched >> r) & 1;

        if (f->of[r].episodes == 0 && !latched)
            continue;
        actd__v1__fault__init(m);
        m->reason = (Actd__V1__Reason)r;
        m->active = (f->active >> r) & 1;
        m->latched = latched;
        m->episodes = f->of[r].episodes;
        m->ticks = f->of[r].ticks;
        m->first_tick = f->of[r].first_tick;
        m->last_tick = f->of[r].last_tick;
        s->faults[s->n_faults++] = m;
    }
}

static void judge_budgets(struct status *s)
{
    static const char *const name[BOARD_BUDGETS] = {"wakeup", "tick", "chunk_latency",
                                                    "sensor_age"};
    const struct board *b = s->src.board;
    const struct histogram *histogram[BOARD_BUDGETS] = {
        &b->lateness, &b->tick_time, &b->chunk_latency, &b->sensor_age};

    for (int i = 0; i < BOARD_BUDGETS; i++) {
        const struct budget_report *r = &s->report.budget[i];
        Actd__V1__Budget *m = &s->budget[i];

        actd__v1__budget__init(m);
        status_histogram(&s->budget_histogram[i], hist_summary(histogram[i]));
        m->name = (char *)(uintptr_t)name[i]; // protobuf-c only reads it
        m->limit_ns = (uint64_t)r->limit_ns;
        m->samples = r->samples;
        m->missed = r->missed;
        m->missed_in_window = r->in_window;
        m->consecutive_max = r->consecutive_max;
        m->worst_ns = (uint64_t)r->worst_ns;
        m->worst_tick = r->worst_tick;
        m->over = r->over;
        m->histogram = &s->budget_histogram[i];
        s->budgets[i] = m;
    }
}

static void judge_seams(struct status *s)
{
    for (int j = 0; j < s->src.cfg->n_joints; j++) {
        const struct seam_report *r = &s->report.seam[j];
        Actd__V1__Seam *m = &s->seam[j];

        actd__v1__seam__init(m);
        m->joint = (char *)(uintptr_t)s->src.cfg->joint[j].name;
        m->max_rad = r->rad;
        m->max_rad_s = r->rad_s;
        m->tick = r->tick;
        s->seams[j] = m;
    }
}

void status_judge(struct status *s)
{
    judge_faults(s);
    judge_budgets(s);
    judge_seams(s);
}
