#if defined(__AVX2__)
#define SIMD_AVX2
#include "policy/kernels/activation_body.h"

const struct activation_kernel activation_avx2 = {CPU_AVX2, relu_row, gelu_row};
#endif
