// metrics_motion: where the joints are, the chunk they follow, the policy behind it.

#include "daemon/metrics_impl.h"

static double joint_number(const Actd__V1__JointStatus *j, int which)
{
    const double number[] = {j->measured, j->commanded, j->wanted,
                             j->velocity, j->min,       j->max};

    return number[which];
}

static void seams(struct metrics_text *t, const Actd__V1__Status *m)
{
    if (m->n_seams == 0)
        return;
    metrics_family(
        t, "actd_seam_max_radians", "gauge",
        "Largest jump of the target at a change of chunk (metres for a sliding joint).");
    for (size_t i = 0; i < m->n_seams; i++)
        metrics_value(t, "joint", m->seams[i]->joint, m->seams[i]->max_rad);
    metrics_family(t, "actd_seam_max_radians_per_second", "gauge",
                   "Largest jump of the target's speed there.");
    for (size_t i = 0; i < m->n_seams; i++)
        metrics_value(t, "joint", m->seams[i]->joint, m->seams[i]->max_rad_s);
}

void metrics_joints(struct metrics_text *t, const Actd__V1__Status *m)
{
    static const char *const family[][2] = {
        {"actd_joint_measured_radians",
         "Measured position of a joint (metres for a sliding joint)."},
        {"actd_joint_commanded_radians", "Commanded position of a joint."},
        {"actd_joint_wanted_radians",
         "Position that the policy wants, before limits; NaN when it wants none."},
        {"actd_joint_commanded_radians_per_second", "Commanded speed of a joint."},
        {"actd_joint_min_radians", "Lower limit of the commanded position."},
        {"actd_joint_max_radians", "Upper limit of the commanded position."},
    };

    for (int k = 0; m->n_joints > 0 && k < 6; k++) {
        metrics_family(t, family[k][0], "gauge", family[k][1]);
        for (size_t i = 0; i < m->n_joints; i++)
            metrics_value(t, "joint", m->joints[i]->name, joint_number(m->joints[i], k));
    }
    seams(t, m);
}

// Without a chunk there is no age of one: those families are absent then, since 0 would be a lie.
void metrics_chunk(struct metrics_text *t, const Actd__V1__Status *m)
{
    const Actd__V1__ChunkStatus *c = m->chunk;

    if (!c)
        return;
    metrics_one(t, "actd_chunk_in_use", "gauge",
                "Whether the loop follows a chunk of the policy.", c->id != 0);
    if (c->id == 0)
        return;
    metrics_one(t, "actd_chunk_id", "gauge", "Number of the newest chunk in use.",
                (double)c->id);
    metrics_one(t, "actd_chunk_age_seconds", "gauge",
                "Time since the observation behind the chunk was captured.",
                metrics_seconds(c->age_ns));
    metrics_one(t, "actd_chunk_row", "gauge", "Position in the chunk, in rows.", c->row);
    metrics_one(t, "actd_chunk_rows", "gauge", "Length of the chunk in rows.", c->rows);
    metrics_one(t, "actd_chunk_remaining_rows", "gauge",
                "Rows of the chunk still to come.", c->remaining);
    metrics_one(t, "actd_chunk_row_seconds", "gauge", "Duration of a row of the chunk.",
                metrics_seconds(c->step_ns));
    metrics_one(t, "actd_chunk_blended", "gauge",
                "Chunks that the target is blended from.", c->blended);
}

static void swaps(struct metrics_text *t, const Actd__V1__PolicyStatus *p)
{
    metrics_family(t, "actd_swaps_total", "counter", "Swaps of the policy, by result.");
    metrics_value(t, "result", "done", (double)p->swaps);
    metrics_value(t, "result", "failed", (double)p->swaps_failed);
    metrics_one(t, "actd_swap_in_progress", "gauge",
                "Whether another policy is being tried.",
                p->swapping_to && p->swapping_to[0]);
    metrics_one(t, "actd_policy_generation", "gauge",
                "Number of the policy in use, counted from 1 since the start.",
                p->generation);
    metrics_one(t, "actd_policy_previous_kept", "gauge",
                "Whether there is a policy to swap back to.",
                p->previous && p->previous[0]);
}

void metrics_policy(struct metrics_text *t, const Actd__V1__Status *m)
{
    const Actd__V1__PolicyStatus *p = m->policy_in_use;

    if (!p)
        return;
    const struct metrics_label labels[METRICS_LABELS + 1] = {
        {"policy", p->name},
        {"type", p->type},
        {"digest", p->digest},
        {"config_sha256", p->config_sha256},
        {"weights_sha256", p->weights_sha256},
        {"statistics_sha256", p->statistics_sha256},
        {"precision", p->precision},
        {NULL, NULL}};

    metrics_family(t, "actd_policy_info", "gauge",
                   "The policy in use; digest is the SHA-256 over the other three sums.");
    metrics_sample(t, "", labels, 1);
    swaps(t, p);
}
