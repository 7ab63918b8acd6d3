// policy_info: the facts of a loaded policy. Part of policy.h.
#ifndef ACTD_POLICY_INFO_H
#define ACTD_POLICY_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/kernels/precision.h"

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

// How far another precision's chunks were from float32's, on the same observations.
struct policy_deviation {
    int observations; // 0: in float32, there is nothing to measure
    bool golden;      // one of them is golden.safetensors's; the others are made up
    const float
        *worst; // (A) of any row of any of them, in the checkpoint's units; the policy's
};

// Where the time of policy_load went, milliseconds of the wall's clock.
struct policy_load_ms {
    double open;      // config.json, statistics, the table of the weights
    double memory;    // reserved, brought in, locked
    double read;      // weights read, checked, hashed
    double reference; // the float32 policy loaded, asked and freed; 0 in float32
    double prepare;   // batch norms folded, tables computed
    double trial;     // golden.safetensors, or a mean observation where there is none
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
    int chunk_size; // C, rows that the network was trained to answer with
    int rows;       // R, of them that an inference computes: the first
    int n_action_steps;
    bool has_ensemble_coeff;
    float ensemble_coeff; // temporal ensembling as trained or configured
    char norm_state[16], norm_action[16], norm_visual[16]; // normalisation modes by name
    struct policy_stats state, action;                     // (S), (A)
    int dim_model, n_heads, dim_feedforward, n_encoder_layers, n_decoder_layers;
    bool pre_norm;
    enum precision precision;
    struct policy_deviation deviation;
    uint64_t parameters; // values used at inference
    size_t weight_bytes; // of the arena, weights as laid out for the kernels
    size_t table_bytes;  // of the arena, computed at load: what no observation changes
    size_t activation_bytes; // of the arena, working memory
    int threads;
    const char *kernels; // what it computes with, "avx2": policy/kernels/kernels.h
    char blas_core[32];  // OpenBLAS's name for its own; "" where it does not compute
    // What was read. statistics: the constants in use, see policy/lerobot.h; digest: SHA-256
    // over the three before it, as text, one after the other.
    char config_sha256[POLICY_DIGEST_HEX], weights_sha256[POLICY_DIGEST_HEX];
    char statistics_sha256[POLICY_DIGEST_HEX], digest[POLICY_DIGEST_HEX];
    // Of golden.safetensors, see policy/golden.h; < 0: there is none. In any precision that of float32:
    // what weights and statistics say; what rounding them does is `deviation`.
    double golden_error;
    struct policy_load_ms load_ms;
};

#endif
