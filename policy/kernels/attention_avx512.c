#if defined(__AVX512F__)
#define SIMD_AVX512
#include "policy/kernels/attention_body.h"

const struct attention_kernel attention_avx512 = {CPU_AVX512, block, exp_nonpositive};
#endif
