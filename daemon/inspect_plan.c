// inspect_plan: see the header.
#include "daemon/inspect_plan.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "policy/kernels/kernels.h"
#include "policy/policy.h"
#include "policy/profile_runs.h"

#define WARM_UP 2 // inferences that do not count

struct plan {
    const char *dir;
    const struct inspect_plan *how;
    FILE *out, *err;
    struct policy *policy;
    const struct policy_info *info;
    struct policy_image image[POLICY_MAX_CAMERAS];
    float *state, *actions;
    double *wall_ms; // (runs)
    struct profile_runs *runs;
};

// ---- measuring -----------------------------------------------------------------------------

// Pixels cost the same whatever they show; but not all the same, so that nothing is zero by chance.
static int make_pictures(struct plan *p)
{
    for (int i = 0; i < p->info->n_cameras; i++) {
        const struct policy_camera *c = &p->info->camera[i];
        size_t n = (size_t)c->width * (size_t)c->height * 3;
        uint8_t *rgb = malloc(n);

        if (!rgb)
            return -ENOMEM;
        for (size_t k = 0; k < n; k++)
            rgb[k] = (uint8_t)((uint32_t)k * 2654435761u >> 24);
        p->image[i] = (struct policy_image){
            .rgb = rgb, .width = c->width, .height = c->height, .stride = 3 * c->width};
    }
    return 0;
}

static int make_room(struct plan *p)
{
    const struct policy_info *i = p->info;
    size_t values = (size_t)i->chunk_size * (size_t)i->action_dim;

    p->state = calloc((size_t)(i->state_dim + i->env_dim) + 1, sizeof *p->state);
    p->actions = calloc(values, sizeof *p->actions);
    p->wall_ms = calloc((size_t)p->how->runs, sizeof *p->wall_ms);
    if (!p->state || !p->actions || !p->wall_ms)
        return -ENOMEM;
    for (int k = 0; k < i->state_dim && i->state.mean; k++)
        p->state[k] = i->state.mean[k];
    return profile_runs_new(&p->runs, p->how->runs);
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int measure(struct plan *p)
{
    const struct policy_observation obs = {
        .state = p->state, .env = p->state + p->info->state_dim, .image = p->image};
    int rc = 0;

    for (int i = -WARM_UP; i < p->how->runs && rc == 0; i++) {
        double begin = now_ms();

        policy_profile(p->policy, i < 0 ? NULL : &p->runs->profile);
        rc = policy_infer(p->policy, &obs, p->actions, NULL);
        if (i >= 0) {
            p->wall_ms[i] = now_ms() - begin;
            rc = rc ? rc : profile_runs_take(p->runs);
        }
    }
    policy_profile(p->policy, NULL);
    profile_runs_end(p->runs);
    return rc;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double median(struct plan *p)
{
    qsort(p->wall_ms, (size_t)p->how->runs, sizeof *p->wall_ms, compare);
    return p->wall_ms[p->how->runs / 2];
}

// ---- for people ----------------------------------------------------------------------------

static double mib(double bytes)
{
    return bytes / (1024.0 * 1024.0);
}

static void print_head(const struct plan *p)
{
    const struct policy_info *i = p->info;

    fprintf(p->out, "%s\nkernels: %s%s%s: %s\n", p->dir, i->kernels,
            *i->blas_core ? " " : "", i->blas_core, kernels_why());
    fprintf(p->out, "threads: %d; precision: %s; median of %d inferences\n\n", i->threads,
            precision_name(i->precision), p->how->runs);
}

static void print_step(const struct profile_step *s, FILE *out)
{
    char shape[48] = "";

    if (s->macs > 0)
        snprintf(shape, sizeof shape, "%d x %d x %d", s->rows, s->depth, s->out);
    fprintf(out, "  %-26s %-12s %-17s %-20s", s->what, s->way, s->kernel, shape);
    if (s->weight_bytes > 0)
        fprintf(out, " %8.0f", s->weight_bytes / 1024);
    else
        fprintf(out, " %8s", "");
    if (s->macs > 0)
        fprintf(out, " %8.4f %9.3f %8.1f\n", 1e-9 * s->macs, 1e-6 * (double)s->ns,
                profile_gflops(s->macs, s->ns));
    else
        fprintf(out, " %8s %9.3f\n", "", 1e-6 * (double)s->ns);
}

static void print_steps(const struct profile *p, FILE *out)
{
    fprintf(out, "  %-26s %-12s %-17s %-20s %8s %8s %9s %8s\n", "step", "way", "kernel",
            "rows x depth x out", "KiB", "GMAC", "ms", "GFLOP/s");
    for (int i = 0; i < p->n; i++)
        print_step(&p->step[i], out);
}

static void print_stage(const struct profile_stage *s, const struct profile_stage *all,
                        FILE *out)
{
    fprintf(out,
            "  %-10s %5d steps %9.1f MiB %8.3f GMAC %9.3f ms %5.1f %% %8.1f GFLOP/s\n",
            s->name, s->steps, mib(s->weight_bytes), 1e-9 * s->macs, 1e-6 * (double)s->ns,
            all->ns > 0 ? 100.0 * (double)s->ns / (double)all->ns : 0.0,
            profile_gflops(s->macs, s->ns));
}

// What is kept in memory, against the same weights as plain floats.
static void print_memory(const struct plan *p, const struct profile_stage *all)
{
    double packed = (double)p->info->weight_bytes,
           plain = 4.0 * (double)p->info->parameters;

    fprintf(p->out,
            "\nmemory: packed weights %.1f MiB, %.2f times the %.1f MiB of float32 (for "
            "winograd: %.1f MiB); tables computed at load %.1f MiB; working %.1f MiB%s\n",
            mib(packed), packed / plain, mib(plain), mib(all->winograd_bytes),
            mib((double)p->info->table_bytes), mib((double)p->info->activation_bytes),
            kernels_blas()
                ? "; OpenBLAS's buffers: 128 MiB of addresses for each thread and one"
                : "");
}

static void print_plan(struct plan *p)
{
    struct profile_stage stage[PROFILE_STAGES + 1];
    const struct profile *profile = &p->runs->profile;
    int n = profile_stages(profile, stage);
    double ms = median(p);

    print_head(p);
    print_steps(profile, p->out);
    fprintf(p->out, "\n");
    for (int i = 0; i <= n; i++)
        print_stage(&stage[i], &stage[n], p->out);
    print_memory(p, &stage[n]);
    fprintf(
        p->out,
        "an inference: %.1f ms (best %.1f), %.1f GFLOP/s of the textbook's operations\n",
        ms, p->wall_ms[0], profile_gflops(stage[n].macs, (int64_t)(1e6 * ms)));
}

// ---- for programs --------------------------------------------------------------------------

static json_t *json_step(const struct profile_step *s)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:f, s:f, s:f}", "step",
                     s->what, "stage", s->stage, "way", s->way, "kernel", s->kernel,
                     "rows", s->rows, "depth", s->depth, "out", s->out, "gmac",
                     1e-9 * s->macs, "weight_bytes", s->weight_bytes, "ms",
                     1e-6 * (double)s->ns);
}

static json_t *json_stage(const struct profile_stage *s)
{
    return json_pack("{s:s, s:i, s:f, s:f, s:f, s:f}", "stage", s->name, "steps",
                     s->steps, "gmac", 1e-9 * s->macs, "weight_bytes", s->weight_bytes,
                     "winograd_bytes", s->winograd_bytes, "ms", 1e-6 * (double)s->ns);
}

static int print_json(struct plan *p)
{
    struct profile_stage stage[PROFILE_STAGES + 1];
    const struct profile *profile = &p->runs->profile;
    const struct policy_info *i = p->info;
    int n = profile_stages(profile, stage), rc;
    json_t *steps = json_array(), *stages = json_array(), *all;
    double ms = median(p);

    for (int k = 0; k < profile->n; k++)
        json_array_append_new(steps, json_step(&profile->step[k]));
    for (int k = 0; k < n; k++)
        json_array_append_new(stages, json_stage(&stage[k]));
    all = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:f, s:o, s:o}",
        "directory", p->dir, "kernels", i->kernels, "why", kernels_why(), "blas_core",
        i->blas_core, "precision", precision_name(i->precision), "threads", i->threads,
        "runs", p->how->runs, "ms", ms, "best_ms", p->wall_ms[0], "gmac",
        1e-9 * stage[n].macs, "weight_bytes", (json_int_t)i->weight_bytes,
        "float32_bytes", 4 * (json_int_t)i->parameters, "working_bytes",
        (json_int_t)i->activation_bytes, "table_bytes", (json_int_t)i->table_bytes,
        "winograd_bytes", stage[n].winograd_bytes, "stages", stages, "steps", steps);
    rc = all ? json_dumpf(all, p->out, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : -1;
    json_decref(all);
    fputc('\n', p->out);
    return rc;
}

// ---- all of it -----------------------------------------------------------------------------

static int choose(const struct plan *p)
{
    int rc = kernels_choose(p->how->kernels);

    if (rc)
        fprintf(
            p->err,
            "REFUSED: kernels %s: %s: choose generic, openblas, avx2, \"avx2 vnni\", avx512, "
            "\"avx512 vnni\" or neon\n",
            p->how->kernels,
            rc == -EINVAL ? "there are none of that name"
                          : "this processor does not run them");
    return rc ? EX_CONFIG : EX_OK;
}

static int load(struct plan *p)
{
    const struct policy_options opt = {.threads = p->how->threads,
                                       .stats_tag = p->how->stats_tag,
                                       .precision = p->how->precision};
    struct policy_error why = {{0}};

    if (policy_load(&p->policy, p->dir, &opt, &why)) {
        fprintf(p->err, "REFUSED: %s\n", why.text);
        return EX_CONFIG;
    }
    p->info = policy_describe(p->policy);
    return EX_OK;
}

static int measure_and_print(struct plan *p)
{
    int rc = make_room(p);

    rc = rc ? rc : make_pictures(p);
    if (rc) {
        fprintf(p->err, "out of memory\n");
        return EX_OSERR;
    }
    if (measure(p)) {
        fprintf(p->err, "the inference failed: %s\n", policy_last_error(p->policy));
        return EX_SOFTWARE;
    }
    if (p->how->json)
        return print_json(p) ? EX_OSERR : EX_OK;
    print_plan(p);
    return EX_OK;
}

int inspect_plan_run(const char *dir, const struct inspect_plan *how, FILE *out,
                     FILE *err)
{
    struct plan p = {.dir = dir, .how = how, .out = out, .err = err};
    int status = choose(&p);

    status = status ? status : load(&p);
    status = status ? status : measure_and_print(&p);
    for (int i = 0; i < POLICY_MAX_CAMERAS; i++)
        free((void *)(uintptr_t)p.image[i].rgb);
    free(p.state);
    free(p.actions);
    free(p.wall_ms);
    profile_runs_free(p.runs);
    policy_free(p.policy);
    return status;
}
