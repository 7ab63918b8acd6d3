// act_fixture: writes a whole LeRobot ACT checkpoint directory with random weights, for
// tests that need a policy and must not ship one. Every value is a function of (seed,
// tensor name, index), so a test can ask for any tensor again without reading the file,
// and has at most eight significant bits, so F32, F16 and BF16 storage hold exactly the
// same numbers.
//
//   struct act_fixture f = act_fixture_tiny();
//   f.pre_norm = true;
//   assert_int_equal(act_fixture_write(dir, &f), 0); // dir must exist
//   ...
//   act_fixture_remove(dir);
//
// A ResNet-18 is 11.2 M values whatever the rest: 45 MB as F32, 22 MB as F16 or BF16. A
// model without cameras (n_cameras = 0, env_dim > 0) is a few kilobytes.
#ifndef ACTD_TESTS_ACT_FIXTURE_H
#define ACTD_TESTS_ACT_FIXTURE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum act_fixture_era {
    ACT_FIXTURE_V04, // processor pipelines beside the weights
    ACT_FIXTURE_V03, // statistics as buffers inside model.safetensors
};
enum act_fixture_dtype { ACT_FIXTURE_F32, ACT_FIXTURE_F16, ACT_FIXTURE_BF16 };

struct act_fixture_camera {
    const char *key; // "observation.images.front"
    int height, width;
};

struct act_fixture {
    enum act_fixture_era era;
    enum act_fixture_dtype dtype;
    uint64_t seed;
    int chunk_size, n_action_steps, dim_model, n_heads, dim_feedforward;
    int n_encoder_layers, n_decoder_layers, latent_dim;
    bool pre_norm, gelu, dilation;
    int depth; // 18, 34, 50, 101, 152
    int n_cameras;
    struct act_fixture_camera camera[4];
    int state_dim, env_dim, action_dim;
    const char *norm_visual, *norm_state, *norm_action; // "MEAN_STD" …
    float action_scale; // standard deviation of every action, in the checkpoint's units
    char ensemble_coeff[16]; // as JSON: "null" or "0.01"
};

#define ACT_FIXTURE_MAX_TENSORS 1024

struct act_fixture_tensor {
    char name[256];
    int rank, shape[4];
    size_t n;
};

struct act_fixture_list {
    int n;
    struct act_fixture_tensor t[ACT_FIXTURE_MAX_TENSORS];
};

// One 32×32 camera, six joints, one layer of everything, chunk of 8.
static inline struct act_fixture act_fixture_tiny(void)
{
    return (struct act_fixture){
        .dtype = ACT_FIXTURE_BF16,
        .seed = 1,
        .chunk_size = 8,
        .n_action_steps = 8,
        .dim_model = 16,
        .n_heads = 2,
        .dim_feedforward = 24,
        .n_encoder_layers = 1,
        .n_decoder_layers = 1,
        .latent_dim = 4,
        .depth = 18,
        .n_cameras = 1,
        .camera = {{"observation.images.front", 32, 32}},
        .state_dim = 6,
        .action_dim = 6,
        .norm_visual = "MEAN_STD",
        .norm_state = "MEAN_STD",
        .norm_action = "MEAN_STD",
        .action_scale = 0.25f,
        .ensemble_coeff = "null",
    };
}

// ---- values ---------------------------------------------------------------------------

static inline uint64_t act_fixture_mix(uint64_t x) // splitmix64
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t act_fixture_key(uint64_t seed, const char *name) // FNV-1a
{
    uint64_t h = 0xcbf29ce484222325u ^ seed;
    for (; *name; name++)
        h = (h ^ (uint64_t)(unsigned char)*name) * 0x100000001b3u;
    return h;
}

static inline bool act_fixture_ends(const char *name, const char *tail)
{
    size_t n = strlen(name), m = strlen(tail);
    return n >= m && strcmp(name + n - m, tail) == 0;
}

// offset and amplitude of a tensor's values; amplitudes are powers of two
static inline void act_fixture_range(const struct act_fixture_tensor *t, float *offset,
                                     float *amplitude)
{
    size_t fan_in = t->rank > 1 ? t->n / (size_t)t->shape[0] : 1;
    *offset = 0.0f;
    *amplitude = 0.125f;
    if (act_fixture_ends(t->name, "running_var") ||
        (t->rank == 1 && act_fixture_ends(t->name, "weight"))) {
        *offset = 1.0f; // 0.5 .. 1.5
        *amplitude = 0.5f;
    } else if (strstr(t->name, "pos_embed")) {
        *amplitude = 1.0f;
    } else if (t->rank > 1) {
        // Variance between 1 and 4 over fan-in; a quarter of that in the backbone, where
        // every block adds to the last and 50 of them would overflow the softmax.
        float most = strstr(t->name, "backbone") ? 3.0f : 12.0f;
        *amplitude = 2.0f;
        while ((float)fan_in * *amplitude * *amplitude > most)
            *amplitude *= 0.5f;
    }
}

// n values of tensor t into dst
static inline void act_fixture_values(const struct act_fixture *f,
                                      const struct act_fixture_tensor *t, float *dst)
{
    uint64_t key = act_fixture_key(f->seed, t->name);
    float offset, amplitude;
    act_fixture_range(t, &offset, &amplitude);
    for (size_t i = 0; i < t->n; i++) {
        int k = (int)(act_fixture_mix(key + i) >> 57) - 64; // -64 .. 63
        dst[i] = offset + amplitude * (float)k / 64.0f;
    }
}

static inline float act_fixture_mean(const char *feature, int i)
{
    return strcmp(feature, "VISUAL") == 0 ? 0.4f + 0.05f * (float)i
                                          : 0.125f * (float)(i % 3);
}

static inline float act_fixture_std(const struct act_fixture *f, const char *feature,
                                    int i)
{
    if (strcmp(feature, "VISUAL") == 0)
        return 0.2f + 0.03f * (float)i;
    return strcmp(feature, "ACTION") == 0 ? f->action_scale
                                          : 0.5f + 0.25f * (float)(i % 2);
}

// ---- tensors --------------------------------------------------------------------------

static inline void act_fixture_add(struct act_fixture_list *l, const char *prefix,
                                   const char *name, int a, int b, int c, int d)
{
    if (l->n >= ACT_FIXTURE_MAX_TENSORS)
        return; // the writer notices
    struct act_fixture_tensor *t = &l->t[l->n++];
    *t = (struct act_fixture_tensor){.rank = d ? 4 : b ? 2 : 1, .shape = {a, b, c, d}};
    snprintf(t->name, sizeof t->name, "%s%s", prefix, name);
    t->n = (size_t)a * (size_t)(b ? b : 1) * (size_t)(c ? c : 1) * (size_t)(d ? d : 1);
}

static inline void act_fixture_linear(struct act_fixture_list *l, const char *prefix,
                                      const char *name, int out, int in)
{
    char p[192];
    snprintf(p, sizeof p, "%s%s", prefix, name);
    act_fixture_add(l, p, ".weight", out, in, 0, 0);
    act_fixture_add(l, p, ".bias", out, 0, 0, 0);
}

static inline void act_fixture_conv_bn(struct act_fixture_list *l, const char *prefix,
                                       const char *conv, const char *bn, int out, int in,
                                       int k)
{
    char p[192];
    snprintf(p, sizeof p, "%s%s", prefix, conv);
    act_fixture_add(l, p, ".weight", out, in, k, k);
    snprintf(p, sizeof p, "%s%s", prefix, bn);
    act_fixture_add(l, p, ".weight", out, 0, 0, 0);
    act_fixture_add(l, p, ".bias", out, 0, 0, 0);
    act_fixture_add(l, p, ".running_mean", out, 0, 0, 0);
    act_fixture_add(l, p, ".running_var", out, 0, 0, 0);
}

static inline void act_fixture_block(struct act_fixture_list *l, const char *p,
                                     bool bottleneck, int in, int width, int out,
                                     bool shortcut)
{
    act_fixture_conv_bn(l, p, "conv1", "bn1", width, in, bottleneck ? 1 : 3);
    act_fixture_conv_bn(l, p, "conv2", "bn2", width, width, 3);
    if (bottleneck)
        act_fixture_conv_bn(l, p, "conv3", "bn3", out, width, 1);
    if (shortcut)
        act_fixture_conv_bn(l, p, "downsample.0", "downsample.1", out, in, 1);
}

static inline void act_fixture_backbone(struct act_fixture_list *l,
                                        const struct act_fixture *f)
{
    static const int blocks[5][5] = {{18, 2, 2, 2, 2},
                                     {34, 3, 4, 6, 3},
                                     {50, 3, 4, 6, 3},
                                     {101, 3, 4, 23, 3},
                                     {152, 3, 8, 36, 3}};
    int row = 0, in = 64;
    while (row < 4 && blocks[row][0] != f->depth)
        row++;
    act_fixture_conv_bn(l, "model.backbone.", "conv1", "bn1", 64, 3, 7);
    for (int s = 1; s <= 4; s++) {
        int width = 32 << s, out = row >= 2 ? 4 * width : width;
        for (int b = 0; b < blocks[row][s]; b++) {
            char p[96];
            snprintf(p, sizeof p, "model.backbone.layer%d.%d.", s, b);
            act_fixture_block(l, p, row >= 2, in, width, out, b == 0 && in != out);
            in = out;
        }
    }
    act_fixture_add(l, "model.", "encoder_img_feat_input_proj.weight", f->dim_model, in,
                    1, 1);
    act_fixture_add(l, "model.", "encoder_img_feat_input_proj.bias", f->dim_model, 0, 0,
                    0);
}

static inline void act_fixture_layer(struct act_fixture_list *l,
                                     const struct act_fixture *f, const char *p,
                                     bool decoder)
{
    static const char *const attn[2] = {"self_attn", "multihead_attn"};
    int dim = f->dim_model;
    char name[64];
    for (int a = 0; a < 1 + decoder; a++) {
        snprintf(name, sizeof name, "%s.in_proj_weight", attn[a]);
        act_fixture_add(l, p, name, 3 * dim, dim, 0, 0);
        snprintf(name, sizeof name, "%s.in_proj_bias", attn[a]);
        act_fixture_add(l, p, name, 3 * dim, 0, 0, 0);
        snprintf(name, sizeof name, "%s.out_proj", attn[a]);
        act_fixture_linear(l, p, name, dim, dim);
    }
    act_fixture_linear(l, p, "linear1", f->dim_feedforward, dim);
    act_fixture_linear(l, p, "linear2", dim, f->dim_feedforward);
    for (int n = 1; n <= 2 + decoder; n++) {
        snprintf(name, sizeof name, "norm%d", n);
        act_fixture_linear(l, p, name, dim, 0);
    }
}

// Every tensor that inference needs. The list is the caller's to free.
static inline struct act_fixture_list *act_fixture_tensors(const struct act_fixture *f)
{
    struct act_fixture_list *l = calloc(1, sizeof *l);
    int dim = f->dim_model;
    if (!l)
        return NULL;
    act_fixture_linear(l, "model.", "encoder_latent_input_proj", dim, f->latent_dim);
    if (f->state_dim)
        act_fixture_linear(l, "model.", "encoder_robot_state_input_proj", dim,
                           f->state_dim);
    if (f->env_dim)
        act_fixture_linear(l, "model.", "encoder_env_state_input_proj", dim, f->env_dim);
    act_fixture_add(l, "model.", "encoder_1d_feature_pos_embed.weight",
                    1 + (f->state_dim > 0) + (f->env_dim > 0), dim, 0, 0);
    if (f->n_cameras)
        act_fixture_backbone(l, f);
    for (int i = 0; i < f->n_encoder_layers + f->n_decoder_layers; i++) {
        bool decoder = i >= f->n_encoder_layers;
        char p[64];
        snprintf(p, sizeof p, "model.%s.layers.%d.", decoder ? "decoder" : "encoder",
                 decoder ? i - f->n_encoder_layers : i);
        act_fixture_layer(l, f, p, decoder);
    }
    if (f->pre_norm)
        act_fixture_linear(l, "model.", "encoder.norm", dim, 0);
    act_fixture_linear(l, "model.", "decoder.norm", dim, 0);
    act_fixture_add(l, "model.", "decoder_pos_embed.weight", f->chunk_size, dim, 0, 0);
    act_fixture_linear(l, "model.", "action_head", f->action_dim, dim);
    return l;
}

#include "tests/unit/act_fixture_files.h"

#endif
