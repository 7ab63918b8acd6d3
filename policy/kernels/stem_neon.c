#include "policy/kernels/stem_priv.h"

#ifdef __aarch64__
#define SIMD_NEON
#define STEM_POOL stem_pool_neon
#include "policy/kernels/stem_body.h"
#endif
