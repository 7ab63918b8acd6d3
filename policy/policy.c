// policy: at each inference takes an observation through normalisation, network and back.
// Loading is in policy_load.c.
//
// Floating-point modes are left as the caller has them: the control word of a thread
// belongs to its owner, and flushing denormals in some threads only would change bits
// with the split.
#include "policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "policy/finite.h"
#include "policy/image.h"
#include "policy/policy_priv.h"

// ---- what is taken ---------------------------------------------------------------------

static bool all_finite(const float *x, size_t n)
{
    return finite_prefix(x, n) == n;
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
    uint32_t reused;                  // bit i: camera i's need not be read
};

// A frame of the trained size is read by the network's first layer itself.
static int take_image(struct policy *p, int i, const struct policy_image *image)
{
    const struct policy_camera *cam = &p->info.camera[i];
    struct act_state *s = &p->act.s;
    struct stem_image *to = &s->image[i];
    *to = (struct stem_image){.height = cam->height, .width = cam->width};
    if (image->width == cam->width && image->height == cam->height) {
        to->rgb = image->rgb;
        to->stride = (size_t)image->stride;
        to->table = (const float(*)[256])p->table[i];
        return 0;
    }
    to->planes = s->planes[i];
    return preprocess(p, i, image, s->planes[i]);
}

static void image_task(void *arg, int worker, int workers)
{
    const struct image_job *j = arg;
    for (int i = worker; i < j->p->info.n_cameras; i += workers)
        if (!(j->reused & 1u << i))
            j->p->image_rc[i] = take_image(j->p, i, &j->image[i]);
}

static int not_resized(struct policy *p, int i, int rc)
{
    return REFUSE(p, -rc, "the frame for %s can not be resized", p->info.camera[i].key);
}

static int read_images(struct policy *p, const struct policy_image *image,
                       uint32_t reused)
{
    struct image_job j = {p, image, reused};
    memset(p->image_rc, 0, sizeof p->image_rc);
    pool_run(p->pool, image_task, &j);
    for (int i = 0; i < p->info.n_cameras; i++)
        if (p->image_rc[i])
            return not_resized(p, i, p->image_rc[i]);
    return 0;
}

// ---- what was seen already ------------------------------------------------------------

// Are the features of this frame there?
static bool kept(const struct policy *p, int i, const struct policy_image *image)
{
    return image->number != 0 && image->number == p->seen[i];
}

// The frame is in act.s.image. Its number is written last: what is half done has none.
static void see(struct policy *p, int i, uint64_t number)
{
    p->seen[i] = 0;
    act_see(&p->act, p->pool, i);
    p->seen[i] = number;
}

// The features of all cameras: those that are not there yet.
static int see_all(struct policy *p, const struct policy_image *image)
{
    int n = p->info.n_cameras;
    uint32_t reused = 0;
    for (int i = 0; i < n; i++)
        reused |= (uint32_t)kept(p, i, &image[i]) << i;
    if (n > 0 && reused != UINT32_MAX >> (32 - n)) {
        int rc = read_images(p, image, reused);
        if (rc)
            return rc;
        profile_part(p->act.profile, "backbone", "", -1);
        profile_other(p->act.profile, "frames");
    }
    for (int i = 0; i < n; i++)
        if (!(reused & 1u << i))
            see(p, i, image[i].number);
    p->reused = reused;
    return 0;
}

int policy_see(struct policy *p, int camera, const struct policy_image *image)
{
    if (!p)
        return -EINVAL;
    if (!image || camera < 0 || camera >= p->info.n_cameras)
        return REFUSE(p, EINVAL, "policy_see: there is no camera %d", camera);
    int rc = check_image(p, camera, image);
    if (rc || image->number == 0 || kept(p, camera, image))
        return rc;
    profile_begin(p->act.profile);
    rc = take_image(p, camera, image);
    if (rc)
        return not_resized(p, camera, rc);
    see(p, camera, image->number);
    return 0;
}

void policy_profile(struct policy *p, struct profile *profile)
{
    p->act.profile = p->act.s.backbone.profile = profile;
}

uint32_t policy_reused(const struct policy *p)
{
    return p->reused;
}

// ---- inference ------------------------------------------------------------------------

int policy_compute(struct policy *p, float *actions)
{
    const struct act_state *s = &p->act.s;
    size_t n = (size_t)p->info.rows * (size_t)p->info.action_dim;
    act_forward(&p->act, p->pool);
    norm_invert(&p->checkpoint->action, s->actions, actions, p->info.rows);
    profile_other(p->act.profile, "output");
    if (!all_finite(s->actions, n) || !all_finite(actions, n))
        return REFUSE(p, EDOM, "the network's output is not finite");
    return 0;
}

static int infer(struct policy *p, const struct policy_observation *obs, float *actions)
{
    p->reused = 0;
    int rc = check_observation(p, obs);
    if (rc == 0)
        rc = see_all(p, obs->image);
    if (rc)
        return rc;
    if (p->info.state_dim)
        norm_apply(&p->checkpoint->state, obs->state, p->act.s.state, 1);
    if (p->info.env_dim)
        norm_apply(&p->checkpoint->env, obs->env, p->act.s.env, 1);
    return policy_compute(p, actions);
}

int policy_infer(struct policy *p, const struct policy_observation *obs, float *actions,
                 float *normalized)
{
    if (!p)
        return -EINVAL;
    if (!obs || !actions)
        return REFUSE(p, EINVAL, "policy_infer was called without observation or result");
    size_t bytes = (size_t)p->info.rows * (size_t)p->info.action_dim * sizeof *actions;
    profile_begin(p->act.profile);
    int rc = infer(p, obs, actions);
    profile_end(p->act.profile);
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
    return rc ? not_resized(p, camera, rc) : 0;
}

const char *policy_last_error(const struct policy *p)
{
    return p->error;
}

const struct policy_info *policy_describe(const struct policy *p)
{
    return &p->info;
}
