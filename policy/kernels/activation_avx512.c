#if defined(__AVX512F__)
#define SIMD_AVX512
#include "policy/kernels/activation_body.h"

const struct activation_kernel activation_avx512 = {CPU_AVX512, relu_row, gelu_row};
#endif
