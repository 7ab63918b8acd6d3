// act: Action Chunking with Transformers as LeRobot trains it (Zhao et al. 2023,
// "Learning Fine-Grained Bimanual Manipulation with Low-Cost Hardware", without the VAE
// encoder, which only training uses). Images, joint state and a zero latent become
// tokens; an encoder mixes them; a decoder with one learned query per future step reads
// them; a linear head makes actions.
//
//   cameras --ResNet--> features --1x1--> tokens --+
//   state, env state -----------linear--> tokens --+-> encoder --memory--> decoder --> head
//   latent 0 ---------------------bias--> token  --+          queries (C, D) --^    (C, A)
//
// What no observation can change is computed once at load (act_prepare): the latent
// token, the products of the position embeddings with the query and key weights, and the
// decoder's first layer up to its cross attention, whose input is all zeros.
//
// Letters in shapes: S tokens, D dim_model, F dim_feedforward, C chunk_size, A actions,
// H/W image, h/w feature map, B backbone channels. Matrices are row-major.
#ifndef ACTD_MODELS_ACT_H
#define ACTD_MODELS_ACT_H

#include "policy/kernels/attention.h"
#include "policy/models/build.h"
#include "policy/models/resnet.h"
#include "policy/profile.h"

#define ACT_MAX_LAYERS 64 // of encoder and decoder each; trained models have 1 to 7

struct act_camera {
    int height, width;                 // of the image
    int feature_height, feature_width; // of its feature map
    int first_token;                   // its tokens are row-major over the map
};

struct act_config {
    int chunk, dim, heads, feedforward;
    int rows; // of the chunk that are wanted, the first ones: chunk, unless set otherwise
    int n_encoder_layers, n_decoder_layers, latent_dim;
    int state_dim, env_dim, action_dim; // 0 = absent (action_dim never)
    bool pre_norm;
    enum activation activation;
    int depth; // of the ResNet; 0 without cameras
    bool dilation;
    int n_cameras;
    struct act_camera camera[POLICY_MAX_CAMERAS];
    int state_token, env_token; // row of the token; the latent is row 0
    int vector_tokens;          // latent, state, env: those before the images
    int tokens;                 // S
    int workers;                // threads of the pool that will run it
    enum precision precision;   // of the matrix products between tokens
};

// The checkpoint's in_proj (3D, D), packed as it will be multiplied: whole where query, key and
// value come from the same rows, in two where they do not.
struct act_attention {
    struct linear qkv;   // (3D, D); self attention
    struct linear q, kv; // (D, D), (2D, D); cross attention
    struct linear out;   // (D, D)
};

struct act_encoder_layer {
    struct act_attention self;
    struct linear linear1, linear2; // (F, D), (D, F)
    struct layer_norm norm1, norm2;
    float *self_pos; // (S, 2D) P Wq | P Wk, rows act_stride apart
};

struct act_decoder_layer {
    struct act_attention self, cross;
    struct linear linear1, linear2; // (F, D), (D, F)
    struct layer_norm norm1, norm2, norm3;
    // rows act_stride apart
    float *self_pos;    // (C, 2D) Q Wq | Q Wk
    float *cross_q_pos; // (C, D) Q Wq
    float *cross_k_pos; // (S, D) P Wk
};

struct act_weights {
    struct resnet backbone;
    struct linear image_proj; // (D, B): the 1x1 convolution
    struct linear state_proj; // (D, state_dim)
    struct linear env_proj;   // (D, env_dim)
    float *latent_token;      // (D): the projection of zeros is its bias
    float *vector_pos;        // (vector_tokens, D) learned
    float *query_pos;         // (C, D) learned: one query per step of the chunk
    struct act_encoder_layer encoder[ACT_MAX_LAYERS];
    struct act_decoder_layer decoder[ACT_MAX_LAYERS];
    struct layer_norm encoder_norm; // pre-norm only
    struct layer_norm decoder_norm; // always
    struct linear head;             // (A, D)
    float *start_x, *start_query;   // (C, D) decoder layer 0 before its cross attention
};

struct act_state {
    struct stem_image image[POLICY_MAX_CAMERAS]; // input: pixels, or planes below
    float
        *planes[POLICY_MAX_CAMERAS]; // (3, H, W) normalised: of an image that was resized
    float *state, *env;              // (state_dim), (env_dim) normalised: input
    struct resnet_state backbone;
    float *features; // (h*w, B) of one camera
    float
        *tokens[POLICY_MAX_CAMERAS]; // (h*w, D) what act_see made of each camera's image
    float *x;                        // (S, D) encoder tokens, then memory
    float *y;                        // (C, D) decoder
    float *normed;                   // (max(S, C), D) input of a pre-norm sublayer
    float *qkv;                      // (max(S, C), 3D), rows act_stride apart
    float *query;                    // (C, D) cross attention
    float *kv;                       // (S, 2D) cross attention, the same
    float *mixed;                    // (max(S, C), D) attention's output
    float *hidden;                   // (max(S, C), F)
    float *actions;                  // (C, A) normalised: output
    struct linear_room room;         // of layers that are not in float32
    float *scratch; // (workers, scratch_floats): of convolutions and attention
    size_t scratch_floats;
};

struct act {
    struct act_config c;
    struct act_weights w;
    struct act_state s;
    struct profile *profile; // of the forward pass; usually NULL
};

// Floats from row to row of wide matrices of which a tile takes a little from each of many rows: an
// odd number of lines of 64 bytes. 1024 floats apart, all rows would share one set of the first
// cache's 64, and 1536 apart two: 3 to 5 % of the products that make them.
static inline int act_stride(int columns)
{
    return ((columns + 15) / 16 | 1) * 16;
}

// Takes sizes from the checkpoint and checks that they can be computed with. plain.
// 0 or -EINVAL with err filled.
int act_configure(struct act *m, const struct lerobot_checkpoint *ckpt, int workers,
                  struct policy_error *err);

// Weights, then what is computed once, then working memory, through the builder of build.h (each
// twice). plain.
void act_build_weights(struct act *m, struct build *b);
void act_build_tables(struct act *m, struct build *b);
void act_build_state(struct act *m, struct build *b);

// Everything that no observation changes. plain; once, after the weights are read.
void act_prepare(struct act *m, struct pool *pool);

// What it computed, for another of the same checkpoint in another precision: its floats, and out of
// m or into it. The tables are small (case a: 6 MB), their products exact, and the network adds
// them to each row it ever computes; so they are float32's in any precision. plain.
size_t act_prepared_floats(const struct act *m);
void act_save_prepared(const struct act *m, float *to);
void act_restore_prepared(struct act *m, float *from); // only read

// Its last step, in act.c because it is the first half of the decoder: start_x,
// start_query.
void act_prepare_decoder(struct act *m, struct pool *pool);

// One camera's part of it: from m->s.image[camera] to m->s.tokens[camera], which stay as they are
// until it is done again. infer; allocates nothing.
void act_see(struct act *m, struct pool *pool, int camera);

// From m->s.tokens, state and env to the first m->c.rows rows of m->s.actions. infer; allocates
// nothing.
void act_forward(struct act *m, struct pool *pool);

#endif
