#include "policy/kernels/stem_priv.h"

#ifdef __x86_64__
#define SIMD_AVX2
#define STEM_POOL stem_pool_avx2
#include "policy/kernels/stem_body.h"
#endif
