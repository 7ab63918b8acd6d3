// warmup: makes OpenBLAS ready to be called from every thread of a pool at once.
#ifndef ACTD_WARMUP_H
#define ACTD_WARMUP_H

#include "policy/policy.h"
#include "policy/pool.h"

// Sets OpenBLAS to one thread per caller (with more it allocates in every call) and runs
// a first product on all workers at the same time: OpenBLAS maps a 128 MiB buffer for
// each concurrent caller the first time it meets one, which must not happen in a control
// loop. plain; allocates and frees. 0, -ENOMEM, or -EINVAL when OpenBLAS keeps several
// threads.
int warmup_blas(struct pool *pool, struct policy_error *err);

#endif
