// The facts of a loaded policy, for policy_describe.
#include <cblas.h>
#include <stdio.h>

#include "policy/kernels/kernels.h"
#include "policy/policy_priv.h"

static struct policy_stats stats_of(const struct norm_stats *s)
{
    return (struct policy_stats){s->n, s->mean, s->std, s->min, s->max};
}

static void describe_features(struct policy_info *info,
                              const struct lerobot_checkpoint *c)
{
    info->n_cameras = c->n_cameras;
    for (int i = 0; i < c->n_cameras; i++) {
        info->camera[i].height = c->camera[i].height;
        info->camera[i].width = c->camera[i].width;
        snprintf(info->camera[i].key, sizeof info->camera[i].key, "%s", c->camera[i].key);
    }
    info->state_dim = c->state_dim;
    info->env_dim = c->env_dim;
    info->action_dim = c->action_dim;
    info->state = stats_of(&c->state_stats);
    info->action = stats_of(&c->action_stats);
    snprintf(info->norm_state, sizeof info->norm_state, "%s",
             norm_mode_name(c->state.mode));
    snprintf(info->norm_action, sizeof info->norm_action, "%s",
             norm_mode_name(c->action.mode));
    if (c->n_cameras)
        snprintf(info->norm_visual, sizeof info->norm_visual, "%s",
                 norm_mode_name(c->camera[0].norm.mode));
}

void policy_fill_info(struct policy *p)
{
    const struct lerobot_checkpoint *c = p->checkpoint;
    const struct lerobot_act *a = &c->act;
    struct policy_info *info = &p->info;
    snprintf(info->type, sizeof info->type, "act");
    snprintf(info->format, sizeof info->format, "%s", c->format);
    if (c->n_cameras)
        snprintf(info->backbone, sizeof info->backbone, "%s", a->backbone);
    describe_features(info, c);
    info->chunk_size = info->rows = a->chunk_size;
    info->n_action_steps = a->n_action_steps;
    info->has_ensemble_coeff = a->has_ensemble_coeff;
    info->ensemble_coeff = a->ensemble_coeff;
    info->dim_model = a->dim_model;
    info->n_heads = a->n_heads;
    info->dim_feedforward = a->dim_feedforward;
    info->n_encoder_layers = a->n_encoder_layers;
    info->n_decoder_layers = a->n_decoder_layers;
    info->pre_norm = a->pre_norm;
    info->kernels = kernels_name(info->precision);
    if (kernels_blas())
        snprintf(info->blas_core, sizeof info->blas_core, "%s", openblas_get_corename());
}
