#include "policy/models/act.h"

#include <string.h>

// Naming: P is the position embedding of the encoder's tokens, Q that of the decoder's
// queries. Attention adds it to the inputs of query and key, never to those of value: (x
// + P) Wq = x Wq + P Wq, and P Wq is a table (act_load.c).

static const struct linear_extra plain = {0};

// ---- attention and feed-forward, common to encoder and decoder ------------------------

// The two kernels that the rest is made of, and what a profile calls them.
static void linear(struct act *m, struct pool *pool, const char *what,
                   const struct linear *l, const float *x, int rows, float *y,
                   struct linear_extra extra)
{
    linear_run(pool, l, x, rows, y, extra);
    profile_linear(m->profile, what, l, rows);
}

static void norm(struct act *m, struct pool *pool, const char *what,
                 const struct layer_norm *n, const float *x, int rows, float *y)
{
    layer_norm_run(pool, n, x, rows, y);
    profile_other(m->profile, what);
}

// x += out_proj(attention(q, k, v))
static void attend(struct act *m, struct pool *pool, const struct act_attention *w,
                   struct attention_view q, int queries, struct attention_view k,
                   struct attention_view v, int keys, float *x)
{
    struct attention a = {.heads = m->c.heads,
                          .head_dim = m->c.dim / m->c.heads,
                          .queries = queries,
                          .keys = keys,
                          .q = q,
                          .k = k,
                          .v = v,
                          .out = m->s.mixed,
                          .scratch = m->s.scratch,
                          .scratch_floats = m->s.scratch_floats};
    attention_run(pool, &a);
    profile_attention(m->profile, &a);
    linear(m, pool, "out", &w->out, m->s.mixed, queries, x,
           (struct linear_extra){.accumulate = true});
}

// x += SA(q = in + P, k = in + P, v = in), P through its table
static void self_attention(struct act *m, struct pool *pool,
                           const struct act_attention *w, const float *in,
                           const float *table, int rows, float *x)
{
    int d = m->c.dim, stride = act_stride(3 * d);
    linear(m, pool, "qkv", &w->qkv, in, rows, m->s.qkv,
           (struct linear_extra){.table = table,
                                 .table_cols = 2 * d,
                                 .table_stride = act_stride(2 * d),
                                 .y_stride = stride});
    struct attention_view q = {m->s.qkv, stride}, k = {m->s.qkv + d, stride},
                          v = {m->s.qkv + 2 * d, stride};
    attend(m, pool, w, q, rows, k, v, rows, x);
}

// x += linear2(f(linear1(in)))
static void feed_forward(struct act *m, struct pool *pool, const struct linear *linear1,
                         const struct linear *linear2, const float *in, int rows,
                         float *x)
{
    linear(m, pool, "linear1", linear1, in, rows, m->s.hidden,
           (struct linear_extra){.f = m->c.activation});
    linear(m, pool, "linear2", linear2, m->s.hidden, rows, x,
           (struct linear_extra){.accumulate = true});
}

// The input of a sublayer: norm(x) before it in a pre-norm model, else x itself.
static const float *before(struct act *m, struct pool *pool, const struct layer_norm *n,
                           const float *x, int rows)
{
    if (!m->c.pre_norm)
        return x;
    norm(m, pool, "norm", n, x, rows, m->s.normed);
    return m->s.normed;
}

// The output of a sublayer: norm(x) after it in a post-norm model.
static void after(struct act *m, struct pool *pool, const struct layer_norm *n, float *x,
                  int rows)
{
    if (!m->c.pre_norm)
        norm(m, pool, "norm", n, x, rows, x);
}

// ---- encoder --------------------------------------------------------------------------

static void encoder_layer(struct act *m, struct pool *pool,
                          const struct act_encoder_layer *w)
{
    int rows = m->c.tokens;
    float *x = m->s.x;
    const float *in = before(m, pool, &w->norm1, x, rows);
    self_attention(m, pool, &w->self, in, w->self_pos, rows, x);
    after(m, pool, &w->norm1, x, rows);
    in = before(m, pool, &w->norm2, x, rows);
    feed_forward(m, pool, &w->linear1, &w->linear2, in, rows, x);
    after(m, pool, &w->norm2, x, rows);
}

static int pixels(const struct act_camera *cam)
{
    return cam->feature_height * cam->feature_width;
}

void act_see(struct act *m, struct pool *pool, int camera)
{
    profile_part(m->profile, "backbone", "image", camera + 1);
    resnet_forward(&m->w.backbone, &m->s.backbone, pool, &m->s.image[camera],
                   m->s.features);
    profile_part(m->profile, "tokens", "image", camera + 1);
    linear(m, pool, "1x1", &m->w.image_proj, m->s.features, pixels(&m->c.camera[camera]),
           m->s.tokens[camera], plain);
}

// Into their rows: the encoder works in place, and the next inference may need them again. 2.4 MB
// with four cameras of 640x480, 0.3 ms of one core's 1 s.
static void embed_camera(struct act *m, int i)
{
    const struct act_camera *cam = &m->c.camera[i];
    size_t d = (size_t)m->c.dim;
    memcpy(m->s.x + (size_t)cam->first_token * d, m->s.tokens[i],
           (size_t)pixels(cam) * d * sizeof(float));
}

// Token order: latent, state, env, then the cameras as configured.
static void embed(struct act *m, struct pool *pool)
{
    size_t d = (size_t)m->c.dim;
    profile_part(m->profile, "tokens", "", -1);
    memcpy(m->s.x, m->w.latent_token, d * sizeof *m->s.x);
    if (m->c.state_dim)
        linear(m, pool, "state", &m->w.state_proj, m->s.state, 1,
               m->s.x + (size_t)m->c.state_token * d, plain);
    if (m->c.env_dim)
        linear(m, pool, "environment", &m->w.env_proj, m->s.env, 1,
               m->s.x + (size_t)m->c.env_token * d, plain);
    for (int i = 0; i < m->c.n_cameras; i++)
        embed_camera(m, i);
    profile_other(m->profile, "embed");
}

static void encode(struct act *m, struct pool *pool)
{
    embed(m, pool);
    for (int i = 0; i < m->c.n_encoder_layers; i++) {
        profile_part(m->profile, "encoder", "encoder", i + 1);
        encoder_layer(m, pool, &m->w.encoder[i]);
    }
    if (m->c.pre_norm)
        norm(m, pool, "norm", &m->w.encoder_norm, m->s.x, m->c.tokens, m->s.x);
}

// ---- decoder --------------------------------------------------------------------------

// y through self attention, then the cross attention's query from it: the half of a
// decoder layer that sees no memory. In the first layer y is 0 and this is done once, at
// load.
static void decoder_query(struct act *m, struct pool *pool,
                          const struct act_decoder_layer *w)
{
    int rows = m->c.chunk;
    float *y = m->s.y;
    const float *in = before(m, pool, &w->norm1, y, rows);
    self_attention(m, pool, &w->self, in, w->self_pos, rows, y);
    after(m, pool, &w->norm1, y, rows);
    in = before(m, pool, &w->norm2, y, rows);
    linear(m, pool, "cross q", &w->cross.q, in, rows, m->s.query,
           (struct linear_extra){.table = w->cross_q_pos,
                                 .table_cols = m->c.dim,
                                 .table_stride = act_stride(m->c.dim)});
}

void act_prepare_decoder(struct act *m, struct pool *pool)
{
    size_t bytes = (size_t)m->c.chunk * (size_t)m->c.dim * sizeof(float);
    memset(m->s.y, 0, bytes);
    decoder_query(m, pool, &m->w.decoder[0]);
    memcpy(m->w.start_x, m->s.y, bytes);
    memcpy(m->w.start_query, m->s.query, bytes);
}

// The other half: y looks at the encoder's memory m->s.x, then feed-forward.
static void decoder_memory(struct act *m, struct pool *pool,
                           const struct act_decoder_layer *w, const float *query,
                           int rows)
{
    int d = m->c.dim, stride = act_stride(2 * d);
    float *y = m->s.y;
    linear(m, pool, "cross kv", &w->cross.kv, m->s.x, m->c.tokens, m->s.kv,
           (struct linear_extra){.table = w->cross_k_pos,
                                 .table_cols = d,
                                 .table_stride = act_stride(d),
                                 .y_stride = stride});
    struct attention_view q = {query, d}, k = {m->s.kv, stride},
                          v = {m->s.kv + d, stride};
    attend(m, pool, &w->cross, q, rows, k, v, m->c.tokens, y);
    after(m, pool, &w->norm2, y, rows);
    const float *in = before(m, pool, &w->norm3, y, rows);
    feed_forward(m, pool, &w->linear1, &w->linear2, in, rows, y);
    after(m, pool, &w->norm3, y, rows);
}

// Behind the last layer's self attention no row looks at another. 10 rows instead of 100 save 1.9 %
// of an inference of one 640x480 camera; 10 instead of 50, 6 % of the small network's (96x96, D 256).
static int rows_behind(const struct act *m, int layer)
{
    return layer == m->c.n_decoder_layers - 1 ? m->c.rows : m->c.chunk;
}

static void decode(struct act *m, struct pool *pool)
{
    size_t n = (size_t)m->c.chunk * (size_t)m->c.dim;
    profile_part(m->profile, "decoder", "decoder", 1);
    memcpy(m->s.y, m->w.start_x, n * sizeof *m->s.y);
    decoder_memory(m, pool, &m->w.decoder[0], m->w.start_query, rows_behind(m, 0));
    for (int i = 1; i < m->c.n_decoder_layers; i++) {
        profile_part(m->profile, "decoder", "decoder", i + 1);
        decoder_query(m, pool, &m->w.decoder[i]);
        decoder_memory(m, pool, &m->w.decoder[i], m->s.query, rows_behind(m, i));
    }
    profile_part(m->profile, "head", "", -1);
    norm(m, pool, "norm", &m->w.decoder_norm, m->s.y, m->c.rows, m->s.y);
    linear(m, pool, "head", &m->w.head, m->s.y, m->c.rows, m->s.actions, plain);
}

void act_forward(struct act *m, struct pool *pool)
{
    encode(m, pool);
    decode(m, pool);
}
