#if defined(__aarch64__)
#define SIMD_NEON
#include "policy/kernels/attention_body.h"

const struct attention_kernel attention_neon = {CPU_NEON, block, exp_nonpositive};
#endif
