// policy_info: the facts of a loaded policy. Part of policy.h.
#ifndef ACTD_POLICY_INFO_H
#define ACTD_POLICY_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POLICY_MAX_CAMERAS 16
#define POLICY_NAME_MAX    128
#define POLICY_DIGEST_HEX  65 // a SHA-256 as hexadecimal digits, with the final 0

struct policy_camera {
    char key[POLICY_NAME_MAX]; // "observation.images.front"
    int height, width;         // pixels, as trained
};

// Statistics of one feature as stored; NULL where the checkpoint has none. Each points to
// `n` floats owned by the policy.
struct policy_stats {
    int n;
    const float *mean, *std, *min, *max;
};

// Where the time of policy_load went, milliseconds of the wall's clock.
struct policy_load_ms {
    double open;    // config.json, statistics, the table of the weights
    double memory;  // reserved, brought in, locked
    double read;    // weights read, checked, hashed
    double prepare; // batch norms folded, tables computed
    double trial;   // golden.safetensors, or a mean observation where there is none
    double total;
};

struct policy_info {
    char type[16];     // "act"
    char format[96];   // which era wrote it and where its statistics came from
    char backbone[16]; // "resnet18", "" without cameras
    int n_cameras;
    struct policy_camera camera[POLICY_MAX_CAMERAS];
    int state_dim;  // S
    int env_dim;    // E, 0 without environment state
    int action_dim; // A
    int chunk_size; // C, rows per inference
    int n_action_steps;
    bool has_ensemble_coeff;
    float ensemble_coeff; // temporal ensembling as trained or configured
    char norm_state[16], norm_action[16], norm_visual[16]; // normalisation modes by name
    struct policy_stats state, action;                     // (S), (A)
    int dim_model, n_heads, dim_feedforward, n_encoder_layers, n_decoder_layers;
    bool pre_norm;
    uint64_t parameters;     // values used at inference
    size_t weight_bytes;     // of the arena, weights as laid out for the kernels
    size_t activation_bytes; // of the arena, working memory
    int threads;
    char blas_core[32]; // OpenBLAS's name for the kernels in use
    // What was read. statistics: the constants in use, see policy/lerobot.h; digest: SHA-256
    // over the three before it, as text, one after the other.
    char config_sha256[POLICY_DIGEST_HEX], weights_sha256[POLICY_DIGEST_HEX];
    char statistics_sha256[POLICY_DIGEST_HEX], digest[POLICY_DIGEST_HEX];
    double golden_error; // of golden.safetensors, see policy/golden.h; < 0: there is none
    struct policy_load_ms load_ms;
};

#endif
