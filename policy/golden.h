// golden: what a checkpoint must answer. A checkpoint may carry golden.safetensors, one recorded
// observation with the chunk it led to, on whatever machine it was recorded; loading computes
// it again. It catches what no checksum can: other weights under the same name, statistics of
// another data set, a build of ours that computes something else.
//
//   observation.state              F32 (S)         in the checkpoint's units
//   observation.environment_state  F32 (E)         only where the checkpoint has it
//   <key of each camera>           U8  (H, W, 3)   RGB, of the size as trained
//   action                         F32 (C, A)      in the checkpoint's units
//
// What is compared is the network in float32, whatever precision was asked for: the record says
// whether these are the weights. How far another precision is from that, deviation.h measures.
//
// All functions are plain.
#ifndef ACTD_GOLDEN_H
#define ACTD_GOLDEN_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/place.h"
#include "policy/policy.h"

#define GOLDEN_FILE "golden.safetensors"
// Of |difference| / max(1, largest |action|). Other processors and thread counts differ by
// 1e-6, LeRobot itself by 1e-5; other weights by far more.
#define GOLDEN_TOLERANCE 1e-4

// Compares; sets info.golden_error, or leaves it where there is no such file. 0 or -errno with
// err filled: -EINVAL, the file is refused or the answer is another one.
int golden_check(struct policy *p, const struct place *place, struct policy_error *err);

// Writes one into directory `dir`: an observation made up from `seed` and what p answers to it.
// Appears whole or not at all. 0 or -errno with err filled: -EEXIST there is one already and
// `replace` is false.
int golden_write(struct policy *p, const char *dir, uint64_t seed, bool replace,
                 struct policy_error *err);

#endif
