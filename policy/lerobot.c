// lerobot: see the header.
#include "policy/lerobot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/lerobot_config.h"
#include "policy/lerobot_manifest.h"
#include "policy/lerobot_names.h"
#include "policy/lerobot_processor.h"
#include "policy/lerobot_stats.h"
#include "policy/refuse.h"

struct lr_priv {
    struct lr_config config;
    struct lr_names names; // of the weights
    struct lr_values state, action;
};

// One direction, in (pre) or out (post): its pipeline and the file with its statistics.
struct side {
    struct lr_processor processor;
    struct st_file *f;
    struct lr_names names;
    struct lr_source source;
};

static void side_close(struct side *s)
{
    lr_processor_close(&s->processor);
    lr_names_close(&s->names);
    st_close(s->f);
}

static int open_state_file(struct side *s, const struct place *place,
                           struct policy_error *err)
{
    int r;

    if (!s->processor.state_file[0]) {
        s->source.file =
            s->processor.file; // which then is where statistics are missing from
        return 0;
    }
    r = st_open_at(&s->f, place, s->processor.state_file, err);
    if (r < 0)
        return refuse_more(err, -r, "; %s names it: copy it from the original checkpoint",
                           s->processor.file);
    s->source.file = s->processor.state_file;
    s->source.f = s->f;
    s->source.names = &s->names;
    return lr_names_build(&s->names, s->f, err);
}

// A pipeline on one side only: the other side's file got lost on the way.
static int lost_side(const struct lr_config *c, const char *file, bool post,
                     struct policy_error *err)
{
    bool needed = post ? c->action.mode != NORM_IDENTITY
                       : c->state.mode != NORM_IDENTITY || c->env.mode != NORM_IDENTITY;

    for (int i = 0; !post && i < c->n_cameras; i++)
        needed = needed || c->camera[i].mode != NORM_IDENTITY;
    if (!needed)
        return 0;
    return refuse(
        err, ENOENT,
        "%s is missing while its counterpart is there: copy it and its .safetensors "
        "from the original checkpoint",
        file);
}

static int open_sides(struct side *pre, struct side *post, struct lerobot_checkpoint *c,
                      const struct place *place, const char *tag,
                      struct policy_error *err)
{
    struct lr_priv *p = c->priv;
    struct side *side[2] = {pre, post};
    int r = lr_processor_read(&pre->processor, place, false, &p->config, err);

    if (r == 0)
        r = lr_processor_read(&post->processor, place, true, &p->config, err);
    for (int i = 0; r == 0 && i < 2; i++) {
        struct side *s = side[i];

        s->source =
            (struct lr_source){.file = "model.safetensors",
                               .f = c->weights,
                               .names = &p->names,
                               .prefix = i ? "unnormalize_outputs." : "normalize_inputs.",
                               .tag = tag};
        if (s->processor.present) {
            s->source =
                (struct lr_source){.processor = &s->processor, .prefix = "", .tag = tag};
            r = open_state_file(s, place, err);
        } else if (side[!i]->processor.present) {
            r = lost_side(&p->config, s->processor.file, i == 1, err);
        }
    }
    return r;
}

static int build_norms(struct lerobot_checkpoint *c, const struct side *pre,
                       const struct side *post, struct policy_error *err)
{
    struct lr_priv *p = c->priv;
    const struct lr_config *f = &p->config;
    int r = lr_stats_build(&c->state, &p->state, &pre->source, &f->state, err);

    if (r == 0 && f->env.rank)
        r = lr_stats_build(&c->env, NULL, &pre->source, &f->env, err);
    for (int i = 0; r == 0 && i < f->n_cameras; i++)
        r = lr_stats_build(&c->camera[i].norm, NULL, &pre->source, &f->camera[i], err);
    if (r == 0)
        r = lr_stats_build(&c->action, &p->action, &post->source, &f->action, err);
    c->state_stats = p->state.stats;
    c->action_stats = p->action.stats;
    return r;
}

static void describe_format(struct lerobot_checkpoint *c, const struct side *pre)
{
    const struct lr_priv *p = c->priv;
    bool any = c->state.mode != NORM_IDENTITY || c->action.mode != NORM_IDENTITY ||
               c->env.mode != NORM_IDENTITY;
    const char *era =
        pre->processor.present ? "LeRobot 0.4 or later" : "LeRobot 0.2 to 0.3";

    for (int i = 0; i < c->n_cameras; i++)
        any = any || c->camera[i].norm.mode != NORM_IDENTITY;
    snprintf(c->format, sizeof c->format, "%s, %s",
             p->config.era01 ? "LeRobot 0.1 config" : era,
             !any                     ? "no statistics needed"
             : pre->processor.present ? "statistics in processor files"
                                      : "statistics in model.safetensors");
}

static int read_statistics(struct lerobot_checkpoint *c, const struct place *place,
                           const char *tag, struct policy_error *err)
{
    struct side pre = {0}, post = {0};
    int r = open_sides(&pre, &post, c, place, tag, err);

    if (r == 0)
        r = build_norms(c, &pre, &post, err);
    if (r == 0)
        describe_format(c, &pre);
    side_close(&pre);
    side_close(&post);
    return r;
}

static int open_weights(struct lerobot_checkpoint *c, const struct place *place,
                        struct policy_error *err)
{
    struct lr_priv *p = c->priv;
    char path[640];
    int r;

    snprintf(path, sizeof path, "%.511s/adapter_model.safetensors", c->dir);
    if (access(path, F_OK) == 0)
        return refuse(
            err, EINVAL,
            "the checkpoint is a LoRA adapter (adapter_model.safetensors): merge it "
            "into its base model and save that");
    r = st_open_at(&c->weights, place, "model.safetensors", err);
    if (r == -ENOENT)
        return refuse_more(
            err, ENOENT,
            ": point at the pretrained_model directory of a LeRobot checkpoint");
    if (r == 0)
        r = lr_names_build(&p->names, c->weights, err);
    if (r == 0)
        r = lr_manifest_check(&p->config, &p->names, err);
    return r;
}

static void copy_config(struct lerobot_checkpoint *c, const struct lr_config *f)
{
    c->act = f->act;
    c->n_cameras = f->n_cameras;
    for (int i = 0; i < f->n_cameras; i++) {
        memcpy(c->camera[i].key, f->camera[i].key, sizeof c->camera[i].key);
        c->camera[i].height = f->camera[i].shape[1];
        c->camera[i].width = f->camera[i].shape[2];
    }
    c->state_dim = lr_feature_width(&f->state);
    c->env_dim = lr_feature_width(&f->env);
    c->action_dim = lr_feature_width(&f->action);
}

int lerobot_open_at(struct lerobot_checkpoint **out, const struct place *place,
                    const char *stats_tag, struct policy_error *err)
{
    struct lerobot_checkpoint *c = calloc(1, sizeof *c);
    struct lr_priv *p = calloc(1, sizeof *p);
    int r = 0;

    *out = NULL;
    if (!c || !p) {
        free(c);
        free(p);
        return refuse(err, ENOMEM, "no memory to open %.200s", place->dir);
    }
    c->priv = p;
    if ((size_t)snprintf(c->dir, sizeof c->dir, "%s", place->dir) >= sizeof c->dir)
        r = refuse(err, ENAMETOOLONG, "the path %.200s... is longer than %zu bytes",
                   place->dir, sizeof c->dir - 1);
    if (r == 0)
        r = lr_config_read(&p->config, place, c->config_sha256, err);
    if (r == 0) {
        copy_config(c, &p->config);
        r = open_weights(c, place, err);
    }
    if (r == 0)
        r = read_statistics(c, place, stats_tag && *stats_tag ? stats_tag : NULL, err);
    if (r < 0)
        lerobot_close(c);
    else
        *out = c;
    return r;
}

int lerobot_open(struct lerobot_checkpoint **out, const char *dir, const char *stats_tag,
                 struct policy_error *err)
{
    return lerobot_open_at(out, &(struct place){.dir = dir}, stats_tag, err);
}

void lerobot_close(struct lerobot_checkpoint *c)
{
    struct lr_priv *p = c ? c->priv : NULL;

    if (!c)
        return;
    norm_free(&c->state);
    norm_free(&c->env);
    norm_free(&c->action);
    for (int i = 0; i < c->n_cameras; i++)
        norm_free(&c->camera[i].norm);
    lr_values_free(&p->state);
    lr_values_free(&p->action);
    lr_names_close(&p->names);
    st_close(c->weights);
    free(p);
    free(c);
}

int lerobot_want(const struct lerobot_checkpoint *c, const char *name, int rank,
                 const int *shape, float *dst, struct st_want *out,
                 struct policy_error *err)
{
    const struct lr_priv *p = c->priv;
    struct lr_name *e;
    size_t n = 1;
    int r = lr_tensor_check(&p->names, name, rank, shape, &e, err);

    for (int i = 0; i < rank; i++)
        n *= (size_t)shape[i];
    if (r == 0)
        *out = (struct st_want){.tensor = e->tensor, .dst = dst, .n = n};
    return r;
}

int lerobot_tensor(const struct lerobot_checkpoint *c, const char *name, int rank,
                   const int *shape, float *dst, struct policy_error *err)
{
    struct st_want w = {0};
    int r = lerobot_want(c, name, rank, shape, dst, &w, err);

    return r < 0 ? r
                 : st_read_f32(c->weights, w.tensor, dst, (size_t)st_elements(w.tensor),
                               err);
}
