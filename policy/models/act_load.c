// The part of act that runs once: sizes, places of the tensors, and what no observation
// changes.
#include "policy/models/act.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "policy/refuse.h"

// Bounds far above any trained model, low enough that no product of two overflows an int.
#define MAX_SIZE   16384 // dim, image sides, vectors
#define MAX_WIDE   65536 // feed-forward, chunk
#define MAX_TOKENS 1048576

// ---- sizes ----------------------------------------------------------------------------

struct bound {
    const char *name;
    int value, min, max;
};

static int check_bounds(const struct act_config *c, struct policy_error *err)
{
    const struct bound bounds[] = {
        {"chunk_size", c->chunk, 1, MAX_WIDE},
        {"dim_model", c->dim, 1, MAX_SIZE},
        {"n_heads", c->heads, 1, MAX_SIZE},
        {"dim_feedforward", c->feedforward, 1, MAX_WIDE},
        {"n_encoder_layers", c->n_encoder_layers, 0, ACT_MAX_LAYERS},
        {"n_decoder_layers", c->n_decoder_layers, 1, ACT_MAX_LAYERS},
        {"latent_dim", c->latent_dim, 1, MAX_SIZE},
        {"the width of observation.state", c->state_dim, 0, MAX_SIZE},
        {"the width of observation.environment_state", c->env_dim, 0, MAX_SIZE},
        {"the width of action", c->action_dim, 1, MAX_SIZE},
        {"the number of cameras", c->n_cameras, 0, POLICY_MAX_CAMERAS},
    };
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (bounds[i].value < bounds[i].min || bounds[i].value > bounds[i].max)
            return refuse(err, EINVAL,
                          "%s is %d, and only %d to %d can be run: check config.json",
                          bounds[i].name, bounds[i].value, bounds[i].min, bounds[i].max);
    if (c->dim % c->heads)
        return refuse(err, EINVAL,
                      "dim_model %d is not a multiple of n_heads %d: check config.json",
                      c->dim, c->heads);
    if (c->n_cameras && c->dim % 4)
        return refuse(
            err, EINVAL,
            "dim_model %d is not a multiple of 4, which the position embedding of "
            "images needs: check config.json",
            c->dim);
    return 0;
}

static int copy_cameras(struct act_config *c, const struct lerobot_checkpoint *ckpt,
                        struct policy_error *err)
{
    for (int i = 0; i < c->n_cameras; i++) {
        const struct lerobot_camera *from = &ckpt->camera[i];
        if (from->height < 1 || from->height > MAX_SIZE || from->width < 1 ||
            from->width > MAX_SIZE)
            return refuse(
                err, EINVAL,
                "the shape of %s is %dx%d, and sides of 1 to %d pixels can be run: "
                "check config.json",
                from->key, from->height, from->width, MAX_SIZE);
        c->camera[i] = (struct act_camera){.height = from->height, .width = from->width};
    }
    return 0;
}

int act_configure(struct act *m, const struct lerobot_checkpoint *ckpt, int workers,
                  struct policy_error *err)
{
    const struct lerobot_act *a = &ckpt->act;
    struct act_config *c = &m->c;
    *c = (struct act_config){.chunk = a->chunk_size,
                             .dim = a->dim_model,
                             .heads = a->n_heads,
                             .feedforward = a->dim_feedforward,
                             .n_encoder_layers = a->n_encoder_layers,
                             .n_decoder_layers = a->n_decoder_layers,
                             .latent_dim = a->latent_dim,
                             .state_dim = ckpt->state_dim,
                             .env_dim = ckpt->env_dim,
                             .action_dim = ckpt->action_dim,
                             .pre_norm = a->pre_norm,
                             .depth = a->depth,
                             .dilation = a->dilation,
                             .n_cameras = ckpt->n_cameras,
                             .workers = workers};
    c->activation = a->activation == LEROBOT_GELU ? ACTIVATION_GELU : ACTIVATION_RELU;
    c->state_token = 1;
    c->env_token = 1 + (c->state_dim > 0);
    c->vector_tokens = c->env_token + (c->env_dim > 0);
    int rc = check_bounds(c, err);
    return rc ? rc : copy_cameras(c, ckpt, err);
}

// Gives every camera its rows of the token matrix; needs the backbone's geometry.
static void place_tokens(struct act *m, struct build *b)
{
    struct act_config *c = &m->c;
    long tokens = c->vector_tokens;
    for (int i = 0; i < c->n_cameras; i++) {
        struct act_camera *cam = &c->camera[i];
        resnet_feature_size(&m->w.backbone, cam->height, cam->width, &cam->feature_height,
                            &cam->feature_width);
        cam->first_token = (int)tokens;
        tokens += (long)cam->feature_height * cam->feature_width;
        if (tokens > MAX_TOKENS) {
            build_refuse(b,
                         "the images make more than %d tokens: check their shapes in "
                         "config.json",
                         MAX_TOKENS);
            tokens = c->vector_tokens;
        }
    }
    c->tokens = (int)tokens;
}

// ---- places of the tensors ------------------------------------------------------------

// Rows [from, from + rows) of a packed projection, with their bias.
static struct linear rows_of(const struct linear *l, int from, int rows)
{
    struct linear part = {.in = l->in, .out = rows};
    if (l->weight) { // NULL while measuring
        part.weight = l->weight + (size_t)from * (size_t)l->in;
        part.bias = l->bias + from;
    }
    return part;
}

static void build_attention(struct build *b, struct act_attention *a, int d,
                            const char *layer, const char *name)
{
    a->qkv = (struct linear){.in = d, .out = 3 * d};
    a->qkv.weight =
        build_tensor(b, 2, (int[]){3 * d, d}, "%s.%s.in_proj_weight", layer, name);
    a->qkv.bias = build_tensor(b, 1, (int[]){3 * d}, "%s.%s.in_proj_bias", layer, name);
    a->q = rows_of(&a->qkv, 0, d);
    a->qk = rows_of(&a->qkv, 0, 2 * d);
    a->kv = rows_of(&a->qkv, d, 2 * d);
    build_linear(b, &a->out, d, d, "%s.%s.out_proj", layer, name);
}

static void build_encoder_layer(struct act *m, struct build *b, int i)
{
    struct act_encoder_layer *l = &m->w.encoder[i];
    char layer[64];
    int d = m->c.dim, f = m->c.feedforward;
    snprintf(layer, sizeof layer, "model.encoder.layers.%d", i);
    build_attention(b, &l->self, d, layer, "self_attn");
    build_linear(b, &l->linear1, f, d, "%s.linear1", layer);
    build_linear(b, &l->linear2, d, f, "%s.linear2", layer);
    build_layer_norm(b, &l->norm1, d, "%s.norm1", layer);
    build_layer_norm(b, &l->norm2, d, "%s.norm2", layer);
    l->self_pos = arena_floats(b->arena, (size_t)m->c.tokens * 2 * (size_t)d);
}

static void build_decoder_layer(struct act *m, struct build *b, int i)
{
    struct act_decoder_layer *l = &m->w.decoder[i];
    char layer[64];
    int d = m->c.dim, f = m->c.feedforward;
    snprintf(layer, sizeof layer, "model.decoder.layers.%d", i);
    build_attention(b, &l->self, d, layer, "self_attn");
    build_attention(b, &l->cross, d, layer, "multihead_attn");
    build_linear(b, &l->linear1, f, d, "%s.linear1", layer);
    build_linear(b, &l->linear2, d, f, "%s.linear2", layer);
    build_layer_norm(b, &l->norm1, d, "%s.norm1", layer);
    build_layer_norm(b, &l->norm2, d, "%s.norm2", layer);
    build_layer_norm(b, &l->norm3, d, "%s.norm3", layer);
    l->self_pos = arena_floats(b->arena, (size_t)m->c.chunk * 2 * (size_t)d);
    l->cross_q_pos = arena_floats(b->arena, (size_t)m->c.chunk * (size_t)d);
    l->cross_k_pos = arena_floats(b->arena, (size_t)m->c.tokens * (size_t)d);
}

static void build_inputs(struct act *m, struct build *b)
{
    struct act_weights *w = &m->w;
    int d = m->c.dim;
    if (m->c.n_cameras) {
        resnet_build(&w->backbone, b, m->c.depth, m->c.dilation, "model.backbone.");
        w->image_proj = (struct linear){.in = w->backbone.channels, .out = d};
        w->image_proj.weight = build_tensor(b, 4, (int[]){d, w->backbone.channels, 1, 1},
                                            "model.encoder_img_feat_input_proj.weight");
        w->image_proj.bias =
            build_tensor(b, 1, &d, "model.encoder_img_feat_input_proj.bias");
    }
    if (m->c.state_dim)
        build_linear(b, &w->state_proj, d, m->c.state_dim,
                     "model.encoder_robot_state_input_proj");
    if (m->c.env_dim)
        build_linear(b, &w->env_proj, d, m->c.env_dim,
                     "model.encoder_env_state_input_proj");
    w->latent_token = build_tensor(b, 1, &d, "model.encoder_latent_input_proj.bias");
    w->vector_pos = build_tensor(b, 2, (int[]){m->c.vector_tokens, d},
                                 "model.encoder_1d_feature_pos_embed.weight");
}

void act_build_weights(struct act *m, struct build *b)
{
    struct act_weights *w = &m->w;
    int d = m->c.dim;
    size_t queries = (size_t)m->c.chunk * (size_t)d;
    build_inputs(m, b);
    if (b->rc)
        return;
    place_tokens(m, b);
    for (int i = 0; i < m->c.n_encoder_layers; i++)
        build_encoder_layer(m, b, i);
    for (int i = 0; i < m->c.n_decoder_layers; i++)
        build_decoder_layer(m, b, i);
    if (m->c.pre_norm)
        build_layer_norm(b, &w->encoder_norm, d, "model.encoder.norm");
    build_layer_norm(b, &w->decoder_norm, d, "model.decoder.norm");
    w->query_pos =
        build_tensor(b, 2, (int[]){m->c.chunk, d}, "model.decoder_pos_embed.weight");
    build_linear(b, &w->head, m->c.action_dim, d, "model.action_head");
    w->start_x = arena_floats(b->arena, queries);
    w->start_query = arena_floats(b->arena, queries);
}

static void build_backbone_state(struct act *m, struct build *b)
{
    struct resnet_state *s = &m->s.backbone;
    size_t pixels = 0;
    *s = (struct resnet_state){0};
    for (int i = 0; i < m->c.n_cameras; i++) {
        const struct act_camera *cam = &m->c.camera[i];
        size_t here = (size_t)cam->feature_height * (size_t)cam->feature_width;
        pixels = here > pixels ? here : pixels;
        resnet_plan(&m->w.backbone, cam->height, cam->width, s);
        m->s.planes[i] =
            arena_floats(b->arena, 3 * (size_t)cam->height * (size_t)cam->width);
    }
    s->pixels = arena_floats(b->arena, s->pixel_floats);
    for (int i = 0; i < 4; i++)
        s->map[i] = arena_floats(b->arena, i == 1 ? s->stem_floats : s->map_floats);
    m->s.features = arena_floats(b->arena, pixels * (size_t)m->w.backbone.channels);
}

void act_build_state(struct act *m, struct build *b)
{
    struct act_state *s = &m->s;
    struct arena *a = b->arena;
    size_t d = (size_t)m->c.dim, tokens = (size_t)m->c.tokens, chunk = (size_t)m->c.chunk;
    size_t rows = tokens > chunk ? tokens : chunk;
    build_backbone_state(m, b);
    s->state = arena_floats(a, (size_t)m->c.state_dim);
    s->env = arena_floats(a, (size_t)m->c.env_dim);
    s->x = arena_floats(a, tokens * d);
    s->y = arena_floats(a, chunk * d);
    s->normed = arena_floats(a, rows * d);
    s->qkv = arena_floats(a, rows * 3 * d);
    s->query = arena_floats(a, chunk * d);
    s->kv = arena_floats(a, tokens * 2 * d);
    s->mixed = arena_floats(a, rows * d);
    s->hidden = arena_floats(a, rows * (size_t)m->c.feedforward);
    s->actions = arena_floats(a, chunk * (size_t)m->c.action_dim);
    s->scratch_floats = attention_score_floats((int)rows);
    if (s->backbone.tile_floats > s->scratch_floats)
        s->scratch_floats = s->backbone.tile_floats;
    s->scratch = arena_take(a, (size_t)m->c.workers, s->scratch_floats * sizeof(float));
    s->backbone.tiles = s->scratch;
    s->backbone.tile_floats = s->scratch_floats;
}

// ---- what no observation changes ------------------------------------------------------

// n sines and cosines of one coordinate, `at` of `extent`: the coordinate runs from just
// above 0 to 2 pi, pair j turns at 10000^(-2j/n). In double; torch computes the same in
// float32, which differs by less than 1e-6.
static void sine_embedding(int at, int extent, int n, const double *period, float *out)
{
    const double two_pi = 6.283185307179586;
    double angle = two_pi * (at + 1) / (extent + 1e-6);
    for (int j = 0; j < n / 2; j++) {
        double a = angle / period[j];
        out[2 * j] = (float)sin(a);
        out[2 * j + 1] = (float)cos(a);
    }
}

// P (S, D): learned rows for the vectors; for a pixel its y in the first half, x in the
// second.
static void fill_positions(const struct act *m, float *p)
{
    size_t d = (size_t)m->c.dim;
    double period[MAX_SIZE / 4]; // the same for all pixels: pow was half of the work
    int n = m->c.dim / 2;
    for (int j = 0; j < n / 2; j++)
        period[j] = pow(10000.0, 2.0 * j / n);
    memcpy(p, m->w.vector_pos, (size_t)m->c.vector_tokens * d * sizeof *p);
    for (int i = 0; i < m->c.n_cameras; i++) {
        const struct act_camera *cam = &m->c.camera[i];
        float *row = p + (size_t)cam->first_token * d;
        for (int y = 0; y < cam->feature_height; y++)
            for (int x = 0; x < cam->feature_width; x++, row += d) {
                sine_embedding(y, cam->feature_height, n, period, row);
                sine_embedding(x, cam->feature_width, n, period, row + d / 2);
            }
    }
}

// positions (rows, D) times the weights of l, without its bias, which linear_run adds
// itself
static void make_table(struct pool *pool, const struct linear *l, const float *positions,
                       int rows, float *table)
{
    struct linear no_bias = *l;
    no_bias.bias = NULL;
    linear_run(pool, &no_bias, positions, rows, table, (struct linear_extra){0});
}

void act_prepare(struct act *m, struct pool *pool)
{
    struct act_weights *w = &m->w;
    float *p = m->s.normed; // free until the first forward
    fill_positions(m, p);
    for (int i = 0; i < m->c.n_encoder_layers; i++)
        make_table(pool, &w->encoder[i].self.qk, p, m->c.tokens, w->encoder[i].self_pos);
    for (int i = 0; i < m->c.n_decoder_layers; i++) {
        struct act_decoder_layer *l = &w->decoder[i];
        struct linear k = rows_of(&l->cross.qkv, m->c.dim, m->c.dim);
        make_table(pool, &k, p, m->c.tokens, l->cross_k_pos);
        make_table(pool, &l->cross.q, w->query_pos, m->c.chunk, l->cross_q_pos);
        make_table(pool, &l->self.qk, w->query_pos, m->c.chunk, l->self_pos);
    }
    act_prepare_decoder(m, pool);
}
