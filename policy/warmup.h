// warmup: makes OpenBLAS ready to be called from many threads at once; where it computes at all
// (policy/kernels/kernels.h).
#ifndef ACTD_WARMUP_H
#define ACTD_WARMUP_H

#include "policy/policy.h"

// Sets OpenBLAS to one thread per caller (with more it allocates in every call) and has it map
// the buffers of `callers` concurrent ones: it maps 128 MiB for each the first time it meets
// it, which must not happen in a control loop. Buffers are never given back, so a second call
// costs microseconds. plain. 0, -ENOMEM, or -EINVAL when OpenBLAS keeps several threads.
int warmup_blas(int callers, struct policy_error *err);

#endif
