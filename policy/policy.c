// The face of this directory: puts checkpoint, arena, pool and model together at load,
// and at each inference takes an observation through normalisation, network and back.
//
// Floating-point modes are left as the caller has them: the control word of a thread
// belongs to its owner, and flushing denormals in some threads only would change bits
// with the split.
#include "policy/policy.h"

#include <cblas.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/image.h"
#include "policy/lerobot.h"
#include "policy/models/act.h"
#include "policy/pool.h"
#include "policy/refuse.h"
#include "policy/warmup.h"

struct policy {
    struct policy_info info;
    enum policy_resize resize;
    struct lerobot_checkpoint *checkpoint; // kept for its normalisation constants
    struct arena arena;
    struct pool *pool;
    struct act act;
    int image_rc[POLICY_MAX_CAMERAS]; // of the preprocessing tasks
    char error[256];                  // of policy_infer
};

// ---- inference ------------------------------------------------------------------------

static bool all_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

// snprintf formats plain strings and integers without allocating (glibc 2.36).
#define REFUSE(p, code, ...) \
    (snprintf((p)->error, sizeof(p)->error, __VA_ARGS__), -(code))

static int check_image(struct policy *p, int i, const struct policy_image *image)
{
    const struct policy_camera *cam = &p->info.camera[i];
    if (!image->rgb || image->width < 1 || image->height < 1 ||
        image->stride / 3 < image->width)
        return REFUSE(p, EINVAL, "the frame for %s is empty or its rows overlap",
                      cam->key);
    if (p->resize == POLICY_RESIZE_REFUSE &&
        (image->width != cam->width || image->height != cam->height))
        return REFUSE(
            p, EINVAL,
            "the frame for %s is %dx%d, the policy was trained on %dx%d: set the "
            "camera to that size or choose a resize mode",
            cam->key, image->width, image->height, cam->width, cam->height);
    return 0;
}

static int check_observation(struct policy *p, const struct policy_observation *obs)
{
    const struct policy_info *info = &p->info;
    if ((info->state_dim && !obs->state) || (info->env_dim && !obs->env) ||
        (info->n_cameras && !obs->image))
        return REFUSE(p, EINVAL,
                      "the observation lacks a state, an environment or images");
    if (!all_finite(obs->state, (size_t)info->state_dim))
        return REFUSE(p, EDOM, "observation.state has a value that is not finite");
    if (info->env_dim && !all_finite(obs->env, (size_t)info->env_dim))
        return REFUSE(p, EDOM,
                      "observation.environment_state has a value that is not finite");
    for (int i = 0; i < info->n_cameras; i++) {
        int rc = check_image(p, i, &obs->image[i]);
        if (rc)
            return rc;
    }
    return 0;
}

static int preprocess(const struct policy *p, int i, const struct policy_image *image,
                      float *chw)
{
    const struct lerobot_camera *cam = &p->checkpoint->camera[i];
    return image_to_planes(image, p->resize, &cam->norm, cam->height, cam->width, chw);
}

struct image_job {
    struct policy *p;
    const struct policy_image *image; // (n_cameras)
};

static void image_task(void *arg, int worker, int workers)
{
    const struct image_job *j = arg;
    for (int i = worker; i < j->p->info.n_cameras; i += workers)
        j->p->image_rc[i] = preprocess(j->p, i, &j->image[i], j->p->act.s.planes[i]);
}

static int read_images(struct policy *p, const struct policy_image *image)
{
    struct image_job j = {p, image};
    if (p->info.n_cameras)
        pool_run(p->pool, image_task, &j);
    for (int i = 0; i < p->info.n_cameras; i++)
        if (p->image_rc[i])
            return REFUSE(p, -p->image_rc[i], "the frame for %s can not be resized",
                          p->info.camera[i].key);
    return 0;
}

// The network and back to the checkpoint's units; its inputs are in place.
static int compute(struct policy *p, float *actions)
{
    const struct act_state *s = &p->act.s;
    size_t n = (size_t)p->info.chunk_size * (size_t)p->info.action_dim;
    act_forward(&p->act, p->pool);
    norm_invert(&p->checkpoint->action, s->actions, actions, p->info.chunk_size);
    if (!all_finite(s->actions, n) || !all_finite(actions, n))
        return REFUSE(p, EDOM, "the network's output is not finite");
    return 0;
}

static int infer(struct policy *p, const struct policy_observation *obs, float *actions)
{
    int rc = check_observation(p, obs);
    if (rc == 0)
        rc = read_images(p, obs->image);
    if (rc)
        return rc;
    if (p->info.state_dim)
        norm_apply(&p->checkpoint->state, obs->state, p->act.s.state, 1);
    if (p->info.env_dim)
        norm_apply(&p->checkpoint->env, obs->env, p->act.s.env, 1);
    return compute(p, actions);
}

int policy_infer(struct policy *p, const struct policy_observation *obs, float *actions,
                 float *normalized)
{
    if (!p)
        return -EINVAL;
    if (!obs || !actions)
        return REFUSE(p, EINVAL, "policy_infer was called without observation or result");
    size_t bytes =
        (size_t)p->info.chunk_size * (size_t)p->info.action_dim * sizeof *actions;
    int rc = infer(p, obs, actions);
    if (rc)
        memset(actions, 0, bytes);
    if (normalized && rc)
        memset(normalized, 0, bytes);
    else if (normalized)
        memcpy(normalized, p->act.s.actions, bytes);
    return rc;
}

int policy_preprocess(struct policy *p, int camera, const struct policy_image *image,
                      float *chw)
{
    if (!p)
        return -EINVAL;
    if (!image || !chw || camera < 0 || camera >= p->info.n_cameras)
        return REFUSE(p, EINVAL, "policy_preprocess: there is no camera %d", camera);
    int rc = check_image(p, camera, image);
    if (rc)
        return rc;
    rc = preprocess(p, camera, image, chw);
    return rc ? REFUSE(p, -rc, "the frame for %s can not be resized",
                       p->info.camera[camera].key)
              : 0;
}

const char *policy_last_error(const struct policy *p)
{
    return p->error;
}

// ---- facts ----------------------------------------------------------------------------

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

static void describe(struct policy *p)
{
    const struct lerobot_checkpoint *c = p->checkpoint;
    const struct lerobot_act *a = &c->act;
    struct policy_info *info = &p->info;
    snprintf(info->type, sizeof info->type, "act");
    snprintf(info->format, sizeof info->format, "%s", c->format);
    if (c->n_cameras)
        snprintf(info->backbone, sizeof info->backbone, "%s", a->backbone);
    describe_features(info, c);
    info->chunk_size = a->chunk_size;
    info->n_action_steps = a->n_action_steps;
    info->has_ensemble_coeff = a->has_ensemble_coeff;
    info->ensemble_coeff = a->ensemble_coeff;
    info->dim_model = a->dim_model;
    info->n_heads = a->n_heads;
    info->dim_feedforward = a->dim_feedforward;
    info->n_encoder_layers = a->n_encoder_layers;
    info->n_decoder_layers = a->n_decoder_layers;
    info->pre_norm = a->pre_norm;
    snprintf(info->blas_core, sizeof info->blas_core, "%s", openblas_get_corename());
}

const struct policy_info *policy_describe(const struct policy *p)
{
    return &p->info;
}

// ---- load -----------------------------------------------------------------------------

static int check_options(const struct policy_options *opt, struct policy_error *err)
{
    if (opt->threads < 0 || opt->threads > POOL_MAX_THREADS)
        return refuse(
            err, EINVAL,
            "%d compute threads were asked for: choose 1 to %d, no more than there "
            "are cores",
            opt->threads, POOL_MAX_THREADS);
    if (opt->resize < POLICY_RESIZE_REFUSE || opt->resize > POLICY_RESIZE_LETTERBOX)
        return refuse(err, EINVAL,
                      "the resize mode is none of refuse, stretch and letterbox");
    return 0;
}

static int start_pool(struct policy *p, const struct policy_options *opt,
                      struct policy_error *err)
{
    int threads = opt->threads ? opt->threads : 1;
    p->info.threads = threads;
    int rc = pool_start(&p->pool, threads, opt->cpu_mask);
    if (rc == -EINVAL)
        return refuse(
            err, EINVAL,
            "the compute threads may use none of the cores in mask 0x%llx: choose "
            "cores that this process may run on",
            (unsigned long long)opt->cpu_mask);
    if (rc)
        return refuse(err, -rc,
                      "%d compute threads can not be started (%s): lower the number",
                      threads, strerror(-rc));
    return warmup_blas(p->pool, err);
}

// The model describes itself twice: to measure the arena, then to fill it
// (models/build.h).
static int build_model(struct policy *p, struct policy_error *err)
{
    struct build b = {.arena = &p->arena, .weights = p->checkpoint, .err = err};
    act_build_weights(&p->act, &b);
    p->info.weight_bytes = p->arena.used;
    if (b.rc == 0)
        act_build_state(&p->act, &b);
    p->info.activation_bytes = p->arena.used - p->info.weight_bytes;
    p->info.parameters = b.parameters;
    if (build_begin_reading(&b) == 0) {
        act_build_weights(&p->act, &b);
        act_build_state(&p->act, &b);
    }
    return build_end(&b);
}

// One inference on a mean observation (all inputs zero after normalisation).
static int try_out(struct policy *p, struct policy_error *err)
{
    size_t n = (size_t)p->info.chunk_size * (size_t)p->info.action_dim;
    float *actions = malloc(n * sizeof *actions);
    if (!actions)
        return refuse(err, ENOMEM, "no memory for a trial inference");
    int rc = compute(p, actions);
    free(actions);
    if (rc)
        return refuse(
            err, EINVAL,
            "the policy's actions for a mean observation are not finite: its weights "
            "or statistics are damaged, export the checkpoint again");
    return 0;
}

static int load(struct policy *p, const char *dir, const struct policy_options *opt,
                struct policy_error *err)
{
    int rc = check_options(opt, err);
    if (rc == 0)
        rc = lerobot_open(&p->checkpoint, dir, opt->stats_tag, err);
    if (rc == 0)
        rc = start_pool(p, opt, err);
    if (rc == 0)
        rc = act_configure(&p->act, p->checkpoint, p->info.threads, err);
    if (rc == 0)
        rc = build_model(p, err);
    if (rc)
        return rc;
    p->resize = opt->resize;
    describe(p);
    act_prepare(&p->act, p->pool);
    return try_out(p, err);
}

int policy_load(struct policy **out, const char *dir, const struct policy_options *opt,
                struct policy_error *err)
{
    const struct policy_options defaults = {0};
    struct policy_error unwanted = {{0}};
    *out = NULL;
    err = err ? err : &unwanted;
    struct policy *p = calloc(1, sizeof *p);
    if (!p)
        return refuse(err, ENOMEM, "no memory for a policy");
    int rc = load(p, dir, opt ? opt : &defaults, err);
    if (rc) {
        policy_free(p);
        return rc;
    }
    *out = p;
    return 0;
}

void policy_free(struct policy *p)
{
    if (!p)
        return;
    pool_stop(p->pool);
    arena_release(&p->arena);
    lerobot_close(p->checkpoint);
    free(p);
}
