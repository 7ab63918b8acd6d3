// deviation: how far a policy in another precision is from itself in float32. The checkpoint is
// loaded in float32 first, as anybody would, and answers a few observations: the one of
// golden.safetensors, if the checkpoint carries one, and some that are made up from its statistics
// (states within a standard deviation of the mean, pictures of coloured fields). It is freed before
// the other is built, which then answers the same. In between stay its answers, and what it computed
// of its position embeddings (act_save_prepared). All functions are plain.
#ifndef ACTD_DEVIATION_H
#define ACTD_DEVIATION_H

#include "policy/place.h"
#include "policy/policy.h"

#define DEVIATION_MADE_UP 4 // observations: each costs an inference in either precision
#define DEVIATION_SEED \
    0x5eed // number i is golden_make_up's of this and i: always the same

struct deviation {
    int n;               // observations
    bool golden;         // the first is golden.safetensors's, and
    uint64_t golden_sum; // tells it from another
    float *answer;       // (n, rows of a chunk, A) float32's
    float *prepared;     // act_save_prepared's
    char digest[POLICY_DIGEST_HEX];
    double golden_error;
};

// What p, in float32, says; d is all 0 before. place: NULL = without golden.safetensors; cancel as
// in policy_options. 0 or -errno with err filled; d is deviation_free's in any case.
int deviation_ask(struct deviation *d, struct policy *p, const struct place *place,
                  const _Atomic bool *cancel, struct policy_error *err);
// Gives p, in another precision, what act_prepare would compute; its info.digest is known. 0, or
// -ESTALE with err filled: it is not the same checkpoint any more.
int deviation_prepare(const struct deviation *d, struct policy *p,
                      struct policy_error *err);
// Has p, which is ready otherwise, say the same, and fills its info.deviation.
int deviation_measure(const struct deviation *d, struct policy *p,
                      const struct place *place, const _Atomic bool *cancel,
                      struct policy_error *err);
void deviation_free(struct deviation *d);

#endif
