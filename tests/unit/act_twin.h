// act_twin: the ACT network once more, in double, loop by loop as the paper and
// torchvision describe it, with nothing folded, precomputed or divided. Written from the
// description of the model, not from policy/models/, which it checks. Slow: for small
// models only.
#ifndef ACTD_TESTS_ACT_TWIN_H
#define ACTD_TESTS_ACT_TWIN_H

#include <math.h>
#include <stdarg.h>

#include "tests/unit/act_fixture.h"

struct twin {
    const struct act_fixture *f;
    struct act_fixture_list *list;
    void *owned[4096]; // everything allocated, freed at the end
    int n_owned;
};

struct twin_map {
    double *v; // (channels, h, w)
    int channels, h, w;
};

static inline double *twin_new(struct twin *t, size_t n)
{
    double *p = calloc(n ? n : 1, sizeof *p);
    if (!p || t->n_owned >= 4096)
        abort(); // a test that can not run must not pass
    t->owned[t->n_owned++] = p;
    return p;
}

__attribute__((format(printf, 2, 3))) static inline double *
twin_tensor(struct twin *t, const char *format, ...)
{
    char name[256];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    for (int i = 0; i < t->list->n; i++) {
        const struct act_fixture_tensor *x = &t->list->t[i];
        if (strcmp(x->name, name) != 0)
            continue;
        double *out = twin_new(t, x->n);
        float *v = malloc(x->n * sizeof *v);
        act_fixture_values(t->f, x, v);
        for (size_t k = 0; k < x->n; k++)
            out[k] = (double)v[k];
        free(v);
        return out;
    }
    fprintf(stderr, "twin: no tensor %s\n", name);
    abort();
}

// ---- ResNet ---------------------------------------------------------------------------

static inline double twin_pixel(const struct twin_map *m, int c, int y, int x)
{
    if (y < 0 || x < 0 || y >= m->h || x >= m->w)
        return 0.0;
    return m->v[((size_t)c * (size_t)m->h + (size_t)y) * (size_t)m->w + (size_t)x];
}

// convolution, then frozen batch norm
static inline struct twin_map twin_conv(struct twin *t, struct twin_map in, int out,
                                        int k, int stride, int dilation, const char *conv,
                                        const char *bn)
{
    int pad = k == 1 ? 0 : k == 7 ? 3 : dilation;
    struct twin_map m = {NULL, out,
                         (in.h + 2 * pad - dilation * (k - 1) - 1) / stride + 1,
                         (in.w + 2 * pad - dilation * (k - 1) - 1) / stride + 1};
    const double *w = twin_tensor(t, "%s.weight", conv);
    const double *gamma = twin_tensor(t, "%s.weight", bn);
    const double *beta = twin_tensor(t, "%s.bias", bn);
    const double *mean = twin_tensor(t, "%s.running_mean", bn);
    const double *var = twin_tensor(t, "%s.running_var", bn);
    m.v = twin_new(t, (size_t)out * (size_t)m.h * (size_t)m.w);
    size_t at = 0;
    for (int o = 0; o < out; o++)
        for (int y = 0; y < m.h; y++)
            for (int x = 0; x < m.w; x++) {
                double sum = 0.0;
                const double *tap = w + (size_t)o * (size_t)(in.channels * k * k);
                for (int c = 0; c < in.channels; c++)
                    for (int a = 0; a < k; a++)
                        for (int b = 0; b < k; b++)
                            sum += *tap++ * twin_pixel(&in, c,
                                                       y * stride - pad + a * dilation,
                                                       x * stride - pad + b * dilation);
                m.v[at++] = (sum - mean[o]) / sqrt(var[o] + 1e-5) * gamma[o] + beta[o];
            }
    return m;
}

static inline void twin_relu(struct twin_map m)
{
    for (size_t i = 0; i < (size_t)m.channels * (size_t)m.h * (size_t)m.w; i++)
        m.v[i] = fmax(m.v[i], 0.0);
}

static inline struct twin_map twin_max_pool(struct twin *t, struct twin_map in)
{
    struct twin_map m = {NULL, in.channels, (in.h - 1) / 2 + 1, (in.w - 1) / 2 + 1};
    m.v = twin_new(t, (size_t)m.channels * (size_t)m.h * (size_t)m.w);
    size_t at = 0;
    for (int c = 0; c < m.channels; c++)
        for (int y = 0; y < m.h; y++)
            for (int x = 0; x < m.w; x++) {
                double best = 0.0; // after a ReLU nothing is below
                for (int a = -1; a <= 1; a++)
                    for (int b = -1; b <= 1; b++)
                        best = fmax(best, twin_pixel(&in, c, 2 * y + a, 2 * x + b));
                m.v[at++] = best;
            }
    return m;
}

static inline struct twin_map twin_named(struct twin *t, struct twin_map in, int out,
                                         int k, int stride, int dilation,
                                         const char *block, const char *conv,
                                         const char *bn)
{
    char a[128], b[128];
    snprintf(a, sizeof a, "%s%s", block, conv);
    snprintf(b, sizeof b, "%s%s", block, bn);
    return twin_conv(t, in, out, k, stride, dilation, a, b);
}

static inline struct twin_map twin_block(struct twin *t, struct twin_map x, const char *p,
                                         bool bottleneck, int width, int stride,
                                         int dilation)
{
    int out = bottleneck ? 4 * width : width;
    struct twin_map y, shortcut = x;
    if (bottleneck) {
        y = twin_named(t, x, width, 1, 1, 1, p, "conv1", "bn1");
        twin_relu(y);
        y = twin_named(t, y, width, 3, stride, dilation, p, "conv2", "bn2");
        twin_relu(y);
        y = twin_named(t, y, out, 1, 1, 1, p, "conv3", "bn3");
    } else {
        y = twin_named(t, x, width, 3, stride, dilation, p, "conv1", "bn1");
        twin_relu(y);
        y = twin_named(t, y, width, 3, 1, dilation, p, "conv2", "bn2");
    }
    if (stride != 1 || x.channels != out)
        shortcut = twin_named(t, x, out, 1, stride, 1, p, "downsample.0", "downsample.1");
    for (size_t i = 0; i < (size_t)out * (size_t)y.h * (size_t)y.w; i++)
        y.v[i] += shortcut.v[i];
    twin_relu(y);
    return y;
}

static inline struct twin_map twin_backbone(struct twin *t, struct twin_map x)
{
    int counts18[4] = {2, 2, 2, 2}, counts34[4] = {3, 4, 6, 3};
    const int *counts = t->f->depth == 18 ? counts18 : counts34;
    x = twin_conv(t, x, 64, 7, 2, 1, "model.backbone.conv1", "model.backbone.bn1");
    twin_relu(x);
    x = twin_max_pool(t, x);
    for (int layer = 1; layer <= 4; layer++)
        for (int i = 0; i < counts[layer - 1]; i++) {
            char p[64];
            bool dilated = layer == 4 && t->f->dilation;
            snprintf(p, sizeof p, "model.backbone.layer%d.%d.", layer, i);
            x = twin_block(t, x, p, t->f->depth == 50, 32 << layer,
                           layer > 1 && i == 0 && !dilated ? 2 : 1,
                           dilated && i > 0 ? 2 : 1);
        }
    return x;
}

// ---- transformer ----------------------------------------------------------------------

// y (rows, out) = x (rows, in) W^T + b, W from row `from` of the packed weight on
static inline double *twin_affine(struct twin *t, const double *x, int rows, int in,
                                  int out, const double *w, const double *b, int from)
{
    double *y = twin_new(t, (size_t)rows * (size_t)out);
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < out; o++) {
            double sum = b[from + o];
            for (int i = 0; i < in; i++)
                sum += x[r * in + i] * w[(from + o) * in + i];
            y[r * out + o] = sum;
        }
    return y;
}

static inline double *twin_linear(struct twin *t, const double *x, int rows, int in,
                                  int out, const char *name)
{
    const double *w = twin_tensor(t, "%s.weight", name);
    return twin_affine(t, x, rows, in, out, w, twin_tensor(t, "%s.bias", name), 0);
}

static inline double *twin_add(struct twin *t, const double *a, const double *b, int rows)
{
    size_t n = (size_t)rows * (size_t)t->f->dim_model;
    double *y = twin_new(t, n);
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
    return y;
}

static inline double *twin_norm(struct twin *t, const double *x, int rows, const char *p,
                                const char *name)
{
    int d = t->f->dim_model;
    const double *w = twin_tensor(t, "%s%s.weight", p, name);
    const double *b = twin_tensor(t, "%s%s.bias", p, name);
    double *y = twin_new(t, (size_t)rows * (size_t)d);
    for (int r = 0; r < rows; r++) {
        double mean = 0.0, var = 0.0;
        for (int i = 0; i < d; i++)
            mean += x[r * d + i] / d;
        for (int i = 0; i < d; i++)
            var += (x[r * d + i] - mean) * (x[r * d + i] - mean) / d;
        for (int i = 0; i < d; i++)
            y[r * d + i] = (x[r * d + i] - mean) / sqrt(var + 1e-5) * w[i] + b[i];
    }
    return y;
}

// Score of one query and one key.
static inline double twin_score(const double *q, const double *k, int head_dim)
{
    double score = 0.0;
    for (int i = 0; i < head_dim; i++)
        score += q[i] * k[i];
    return score / sqrt((double)head_dim);
}

// One head of one query over all keys into out (head_dim).
static inline void twin_head(const double *q, const double *k, const double *v, int keys,
                             int d, int head_dim, double *out)
{
    double sum = 0.0, most = -INFINITY;
    for (int i = 0; i < head_dim; i++)
        out[i] = 0.0;
    for (int j = 0; j < keys; j++)
        most = fmax(most, twin_score(q, k + j * d, head_dim));
    for (int j = 0; j < keys; j++) {
        double e = exp(twin_score(q, k + j * d, head_dim) - most);
        sum += e;
        for (int i = 0; i < head_dim; i++)
            out[i] += e * v[j * d + i];
    }
    for (int i = 0; i < head_dim; i++)
        out[i] /= sum;
}

// torch.nn.MultiheadAttention
static inline double *twin_mha(struct twin *t, const double *q, int queries,
                               const double *k, const double *v, int keys, const char *p,
                               const char *name)
{
    char out[128];
    int d = t->f->dim_model, h = t->f->n_heads, hd = d / h;
    const double *w = twin_tensor(t, "%s%s.in_proj_weight", p, name);
    const double *b = twin_tensor(t, "%s%s.in_proj_bias", p, name);
    double *pq = twin_affine(t, q, queries, d, d, w, b, 0);
    double *pk = twin_affine(t, k, keys, d, d, w, b, d);
    double *pv = twin_affine(t, v, keys, d, d, w, b, 2 * d);
    double *mixed = twin_new(t, (size_t)queries * (size_t)d);
    for (int r = 0; r < queries; r++)
        for (int i = 0; i < h; i++)
            twin_head(pq + r * d + i * hd, pk + i * hd, pv + i * hd, keys, d, hd,
                      mixed + r * d + i * hd);
    snprintf(out, sizeof out, "%s%s.out_proj", p, name);
    return twin_linear(t, mixed, queries, d, d, out);
}

static inline double *twin_ffn(struct twin *t, const double *x, int rows, const char *p)
{
    char name[128];
    int d = t->f->dim_model, wide = t->f->dim_feedforward;
    snprintf(name, sizeof name, "%slinear1", p);
    double *h = twin_linear(t, x, rows, d, wide, name);
    for (int i = 0; i < rows * wide; i++)
        h[i] = t->f->gelu ? h[i] / 2 * (1 + erf(h[i] / sqrt(2.0))) : fmax(h[i], 0.0);
    snprintf(name, sizeof name, "%slinear2", p);
    return twin_linear(t, h, rows, wide, d, name);
}

static inline double *twin_encoder_layer(struct twin *t, double *x, const double *pos,
                                         int n, const char *p)
{
    if (t->f->pre_norm) {
        double *z = twin_norm(t, x, n, p, "norm1"), *qk = twin_add(t, z, pos, n);
        x = twin_add(t, x, twin_mha(t, qk, n, qk, z, n, p, "self_attn"), n);
        return twin_add(t, x, twin_ffn(t, twin_norm(t, x, n, p, "norm2"), n, p), n);
    }
    double *qk = twin_add(t, x, pos, n);
    x = twin_norm(t, twin_add(t, x, twin_mha(t, qk, n, qk, x, n, p, "self_attn"), n), n,
                  p, "norm1");
    return twin_norm(t, twin_add(t, x, twin_ffn(t, x, n, p), n), n, p, "norm2");
}

static inline double *twin_decoder_layer(struct twin *t, double *x, const double *query,
                                         const double *memory, const double *pos, int n,
                                         const char *p)
{
    int c = t->f->chunk_size;
    double *keys = twin_add(t, memory, pos, n);
    if (t->f->pre_norm) {
        double *z = twin_norm(t, x, c, p, "norm1"), *q = twin_add(t, z, query, c);
        x = twin_add(t, x, twin_mha(t, q, c, q, z, c, p, "self_attn"), c);
        q = twin_add(t, twin_norm(t, x, c, p, "norm2"), query, c);
        x = twin_add(t, x, twin_mha(t, q, c, keys, memory, n, p, "multihead_attn"), c);
        return twin_add(t, x, twin_ffn(t, twin_norm(t, x, c, p, "norm3"), c, p), c);
    }
    double *q = twin_add(t, x, query, c);
    x = twin_norm(t, twin_add(t, x, twin_mha(t, q, c, q, x, c, p, "self_attn"), c), c, p,
                  "norm1");
    q = twin_add(t, x, query, c);
    x = twin_norm(
        t, twin_add(t, x, twin_mha(t, q, c, keys, memory, n, p, "multihead_attn"), c), c,
        p, "norm2");
    return twin_norm(t, twin_add(t, x, twin_ffn(t, x, c, p), c), c, p, "norm3");
}

// ---- observation to actions -----------------------------------------------------------

// Normalised image (3, h, w) from interleaved RGB.
static inline struct twin_map twin_image(struct twin *t, int camera, const uint8_t *rgb)
{
    int h = t->f->camera[camera].height, w = t->f->camera[camera].width;
    struct twin_map m = {twin_new(t, 3 * (size_t)h * (size_t)w), 3, h, w};
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < h * w; i++)
            m.v[c * h * w + i] =
                (rgb[3 * i + c] / 255.0 - (double)act_fixture_mean("VISUAL", c)) /
                ((double)act_fixture_std(t->f, "VISUAL", c) + 1e-8);
    return m;
}

// Rows for one camera appended to tokens and pos, from row n on; returns the new n.
static inline int twin_camera(struct twin *t, struct twin_map image, double *tokens,
                              double *pos, int n)
{
    int d = t->f->dim_model, half = d / 2;
    struct twin_map m = twin_backbone(t, image);
    double *column = twin_new(t, (size_t)m.channels);
    for (int y = 0; y < m.h; y++)
        for (int x = 0; x < m.w; x++, n++) {
            for (int c = 0; c < m.channels; c++)
                column[c] = twin_pixel(&m, c, y, x);
            double *token = twin_linear(t, column, 1, m.channels, d,
                                        "model.encoder_img_feat_input_proj");
            memcpy(tokens + n * d, token, (size_t)d * sizeof *token);
            for (int i = 0; i < half; i++) {
                double f = pow(10000.0, (double)(i / 2 * 2) / half);
                double ay = 2 * acos(-1.0) * (y + 1) / (m.h + 1e-6) / f;
                double ax = 2 * acos(-1.0) * (x + 1) / (m.w + 1e-6) / f;
                pos[n * d + i] = i % 2 ? cos(ay) : sin(ay);
                pos[n * d + half + i] = i % 2 ? cos(ax) : sin(ax);
            }
        }
    return n;
}

static inline int twin_vector(struct twin *t, const double *x, int width,
                              const char *name, double *tokens, int n)
{
    int d = t->f->dim_model;
    double *token = twin_linear(t, x, 1, width, d, name);
    memcpy(tokens + n * d, token, (size_t)d * sizeof *token);
    return n + 1;
}

// Tokens and positions, room for 1024 rows each; returns how many.
static inline int twin_embed(struct twin *t, const uint8_t *const *rgb,
                             const float *state, const float *env, double *tokens,
                             double *pos)
{
    const struct act_fixture *f = t->f;
    double *latent = twin_new(t, (size_t)f->latent_dim), in[64];
    int n = twin_vector(t, latent, f->latent_dim, "model.encoder_latent_input_proj",
                        tokens, 0);
    for (int i = 0; i < f->state_dim; i++)
        in[i] = ((double)state[i] - (double)act_fixture_mean("STATE", i)) /
                ((double)act_fixture_std(f, "STATE", i) + 1e-8);
    if (f->state_dim)
        n = twin_vector(t, in, f->state_dim, "model.encoder_robot_state_input_proj",
                        tokens, n);
    for (int i = 0; i < f->env_dim; i++)
        in[i] = (double)env[i];
    if (f->env_dim)
        n = twin_vector(t, in, f->env_dim, "model.encoder_env_state_input_proj", tokens,
                        n);
    memcpy(pos, twin_tensor(t, "model.encoder_1d_feature_pos_embed.weight"),
           (size_t)n * (size_t)f->dim_model * sizeof *pos);
    for (int i = 0; i < f->n_cameras; i++)
        n = twin_camera(t, twin_image(t, i, rgb[i]), tokens, pos, n);
    return n;
}

// Normalised actions (chunk_size, action_dim), the caller's to free.
static inline double *act_twin(const struct act_fixture *f, const uint8_t *const *rgb,
                               const float *state, const float *env)
{
    struct twin t = {.f = f, .list = act_fixture_tensors(f)};
    char p[64];
    size_t d = (size_t)f->dim_model;
    double *x = twin_new(&t, 1024 * d), *pos = twin_new(&t, 1024 * d);
    int n = twin_embed(&t, rgb, state, env, x, pos), c = f->chunk_size;
    for (int i = 0; i < f->n_encoder_layers; i++) {
        snprintf(p, sizeof p, "model.encoder.layers.%d.", i);
        x = twin_encoder_layer(&t, x, pos, n, p);
    }
    if (f->pre_norm)
        x = twin_norm(&t, x, n, "model.encoder.", "norm");
    double *query = twin_tensor(&t, "model.decoder_pos_embed.weight");
    double *y = twin_new(&t, (size_t)c * d);
    for (int i = 0; i < f->n_decoder_layers; i++) {
        snprintf(p, sizeof p, "model.decoder.layers.%d.", i);
        y = twin_decoder_layer(&t, y, query, x, pos, n, p);
    }
    y = twin_norm(&t, y, c, "model.decoder.", "norm");
    double *head =
        twin_linear(&t, y, c, f->dim_model, f->action_dim, "model.action_head");
    size_t bytes = (size_t)c * (size_t)f->action_dim * sizeof *head;
    double *actions = malloc(bytes);
    memcpy(actions, head, bytes);
    for (int i = 0; i < t.n_owned; i++)
        free(t.owned[i]);
    free(t.list);
    return actions;
}

#endif
