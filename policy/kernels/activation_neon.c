#if defined(__aarch64__)
#define SIMD_NEON
#include "policy/kernels/activation_body.h"

const struct activation_kernel activation_neon = {CPU_NEON, relu_row, gelu_row};
#endif
