#if defined(__aarch64__)
#define SIMD_NEON
#include "policy/kernels/layer_norm_body.h"

const struct layer_norm_kernel layer_norm_neon = {CPU_NEON, norm_rows};
#endif
