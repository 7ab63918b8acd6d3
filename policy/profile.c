#include "policy/profile.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "policy/kernels/gemm_int8.h"

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void profile_open(struct profile *p)
{
    if (p->over)
        p->n = 0;
    p->over = false;
    p->mark_ns = now_ns();
}

void profile_name(struct profile *p, const char *stage, const char *part, int number)
{
    snprintf(p->stage, sizeof p->stage, "%s", stage);
    p->block[0] = 0;
    if (number < 0)
        snprintf(p->part, sizeof p->part, "%s", part);
    else
        snprintf(p->part, sizeof p->part, "%s %d", part, number);
}

void profile_name_block(struct profile *p, int layer, int block)
{
    snprintf(p->block, sizeof p->block, "layer%d.%d", layer, block);
}

// ---- what the steps are ------------------------------------------------------------------------

// "avx512 12x32"
static void name_kernel(struct profile_step *s, const char *isa, int mr, int nr)
{
    snprintf(s->kernel, sizeof s->kernel, "%s %dx%d", isa, mr, nr);
}

// A step that ends now.
static struct profile_step step_of(const char *what, const char *way, int rows, int depth,
                                   int out)
{
    struct profile_step s = {.rows = rows, .depth = depth, .out = out, .ns = now_ns()};

    snprintf(s.what, sizeof s.what, "%s", what);
    snprintf(s.way, sizeof s.way, "%s", way);
    s.macs = (double)rows * depth * out;
    return s;
}

// work->ns is when it ended; what has been done since to describe it is no part of any step.
static void add(struct profile *p, const struct profile_step *work)
{
    struct profile_step *s = &p->step[p->n];

    if (p->n < PROFILE_STEPS) {
        *s = *work;
        snprintf(s->what, sizeof s->what, "%.11s%s%.12s%s%.12s", p->part,
                 *p->part ? " " : "", p->block, *p->block ? " " : "", work->what);
        snprintf(s->stage, sizeof s->stage, "%s", p->stage);
        s->ns = work->ns - p->mark_ns;
        p->n++;
    }
    p->mark_ns = now_ns();
}

void profile_add_stem(struct profile *p, const struct stem *s, int height, int width)
{
    int rows = (height + 1) / 2 * ((width + 1) / 2), depth = 3 * STEM_SIZE * STEM_SIZE;
    struct profile_step step = step_of("stem", "winograd 3x3", rows, depth, s->out);

    name_kernel(&step, cpu_isa_name(s->kernel->isa), s->kernel->tiles,
                s->kernel->channels);
    step.weight_bytes = (double)(stem_weight_floats(s) * sizeof(float));
    add(p, &step);
}

void profile_add_conv(struct profile *p, const char *what, const struct conv *c,
                      int height, int width)
{
    struct profile_step step = step_of(what, conv_way_name(c->way), height * width,
                                       c->size * c->size * c->in, c->out);

    name_kernel(&step, gemm_kernel_name(c->kernel), c->kernel->mr, c->kernel->nr);
    step.weight_bytes = (double)(conv_weight_floats(c) * sizeof(float));
    add(p, &step);
}

void profile_add_linear(struct profile *p, const char *what, const struct linear *l,
                        int rows)
{
    const char *way =
        l->precision == PRECISION_FLOAT32 ? "packed" : precision_name(l->precision);
    struct profile_step step = step_of(what, way, rows, l->in, l->out);
    const struct gemm_kernel *k =
        l->precision == PRECISION_BF16 ? l->bf16.kernel : l->weight.kernel;

    if (l->precision == PRECISION_INT8)
        name_kernel(&step, l->int8.kernel->name, l->int8.kernel->mr, l->int8.kernel->nr);
    else
        name_kernel(&step, gemm_kernel_name(k), k->mr, k->nr);
    step.weight_bytes = (double)linear_bytes(l);
    add(p, &step);
}

// Scores and their sums: two products of every query with every key.
void profile_add_attention(struct profile *p, const struct attention *a)
{
    struct profile_step step =
        step_of("attention", "one pass", a->queries, a->head_dim, a->keys);

    step.macs *= 2.0 * a->heads;
    snprintf(step.kernel, sizeof step.kernel, "%s", cpu_isa_name(cpu_chosen()));
    add(p, &step);
}

void profile_add_other(struct profile *p, const char *what)
{
    struct profile_step step = step_of(what, "", 0, 0, 0);

    add(p, &step);
}
