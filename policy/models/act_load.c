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
                             .rows = a->chunk_size,
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

// Of layers whose rows have passed no norm: the features of images, and the tokens as they are
// embedded. Few columns of these are large, and one scale in 8 bits serves them alone. In 8 bits
// query, key and value of the first layer put the shipped policy's actions off by 6 % of their
// standard deviation, the projection of the features (where x86 has no dot product of bytes) by
// 25 %; all others together by 2 or 3 %. They are 6 % of the multiplications between tokens.
static enum precision raw(enum precision p)
{
    return p == PRECISION_INT8 ? PRECISION_FLOAT32 : p;
}

static void build_self(struct build *b, struct act_attention *a, int d, enum precision in,
                       enum precision p, const char *layer)
{
    build_matrix(b, &a->qkv, 3 * d, d, in);
    build_parts(b, 2, (int[]){3 * d, d}, 1, &(struct build_part){&a->qkv, 0, 0, 3 * d},
                "%s.self_attn.in_proj_weight", layer);
    a->qkv.bias = build_tensor(b, 1, (int[]){3 * d}, "%s.self_attn.in_proj_bias", layer);
    build_linear(b, &a->out, d, d, p, "%s.self_attn.out_proj", layer);
}

static void build_cross(struct build *b, struct act_attention *a, int d, enum precision p,
                        const char *layer)
{
    build_matrix(b, &a->q, d, d, p);
    build_matrix(b, &a->kv, 2 * d, d, p);
    const struct build_part parts[] = {{&a->q, 0, 0, d}, {&a->kv, 0, d, 2 * d}};
    build_parts(b, 2, (int[]){3 * d, d}, 2, parts, "%s.multihead_attn.in_proj_weight",
                layer);
    a->q.bias =
        build_tensor(b, 1, (int[]){3 * d}, "%s.multihead_attn.in_proj_bias", layer);
    a->kv.bias = a->q.bias ? a->q.bias + d : NULL; // NULL while measuring
    build_linear(b, &a->out, d, d, p, "%s.multihead_attn.out_proj", layer);
}

static void build_encoder_layer(struct act *m, struct build *b, int i)
{
    struct act_encoder_layer *l = &m->w.encoder[i];
    char layer[64];
    int d = m->c.dim, f = m->c.feedforward;
    enum precision p = m->c.precision;
    snprintf(layer, sizeof layer, "model.encoder.layers.%d", i);
    build_self(b, &l->self, d, i == 0 && !m->c.pre_norm ? raw(p) : p, p, layer);
    build_linear(b, &l->linear1, f, d, p, "%s.linear1", layer);
    build_linear(b, &l->linear2, d, f, p, "%s.linear2", layer);
    build_layer_norm(b, &l->norm1, d, "%s.norm1", layer);
    build_layer_norm(b, &l->norm2, d, "%s.norm2", layer);
}

static void build_decoder_layer(struct act *m, struct build *b, int i)
{
    struct act_decoder_layer *l = &m->w.decoder[i];
    char layer[64];
    int d = m->c.dim, f = m->c.feedforward;
    enum precision p = m->c.precision;
    snprintf(layer, sizeof layer, "model.decoder.layers.%d", i);
    build_self(b, &l->self, d, p, p, layer);
    build_cross(b, &l->cross, d, p, layer);
    build_linear(b, &l->linear1, f, d, p, "%s.linear1", layer);
    build_linear(b, &l->linear2, d, f, p, "%s.linear2", layer);
    build_layer_norm(b, &l->norm1, d, "%s.norm1", layer);
    build_layer_norm(b, &l->norm2, d, "%s.norm2", layer);
    build_layer_norm(b, &l->norm3, d, "%s.norm3", layer);
}

static void image_sizes(const struct act *m, struct resnet_size *size)
{
    for (int i = 0; i < m->c.n_cameras; i++)
        size[i] = (struct resnet_size){m->c.camera[i].height, m->c.camera[i].width};
}

static void build_images(struct act *m, struct build *b)
{
    struct act_weights *w = &m->w;
    struct resnet_size size[POLICY_MAX_CAMERAS];
    int d = m->c.dim;
    image_sizes(m, size);
    resnet_build(&w->backbone, b, m->c.depth, m->c.dilation, size, m->c.n_cameras,
                 "model.backbone.");
    if (b->rc)
        return;
    int channels = w->backbone.channels;
    build_matrix(b, &w->image_proj, d, channels, raw(m->c.precision));
    build_parts(b, 4, (int[]){d, channels, 1, 1}, 1,
                &(struct build_part){&w->image_proj, 0, 0, d},
                "model.encoder_img_feat_input_proj.weight");
    w->image_proj.bias = build_tensor(b, 1, &d, "model.encoder_img_feat_input_proj.bias");
}

static void build_inputs(struct act *m, struct build *b)
{
    struct act_weights *w = &m->w;
    int d = m->c.dim;
    if (m->c.n_cameras)
        build_images(m, b);
    if (m->c.state_dim)
        build_linear(b, &w->state_proj, d, m->c.state_dim, PRECISION_FLOAT32,
                     "model.encoder_robot_state_input_proj");
    if (m->c.env_dim)
        build_linear(b, &w->env_proj, d, m->c.env_dim, PRECISION_FLOAT32,
                     "model.encoder_env_state_input_proj");
    w->latent_token = build_tensor(b, 1, &d, "model.encoder_latent_input_proj.bias");
    w->vector_pos = build_tensor(b, 2, (int[]){m->c.vector_tokens, d},
                                 "model.encoder_1d_feature_pos_embed.weight");
}

void act_build_weights(struct act *m, struct build *b)
{
    struct act_weights *w = &m->w;
    int d = m->c.dim;
    b->room = &m->s.room;
    b->bf16 = m->c.precision == PRECISION_BF16;
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
    build_linear(b, &w->head, m->c.action_dim, d, PRECISION_FLOAT32, "model.action_head");
}

void act_build_tables(struct act *m, struct build *b)
{
    struct act_weights *w = &m->w;
    size_t d = (size_t)m->c.dim, tokens = (size_t)m->c.tokens, chunk = (size_t)m->c.chunk;
    size_t row = (size_t)act_stride(m->c.dim), row2 = (size_t)act_stride(2 * m->c.dim);
    for (int i = 0; i < m->c.n_encoder_layers; i++)
        w->encoder[i].self_pos = arena_floats(b->arena, tokens * row2);
    for (int i = 0; i < m->c.n_decoder_layers; i++) {
        w->decoder[i].self_pos = arena_floats(b->arena, chunk * row2);
        w->decoder[i].cross_q_pos = arena_floats(b->arena, chunk * row);
        w->decoder[i].cross_k_pos = arena_floats(b->arena, tokens * row);
    }
    w->start_x = arena_floats(b->arena, chunk * d);
    w->start_query = arena_floats(b->arena, chunk * d);
}

static void build_backbone_state(struct act *m, struct build *b)
{
    struct resnet_state *s = &m->s.backbone;
    struct resnet_size size[POLICY_MAX_CAMERAS];
    size_t pixels = 0;
    *s = (struct resnet_state){0};
    image_sizes(m, size);
    resnet_plan(&m->w.backbone, size, m->c.n_cameras, s);
    for (int i = 0; i < m->c.n_cameras; i++) {
        const struct act_camera *cam = &m->c.camera[i];
        size_t here = (size_t)cam->feature_height * (size_t)cam->feature_width;
        pixels = here > pixels ? here : pixels;
        m->s.tokens[i] = arena_floats(b->arena, here * (size_t)m->c.dim);
        m->s.planes[i] =
            arena_floats(b->arena, 3 * (size_t)cam->height * (size_t)cam->width);
        m->s.image[i] = (struct stem_image){
            .height = cam->height, .width = cam->width, .planes = m->s.planes[i]};
    }
    for (int i = 0; i < 4; i++)
        s->map[i] = arena_floats(b->arena, s->map_floats);
    m->s.features = arena_floats(b->arena, pixels * (size_t)m->w.backbone.channels);
}

// What the deepest layer needs for the most rows.
static size_t room_bytes(const struct act *m)
{
    const struct act_config *c = &m->c;
    int rows = c->tokens > c->chunk ? c->tokens : c->chunk;
    int depth = c->feedforward > c->dim ? c->feedforward : c->dim;
    if (c->n_cameras && m->w.backbone.channels > depth)
        depth = m->w.backbone.channels;
    return linear_room_bytes(c->precision, rows, depth, c->workers);
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
    s->qkv = arena_floats(a, rows * (size_t)act_stride(3 * m->c.dim));
    s->query = arena_floats(a, chunk * d);
    s->kv = arena_floats(a, tokens * (size_t)act_stride(2 * m->c.dim));
    s->mixed = arena_floats(a, rows * d);
    s->hidden = arena_floats(a, rows * (size_t)m->c.feedforward);
    s->actions = arena_floats(a, chunk * (size_t)m->c.action_dim);
    s->room.memory = arena_take(a, 1, room_bytes(m));
    s->scratch_floats = attention_scratch_floats(m->c.dim / m->c.heads);
    if (s->backbone.scratch_floats > s->scratch_floats)
        s->scratch_floats = s->backbone.scratch_floats;
    s->scratch_floats = (s->scratch_floats + 15) / 16 * 16; // each worker's is aligned
    s->scratch = arena_take(a, (size_t)m->c.workers, s->scratch_floats * sizeof(float));
    s->backbone.scratch = s->scratch;
    s->backbone.scratch_floats = s->scratch_floats;
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

// positions (rows, D) times the first `out` columns of l's weights, without its bias, which
// linear_run adds itself
static void make_table(struct pool *pool, const struct linear *l, int out,
                       const float *positions, int rows, float *table)
{
    struct linear part = *l;
    part.bias = NULL;
    part.out = part.weight.out = out;
    linear_run(pool, &part, positions, rows, table,
               (struct linear_extra){.y_stride = act_stride(out)});
}

void act_prepare(struct act *m, struct pool *pool)
{
    struct act_weights *w = &m->w;
    float *p = m->s.normed; // free until the first forward
    int d = m->c.dim;
    fill_positions(m, p);
    for (int i = 0; i < m->c.n_encoder_layers; i++)
        make_table(pool, &w->encoder[i].self.qkv, 2 * d, p, m->c.tokens,
                   w->encoder[i].self_pos);
    for (int i = 0; i < m->c.n_decoder_layers; i++) {
        struct act_decoder_layer *l = &w->decoder[i];
        make_table(pool, &l->cross.kv, d, p, m->c.tokens, l->cross_k_pos);
        make_table(pool, &l->cross.q, d, w->query_pos, m->c.chunk, l->cross_q_pos);
        make_table(pool, &l->self.qkv, 2 * d, w->query_pos, m->c.chunk, l->self_pos);
    }
    act_prepare_decoder(m, pool);
}
