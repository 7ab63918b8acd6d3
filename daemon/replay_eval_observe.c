// What the policy would have seen. Each frame of the primary camera is an anchor, as in the daemon
// (infer_observe.c): three quarters of a period later the frames of the other cameras and the joint
// state nearest to it are looked up, and each must lie within max_skew of it.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/camera.h"
#include "daemon/replay_eval_source.h"

static int64_t apart(int64_t a, int64_t b)
{
    return a > b ? a - b : b - a;
}

static const struct eval_sample *nearest_sample(const struct eval_source *s, int64_t at)
{
    const struct eval_sample *best = NULL;
    uint64_t n = s->n_samples < EVAL_SAMPLES ? s->n_samples : EVAL_SAMPLES;
    for (uint64_t i = 0; i < n; i++)
        if (!best || apart(s->sample[i].capture_ns, at) < apart(best->capture_ns, at))
            best = &s->sample[i];
    return best && apart(best->capture_ns, at) <= s->skew_ns ? best : NULL;
}

static const struct eval_frame *nearest_frame(const struct eval_source *s, int camera,
                                              int64_t at)
{
    const struct eval_view *v = &s->view[camera];
    const struct eval_frame *best = NULL;
    for (int i = 0; i < EVAL_FRAMES; i++) {
        const struct eval_frame *f = &v->frame[i];
        if (f->capture_ns != 0 &&
            (!best || apart(f->capture_ns, at) < apart(best->capture_ns, at)))
            best = f;
    }
    return best && apart(best->capture_ns, at) <= s->skew_ns ? best : NULL;
}

static bool decode(struct eval_view *v, const struct eval_frame *f,
                   struct policy_image *image)
{
    struct codec_frame c;
    int width, height;
    if (codec_frame(NULL, f->data, f->size, &c) != CODEC_OK)
        return false;
    size_t need = (size_t)c.width * (size_t)c.height * 3;
    if (need > v->capacity) {
        uint8_t *more = realloc(v->rgb, need);
        if (!more)
            return false;
        v->rgb = more;
        v->capacity = need;
    }
    if (camera_decode(&c, v->rgb, v->capacity, &width, &height) != CODEC_OK)
        return false;
    *image = (struct policy_image){
        .rgb = v->rgb, .width = width, .height = height, .stride = 3 * width};
    return true;
}

static bool gather_images(struct eval_source *s, int64_t at,
                          struct policy_image image[POLICY_MAX_CAMERAS])
{
    const struct fitted *f = s->e->fitted;
    for (int i = 0; i < f->info->n_cameras; i++) {
        int c = f->binding.camera_of[i];
        const struct eval_frame *frame = nearest_frame(s, c, at);
        if (!frame)
            s->e->no_frame++;
        else if (!decode(&s->view[c], frame, &image[i]))
            s->e->corrupt++;
        else
            continue;
        return false;
    }
    return true;
}

static int think(struct eval_source *s, const struct policy_observation *obs, int64_t at,
                 const double *still)
{
    struct eval *e = s->e;
    const struct infer_seat *seat = &e->fitted->seat;
    ns_t began = clock_now_ns();
    int rc = seat->brain.infer(seat->brain.self, obs, seat->actions);
    e->inference_s += (double)(clock_now_ns() - began) / 1e9;
    if (rc) {
        snprintf(s->err->text, sizeof s->err->text,
                 "the policy refused the frames at %.3f s: %s",
                 (double)(at - (int64_t)e->start_ns) / 1e9,
                 seat->brain.why(seat->brain.self));
        return -EINVAL;
    }
    binding_actions(seat->binding, seat->actions, e->score.rows, s->row);
    e->asked++;
    rc = eval_score_chunk(&e->score, at, s->row, still);
    if (rc)
        snprintf(s->err->text, sizeof s->err->text, "out of memory");
    return rc;
}

static int observe(struct eval_source *s, int64_t at)
{
    struct policy_image image[POLICY_MAX_CAMERAS];
    const struct infer_seat *seat = &s->e->fitted->seat;
    const struct eval_sample *joints = nearest_sample(s, at);
    if (!joints) {
        s->e->no_joints++;
        return 0;
    }
    if (!gather_images(s, at, image))
        return 0;
    binding_state(seat->binding, joints->pos, seat->state);
    const struct policy_observation obs = {.state = seat->state, .image = image};
    return think(s, &obs, at, joints->pos);
}

// Anchors whose time has come, oldest first.
int eval_observe_due(struct eval_source *s, int64_t now)
{
    const struct eval_view *v = &s->view[s->e->fitted->binding.primary];
    int rc = 0;
    for (unsigned i = 0; i < EVAL_FRAMES && rc == 0; i++) {
        unsigned slot = (v->count + i) % EVAL_FRAMES;
        if (s->due[slot] == 0 || s->due[slot] > now)
            continue;
        s->due[slot] = 0;
        rc = observe(s, v->frame[slot].capture_ns);
    }
    return rc;
}

int eval_take_frame(struct eval_source *s, int camera, int64_t capture_ns,
                    const struct mcap_message *m)
{
    struct eval_view *v = &s->view[camera];
    struct eval_frame *f = &v->frame[v->count % EVAL_FRAMES];
    if (m->size > f->capacity) {
        void *more = realloc(f->data, m->size);
        if (!more)
            return -ENOMEM;
        f->data = more;
        f->capacity = m->size;
    }
    if (m->size > 0)
        memcpy(f->data, m->data, m->size);
    f->size = m->size;
    f->at_ns = (int64_t)m->log_ns;
    f->capture_ns = capture_ns;
    if (camera == s->e->fitted->binding.primary) {
        bool wanted = s->e->frames++ % (uint64_t)s->e->opt.every == 0;
        s->due[v->count % EVAL_FRAMES] = wanted ? f->at_ns + s->wait_ns : 0;
    }
    v->count++;
    return 0;
}

void eval_views_free(struct eval_source *s)
{
    for (int i = 0; i < POLICY_MAX_CAMERAS; i++) {
        for (int k = 0; k < EVAL_FRAMES; k++)
            free(s->view[i].frame[k].data);
        free(s->view[i].rgb);
    }
}
