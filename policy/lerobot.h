// lerobot: a LeRobot ACT checkpoint directory of any version since 0.1 as one struct. Knows the
// dialects of config.json, where each era keeps its statistics, and what the tensors are
// called; knows nothing of how the network computes. All functions are plain.
//
// Eras: "0.1" (input_shapes, *_normalization_modes, no `type`), "0.3" (typed features,
// statistics as buffers inside model.safetensors), "0.4" (processor pipelines beside it).
// Processor files win over buffers where both exist. LeRobot itself loads with strict=False
// and so loses statistics silently; here anything that is needed and missing is refused.
//
// The parts: lerobot_config and lerobot_features (config.json), lerobot_processor (pipelines),
// lerobot_stats (statistics), lerobot_names and lerobot_manifest (tensors).
#ifndef ACTD_LEROBOT_H
#define ACTD_LEROBOT_H

#include "policy/normalize.h"
#include "policy/policy.h"
#include "policy/safetensors.h"

enum lerobot_activation { LEROBOT_RELU, LEROBOT_GELU };

struct lerobot_camera {
    char key[POLICY_NAME_MAX];
    int height, width;
    struct norm norm; // 3 values
};

// All within the bounds of lerobot_config.c: every product of two of them fits an int.
struct lerobot_act {
    int chunk_size, n_action_steps;
    int dim_model, n_heads, dim_feedforward, n_encoder_layers, n_decoder_layers,
        latent_dim;
    bool pre_norm;
    enum lerobot_activation activation;
    char backbone[16]; // "resnet18"; "" without cameras
    int depth;         // 18, 34, 50, 101, 152; 0 without cameras
    bool dilation;     // replace_final_stride_with_dilation; only with depth >= 50
    bool has_ensemble_coeff;
    float ensemble_coeff;
};

struct lerobot_checkpoint {
    char dir[512];
    char format[96]; // for people: era and source of statistics
    char config_sha256[POLICY_DIGEST_HEX];
    struct lerobot_act act;
    int n_cameras;
    struct lerobot_camera camera[POLICY_MAX_CAMERAS]; // order of config.json
    int state_dim, env_dim, action_dim; // env_dim 0 = none (env is then all zero)
    struct norm state, env, action;
    // As stored, for people: NULL where the file has none or it is not finite. Owned by priv.
    struct norm_stats state_stats, action_stats;
    struct st_file *weights;
    void *priv; // owner of the statistics and of the name table
};

// Reads config.json, statistics and the table of model.safetensors; checks that every tensor
// needed for inference is there with the right shape and that nothing unknown is (vae_*,
// normalize_*, unnormalize_* and num_batches_tracked are known and ignored).
// stats_tag chooses among several groups of statistics, NULL where there is one.
// *out is the caller's to lerobot_close. 0 or -errno with err filled: -ENOENT (config.json or
// model.safetensors missing), -EINVAL (refused), -ENOMEM, -EIO.
int lerobot_open(struct lerobot_checkpoint **out, const char *dir, const char *stats_tag,
                 struct policy_error *err);
// The same from a place with its own name and rules.
int lerobot_open_at(struct lerobot_checkpoint **out, const struct place *place,
                    const char *stats_tag, struct policy_error *err);
void lerobot_close(struct lerobot_checkpoint *c); // NULL is fine

// Reads the tensor `name` (as LeRobot calls it, without `._orig_mod`) of exactly this shape
// into dst, as float32, finite. 0 or -errno with err filled (names the tensor).
int lerobot_tensor(const struct lerobot_checkpoint *c, const char *name, int rank,
                   const int *shape, float *dst, struct policy_error *err);

// The same, but only noted in *out, for st_read_wanted over c->weights.
int lerobot_want(const struct lerobot_checkpoint *c, const char *name, int rank,
                 const int *shape, float *dst, struct st_want *out,
                 struct policy_error *err);

// SHA-256 of the constants by which observations are normalised and actions brought back, as
// they are used. For each feature in the order state, environment, action, cameras (as in
// config.json), as far as there is one: its values' count n as 4 bytes, little endian, the name
// of its mode with the final 0, then sub, div, mul, add, pre, half, range and base (n float32
// each, little endian; see normalize.h). 0 or -errno with err filled.
int lerobot_digest_statistics(const struct lerobot_checkpoint *c,
                              char sha256[POLICY_DIGEST_HEX], struct policy_error *err);

#endif
