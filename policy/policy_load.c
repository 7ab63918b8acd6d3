// policy_load: puts checkpoint, arena, pool and model together.
//
// A checkpoint that is to take over is loaded while another policy drives the arm, on a thread
// that gets what processor time is left. The full-size ACT (52 M parameters, 207 MB, of which 34
// M are used for inference) asks for 208 ms of it: 105 the SHA-256 of the file, 66 one inference
// (on a core of an EPYC at 4 GHz), 17 tables and batch norms, 7 memory. Reading the file once
// instead of five times (safetensors_wanted.c) and touching memory once instead of twice
// (arena.c) took 25 ms off.
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policy/digest.h"
#include "policy/golden.h"
#include "policy/policy_priv.h"
#include "policy/refuse.h"
#include "policy/warmup.h"

struct loading {
    struct policy *p;
    const struct policy_options *opt;
    struct place place;
    double mark_ms; // when the step under way began
    struct policy_error *err;
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

// Ends a step: how long it took, and whether there is to be another.
static int step(struct loading *l, double *ms)
{
    double now = now_ms();
    *ms = now - l->mark_ms;
    l->mark_ms = now;
    if (l->opt->cancel && atomic_load_explicit(l->opt->cancel, memory_order_relaxed))
        return refuse(l->err, ECANCELED, "loading was cancelled");
    return 0;
}

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
    // One more than the pool has: who loads beside it one day computes too, and must not
    // make the pool's threads find all buffers taken.
    return warmup_blas(threads + 1, err);
}

// While loading, shares are computed in turn on this thread; the other's pool works.
static int borrow_pool(struct policy *p, const struct policy *beside,
                       struct policy_error *err)
{
    p->info.threads = beside->info.threads;
    if (pool_start_serial(&p->pool, p->info.threads))
        return refuse(err, ENOMEM, "no memory for a policy");
    return 0;
}

static void give_back_pool(struct policy *p, const struct policy *beside)
{
    pool_stop(p->pool);
    p->pool = pool_hold(beside->pool);
}

static int open_checkpoint(struct loading *l)
{
    struct policy *p = l->p;
    const struct policy_options *opt = l->opt;
    int rc = check_options(opt, l->err);
    if (rc == 0)
        rc = lerobot_open_at(&p->checkpoint, &l->place, opt->stats_tag, l->err);
    if (rc == 0)
        rc = opt->beside ? borrow_pool(p, opt->beside, l->err)
                         : start_pool(p, opt, l->err);
    if (rc == 0)
        rc = act_configure(&p->act, p->checkpoint, p->info.threads, l->err);
    return rc ? rc : step(l, &p->info.load_ms.open);
}

// The model describes itself twice: to measure the arena, then to fill it
// (models/build.h).
static int read_weights(struct loading *l, struct build *b)
{
    struct policy *p = l->p;
    struct policy_info *info = &p->info;
    act_build_weights(&p->act, b);
    info->weight_bytes = p->arena.used;
    if (b->rc == 0)
        act_build_state(&p->act, b);
    info->activation_bytes = p->arena.used - info->weight_bytes;
    info->parameters = b->parameters;
    if (build_begin_reading(b) == 0) {
        act_build_weights(&p->act, b);
        act_build_state(&p->act, b);
    }
    if (b->rc == 0)
        b->rc = step(l, &info->load_ms.memory);
    if (b->rc == 0 && build_read(b, l->opt->cancel, info->weights_sha256) == 0)
        b->rc = step(l, &info->load_ms.read);
    return build_fold(b);
}

static int build_model(struct loading *l)
{
    struct build b = {.arena = &l->p->arena, .weights = l->p->checkpoint, .err = l->err};
    read_weights(l, &b);
    return build_end(&b);
}

// One inference on a mean observation (all inputs zero after normalisation).
static int try_out(struct policy *p, struct policy_error *err)
{
    size_t n = (size_t)p->info.chunk_size * (size_t)p->info.action_dim;
    float *actions = malloc(n * sizeof *actions);
    if (!actions)
        return refuse(err, ENOMEM, "no memory for a trial inference");
    int rc = policy_compute(p, actions);
    free(actions);
    if (rc)
        return refuse(
            err, EINVAL,
            "the policy's actions for a mean observation are not finite: its weights "
            "or statistics are damaged, export the checkpoint again");
    return 0;
}

static int prove(struct loading *l)
{
    struct policy *p = l->p;
    int rc = l->opt->skip_golden ? 0 : golden_check(p, &l->place, l->err);
    if (rc == 0 && p->info.golden_error < 0)
        rc = try_out(p, l->err);
    return rc ? rc : step(l, &p->info.load_ms.trial);
}

static int digest_all(struct policy *p, struct policy_error *err)
{
    struct policy_info *info = &p->info;
    char text[3 * POLICY_DIGEST_HEX];
    memcpy(info->config_sha256, p->checkpoint->config_sha256, sizeof info->config_sha256);
    int rc = lerobot_digest_statistics(p->checkpoint, info->statistics_sha256, err);
    if (rc)
        return rc;
    snprintf(text, sizeof text, "%s%s%s", info->config_sha256, info->weights_sha256,
             info->statistics_sha256);
    return digest_of(text, strlen(text), info->digest, err);
}

static int load(struct loading *l)
{
    struct policy *p = l->p;
    double begin_ms = l->mark_ms;
    int rc = open_checkpoint(l);
    if (rc == 0)
        rc = build_model(l);
    if (rc)
        return rc;
    p->resize = l->opt->resize;
    policy_fill_info(p);
    act_prepare(&p->act, p->pool);
    rc = step(l, &p->info.load_ms.prepare);
    if (rc == 0)
        rc = digest_all(p, l->err);
    if (rc == 0)
        rc = prove(l);
    if (rc == 0 && l->opt->beside)
        give_back_pool(p, l->opt->beside);
    p->info.load_ms.total = now_ms() - begin_ms;
    return rc;
}

int policy_load(struct policy **out, const char *dir, const struct policy_options *opt,
                struct policy_error *err)
{
    const struct policy_options defaults = {0};
    struct policy_error unwanted = {{0}};
    *out = NULL;
    err = err ? err : &unwanted;
    opt = opt ? opt : &defaults;
    struct policy *p = calloc(1, sizeof *p);
    if (!p)
        return refuse(err, ENOMEM, "no memory for a policy");
    p->info.golden_error = -1;
    struct loading l = {.p = p, .opt = opt, .mark_ms = now_ms(), .err = err};
    l.place = (struct place){.dir = dir, .shown = opt->name, .strict = opt->strict_files};
    int rc = load(&l);
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
