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

// ---- inference ------------------------------------------------------------------------

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

int policy_compute(struct policy *p, float *actions)
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
    return policy_compute(p, actions);
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

const struct policy_info *policy_describe(const struct policy *p)
{
    return &p->info;
}
