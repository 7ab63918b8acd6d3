// policy: a trained policy as a pure computation. A checkpoint directory goes in once; after
// that an observation goes in and a chunk of actions comes out. This header is all that the
// daemon sees of it.
//
//   plain:  policy_load, policy_describe, policy_free
//   infer:  policy_infer, policy_see (no allocation, no log, no lock; only where OpenBLAS computes
//           (policy/kernels/kernels.h) its own around its table of buffers, for some 50 ns)
#ifndef ACTD_POLICY_H
#define ACTD_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/kernels/precision.h"
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
    int threads;       // compute threads, the caller's included; 0 means 1
    uint64_t cpu_mask; // cores the pool's threads may use, bit per core; 0 = any (pool.h)
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
    // Of the layers that are matrix products, and in bf16 of Winograd's weights. Processor time, and
    // weights with tables, of a full-size ACT with one camera of 480x640 (one of 224x224), AVX-512
    // with VNNI:
    // float32 93 ms, 245 MiB (19, 165); bf16 115, 129 (27, 87); int8 65, 183 (13, 103).
    // Any but float32 is loaded twice, one after the other:
    // in float32, which answers a few observations and is freed, then in this one, whose answers
    // tell policy_info.deviation. So loading takes twice as long and, for that while, the memory of
    // float32.
    enum precision precision;
    // Only the first `rows` rows of a chunk will be executed: the others are not computed behind
    // the decoder's last self attention. 0, or more than there are: all. Chunks have
    // policy_info.rows rows then, with the bits that they have among all. Where OpenBLAS computes,
    // whose sums go by the number of rows, it is all.
    int rows;
    const _Atomic bool *cancel; // looked at between tensors: -ECANCELED; NULL = never
};

// One camera frame: RGB, 8 bits a channel, rows `stride` bytes apart. Not copied, only read.
struct policy_image {
    const uint8_t *rgb; // (height, width, 3)
    int width, height, stride;
    // The same number twice in a row for one camera: the same pixels. 0 = not known. What the
    // network made of a frame is kept until another comes.
    uint64_t number;
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

// The part of an inference that needs one camera's frame alone (its backbone): may be done as soon
// as the frame is there, while others are awaited. policy_infer does it for every camera whose
// frame has another number than the one seen last (or 0), and skips it for the others; with the
// same bits either way. A frame without a number, or with that of the one seen last, is only
// checked. What is refused leaves the one seen last as it was. infer; one caller at a time. Returns
// as policy_infer.
int policy_see(struct policy *p, int camera, const struct policy_image *image);

// Of the last policy_infer: bit i set when camera i's features were there already: seen by
// policy_see, or kept from the inference before. None when it was refused before it looked at the
// frames. infer or the owner of p.
uint32_t policy_reused(const struct policy *p);

// What the next inferences do, step by step, goes into `profile`; NULL ends it. plain, between two
// inferences; the caller's memory.
struct profile;
void policy_profile(struct policy *p, struct profile *profile);

// Computes one chunk. infer; one caller at a time; allocates nothing.
//   actions     (R, A) in the checkpoint's units, row-major, caller's memory; R policy_info.rows
//   normalized  (R, A) the network's own output, or NULL
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
