// policy: a trained policy as a pure computation. A checkpoint directory goes in once; after
// that an observation goes in and a chunk of actions comes out. This header is all that the
// daemon sees of it.
//
//   plain:  policy_load, policy_describe, policy_free
//   infer:  policy_infer (no allocation, no lock but OpenBLAS's own uncontended ones, no log)
#ifndef ACTD_POLICY_H
#define ACTD_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POLICY_MAX_CAMERAS 16
#define POLICY_NAME_MAX    128

struct policy; // opaque: weights, working memory and compute threads

// Why something was refused: one sentence that names the thing and says what to do.
struct policy_error {
    char text[512];
};

enum policy_resize {
    POLICY_RESIZE_REFUSE,    // a frame of another size than the checkpoint's is an error
    POLICY_RESIZE_STRETCH,   // bilinear, aspect ratio not kept
    POLICY_RESIZE_LETTERBOX, // bilinear, aspect ratio kept, the rest filled with 0
};

struct policy_options {
    int threads;               // compute threads, the caller's included; 0 means 1
    uint64_t cpu_mask;         // cores the pool's threads may use, bit per core; 0 = any
    enum policy_resize resize; // for frames that are not the checkpoint's size
    const char *stats_tag; // which group of statistics, where a checkpoint has several
};

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
};

// One camera frame: RGB, 8 bits a channel, rows `stride` bytes apart. Not copied, only read.
struct policy_image {
    const uint8_t *rgb; // (height, width, 3)
    int width, height, stride;
};

struct policy_observation {
    const float *state;               // (S) in the checkpoint's units
    const float *env;                 // (E) or NULL
    const struct policy_image *image; // (n_cameras) in the order of policy_info.camera
};

// Loads and validates everything, runs one warm-up inference, locks its memory if it may.
// plain. On success *out is the caller's to policy_free. Returns 0 or -errno with err filled:
// -ENOENT file missing, -EINVAL refused, -ENOMEM, -EIO, -ESTALE a file changed or was cut
// short while it was read, or what else open and read say (-EACCES: not ours to read).
int policy_load(struct policy **out, const char *dir, const struct policy_options *opt,
                struct policy_error *err);

// Facts of a loaded policy. Any thread; valid until policy_free.
const struct policy_info *policy_describe(const struct policy *p);

// Computes one chunk. infer; one caller at a time; allocates nothing.
//   actions     (C, A) in the checkpoint's units, row-major, caller's memory
//   normalized  (C, A) the network's own output, or NULL
// Returns 0; -EINVAL when an image's size or a pointer is refused; -EDOM when an input or an
// output is not finite (actions are then all zero and must not be used).
int policy_infer(struct policy *p, const struct policy_observation *obs, float *actions,
                 float *normalized);

// One frame through exactly the path that policy_infer uses.
//   chw  (3, height, width) as trained, normalised, caller's memory
// plain (for tests and tools). Returns as policy_infer.
int policy_preprocess(struct policy *p, int camera, const struct policy_image *image,
                      float *chw);

// A sentence for the last refusal of policy_infer, without allocation. infer or the owner of p.
const char *policy_last_error(const struct policy *p);

// Stops the compute threads and releases everything. plain. NULL is fine.
void policy_free(struct policy *p);

#endif
