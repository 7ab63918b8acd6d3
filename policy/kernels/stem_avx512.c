#include "policy/kernels/stem_priv.h"

#ifdef __x86_64__
#define SIMD_AVX512
#define STEM_POOL stem_pool_avx512
#include "policy/kernels/stem_body.h"
#endif
