// policy: a trained policy as a pure computation. A checkpoint directory goes in once; after
// that an observation goes in and a chunk of actions comes out. This header is all that the
// daemon sees of it.
//
//   plain:  policy_load, policy_describe, policy_free
//   infer:  policy_infer (no allocation, no log; no lock but OpenBLAS's own around its table of
//           buffers, which only a loader beside it ever holds as well, for some 50 ns)
#ifndef ACTD_POLICY_H
#define ACTD_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/policy_info.h"

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
    const char *stats_tag;     // which group of statistics, if there are several

    // For a checkpoint that is to take over from another while that one works: share this
    // one's compute threads (threads and cpu_mask are then its own). Whatever loading computes
    // runs on the calling thread alone, each share in turn, with the same bits; so `beside` may
    // go on inferring on its own thread. Afterwards the two must not infer at the same time.
    // `beside` must live until policy_load returns, and no longer.
    struct policy *beside;
    bool strict_files; // no symbolic link, no file that others may write (place.h)
    bool skip_golden;  // do not compare with golden.safetensors: for who writes a new one
    const char *name;  // what sentences call the checkpoint; NULL = its path
    const _Atomic bool *cancel; // looked at between tensors: -ECANCELED; NULL = never
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
// In the order that makes a refusal cheap: names, owners, config, header, manifest, statistics,
// sizes, then memory and weights. plain. On success *out is the caller's to policy_free.
// Returns 0 or -errno with err filled: -ENOENT file missing, -EINVAL refused, -ELOOP a symbolic
// link with strict_files, -ENOMEM, -EIO, -ESTALE a file changed or was cut short while it was
// read, -ECANCELED, or what else open and read say (-EACCES: not ours to read).
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
