// policy_load: puts checkpoint, arena, pool and model together.
//
// A checkpoint that is to take over is loaded while another policy drives the arm, on a thread
// that gets what processor time is left. A full-size ACT with one camera of 480x640 (34 M parameters,
// 137 MB; case a of bench_policy, AVX-512) asks for 307 ms of it on a core of an EPYC (Zen 5): 181 to
// read (the file's SHA-256 is 68 of them, the rest are batch norms and packing), 102 one inference,
// 13 memory, 10 tables. Memory was 160 to 600 where a virtual machine's host had to find it (arena.c).
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policy/deviation.h"
#include "policy/digest.h"
#include "policy/golden.h"
#include "policy/image.h"
#include "policy/kernels/kernels.h"
#include "policy/policy_priv.h"
#include "policy/refuse.h"
#include "policy/warmup.h"

struct loading {
    struct policy *p;
    const struct policy_options *opt;
    struct place place;
    double mark_ms; // when the step under way began
    struct deviation *
        deviation; // to ask of p in float32, to measure p in another precision by; or NULL
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
    if (opt->rows < 0)
        return refuse(err, EINVAL, "%d rows of a chunk were asked for: 0 is all",
                      opt->rows);
    if (opt->resize < POLICY_RESIZE_REFUSE || opt->resize > POLICY_RESIZE_LETTERBOX)
        return refuse(err, EINVAL,
                      "the resize mode is none of refuse, stretch and letterbox");
    if ((unsigned)opt->precision >= PRECISIONS)
        return refuse(err, EINVAL, "the precision is none of float32, bf16 and int8");
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
    return kernels_blas() ? warmup_blas(threads + 1, err) : 0;
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
    p->act.c.precision = p->info.precision = opt->precision;
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
        act_build_tables(&p->act, b);
    info->table_bytes = p->arena.used - info->weight_bytes;
    if (b->rc == 0)
        act_build_state(&p->act, b);
    info->activation_bytes = p->arena.used - info->table_bytes - info->weight_bytes;
    info->parameters = b->parameters;
    if (build_begin_reading(b) == 0) {
        act_build_weights(&p->act, b);
        act_build_tables(&p->act, b);
        act_build_state(&p->act, b);
    }
    if (b->rc == 0)
        b->rc = step(l, &info->load_ms.memory);
    if (b->rc == 0 && build_read(b, l->opt->cancel, info->weights_sha256) == 0)
        b->rc = step(l, &info->load_ms.read);
    return b->rc;
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
    for (int i = 0; i < p->info.n_cameras; i++)
        act_see(&p->act, p->pool, i);
    int rc = policy_compute(p, actions);
    free(actions);
    if (rc)
        return refuse(
            err, EINVAL,
            "the policy's actions for a mean observation are not finite: its weights "
            "or statistics are damaged, export the checkpoint again");
    return 0;
}

// The float32 policy is held to golden.safetensors; another one only to that one.
static int prove(struct loading *l)
{
    struct policy *p = l->p;
    const struct place *golden = l->opt->skip_golden ? NULL : &l->place;
    bool exact = p->info.precision == PRECISION_FLOAT32;
    int rc = golden && exact ? golden_check(p, golden, l->err) : 0;
    if (rc == 0 && p->info.golden_error < 0 && exact)
        rc = try_out(p, l->err);
    if (rc == 0 && l->deviation)
        rc = exact ? deviation_ask(l->deviation, p, golden, l->opt->cancel, l->err)
                   : deviation_measure(l->deviation, p, golden, l->opt->cancel, l->err);
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
    for (int i = 0; i < p->checkpoint->n_cameras; i++)
        image_table(&p->checkpoint->camera[i].norm, p->table[i]);
    policy_fill_info(p);
    rc = digest_all(p, l->err);
    if (rc == 0 && p->info.precision != PRECISION_FLOAT32)
        rc = deviation_prepare(l->deviation, p, l->err);
    else if (rc == 0)
        act_prepare(&p->act, p->pool);
    if (rc == 0)
        rc = step(l, &p->info.load_ms.prepare);
    if (rc == 0)
        rc = prove(l);
    if (rc == 0 && l->opt->rows > 0 && l->opt->rows < p->info.rows && !kernels_blas())
        p->info.rows = p->act.c.rows = l->opt->rows; // the trial wanted them all
    if (rc == 0 && l->opt->beside)
        give_back_pool(p, l->opt->beside);
    p->info.load_ms.total = now_ms() - begin_ms;
    return rc;
}

static int load_one(struct policy **out, const char *dir,
                    const struct policy_options *opt, struct deviation *deviation,
                    struct policy_error *err)
{
    struct policy *p = calloc(1, sizeof *p);
    if (!p)
        return refuse(err, ENOMEM, "no memory for a policy");
    p->info.golden_error = -1;
    struct loading l = {
        .p = p, .opt = opt, .mark_ms = now_ms(), .deviation = deviation, .err = err};
    l.place = (struct place){.dir = dir, .shown = opt->name, .strict = opt->strict_files};
    int rc = load(&l);
    if (rc) {
        policy_free(p);
        return rc;
    }
    *out = p;
    return 0;
}

// In float32 first, for what it says; see deviation.h.
static int load_both(struct policy **out, const char *dir,
                     const struct policy_options *opt, struct policy_error *err)
{
    struct policy_options exact = *opt;
    struct deviation d = {.n = 0};
    struct policy *p = NULL;
    double begin_ms = now_ms(), reference_ms;

    exact.precision = PRECISION_FLOAT32;
    int rc = load_one(&p, dir, &exact, &d, err);
    policy_free(p);
    reference_ms = now_ms() - begin_ms;
    if (rc == 0)
        rc = load_one(out, dir, opt, &d, err);
    if (*out) {
        (*out)->info.load_ms.reference = reference_ms;
        (*out)->info.load_ms.total += reference_ms;
    }
    deviation_free(&d);
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
    return opt->precision == PRECISION_FLOAT32 ? load_one(out, dir, opt, NULL, err)
                                               : load_both(out, dir, opt, err);
}

void policy_free(struct policy *p)
{
    if (!p)
        return;
    pool_stop(p->pool);
    arena_release(&p->arena);
    lerobot_close(p->checkpoint);
    free(p->deviation);
    free(p);
}
