#include "policy/models/act.h"

#include <string.h>

// Naming: P is the position embedding of the encoder's tokens, Q that of the decoder's
// queries. Attention adds it to the inputs of query and key, never to those of value: (x
// + P) Wq = x Wq + P Wq, and P Wq is a table (act_load.c).

static const struct linear_extra plain = {0};

// ---- attention and feed-forward, common to encoder and decoder ------------------------

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
                          .scores = m->s.scratch,
                          .score_floats = m->s.scratch_floats};
    attention_run(pool, &a);
    linear_run(pool, &w->out, m->s.mixed, queries, x,
               (struct linear_extra){.accumulate = true});
}

// x += SA(q = in + P, k = in + P, v = in), P through its table
static void self_attention(struct act *m, struct pool *pool,
                           const struct act_attention *w, const float *in,
                           const float *table, int rows, float *x)
{
    int d = m->c.dim;
    linear_run(pool, &w->qkv, in, rows, m->s.qkv,
               (struct linear_extra){.table = table, .table_cols = 2 * d});
    struct attention_view q = {m->s.qkv, 3 * d}, k = {m->s.qkv + d, 3 * d},
                          v = {m->s.qkv + 2 * d, 3 * d};
    attend(m, pool, w, q, rows, k, v, rows, x);
}

// x += linear2(f(linear1(in)))
static void feed_forward(struct act *m, struct pool *pool, const struct linear *linear1,
                         const struct linear *linear2, const float *in, int rows,
                         float *x)
{
    linear_run(pool, linear1, in, rows, m->s.hidden,
               (struct linear_extra){.f = m->c.activation});
    linear_run(pool, linear2, m->s.hidden, rows, x,
               (struct linear_extra){.accumulate = true});
}

// The input of a sublayer: norm(x) before it in a pre-norm model, else x itself.
static const float *before(struct act *m, struct pool *pool, const struct layer_norm *n,
                           const float *x, int rows)
{
    if (!m->c.pre_norm)
        return x;
    layer_norm_run(pool, n, x, rows, m->s.normed);
    return m->s.normed;
}

// The output of a sublayer: norm(x) after it in a post-norm model.
static void after(struct act *m, struct pool *pool, const struct layer_norm *n, float *x,
                  int rows)
{
    if (!m->c.pre_norm)
        layer_norm_run(pool, n, x, rows, x);
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

static void embed_camera(struct act *m, struct pool *pool, int i)
{
    const struct act_camera *cam = &m->c.camera[i];
    float *tokens = m->s.x + (size_t)cam->first_token * (size_t)m->c.dim;
    resnet_forward(&m->w.backbone, &m->s.backbone, pool, m->s.planes[i], cam->height,
                   cam->width, m->s.features);
    linear_run(pool, &m->w.image_proj, m->s.features,
               cam->feature_height * cam->feature_width, tokens, plain);
}

// Token order: latent, state, env, then the cameras as configured.
static void embed(struct act *m, struct pool *pool)
{
    size_t d = (size_t)m->c.dim;
    memcpy(m->s.x, m->w.latent_token, d * sizeof *m->s.x);
    if (m->c.state_dim)
        linear_run(pool, &m->w.state_proj, m->s.state, 1,
                   m->s.x + (size_t)m->c.state_token * d, plain);
    if (m->c.env_dim)
        linear_run(pool, &m->w.env_proj, m->s.env, 1, m->s.x + (size_t)m->c.env_token * d,
                   plain);
    for (int i = 0; i < m->c.n_cameras; i++)
        embed_camera(m, pool, i);
}

static void encode(struct act *m, struct pool *pool)
{
    embed(m, pool);
    for (int i = 0; i < m->c.n_encoder_layers; i++)
        encoder_layer(m, pool, &m->w.encoder[i]);
    if (m->c.pre_norm)
        layer_norm_run(pool, &m->w.encoder_norm, m->s.x, m->c.tokens, m->s.x);
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
    linear_run(pool, &w->cross.q, in, rows, m->s.query,
               (struct linear_extra){.table = w->cross_q_pos, .table_cols = m->c.dim});
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
                           const struct act_decoder_layer *w, const float *query)
{
    int rows = m->c.chunk, d = m->c.dim;
    float *y = m->s.y;
    linear_run(pool, &w->cross.kv, m->s.x, m->c.tokens, m->s.kv,
               (struct linear_extra){.table = w->cross_k_pos, .table_cols = d});
    struct attention_view q = {query, d}, k = {m->s.kv, 2 * d}, v = {m->s.kv + d, 2 * d};
    attend(m, pool, &w->cross, q, rows, k, v, m->c.tokens, y);
    after(m, pool, &w->norm2, y, rows);
    const float *in = before(m, pool, &w->norm3, y, rows);
    feed_forward(m, pool, &w->linear1, &w->linear2, in, rows, y);
    after(m, pool, &w->norm3, y, rows);
}

static void decode(struct act *m, struct pool *pool)
{
    size_t n = (size_t)m->c.chunk * (size_t)m->c.dim;
    memcpy(m->s.y, m->w.start_x, n * sizeof *m->s.y);
    decoder_memory(m, pool, &m->w.decoder[0], m->w.start_query);
    for (int i = 1; i < m->c.n_decoder_layers; i++) {
        decoder_query(m, pool, &m->w.decoder[i]);
        decoder_memory(m, pool, &m->w.decoder[i], m->s.query);
    }
    layer_norm_run(pool, &m->w.decoder_norm, m->s.y, m->c.chunk, m->s.y);
    linear_run(pool, &m->w.head, m->s.y, m->c.chunk, m->s.actions, plain);
}

void act_forward(struct act *m, struct pool *pool)
{
    encode(m, pool);
    decode(m, pool);
}
