#if defined(__AVX2__)
#define SIMD_AVX2
#include "policy/kernels/attention_body.h"

const struct attention_kernel attention_avx2 = {CPU_AVX2, block, exp_nonpositive};
#endif
