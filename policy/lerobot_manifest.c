// lerobot_manifest: see the header. Names and shapes: LeRobot policies/act/modeling_act.py and
// torchvision's resnet up to layer4.
#include "policy/lerobot_manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "policy/refuse.h"

// A walk under way. Once a visit has ended it, nothing more is visited.
struct walk {
    lr_visit *visit;
    void *context;
    int result;
    char prefix[96]; // of the module entered: "model.encoder.layers.0."
};

// Visits prefix + name with the given dimensions; those after the first 0 are left out.
static void see(struct walk *w, const char *name, int d0, int d1, int d2, int d3)
{
    int shape[4] = {d0, d1, d2, d3}, rank = 1;
    char full[192];

    while (rank < 4 && shape[rank] > 0)
        rank++;
    snprintf(full, sizeof full, "%s%s", w->prefix, name);
    if (w->result == 0)
        w->result = w->visit(w->context, full, rank, shape);
}

// name.weight (rows, columns) and name.bias (rows).
static void see_linear(struct walk *w, const char *name, int rows, int columns)
{
    char part[64];

    snprintf(part, sizeof part, "%s.weight", name);
    see(w, part, rows, columns, 0, 0);
    snprintf(part, sizeof part, "%s.bias", name);
    see(w, part, rows, 0, 0, 0);
}

static void see_attention(struct walk *w, const char *name, int d)
{
    char part[64];

    snprintf(part, sizeof part, "%s.in_proj_weight", name);
    see(w, part, 3 * d, d, 0, 0);
    snprintf(part, sizeof part, "%s.in_proj_bias", name);
    see(w, part, 3 * d, 0, 0, 0);
    snprintf(part, sizeof part, "%s.out_proj", name);
    see_linear(w, part, d, d);
}

static void see_layer(struct walk *w, const struct lerobot_act *a, bool decoder)
{
    int d = a->dim_model, f = a->dim_feedforward;

    see_attention(w, "self_attn", d);
    if (decoder)
        see_attention(w, "multihead_attn", d);
    see_linear(w, "linear1", f, d);
    see_linear(w, "linear2", d, f);
    see_linear(w, "norm1", d, 0);
    see_linear(w, "norm2", d, 0);
    if (decoder)
        see_linear(w, "norm3", d, 0);
}

static void see_transformer(struct walk *w, const struct lerobot_act *a)
{
    for (int i = 0; i < a->n_encoder_layers; i++) {
        snprintf(w->prefix, sizeof w->prefix, "model.encoder.layers.%d.", i);
        see_layer(w, a, false);
    }
    snprintf(w->prefix, sizeof w->prefix, "model.");
    if (a->pre_norm)
        see_linear(w, "encoder.norm", a->dim_model, 0);
    for (int i = 0; i < a->n_decoder_layers; i++) {
        snprintf(w->prefix, sizeof w->prefix, "model.decoder.layers.%d.", i);
        see_layer(w, a, true);
    }
    snprintf(w->prefix, sizeof w->prefix, "model.");
    see_linear(w, "decoder.norm", a->dim_model, 0); // also post-norm has this one
}

// A convolution without bias and its frozen batch norm: conv `c`, norm `n`.
static void see_conv(struct walk *w, const char *c, const char *n, int out, int in,
                     int kernel)
{
    static const char *const parts[] = {"weight", "bias", "running_mean", "running_var"};
    char part[64];

    snprintf(part, sizeof part, "%s.weight", c);
    see(w, part, out, in, kernel, kernel);
    for (int i = 0; i < 4; i++) {
        snprintf(part, sizeof part, "%s.%s", n, parts[i]);
        see(w, part, out, 0, 0, 0);
    }
}

static void see_backbone(struct walk *w, int depth)
{
    static const struct {
        int depth, blocks[4];
    } nets[] = {{18, {2, 2, 2, 2}},
                {34, {3, 4, 6, 3}},
                {50, {3, 4, 6, 3}},
                {101, {3, 4, 23, 3}},
                {152, {3, 8, 36, 3}}};
    bool bottleneck = depth >= 50;
    int net = 0, in = 64;

    while (nets[net].depth != depth)
        net++;
    snprintf(w->prefix, sizeof w->prefix, "model.backbone.");
    see_conv(w, "conv1", "bn1", 64, 3, 7);
    for (int layer = 0; layer < 4; layer++) {
        int width = 64 << layer, out = bottleneck ? 4 * width : width;

        for (int b = 0; b < nets[net].blocks[layer]; b++, in = out) {
            snprintf(w->prefix, sizeof w->prefix, "model.backbone.layer%d.%d.", layer + 1,
                     b);
            see_conv(w, "conv1", "bn1", width, in, bottleneck ? 1 : 3);
            see_conv(w, "conv2", "bn2", width, width, 3);
            if (bottleneck)
                see_conv(w, "conv3", "bn3", out, width, 1);
            if (b == 0 && (layer > 0 || bottleneck))
                see_conv(w, "downsample.0", "downsample.1", out, in, 1);
        }
    }
}

int lr_manifest(const struct lr_config *c, lr_visit *visit, void *context)
{
    const struct lerobot_act *a = &c->act;
    struct walk w = {.visit = visit, .context = context};
    int d = a->dim_model, tokens = 1 + (c->state.rank > 0) + (c->env.rank > 0);

    if (c->n_cameras > 0)
        see_backbone(&w, a->depth);
    see_transformer(&w, a);
    snprintf(w.prefix, sizeof w.prefix, "model.");
    if (c->state.rank)
        see_linear(&w, "encoder_robot_state_input_proj", d, c->state.shape[0]);
    if (c->env.rank)
        see_linear(&w, "encoder_env_state_input_proj", d, c->env.shape[0]);
    see_linear(&w, "encoder_latent_input_proj", d, a->latent_dim);
    if (c->n_cameras > 0) {
        see(&w, "encoder_img_feat_input_proj.weight", d, a->depth >= 50 ? 2048 : 512, 1,
            1);
        see(&w, "encoder_img_feat_input_proj.bias", d, 0, 0, 0);
    }
    see(&w, "encoder_1d_feature_pos_embed.weight", tokens, d, 0, 0);
    see(&w, "decoder_pos_embed.weight", a->chunk_size, d, 0, 0);
    see_linear(&w, "action_head", c->action.shape[0], d);
    return w.result;
}

// "[512, 64]" for sentences.
static void print_shape(char *out, size_t n, int rank, const uint64_t *shape)
{
    size_t at = (size_t)snprintf(out, n, "[");

    for (int i = 0; i < rank && at < n; i++)
        at += (size_t)snprintf(out + at, n - at, "%s%" PRIu64, i ? ", " : "", shape[i]);
    if (at < n)
        snprintf(out + at, n - at, "]");
}

int lr_tensor_check(const struct lr_names *t, const char *name, int rank,
                    const int *shape, struct lr_name **out, struct policy_error *err)
{
    struct lr_name *e = lr_names_find(t, name);
    uint64_t want[ST_MAX_RANK] = {0};
    char have[128], need[128];
    bool same;

    *out = e;
    if (!e)
        return refuse(
            err, EINVAL,
            "model.safetensors has no tensor '%s': config.json belongs to another "
            "checkpoint, or the file is incomplete",
            name);
    same = e->tensor->rank == rank;
    for (int i = 0; i < rank && i < ST_MAX_RANK; i++) {
        want[i] = (uint64_t)shape[i];
        same = same && e->tensor->shape[i] == want[i];
    }
    if (!same) {
        print_shape(have, sizeof have, e->tensor->rank, e->tensor->shape);
        print_shape(need, sizeof need, rank, want);
        return refuse(
            err, EINVAL,
            "tensor '%s' has the shape %s, config.json asks for %s: the two files are "
            "of different checkpoints",
            name, have, need);
    }
    if (e->tensor->dtype != ST_F32 && e->tensor->dtype != ST_F16 &&
        e->tensor->dtype != ST_BF16 && e->tensor->dtype != ST_F64)
        return refuse(err, EINVAL,
                      "tensor '%s' is stored as %s: save it as F32, F16 or BF16", name,
                      st_dtype_name(e->tensor->dtype));
    return 0;
}

struct check {
    const struct lr_names *names;
    struct policy_error *err;
};

static int check_visit(void *context, const char *name, int rank, const int *shape)
{
    struct check *c = context;
    struct lr_name *e;
    int r = lr_tensor_check(c->names, name, rank, shape, &e, c->err);

    if (r == 0)
        e->used = true;
    return r;
}

static bool starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

// What training and older versions leave in the file and inference never reads.
static bool ignorable(const char *name)
{
    static const char tracked[] = ".num_batches_tracked";
    size_t n = strlen(name), k = sizeof tracked - 1;

    return starts(name, "model.vae_") || starts(name, "normalize_inputs.") ||
           starts(name, "normalize_targets.") || starts(name, "unnormalize_outputs.") ||
           (starts(name, "model.backbone.") && n > k &&
            strcmp(name + n - k, tracked) == 0);
}

int lr_manifest_check(const struct lr_config *c, const struct lr_names *t,
                      struct policy_error *err)
{
    struct check check = {t, err};
    int r = lr_manifest(c, check_visit, &check);

    for (size_t i = 0; r == 0 && i < t->n; i++)
        if (!t->at[i].used && !ignorable(t->at[i].name))
            r = refuse(
                err, EINVAL,
                "model.safetensors has the tensor '%.150s', which an ACT of this "
                "config.json does not have: the two files are of different checkpoints",
                t->at[i].name);
    return r;
}
