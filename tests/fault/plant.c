#include "tests/fault/plant.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "actd/v1/joint_command.pb-c.h"

void plant_init(struct plant *p, const struct plant_config *cfg, ns_t now)
{
    memset(p, 0, sizeof *p);
    p->cfg = *cfg;
    p->now_ns = now;
    memcpy(p->pos, cfg->start, sizeof p->pos);
}

static bool take_joints(const struct plant *p, const Actd__V1__JointCommand *m,
                        struct heard *h)
{
    if (m->n_joints != (size_t)p->cfg.joints)
        return false;
    for (int i = 0; i < p->cfg.joints; i++) {
        const Actd__V1__Joint *j = m->joints[i];

        if (strcmp(j->name, p->cfg.name[i]) != 0)
            return false;
        h->pos[i] = j->position;
        h->vel[i] = j->velocity;
        h->wanted[i] = j->wanted;
    }
    h->n = p->cfg.joints;
    return true;
}

static void take_header(const Actd__V1__JointCommand *m, struct heard *h)
{
    h->sequence = m->sequence;
    h->tick = m->tick;
    h->mode = (int)m->mode;
    h->reason = (int)m->reason;
    h->limit = (int)m->limit;
    snprintf(h->limited_joint, sizeof h->limited_joint, "%s", m->limited_joint);
    h->ttl_ns = (ns_t)m->time_to_live_ns;
    h->joint_age_ns = (ns_t)m->joint_state_age_ns;
    h->frame_age_ns = (ns_t)m->frame_age_ns;
    h->margin_ns = m->deadline_margin_ns;
    h->lateness_ns = (ns_t)m->wakeup_lateness_ns;
    h->chunk_id = m->chunk_id;
    h->chunk_row = m->chunk_row;
    h->blended = m->chunks_blended;
}

bool plant_hear(struct plant *p, const void *data, size_t size, ns_t now)
{
    Actd__V1__JointCommand *m = actd__v1__joint_command__unpack(NULL, size, data);
    struct heard h = {.received_ns = now};
    bool good;

    p->heard++;
    if (!m) {
        p->undecodable++;
        return false;
    }
    good = take_joints(p, m, &h);
    take_header(m, &h);
    actd__v1__joint_command__free_unpacked(m, NULL);
    if (!good) {
        p->undecodable++;
        return false;
    }
    if (p->has_command && h.sequence <= p->command.sequence) {
        p->stale++;
        return false;
    }
    plant_move(p, now);
    p->command = h;
    p->has_command = p->alive = true;
    return true;
}

static double towards(double from, double to, double most)
{
    return from + fmax(-most, fmin(most, to - from));
}

// One joint for dt seconds. Without a living command it brakes.
static void move_joint(struct plant *p, int i, double dt)
{
    const struct plant_config *c = &p->cfg;
    double want = 0;

    if (p->alive)
        want = p->command.vel[i] + (p->command.pos[i] - p->pos[i]) / c->lag_s;
    want = fmax(-c->speed[i], fmin(c->speed[i], want));
    p->vel[i] = p->blocked[i] ? 0 : towards(p->vel[i], want, c->acceleration[i] * dt);
    p->pos[i] += p->vel[i] * dt;
}

void plant_move(struct plant *p, ns_t now)
{
    while (p->now_ns + PLANT_STEP_NS <= now) {
        p->now_ns += PLANT_STEP_NS;
        if (p->alive && p->now_ns - p->command.received_ns > p->command.ttl_ns) {
            p->alive = false;
            p->stops++;
        }
        for (int i = 0; i < p->cfg.joints; i++)
            move_joint(p, i, (double)PLANT_STEP_NS / (double)NS_PER_S);
    }
}
