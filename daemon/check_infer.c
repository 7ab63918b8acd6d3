// check_infer: what only trying can tell: how long an inference takes here, whether its
// output is finite, and what this kernel grants.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/check_impl.h"
#include "daemon/infer.h"
#include "daemon/rt.h"

#define GREY 128

// One grey frame of the largest size serves every camera.
static uint8_t *grey_frame(const struct policy_info *info, struct policy_image *image)
{
    size_t largest = 1;
    uint8_t *rgb;

    for (int i = 0; i < info->n_cameras; i++) {
        size_t n = (size_t)info->camera[i].height * (size_t)info->camera[i].width * 3;
        largest = n > largest ? n : largest;
    }
    rgb = malloc(largest);
    if (!rgb)
        return NULL;
    memset(rgb, GREY, largest);
    for (int i = 0; i < info->n_cameras; i++)
        image[i] = (struct policy_image){.rgb = rgb,
                                         .width = info->camera[i].width,
                                         .height = info->camera[i].height,
                                         .stride = info->camera[i].width * 3};
    return rgb;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static int run_policy(struct check *c, const struct policy_observation *obs)
{
    double ms[CHECK_RUNS];

    for (int i = 0; i < CHECK_RUNS; i++) {
        ns_t start = clock_now_ns();
        int rc = policy_infer(c->policy, obs, c->actions, NULL);
        ms[i] = (double)(clock_now_ns() - start) / (double)NS_PER_MS;
        if (rc) {
            snprintf(c->err.text, sizeof c->err.text,
                     "one inference on a grey image failed: %s",
                     policy_last_error(c->policy));
            return rc;
        }
    }
    qsort(ms, CHECK_RUNS, sizeof *ms, by_size);
    c->latency_ms = ms[CHECK_RUNS / 2];
    return 0;
}

int check_time(struct check *c)
{
    struct policy_image image[POLICY_MAX_CAMERAS] = {{0}};
    const struct policy_info *info = c->info;
    float state[ACTD_MAX_JOINTS] = {0}; // the training mean where there is one
    const struct policy_observation obs = {.state = state, .image = image};
    uint8_t *rgb = grey_frame(info, image);
    size_t values = (size_t)info->rows * (size_t)info->action_dim;
    int rc = -ENOMEM;

    for (int i = 0; i < info->state_dim && info->state.mean && i < info->state.n; i++)
        state[i] = info->state.mean[i];
    c->actions = calloc(values, sizeof *c->actions);
    if (rgb && c->actions)
        rc = run_policy(c, &obs);
    else
        snprintf(c->err.text, sizeof c->err.text, "out of memory");
    free(rgb);
    return rc;
}

// The worker counts from exposure to hand-over: what the camera and an inference take.
int check_lead_rows(const struct check *c)
{
    const struct config_camera *cam = &c->cfg.camera[c->binding.primary];
    double ms = c->latency_ms + (c->cfg.n_cameras ? cam->latency_ms : 0);
    int every = config_every_rows(&c->cfg, c->info);

    return infer_lead_rows(every, c->loop.chunks.rows, clock_period_ns(c->side.rate_hz),
                           (ns_t)(ms * (double)NS_PER_MS));
}

// ---- the machine ----------------------------------------------------------------------

static void *nothing(void *arg)
{
    return arg;
}

void check_machine(struct check *c)
{
    const struct rt_thread_spec spec = {.name = "probe",
                                        .cls = RT_CLASS_RT,
                                        .priority = c->cfg.control.priority,
                                        .cpu = -1};
    size_t need =
        c->info->weight_bytes + c->info->table_bytes + c->info->activation_bytes;
    struct rlimit lim;
    pthread_t t;
    int rc = rt_thread_start(&t, &spec, nothing, NULL, c->granted);

    if (rc == 0)
        pthread_join(t, NULL);
    c->fifo = rc == 0 && strncmp(c->granted, "SCHED_FIFO", strlen("SCHED_FIFO")) == 0;
    c->lockable =
        geteuid() == 0 || (getrlimit(RLIMIT_MEMLOCK, &lim) == 0 &&
                           (lim.rlim_cur == RLIM_INFINITY || lim.rlim_cur > need));
}
