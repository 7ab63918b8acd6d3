#if defined(__AVX512F__)
#define SIMD_AVX512
#include "policy/kernels/layer_norm_body.h"

const struct layer_norm_kernel layer_norm_avx512 = {CPU_AVX512, norm_rows};
#endif
